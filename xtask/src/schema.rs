//! Whether every message that was sent over DAP in the tests is one of the protocol: the official schema, which comes
//! with debugpy, judges all that was written down (`DEVTETHER_DAP_RECORD`, see `src/dap/trace.rs`).
//!
//! Must not know who has sent what, nor why.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use jsonschema::Validator;
use serde_json::Value;

/// Inside of a Python's libraries.
const SCHEMA: &str = "site-packages/debugpy/_vendored/pydevd/_pydevd_bundle/_debug_adapter/debugProtocol.json";
/// Requests whose arguments are an adapter's own, as the protocol has it.
const OPEN: [&str; 2] = ["LaunchRequest", "AttachRequest"];
/// So many complaints say enough.
const MOST: usize = 20;

/// Judges all that lies in `folder`, and tells what there was; that nothing was written down is a failure, too.
pub fn hold(folder: &Path, data: &Path) -> Result<()> {
    let Some(schema) = find(data) else {
        ensure!(std::env::var_os("CI").is_none(), "{SCHEMA} is missing\n  hint: `cargo xtask tools` installs it");
        eprintln!("SKIPPED: the DAP schema is missing; `cargo xtask tools` installs debugpy, which brings it");
        return Ok(());
    };
    let mut judge = Judge::of(&schema)?;
    for file in files(folder)? {
        let lines = BufReader::new(fs::File::open(&file)?).lines();
        for line in lines {
            judge.hear(&line.with_context(|| format!("cannot read {}", file.display()))?);
        }
    }
    judge.verdict()
}

fn find(data: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(data.join("tools/python/lib")).ok()?.filter_map(Result::ok);
    versions.map(|version| version.path().join(SCHEMA)).find(|schema| schema.is_file())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("nothing was written down in {}", folder.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// Counts what it hears, and collects what is wrong with it.
struct Judge {
    schema: Value,
    validators: HashMap<String, Option<Validator>>,
    /// Messages that were judged already, without their numbers: floods say the same again and again.
    heard: HashSet<String>,
    counts: BTreeMap<String, u64>,
    wrong: Vec<String>,
}

impl Judge {
    fn of(schema: &Path) -> Result<Judge> {
        let mut schema: Value = serde_json::from_slice(&fs::read(schema)?)?;
        // Each kind is judged by its own definition, which says more about it than the choice of all of them.
        schema.as_object_mut().context("the schema is no object")?.remove("oneOf");
        let (validators, heard) = (HashMap::new(), HashSet::new());
        Ok(Judge { schema, validators, heard, counts: BTreeMap::new(), wrong: Vec::new() })
    }

    fn hear(&mut self, line: &str) {
        let mut message: Value = match serde_json::from_str(line) {
            Ok(message) => message,
            Err(cause) => return self.wrong.push(format!("{cause} in {line}")),
        };
        let kind = definition(&message);
        *self.counts.entry(kind.clone()).or_default() += 1;
        for number in ["seq", "request_seq"] {
            if message[number].is_i64() {
                message[number] = 1.into();
            }
        }
        if self.heard.insert(message.to_string()) {
            let found = self.complaints(&kind, &message);
            self.wrong.extend(found.into_iter().map(|found| format!("{kind}: {found}\n    in {}", short(line))));
        }
    }

    fn complaints(&mut self, kind: &str, message: &Value) -> Vec<String> {
        let schema = &self.schema;
        let validator = self.validators.entry(kind.to_owned()).or_insert_with(|| {
            let mut schema = schema["definitions"].get(kind).map(|_| schema.clone())?;
            schema["$ref"] = format!("#/definitions/{kind}").into();
            jsonschema::validator_for(&schema).ok()
        });
        let Some(validator) = validator else { return vec!["the protocol has no such message".to_owned()] };
        let mut found: Vec<String> = validator.iter_errors(message).map(|error| error.to_string()).collect();
        if message["type"] == "request" && !OPEN.contains(&kind) {
            found.extend(self.strange(kind, &message["arguments"]));
        }
        found
    }

    /// Arguments that no request of this kind has: the schema itself lets any pass.
    fn strange(&self, kind: &str, arguments: &Value) -> Vec<String> {
        let request = &self.schema["definitions"][kind];
        let own = request["allOf"].as_array().and_then(|all| all.last()).unwrap_or(request);
        let declared = &own["properties"]["arguments"];
        let referred = declared["$ref"].as_str().and_then(|place| self.schema.pointer(place.trim_start_matches('#')));
        let known = &referred.unwrap_or(declared)["properties"];
        let names = arguments.as_object().into_iter().flatten().map(|(name, _)| name);
        names.filter(|name| known.get(name).is_none()).map(|name| format!("it has no argument `{name}`")).collect()
    }

    fn verdict(self) -> Result<()> {
        let total: u64 = self.counts.values().sum();
        ensure!(total > 0, "no DAP message was written down: the tests have sent none, or the trace is broken");
        let kinds: Vec<String> = self.counts.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        println!("\n  {total} DAP messages of {} kinds, {} different:", kinds.len(), self.heard.len());
        println!("  {}", kinds.join(", "));
        if self.wrong.is_empty() {
            println!("  all are valid by the official schema");
            return Ok(());
        }
        let told = self.wrong.iter().take(MOST).map(|wrong| format!("\n  {wrong}")).collect::<String>();
        bail!("{} DAP messages are not valid by the official schema:{told}", self.wrong.len());
    }
}

/// The name that the schema has for a message of this kind.
fn definition(message: &Value) -> String {
    let name = |field: &str, kind: &str| {
        let name = message[field].as_str().unwrap_or_default();
        let (first, rest) = name.split_at(name.chars().next().map_or(0, char::len_utf8));
        format!("{}{rest}{kind}", first.to_uppercase())
    };
    match message["type"].as_str() {
        Some("request") => name("command", "Request"),
        Some("response") if message["success"] == false => "ErrorResponse".to_owned(),
        Some("response") => name("command", "Response"),
        Some("event") => name("event", "Event"),
        _ => "ProtocolMessage".to_owned(),
    }
}

fn short(line: &str) -> String {
    line.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"seq":1,"type":"request","command":"pause","arguments":{"threadId":1}}"#;

    /// `None` where the tools are not installed.
    fn held(lines: &[&str]) -> Option<Result<()>> {
        let data = devtether::config::folders::data_dir().unwrap();
        if find(&data).is_none() {
            assert!(std::env::var_os("CI").is_none(), "{SCHEMA} is missing: run `cargo xtask tools`");
            eprintln!("SKIPPED: no {SCHEMA}; `cargo xtask tools` installs debugpy, which brings it");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("7-0.jsonl"), lines.iter().map(|line| format!("{line}\n")).collect::<String>())
            .unwrap();
        Some(hold(folder.path(), &data))
    }

    #[test]
    fn what_the_protocol_has_passes_and_all_else_is_told() {
        let check = |line: &str, expect: Option<&str>| {
            let Some(held) = held(&[GOOD, line]) else { return };
            match (held, expect) {
                (Ok(()), None) => {}
                (Err(error), Some(expect)) if error.to_string().contains(expect) => {}
                (held, expect) => panic!("{line}: {held:?}, and not {expect:?}"),
            }
        };
        check(GOOD, None);
        check(r#"{"seq":2,"type":"request","command":"launch","arguments":{"any":1}}"#, None);
        check(r#"{"seq":3,"type":"response","request_seq":1,"success":false,"command":"x","body":{}}"#, None);
        check(r#"{"seq":2,"type":"request","command":"pause","arguments":{}}"#, Some("threadId"));
        check(
            r#"{"seq":2,"type":"request","command":"pause","arguments":{"threadId":1,"thread":1}}"#,
            Some("PauseRequest: it has no argument `thread`"),
        );
        check(r#"{"seq":2,"type":"request","command":"paws"}"#, Some("PawsRequest: the protocol has no such message"));
        check(r#"{"seq":2,"type":"event","event":"stopped","body":{}}"#, Some("reason"));
        check(r#"{"type":"event","event":"initialized"}"#, Some("seq"));
        check(r#"{"seq":2}"#, Some("type"));
        check("{", Some("EOF"));
    }

    #[test]
    fn nothing_is_a_failure_too() {
        let Some(held) = held(&[]) else { return };
        assert!(held.unwrap_err().to_string().contains("no DAP message was written down"));
        let missing = tempfile::tempdir().unwrap().path().join("never");
        let data = devtether::config::folders::data_dir().unwrap();
        let error = hold(&missing, &data).unwrap_err().to_string();
        assert!(error.contains("nothing was written down in"), "{error}");
    }
}
