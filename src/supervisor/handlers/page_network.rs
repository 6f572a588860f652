//! The requests of the window's page: what was recorded of them, and rules for them.

use std::path::Path;

use tether_base::clipped_text::first_bytes;
use tether_base::error::{Error, Result};
use tether_base::ring::{RingEntry, RingQuery};

use super::page::{log_cursor, log_query};
use crate::api::page_network::{
    NetworkDetail, NetworkEntries, NetworkEntry, NetworkMessage, NetworkTiming, PageNetworkParams, PageRouteParams,
    RequestRules,
};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};
use crate::vocabulary::RequestRule;
use crate::window::page::{Headers, RecordedBody, RecordedRequest, write_har};
use crate::window::{InspectedRequest, RuleChange, change_rules, inspect_request, inspect_requests, save_output_file};

const MAX_PENDING: usize = 20;
/// How much of a body is shown, in bytes; and how much of one is indented.
const MAX_SHOWN_BODY: usize = 16 << 10;
const MAX_INDENTED: usize = 1 << 20;

impl OperationHandler for PageNetworkParams {
    /// With the newest of the pending requests.
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<NetworkEntries> {
        let query = log_query(self.since, self.limit, self.filter);
        if let Some(id) = self.id {
            return show_request(context, id, &log_query(None, None, None)).await;
        }
        let (extract, mut pending, generation) = context.window.network(&query).await;
        let filter = query.filter.as_deref().unwrap_or_default().to_lowercase();
        pending.retain(|request| filter.is_empty() || request.matches(&filter));
        let mut place = log_cursor(&extract, generation);
        if pending.len() > MAX_PENDING {
            place.note.get_or_insert_with(|| format!("{} requests are on their way", pending.len()));
        }
        let har = match self.har {
            Some(name) => Some(export_har(context, &name, &extract.entries).await?),
            None => None,
        };
        let newest = pending.len().saturating_sub(MAX_PENDING);
        let pending = pending.into_iter().skip(newest).map(network_entry).collect();
        let entries = extract.entries.into_iter().map(network_entry).collect();
        Ok(NetworkEntries { entries, pending, place, detail: None, har })
    }
}

async fn export_har(context: &SupervisorContext, name: &str, entries: &[RecordedRequest]) -> Result<String> {
    let requests = inspect_requests(&context.window, entries).await;
    let name = if name.ends_with(".har") { name.to_owned() } else { format!("{name}.har") };
    let text = serde_json::to_vec_pretty(&write_har(&requests))
        .map_err(|cause| Error::other("cannot write the HAR file").because(cause))?;
    save_output_file(&context.window, name, text).await
}

async fn show_request(context: &SupervisorContext, id: u64, query: &RingQuery) -> Result<NetworkEntries> {
    let (extract, _, generation) = context.window.network(query).await;
    let place = log_cursor(&extract, generation);
    let inspected = inspect_request(&context.window, id).await?;
    let entry = network_entry(inspected.request.clone());
    let detail = Some(network_detail(context, inspected).await?);
    Ok(NetworkEntries { entries: vec![entry], pending: Vec::new(), place, detail, har: None })
}

async fn network_detail(context: &SupervisorContext, it: InspectedRequest) -> Result<NetworkDetail> {
    let InspectedRequest { request, detail, initiator } = it;
    let mut shown = NetworkDetail {
        request_headers: header_lines(&detail.request_headers),
        response_headers: header_lines(&detail.response_headers),
        request_body: detail.post_data.as_deref().map(|text| indent_json(text).unwrap_or_else(|| text.to_owned())),
        body_bytes: detail.body_bytes,
        protocol: detail.protocol.clone(),
        remote: detail.remote.clone(),
        timing: detail.timing.as_ref().map(|timing| phases(timing, detail.ended)),
        initiator,
        messages: detail.messages.iter().map(network_message).collect(),
        dropped_messages: detail.dropped_messages,
        ..NetworkDetail::default()
    };
    if detail.has_unreported_body {
        shown.request_body = Some("(it sent a body that the browser did not report)".to_owned());
    }
    let text = match &detail.body {
        RecordedBody::Text(text) => Some(text.to_string()),
        // A text whose type the browser does not know.
        RecordedBody::Bytes(bytes) => String::from_utf8(bytes.to_vec()).ok().filter(|text| !text.contains('\0')),
        RecordedBody::Lost(why) => {
            shown.body_note = Some(why.clone());
            None
        }
        RecordedBody::Absent if request.duration_ms.is_none() && request.failure.is_none() => {
            shown.body_note = (request.kind != "WebSocket").then(|| "the response has not ended yet".to_owned());
            None
        }
        RecordedBody::Absent | RecordedBody::InBrowser | RecordedBody::Awaited => None,
    };
    let is_cut = match text {
        Some(text) => {
            let pretty = indent_json(&text).unwrap_or(text);
            let first = first_bytes(&pretty, MAX_SHOWN_BODY);
            let is_cut = first.len() < pretty.len();
            if is_cut {
                shown.body_note = Some(format!("cut: the first {} of {} bytes", first.len(), pretty.len()));
            }
            shown.body = Some(first.to_owned());
            is_cut
        }
        None => true,
    };
    if let Some(content) = detail.body.content().filter(|content| is_cut && !content.is_empty()) {
        let name = format!("request-{}.{}", request.id, extension(&request.mime));
        shown.body_file = Some(save_output_file(&context.window, name, content.to_vec()).await?);
    }
    Ok(shown)
}

fn header_lines(headers: &Headers) -> Vec<String> {
    headers.iter().map(|(name, value)| format!("{name}: {value}")).collect()
}

fn network_message(it: &crate::window::page::ChannelMessage) -> NetworkMessage {
    NetworkMessage { at: it.at, kind: it.kind.clone(), text: it.text.clone(), bytes: it.bytes }
}

fn phases(it: &tether_cdp::network::ResourceTiming, ended: Option<f64>) -> NetworkTiming {
    let span = |from: f64, to: f64| (from >= 0.0 && to >= 0.0).then(|| ((to - from).max(0.0) * 10.0).round() / 10.0);
    let end = ended.map(|ended| (ended - it.request_time) * 1000.0);
    NetworkTiming {
        dns_ms: span(it.dns_start, it.dns_end),
        connect_ms: span(it.connect_start, it.connect_end),
        tls_ms: span(it.ssl_start, it.ssl_end),
        send_ms: span(it.send_start, it.send_end),
        wait_ms: span(it.send_end, it.receive_headers_end),
        receive_ms: end.and_then(|end| span(it.receive_headers_end, end)),
    }
}

/// The ending of a file of this type.
fn extension(mime: &str) -> &'static str {
    match mime {
        "application/json" => "json",
        "text/html" => "html",
        "text/css" => "css",
        "text/javascript" | "application/javascript" => "js",
        "text/plain" => "txt",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        "application/wasm" => "wasm",
        "font/woff2" => "woff2",
        _ => "bin",
    }
}

/// JSON with line breaks and indents, its values as they are; `None`: it is no JSON object or array, or too long.
fn indent_json(text: &str) -> Option<String> {
    let trimmed = text.trim();
    if !trimmed.starts_with(['{', '[']) || trimmed.len() > MAX_INDENTED {
        return None;
    }
    serde_json::from_str::<serde::de::IgnoredAny>(trimmed).ok()?;
    let mut out = String::with_capacity(trimmed.len() * 2);
    let mut depth = 0_usize;
    let mut letters = trimmed.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth.min(40)));
    };
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                out.push('"');
                while let Some(inner) = letters.next() {
                    out.push(inner);
                    match inner {
                        '\\' => out.extend(letters.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '{' | '[' => {
                out.push(letter);
                while letters.next_if(|it| it.is_whitespace()).is_some() {}
                match letters.next_if(|it| matches!(it, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(letter);
            }
            ',' => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            other if other.is_whitespace() => {}
            other => out.push(other),
        }
    }
    Some(out)
}

impl OperationHandler for PageRouteParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<RequestRules> {
        let change = rule_change(self, &context.paths.workspace)?;
        let (rules, notes) = change_rules(&context.window, change).await?;
        Ok(RequestRules { rules, notes })
    }
}

/// What a call changes; `None`: it only lists the rules. Errors: it says nothing to do with the requests, or two things.
fn rule_change(it: PageRouteParams, workspace: &Path) -> Result<Option<RuleChange>> {
    let remove = match it.remove.as_deref() {
        None => None,
        Some("all") => Some(None),
        Some(id) => Some(Some(id.parse().map_err(|_| Error::usage(format!("{id:?} is no id of a rule, nor `all`")))?)),
    };
    let Some(url) = it.url else {
        return Ok(remove.map(RuleChange::Remove));
    };
    let block = it.block.unwrap_or_default();
    let wrong = |why: &str| Error::usage(format!("cannot add a rule for {url:?}")).because(why);
    if remove.is_some() {
        return Err(wrong("`remove` stands alone"));
    }
    if !block && it.file.is_none() && it.status.is_none() && it.delay_ms.is_none() {
        return Err(wrong("it says nothing to do").hint("give `block`, `file`, `status` or `delayMs`"));
    }
    if block && (it.file.is_some() || it.status.is_some()) {
        return Err(wrong("`block` and an answer exclude each other"));
    }
    if it.status.is_some_and(|status| !(100..600).contains(&status)) {
        return Err(wrong("`status` is from 100 to 599"));
    }
    if let Some(file) = &it.file {
        crate::window::check_workspace_file(workspace, file)?;
    }
    let keep = it.keep.unwrap_or_default();
    let RequestRule { id, hits, .. } = RequestRule::default();
    let (file, status, content_type, delay_ms) = (it.file, it.status, it.content_type, it.delay_ms);
    Ok(Some(RuleChange::Add(RequestRule { id, url, block, file, status, content_type, delay_ms, keep, hits })))
}

fn network_entry(it: RecordedRequest) -> NetworkEntry {
    NetworkEntry {
        id: it.id,
        at: it.at,
        method: it.method,
        url: it.url,
        status: it.status,
        kind: it.kind,
        mime_type: it.mime,
        bytes: it.bytes,
        duration_ms: it.duration_ms,
        failure: it.failure,
        from: it.from.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_and_its_values_stay() {
        let check = |text: &str, expect: Option<&str>| assert_eq!(indent_json(text).as_deref(), expect, "{text}");
        check(
            r#"{"b":1.0,"a":[1,{}],"c":"x,\"{"}"#,
            Some("{\n  \"b\": 1.0,\n  \"a\": [\n    1,\n    {}\n  ],\n  \"c\": \"x,\\\"{\"\n}"),
        );
        check(" [ ] ", Some("[]"));
        check("{broken", None);
        check("text", None);
    }

    #[test]
    fn a_rule_says_what_to_do_with_requests() {
        let change = |it: PageRouteParams| rule_change(it, Path::new("/nowhere"));
        let of = |url: &str| PageRouteParams { url: Some(url.into()), ..PageRouteParams::default() };
        assert!(matches!(change(PageRouteParams::default()), Ok(None)));
        let remove = |id: &str| change(PageRouteParams { remove: Some(id.into()), ..PageRouteParams::default() });
        assert!(matches!(remove("all"), Ok(Some(RuleChange::Remove(None)))));
        assert!(matches!(remove("3"), Ok(Some(RuleChange::Remove(Some(3))))));
        assert!(remove("x").is_err() && change(of("a")).is_err());
        let blocked = PageRouteParams { block: Some(true), ..of("a") };
        assert!(matches!(change(blocked.clone()), Ok(Some(RuleChange::Add(rule))) if rule.block));
        assert!(change(PageRouteParams { status: Some(500), ..blocked }).is_err());
        assert!(change(PageRouteParams { status: Some(99), ..of("a") }).is_err());
        assert!(change(PageRouteParams { file: Some("/etc/passwd".into()), ..of("a") }).is_err());
    }
}
