//! What the client has told its server, to be told to the next one; and the lists that it has read, to know whether they have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::messages::Envelope;

/// The lists of which a client is told that they have changed: method, capability, notification.
pub(super) const LISTS: [(&str, &str, &str); 3] = [
    ("tools/list", "tools", "notifications/tools/list_changed"),
    ("prompts/list", "prompts", "notifications/prompts/list_changed"),
    ("resources/list", "resources", "notifications/resources/list_changed"),
];

/// How the fields of `_meta` begin in which a client without a handshake says who it is, and which protocol it speaks.
const ENVELOPE: &str = "io.modelcontextprotocol/";
/// More subscriptions are not replayed.
const MAX_SUBSCRIPTIONS: usize = 10_000;

/// A list that the client has read.
#[derive(Default)]
struct ReadList {
    /// Of its request: without a handshake they have the version of the protocol.
    params: Option<String>,
    /// A digest of the list.
    digest: Option<u64>,
}

/// The conversation so far, as far as a new server must know it.
#[derive(Default)]
pub(super) struct SessionState {
    /// The parameters of an `initialize` that is not answered yet.
    offered: Option<String>,
    /// The parameters of `initialize`, once it was answered.
    pub initialize: Option<String>,
    pub is_initialized: bool,
    /// Of a client without a handshake: what each of its requests says of it.
    pub envelope: Option<Value>,
    /// The parameters of `logging/setLevel`.
    pub log_level: Option<String>,
    /// The URIs of `resources/subscribe`.
    pub subscriptions: BTreeSet<String>,
    /// The capabilities that the server has declared.
    pub capabilities: Value,
    lists: BTreeMap<&'static str, ReadList>,
}

impl SessionState {
    /// Remembers what a client without a handshake says of itself.
    pub fn record_envelope(&mut self, message: &Envelope<'_>) {
        let Some(params) = message.params else { return };
        // Most have none: their parameters are not read.
        if memchr::memmem::find(params.get().as_bytes(), ENVELOPE.as_bytes()).is_none() {
            return;
        }
        let meta = message.params().meta.and_then(|meta| serde_json::from_str::<Map<String, Value>>(meta.get()).ok());
        let Some(mut fields) = meta else { return };
        fields.retain(|name, _| name.starts_with(ENVELOPE));
        if !fields.is_empty() {
            self.envelope = Some(fields.into());
        }
    }

    /// Remembers what a request asks for.
    pub fn record_request(&mut self, method: &str, message: &Envelope<'_>) {
        let params = || message.params.map(|params| params.get().to_owned());
        match method {
            "initialize" => self.offered = Some(params().unwrap_or_else(|| "{}".to_owned())),
            "logging/setLevel" => self.log_level = params(),
            "resources/subscribe" => {
                if self.subscriptions.len() < MAX_SUBSCRIPTIONS {
                    self.subscriptions.extend(message.params().uri);
                }
            }
            "resources/unsubscribe" => {
                let unsubscribed = message.params().uri;
                self.subscriptions.retain(|uri| unsubscribed.as_ref() != Some(uri));
            }
            _ => {
                if let Some((list, ..)) = LISTS.iter().find(|(known, ..)| *known == method) {
                    self.lists.entry(list).or_default().params = params();
                }
            }
        }
    }

    /// The result of `initialize`, or of `server/discover`, as the client gets it: with word of changed lists, which a restart may
    /// lead to.
    pub fn take_initialize_result(&mut self, method: &str, result: &RawValue) -> String {
        if method == "initialize" {
            self.initialize = self.offered.take();
        }
        let mut result: Value = serde_json::from_str(result.get()).unwrap_or_default();
        if let Some(capabilities) = result.get_mut("capabilities").and_then(Value::as_object_mut) {
            for (_, capability, _) in LISTS {
                if let Some(fields) = capabilities.get_mut(capability).and_then(Value::as_object_mut) {
                    fields.insert("listChanged".to_owned(), json!(true));
                }
            }
            self.capabilities = Value::Object(capabilities.clone());
        }
        result.to_string()
    }

    /// Remembers a list that the client reads. `false`: it is as it was.
    pub fn record_list(&mut self, method: &str, result: &RawValue) -> bool {
        let Some((method, ..)) = LISTS.iter().find(|(known, ..)| *known == method) else { return false };
        let Ok(result) = serde_json::from_str::<Value>(result.get()) else { return false };
        let mut hasher = DefaultHasher::new();
        // With its fields in order.
        result.to_string().hash(&mut hasher);
        let digest = Some(hasher.finish());
        std::mem::replace(&mut self.lists.entry(method).or_default().digest, digest) != digest
    }

    /// The parameters with which the client has read a list. `None`: it has not.
    pub fn list_params(&self, method: &str) -> Option<Option<String>> {
        self.lists.get(method).filter(|list| list.digest.is_some()).map(|list| list.params.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(&value).unwrap()
    }

    #[test]
    fn what_a_new_server_must_know_is_remembered() {
        let mut state = SessionState::default();
        for line in [
            r#"{"id":1,"method":"initialize","params":{"protocolVersion":"x"}}"#,
            r#"{"id":2,"method":"logging/setLevel","params":{"level":"debug"}}"#,
            r#"{"id":3,"method":"resources/subscribe","params":{"uri":"a:b"}}"#,
            r#"{"id":4,"method":"resources/subscribe","params":{"uri":"a:c"}}"#,
            r#"{"id":5,"method":"resources/unsubscribe","params":{"uri":"a:b"}}"#,
        ] {
            let message = Envelope::read(line.as_bytes()).unwrap();
            let method = message.method.clone().unwrap();
            state.record_envelope(&message);
            state.record_request(&method, &message);
        }
        assert_eq!(state.log_level.as_deref(), Some(r#"{"level":"debug"}"#));
        assert_eq!(state.subscriptions.iter().collect::<Vec<_>>(), ["a:c"]);
        assert_eq!(state.initialize, None, "it is not answered yet");
        let answer =
            state.take_initialize_result("initialize", &raw(json!({"capabilities": {"tools": {}, "logging": {}}})));
        assert_eq!(state.initialize.as_deref(), Some(r#"{"protocolVersion":"x"}"#));
        assert!(answer.contains(r#""tools":{"listChanged":true}"#) && state.capabilities.get("logging").is_some());
        assert!(state.record_list("tools/list", &raw(json!({"tools": [1]}))));
        assert!(!state.record_list("tools/list", &raw(json!({"tools": [1]}))));
        assert!(state.record_list("tools/list", &raw(json!({"tools": [2]}))));
        assert!(!state.record_list("tools/call", &raw(json!(1))));
        assert_eq!((state.list_params("tools/list"), state.list_params("prompts/list")), (Some(None), None));
        assert_eq!(state.envelope, None);
        let line =
            br#"{"id":6,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"y","z":1}}}"#;
        state.record_envelope(&Envelope::read(line).unwrap());
        assert_eq!(state.envelope, Some(json!({"io.modelcontextprotocol/protocolVersion": "y"})));
    }
}
