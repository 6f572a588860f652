//! JSON-RPC messages, one per line: what the proxy reads of one, and what it writes itself.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The code of errors that the proxy answers with: of the range that JSON-RPC leaves to implementations.
const PROXY_ERROR: i64 = -32000;

/// The parts of a message that decide where it goes.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<'a> {
    pub id: Option<Value>,
    #[serde(borrow)]
    pub method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    /// `None`: it is no message.
    pub fn read(line: &'a str) -> Option<Envelope<'a>> {
        serde_json::from_str(line).ok()
    }

    /// A field of the parameters.
    pub fn param(&self, name: &str) -> Option<Value> {
        let mut params: Value = serde_json::from_str(self.params?.get()).ok()?;
        params.get_mut(name).map(Value::take)
    }
}

/// The key of an id: `1` and `"1"` are two.
pub(super) fn id_key(id: &Value) -> String {
    id.to_string()
}

/// The message with another id.
pub(super) fn with_id(line: &str, id: Value) -> String {
    let mut message: Value = serde_json::from_str(line).unwrap_or_default();
    if let Some(fields) = message.as_object_mut() {
        fields.insert("id".to_owned(), id);
    }
    message.to_string()
}

/// The response with a remark of ours in the `_meta` of its result.
pub(super) fn with_note(line: &str, note: &str) -> String {
    let mut message: Value = serde_json::from_str(line).unwrap_or_default();
    if let Some(result) = message.get_mut("result").and_then(Value::as_object_mut) {
        let meta = result.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert("tether/note".to_owned(), note.into());
        }
    }
    message.to_string()
}

/// A request of the proxy itself.
pub(super) fn request(id: &str, method: &str, params: Option<&str>) -> String {
    let params = params.and_then(|params| RawValue::from_string(params.to_owned()).ok());
    let message = match params {
        Some(params) => serde_json::to_string(&Request { jsonrpc: "2.0", id, method, params: Some(&params) }),
        None => serde_json::to_string(&Request { jsonrpc: "2.0", id, method, params: None }),
    };
    message.unwrap_or_default()
}

#[derive(serde::Serialize)]
struct Request<'a> {
    jsonrpc: &'a str,
    id: &'a str,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
}

pub(super) fn notification(method: &str, params: Value) -> String {
    match params {
        Value::Null => json!({"jsonrpc": "2.0", "method": method}).to_string(),
        params => json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string(),
    }
}

/// The answer to a request that no server answers; `last_lines`: what the server has printed last.
pub(super) fn error_response(id: &Value, message: &str, last_lines: &str) -> String {
    let data = if last_lines.is_empty() { Value::Null } else { json!({"lastLines": last_lines}) };
    let error = json!({"code": PROXY_ERROR, "message": message, "data": data});
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()
}

/// The answer to what is no message.
pub(super) fn parse_error() -> String {
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "the line is no JSON-RPC message"}})
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart_and_changed_where_that_is_needed() {
        let call =
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":3}}}"#;
        let read = Envelope::read(call).unwrap();
        assert_eq!((read.id.clone(), read.method.as_deref()), (Some(json!(7)), Some("tools/call")));
        assert_eq!(read.param("name"), Some(json!("a")));
        assert_ne!(id_key(&json!(7)), id_key(&json!("7")));
        assert!(Envelope::read("hello").is_none());
        let renamed: Value = serde_json::from_str(&with_id(call, json!("t-1"))).unwrap();
        assert_eq!((&renamed["id"], &renamed["params"]["name"]), (&json!("t-1"), &json!("a")));
        let noted: Value = serde_json::from_str(&with_note(r#"{"id":1,"result":{"x":1}}"#, "stale")).unwrap();
        assert_eq!(noted["result"], json!({"x": 1, "_meta": {"tether/note": "stale"}}));
        let asked: Value = serde_json::from_str(&request("t-2", "initialize", Some(r#"{"a":1}"#))).unwrap();
        assert_eq!(asked, json!({"jsonrpc": "2.0", "id": "t-2", "method": "initialize", "params": {"a": 1}}));
    }
}
