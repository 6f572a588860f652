//! The page as text: one line for each element that assistive technology would announce.
//!
//! ```text
//! page "Title" http://…
//! e1 button "Run" focused
//! e2 iframe "Panel"
//!  e3 heading "Inside" level=1
//! ```
//! The injected script returns the lines of its frame; here they are merged into one tree, and elements get their refs.

use std::fmt::Write;
use std::time::Duration;

use futures_util::future::join_all;
use serde::Deserialize;

use super::element_refs::{ElementHandle, stale_ref_error};
use super::frame_tree::find_frames;
use super::injected_script::call_script;
use super::page_client::PageClient;
use super::page_error::PageError;
use super::targets::{ScriptedFrame, page_line};
use crate::error::{Error, Result};

/// Deadline for the first frame; the script itself ends the traversal after 3 s.
const ROOT_TIMEOUT: Duration = Duration::from_secs(10);
/// Deadline for each further frame; slower ones are shown without content.
const FRAME_TIMEOUT: Duration = Duration::from_secs(3);
const MAX_OTHER_PAGES: usize = 10;

/// What to take a snapshot of.
#[derive(Clone, Debug)]
pub struct SnapshotRequest {
    /// The approximate maximum size of the tree.
    pub max_bytes: usize,
    /// Only this element (a ref) and its descendants.
    pub root: Option<String>,
    /// The page with this in its URL or title.
    pub page: Option<String>,
}

/// The tree as text.
#[derive(Clone, Debug)]
pub struct PageSnapshot {
    /// One line for each element, indented by depth.
    pub text: String,
    /// Whether it was cut at the maximum size.
    pub cut: bool,
}

/// What the script in a frame returns.
#[derive(Deserialize)]
struct FrameSnapshot {
    /// Depth, text, the element's number (0: none), whether it shows a frame (0 or 1).
    lines: Vec<(usize, String, u32, u8)>,
    cut: bool,
    title: String,
    url: String,
}

/// Takes a snapshot. Errors: a stale ref, a page that crashed or does not respond.
pub async fn take_snapshot(client: &PageClient, request: &SnapshotRequest) -> Result<PageSnapshot> {
    let (page, root) = match &request.root {
        None => (client.select_page(request.page.as_deref(), "cannot look at the page").await?, None),
        Some(name) => {
            let handle = client.state.resolve_ref(name)?;
            let page = client.state.targets().page_of(&handle.document.session);
            (page.ok_or_else(|| client.user_error(PageError::Closed))?, Some(handle))
        }
    };
    snapshot_page(client, &page, root.as_ref(), request).await
}

/// Takes a snapshot of this page (a session), or of an element of it.
pub async fn snapshot_page(
    client: &PageClient,
    page: &str,
    root: Option<&ElementHandle>,
    request: &SnapshotRequest,
) -> Result<PageSnapshot> {
    // Once more if frames change meanwhile.
    for is_last in [false, true] {
        let frames = find_frames(client, page).await.map_err(|error| client.user_error(error))?;
        let (start, number) = match root {
            None => (0, 0),
            Some(ElementHandle { document, number }) => {
                let start = frames.iter().position(|frame| frame.document == *document);
                (start.ok_or_else(|| removed_element_error(request))?, *number)
            }
        };
        match snapshot_frames(client, &frames, start, number, request.max_bytes).await {
            Err(error) if error.is_document_gone() && !is_last => {
                client.state.targets().invalidate_frames(Some(page));
            }
            Err(error) => return Err(client.user_error(error)),
            Ok(contents) if contents[start].is_none() => return Err(removed_element_error(request)),
            Ok(contents) => return Ok(write_snapshot(client, page, &frames, &contents, start, request)),
        }
    }
    Err(client.user_error(PageError::Closed))
}

fn removed_element_error(request: &SnapshotRequest) -> Error {
    stale_ref_error(request.root.as_deref().unwrap_or_default(), "the element was removed from the page")
}

/// The content of each frame from `start` on; `None` for those that do not respond.
async fn snapshot_frames(
    client: &PageClient,
    frames: &[ScriptedFrame],
    start: usize,
    number: u32,
    max_bytes: usize,
) -> Result<Vec<Option<FrameSnapshot>>, PageError> {
    let snapshots = frames.iter().enumerate().map(|(index, frame)| async move {
        // Parents precede their children, so nothing before `start` is below it.
        if index < start {
            return Ok(None);
        }
        let (call, timeout) = match index == start {
            true => (format!("takeSnapshot({max_bytes}, {number})"), ROOT_TIMEOUT),
            false => (format!("takeSnapshot({max_bytes}, 0)"), FRAME_TIMEOUT),
        };
        match call_script::<Option<String>>(client, &frame.document, &call, timeout).await {
            Ok(json) => Ok(json.and_then(|json| serde_json::from_str(&json).ok())),
            Err(error) if index == start => Err(error),
            Err(_) => Ok(None),
        }
    });
    join_all(snapshots).await.into_iter().collect()
}

fn write_snapshot(
    client: &PageClient,
    page: &str,
    frames: &[ScriptedFrame],
    contents: &[Option<FrameSnapshot>],
    start: usize,
    request: &SnapshotRequest,
) -> PageSnapshot {
    let max_bytes = request.max_bytes;
    let mut writer = SnapshotWriter { client, frames, contents, max_bytes, text: String::new(), cut: false };
    if let Some(top) = contents[start].as_ref().filter(|_| request.root.is_none()) {
        let url: String = top.url.chars().take(100).collect();
        let dots = if url.len() < top.url.len() { "…" } else { "" };
        let _ = writeln!(writer.text, "page {:?} {url}{dots}", top.title);
    }
    writer.write_frame(start, 0);
    let SnapshotWriter { mut text, cut, .. } = writer;
    if cut {
        let _ = writeln!(
            text,
            "… cut: more than {max_bytes} bytes, or too much to look at; a larger `max` shows more, `ref` only the part below it"
        );
    }
    write_other_pages(client, page, &mut text);
    PageSnapshot { text: text.trim_end().to_owned(), cut }
}

fn write_other_pages(client: &PageClient, page: &str, text: &mut String) {
    let targets = client.state.targets();
    let shown = targets.session(page).map(|shown| shown.target.clone()).unwrap_or_default();
    let others: Vec<_> = targets.pages().into_iter().filter(|other| other.target_id != shown).collect();
    if !others.is_empty() {
        let _ = writeln!(text, "other pages (`page`: a part of title or address):");
    }
    for other in others.iter().take(MAX_OTHER_PAGES) {
        let _ = writeln!(text, " {}", page_line(other));
    }
}

struct SnapshotWriter<'a> {
    client: &'a PageClient,
    frames: &'a [ScriptedFrame],
    contents: &'a [Option<FrameSnapshot>],
    max_bytes: usize,
    text: String,
    cut: bool,
}

impl SnapshotWriter<'_> {
    fn write_frame(&mut self, index: usize, depth: usize) {
        let Some(content) = self.contents.get(index).and_then(Option::as_ref) else { return };
        let document = &self.frames[index].document;
        for (below, text, number, shows_frame) in &content.lines {
            if self.text.len() >= self.max_bytes {
                self.cut = true;
                return;
            }
            let indent = depth + below;
            self.text.extend(std::iter::repeat_n(' ', indent));
            if *number != 0 {
                let handle = ElementHandle { document: document.clone(), number: *number };
                self.text.push_str(&self.client.state.assign_ref(&handle));
                self.text.push(' ');
            }
            self.text.push_str(text);
            let inner = (*shows_frame == 1).then(|| self.frame_shown_by(index, *number)).flatten();
            if *shows_frame == 1 && inner.is_none_or(|inner| self.contents[inner].is_none()) {
                self.text.push_str(" (does not answer)");
            }
            self.text.push('\n');
            if let Some(inner) = inner {
                self.write_frame(inner, indent + 1);
            }
        }
        self.cut |= content.cut;
    }

    /// The frame that an element shows.
    fn frame_shown_by(&self, index: usize, number: u32) -> Option<usize> {
        self.frames.iter().position(|frame| frame.owner == Some((index, number)))
    }
}
