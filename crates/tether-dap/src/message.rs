//! The envelope of a message: parsed once, its body kept as raw JSON; and the errors of responses.
//!
//! Lenient when parsing: a peer's `seq` is not needed except in requests, a body may be missing. Does not depend on any
//! command or event.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tether_wire::pending::find_response_id;

use super::types::DapEvent;

/// A part of a message as its sender wrote it: forwarding it loses no field.
pub type RawJson = Box<RawValue>;

/// How long the text of an error may become by what is filled in, in bytes.
pub(super) const MAX_ERROR_TEXT: usize = 64 << 10;

/// What a response contains: the body of a success, or the error.
pub(super) type ResponseResult = Result<Option<RawJson>, ErrorResponse>;

/// A received message.
#[derive(Debug)]
pub(super) enum DapMessage {
    Request { seq: i64, command: String, arguments: Option<RawJson> },
    Response { request_seq: i64, outcome: ResponseResult },
    Event(RawEvent),
}

/// An event of the peer, its body not parsed.
#[derive(Clone, Debug)]
pub struct RawEvent {
    /// As in the protocol: `stopped`, `output`, …
    pub name: String,
    /// `None` if the peer sent none.
    pub body: Option<RawJson>,
}

impl RawEvent {
    /// The body as `T`, if this is `T`'s event and it is well-formed.
    pub fn read_body<T: DapEvent>(&self) -> Option<T> {
        (self.name == T::EVENT).then(|| parse_body(self.body.as_deref()).ok())?
    }
}

/// The error of a failed request: DAP's `message` and `body.error` of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorResponse {
    /// A short form for programs: `cancelled`, `notStopped`, or free text.
    pub message: String,
    /// The full text for users.
    pub error: Option<ErrorMessage>,
}

impl ErrorResponse {
    /// An error that is only a text.
    pub fn new(text: impl Into<String>) -> ErrorResponse {
        ErrorResponse { message: text.into(), error: None }
    }
}

impl fmt::Display for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some(error) if !error.format.is_empty() => f.write_str(&error.text()),
            _ if self.message.is_empty() => f.write_str("no reason given"),
            _ => f.write_str(&self.message),
        }
    }
}

/// `Message` of the specification: a text with placeholders for variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ErrorMessage {
    pub id: i64,
    pub format: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub show_user: Option<bool>,
}

impl ErrorMessage {
    /// The format with its variables filled in, each value as it is. A placeholder without a value stays, and so do those
    /// that would make the text too long.
    fn text(&self) -> String {
        let (mut text, mut rest) = (String::new(), self.format.as_str());
        while let Some((before, after)) = rest.split_once('}') {
            let placeholder =
                before.rsplit_once('{').and_then(|(begin, name)| Some((begin, self.variables.get(name)?)));
            match placeholder {
                Some((begin, value)) if text.len().saturating_add(value.len()) <= MAX_ERROR_TEXT => {
                    text.extend([begin, value]);
                }
                _ => text.extend([before, "}"]),
            }
            rest = after;
        }
        text + rest
    }
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    seq: i64,
    #[serde(rename = "type")]
    kind: MessageKind,
    command: Option<String>,
    arguments: Option<RawJson>,
    request_seq: Option<i64>,
    success: Option<bool>,
    message: Option<String>,
    event: Option<String>,
    body: Option<RawJson>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum MessageKind {
    Request,
    Response,
    Event,
}

/// Parses an envelope. The error is the reason why it is none.
pub(super) fn parse_message(bytes: &[u8]) -> Result<DapMessage, String> {
    let envelope: Envelope = match serde_json::from_slice(bytes) {
        Ok(envelope) => envelope,
        Err(cause) => match find_response_id(bytes, "request_seq", &["event", "arguments"]) {
            // Its request would wait until its deadline.
            Some(request_seq) => {
                let error = ErrorResponse::new(format!("the response cannot be read: {cause}"));
                return Ok(DapMessage::Response { request_seq, outcome: Err(error) });
            }
            None => return Err(cause.to_string()),
        },
    };
    match envelope {
        Envelope { kind: MessageKind::Response, request_seq: Some(request_seq), .. } => {
            Ok(DapMessage::Response { request_seq, outcome: response_result(envelope) })
        }
        Envelope { kind: MessageKind::Event, event: Some(name), body, .. } => {
            Ok(DapMessage::Event(RawEvent { name, body }))
        }
        Envelope { kind: MessageKind::Request, command: Some(command), seq, arguments, .. } => {
            Ok(DapMessage::Request { seq, command, arguments })
        }
        Envelope { kind: MessageKind::Response, .. } => Err("a response without a request_seq".to_owned()),
        Envelope { kind: MessageKind::Event, .. } => Err("an event without a name".to_owned()),
        Envelope { kind: MessageKind::Request, .. } => Err("a request without a command".to_owned()),
    }
}

fn response_result(envelope: Envelope) -> ResponseResult {
    #[derive(Default, Deserialize)]
    struct Body {
        error: Option<ErrorMessage>,
        /// Where lldb-dap 19 has it.
        message: Option<String>,
    }
    if envelope.success == Some(true) {
        return Ok(envelope.body);
    }
    let body = parse_body::<Body>(envelope.body.as_deref()).unwrap_or_default();
    Err(ErrorResponse { message: envelope.message.or(body.message).unwrap_or_default(), error: body.error })
}

/// A body or arguments as `T`; a missing one is parsed as `{}`.
pub(super) fn parse_body<T: DeserializeOwned>(raw: Option<&RawValue>) -> Result<T, String> {
    let text = raw.map(RawValue::get).filter(|text| *text != "null").unwrap_or("{}");
    serde_json::from_str(text).map_err(|cause| cause.to_string())
}

/// The JSON to be sent. `None` for `null`, which the specification wants left out.
pub(super) fn to_raw_json(value: &impl Serialize) -> Result<Option<RawJson>, String> {
    let raw = to_raw_value(value).map_err(|cause| cause.to_string())?;
    Ok(Some(raw).filter(|raw| raw.get() != "null"))
}

/// A message to be sent; its sequence number is assigned when it is encoded.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum OutgoingMessage<'a> {
    Request {
        command: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<&'a RawValue>,
    },
    Response {
        request_seq: i64,
        success: bool,
        command: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        body: Option<&'a RawValue>,
    },
    Event {
        event: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        body: Option<&'a RawValue>,
    },
}

impl OutgoingMessage<'_> {
    pub(super) fn encode(&self, seq: i64) -> Bytes {
        #[derive(Serialize)]
        struct Numbered<'a> {
            seq: i64,
            #[serde(flatten)]
            message: &'a OutgoingMessage<'a>,
        }
        // Names, numbers and encoded JSON: serialization cannot fail.
        Bytes::from(serde_json::to_vec(&Numbered { seq, message: self }).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames and envelopes, and the bodies of those that are some.
    #[test]
    fn mutated_messages_are_read_without_a_panic_and_without_a_large_buffer() {
        let bodies = [
            r#"{"seq":1,"type":"event","event":"stopped","body":{"reason":"breakpoint","threadId":1,"hitBreakpointIds":[1]}}"#,
            r#"{"seq":2,"type":"event","event":"output","body":{"category":"stdout","output":"a\n"}}"#,
            r#"{"seq":3,"type":"response","request_seq":1,"success":false,"command":"next","message":"no","body":{"error":{"id":1,"format":"{a}","variables":{"a":"b"}}}}"#,
            r#"{"seq":4,"type":"request","command":"setBreakpoints","arguments":{"source":{"path":"/a"},"breakpoints":[{"line":1}]}}"#,
        ];
        // Before each, where the stream is cut.
        let framed = bodies.map(|body| format!("\u{7}Content-Length: {}\r\n\r\n{body}", body.len()));
        let samples: Vec<&[u8]> = framed.iter().map(String::as_bytes).collect();
        let mut read = 0;
        let decode = crate::fuzz_frames::decode_frames;
        tether_wire::mutation::check_mutations(&samples, 30_000, |bytes| read += decode(bytes));
        assert!(read > 50, "most mutations are no messages: {read}");
    }

    #[test]
    fn a_message_with_unknown_fields_is_parsed_and_its_body_kept_unchanged() {
        let check = |text: &str, expect: &str| {
            let parsed = match parse_message(text.as_bytes()) {
                Ok(DapMessage::Request { seq, command, arguments }) => {
                    format!("request {seq} {command} {}", arguments.map(|raw| raw.to_string()).unwrap_or_default())
                }
                Ok(DapMessage::Response { request_seq, outcome }) => match outcome {
                    Ok(body) => {
                        format!("response {request_seq} {}", body.map(|raw| raw.to_string()).unwrap_or_default())
                    }
                    Err(error) => format!("error {request_seq} {error}"),
                },
                Ok(DapMessage::Event(event)) => {
                    format!("event {} {}", event.name, event.body.map(|raw| raw.to_string()).unwrap_or_default())
                }
                Err(cause) => format!("nothing: {cause}"),
            };
            assert!(parsed.contains(expect), "{text}: {parsed}");
        };
        check(r#"{"type":"event","event":"x","body":{"b" : 1.50,"a":[]},"new":{}}"#, r#"event x {"b" : 1.50,"a":[]}"#);
        check(r#"{"body":{"z":1},"event":"x","seq":7,"type":"event"}"#, r#"event x {"z":1}"#);
        check(r#"{"seq":3,"type":"request","command":"runInTerminal","arguments":{}}"#, "request 3 runInTerminal {}");
        check(r#"{"seq":1,"type":"response","request_seq":9,"success":true,"command":"x","body":null}"#, "response 9 ");
        check(r#"{"type":"response","request_seq":9,"success":false,"message":"notStopped"}"#, "error 9 notStopped");
        check(r#"{"type":"response","request_seq":9}"#, "error 9 no reason given");
        check(r#"{"type":"response","request_seq":9,"success":"yes"}"#, "error 9 the response cannot be read: ");
        check(r#"{"type":"response","request_seq":9,"message":7}"#, "error 9 the response cannot be read: ");
        check(r#"{"type":"reply","request_seq":9}"#, "error 9 the response cannot be read: ");
        check(r#"{"type":"response","request_seq":"9","success":true}"#, "nothing: ");
        check(r#"{"type":"event","request_seq":9,"event":7}"#, "nothing: ");
        let full = r#"{"error":{"id":1,"format":"no {file}, {other}","variables":{"file":"ä.py"},"showUser":true}}"#;
        check(
            &format!(r#"{{"type":"response","request_seq":9,"success":false,"message":"m","body":{full}}}"#),
            "error 9 no ä.py, {other}",
        );
        check(r#"{"type":"response","success":true}"#, "nothing: a response without");
        check(r#"{"type":"event"}"#, "nothing: an event without");
        check(r#"{"type":"request"}"#, "nothing: a request without");
        check(r#"{"type":"letter"}"#, "nothing: unknown variant");
        check("[]", "nothing: ");
        check("{\"type\":\"event\",\"event\":\"\u{1F980}", "nothing: EOF");
    }

    #[test]
    fn the_text_of_an_error_does_not_explode() {
        let check = |format: &str, variables: &[(&str, &str)], expect: &str| {
            let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let error = ErrorMessage { format: format.to_owned(), variables, ..ErrorMessage::default() };
            assert_eq!(error.text(), expect);
        };
        check("{a}{b} {a", &[("a", "{b}{b}"), ("b", "{a}{a}")], "{b}{b}{a}{a} {a");
        check("{{a}} } {c} {}", &[("a", "1")], "{1} } {c} {}");
        let long = "x".repeat(MAX_ERROR_TEXT);
        check("{a}{a}", &[("a", &long)], &format!("{long}{{a}}"));
    }

    #[test]
    fn a_message_is_encoded_in_the_field_order_of_the_specification() {
        let arguments = RawValue::from_string(r#"{"a" : 1}"#.into()).unwrap();
        let check = |message: OutgoingMessage, expect: &str| assert_eq!(message.encode(5), expect);
        check(
            OutgoingMessage::Request { command: "x", arguments: Some(&arguments) },
            r#"{"seq":5,"type":"request","command":"x","arguments":{"a" : 1}}"#,
        );
        check(
            OutgoingMessage::Response { request_seq: 2, success: false, command: "x", message: Some("no"), body: None },
            r#"{"seq":5,"type":"response","request_seq":2,"success":false,"command":"x","message":"no"}"#,
        );
        check(OutgoingMessage::Event { event: "x", body: None }, r#"{"seq":5,"type":"event","event":"x"}"#);
    }
}
