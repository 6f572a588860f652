//! Validates the DAP messages that the tests have sent by the official schema, which comes with debugpy.
//!
//! The messages are recorded with `DEVTETHER_DAP_RECORD`. Does not depend on who has sent a message, nor why.

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
/// Requests of debugpy that the protocol does not have; it alone is sent them.
const OF_DEBUGPY: [&str; 2] = ["SetDebuggerPropertyRequest", "PydevdSystemInfoRequest"];
/// Requests and an event of our own Java adapter, which `docs/src/editors.md` names.
const OF_OUR_JAVA: [&str; 5] = [
    "CaptureEventsRequest",
    "CaptureEventsResponse",
    "MonitorEventEvent",
    "RedefineClassesRequest",
    "RedefineClassesResponse",
];
/// How many errors are listed.
const MAX_LISTED: usize = 20;

/// Validates the messages in `folder`, and prints how many there are of each kind. Errors: invalid messages, or none at all.
pub fn check_messages(folder: &Path, data: &Path) -> Result<()> {
    let Some(schema) = find_schema(data) else {
        ensure!(std::env::var_os("CI").is_none(), "{SCHEMA} is missing\n  hint: `cargo xtask tools` installs it");
        eprintln!("SKIPPED: the DAP schema is missing; `cargo xtask tools` installs debugpy, which brings it");
        return Ok(());
    };
    let mut validation = Validation::with_schema(&schema)?;
    for file in list_files(folder)? {
        let lines = BufReader::new(fs::File::open(&file)?).lines();
        for line in lines {
            validation.add_record(&line.with_context(|| format!("cannot read {}", file.display()))?);
        }
    }
    validation.report()
}

fn find_schema(data: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(data.join("tools/python/lib")).ok()?.filter_map(Result::ok);
    versions.map(|version| version.path().join(SCHEMA)).find(|schema| schema.is_file())
}

fn list_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("no messages are recorded in {}", folder.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// Counts messages, and collects their errors.
struct Validation {
    schema: Value,
    validators: HashMap<String, Option<Validator>>,
    /// Messages that were validated already, without their numbers: most messages repeat.
    seen: HashSet<String>,
    counts: BTreeMap<String, u64>,
    errors: Vec<String>,
}

impl Validation {
    fn with_schema(schema: &Path) -> Result<Validation> {
        let mut schema: Value = serde_json::from_slice(&fs::read(schema)?)?;
        // Each kind is validated by its own definition, whose errors are clearer than those of the choice of all of them.
        schema.as_object_mut().context("the schema is not an object")?.remove("oneOf");
        let (validators, seen) = (HashMap::new(), HashSet::new());
        Ok(Validation { schema, validators, seen, counts: BTreeMap::new(), errors: Vec::new() })
    }

    /// Adds a line of a record, if it is of a message that was sent: what an adapter sends is its own matter.
    fn add_record(&mut self, line: &str) {
        match serde_json::from_str::<Value>(line) {
            Ok(mut record) if record.get("received").is_none() => self.add_message(record["sent"].take(), line),
            Ok(_) => {}
            Err(cause) => self.errors.push(format!("{cause} in {line}")),
        }
    }

    fn add_message(&mut self, mut message: Value, line: &str) {
        let kind = definition_name(&message);
        *self.counts.entry(kind.clone()).or_default() += 1;
        for number in ["seq", "request_seq"] {
            if message[number].is_i64() {
                message[number] = 1.into();
            }
        }
        if self.seen.insert(message.to_string()) && !is_known_deviation(&kind, &message) {
            let found = self.validation_errors(&kind, &message);
            self.errors.extend(found.into_iter().map(|found| format!("{kind}: {found}\n    in {}", shorten(line))));
        }
    }

    fn validation_errors(&mut self, kind: &str, message: &Value) -> Vec<String> {
        let schema = &self.schema;
        let validator = self.validators.entry(kind.to_owned()).or_insert_with(|| {
            let mut schema = schema["definitions"].get(kind).map(|_| schema.clone())?;
            schema["$ref"] = format!("#/definitions/{kind}").into();
            jsonschema::validator_for(&schema).ok()
        });
        let Some(validator) = validator else { return vec!["the protocol has no such message".to_owned()] };
        let mut found: Vec<String> = validator.iter_errors(message).map(|error| error.to_string()).collect();
        if message["type"] == "request" && !OPEN.contains(&kind) {
            found.extend(self.unknown_arguments(kind, &message["arguments"]));
        }
        found
    }

    /// Arguments that no request of this kind has: the schema itself lets any pass.
    fn unknown_arguments(&self, kind: &str, arguments: &Value) -> Vec<String> {
        let request = &self.schema["definitions"][kind];
        let own = request["allOf"].as_array().and_then(|all| all.last()).unwrap_or(request);
        let declared = &own["properties"]["arguments"];
        let referred = declared["$ref"].as_str().and_then(|place| self.schema.pointer(place.trim_start_matches('#')));
        let known = &referred.unwrap_or(declared)["properties"];
        let names = arguments.as_object().into_iter().flatten().map(|(name, _)| name);
        names.filter(|name| known.get(name).is_none()).map(|name| format!("it has no argument `{name}`")).collect()
    }

    fn report(self) -> Result<()> {
        let total: u64 = self.counts.values().sum();
        ensure!(total > 0, "no DAP message was recorded: the tests have sent none, or recording is broken");
        let kinds: Vec<String> = self.counts.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        println!("\n  {total} DAP messages of {} kinds, {} different:", kinds.len(), self.seen.len());
        println!("  {}", kinds.join(", "));
        if self.errors.is_empty() {
            println!("  all are valid by the official schema");
            return Ok(());
        }
        let listed = self.errors.iter().take(MAX_LISTED).map(|error| format!("\n  {error}")).collect::<String>();
        bail!("{} DAP messages are not valid by the official schema:{listed}", self.errors.len());
    }
}

/// Whether a message differs from the schema on purpose.
fn is_known_deviation(kind: &str, message: &Value) -> bool {
    // A scripted adapter of a test sets a variable as lldb-dap 19 does: without a word of the value.
    let has_empty_body = || message["body"].as_object().is_some_and(serde_json::Map::is_empty);
    OF_DEBUGPY.contains(&kind) || OF_OUR_JAVA.contains(&kind) || (kind == "SetVariableResponse" && has_empty_body())
}

/// The name that the schema has for a message of this kind.
fn definition_name(message: &Value) -> String {
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

fn shorten(line: &str) -> String {
    line.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"seq":1,"type":"request","command":"pause","arguments":{"threadId":1}}"#;

    /// `None` where the tools are not installed.
    fn check_lines(lines: &[&str]) -> Option<Result<()>> {
        let data = tether_base::xdg::data_dir().unwrap();
        if find_schema(&data).is_none() {
            assert!(std::env::var_os("CI").is_none(), "{SCHEMA} is missing: run `cargo xtask tools`");
            eprintln!("SKIPPED: no {SCHEMA}; `cargo xtask tools` installs debugpy, which brings it");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let received = r#"{"at":1,"received":{"type":"no message"}}"#;
        let sent = lines.iter().map(|line| format!("{{\"at\":1,\"sent\":{line}}}\n{received}\n"));
        fs::write(folder.path().join("7-0.jsonl"), sent.collect::<String>()).unwrap();
        Some(check_messages(folder.path(), &data))
    }

    #[test]
    fn messages_of_the_protocol_are_valid_and_all_others_are_reported() {
        let check = |line: &str, expect: Option<&str>| {
            let Some(result) = check_lines(&[GOOD, line]) else { return };
            match (result, expect) {
                (Ok(()), None) => {}
                (Err(error), Some(expect)) if error.to_string().contains(expect) => {}
                (result, expect) => panic!("{line}: {result:?}, and not {expect:?}"),
            }
        };
        check(GOOD, None);
        check(r#"{"seq":2,"type":"request","command":"launch","arguments":{"any":1}}"#, None);
        check(r#"{"seq":3,"type":"response","request_seq":1,"success":false,"command":"x","body":{}}"#, None);
        check(r#"{"seq":2,"type":"request","command":"pydevdSystemInfo","arguments":{}}"#, None);
        check(r#"{"seq":2,"type":"response","request_seq":1,"success":true,"command":"setVariable","body":{}}"#, None);
        check(
            r#"{"seq":2,"type":"response","request_seq":1,"success":true,"command":"setVariable","body":{"type":"int"}}"#,
            Some("value"),
        );
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
    fn no_messages_at_all_are_an_error() {
        let Some(result) = check_lines(&[]) else { return };
        assert!(result.unwrap_err().to_string().contains("no DAP message was recorded"));
        let missing = tempfile::tempdir().unwrap().path().join("never");
        let data = tether_base::xdg::data_dir().unwrap();
        let error = check_messages(&missing, &data).unwrap_err().to_string();
        assert!(error.contains("no messages are recorded in"), "{error}");
    }
}
