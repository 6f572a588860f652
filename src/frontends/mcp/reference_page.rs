//! Writes `docs/src/reference.md`: each operation with its names in the front ends, its parameters and its result. Only tests
//! use it, as with `tool_schemas`.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use super::tool_names::offered_operations;
use super::tool_schemas::{input_schema, output_schema};
use crate::api::{OPERATIONS, Operation};

const HEAD: &str = "\
# Reference

Each operation is an MCP tool, a command and a JSON-RPC method with the same parameters. This page is written from their
declarations: `UPDATE_TOOL_LIST=1 cargo test --workspace --lib mcp` writes it again. A command takes a parameter such as `timeoutMs` as
`--timeout-ms`, and some as arguments without a name: `tether COMMAND --help` shows them.

";

fn page_text() -> String {
    let mut page = HEAD.to_owned();
    for operation in OPERATIONS {
        write_operation(&mut page, operation).expect("a String takes any text");
    }
    page
}

fn write_operation(page: &mut String, operation: &'static Operation) -> std::fmt::Result {
    let command = format!("tether {}", operation.words.join(" "));
    let tool = offered_operations().find(|it| it.method == operation.method).map(Operation::tool_name);
    writeln!(page, "## {}\n\n{}\n", tool.as_deref().unwrap_or(&command), operation.summary())?;
    let tool = tool.map(|tool| format!("`{tool}`")).unwrap_or_else(|| "none".to_owned());
    writeln!(page, "MCP: {tool}; command: `{command}`; JSON-RPC: `{}`\n", operation.method)?;
    let input = Value::Object(input_schema(operation));
    let required = |name: &str| input["required"].as_array().is_some_and(|names| names.iter().any(|it| it == name));
    let properties = input["properties"].as_object();
    if properties.is_some_and(|properties| !properties.is_empty()) {
        writeln!(page, "| parameter | type | |\n|---|---|---|")?;
    }
    for (name, schema) in properties.into_iter().flatten() {
        let kind = if required(name) { "required: " } else { "" };
        let text = schema["description"].as_str().unwrap_or_default();
        writeln!(page, "| `{name}` | {kind}{} | {} |", type_text(schema), cell(text))?;
    }
    if properties.is_some_and(|properties| !properties.is_empty()) {
        writeln!(page)?;
    }
    let output = Value::Object(output_schema(operation));
    let fields: Vec<String> =
        output["properties"].as_object().into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
    if !fields.is_empty() {
        writeln!(page, "Result: {}\n", fields.join(", "))?;
    }
    Ok(())
}

/// `text`, `a list of text`, or the values that are allowed.
fn type_text(schema: &Value) -> String {
    if let Some(values) = schema["enum"].as_array() {
        return values
            .iter()
            .map(|value| format!("`{}`", value.as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(", ");
    }
    match schema["type"].as_str() {
        Some("string") => "text".to_owned(),
        Some("integer") => "whole number".to_owned(),
        Some("array") if schema["items"].is_object() => format!("list of {}", type_text(&schema["items"])),
        Some(kind) => kind.to_owned(),
        None => "any".to_owned(),
    }
}

/// Text of a table's cell: one line, without what Markdown takes for HTML or for the end of the cell.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|").replace('<', "&lt;")
}

#[test]
fn the_reference_page_is_that_of_the_operations() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/reference.md");
    let page = page_text();
    if std::env::var_os("UPDATE_TOOL_LIST").is_some() {
        return std::fs::write(&file, page).unwrap();
    }
    assert!(
        std::fs::read_to_string(&file).unwrap_or_default() == page,
        "an operation has changed: `UPDATE_TOOL_LIST=1 cargo test --workspace --lib mcp` writes {file:?} again"
    );
    assert!(page.contains("## window_start\n") && page.contains("| `timeoutMs` | whole number |"));
}
