//! The page as text: one line for each element that assistive technology would announce.
//!
//! ```text
//! page "Title" "http://…"
//! e1 button "Run" focused
//! e2 iframe "Panel"
//!  e3 heading "Inside" level=1
//! ```
//! The injected script returns the lines of its frame; here they are merged into one tree, and elements get their refs.

use std::fmt::Write;
use std::time::Duration;

use futures_util::future::join_all;
use serde::Deserialize;
use tether_base::error::Result;

use super::element_refs::{ElementHandle, stale_ref_error};
use super::frame_tree::find_frames;
use super::injected_script::call_script;
use super::page_client::{PageClient, PageSession};
use super::page_error::PageError;
use super::targets::{ScriptedFrame, page_line, quote_page};

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
    let page = match &request.root {
        None => client.select_page(request.page.as_deref(), "cannot look at the page").await?,
        Some(name) => client.page_of_ref(name)?,
    };
    snapshot_page(&page, request).await
}

/// Takes a snapshot of this page, or of an element of it.
pub async fn snapshot_page(page: &PageSession, request: &SnapshotRequest) -> Result<PageSnapshot> {
    let state = &page.client.state;
    let root = request.root.as_deref().map(|name| state.resolve_ref(name)).transpose()?;
    let removed =
        || stale_ref_error(request.root.as_deref().unwrap_or_default(), "the element was removed from the page");
    // Once more if frames change meanwhile.
    for is_last in [false, true] {
        let frames = find_frames(page).await.map_err(|error| page.client.user_error(error))?;
        let (start, number) = match &root {
            None => (0, 0),
            Some(ElementHandle { document, number }) => {
                let start = frames.iter().position(|frame| frame.document == *document);
                (start.ok_or_else(removed)?, *number)
            }
        };
        let (contents, text, cut) = (Vec::new(), String::new(), false);
        let mut writer = SnapshotWriter { page, frames: &frames, request, contents, text, cut };
        match writer.read_frames(start, number).await {
            Err(error) if error.is_document_gone() && !is_last => state.targets().invalidate_frames(Some(&page.id)),
            Err(error) => return Err(page.client.user_error(error)),
            Ok(()) if writer.contents[start].is_none() => return Err(removed()),
            Ok(()) => return Ok(writer.write_from(start)),
        }
    }
    Err(page.client.user_error(PageError::Closed))
}

struct SnapshotWriter<'a> {
    page: &'a PageSession,
    frames: &'a [ScriptedFrame],
    request: &'a SnapshotRequest,
    /// The content of each frame; `None` for those that do not respond.
    contents: Vec<Option<FrameSnapshot>>,
    text: String,
    cut: bool,
}

impl SnapshotWriter<'_> {
    /// Reads the content of each frame from `start` on; of the first, only the element `number` (0: all of it).
    async fn read_frames(&mut self, start: usize, number: u32) -> Result<(), PageError> {
        let (client, max_bytes) = (&self.page.client, self.request.max_bytes);
        let snapshots = self.frames.iter().enumerate().map(|(index, frame)| async move {
            // Parents precede their children, so nothing before `start` is below it.
            if index < start {
                return Ok(None);
            }
            let (number, timeout) = if index == start { (number, ROOT_TIMEOUT) } else { (0, FRAME_TIMEOUT) };
            let call = format!("takeSnapshot({max_bytes}, {number})");
            match call_script::<Option<String>>(client, &frame.document, &call, timeout).await {
                Ok(json) => Ok(json.and_then(|json| serde_json::from_str(&json).ok())),
                Err(error) if index == start => Err(error),
                Err(_) => Ok(None),
            }
        });
        self.contents = join_all(snapshots).await.into_iter().collect::<Result<_, _>>()?;
        Ok(())
    }

    fn write_from(mut self, start: usize) -> PageSnapshot {
        if let Some(top) = self.contents[start].as_ref().filter(|_| self.request.root.is_none()) {
            let _ = writeln!(self.text, "page {}", quote_page(&top.title, &top.url));
        }
        self.write_frame(start, 0);
        if self.cut {
            let _ = writeln!(
                self.text,
                "… cut: more than {} bytes, or too much to look at; a larger `max` shows more, `ref` only the part below it",
                self.request.max_bytes
            );
        }
        self.write_other_pages();
        PageSnapshot { text: self.text.trim_end().to_owned(), cut: self.cut }
    }

    fn write_other_pages(&mut self) {
        let targets = self.page.client.state.targets();
        let shown = targets.sessions.get(&self.page.id).map(|shown| shown.target.clone()).unwrap_or_default();
        let others: Vec<_> = targets.pages().into_iter().filter(|other| other.target_id != shown).collect();
        if !others.is_empty() {
            self.text.push_str("other pages (`page`: an id, or a part of title or address):\n");
        }
        for other in others.iter().take(MAX_OTHER_PAGES) {
            let _ = writeln!(self.text, " {} {}", targets.tab_id(&other.target_id), page_line(other));
        }
    }

    fn write_frame(&mut self, index: usize, depth: usize) {
        let Some(content) = self.contents[index].take() else { return };
        let document = &self.frames[index].document;
        for (below, text, number, shows_frame) in &content.lines {
            if self.text.len() >= self.request.max_bytes {
                self.cut = true;
                return;
            }
            let indent = depth + below;
            self.text.extend(std::iter::repeat_n(' ', indent));
            if *number != 0 {
                let handle = ElementHandle { document: document.clone(), number: *number };
                self.text.push_str(&self.page.client.state.assign_ref(&handle));
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
