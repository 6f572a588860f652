//! Values as people read them: by the previews that the engine makes, without running code of the program.

use tether_base::clipped_text::first_bytes;
use tether_cdp::types::{EntryPreview, ObjectPreview, PropertyPreview, RemoteObject};

/// How much of a text is shown, in bytes.
const MAX_TEXT: usize = 100_000;

/// The text of a value.
pub(crate) fn value_text(value: &RemoteObject) -> String {
    match value.kind.as_str() {
        "string" => quote(value.value.as_ref().and_then(|it| it.as_str()).unwrap_or_default()),
        "undefined" => "undefined".to_owned(),
        "function" => function_text(value.description.as_deref().unwrap_or_default()),
        "object" => match &value.preview {
            _ if value.subtype.as_deref() == Some("null") => "null".to_owned(),
            Some(preview) => preview_text(preview, value.class_name.as_deref()),
            None => description_text(value.subtype.as_deref(), value.description.as_deref()),
        },
        _ => value.text(),
    }
}

/// The type of a value: the name of its class, or of its kind.
pub(crate) fn type_name(value: &RemoteObject) -> String {
    match (value.kind.as_str(), value.subtype.as_deref(), &value.class_name) {
        ("object", Some("null"), _) => "null".to_owned(),
        ("object", _, Some(class)) => class.clone(),
        (kind, ..) => kind.to_owned(),
    }
}

/// The number in `Array(3)`, `Map(2)`; 0 for a negative one.
pub(crate) fn described_size(value: &RemoteObject) -> Option<i64> {
    let (_, size) = value.description.as_deref()?.strip_suffix(')')?.rsplit_once('(')?;
    size.parse().ok().map(|size: i64| size.max(0))
}

/// A text in single quotes, as JavaScript writes it.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::from("'");
    for character in first_bytes(text, MAX_TEXT).chars() {
        match character {
            '\'' => quoted.push_str("\\'"),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('\'');
    quoted
}

/// `ƒ name(args)`, `class Name`.
fn function_text(description: &str) -> String {
    let head = description.lines().next().unwrap_or_default();
    if head.starts_with("class ") {
        return head.split('{').next().unwrap_or_default().trim().to_owned();
    }
    let (prefix, rest) = match head.strip_prefix("async ") {
        Some(rest) => ("async ƒ", rest),
        None => ("ƒ", head),
    };
    let rest = rest.strip_prefix("function").unwrap_or(rest).trim_start();
    let before_body = rest.split_once(" {").or(rest.split_once('{')).map_or(rest, |(before, _)| before);
    format!("{prefix} {}", before_body.trim())
}

fn description_text(subtype: Option<&str>, description: Option<&str>) -> String {
    let description = description.unwrap_or("Object");
    match subtype {
        Some("error") => description.lines().next().unwrap_or_default().to_owned(),
        _ => description.to_owned(),
    }
}

fn preview_text(preview: &ObjectPreview, class: Option<&str>) -> String {
    let description = preview.description.as_deref().unwrap_or("Object");
    match preview.subtype.as_deref() {
        Some("array" | "typedarray") => {
            let (name, size) =
                description.strip_suffix(')').and_then(|it| it.rsplit_once('(')).unwrap_or((description, ""));
            let name = if name == "Array" { String::new() } else { name.to_owned() };
            format!("{name}({size}) [{}]", join_parts(preview, element_texts(preview)))
        }
        Some("map" | "set" | "weakmap" | "weakset") => {
            format!("{description} {{{}}}", join_parts(preview, preview.entries.iter().map(entry_text).collect()))
        }
        Some("error" | "date" | "regexp" | "node") => description_text(preview.subtype.as_deref(), Some(description)),
        _ => {
            let parts = preview.properties.iter().map(|it| format!("{}: {}", it.name, property_text(it))).collect();
            let name = class.filter(|class| *class != "Object").map_or_else(String::new, |class| format!("{class} "));
            format!("{name}{{{}}}", join_parts(preview, parts))
        }
    }
}

fn element_texts(preview: &ObjectPreview) -> Vec<String> {
    let is_typed = preview.subtype.as_deref() == Some("typedarray");
    let text = |it: &PropertyPreview| match it.name.parse::<u64>() {
        Ok(_) => property_text(it),
        Err(_) => format!("{}: {}", it.name, property_text(it)),
    };
    // The engine adds what all typed arrays have, as `byteLength`.
    let is_shown = |it: &&PropertyPreview| !is_typed || it.name.parse::<u64>().is_ok();
    preview.properties.iter().filter(is_shown).map(text).collect()
}

fn join_parts(preview: &ObjectPreview, mut parts: Vec<String>) -> String {
    if preview.overflow {
        parts.push("…".to_owned());
    }
    parts.join(", ")
}

fn property_text(property: &PropertyPreview) -> String {
    let value = property.value.as_deref().unwrap_or_default();
    match (property.kind.as_str(), property.subtype.as_deref()) {
        ("string", _) => quote(value),
        ("function", _) => "ƒ".to_owned(),
        ("accessor", _) => "(getter)".to_owned(),
        ("object", None) if value == "Object" => "{…}".to_owned(),
        _ => value.to_owned(),
    }
}

fn entry_text(entry: &EntryPreview) -> String {
    let text = |preview: &ObjectPreview| match preview.kind.as_str() {
        "string" => quote(preview.description.as_deref().unwrap_or_default()),
        "object" => preview_text(preview, None),
        _ => preview.description.clone().unwrap_or_default(),
    };
    match &entry.key {
        Some(key) => format!("{} => {}", text(key), text(&entry.value)),
        None => text(&entry.value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(value: Value, text: &str, kind: &str) {
        let value: RemoteObject = serde_json::from_value(value).unwrap();
        assert_eq!((value_text(&value).as_str(), type_name(&value).as_str()), (text, kind));
    }

    #[test]
    fn the_size_of_a_value_is_the_number_behind_its_class_and_never_negative() {
        for (description, size) in [
            ("Array(3)", Some(3)),
            ("Map(0)", Some(0)),
            ("Set(-9223372036854775808)", Some(0)),
            ("Array(9223372036854775808)", None),
            ("Array", None),
            ("f(x)", None),
        ] {
            let value = serde_json::from_value(json!({"type": "object", "description": description})).unwrap();
            assert_eq!(described_size(&value), size, "{description}");
        }
    }

    #[test]
    fn values_are_shown_as_people_expect() {
        check(json!({"type": "string", "value": "it's\n"}), "'it\\'s\\n'", "string");
        check(json!({"type": "number", "value": 1, "description": "1"}), "1", "number");
        check(json!({"type": "number", "unserializableValue": "-0", "description": "-0"}), "-0", "number");
        check(json!({"type": "bigint", "unserializableValue": "10n", "description": "10n"}), "10n", "bigint");
        check(json!({"type": "undefined"}), "undefined", "undefined");
        check(json!({"type": "object", "subtype": "null", "value": null}), "null", "null");
        let function = |description: &str| json!({"type": "function", "description": description});
        check(function("function add(a, b) {\n  return a }"), "ƒ add(a, b)", "function");
        check(function("async (a) => {"), "async ƒ (a) =>", "function");
        check(function("class Order { }"), "class Order", "function");
        let error = json!({"type": "object", "subtype": "error", "className": "TypeError", "description": "TypeError: x\n    at y"});
        check(error, "TypeError: x", "TypeError");
        let preview = json!({"type": "object", "description": "Object", "overflow": true,
            "properties": [{"name": "a", "type": "number", "value": "1"}, {"name": "b", "type": "string", "value": "x"}]});
        check(json!({"type": "object", "className": "Object", "preview": preview}), "{a: 1, b: 'x', …}", "Object");
        check(json!({"type": "object", "className": "Order", "preview": preview}), "Order {a: 1, b: 'x', …}", "Order");
        let array = json!({"type": "object", "subtype": "array", "description": "Array(2)", "overflow": false,
            "properties": [{"name": "0", "type": "number", "value": "1"}, {"name": "1", "type": "object", "value": "Object"}]});
        check(json!({"type": "object", "className": "Array", "preview": array}), "(2) [1, {…}]", "Array");
        let map = json!({"type": "object", "subtype": "map", "description": "Map(1)", "overflow": false, "properties": [],
            "entries": [{"key": {"type": "string", "description": "k", "overflow": false, "properties": []},
                         "value": {"type": "number", "description": "2", "overflow": false, "properties": []}}]});
        check(json!({"type": "object", "className": "Map", "preview": map}), "Map(1) {'k' => 2}", "Map");
    }
}
