//! Loads the source maps of scripts, and binds the breakpoints of their sources.
//!
//! A page's map is loaded by the page itself, and only from the script's own origin.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tether_cdp::CdpError;
use tether_cdp::debugger::{CloseStream, LoadNetworkResource, LoadResourceOptions, ReadStream};
use url::Url;

use super::breakpoints::{self, report_unread_map};
use super::isolate::Isolate;
use super::isolate_host::IsolateHost;
use super::map_size::MAX_ALL_ENTRIES;
use super::scripts::LoadedScript;
use super::session::NodeSession;
use super::source_maps::{MAX_MAP, ScriptMap, decode_inline_map, decode_map};
use super::unread_maps::UnreadMap;

/// How long a page may take to load a map.
const LOAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How much all maps of a document may have, in bytes.
const MAX_PAGE_MAPS: usize = 512 << 20;
/// How much of a map is read at once, in bytes.
const PIECE: usize = 1 << 20;

/// Reads the map of a script, if it has one, and binds its breakpoints.
pub(crate) async fn load_map(session: &NodeSession, isolate: &Isolate, script: &Arc<LoadedScript>) {
    if script.needs_map() && is_to_be_read(session, isolate, script).await {
        let map = find_map(session, isolate, script).await;
        script.keep_map(map);
        breakpoints::bind_mapped(session, isolate, script).await;
    }
}

/// Reads the maps of the scripts of a package that is debugged from now on, and binds their breakpoints.
pub(crate) async fn load_package_maps(session: &NodeSession, isolate: &Isolate, package: &Path) {
    let is_of_it = |script: &LoadedScript| script.path.as_ref().is_some_and(|path| path.starts_with(package));
    for script in isolate.with_state(|state| state.scripts.select(is_of_it)) {
        load_map(session, isolate, &script).await;
    }
}

/// Whether the map of a script is the user's own; one that is not may be later.
async fn is_to_be_read(session: &NodeSession, isolate: &Isolate, script: &LoadedScript) -> bool {
    let Some(path) = script.path.as_ref().filter(|path| !session.reads_map(path)) else { return true };
    if isolate.is_web() && Url::parse(&script.url).is_ok_and(|url| session.maps.covers_url(&url)) {
        return true;
    }
    let cause = session.maps.exclusion(path).to_owned();
    report_unread_map(session, UnreadMap { script: path.display().to_string(), cause, is_foreign: true }).await;
    false
}

async fn find_map(session: &NodeSession, isolate: &Isolate, script: &Arc<LoadedScript>) -> Option<Arc<ScriptMap>> {
    if isolate.is_web()
        && let Some(url) = Url::parse(&script.url).ok().filter(|url| session.maps.covers_url(url))
    {
        let loaded = load_web_map(session, isolate, script, &url).await;
        let read = report_unread(session, &script.url, loaded).await.flatten();
        return read.map(|map| count_map(isolate, map));
    }
    let path = script.path.clone().filter(|path| session.reads_map(path))?;
    let prepared = isolate.with_state(|state| state.prepared_maps.remove(&path));
    match prepared {
        Some(map) => Some(map),
        None => read_map(session, isolate, path, script.map_address.clone()).await,
    }
}

async fn read_map(
    session: &NodeSession,
    isolate: &Isolate,
    script: PathBuf,
    address: String,
) -> Option<Arc<ScriptMap>> {
    let (maps, path, most) = (session.maps.clone(), script.clone(), entries_left(isolate));
    let read = tokio::task::spawn_blocking(move || maps.read_map(&path, &address, most)).await;
    let read = read.unwrap_or_else(|cause| Err(cause.to_string()));
    let read = report_unread(session, &script.display().to_string(), read).await;
    read.map(|map| count_map(isolate, map))
}

async fn report_unread<T>(session: &NodeSession, script: &str, read: Result<T, String>) -> Option<T> {
    match read {
        Ok(map) => Some(map),
        Err(cause) => {
            let printed = format!("cannot read the source map of {script}: {cause}\n");
            if report_unread_map(session, UnreadMap { script: script.to_owned(), cause, is_foreign: false }).await {
                session.print("console", &printed).await;
            }
            None
        }
    }
}

/// `None`: it is of another origin.
async fn load_web_map(
    session: &NodeSession,
    isolate: &Isolate,
    script: &LoadedScript,
    url: &Url,
) -> Result<Option<ScriptMap>, String> {
    let address = script.map_address.clone();
    let (text, base) = if address.starts_with("data:") {
        (None, url.clone())
    } else {
        let at = url.join(&address).map_err(|cause| format!("{address}: {cause}"))?;
        if at.origin() != url.origin() {
            return Ok(None);
        }
        let loaded = tokio::time::timeout(LOAD_TIMEOUT, load_resource(isolate, at.as_str())).await;
        (Some(loaded.map_err(|_| format!("{at} was not loaded within {LOAD_TIMEOUT:?}"))??), at)
    };
    let size = text.as_ref().map_or(address.len(), Vec::len);
    let all = isolate.with_state(|state| {
        state.map_bytes = state.map_bytes.saturating_add(size);
        state.map_bytes
    });
    if all > MAX_PAGE_MAPS {
        return Err(format!("the page's maps have more than {MAX_PAGE_MAPS} bytes"));
    }
    let (maps, file, most) = (session.maps.clone(), script.path.clone(), entries_left(isolate));
    let decode = move || {
        let map = match text {
            Some(text) => decode_map(&text, most),
            None => decode_inline_map(&address, most),
        }?;
        Ok(Some(maps.web_map(map, &base, file.as_deref())))
    };
    tokio::task::spawn_blocking(decode).await.unwrap_or_else(|cause| Err(cause.to_string()))
}

/// A script is about to be compiled; the isolate waits for us. Without an address of a map, one that is loaded again, or is named
/// over a link.
pub(crate) async fn prepare_script(session: &NodeSession, isolate: &Isolate, named: PathBuf, address: String) {
    let named = session.maps.paths.local_file(named);
    let file = session.maps.real_file(named.clone());
    if !session.reads_map(&file) {
        return;
    }
    if address.is_empty() {
        return breakpoints::bind_version_ahead(session, isolate, &named).await;
    }
    if let Some(map) = read_map(session, isolate, file.clone(), address).await {
        breakpoints::bind_ahead(session, isolate, &named, &map).await;
        isolate.with_state(|state| state.prepared_maps.insert(file, map));
    }
}

/// How many entries the next map of an isolate may have.
fn entries_left(isolate: &Isolate) -> usize {
    MAX_ALL_ENTRIES.saturating_sub(isolate.with_state(|state| state.map_entries))
}

fn count_map(isolate: &Isolate, map: ScriptMap) -> Arc<ScriptMap> {
    isolate.with_state(|state| state.map_entries = state.map_entries.saturating_add(map.entries));
    Arc::new(map)
}

/// Loads what a page would load from a URL. Errors: it cannot be loaded, or is too large.
async fn load_resource(isolate: &Isolate, url: &str) -> Result<Vec<u8>, String> {
    let failed = |error: CdpError| format!("{url}: {error}");
    let frame_id = match &isolate.host {
        IsolateHost::Document { frame } => Some(frame.clone()),
        IsolateHost::Node | IsolateHost::WebWorker | IsolateHost::ServiceWorker => None,
    };
    let options = LoadResourceOptions { disable_cache: false, include_credentials: true };
    let load = LoadNetworkResource { frame_id, url: url.to_owned(), options };
    let loaded = isolate.call(&load).await.map_err(failed)?.resource;
    let handle = loaded.stream.filter(|_| loaded.success).ok_or_else(|| {
        let status = loaded.http_status_code.map(|status| format!("status {status}"));
        format!("{url}: {}", status.or(loaded.net_error_name).unwrap_or_else(|| "it was not loaded".to_owned()))
    })?;
    let read = read_stream(isolate, &handle).await;
    // Fails when the page has gone.
    let _ = isolate.call(&CloseStream { handle }).await;
    read.map_err(|cause| format!("{url}: {cause}"))
}

async fn read_stream(isolate: &Isolate, handle: &str) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    loop {
        let read = ReadStream { handle: handle.to_owned(), size: PIECE };
        let piece = isolate.call(&read).await.map_err(|error| error.to_string())?;
        if piece.base64_encoded {
            text.extend(STANDARD.decode(&piece.data).map_err(|cause| cause.to_string())?);
        } else {
            text.extend_from_slice(piece.data.as_bytes());
        }
        if text.len() as u64 > MAX_MAP {
            return Err(format!("it has more than {MAX_MAP} bytes"));
        }
        if piece.eof {
            return Ok(text);
        }
    }
}
