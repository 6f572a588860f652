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

use super::Page;
use super::core::{Core, Trouble};
use super::frames::FrameView;
use super::inside;
use super::refs::{Handle, lock, stale};
use super::view::page_line;
use crate::error::{Error, Result};

/// How long a frame may take to tell what is in it; the script stops looking after 3 s by itself.
const PATIENCE: Duration = Duration::from_secs(10);
const INNER_PATIENCE: Duration = Duration::from_secs(3);
const MOST_OTHER_PAGES: usize = 10;

/// What to look at.
#[derive(Clone, Debug)]
pub struct Look {
    /// About how many bytes the tree may take.
    pub max: usize,
    /// Only this element and what is in it.
    pub from: Option<String>,
    pub page: Option<String>,
}

/// The tree as text.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub text: String,
    /// Not all of it fitted in.
    pub cut: bool,
}

/// What the script in a frame tells.
#[derive(Deserialize)]
struct Seen {
    /// Depth, text, the element's number (0: none), whether it shows a frame.
    lines: Vec<(usize, String, u32, u8)>,
    cut: bool,
    title: String,
    url: String,
}

impl Page {
    /// What is on the page. Errors: a stale ref, a page that crashed or does not answer.
    pub async fn snapshot(&self, look: &Look) -> Result<Snapshot> {
        let core = &self.core;
        let (page, root) = match &look.from {
            None => (core.page(look.page.as_deref(), "cannot look at the page").await?, None),
            Some(name) => {
                let handle = core.handle(name)?;
                (core.page_of(&handle)?, Some(handle))
            }
        };
        core.snapshot_of(&page, root.as_ref(), look).await
    }
}

fn gone(look: &Look) -> Error {
    stale(look.from.as_deref().unwrap_or_default(), "the element was removed from the page")
}

impl Core {
    /// What is on this page, or in this element of it.
    pub async fn snapshot_of(&self, page: &str, root: Option<&Handle>, look: &Look) -> Result<Snapshot> {
        // A page that changes its frames in the middle is looked at once more.
        for last in [false, true] {
            let frames = self.frames(page).await.map_err(|trouble| self.explain(trouble))?;
            let (start, number) = match root {
                None => (0, 0),
                Some(Handle { place, number }) => {
                    let start = frames.iter().position(|frame| frame.place == *place);
                    (start.ok_or_else(|| gone(look))?, *number)
                }
            };
            match self.look(&frames, start, number, look.max).await {
                Err(trouble) if inside::left(&trouble) && !last => lock(&self.shared.view).changed(Some(page)),
                Err(trouble) => return Err(self.explain(trouble)),
                Ok(seen) if seen[start].is_none() => return Err(gone(look)),
                Ok(seen) => return Ok(self.draw(page, &frames, &seen, start, look)),
            }
        }
        Err(self.explain(Trouble::Gone))
    }

    /// What each frame tells; `None` of those that do not.
    async fn look(
        &self,
        frames: &[FrameView],
        start: usize,
        number: u32,
        max: usize,
    ) -> Result<Vec<Option<Seen>>, Trouble> {
        let looks = frames.iter().enumerate().map(|(index, frame)| async move {
            // Only what lies below the start is shown; parents come before children.
            if index < start {
                return Ok(None);
            }
            let (call, patience) = match index == start {
                true => (format!("look({max}, {number})"), PATIENCE),
                false => (format!("look({max}, 0)"), INNER_PATIENCE),
            };
            let told = inside::call::<Option<String>>(self, &frame.place, &call, patience).await;
            match told {
                Ok(told) => Ok(told.and_then(|told| serde_json::from_str(&told).ok())),
                Err(trouble) if index == start => Err(trouble),
                Err(_) => Ok(None),
            }
        });
        join_all(looks).await.into_iter().collect()
    }

    fn draw(
        &self,
        page: &str,
        frames: &Arc<Vec<FrameView>>,
        seen: &[Option<Seen>],
        start: usize,
        look: &Look,
    ) -> Snapshot {
        let (max, whole) = (look.max, look.from.is_none());
        let mut drawing = Drawing { core: self, frames, seen, max, text: String::new(), cut: false };
        if let Some(top) = seen[start].as_ref().filter(|_| whole) {
            let url: String = top.url.chars().take(100).collect();
            let dots = if url.len() < top.url.len() { "…" } else { "" };
            let _ = writeln!(drawing.text, "page {:?} {url}{dots}", top.title);
        }
        drawing.frame(start, 0);
        let Drawing { mut text, cut, .. } = drawing;
        if cut {
            let _ = writeln!(
                text,
                "… cut: more than {max} bytes, or too much to look at; a larger `max` shows more, `ref` only the part below it"
            );
        }
        self.other_pages(page, &mut text);
        Snapshot { text: text.trim_end().to_owned(), cut }
    }

    fn other_pages(&self, page: &str, text: &mut String) {
        let view = lock(&self.shared.view);
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
    pub fn handle(&self, name: &str) -> Result<Handle> {
        lock(&self.shared.refs).find(name, &self.shared.records.numbers)
    }

    /// The page in which an element is.
    pub fn page_of(&self, handle: &Handle) -> Result<String> {
        let page = lock(&self.shared.view).page_of(&handle.place.session);
        page.ok_or_else(|| self.explain(Trouble::Gone))
    }

    /// The ref of an element.
    pub fn name(&self, handle: &Handle) -> String {
        format!("e{}", lock(&self.shared.refs).name(handle, &self.shared.records.numbers))
    }
}

struct Drawing<'a> {
    core: &'a Core,
    frames: &'a [FrameView],
    seen: &'a [Option<Seen>],
    max: usize,
    text: String,
    cut: bool,
}

impl Drawing<'_> {
    fn frame(&mut self, index: usize, depth: usize) {
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
                self.text.push_str(&self.core.name(&Handle { place: place.clone(), number: *number }));
                self.text.push(' ');
            }
            self.text.push_str(text);
            let inner = (*shows_frame == 1).then(|| self.inner(index, *number)).flatten();
            if *shows_frame == 1 && inner.is_none_or(|inner| self.seen[inner].is_none()) {
                self.text.push_str(" (does not answer)");
            }
            self.text.push('\n');
            if let Some(inner) = inner {
                self.frame(inner, indent + 1);
            }
        }
        self.cut |= seen.cut;
    }

    /// The frame that an element shows.
    fn inner(&self, index: usize, number: u32) -> Option<usize> {
        self.frames.iter().position(|frame| frame.shown_by == Some((index, number)))
    }
}
