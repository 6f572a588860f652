//! The page as text: one line for each thing that a reader or a user of assistive technology would be told of.
//!
//! ```text
//! page "Title" http://…
//! e1 button "Run" focused
//! e2 iframe "Panel"
//!  e3 heading "Inside" level=1
//! ```
//! The lines of each frame come from the script in it; here they become one tree, and elements get their refs.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde::Deserialize;

use super::PageConnection;
use super::element_refs::{ElementHandle, lock_unpoisoned, stale_ref_error};
use super::frame_tree::ScriptedFrame;
use super::injected_script;
use super::page_client::{PageClient, PageError};
use super::targets::page_line;
use crate::error::{Error, Result};

/// How long a frame may take to tell what is in it; the script stops looking after 3 s by itself.
const PATIENCE: Duration = Duration::from_secs(10);
const INNER_PATIENCE: Duration = Duration::from_secs(3);
const MOST_OTHER_PAGES: usize = 10;

/// What to look at.
#[derive(Clone, Debug)]
pub struct SnapshotRequest {
    /// About how many bytes the tree may take.
    pub max: usize,
    /// Only this element and what is in it.
    pub root: Option<String>,
    pub page: Option<String>,
}

/// The tree as text.
#[derive(Clone, Debug)]
pub struct PageSnapshot {
    pub text: String,
    /// Not all of it fitted in.
    pub cut: bool,
}

/// What the script in a frame tells.
#[derive(Deserialize)]
struct FrameSnapshot {
    /// Depth, text, the element's number (0: none), whether it shows a frame.
    lines: Vec<(usize, String, u32, u8)>,
    cut: bool,
    title: String,
    url: String,
}

impl PageConnection {
    /// What is on the page. Errors: a stale ref, a page that crashed or does not answer.
    pub async fn snapshot(&self, look: &SnapshotRequest) -> Result<PageSnapshot> {
        let core = &self.core;
        let (page, root) = match &look.root {
            None => (core.select_page(look.page.as_deref(), "cannot look at the page").await?, None),
            Some(name) => {
                let handle = core.resolve_ref(name)?;
                (core.page_of(&handle)?, Some(handle))
            }
        };
        core.snapshot_page(&page, root.as_ref(), look).await
    }
}

fn removed_element_error(look: &SnapshotRequest) -> Error {
    stale_ref_error(look.root.as_deref().unwrap_or_default(), "the element was removed from the page")
}

impl PageClient {
    /// What is on this page, or in this element of it.
    pub async fn snapshot_page(
        &self,
        page: &str,
        root: Option<&ElementHandle>,
        look: &SnapshotRequest,
    ) -> Result<PageSnapshot> {
        // A page that changes its frames in the middle is looked at once more.
        for last in [false, true] {
            let frames = self.frames(page).await.map_err(|trouble| self.user_error(trouble))?;
            let (start, number) = match root {
                None => (0, 0),
                Some(ElementHandle { place, number }) => {
                    let start = frames.iter().position(|frame| frame.place == *place);
                    (start.ok_or_else(|| removed_element_error(look))?, *number)
                }
            };
            match self.snapshot_frames(&frames, start, number, look.max).await {
                Err(trouble) if injected_script::is_document_gone(&trouble) && !last => {
                    lock_unpoisoned(&self.shared.targets).invalidate_frames(Some(page))
                }
                Err(trouble) => return Err(self.user_error(trouble)),
                Ok(seen) if seen[start].is_none() => return Err(removed_element_error(look)),
                Ok(seen) => return Ok(self.write_snapshot(page, &frames, &seen, start, look)),
            }
        }
        Err(self.user_error(PageError::Closed))
    }

    /// What each frame tells; `None` of those that do not.
    async fn snapshot_frames(
        &self,
        frames: &[ScriptedFrame],
        start: usize,
        number: u32,
        max: usize,
    ) -> Result<Vec<Option<FrameSnapshot>>, PageError> {
        let looks = frames.iter().enumerate().map(|(index, frame)| async move {
            // Only what lies below the start is shown; parents come before children.
            if index < start {
                return Ok(None);
            }
            let (call, patience) = match index == start {
                true => (format!("look({max}, {number})"), PATIENCE),
                false => (format!("look({max}, 0)"), INNER_PATIENCE),
            };
            let told = injected_script::call_script::<Option<String>>(self, &frame.place, &call, patience).await;
            match told {
                Ok(told) => Ok(told.and_then(|told| serde_json::from_str(&told).ok())),
                Err(trouble) if index == start => Err(trouble),
                Err(_) => Ok(None),
            }
        });
        join_all(looks).await.into_iter().collect()
    }

    fn write_snapshot(
        &self,
        page: &str,
        frames: &Arc<Vec<ScriptedFrame>>,
        seen: &[Option<FrameSnapshot>],
        start: usize,
        look: &SnapshotRequest,
    ) -> PageSnapshot {
        let (max, whole) = (look.max, look.root.is_none());
        let mut drawing = SnapshotWriter { core: self, frames, seen, max, text: String::new(), cut: false };
        if let Some(top) = seen[start].as_ref().filter(|_| whole) {
            let url: String = top.url.chars().take(100).collect();
            let dots = if url.len() < top.url.len() { "…" } else { "" };
            let _ = writeln!(drawing.text, "page {:?} {url}{dots}", top.title);
        }
        drawing.write_frame(start, 0);
        let SnapshotWriter { mut text, cut, .. } = drawing;
        if cut {
            let _ = writeln!(
                text,
                "… cut: more than {max} bytes, or too much to look at; a larger `max` shows more, `ref` only the part below it"
            );
        }
        self.write_other_pages(page, &mut text);
        PageSnapshot { text: text.trim_end().to_owned(), cut }
    }

    fn write_other_pages(&self, page: &str, text: &mut String) {
        let view = lock_unpoisoned(&self.shared.targets);
        let shown = view.attached(page).map(|attached| attached.target.clone()).unwrap_or_default();
        let others: Vec<_> = view.pages().into_iter().filter(|other| other.target_id != shown).collect();
        if !others.is_empty() {
            let _ = writeln!(text, "other pages (`page`: a part of title or address):");
        }
        for other in others.iter().take(MOST_OTHER_PAGES) {
            let _ = writeln!(text, " {}", page_line(other));
        }
    }

    /// What a ref means.
    pub fn resolve_ref(&self, name: &str) -> Result<ElementHandle> {
        lock_unpoisoned(&self.shared.refs).resolve_ref(name, &self.shared.records.numbers)
    }

    /// The page in which an element is.
    pub fn page_of(&self, handle: &ElementHandle) -> Result<String> {
        let page = lock_unpoisoned(&self.shared.targets).page_of(&handle.place.session);
        page.ok_or_else(|| self.user_error(PageError::Closed))
    }

    /// The ref of an element.
    pub fn ref_name(&self, handle: &ElementHandle) -> String {
        format!("e{}", lock_unpoisoned(&self.shared.refs).assign_ref(handle, &self.shared.records.numbers))
    }
}

struct SnapshotWriter<'a> {
    core: &'a PageClient,
    frames: &'a [ScriptedFrame],
    seen: &'a [Option<FrameSnapshot>],
    max: usize,
    text: String,
    cut: bool,
}

impl SnapshotWriter<'_> {
    fn write_frame(&mut self, index: usize, depth: usize) {
        let Some(seen) = self.seen.get(index).and_then(Option::as_ref) else { return };
        let place = &self.frames[index].place;
        for (below, text, number, shows_frame) in &seen.lines {
            if self.text.len() >= self.max {
                self.cut = true;
                return;
            }
            let indent = depth + below;
            self.text.extend(std::iter::repeat_n(' ', indent));
            if *number != 0 {
                self.text.push_str(&self.core.ref_name(&ElementHandle { place: place.clone(), number: *number }));
                self.text.push(' ');
            }
            self.text.push_str(text);
            let inner = (*shows_frame == 1).then(|| self.frame_shown_by(index, *number)).flatten();
            if *shows_frame == 1 && inner.is_none_or(|inner| self.seen[inner].is_none()) {
                self.text.push_str(" (does not answer)");
            }
            self.text.push('\n');
            if let Some(inner) = inner {
                self.write_frame(inner, indent + 1);
            }
        }
        self.cut |= seen.cut;
    }

    /// The frame that an element shows.
    fn frame_shown_by(&self, index: usize, number: u32) -> Option<usize> {
        self.frames.iter().position(|frame| frame.shown_by == Some((index, number)))
    }
}
