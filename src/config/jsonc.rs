//! Reads JSON with comments and trailing commas, as VS Code does, and keeps the line of each value.
//!
//! The parser is the crate `jsonc-parser`. Does not depend on the contents of any file.

use std::path::{Path, PathBuf};

use jsonc_parser::ast::{ObjectPropName, Value as Ast};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use tether_base::error::{Error, Result};

use crate::config::source_file::{Origin, read_own_text};

/// The dialect that VS Code accepts: comments and trailing commas, and nothing else of JSON5.
pub const DIALECT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// A parsed file.
#[derive(Clone, Debug)]
pub struct JsonDocument {
    /// The path of the file, for errors and origins.
    pub path: PathBuf,
    /// Its value; an empty object where the file has none.
    pub root: JsonNode,
}

/// A value and its line.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonNode {
    /// From 1; of an object's member the line of its key.
    pub line: usize,
    /// The value itself.
    pub value: JsonValue,
}

/// A JSON value whose parts have lines.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonValue {
    Null,
    Bool(bool),
    /// The digits as written.
    Number(String),
    String(String),
    Array(Vec<JsonNode>),
    /// In the order of the file.
    Object(Vec<(String, JsonNode)>),
}

impl JsonDocument {
    /// Reads a file; `None` where it does not exist. Errors name file, line and column.
    pub fn read(path: &Path) -> Result<Option<JsonDocument>> {
        read_own_text(path)?.map(|text| JsonDocument::parse(path, &text)).transpose()
    }

    /// Parses `text`; `path` is used in errors only. Errors name file, line and column.
    pub fn parse(path: &Path, text: &str) -> Result<JsonDocument> {
        let parsed = parse_to_ast(text, &CollectOptions::default(), &DIALECT).map_err(|cause| {
            let (line, column) = (cause.line_display(), cause.column_display());
            Error::usage(format!("cannot read {}:{line}:{column}", path.display()))
                .because(cause.kind().to_string().to_lowercase())
        })?;
        let lines = LineStarts::of(text);
        let root =
            parsed.value.map_or(JsonNode { line: 1, value: JsonValue::Object(Vec::new()) }, |ast| lines.node(&ast));
        Ok(JsonDocument { path: path.to_owned(), root })
    }

    /// The error for a value of this file that cannot be used; `what` is the reason.
    pub fn unusable(&self, node: &JsonNode, what: impl Into<String>) -> Error {
        Error::usage(format!("cannot use {}:{}", self.path.display(), node.line)).because(what.into())
    }

    /// The file and line of a value, with the path relative to the workspace.
    pub fn origin(&self, workspace: &Path, node: &JsonNode) -> Origin {
        Origin::new(workspace, &self.path, Some(node.line))
    }
}

/// The byte offset at which each line begins.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> LineStarts {
        LineStarts(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    fn line(&self, at: usize) -> usize {
        self.0.partition_point(|start| *start <= at)
    }

    /// Recursive: the parser bounds the depth.
    fn node(&self, ast: &Ast<'_>) -> JsonNode {
        let value = match ast {
            Ast::NullKeyword(_) => JsonValue::Null,
            Ast::BooleanLit(it) => JsonValue::Bool(it.value),
            Ast::NumberLit(it) => JsonValue::Number(it.value.to_owned()),
            Ast::StringLit(it) => JsonValue::String(it.value.clone().into_owned()),
            Ast::Array(it) => JsonValue::Array(it.elements.iter().map(|element| self.node(element)).collect()),
            Ast::Object(it) => {
                let member = |name: &ObjectPropName<'_>, start: usize, value: &Ast<'_>| {
                    (name.as_str().to_owned(), JsonNode { line: self.line(start), ..self.node(value) })
                };
                JsonValue::Object(it.properties.iter().map(|it| member(&it.name, it.range.start, &it.value)).collect())
            }
        };
        JsonNode { line: self.line(ast.range().start), value }
    }
}

impl JsonNode {
    /// The member of this name; of several the last one. `None` where this is no object.
    pub fn get(&self, name: &str) -> Option<&JsonNode> {
        self.members().iter().rev().find(|(key, _)| key == name).map(|(_, node)| node)
    }

    /// The members of an object in file order; empty where this is no object.
    pub fn members(&self) -> &[(String, JsonNode)] {
        if let JsonValue::Object(members) = &self.value { members } else { &[] }
    }

    /// The items of an array; empty where this is no array.
    pub fn items(&self) -> &[JsonNode] {
        if let JsonValue::Array(items) = &self.value { items } else { &[] }
    }

    /// The value of a string; `None` where this is no string.
    pub fn text(&self) -> Option<&str> {
        if let JsonValue::String(text) = &self.value { Some(text) } else { None }
    }

    /// The items of the member of this name; empty where that is no array.
    pub fn items_of(&self, name: &str) -> &[JsonNode] {
        self.get(name).map(JsonNode::items).unwrap_or_default()
    }

    /// The value of the member of this name; `None` where that is no string.
    pub fn text_of(&self, name: &str) -> Option<&str> {
        self.get(name)?.text()
    }

    /// Whether the member of this name is `true`.
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|node| node.value == JsonValue::Bool(true))
    }

    /// The items of an array; any other value as the only item.
    pub fn one_or_many(&self) -> &[JsonNode] {
        if let JsonValue::Array(items) = &self.value { items } else { std::slice::from_ref(self) }
    }

    /// Plain JSON with the strings as they are.
    pub fn as_written(&self) -> serde_json::Value {
        let string = |text: &str, _: &JsonNode, _: &str| Ok::<_, std::convert::Infallible>(text.into());
        match self.json("", &string) {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// Converts to plain JSON. `text` maps each string; its arguments are the string, its node and its dotted key,
    /// which begins with `key` (`env.PATH`).
    pub fn json<E>(
        &self,
        key: &str,
        text: &impl Fn(&str, &JsonNode, &str) -> Result<serde_json::Value, E>,
    ) -> Result<serde_json::Value, E> {
        Ok(match &self.value {
            JsonValue::Null => serde_json::Value::Null,
            JsonValue::Bool(value) => (*value).into(),
            JsonValue::Number(written) => serde_json::from_str(written).unwrap_or_else(|_| written.as_str().into()),
            JsonValue::String(value) => text(value, self, key)?,
            JsonValue::Array(items) => items.iter().map(|item| item.json(key, text)).collect::<Result<_, E>>()?,
            JsonValue::Object(members) => members
                .iter()
                .map(|(name, node)| {
                    let inner = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                    Ok((name.clone(), node.json(&inner, text)?))
                })
                .collect::<Result<_, E>>()?,
        })
    }

    /// This object with the members of `over`, which replace its own members of the same name.
    pub fn overlaid(&self, over: &JsonNode) -> JsonNode {
        let own = self.members().iter().filter(|(name, _)| over.get(name).is_none());
        JsonNode { line: self.line, value: JsonValue::Object(own.chain(over.members()).cloned().collect()) }
    }

    /// As [`JsonNode::overlaid`]; a member `name` that both have is overlaid by `overlay`.
    pub fn overlaid_with(
        &self,
        over: &JsonNode,
        name: &str,
        overlay: fn(&JsonNode, &JsonNode) -> JsonNode,
    ) -> JsonNode {
        match (self.get(name), over.get(name)) {
            (Some(below), Some(above)) => self.overlaid(over).with_member(name, overlay(below, above)),
            _ => self.overlaid(over),
        }
    }

    /// This object with the member `name` set to `value`.
    pub fn with_member(&self, name: &str, value: JsonNode) -> JsonNode {
        self.overlaid(&JsonNode { line: self.line, value: JsonValue::Object(vec![(name.to_owned(), value)]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<JsonDocument> {
        JsonDocument::parse(Path::new("/ws/a.json"), text)
    }

    #[test]
    fn comments_and_trailing_commas_are_accepted_and_lines_are_kept() {
        let document = parse("// one\n{\n  \"a\": [1, true,],\n  /* two */ \"b\":\n    \"x\\n\",\n}").unwrap();
        let (a, b) = (document.root.get("a").unwrap(), document.root.get("b").unwrap());
        assert_eq!((a.line, a.items().len(), b.line, b.text()), (3, 2, 4, Some("x\n")));
        assert_eq!(parse("").unwrap().root.members(), []);
        assert_eq!(parse("{\"a\":1,\"a\":\"2\"}").unwrap().root.text_of("a"), Some("2"));
    }

    #[test]
    fn syntax_errors_name_line_and_column() {
        let check = |text: &str, expect: &str| {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.starts_with(expect), "{message}");
        };
        check("{\n  \"a\": 1\n  \"b\": 2\n}", "cannot read /ws/a.json:2:9");
        check("{\n  \"a\": ", "cannot read /ws/a.json:2:");
        check("{'a': 1}", "cannot read /ws/a.json:1:2");
        check(&"[".repeat(100_000), "cannot read /ws/a.json:1:");
    }
}
