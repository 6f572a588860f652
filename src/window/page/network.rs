//! Records the window's network requests: those in flight, and a ring of completed ones.
//!
//! A request enters the ring when it has completed, so that a reader with a cursor gets each once, with its outcome.

use std::collections::VecDeque;

use tether_base::clipped_text::first_chars;
use tether_base::clock::now_ms;
use tether_base::ring::{Ring, RingEntry, RingExtract, RingLimits, RingQuery};
use tether_cdp::CdpEvent;
use tether_cdp::events::{
    LoadingFailed, LoadingFinished, RequestWillBeSent, ResponseInfo, ResponseReceived, WebSocketCreated,
};

use super::console::redact_and_clip;

/// Capacity for completed requests.
const COMPLETED_LIMITS: RingLimits = RingLimits { entries: 2000, bytes: 1 << 20 };
/// Requests followed at the same time; beyond that the oldest are recorded as failed.
const MAX_IN_FLIGHT: usize = 500;
const MAX_URL_BYTES: usize = 1000;

/// One request, and its response as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedRequest {
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

impl RingEntry for RecordedRequest {
    fn bytes(&self) -> usize {
        self.url.len() + self.failure.as_ref().map_or(0, String::len) + self.mime.len() + 150
    }

    fn matches(&self, filter: &str) -> bool {
        self.url.to_lowercase().contains(filter)
            || self.method.eq_ignore_ascii_case(filter)
            || self.kind.eq_ignore_ascii_case(filter)
            || self.status.is_some_and(|status| status.to_string() == filter)
            || (filter == "failed" && (self.failure.is_some() || self.status.is_some_and(|status| status >= 400)))
    }
}

/// The completed requests, and those in flight.
pub struct NetworkLog {
    completed: Ring<RecordedRequest>,
    /// Oldest first.
    in_flight: VecDeque<RequestInFlight>,
    /// The URL and HTTP status of the newest script that its server failed to make, while nothing newer is known.
    failed_script: Option<(String, u16)>,
}

/// Session and request id; request ids are unique only within a target.
type RequestKey = (Option<String>, String);

struct RequestInFlight {
    key: RequestKey,
    request: RecordedRequest,
    /// Seconds of the browser's monotonic clock.
    started: f64,
}

impl Default for NetworkLog {
    fn default() -> Self {
        NetworkLog { completed: Ring::new(COMPLETED_LIMITS), in_flight: VecDeque::new(), failed_script: None }
    }
}

impl NetworkLog {
    /// The completed requests that match a query.
    pub fn read(&self, query: &RingQuery) -> RingExtract<RecordedRequest> {
        self.completed.read(query)
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

    /// Records an event of the `Network` domain; returns whether it is one.
    pub fn record_event(&mut self, event: &CdpEvent) -> bool {
        let key = |id: String| (event.session.clone(), id);
        if let Some(sent) = event.parse_as::<RequestWillBeSent>("Network.requestWillBeSent") {
            self.begin_request(key(sent.request_id.clone()), sent);
        } else if let Some(received) = event.parse_as::<ResponseReceived>("Network.responseReceived") {
            let key = key(received.request_id);
            if let Some(pending) = self.in_flight.iter_mut().find(|pending| pending.key == key) {
                apply_response(&mut pending.request, &received.response);
                pending.request.kind = received.kind.unwrap_or_default();
                if is_failed_script(&pending.request) {
                    let status = pending.request.status.unwrap_or_default();
                    self.failed_script = Some((pending.request.url.clone(), status));
                }
            }
        } else if let Some(finished) = event.parse_as::<LoadingFinished>("Network.loadingFinished") {
            let bytes = finished.encoded_data_length.max(0.0) as u64;
            self.end_request(&key(finished.request_id), finished.timestamp, |request| request.bytes = bytes);
        } else if let Some(failed) = event.parse_as::<LoadingFailed>("Network.loadingFailed") {
            let why = failed.blocked_reason.map_or(failed.error_text, |reason| format!("blocked: {reason}"));
            self.end_request(&key(failed.request_id), failed.timestamp, |request| request.failure = Some(why));
        } else if let Some(created) = event.parse_as::<WebSocketCreated>("Network.webSocketCreated") {
            let (method, kind) = ("GET".into(), "WebSocket".into());
            let url = redact_and_clip(created.url, MAX_URL_BYTES);
            self.completed.push(RecordedRequest { at: now_ms(), method, kind, url, ..RecordedRequest::default() });
        } else {
            return event.method.starts_with("Network.");
        }
        true
    }

    fn begin_request(&mut self, key: RequestKey, sent: RequestWillBeSent) {
        if let Some(response) = &sent.redirect_response {
            self.end_request(&key, sent.timestamp, |request| {
                apply_response(request, response);
                request.bytes = response.encoded_data_length.max(0.0) as u64;
            });
        }
        // Data URLs cause no network traffic.
        if sent.request.url.starts_with("data:") {
            return;
        }
        let request = RecordedRequest {
            at: (sent.wall_time * 1000.0).max(0.0) as u64,
            method: sent.request.method,
            url: redact_and_clip(sent.request.url, MAX_URL_BYTES),
            kind: sent.kind.unwrap_or_default(),
            ..RecordedRequest::default()
        };
        let started = sent.timestamp;
        match self.in_flight.iter_mut().find(|pending| pending.key == key) {
            Some(pending) => *pending = RequestInFlight { key, request, started },
            None => self.in_flight.push_back(RequestInFlight { key, request, started }),
        }
        if self.in_flight.len() > MAX_IN_FLIGHT {
            self.fail_request(0, "no longer followed: too many requests were in flight");
        }
    }

    fn end_request(&mut self, key: &RequestKey, at: f64, complete: impl FnOnce(&mut RecordedRequest)) {
        let index = self.in_flight.iter().position(|pending| pending.key == *key);
        let ended = index.and_then(|index| self.in_flight.remove(index));
        let Some(RequestInFlight { mut request, started, .. }) = ended else { return };
        request.duration_ms = Some(((at - started) * 1000.0).max(0.0) as u64);
        complete(&mut request);
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
mod tests {
    use super::*;
    use serde_json::{Value, json, value::RawValue};

    fn record(network: &mut NetworkLog, method: &str, params: Value) {
        let params = RawValue::from_string(params.to_string()).unwrap();
        assert!(network.record_event(&CdpEvent {
            session: Some("S".into()),
            method: format!("Network.{method}"),
            params
        }));
    }

    fn sent(id: &str, url: &str, extra: Value) -> Value {
        let mut params = json!({"requestId": id, "request": {"url": url, "method": "GET"}, "timestamp": 10.0,
            "wallTime": 1000.5, "type": "Fetch"});
        params.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        params
    }

    fn all(network: &NetworkLog) -> Vec<RecordedRequest> {
        network.read(&RingQuery { limit: 1000, ..RingQuery::default() }).entries
    }

    #[test]
    fn a_request_is_recorded_when_it_has_completed() {
        let mut network = NetworkLog::default();
        record(&mut network, "requestWillBeSent", sent("1", "http://x/a", json!({})));
        assert_eq!((all(&network).len(), network.in_flight().len()), (0, 1));
        let response = json!({"status": 404, "mimeType": "text/html"});
        record(&mut network, "responseReceived", json!({"requestId": "1", "type": "Fetch", "response": response}));
        record(
            &mut network,
            "loadingFinished",
            json!({"requestId": "1", "timestamp": 10.25, "encodedDataLength": 120}),
        );
        let expect = RecordedRequest {
            at: 1_000_500,
            method: "GET".into(),
            url: "http://x/a".into(),
            status: Some(404),
            kind: "Fetch".into(),
            mime: "text/html".into(),
            bytes: 120,
            duration_ms: Some(250),
            ..RecordedRequest::default()
        };
        assert_eq!((all(&network), network.in_flight().len()), (vec![expect.clone()], 0));
        for (filter, expected) in [("404", true), ("FETCH", true), ("get", true), ("failed", true), ("/b", false)] {
            assert_eq!(expect.matches(&filter.to_lowercase()), expected, "{filter}");
        }
    }

    #[test]
    fn redirects_failures_and_requests_of_ended_sessions_are_separate_entries() {
        let mut network = NetworkLog::default();
        record(&mut network, "requestWillBeSent", sent("1", "http://x/a", json!({})));
        let hop = json!({"redirectResponse": {"status": 302, "mimeType": "", "encodedDataLength": 50}});
        record(&mut network, "requestWillBeSent", sent("1", "http://x/b", hop));
        let failed = json!({"requestId": "1", "timestamp": 11.0, "errorText": "net::ERR_FAILED", "canceled": false});
        record(&mut network, "loadingFailed", failed);
        record(&mut network, "requestWillBeSent", sent("2", "http://x/c", json!({})));
        record(&mut network, "requestWillBeSent", sent("3", "data:text/plain,x", json!({})));
        network.end_session_requests("another", "not ours");
        network.end_session_requests("S", "its page or worker has ended");
        let recorded: Vec<_> = all(&network).into_iter().map(|it| (it.url, it.status, it.failure)).collect();
        let gone = Some("its page or worker has ended".to_owned());
        assert_eq!(
            recorded,
            [
                ("http://x/a".to_owned(), Some(302), None),
                ("http://x/b".to_owned(), None, Some("net::ERR_FAILED".to_owned())),
                ("http://x/c".to_owned(), None, gone)
            ]
        );
    }

    #[test]
    fn a_connection_token_is_neither_recorded_nor_found() {
        let mut network = NetworkLog::default();
        record(&mut network, "requestWillBeSent", sent("1", "http://x/file?path=a&tkn=s3cret_-Z&b=1#c", json!({})));
        record(
            &mut network,
            "requestWillBeSent",
            sent("2", "http://x/?u=%2F%3Ftkn%3Ds3cret%26tkn%3Ds3cret", json!({})),
        );
        record(&mut network, "webSocketCreated", json!({"requestId": "3", "url": "ws://x/?tkn=s3cret"}));
        network.end_session_requests("S", "its page or worker has ended");
        let urls: Vec<String> = all(&network).into_iter().map(|it| it.url).collect();
        let expect = ["ws://x/?tkn=…", "http://x/file?path=a&tkn=…&b=1#c", "http://x/?u=%2F%3Ftkn%3D…%26tkn%3D…"];
        assert_eq!(urls, expect);
    }

    #[test]
    fn a_script_that_its_server_failed_to_make_is_kept_until_it_is_forgotten() {
        let mut network = NetworkLog::default();
        for (id, kind, status) in
            [("1", "Script", 200), ("2", "Script", 500), ("3", "Fetch", 500), ("4", "Script", 404)]
        {
            record(&mut network, "requestWillBeSent", sent(id, &format!("http://x/{id}"), json!({"type": kind})));
            let response = json!({"status": status, "mimeType": "text/javascript"});
            record(&mut network, "responseReceived", json!({"requestId": id, "type": kind, "response": response}));
        }
        assert_eq!(network.failed_script(), Some(&("http://x/2".to_owned(), 500)));
        network.forget_failed_script();
        assert_eq!(network.failed_script(), None);
    }

    #[test]
    fn requests_in_flight_are_bounded() {
        let mut network = NetworkLog::default();
        for number in 0..MAX_IN_FLIGHT + 3 {
            record(&mut network, "requestWillBeSent", sent(&number.to_string(), "http://x/", json!({})));
        }
        assert_eq!((network.in_flight().len(), all(&network).len()), (MAX_IN_FLIGHT, 3));
    }
}
