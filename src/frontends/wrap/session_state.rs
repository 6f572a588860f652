//! What the client has told its server, to be told to the next one; and the lists that it has read, to know whether they have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use super::messages::Envelope;

/// The lists of which a client is told that they have changed: method, capability, notification.
pub(super) const LISTS: [(&str, &str, &str); 3] = [
    ("tools/list", "tools", "notifications/tools/list_changed"),
    ("prompts/list", "prompts", "notifications/prompts/list_changed"),
    ("resources/list", "resources", "notifications/resources/list_changed"),
];

/// How the fields of `_meta` begin in which a client without a handshake says who it is, and which protocol it speaks.
const ENVELOPE: &str = "io.modelcontextprotocol/";

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
    /// The parameters of `initialize`.
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
        let Some(mut meta) = message.param("_meta") else { return };
        let Some(fields) = meta.as_object_mut() else { return };
        fields.retain(|name, _| name.starts_with(ENVELOPE));
        if !fields.is_empty() {
            self.envelope = Some(meta);
        }
    }

    /// Remembers what a request asks for.
    pub fn record_request(&mut self, method: &str, message: &Envelope<'_>) {
        let params = || message.params.map(|params| params.get().to_owned());
        let uri = || message.param("uri").and_then(|uri| uri.as_str().map(str::to_owned));
        match method {
            "initialize" => self.initialize = Some(params().unwrap_or_else(|| "{}".to_owned())),
            "logging/setLevel" => self.log_level = params(),
            "resources/subscribe" => self.subscriptions.extend(uri()),
            "resources/unsubscribe" => {
                self.subscriptions.retain(|known| Some(known) != uri().as_ref());
            }
            _ => {
                if let Some((list, ..)) = LISTS.iter().find(|(known, ..)| *known == method) {
                    self.lists.entry(list).or_default().params = params();
                }
            }
        }
    }

    /// The result of `initialize`, or of `server/discover`, as the client gets it: with word of changed lists, which a restart may lead to.
    pub fn take_initialize_result(&mut self, line: &str) -> String {
        let mut message: Value = serde_json::from_str(line).unwrap_or_default();
        if let Some(capabilities) = message.pointer_mut("/result/capabilities").and_then(Value::as_object_mut) {
            for (_, capability, _) in LISTS {
                if let Some(fields) = capabilities.get_mut(capability).and_then(Value::as_object_mut) {
                    fields.insert("listChanged".to_owned(), json!(true));
                }
            }
            self.capabilities = Value::Object(capabilities.clone());
        }
        message.to_string()
    }

    /// Remembers a list that the client reads. `false`: it is as it was.
    pub fn record_list(&mut self, method: &str, result: &Value) -> bool {
        let Some((method, ..)) = LISTS.iter().find(|(known, ..)| *known == method) else { return false };
        let mut hasher = DefaultHasher::new();
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
            let message = Envelope::read(line).unwrap();
            let method = message.method.clone().unwrap();
            state.record_request(&method, &message);
        }
        assert_eq!(state.initialize.as_deref(), Some(r#"{"protocolVersion":"x"}"#));
        assert_eq!(state.log_level.as_deref(), Some(r#"{"level":"debug"}"#));
        assert_eq!(state.subscriptions.iter().collect::<Vec<_>>(), ["a:c"]);
        let answer = state.take_initialize_result(r#"{"id":1,"result":{"capabilities":{"tools":{},"logging":{}}}}"#);
        assert!(answer.contains(r#""tools":{"listChanged":true}"#) && state.capabilities.get("logging").is_some());
        assert!(state.record_list("tools/list", &json!({"tools": [1]})));
        assert!(!state.record_list("tools/list", &json!({"tools": [1]})));
        assert!(state.record_list("tools/list", &json!({"tools": [2]})));
        assert!(!state.record_list("tools/call", &json!(1)));
        assert_eq!((state.list_params("tools/list"), state.list_params("prompts/list")), (Some(None), None));
    }
}
