//! Environment variables for display and for records: names, and a digest instead of each value, which may be a secret.
//!
//! Variables that choose which code runs are shown as they are: the user consents to that code. Does not depend on where
//! the variables come from.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

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
    let is_shown = SHOWN.contains(&name) || SHOWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    if value.is_null() || is_shown || is_reference(&value) { value } else { digest_of(&value) }
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
    fn n6_values_are_digests_unless_they_choose_code() {
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
