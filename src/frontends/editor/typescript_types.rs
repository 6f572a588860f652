//! Writes `extension/src/rpc/protocol.ts`: the messages of the supervisor that the VS Code extension uses, as TypeScript. Only
//! tests use it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

use crate::api::debug::breakpoints::BreakpointReport;
use crate::api::debug::results::DebugSessionStatus;
use crate::api::protocol::{InitializeParams, InitializeResult};
use crate::api::timeline::TimelineEvents;
use crate::api::window::WindowStatus;

const HEAD: &str = "\
/**
 * The messages of the supervisor that this extension uses, written from its own types (`src/api`):
 * `UPDATE_PROTOCOL=1 cargo test --lib editor` writes this file again.
 */
";

/// The schemas of the types, and of those that they have, by name.
fn schemas() -> BTreeMap<String, Value> {
    let mut sent = SchemaSettings::draft2020_12().for_serialize().into_generator();
    add::<WindowStatus>(&mut sent);
    add::<DebugSessionStatus>(&mut sent);
    add::<BreakpointReport>(&mut sent);
    add::<TimelineEvents>(&mut sent);
    add::<InitializeResult>(&mut sent);
    let mut received = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    add::<InitializeParams>(&mut received);
    [sent, received].iter_mut().flat_map(|generator| generator.take_definitions(true)).collect()
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

fn protocol_text() -> String {
    let mut text = HEAD.to_owned();
    for (name, schema) in schemas() {
        write_type(&mut text, &name, &schema).expect("a String takes any text");
    }
    text
}

fn write_type(text: &mut String, name: &str, schema: &Value) -> std::fmt::Result {
    writeln!(text)?;
    write_comment(text, "", schema)?;
    let Some(properties) = schema["properties"].as_object() else {
        return writeln!(text, "export type {name} = {};", type_text(schema));
    };
    writeln!(text, "export interface {name} {{")?;
    let required = schema["required"].as_array();
    for (field, of) in properties {
        write_comment(text, "  ", of)?;
        let is_required = required.is_some_and(|names| names.iter().any(|it| it == field));
        writeln!(text, "  {field}{}: {};", if is_required { "" } else { "?" }, type_text(of))?;
    }
    writeln!(text, "}}")
}

fn write_comment(text: &mut String, indent: &str, schema: &Value) -> std::fmt::Result {
    match schema["description"].as_str() {
        // Of the type that it is.
        None => Ok(()),
        Some(description) => {
            let plain = description.replace('\n', " ").replace("[`", "`").replace("`]", "`");
            writeln!(text, "{indent}/** {plain} */")
        }
    }
}

/// `number`, `ChangedFile[]`, `"added" | "removed"`. What may be null may be left out instead.
fn type_text(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return name.rsplit('/').next().unwrap_or_default().to_owned();
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[choice].as_array() {
            return choices.iter().filter(|it| it["type"] != "null").map(type_text).collect::<Vec<_>>().join(" | ");
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().filter(|it| !it.is_null()).map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    if !schema["const"].is_null() {
        return schema["const"].to_string();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null").unwrap_or(&Value::Null),
        kind => kind,
    };
    match kind.as_str() {
        Some("integer" | "number") => "number".to_owned(),
        Some("array") => match type_text(&schema["items"]) {
            choices if choices.contains('|') => format!("({choices})[]"),
            item => format!("{item}[]"),
        },
        Some("object") => format!("Record<string, {}>", type_text(&schema["additionalProperties"])),
        Some(kind) => kind.to_owned(),
        None => "unknown".to_owned(),
    }
}

#[test]
fn the_extension_has_the_types_of_the_supervisor() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("extension/src/rpc/protocol.ts");
    let text = protocol_text();
    if std::env::var_os("UPDATE_PROTOCOL").is_some() {
        return std::fs::write(&file, text).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == text, "a type has changed: `UPDATE_PROTOCOL=1 cargo test --lib editor` writes {file:?} again");
    for part in [
        "export interface WindowStatus {",
        "  state: ReportedWindowState;",
        "  pid?: number;",
        "changes: ChangedFile[];",
    ] {
        assert!(text.contains(part), "{part}");
    }
}
