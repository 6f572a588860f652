//! The places in sources from which a request was made: its call stack, over the source maps of the scripts.
//!
//! A script's map is loaded as the page would load it, from the same origin. What scripts and maps say is the page's own text.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tether_base::clipped_text::clip_bytes;
use tether_cdp::debugger::{CloseStream, LoadNetworkResource, LoadResourceOptions, ReadStream};
use tether_cdp::network::Initiator;
use tether_cdp::types::{CallFrame, StackTrace};
use tether_node::{PageMap, map_address};
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::window::page::page_client::{BROWSER_TIMEOUT, PageClient};
use crate::window::token_redaction::redact_connection_tokens;

/// Frames that are shown, and asynchronous calls that are followed.
const MAX_FRAMES: usize = 12;
const MAX_PARENTS: usize = 4;
/// Scripts whose maps are looked for, and how long that may take.
const MAX_SCRIPTS: usize = 4;
const MAPS_TIMEOUT: Duration = Duration::from_secs(3);
/// The largest script or map that is loaded, and what is read of it at once, in bytes.
const MAX_RESOURCE_BYTES: usize = 32 << 20;
const PART_BYTES: usize = 1 << 20;
const MAX_NAME_BYTES: usize = 200;

/// Why a request was made, a line each: its type, and the calls, the innermost first.
pub async fn describe_initiator(client: &PageClient, session: Option<&str>, initiator: &Initiator) -> Vec<String> {
    let frames = stack_frames(initiator.stack.as_ref());
    let maps = load_maps(client, session, &frames).await;
    let mut lines = vec![clip_bytes(&initiator.kind, 50)];
    if let Some(url) = initiator.url.as_ref().filter(|url| frames.is_empty() && !url.is_empty()) {
        let line = initiator.line_number.map(|line| format!(":{}", line as i64 + 1));
        lines.push(format!("{}{}", show_url(url), line.unwrap_or_default()));
    }
    lines.extend(frames.iter().map(|frame| frame_line(frame, maps.get(frame.call.url.as_str()))));
    lines
}

/// Calls with their places in sources, a line each.
pub async fn describe_calls(client: &PageClient, session: Option<&str>, calls: &[CallFrame]) -> Vec<String> {
    let frames: Vec<StackFrame<'_>> = calls.iter().map(|call| StackFrame { call, awaited: None }).collect();
    let maps = load_maps(client, session, &frames).await;
    frames.iter().map(|frame| frame_line(frame, maps.get(frame.call.url.as_str()))).collect()
}

/// A call, and what it was awaited by.
struct StackFrame<'a> {
    call: &'a CallFrame,
    /// Of the first frame behind an asynchronous call.
    awaited: Option<&'a str>,
}

fn stack_frames(stack: Option<&StackTrace>) -> Vec<StackFrame<'_>> {
    let mut frames = Vec::new();
    let (mut next, mut depth) = (stack, 0);
    while let Some(stack) = next.filter(|_| depth <= MAX_PARENTS) {
        let reason = (depth > 0).then(|| stack.description.as_deref().unwrap_or("async"));
        let calls = stack.call_frames.iter().enumerate();
        frames.extend(calls.map(|(index, call)| StackFrame { call, awaited: reason.filter(|_| index == 0) }));
        next = stack.parent.as_deref();
        depth += 1;
    }
    frames.truncate(MAX_FRAMES);
    frames
}

fn frame_line(frame: &StackFrame<'_>, map: Option<&PageMap>) -> String {
    let CallFrame { function_name, url, line_number, column_number, .. } = frame.call;
    let place = |line: i64, column: i64| Some((u32::try_from(line).ok()?, u32::try_from(column).ok()?));
    let source =
        map.zip(place(*line_number, *column_number)).and_then(|(map, (line, column))| map.source_place(line, column));
    let place = match source {
        Some(at) => format!("{}:{}:{}", clip_bytes(&at.source, MAX_NAME_BYTES), at.line + 1, at.column + 1),
        None => format!("{}:{}:{}", show_url(url), line_number.saturating_add(1), column_number.saturating_add(1)),
    };
    let name = if function_name.is_empty() { "(anonymous)".into() } else { clip_bytes(function_name, MAX_NAME_BYTES) };
    let awaited = frame.awaited.map(|it| format!("{}: ", clip_bytes(it, 50))).unwrap_or_default();
    format!("{awaited}{name} {place}")
}

fn show_url(url: &str) -> String {
    clip_bytes(&redact_connection_tokens(url.to_owned()), MAX_NAME_BYTES)
}

/// The maps of the first scripts of a stack, by the scripts' URLs.
async fn load_maps(client: &PageClient, session: Option<&str>, frames: &[StackFrame<'_>]) -> HashMap<String, PageMap> {
    let mut urls: Vec<&str> = Vec::new();
    for frame in frames {
        if frame.call.url.starts_with("http") && !urls.contains(&frame.call.url.as_str()) {
            urls.push(&frame.call.url);
        }
    }
    let until = Instant::now() + MAPS_TIMEOUT;
    let mut maps = HashMap::new();
    for url in urls.into_iter().take(MAX_SCRIPTS) {
        if let Ok(Some(map)) = timeout_at(until, load_map(client, session, url)).await {
            maps.insert(url.to_owned(), map);
        }
    }
    maps
}

async fn load_map(client: &PageClient, session: Option<&str>, script: &str) -> Option<PageMap> {
    let text = match client.history().script_text(script) {
        Some(text) => text,
        None => String::from_utf8(load_resource(client, session, script).await?).ok()?,
    };
    let address = map_address(&text)?.to_owned();
    if address.starts_with("data:") {
        return tokio::task::spawn_blocking(move || PageMap::decode_inline(&address).ok()).await.ok()?;
    }
    let script = Url::parse(script).ok()?;
    let at = script.join(&address).ok()?;
    // Another server would learn of the reader.
    if at.origin() != script.origin() {
        return None;
    }
    let map = load_resource(client, session, at.as_str()).await?;
    tokio::task::spawn_blocking(move || PageMap::decode(&map).ok()).await.ok()?
}

/// Loads a resource as the page would; `None`: it is not there, or too large.
async fn load_resource(client: &PageClient, session: Option<&str>, url: &str) -> Option<Vec<u8>> {
    let frame_id = session.and_then(|session| Some(client.state.targets().sessions.get(session)?.target.clone()));
    let options = LoadResourceOptions { disable_cache: false, include_credentials: true };
    let load = LoadNetworkResource { frame_id, url: url.to_owned(), options };
    let resource = client.call(session, &load, MAPS_TIMEOUT).await.ok()?.resource;
    let handle = resource.stream.filter(|_| resource.success)?;
    let mut content = Vec::new();
    let read = ReadStream { handle: handle.clone(), size: PART_BYTES };
    let is_whole = loop {
        let Ok(part) = client.call(session, &read, BROWSER_TIMEOUT).await else { break false };
        match part.base64_encoded {
            true => content.extend(STANDARD.decode(&part.data).unwrap_or_default()),
            false => content.extend_from_slice(part.data.as_bytes()),
        }
        if part.eof || content.len() > MAX_RESOURCE_BYTES {
            break part.eof;
        }
    };
    let _ = client.cdp.send(session, &CloseStream { handle }).await;
    is_whole.then_some(content)
}
