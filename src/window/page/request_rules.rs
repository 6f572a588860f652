//! Applies the rules for requests: the browser pauses requests that match, and each is answered here.

use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use tether_base::error::Result;
use tether_base::sync::run_blocking;
use tether_cdp::network::{
    ContinueRequest, DisableFetch, EnableFetch, FailRequest, FetchHeader, FulfillRequest, RequestPattern, RequestPaused,
};

use super::page_client::{BROWSER_TIMEOUT, PageClient};
use super::page_settings::PageSettings;
use crate::vocabulary::RequestRule;
use crate::workspace::output_files::read_workspace_file;

/// The largest file that requests get, in bytes.
const MAX_MOCK: u64 = 16 << 20;
/// The longest delay.
const MAX_DELAY: Duration = Duration::from_secs(600);

/// Which requests the browser is to pause; `None`: none.
pub fn paused_requests(settings: &PageSettings) -> Option<EnableFetch> {
    let patterns: Vec<RequestPattern> =
        settings.rules().iter().map(|rule| RequestPattern { url_pattern: rule.pattern() }).collect();
    (!patterns.is_empty()).then_some(EnableFetch { patterns })
}

/// Applies the rules as they are now to all pages, frames and workers. A worker may know no rules.
pub async fn apply_rules(client: &PageClient) {
    let sessions: Vec<String> = client.state.targets().sessions.keys().cloned().collect();
    let enable = paused_requests(&client.history().settings);
    join_all(sessions.iter().map(async |session| match &enable {
        Some(enable) => drop(client.call(Some(session), enable, BROWSER_TIMEOUT).await),
        None => drop(client.call(Some(session), &DisableFetch {}, BROWSER_TIMEOUT).await),
    }))
    .await;
}

/// Answers a request that the browser has paused. Failures mean that its page is gone.
pub async fn answer_request(client: &PageClient, session: &str, paused: RequestPaused) {
    let request_id = paused.request_id.clone();
    if client.state.targets().stub_sessions.contains(session) {
        return drop(client.cdp.send(Some(session), &empty_document(request_id)).await);
    }
    let session = Some(session);
    let Some(rule) = client.history().settings.use_rule(&paused.request.url) else {
        return drop(client.cdp.send(session, &ContinueRequest { request_id }).await);
    };
    if let (Some(delay), Some(session)) = (rule.delay_ms, session) {
        let gone = client.state.wait_for_targets(|targets| targets.session_error(session));
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(delay).min(MAX_DELAY)) => {}
            _ = gone => return,
        }
    }
    let blocked = FailRequest { request_id: request_id.clone(), error_reason: "BlockedByClient" };
    let sent = if rule.block {
        client.cdp.send(session, &blocked).await
    } else if rule.is_mock() {
        match mocked_response(client.history().workspace(), &rule, &paused).await {
            Ok(response) => client.cdp.send(session, &response).await,
            Err(error) => {
                client.state.report_page_event("error", format!("{rule}: {error}"));
                client.cdp.send(session, &blocked).await
            }
        }
    } else {
        client.cdp.send(session, &ContinueRequest { request_id }).await
    };
    drop(sent);
}

/// What a page of ours gets, which stands for its origin.
fn empty_document(request_id: String) -> FulfillRequest {
    let (name, value) = ("content-type".to_owned(), "text/html".to_owned());
    FulfillRequest {
        request_id,
        response_code: 200,
        response_headers: vec![FetchHeader { name, value }],
        body: String::new(),
    }
}

async fn mocked_response(
    workspace: Option<&Path>,
    rule: &RequestRule,
    paused: &RequestPaused,
) -> Result<FulfillRequest> {
    let body = match (&rule.file, workspace) {
        (Some(file), Some(workspace)) => {
            let (workspace, file) = (workspace.to_owned(), file.clone());
            run_blocking(move || read_workspace_file(&workspace, &file, MAX_MOCK)).await?
        }
        _ => Vec::new(),
    };
    let mut response_headers = cors_headers(paused);
    let mut header = |name: &str, value: &str| {
        response_headers.push(FetchHeader { name: name.to_owned(), value: value.to_owned() });
    };
    if rule.file.is_some() || rule.content_type.is_some() {
        let by_name = || content_type(rule.file.as_deref().unwrap_or_default());
        header("content-type", rule.content_type.as_deref().unwrap_or_else(by_name));
    }
    header("cache-control", "no-store");
    // What a browser asks before a request to another origin.
    let is_preflight = paused.request.method == "OPTIONS";
    let response_code = if is_preflight { 204 } else { u32::from(rule.status.unwrap_or(200)) };
    let body = if is_preflight { String::new() } else { STANDARD.encode(body) };
    Ok(FulfillRequest { request_id: paused.request_id.clone(), response_code, response_headers, body })
}

/// Answers of a rule may be read by any origin.
fn cors_headers(paused: &RequestPaused) -> Vec<FetchHeader> {
    let headers = paused.request.headers.as_object();
    let find = |wanted: &str| headers?.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted))?.1.as_str();
    let Some(origin) = find("origin") else { return Vec::new() };
    let asked = find("access-control-request-headers").unwrap_or("*");
    let allowed = [
        ("access-control-allow-origin", origin),
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-methods", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),
        ("access-control-allow-headers", asked),
    ];
    allowed.map(|(name, value)| FetchHeader { name: name.to_owned(), value: value.to_owned() }).into()
}

/// The type of a file, by its name.
fn content_type(file: &str) -> &'static str {
    match Path::new(file).extension().and_then(|it| it.to_str()).unwrap_or_default() {
        "json" => "application/json",
        "html" | "htm" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "txt" | "md" => "text/plain; charset=utf-8",
        "svg" => "image/svg+xml",
        "xml" => "application/xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}
