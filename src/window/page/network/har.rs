//! The recorded requests as an HTTP archive (HAR 1.2), which DevTools and Playwright read.
//!
//! <http://www.softwareishard.com/blog/har-12-spec/>

use std::time::{Duration, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::RecordedRequest;
use super::request_details::{Headers, RecordedBody, RequestDetail};

/// The bodies in one archive, in bytes.
const MAX_BODIES: usize = 64 << 20;

/// The archive of these requests.
pub fn write_har(requests: &[(RecordedRequest, Option<RequestDetail>)]) -> Value {
    let mut left = MAX_BODIES;
    let entries: Vec<Value> = requests
        .iter()
        .map(|(request, detail)| entry(request, &detail.clone().unwrap_or_default(), &mut left))
        .collect();
    json!({"log": {
        "version": "1.2",
        "creator": {"name": "tether", "version": env!("CARGO_PKG_VERSION")},
        "pages": [],
        "entries": entries,
    }})
}

fn entry(request: &RecordedRequest, detail: &RequestDetail, left: &mut usize) -> Value {
    let time = request.duration_ms.unwrap_or_default();
    let mut written = json!({
        "startedDateTime": iso_time(request.at),
        "time": time,
        "request": {
            "method": request.method,
            "url": request.url,
            "httpVersion": http_version(detail),
            "cookies": [],
            "headers": named(&detail.request_headers),
            "queryString": query_string(&request.url),
            "headersSize": -1,
            "bodySize": detail.post_data.as_ref().map_or(0, String::len),
        },
        "response": {
            "status": request.status.unwrap_or_default(),
            "statusText": detail.status_text,
            "httpVersion": http_version(detail),
            "cookies": [],
            "headers": named(&detail.response_headers),
            "content": content(request, detail, left),
            "redirectURL": header(&detail.response_headers, "location").unwrap_or_default(),
            "headersSize": -1,
            "bodySize": request.bytes,
            "_transferSize": request.bytes,
        },
        "cache": {},
        "timings": timings(detail, time),
        "_resourceType": request.kind.to_lowercase(),
    });
    let mime = header(&detail.request_headers, "content-type").unwrap_or_default();
    if let Some(text) = &detail.post_data {
        written["request"]["postData"] = json!({"mimeType": mime, "text": text});
    }
    if let Some(failure) = &request.failure {
        written["response"]["_error"] = json!(failure);
    }
    if let Some(remote) = detail.remote.as_ref().and_then(|remote| remote.rsplit_once(':')) {
        written["serverIPAddress"] = json!(remote.0);
    }
    if request.kind == "WebSocket" {
        let messages = detail.messages.iter().filter(|it| it.kind != "closed").map(|it| {
            let kind = if it.kind == "sent" { "send" } else { "receive" };
            json!({"type": kind, "time": it.at as f64 / 1000.0, "opcode": if it.is_binary { 2 } else { 1 }, "data": it.text})
        });
        written["_webSocketMessages"] = messages.collect();
    }
    written
}

fn content(request: &RecordedRequest, detail: &RequestDetail, left: &mut usize) -> Value {
    let mut content = json!({"size": detail.body_bytes, "mimeType": request.mime});
    let Some(bytes) = detail.body.content().filter(|bytes| bytes.len() <= *left) else { return content };
    *left -= bytes.len();
    match &detail.body {
        RecordedBody::Text(text) => content["text"] = json!(&**text),
        _ => {
            content["text"] = json!(STANDARD.encode(bytes));
            content["encoding"] = json!("base64");
        }
    }
    content
}

fn timings(detail: &RequestDetail, time: u64) -> Value {
    let Some(timing) = &detail.timing else { return json!({"send": 0, "wait": time, "receive": 0}) };
    let span = |from: f64, to: f64| if from < 0.0 || to < 0.0 { -1.0 } else { to - from };
    let end = detail.ended.map_or(timing.receive_headers_end, |ended| (ended - timing.request_time) * 1000.0);
    json!({
        "dns": span(timing.dns_start, timing.dns_end),
        "connect": span(timing.connect_start, timing.connect_end),
        "ssl": span(timing.ssl_start, timing.ssl_end),
        "send": span(timing.send_start, timing.send_end).max(0.0),
        "wait": span(timing.send_end, timing.receive_headers_end).max(0.0),
        "receive": (end - timing.receive_headers_end).max(0.0),
    })
}

fn named(headers: &Headers) -> Value {
    headers.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

/// The value of a header.
pub fn header<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    headers.iter().find(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

fn query_string(url: &str) -> Value {
    let pairs = url::Url::parse(url);
    let pairs =
        pairs.iter().flat_map(|url| url.query_pairs()).map(|(name, value)| json!({"name": name, "value": value}));
    pairs.collect()
}

fn http_version(detail: &RequestDetail) -> String {
    match detail.protocol.as_deref() {
        Some("h2") => "HTTP/2.0".into(),
        Some("h3") => "HTTP/3.0".into(),
        Some(other) if other.starts_with("http/") => other.to_uppercase(),
        _ => "HTTP/1.1".into(),
    }
}

/// `2026-11-30T17:45:00.123Z`
fn iso_time(ms: u64) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms)).to_string()
}
