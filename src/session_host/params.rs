//! Reads the parameters of a call: a number that is given as text is taken, and an error names the wrong parameter.
//!
//! Values are checked against the JSON schema that clients see, so an error is in JSON's words. Does not depend on what
//! an operation does.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use tether_base::clipped_text::clip_chars;
use tether_base::error::{Error, Result};

use crate::api::{Operation, OperationParams, find_operation};

/// How much of a wrong value an error shows, in characters.
const MAX_SHOWN_VALUE: usize = 60;

/// The parameters of an operation. Errors: one is unknown, missing or of another type.
pub fn read_params<P: OperationParams>(params: &Value) -> Result<P> {
    // No parameters at all, and an empty object, are the same.
    let none = Value::Object(Map::new());
    let params = if params.is_null() { &none } else { params };
    match P::deserialize(params) {
        Ok(read) => Ok(read),
        // Some clients send every value as a text.
        Err(cause) => match params_from_text(P::METHOD, params).map(|params| P::deserialize(&params)) {
            Some(Ok(read)) => Ok(read),
            _ => Err(params_error(P::METHOD, params, &cause)),
        },
    }
}

/// The parameters with each number and boolean that is given as text; `None`: there is none such.
fn params_from_text(method: &str, params: &Value) -> Option<Value> {
    let schema = params_schema(method)?;
    let mut changed = false;
    let read = |(name, value): (&String, &Value)| {
        let expected = &schema["properties"][name];
        let from_text =
            value.as_str().filter(|_| !is_accepted(expected, value)).and_then(|text| text.trim().parse().ok());
        let from_text =
            from_text.filter(|read: &Value| (read.is_number() || read.is_boolean()) && is_accepted(expected, read));
        changed |= from_text.is_some();
        (name.clone(), from_text.unwrap_or_else(|| value.clone()))
    };
    let read: Map<String, Value> = params.as_object()?.iter().map(read).collect();
    changed.then_some(Value::Object(read))
}

fn params_error(method: &str, params: &Value, cause: &serde_json::Error) -> Error {
    let known = find_operation(method).map(Operation::parameter_names).unwrap_or_default();
    let names = if known.is_empty() { "it takes none".into() } else { format!("it takes: {}", known.join(", ")) };
    let wrong = params_schema(method).and_then(|schema| describe_mismatch(&schema, params, ""));
    let error = Error::usage(format!("the parameters of {method} are wrong"));
    error.because(wrong.unwrap_or_else(|| cause.to_string())).hint(names)
}

fn params_schema(method: &str) -> Option<Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    Some((find_operation(method)?.params_schema)(&mut settings.into_generator()).to_value())
}

/// What is wrong with the first value below `value` that its schema does not accept: "`line` must be an integer, and
/// \"abc\" is a string". `None`: all are accepted, or it is not known which is wrong.
fn describe_mismatch(schema: &Value, value: &Value, path: &str) -> Option<String> {
    let inner = match value {
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            describe_mismatch(schema["properties"].get(name)?, value, &path)
        }),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| describe_mismatch(array_items(schema)?, item, &format!("{path}[{index}]"))),
        _ => None,
    };
    if inner.is_some() || path.is_empty() || is_accepted(schema, value) {
        return inner;
    }
    let (expected, shown) = (describe_schema(schema)?, clip_chars(&value.to_string(), MAX_SHOWN_VALUE));
    Some(format!("`{path}` must be {expected}, and {shown} is {}", describe_type(json_type(value))))
}

fn array_items(schema: &Value) -> Option<&Value> {
    schema.get("items").or_else(|| choices(schema).iter().find_map(|choice| choice.get("items")))
}

/// The schemas of which one must hold.
fn choices(schema: &Value) -> &[Value] {
    ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array()).map_or(&[], Vec::as_slice)
}

/// The types that a schema names.
fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Whether a schema accepts a value: its type, its limits, its choices; what is inside of it is not checked.
fn is_accepted(schema: &Value, value: &Value) -> bool {
    if !choices(schema).is_empty() {
        return choices(schema).iter().any(|choice| is_accepted(choice, value));
    }
    if let Some(names) = schema["enum"].as_array() {
        return names.contains(value);
    }
    if let Some(only) = schema.get("const") {
        return only == value;
    }
    let types = types(schema);
    let has_type =
        types.is_empty() || types.contains(&json_type(value)) || (types.contains(&"number") && value.is_number());
    let limit = |key: &str| schema[key].as_f64();
    let is_within = value.as_f64().is_none_or(|number| {
        limit("minimum").is_none_or(|least| number >= least) && limit("maximum").is_none_or(|most| number <= most)
    });
    has_type && is_within
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn describe_type(name: &str) -> &str {
    match name {
        "null" => "null",
        "boolean" => "a boolean",
        "number" => "a number",
        "integer" => "an integer",
        "string" => "a string",
        "array" => "an array",
        "object" => "an object",
        name => name,
    }
}

/// What a schema accepts, besides null, which is the same as no value: "an integer from 1 to 65535".
fn describe_schema(schema: &Value) -> Option<String> {
    let parts: Vec<String> = choices(schema).iter().filter_map(describe_schema).collect();
    if !parts.is_empty() {
        return Some(parts.join(" or "));
    }
    if let Some(names) = schema["enum"].as_array() {
        let names: Vec<String> = names.iter().filter(|name| !name.is_null()).map(Value::to_string).collect();
        return Some(names.join(" or "));
    }
    if let Some(only) = schema.get("const") {
        return Some(only.to_string());
    }
    let names: Vec<&str> = types(schema).into_iter().filter(|name| *name != "null").map(describe_type).collect();
    let limits = match (schema["minimum"].as_f64(), schema["maximum"].as_f64()) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(" of at least {least}"),
        (None, Some(most)) => format!(" of at most {most}"),
        (None, None) => String::new(),
    };
    (!names.is_empty()).then(|| names.join(" or ") + &limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::debug::DebugAttachParams;
    use crate::api::debug::control::DebugStepParams;
    use crate::api::page_input::PageInputParams;
    use crate::api::window::WindowStartParams;
    use serde_json::json;

    fn cause<P: OperationParams>(params: Value) -> String {
        read_params::<P>(&params).map(drop).unwrap_err().causes().join(" ")
    }

    #[test]
    fn numbers_and_booleans_are_taken_as_text_too() {
        let read: DebugAttachParams = read_params(&json!({"port": "9229", "wait": " 1.5", "language": "7"})).unwrap();
        assert_eq!((read.port, read.wait.map(f64::from), read.language.as_deref()), (Some(9229), Some(1.5), Some("7")));
    }

    #[test]
    fn an_error_names_the_parameter_in_the_words_of_json() {
        let check = |cause: String, expected: &str| assert_eq!(cause, expected);
        let attach = cause::<DebugAttachParams>;
        check(attach(json!({"port": "abc"})), "`port` must be an integer from 0 to 65535, and \"abc\" is a string");
        check(attach(json!({"port": "70000"})), "`port` must be an integer from 0 to 65535, and \"70000\" is a string");
        check(attach(json!({"port": 70000})), "`port` must be an integer from 0 to 65535, and 70000 is an integer");
        check(attach(json!({"port": [1]})), "`port` must be an integer from 0 to 65535, and [1] is an array");
        check(
            attach(json!({"window": "tab"})),
            "`window` must be \"page\" or \"extensionHost\", and \"tab\" is a string",
        );
        check(attach(json!({"host": 7})), "`host` must be a string, and 7 is an integer");
        let long = format!("`host` must be a string, and [{}… is an array", "1,".repeat(29) + "1");
        check(attach(json!({"host": vec![1; 100]})), &long);
        assert!(attach(json!({"prot": 7})).contains("unknown field `prot`"));
        assert!(attach(json!({"wait": -1})).contains("-1 is not a number of seconds"));
        check(
            cause::<WindowStartParams>(json!({"rebuild": "maybe"})),
            "`rebuild` must be \"auto\" or \"always\" or \"never\", and \"maybe\" is a string",
        );
        assert!(cause::<PageInputParams>(json!({"actions": "click"})).starts_with("`actions` must be an array"));
    }

    #[test]
    fn a_step_is_one_over_the_line_unless_it_says_otherwise() {
        let step: DebugStepParams = read_params(&Value::Null).unwrap();
        assert_eq!(step.kind, crate::api::debug::control::StepKind::Over);
    }
}
