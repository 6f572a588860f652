//! Environment variables for display and for records: names, and a digest instead of each value, which may be a secret.
//!
//! Variables that choose which code runs are shown as they are: the user consents to that code. Does not depend on where
//! the variables come from.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tether_base::secret_values::SecretValues;

use crate::config::vscode::variables::{environment_value, substitute_variables};

/// How many hex digits of a digest are shown: a change of the value needs new consent, so it must not be forged.
const DIGEST_DIGITS: usize = 32;
/// Variables whose values choose programs, libraries or code, and not a secret.
const SHOWN: &[&str] = &[
    "BASH_ENV",
    "ELECTRON_RUN_AS_NODE",
    "ENV",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "NODE_ENV",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PYTHONBREAKPOINT",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "SHELL",
    "_JAVA_OPTIONS",
];
/// And those that begin so: the dynamic linkers'.
const SHOWN_PREFIXES: &[&str] = &["LD_", "DYLD_"];
/// Variables of every session, whose values are no secret.
const PUBLIC: &[&str] =
    &["DISPLAY", "EDITOR", "HOME", "HOSTNAME", "LANG", "LOGNAME", "PWD", "TERM", "TMPDIR", "TZ", "USER", "VISUAL"];
/// And those that begin so.
const PUBLIC_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// The values of the variables that the texts name as `${env:NAME}`, to be shown by their names.
pub fn secrets_of_references<'t>(texts: impl IntoIterator<Item = &'t str>) -> SecretValues {
    let mut secrets = SecretValues::default();
    for text in texts {
        let _ = substitute_variables(text, |_, name| {
            if let Some(variable) = name.strip_prefix("env:").filter(|variable| !is_public(variable)) {
                secrets.add(&environment_value(variable), &format!("${{env:{variable}}}"));
            }
            Ok::<_, std::convert::Infallible>(None)
        });
    }
    secrets
}

/// The values of variables in a configuration of launch.json as it is written: each `${env:NAME}` of any text, and its own
/// `env` and `environment`.
pub fn secrets_of_configuration(fields: &Map<String, Value>) -> SecretValues {
    let mut secrets = secrets_of_json(fields.values());
    let literal = |value: &Value| value.as_str().filter(|text| !text.contains("${env:")).map(str::to_owned);
    let own = ["env", "environment"].iter().filter_map(|key| fields.get(*key));
    for variables in own {
        let pairs: Vec<(String, String)> = match variables {
            Value::Object(pairs) => {
                pairs.iter().filter_map(|(name, value)| Some((name.clone(), literal(value)?))).collect()
            }
            Value::Array(items) => {
                let pair = |item: &Value| Some((item["name"].as_str()?.to_owned(), literal(&item["value"])?));
                items.iter().filter_map(pair).collect()
            }
            _ => Vec::new(),
        };
        add_variables(&mut secrets, pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    }
    secrets
}

/// The values of the variables that any text of the JSON values names as `${env:NAME}`.
pub fn secrets_of_json<'v>(values: impl IntoIterator<Item = &'v Value>) -> SecretValues {
    let mut texts = Vec::new();
    values.into_iter().for_each(|value| collect_texts(value, &mut texts));
    secrets_of_references(texts)
}

fn collect_texts<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(members) => members.values().for_each(|member| collect_texts(member, texts)),
        _ => {}
    }
}

/// Adds the values of a command's own variables (name, value): of `env`, or of a file of variables.
pub fn add_variables<'v>(secrets: &mut SecretValues, variables: impl IntoIterator<Item = (&'v str, &'v str)>) {
    for (_, value) in variables.into_iter().filter(|(name, _)| !is_public(name)) {
        secrets.add(value, "***");
    }
}

fn is_public(name: &str) -> bool {
    is_shown(name) || PUBLIC.contains(&name) || PUBLIC_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn is_shown(name: &str) -> bool {
    SHOWN.contains(&name) || SHOWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The variables as a JSON object; `null` unsets a variable.
pub fn show_environment<'v>(variables: impl IntoIterator<Item = (&'v String, Value)>) -> Value {
    variables.into_iter().map(|(name, value)| (name.clone(), show_value(name, value))).collect::<Map<_, _>>().into()
}

/// The `env` of a configuration, in any form that debuggers take: an object, or a list of names and values.
pub fn show_environment_field(value: &Value) -> Value {
    match value {
        Value::Object(variables) => show_environment(variables.iter().map(|(name, value)| (name, value.clone()))),
        Value::Array(items) => items.iter().map(show_item).collect(),
        other => digest_of(other),
    }
}

/// `{"name": …, "value": …}`, as the C++ debuggers have it.
fn show_item(item: &Value) -> Value {
    let (Some(name), Some(value)) = (item["name"].as_str(), item.get("value")) else { return digest_of(item) };
    let shown = show_value(name, value.clone());
    let others = item.as_object().into_iter().flatten().filter(|(key, _)| !["name", "value"].contains(&key.as_str()));
    let others = others.map(|(key, value)| (key.clone(), digest_of(value)));
    let named = [("name".to_owned(), name.into()), ("value".to_owned(), shown)];
    others.chain(named).collect::<Map<_, _>>().into()
}

fn show_value(name: &str, value: Value) -> Value {
    if value.is_null() || is_shown(name) || is_reference(&value) { value } else { digest_of(&value) }
}

/// Whether a value is only the name of another variable: `${env:NAME}`.
fn is_reference(value: &Value) -> bool {
    let inside = value.as_str().and_then(|text| text.strip_prefix("${env:")?.strip_suffix('}'));
    inside.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

fn digest_of(value: &Value) -> Value {
    let digest = hex::encode(Sha256::digest(value.to_string()));
    format!("sha256 {}", &digest[..DIGEST_DIGITS]).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_digests_unless_they_choose_code() {
        let secrets =
            json!({"TOKEN": "s3cret", "NODE_OPTIONS": "-r ./x", "LD_PRELOAD": "./y.so", "GONE": null, "N": 1});
        let shown = show_environment_field(&secrets);
        let text = shown.to_string();
        assert!(!text.contains("s3cret") && text.contains("\"TOKEN\":\"sha256 "), "{text}");
        assert_eq!((&shown["NODE_OPTIONS"], &shown["LD_PRELOAD"]), (&json!("-r ./x"), &json!("./y.so")));
        assert_eq!(shown["GONE"], Value::Null);
        let reference = json!({"A": "${env:B}", "C": "${env:D}e}"});
        let shown_reference = show_environment_field(&reference);
        assert_eq!(shown_reference["A"], reference["A"]);
        assert_ne!(shown_reference["C"], reference["C"]);
        assert_ne!(shown, show_environment_field(&json!({"TOKEN": "s3creT"})));
        let list = show_environment_field(&json!([{"name": "TOKEN", "value": "s3cret"}, "TOKEN=s3cret"]));
        assert!(!list.to_string().contains("s3cret") && list[0]["name"] == "TOKEN", "{list}");
        assert!(!show_environment_field(&json!("s3cret")).to_string().contains("s3cret"));
    }
}
