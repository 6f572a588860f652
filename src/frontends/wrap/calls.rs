//! The requests that are on their way: those of the client at a server, those of servers at the client, and those of the proxy.
//!
//! The ids and progress tokens of servers are replaced by ours on the way to the client: two servers may use the same.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::messages::{self, Envelope, id_key};

/// How ids of our own begin.
const OWN_ID: &str = "tether-wrap-";

/// A call of the client that a server has not answered yet.
pub(super) struct PendingCall {
    pub id: Box<RawValue>,
    pub method: String,
    /// Of the server.
    pub generation: u64,
    /// One that lasts as long as the connection: the next server takes it over.
    pub lasting: Option<Bytes>,
    pub progress: Option<CallProgress>,
    /// When it is answered by us, for the server's sake.
    pub until: Option<Instant>,
}

/// For a caller that wants to know of progress.
#[derive(Clone)]
pub(super) struct CallProgress {
    pub token: Box<RawValue>,
    /// What was reported last: it must increase.
    pub reported: f64,
}

impl CallProgress {
    /// Of a request.
    pub fn of_request(message: &Envelope<'_>) -> Option<CallProgress> {
        Some(CallProgress { token: message.progress_token()?.to_owned(), reported: 0.0 })
    }

    /// The next notification to the caller.
    pub fn report(&mut self, text: &str) -> Bytes {
        // What the server itself reports next is more, too.
        self.reported += 0.001;
        let token = self.token.get();
        let (progress, text) = (self.reported, serde_json::json!(text));
        let params = format!(r#"{{"progressToken":{token},"progress":{progress},"message":{text}}}"#);
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#).into()
    }
}

/// A request of a server that the client has not answered yet.
struct AskedRequest {
    generation: u64,
    id: Box<RawValue>,
    token: Option<Box<RawValue>>,
}

/// A request of the proxy that a server has not answered yet.
pub(super) struct OwnRequest {
    pub generation: u64,
    /// The list that it reads; `None`: its answer is not needed.
    pub list: Option<&'static str>,
}

#[derive(Default)]
pub(super) struct Calls {
    last_id: u64,
    /// By the id of the client.
    pub pending: BTreeMap<String, PendingCall>,
    /// By our id, as JSON.
    asked: BTreeMap<String, AskedRequest>,
    /// By our id, as JSON.
    pub own: BTreeMap<String, OwnRequest>,
}

impl Calls {
    /// An id of the proxy.
    pub fn next_id(&mut self) -> String {
        self.last_id += 1;
        format!("{OWN_ID}{}", self.last_id)
    }

    /// Whether a server has calls to answer that end by themselves.
    pub fn has_pending(&self, generation: u64) -> bool {
        self.pending.values().any(|call| call.generation == generation && call.lasting.is_none())
    }

    /// Takes the calls of a server that has ended, and forgets what it has asked.
    pub fn take_of(&mut self, generation: u64) -> Vec<PendingCall> {
        self.asked.retain(|_, asked| asked.generation != generation);
        self.own.retain(|_, own| own.generation != generation);
        let of = self.pending.extract_if(.., |_, call| call.generation == generation);
        of.map(|(_, call)| call).collect()
    }

    /// The request of a server, as the client gets it.
    pub fn rename_request(&mut self, generation: u64, line: &Bytes, message: &Envelope<'_>) -> Bytes {
        let Some(id) = message.id else { return line.clone() };
        let own = format!("\"{}\"", self.next_id());
        let token = message.progress_token();
        let mut parts = vec![(id, own.as_str())];
        parts.extend(token.map(|token| (token, own.as_str())));
        parts.sort_by_key(|(part, _)| part.get().as_ptr());
        let renamed = messages::with_parts(line, &parts);
        let asked = AskedRequest { generation, id: id.to_owned(), token: token.map(ToOwned::to_owned) };
        self.asked.insert(own, asked);
        renamed
    }

    /// The client's answer to a server: whose it is, as that gets it.
    pub fn take_response(&mut self, line: &Bytes, message: &Envelope<'_>) -> Option<(u64, Bytes)> {
        let id = message.id?;
        let asked = self.asked.remove(&id_key(id))?;
        Some((asked.generation, messages::with_parts(line, &[(id, asked.id.get())])))
    }

    /// The client's progress on a request of a server.
    pub fn translate_progress(&self, line: &Bytes, message: &Envelope<'_>) -> Option<(u64, Bytes)> {
        let token = message.params().progress_token?;
        let asked = self.asked.get(&id_key(token))?;
        Some((asked.generation, messages::with_parts(line, &[(token, asked.token.as_ref()?.get())])))
    }

    /// That a server no longer wants the answer to its request.
    pub fn translate_cancel(&mut self, generation: u64, line: &Bytes, message: &Envelope<'_>) -> Option<Bytes> {
        let id = message.params().request_id?;
        let is_it = |asked: &AskedRequest| asked.generation == generation && id_key(&asked.id) == id_key(id);
        let own = self.asked.iter().find(|(_, asked)| is_it(asked)).map(|(own, _)| own.clone())?;
        self.asked.remove(&own);
        Some(messages::with_parts(line, &[(id, &own)]))
    }

    /// Remembers how far a server says that a call is.
    pub fn record_progress(&mut self, message: &Envelope<'_>) {
        let params = message.params();
        let (Some(token), Some(progress)) = (params.progress_token, params.progress) else { return };
        let all = self.pending.values_mut().filter_map(|call| call.progress.as_mut());
        for known in all.filter(|known| known.token.get() == token.get()) {
            known.reported = known.reported.max(progress);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &Bytes) -> Envelope<'_> {
        Envelope::read(line).unwrap()
    }

    #[test]
    fn two_servers_may_use_the_same_ids_and_tokens() {
        let mut calls = Calls::default();
        let asks = Bytes::from_static(br#"{"method":"roots/list","params":{"_meta":{"progressToken":1}},"id":1}"#);
        let first = calls.rename_request(1, &asks, &read(&asks));
        let second = calls.rename_request(2, &asks, &read(&asks));
        assert_eq!(
            first,
            r#"{"method":"roots/list","params":{"_meta":{"progressToken":"tether-wrap-1"}},"id":"tether-wrap-1"}"#
        );
        assert_ne!(first, second);
        let progress = Bytes::from_static(
            br#"{"method":"notifications/progress","params":{"progressToken":"tether-wrap-2","progress":1}}"#,
        );
        let (whose, told) = calls.translate_progress(&progress, &read(&progress)).unwrap();
        assert_eq!(
            (whose, &told[..]),
            (2, &br#"{"method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#[..])
        );
        let answer = Bytes::from_static(br#"{"id":"tether-wrap-2","result":{}}"#);
        assert_eq!(
            calls.take_response(&answer, &read(&answer)),
            Some((2, Bytes::from_static(br#"{"id":1,"result":{}}"#)))
        );
        assert_eq!(calls.take_response(&answer, &read(&answer)), None, "it is answered once");
        let cancel = Bytes::from_static(br#"{"method":"notifications/cancelled","params":{"requestId":1}}"#);
        assert_eq!(calls.translate_cancel(2, &cancel, &read(&cancel)), None);
        let cancelled = calls.translate_cancel(1, &cancel, &read(&cancel)).unwrap();
        assert_eq!(cancelled, r#"{"method":"notifications/cancelled","params":{"requestId":"tether-wrap-1"}}"#);
    }

    #[test]
    fn our_progress_is_more_than_the_servers() {
        let mut calls = Calls::default();
        let line = Bytes::from_static(br#"{"id":1,"method":"tools/call","params":{"_meta":{"progressToken":"t"}}}"#);
        let progress = CallProgress::of_request(&read(&line));
        let id = read(&line).id.unwrap().to_owned();
        let call = PendingCall { id, method: "m".into(), generation: 1, lasting: None, progress, until: None };
        calls.pending.insert("1".into(), call);
        let line =
            Bytes::from_static(br#"{"method":"notifications/progress","params":{"progressToken":"t","progress":2}}"#);
        calls.record_progress(&read(&line));
        let told = calls.pending.get_mut("1").unwrap().progress.as_mut().unwrap().report("it \"waits\"");
        let told: serde_json::Value = serde_json::from_slice(&told).unwrap();
        assert_eq!(
            told["params"],
            serde_json::json!({"progressToken": "t", "progress": 2.001, "message": "it \"waits\""})
        );
    }
}
