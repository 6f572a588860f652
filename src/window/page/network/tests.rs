//! Tests of the recorded network requests.

use super::*;
use serde_json::{Value, json, value::RawValue};

fn record(network: &mut NetworkLog, method: &str, params: Value) {
    let params = RawValue::from_string(params.to_string()).unwrap();
    let method = format!("Network.{method}");
    network.record_event(&CdpEvent { session: Some("S".into()), method, params });
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
    record(&mut network, "loadingFinished", json!({"requestId": "1", "timestamp": 10.25, "encodedDataLength": 120}));
    let expect = RecordedRequest {
        id: 1,
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
    for (filter, expected) in [
        ("404", true),
        ("FETCH", true),
        ("get", true),
        ("failed", true),
        ("/b", false),
        ("4xx /a", true),
        ("5xx", false),
        ("get /b", false),
    ] {
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
    record(&mut network, "requestWillBeSent", sent("2", "http://x/?u=%2F%3Ftkn%3Ds3cret%26tkn%3Ds3cret", json!({})));
    record(&mut network, "webSocketCreated", json!({"requestId": "3", "url": "ws://x/?tkn=s3cret"}));
    network.end_session_requests("S", "its page or worker has ended");
    let urls: Vec<String> = all(&network).into_iter().map(|it| it.url).collect();
    let expect = ["ws://x/?tkn=…", "http://x/file?path=a&tkn=…&b=1#c", "http://x/?u=%2F%3Ftkn%3D…%26tkn%3D…"];
    assert_eq!(urls, expect);
}

#[test]
fn a_script_that_its_server_failed_to_make_is_kept_until_it_is_forgotten() {
    let mut network = NetworkLog::default();
    for (id, kind, status) in [("1", "Script", 200), ("2", "Script", 500), ("3", "Fetch", 500), ("4", "Script", 404)] {
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
