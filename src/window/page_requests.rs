//! The recorded requests of the window's page in full; the rules for its requests, and what is emulated; files.
//!
//! Never relaunches.

use std::path::Path;

use tether_base::error::{Error, ErrorKind, Result};
use tether_base::sync::run_blocking;

use super::page::{RecordedRequest, RequestDetail, apply_rules, describe_initiator, emulate, load_body};
use super::window_handle::Window;
use crate::vocabulary::{PageEmulation, RequestRule};
use crate::workspace::output_files::{read_workspace_file, write_output_file};

/// The largest file of the workspace that a page gets, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// A request with all that is known of it.
pub struct InspectedRequest {
    pub request: RecordedRequest,
    pub detail: RequestDetail,
    /// Why it was made, a line each.
    pub initiator: Vec<String>,
}

/// A change of the rules for requests.
pub enum RuleChange {
    Add(RequestRule),
    /// By its number, or all.
    Remove(Option<u32>),
}

/// A request by its number: what is kept of it, its body, and where it was made.
pub async fn inspect_request(window: &Window, id: u64) -> Result<InspectedRequest> {
    window.ensure_connected().await;
    let no_request = || {
        Error::new(ErrorKind::NotFound, format!("there is no request {id}"))
            .hint("`tether network` lists the requests that are kept")
    };
    let (request, detail) = window.context.history.find_request(id).ok_or_else(no_request)?;
    let mut detail = detail.unwrap_or_default();
    let mut initiator = Vec::new();
    if let Some(page) = window.connected_page().await {
        if let Some(body) = load_body(&page, id, &detail).await {
            detail.body = body;
        }
        if let Some(it) = &detail.initiator {
            initiator = describe_initiator(&page, window.context.history.session_of_request(id).as_deref(), it).await;
        }
    }
    Ok(InspectedRequest { request, detail, initiator })
}

/// The requests with what is kept of them, and the bodies that are still in the browser.
pub async fn inspect_requests(
    window: &Window,
    requests: &[RecordedRequest],
) -> Vec<(RecordedRequest, Option<RequestDetail>)> {
    let page = window.connected_page().await;
    let mut inspected = Vec::new();
    for request in requests {
        let mut detail = window.context.history.find_request(request.id).and_then(|(_, detail)| detail);
        if let (Some(page), Some(detail)) = (&page, &mut detail)
            && let Some(body) = load_body(page, request.id, detail).await
        {
            detail.body = body;
        }
        inspected.push((request.clone(), detail));
    }
    inspected
}

/// Changes the rules for requests, of the running window at once; returns all, and remarks on them.
pub async fn change_rules(window: &Window, change: Option<RuleChange>) -> Result<(Vec<RequestRule>, Vec<String>)> {
    let settings = window.context.history.settings();
    let is_temporary = matches!(&change, Some(RuleChange::Add(rule)) if !rule.keep);
    let is_changed = change.is_some();
    match change {
        Some(RuleChange::Add(rule)) => drop(settings.add_rule(rule)?),
        Some(RuleChange::Remove(id)) => settings.remove_rules(id)?,
        None => {}
    }
    let mut notes = Vec::new();
    let page = window.connected_page().await;
    match &page {
        Some(page) if is_changed => apply_rules(page).await,
        None if is_temporary => {
            notes.push("no window runs: the rule ends with the next launch, unless it is kept".into())
        }
        _ => {}
    }
    Ok((settings.rules(), notes))
}

/// Changes what is emulated, in the running window at once; returns it, and remarks on it. Errors: those of `change`, and the
/// browser does not know a value.
pub async fn change_emulation(
    window: &Window,
    change: impl FnOnce(PageEmulation) -> Result<PageEmulation>,
) -> Result<(PageEmulation, Vec<String>)> {
    let settings = window.context.history.settings();
    let page = window.connected_page().await;
    let current = settings.emulation();
    let wanted = change(current.clone())?;
    let mut notes = Vec::new();
    match page {
        _ if wanted == current => {}
        Some(page) => emulate(&page, wanted.clone()).await?,
        None => {
            settings.set_emulation(wanted.clone());
            notes.push("no window runs: it is emulated in the next one".to_owned());
        }
    }
    Ok((wanted, notes))
}

/// The content of a file of the workspace.
pub async fn read_file_of_workspace(window: &Window, file: String) -> Result<Vec<u8>> {
    let workspace = window.context.paths.workspace.clone();
    run_blocking(move || read_workspace_file(&workspace, &file, MAX_FILE)).await
}

/// Writes a file to `.devtools/files`; returns its path from the workspace.
pub async fn save_output_file(window: &Window, name: String, content: Vec<u8>) -> Result<String> {
    let workspace = window.context.paths.workspace.clone();
    run_blocking(move || write_output_file(&workspace, &name, &content)).await
}

/// Errors: it is no file of the workspace.
pub fn check_workspace_file(workspace: &Path, file: &str) -> Result<()> {
    read_workspace_file(workspace, file, MAX_FILE).map(drop)
}
