//! Headers, bodies, timing, initiator and messages of the recorded requests, within a budget of memory: bodies of the oldest
//! are dropped first, then the oldest details.
//!
//! Does no I/O.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use tether_base::clipped_text::clip_bytes;
use tether_base::clock::now_ms;
use tether_cdp::network::{Initiator, RequestWillBeSent, ResourceTiming, ResponseInfo, WebSocketFrame};

use super::RequestKey;
use crate::window::page::console::redact_and_clip;

/// The memory of all details, in bytes.
const MAX_BYTES: usize = 24 << 20;
const MAX_HEADERS: usize = 100;
const MAX_HEADER_BYTES: usize = 4096;
/// Headers of one side of a request, in bytes.
const MAX_SIDE_BYTES: usize = 32 << 10;
/// What is kept of the body of a request.
const MAX_POST_BYTES: usize = 64 << 10;
/// Messages kept of one WebSocket or event stream, and the bytes of one and of all.
const MAX_MESSAGES: usize = 500;
const MAX_MESSAGE_BYTES: usize = 4096;
const MAX_CHANNEL_BYTES: usize = 256 << 10;
/// Headers that came before their request.
const MAX_EARLY: usize = 100;
/// The code of a binary frame of a WebSocket.
const BINARY_FRAME: f64 = 2.0;

/// Headers in their order: name and value.
pub type Headers = Vec<(String, String)>;

/// Which headers of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderSide {
    Request,
    Response,
}

/// What is kept of a request beside its entry.
#[derive(Clone, Debug, Default)]
pub struct RequestDetail {
    pub request_headers: Headers,
    pub response_headers: Headers,
    /// Whether the headers are those of the network, in the order of [`HeaderSide`].
    pub(super) is_raw: [bool; 2],
    /// What was sent, cut at 64 KiB.
    pub post_data: Option<String>,
    /// Whether it sent a body that the browser did not report.
    pub has_unreported_body: bool,
    pub status_text: String,
    pub protocol: Option<String>,
    /// `address:port`
    pub remote: Option<String>,
    pub timing: Option<ResourceTiming>,
    /// When it ended, in seconds of the browser's clock.
    pub ended: Option<f64>,
    pub initiator: Option<Initiator>,
    /// Of the decoded body, in bytes.
    pub body_bytes: u64,
    pub body: RecordedBody,
    /// Of a WebSocket or an event stream, oldest first.
    pub messages: VecDeque<ChannelMessage>,
    pub dropped_messages: u64,
}

/// The body of a response.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RecordedBody {
    /// It has not arrived, or there is none.
    #[default]
    Absent,
    /// It is in the browser, and is taken from there when it is asked for.
    InBrowser,
    /// It is being taken.
    Awaited,
    /// As text, or as bytes.
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    /// It is not there; why.
    Lost(String),
}

impl RecordedBody {
    pub fn text(&self) -> Option<&str> {
        match self {
            RecordedBody::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes of a body that is here.
    pub fn content(&self) -> Option<&[u8]> {
        match self {
            RecordedBody::Text(text) => Some(text.as_bytes()),
            RecordedBody::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn bytes(&self) -> usize {
        self.content().map_or(0, <[u8]>::len)
    }
}

/// A message of a WebSocket or an event stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelMessage {
    /// Epoch ms.
    pub at: u64,
    /// `sent`, `received`, `closed`, or the name of a stream's event.
    pub kind: String,
    /// Cut at 4 KiB; base64 where it is binary.
    pub text: String,
    /// Of the whole text.
    pub bytes: usize,
    pub is_binary: bool,
}

impl ChannelMessage {
    fn new(kind: &str, text: &str, is_binary: bool) -> ChannelMessage {
        let kind = clip_bytes(kind, 100);
        ChannelMessage { at: now_ms(), kind, text: clip_bytes(text, MAX_MESSAGE_BYTES), bytes: text.len(), is_binary }
    }

    pub fn of_frame(sent: bool, frame: WebSocketFrame) -> ChannelMessage {
        let kind = if sent { "sent" } else { "received" };
        ChannelMessage::new(kind, &frame.payload_data, frame.opcode == BINARY_FRAME)
    }

    pub fn of_event(name: &str, data: &str) -> ChannelMessage {
        ChannelMessage::new(if name.is_empty() { "message" } else { name }, data, false)
    }

    pub fn closed() -> ChannelMessage {
        ChannelMessage::new("closed", "", false)
    }
}

impl RequestDetail {
    /// Of a request that begins.
    pub fn of_request(sent: &RequestWillBeSent) -> RequestDetail {
        let post_data = sent.request.post_data.as_ref().map(|text| clip_bytes(text, MAX_POST_BYTES));
        RequestDetail {
            request_headers: read_headers(&sent.request.headers),
            has_unreported_body: post_data.is_none() && sent.request.has_post_data == Some(true),
            post_data,
            initiator: sent.initiator.clone(),
            ..RequestDetail::default()
        }
    }

    fn set_headers(&mut self, side: HeaderSide, headers: Headers, is_raw: bool) {
        let (slot, was_raw) = match side {
            HeaderSide::Request => (&mut self.request_headers, &mut self.is_raw[0]),
            HeaderSide::Response => (&mut self.response_headers, &mut self.is_raw[1]),
        };
        if is_raw || !*was_raw {
            *slot = headers;
            *was_raw |= is_raw;
        }
    }

    fn is_raw(&self, side: HeaderSide) -> bool {
        self.is_raw[usize::from(side == HeaderSide::Response)]
    }

    fn bytes(&self) -> usize {
        let of = |headers: &Headers| headers.iter().map(|(name, value)| name.len() + value.len() + 48).sum::<usize>();
        let messages: usize = self.messages.iter().map(|it| it.text.len() + 80).sum();
        let frames = self.initiator.as_ref().map_or(0, |_| 1000);
        let headers = of(&self.request_headers) + of(&self.response_headers);
        let post = self.post_data.as_ref().map_or(0, String::len);
        500 + headers + messages + frames + post + self.body.bytes()
    }
}

/// The details of the recorded requests by their numbers.
#[derive(Default)]
pub struct RequestDetails {
    details: BTreeMap<u64, RequestDetail>,
    /// The request that a key means now: redirects have the key of the first.
    ids: HashMap<RequestKey, u64>,
    /// By request, for removal.
    keys: HashMap<u64, RequestKey>,
    /// Those whose body is here.
    with_body: BTreeSet<u64>,
    /// Headers of requests that are not known yet.
    early: VecDeque<(RequestKey, HeaderSide, Headers)>,
    bytes: usize,
    last_id: u64,
}

impl RequestDetails {
    /// Adds the details of a request that begins; returns its number.
    pub fn begin(&mut self, key: RequestKey, mut detail: RequestDetail) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        for side in [HeaderSide::Request, HeaderSide::Response] {
            if let Some(at) = self.early.iter().position(|(early, of, _)| *early == key && *of == side)
                && let Some((_, _, headers)) = self.early.remove(at)
            {
                detail.set_headers(side, headers, true);
            }
        }
        self.bytes += detail.bytes();
        self.details.insert(id, detail);
        self.ids.insert(key.clone(), id);
        self.keys.insert(id, key);
        self.evict();
        id
    }

    /// The details of a request, while they are kept.
    pub fn get(&self, id: u64) -> Option<&RequestDetail> {
        self.details.get(&id)
    }

    /// By which the browser knows a request.
    pub fn key(&self, id: u64) -> Option<&RequestKey> {
        self.keys.get(&id)
    }

    fn update(&mut self, id: u64, change: impl FnOnce(&mut RequestDetail)) {
        let Some(detail) = self.details.get_mut(&id) else { return };
        let before = detail.bytes();
        change(detail);
        self.bytes = self.bytes + detail.bytes() - before;
        if detail.body.content().is_some() {
            self.with_body.insert(id);
        }
        self.evict();
    }

    /// Headers as they were on the network. They may come before their request, and after the one that it follows.
    pub fn set_raw_headers(&mut self, key: &RequestKey, side: HeaderSide, headers: &Value) {
        let headers = read_headers(headers);
        let current = self.ids.get(key).copied();
        let is_open = |id: &u64| self.details.get(id).is_some_and(|detail| !detail.is_raw(side));
        match current.filter(is_open) {
            Some(id) => self.update(id, |detail| detail.set_headers(side, headers, true)),
            None => {
                self.early.push_back((key.clone(), side, headers));
                if self.early.len() > MAX_EARLY {
                    self.early.pop_front();
                }
            }
        }
    }

    /// The response of a request.
    pub fn set_response(&mut self, id: u64, response: &ResponseInfo) {
        self.update(id, |detail| {
            detail.set_headers(HeaderSide::Response, read_headers(&response.headers), false);
            detail.status_text = clip_bytes(&response.status_text, 200);
            detail.protocol = response.protocol.as_deref().map(|it| clip_bytes(it, 50));
            let port = response.remote_port.unwrap_or_default();
            detail.remote = response.remote_ip_address.as_deref().map(|it| format!("{}:{port}", clip_bytes(it, 100)));
            detail.timing.clone_from(&response.timing);
        });
    }

    /// The response of a request that is redirected.
    pub fn set_redirect(&mut self, key: &RequestKey, response: &ResponseInfo) {
        if let Some(id) = self.ids.get(key).copied() {
            self.set_response(id, response);
        }
    }

    /// When a request has ended, in seconds of the browser's clock.
    pub fn set_end(&mut self, id: u64, at: f64) {
        self.update(id, |detail| detail.ended = Some(at));
    }

    /// The size of a body that has arrived; `awaited`: it is being taken.
    pub fn set_body_size(&mut self, id: u64, bytes: u64, awaited: bool) {
        self.update(id, |detail| {
            detail.body_bytes = bytes;
            detail.body = if awaited { RecordedBody::Awaited } else { RecordedBody::InBrowser };
        });
    }

    /// A body that was taken, or is lost.
    pub fn set_body(&mut self, id: u64, body: RecordedBody) {
        self.update(id, |detail| {
            detail.body_bytes = detail.body_bytes.max(body.bytes() as u64);
            detail.body = body;
        });
    }

    /// A message of a WebSocket or an event stream.
    pub fn add_message(&mut self, key: &RequestKey, message: ChannelMessage) {
        let Some(id) = self.ids.get(key).copied() else { return };
        self.update(id, |detail| {
            detail.messages.push_back(message);
            let bytes = |messages: &VecDeque<ChannelMessage>| messages.iter().map(|it| it.text.len()).sum::<usize>();
            while detail.messages.len() > MAX_MESSAGES || bytes(&detail.messages) > MAX_CHANNEL_BYTES {
                detail.messages.pop_front();
                detail.dropped_messages += 1;
            }
        });
    }

    fn evict(&mut self) {
        while self.bytes > MAX_BYTES {
            if let Some(id) = self.with_body.pop_first() {
                let Some(detail) = self.details.get_mut(&id) else { continue };
                self.bytes -= detail.body.bytes();
                let why =
                    format!("its {} bytes are no longer kept: newer bodies have taken their place", detail.body_bytes);
                detail.body = RecordedBody::Lost(why);
            } else if let Some((id, oldest)) = self.details.pop_first() {
                self.bytes -= oldest.bytes();
                if let Some(key) = self.keys.remove(&id)
                    && self.ids.get(&key) == Some(&id)
                {
                    self.ids.remove(&key);
                }
            } else {
                return;
            }
        }
    }
}

/// The headers of CDP's object, bounded.
pub fn read_headers(headers: &Value) -> Headers {
    let mut bytes = 0;
    let all = headers.as_object().into_iter().flatten().take(MAX_HEADERS);
    let read = all.map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (clip_bytes(name, 200), redact_and_clip(value, MAX_HEADER_BYTES))
    });
    read.take_while(|(name, value)| {
        bytes += name.len() + value.len();
        bytes <= MAX_SIDE_BYTES
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(id: &str) -> RequestKey {
        (None, id.to_owned())
    }

    #[test]
    fn raw_headers_are_taken_whenever_they_come() {
        let mut details = RequestDetails::default();
        let raw = json!({"Cookie": "a=1", "x": "2"});
        details.set_raw_headers(&key("1"), HeaderSide::Request, &raw);
        let provisional = vec![("x".to_owned(), "1".to_owned())];
        let id = details.begin(key("1"), RequestDetail { request_headers: provisional, ..RequestDetail::default() });
        let expect = vec![("Cookie".to_owned(), "a=1".to_owned()), ("x".to_owned(), "2".to_owned())];
        assert_eq!(details.get(id).unwrap().request_headers, expect);
        // Those of the next hop come before it is known.
        details.set_raw_headers(&key("1"), HeaderSide::Request, &json!({"next": "hop"}));
        assert_eq!(details.get(id).unwrap().request_headers, expect);
        let next = details.begin(key("1"), RequestDetail::default());
        assert_eq!(details.get(next).unwrap().request_headers, [("next".to_owned(), "hop".to_owned())]);
    }

    #[test]
    fn the_oldest_bodies_are_dropped_first_and_it_is_said() {
        let mut details = RequestDetails::default();
        let part = MAX_BYTES / 4;
        for number in 0..6 {
            let id = details.begin(key(&number.to_string()), RequestDetail::default());
            details.set_body(id, RecordedBody::Bytes(vec![0; part].into()));
        }
        let kept: Vec<bool> = (1..=6).map(|id| details.get(id).unwrap().body.content().is_some()).collect();
        assert_eq!(kept, [false, false, false, true, true, true]);
        assert!(matches!(&details.get(1).unwrap().body, RecordedBody::Lost(why) if why.contains(&part.to_string())));
        assert!(details.bytes <= MAX_BYTES);
        for number in 0..MAX_BYTES / 500 {
            details.begin(key(&format!("n{number}")), RequestDetail::default());
        }
        assert!(details.bytes <= MAX_BYTES && details.get(1).is_none());
        assert_eq!((details.ids.len(), details.keys.len()), (details.details.len(), details.details.len()));
    }

    #[test]
    fn headers_and_messages_are_bounded() {
        let many: serde_json::Map<String, Value> =
            (0..1000).map(|number| (format!("h{number}"), json!("x".repeat(10_000)))).collect();
        let read = read_headers(&Value::Object(many));
        let bytes: usize = read.iter().map(|(name, value)| name.len() + value.len()).sum();
        assert!(read.len() > 1 && bytes <= MAX_SIDE_BYTES, "{bytes}");
        let mut details = RequestDetails::default();
        let id = details.begin(key("ws"), RequestDetail::default());
        for number in 0..MAX_MESSAGES + 7 {
            details.add_message(&key("ws"), ChannelMessage::of_event("", &number.to_string()));
        }
        let detail = details.get(id).unwrap();
        assert_eq!((detail.messages.len(), detail.dropped_messages), (MAX_MESSAGES, 7));
        details.add_message(&key("ws"), ChannelMessage::of_event("", &"é".repeat(1 << 20)));
        let last = details.get(id).unwrap().messages.back().unwrap();
        assert_eq!((last.bytes, last.text.len() <= MAX_MESSAGE_BYTES + 3), (2 << 20, true));
    }
}
