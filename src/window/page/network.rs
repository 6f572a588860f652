//! Records the window's network requests: those in flight, and a ring of completed ones.
//!
//! A request enters the ring when it has completed, so that a reader with a cursor gets each once, with its outcome. Headers,
//! bodies and messages are kept beside it, in [`request_details`].
//!
//! | file | owns |
//! |---|---|
//! | `request_details` | headers, bodies, timing, initiator and messages of the recorded requests, within a budget |
//! | `response_body` | takes bodies from the browser |
//! | `initiator_places` | the places in sources from which a request was made |
//! | `har` | the requests as an HTTP archive |

pub mod har;
pub mod initiator_places;
pub mod request_details;
pub mod response_body;

use std::collections::VecDeque;

use tether_base::clipped_text::first_chars;
use tether_base::clock::now_ms;
use tether_base::ring::{Ring, RingEntry, RingExtract, RingLimits, RingQuery};
use tether_cdp::CdpEvent;
use tether_cdp::network::{
    DataReceived, EventSourceMessage, LoadingFailed, LoadingFinished, RequestExtraInfo, RequestWillBeSent,
    ResponseExtraInfo, ResponseInfo, ResponseReceived, WebSocketClosed, WebSocketCreated, WebSocketFrameEvent,
    WebSocketHandshakeResponse,
};

use self::request_details::{ChannelMessage, HeaderSide, RequestDetail, RequestDetails};
use super::console::redact_and_clip;

/// Capacity for completed requests.
const COMPLETED_LIMITS: RingLimits = RingLimits { entries: 2000, bytes: 1 << 20 };
/// Requests followed at the same time; beyond that the oldest are recorded as failed.
const MAX_IN_FLIGHT: usize = 500;
const MAX_URL_BYTES: usize = 1000;

/// One request, and its response as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedRequest {
    /// Its number, which rises.
    pub id: u64,
    /// When it was sent, in epoch milliseconds.
    pub at: u64,
    /// The HTTP method.
    pub method: String,
    /// At most 1000 bytes.
    pub url: String,
    /// The HTTP status.
    pub status: Option<u16>,
    /// CDP's resource type: `Document`, `Script`, `Fetch`, `XHR`, …
    pub kind: String,
    /// The MIME type of the response.
    pub mime: String,
    /// Bytes received, headers included.
    pub bytes: u64,
    /// From the request to the end of the response.
    pub duration_ms: Option<u64>,
    /// Why it failed.
    pub failure: Option<String>,
    /// `cache` or `serviceWorker`, if not from the network.
    pub from: Option<&'static str>,
}

impl RecordedRequest {
    /// Whether it matches one word of a filter: a method, a type, a status (`404`, `4xx`), `failed`, or a part of the URL.
    fn matches_word(&self, word: &str) -> bool {
        let has_status = |status: u16| {
            let text = status.to_string();
            text == word || (word.len() == 3 && word.ends_with("xx") && text.get(..1) == word.get(..1))
        };
        self.url.to_lowercase().contains(word)
            || self.method.eq_ignore_ascii_case(word)
            || self.kind.eq_ignore_ascii_case(word)
            || self.status.is_some_and(has_status)
            || (word == "failed" && (self.failure.is_some() || self.status.is_some_and(|status| status >= 400)))
    }
}

impl RingEntry for RecordedRequest {
    fn bytes(&self) -> usize {
        self.url.len() + self.failure.as_ref().map_or(0, String::len) + self.mime.len() + 150
    }

    fn matches(&self, filter: &str) -> bool {
        filter.split_whitespace().all(|word| self.matches_word(word))
    }
}

/// The completed requests, and those in flight.
pub struct NetworkLog {
    completed: Ring<RecordedRequest>,
    /// Oldest first.
    in_flight: VecDeque<RequestInFlight>,
    details: RequestDetails,
    /// The URL and HTTP status of the newest script that its server failed to make, while nothing newer is known.
    failed_script: Option<(String, u16)>,
}

/// Session and request id; request ids are unique only within a target.
pub type RequestKey = (Option<String>, String);

struct RequestInFlight {
    key: RequestKey,
    request: RecordedRequest,
    /// Seconds of the browser's monotonic clock.
    started: f64,
    /// Bytes of the body so far, decoded.
    body_bytes: u64,
}

/// A body that the browser has, and that is to be taken from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyToTake {
    /// The request's number.
    pub id: u64,
    /// By which the browser knows it.
    pub key: RequestKey,
}

impl Default for NetworkLog {
    fn default() -> Self {
        NetworkLog {
            completed: Ring::new(COMPLETED_LIMITS),
            in_flight: VecDeque::new(),
            details: RequestDetails::default(),
            failed_script: None,
        }
    }
}

impl NetworkLog {
    /// The completed requests that match a query.
    pub fn read(&self, query: &RingQuery) -> RingExtract<RecordedRequest> {
        self.completed.read(query)
    }

    /// A request by its number, and what is kept of it.
    pub fn find(&self, id: u64) -> Option<(RecordedRequest, Option<RequestDetail>)> {
        let completed = self.completed.iter().rev().find(|request| request.id == id);
        let in_flight = || self.in_flight.iter().map(|pending| &pending.request).find(|request| request.id == id);
        let request = completed.or_else(in_flight)?.clone();
        Some((request, self.details.get(id).cloned()))
    }

    /// The details of the recorded requests.
    pub fn details(&mut self) -> &mut RequestDetails {
        &mut self.details
    }

    /// The text of the newest script from this URL, if it is kept.
    pub fn script_text(&self, url: &str) -> Option<String> {
        let scripts = self.completed.iter().rev().filter(|request| request.kind == "Script" && request.url == url);
        scripts.take(5).find_map(|request| self.details.get(request.id)?.body.text().map(str::to_owned))
    }

    /// The HTTP status of the newest document that a session has loaded from a URL.
    pub fn document_status(&self, session: &str, url: &str) -> Option<u16> {
        let of_session = |request: &&RecordedRequest| {
            self.details.key(request.id).is_some_and(|(of, _)| of.as_deref() == Some(session))
        };
        let in_flight = self.in_flight.iter().rev().map(|pending| &pending.request);
        let documents = in_flight.chain(self.completed.iter().rev()).filter(|request| request.kind == "Document");
        let address = |url: &str| url.split('#').next().unwrap_or_default().to_owned();
        documents.take(20).filter(of_session).find(|request| address(&request.url) == address(url))?.status
    }

    /// The newest script that its server failed to make, and the HTTP status; until [`NetworkLog::forget_failed_script`].
    pub fn failed_script(&self) -> Option<&(String, u16)> {
        self.failed_script.as_ref()
    }

    /// Forgets a failed script: another document was loaded, or its server has told something since.
    pub fn forget_failed_script(&mut self) {
        self.failed_script = None;
    }

    /// The requests in flight, oldest first.
    pub fn in_flight(&self) -> Vec<RecordedRequest> {
        let mut all: Vec<RecordedRequest> = self.in_flight.iter().map(|pending| pending.request.clone()).collect();
        all.sort_by_key(|request| request.at);
        all
    }

    /// Records an event of the `Network` domain; returns the body that has arrived with it, if that is to be taken.
    pub fn record_event(&mut self, event: &CdpEvent) -> Option<BodyToTake> {
        let key = |id: String| (event.session.clone(), id);
        if let Some(data) = event.parse_as::<DataReceived>("Network.dataReceived") {
            let key = key(data.request_id);
            if let Some(pending) = self.in_flight.iter_mut().find(|pending| pending.key == key) {
                pending.body_bytes += data.data_length.max(0) as u64;
            }
        } else if let Some(sent) = event.parse_as::<RequestWillBeSent>("Network.requestWillBeSent") {
            self.begin_request(key(sent.request_id.clone()), sent);
        } else if let Some(extra) = event.parse_as::<RequestExtraInfo>("Network.requestWillBeSentExtraInfo") {
            self.details.set_raw_headers(&key(extra.request_id), HeaderSide::Request, &extra.headers);
        } else if let Some(extra) = event.parse_as::<ResponseExtraInfo>("Network.responseReceivedExtraInfo") {
            self.details.set_raw_headers(&key(extra.request_id), HeaderSide::Response, &extra.headers);
        } else if let Some(received) = event.parse_as::<ResponseReceived>("Network.responseReceived") {
            let key = key(received.request_id);
            if let Some(pending) = self.in_flight.iter_mut().find(|pending| pending.key == key) {
                apply_response(&mut pending.request, &received.response);
                pending.request.kind = received.kind.unwrap_or_default();
                self.details.set_response(pending.request.id, &received.response);
                if is_failed_script(&pending.request) {
                    let status = pending.request.status.unwrap_or_default();
                    self.failed_script = Some((pending.request.url.clone(), status));
                }
            }
        } else if let Some(finished) = event.parse_as::<LoadingFinished>("Network.loadingFinished") {
            return self.finish_request(key(finished.request_id), finished.timestamp, finished.encoded_data_length);
        } else if let Some(failed) = event.parse_as::<LoadingFailed>("Network.loadingFailed") {
            let why = failed.blocked_reason.map_or(failed.error_text, |reason| format!("blocked: {reason}"));
            self.end_request(&key(failed.request_id), failed.timestamp, |request| request.failure = Some(why));
        } else {
            self.record_channel_event(event, key);
        }
        None
    }

    /// WebSockets and event streams.
    fn record_channel_event(&mut self, event: &CdpEvent, key: impl Fn(String) -> RequestKey) {
        if let Some(created) = event.parse_as::<WebSocketCreated>("Network.webSocketCreated") {
            let (method, kind) = ("GET".into(), "WebSocket".into());
            let url = redact_and_clip(created.url, MAX_URL_BYTES);
            let detail = RequestDetail { initiator: created.initiator, ..RequestDetail::default() };
            let id = self.details.begin(key(created.request_id), detail);
            self.completed.push(RecordedRequest { id, at: now_ms(), method, kind, url, ..RecordedRequest::default() });
        } else if let Some(it) =
            event.parse_as::<WebSocketHandshakeResponse>("Network.webSocketHandshakeResponseReceived")
        {
            let key = key(it.request_id);
            self.details.set_raw_headers(&key, HeaderSide::Response, &it.response.headers);
            self.details.set_raw_headers(&key, HeaderSide::Request, &it.response.request_headers.unwrap_or_default());
        } else if let Some(frame) = event.parse_as::<WebSocketFrameEvent>("Network.webSocketFrameReceived") {
            let message = ChannelMessage::of_frame(false, frame.response);
            self.details.add_message(&key(frame.request_id), message);
        } else if let Some(frame) = event.parse_as::<WebSocketFrameEvent>("Network.webSocketFrameSent") {
            let message = ChannelMessage::of_frame(true, frame.response);
            self.details.add_message(&key(frame.request_id), message);
        } else if let Some(closed) = event.parse_as::<WebSocketClosed>("Network.webSocketClosed") {
            self.details.add_message(&key(closed.request_id), ChannelMessage::closed());
        } else if let Some(said) = event.parse_as::<EventSourceMessage>("Network.eventSourceMessageReceived") {
            self.details.add_message(&key(said.request_id), ChannelMessage::of_event(&said.event_name, &said.data));
        }
    }

    fn begin_request(&mut self, key: RequestKey, sent: RequestWillBeSent) {
        if let Some(response) = &sent.redirect_response {
            self.end_request(&key, sent.timestamp, |request| {
                apply_response(request, response);
                request.bytes = response.encoded_data_length.max(0.0) as u64;
            });
            self.details.set_redirect(&key, response);
        }
        // Data URLs cause no network traffic.
        if sent.request.url.starts_with("data:") {
            return;
        }
        let id = self.details.begin(key.clone(), RequestDetail::of_request(&sent));
        let request = RecordedRequest {
            id,
            at: (sent.wall_time * 1000.0).max(0.0) as u64,
            method: sent.request.method,
            url: redact_and_clip(sent.request.url, MAX_URL_BYTES),
            kind: sent.kind.unwrap_or_default(),
            ..RecordedRequest::default()
        };
        let begun = RequestInFlight { key, request, started: sent.timestamp, body_bytes: 0 };
        match self.in_flight.iter_mut().find(|pending| pending.key == begun.key) {
            Some(pending) => *pending = begun,
            None => self.in_flight.push_back(begun),
        }
        if self.in_flight.len() > MAX_IN_FLIGHT {
            self.fail_request(0, "no longer followed: too many requests were in flight");
        }
    }

    fn finish_request(&mut self, key: RequestKey, at: f64, encoded: f64) -> Option<BodyToTake> {
        let index = self.in_flight.iter().position(|pending| pending.key == key)?;
        let RequestInFlight { request, body_bytes, .. } = self.in_flight.get(index)?;
        let (id, body_bytes) = (request.id, *body_bytes);
        let is_taken = response_body::is_taken_at_once(&request.kind, body_bytes);
        self.details.set_body_size(id, body_bytes, is_taken);
        self.end_request(&key, at, |request| request.bytes = encoded.max(0.0) as u64);
        is_taken.then_some(BodyToTake { id, key })
    }

    fn end_request(&mut self, key: &RequestKey, at: f64, complete: impl FnOnce(&mut RecordedRequest)) {
        let index = self.in_flight.iter().position(|pending| pending.key == *key);
        let ended = index.and_then(|index| self.in_flight.remove(index));
        let Some(RequestInFlight { mut request, started, .. }) = ended else { return };
        request.duration_ms = Some(((at - started) * 1000.0).max(0.0) as u64);
        complete(&mut request);
        self.details.set_end(request.id, at);
        self.completed.push(request);
    }

    /// Completes the requests in flight of a session with the failure `why`.
    pub fn end_session_requests(&mut self, session: &str, why: &str) {
        let of_session = |pending: &RequestInFlight| pending.key.0.as_deref() == Some(session);
        while let Some(index) = self.in_flight.iter().position(of_session) {
            self.fail_request(index, why);
        }
    }

    fn fail_request(&mut self, index: usize, why: &str) {
        if let Some(RequestInFlight { request, .. }) = self.in_flight.remove(index) {
            self.completed.push(RecordedRequest { failure: Some(why.to_owned()), ..request });
        }
    }
}

/// Whether its server failed to make a script.
fn is_failed_script(request: &RecordedRequest) -> bool {
    request.kind == "Script" && request.status.is_some_and(|status| status >= 500)
}

fn apply_response(request: &mut RecordedRequest, response: &ResponseInfo) {
    request.status = u16::try_from(response.status).ok();
    request.mime = first_chars(&response.mime_type, 100).to_owned();
    request.from = match response {
        ResponseInfo { from_service_worker: true, .. } => Some("serviceWorker"),
        ResponseInfo { from_disk_cache: true, .. } => Some("cache"),
        _ => None,
    };
}

#[cfg(test)]
mod tests;
