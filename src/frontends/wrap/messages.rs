//! JSON-RPC messages, one per line: what the proxy reads of one, what it changes in one, and what it writes itself.
//!
//! A message is changed by replacing a part of its text: numbers and the order of fields stay as they were written.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The code of errors that the proxy answers with: of the range that JSON-RPC leaves to implementations.
const PROXY_ERROR: i64 = -32000;
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

/// The parts of a message that decide where it goes.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

/// The parameters that the proxy knows.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct KnownParams<'a> {
    #[serde(borrow, rename = "_meta")]
    pub meta: Option<&'a RawValue>,
    pub uri: Option<String>,
    #[serde(borrow, rename = "requestId")]
    pub request_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "progressToken")]
    pub progress_token: Option<&'a RawValue>,
    pub progress: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KnownMeta<'a> {
    #[serde(borrow, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    /// `None`: it is no message.
    pub fn read(line: &'a [u8]) -> Option<Envelope<'a>> {
        let message: Envelope<'a> = serde_json::from_slice(line).ok()?;
        let is_id =
            |id: &RawValue| id.get().starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit());
        (message.id.is_none_or(is_id) && (message.id.is_some() || message.method.is_some())).then_some(message)
    }

    /// The key of its id: `1` and `"1"` are two.
    pub fn id_key(&self) -> Option<String> {
        self.id.map(id_key)
    }

    pub fn params(&self) -> KnownParams<'a> {
        self.params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default()
    }

    /// The token with which its sender wants to know of progress.
    pub fn progress_token(&self) -> Option<&'a RawValue> {
        // Most have none: their parameters are not read.
        memchr::memmem::find(self.params?.get().as_bytes(), b"progressToken")?;
        let meta: KnownMeta<'a> = serde_json::from_str(self.params().meta?.get()).ok()?;
        meta.progress_token
    }

    /// What a failed request was answered with.
    pub fn error_message(&self) -> String {
        let error: Value = self.error.and_then(|error| serde_json::from_str(error.get()).ok()).unwrap_or_default();
        error["message"].as_str().unwrap_or("it gives no reason").to_owned()
    }
}

/// A server may write the id of a request in another form: `"\u00e4"` as `"ä"`.
pub(super) fn id_key(id: &RawValue) -> String {
    serde_json::from_str::<Value>(id.get()).map(|id| id.to_string()).unwrap_or_default()
}

/// The message with some of its parts written anew. The parts are of this very text, in their order.
pub(super) fn with_parts(line: &Bytes, parts: &[(&RawValue, &str)]) -> Bytes {
    let mut changed = Vec::with_capacity(line.len() + 64);
    let mut rest = 0;
    for (part, text) in parts {
        let begin = (part.get().as_ptr() as usize).wrapping_sub(line.as_ptr() as usize);
        changed.extend_from_slice(line.get(rest..begin).unwrap_or_default());
        changed.extend_from_slice(text.as_bytes());
        rest = begin.saturating_add(part.get().len());
    }
    changed.extend_from_slice(line.get(rest..).unwrap_or_default());
    changed.into()
}

/// The response with a remark of ours in the `_meta` of its result.
pub(super) fn with_note(line: &Bytes, result: &RawValue, note: &str) -> Bytes {
    let mut noted: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let Some(fields) = noted.as_object_mut() else { return line.clone() };
    if let Some(meta) = fields.entry("_meta").or_insert_with(|| json!({})).as_object_mut() {
        meta.insert("tether/note".to_owned(), note.into());
    }
    with_parts(line, &[(result, &noted.to_string())])
}

/// A request of the proxy itself; `params` are the text of an object.
pub(super) fn request(id: &str, method: &str, params: Option<&str>) -> Bytes {
    let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","id":{},"method":{}{params}}}"#, json!(id), json!(method)).into()
}

pub(super) fn notification(method: &str, params: Value) -> Bytes {
    match params {
        Value::Null => json!({"jsonrpc": "2.0", "method": method}),
        params => json!({"jsonrpc": "2.0", "method": method, "params": params}),
    }
    .to_string()
    .into()
}

/// The answer to a request that no server answers; `last_lines`: what the server has printed last.
pub(super) fn error_response(id: &RawValue, message: &str, last_lines: &str) -> Bytes {
    let data = if last_lines.is_empty() { Value::Null } else { json!({"lastLines": last_lines}) };
    let error = json!({"code": PROXY_ERROR, "message": message, "data": data});
    format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.get()).into()
}

/// The answer to what is no message.
pub(super) fn refusal(line: &[u8]) -> Bytes {
    let (code, why) = match serde_json::from_slice::<Value>(line) {
        Ok(Value::Array(_)) => (INVALID_REQUEST, "the line is a batch: send each message in a line of its own"),
        Ok(_) => (INVALID_REQUEST, "the line is no message of JSON-RPC 2.0"),
        Err(_) => (PARSE_ERROR, "the line is not JSON"),
    };
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": why}}).to_string().into()
}

/// The answer to a line that is too long.
pub(super) fn too_long(longest: usize) -> Bytes {
    let error = json!({"code": INVALID_REQUEST, "message": format!("the line is longer than {longest} bytes")});
    json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &Bytes) -> &str {
        std::str::from_utf8(line).unwrap()
    }

    #[test]
    fn messages_are_told_apart() {
        let call =
            br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":3}}}"#;
        let read = Envelope::read(call).unwrap();
        assert_eq!((read.id_key().as_deref(), read.method.as_deref()), (Some("7"), Some("tools/call")));
        assert_eq!(read.progress_token().map(RawValue::get), Some("3"));
        let key = |line: &[u8]| Envelope::read(line).and_then(|it| it.id_key());
        assert_eq!(key(br#"{"id":"7","result":null}"#).as_deref(), Some("\"7\""));
        assert_eq!(key(r#"{"id":"\u00e4","result":{}}"#.as_bytes()), key(r#"{"id":"ä","result":{}}"#.as_bytes()));
        for no_message in
            ["hello", "{}", "[]", "7", r#"{"id":{}}"#, r#"{"id":null,"result":{}}"#, r#"{"method":7}"#, "\u{0}"]
        {
            assert!(Envelope::read(no_message.as_bytes()).is_none(), "{no_message}");
        }
        assert!(Envelope::read(b"{\"method\":\"\xff\"}").is_none());
    }

    #[test]
    fn a_part_is_replaced_and_the_rest_stays_as_it_was_written() {
        let line = Bytes::from_static(
            br#"{"z":1.50,"id" : 12345678901234567890123,"method":"m","params":{"_meta":{"progressToken":"p"}}}"#,
        );
        let read = Envelope::read(&line).unwrap();
        let parts = [(read.id.unwrap(), "\"n\""), (read.progress_token().unwrap(), "2")];
        let expect = r#"{"z":1.50,"id" : "n","method":"m","params":{"_meta":{"progressToken":2}}}"#;
        assert_eq!(text(&with_parts(&line, &parts)), expect);
        let line = Bytes::from_static(br#"{"id":1,"result":{"x":1},"jsonrpc":"2.0"}"#);
        let result = Envelope::read(&line).unwrap().result.unwrap();
        let noted = with_note(&line, result, "stale");
        assert_eq!(text(&noted), r#"{"id":1,"result":{"_meta":{"tether/note":"stale"},"x":1},"jsonrpc":"2.0"}"#);
    }

    #[test]
    fn our_own_messages_are_json() {
        let asked: Value = serde_json::from_slice(&request("t-2", "initialize", Some(r#"{"a":1}"#))).unwrap();
        assert_eq!(asked, json!({"jsonrpc": "2.0", "id": "t-2", "method": "initialize", "params": {"a": 1}}));
        let id = RawValue::from_string("\"a\\\"b\"".to_owned()).unwrap();
        let failed: Value = serde_json::from_slice(&error_response(&id, "it \"failed\"", "a\nb")).unwrap();
        assert_eq!((&failed["id"], &failed["error"]["data"]["lastLines"]), (&json!("a\"b"), &json!("a\nb")));
        let code = |line: &[u8]| serde_json::from_slice::<Value>(&refusal(line)).unwrap()["error"]["code"].clone();
        assert_eq!((code(b"hello"), code(b"[]"), code(b"{}")), (json!(-32700), json!(-32600), json!(-32600)));
    }
}
