//! State of the browser's targets: its pages, the attached sessions, their frames, and notices for the caller.
//!
//! Kept current by [`super::event_handler`], which handles each event before a later response is delivered: a caller
//! that has received a response sees here every event that preceded it. Does no I/O.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use tether_base::clipped_text::{clip_chars, first_chars};
use tether_cdp::types::{FrameInfo, TargetInfo};

use super::console::ConsoleSource;
use super::element_refs::DocumentContext;
use super::page_error::PageError;
use super::server_updates::ServerUpdates;
use crate::window::token_redaction::redact_connection_tokens;

/// Characters of a target id that are the id of its page.
const MIN_TAB_ID: usize = 4;
/// Notices kept until they are taken; older ones remain in the console.
const MAX_NOTICES: usize = 20;
/// How much of a URL a notice has, in characters.
const MAX_NOTICE_URL: usize = 200;

/// The known targets of the browser.
#[derive(Default)]
pub struct BrowserTargets {
    /// In order of discovery; the browser lists the most recently used page first.
    pages: Vec<TargetInfo>,
    /// The page that a caller has chosen, by its target id.
    pub chosen: Option<String>,
    /// Sessions of pages whose events are reported.
    pub enabled_sessions: HashSet<String>,
    /// Sessions of pages of ours, whose documents are empty.
    pub stub_sessions: HashSet<String>,
    /// The attached ones, by session id.
    pub sessions: HashMap<String, AttachedTarget>,
    /// The frames of a page by its session id; removed when one of them changes.
    pub frames: HashMap<String, Arc<Vec<ScriptedFrame>>>,
    /// Sessions that timed out while their frames were listed, and for which a retry is pending.
    pub slow_sessions: HashSet<String>,
    /// Incremented whenever frames may have changed; results for an older version are not cached.
    pub frames_version: u64,
    /// The data of the last intercepted drag.
    pub intercepted_drag: Option<serde_json::Value>,
    /// The execution contexts of documents, by session and frame id: the worlds of the pages' own scripts.
    pub main_contexts: HashMap<(String, String), i64>,
    /// Answers to the next dialogs.
    pub dialog_answers: VecDeque<DialogAnswer>,
    /// The element that a dialog for files is for, by its session, since the dialog was intercepted.
    pub file_chooser: Option<(String, i64)>,
    /// The stream of the trace that has ended.
    pub finished_trace: Option<String>,
    /// The parts of the heap snapshot that is being taken, by its session.
    pub heap_parts: Option<(String, String)>,
    /// Whether the initial list of pages is complete: a page added later is reported as opened.
    pub is_listed: bool,
    /// What the dev servers of the pages have told them.
    pub server_updates: ServerUpdates,
    notices: Vec<PageNotice>,
}

/// A target with a flat session.
#[derive(Clone, Debug)]
pub struct AttachedTarget {
    /// The target id.
    pub target: String,
    /// What its console messages are attributed to.
    pub source: ConsoleSource,
    /// The session of the target that contains it; none for a page.
    pub parent: Option<String>,
    /// Whether its renderer process has crashed.
    pub crashed: bool,
    /// Whether its main frame is loading.
    pub loading: bool,
    /// Navigations of its main frame so far.
    pub navigations: u64,
    /// How many there were when an operation was answered last; none before the first. One that has begun counts.
    pub told_navigations: Option<u64>,
    /// Navigations of its main frame within a document so far.
    pub inner_navigations: u64,
    /// The URL of its main frame.
    pub url: String,
}

/// A frame that runs the injected script.
#[derive(Clone, Debug)]
pub struct ScriptedFrame {
    /// Its document.
    pub document: DocumentContext,
    /// Its id in the browser, its name and its URL.
    pub info: FrameInfo,
    /// The element that shows it: the index of the parent frame, and the element's number there. None for the main frame.
    pub owner: Option<(usize, u32)>,
}

/// How a dialog is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialogAnswer {
    pub accept: bool,
    /// For a prompt.
    pub text: Option<String>,
}

/// Something that happened to the page and was not requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageNotice {
    /// A dialog, a crash, a download.
    Text(String),
    /// A page was opened: its target id. Title and URL become known later.
    PageOpened(String),
}

impl BrowserTargets {
    /// The pages, best match for "the window" first.
    pub fn pages(&self) -> Vec<&TargetInfo> {
        let mut pages: Vec<&TargetInfo> = self.pages.iter().collect();
        pages.sort_by_key(|page| page_rank(page));
        pages
    }

    /// The chosen page, or the best one; or the page with this id, or the best one with `part` in its URL or title.
    pub fn find_page(&self, part: Option<&str>) -> Option<TargetInfo> {
        let pages = self.pages();
        let Some(part) = part else {
            let chosen = pages.iter().find(|page| Some(&page.target_id) == self.chosen.as_ref());
            return chosen.or(pages.first()).map(|page| (*page).clone());
        };
        let has_part = |page: &&&TargetInfo| page.url.contains(part) || page.title.contains(part);
        let with_id = pages.iter().find(|page| self.tab_id(&page.target_id) == part);
        with_id.or_else(|| pages.iter().find(has_part)).map(|page| (*page).clone())
    }

    /// The id of a page for callers, such as `t3fa9`: as long as the page is open, over all connections, the beginning of its
    /// target id, as long as no other page has the same.
    pub fn tab_id(&self, target: &str) -> String {
        let beginning = |length: usize| first_chars(target, length).to_lowercase();
        let is_unique = |length: &usize| {
            self.pages
                .iter()
                .filter(|page| page.target_id != target)
                .all(|page| first_chars(&page.target_id, *length).to_lowercase() != beginning(*length))
        };
        let length = (MIN_TAB_ID..target.len()).find(is_unique).unwrap_or(target.len());
        format!("t{}", beginning(length))
    }

    /// Removes the notice that a page was opened.
    pub fn remove_opened_notice(&mut self, target: &str) {
        self.notices.retain(|notice| !matches!(notice, PageNotice::PageOpened(opened) if opened == target));
    }

    /// Adds or updates a page; other kinds of targets are ignored. Returns whether it is new.
    pub fn set_page(&mut self, info: TargetInfo) -> bool {
        if info.kind != "page" {
            return false;
        }
        let is_new = self.pages.iter().all(|page| page.target_id != info.target_id);
        if is_new {
            self.pages.push(info);
        } else {
            self.update_page(info);
        }
        is_new
    }

    /// Updates a known page; unknown ones are ignored.
    pub fn update_page(&mut self, info: TargetInfo) {
        if let Some(known) = self.pages.iter_mut().find(|page| page.target_id == info.target_id) {
            *known = info;
        }
    }

    /// Removes a page by its target id.
    pub fn remove_page(&mut self, target: &str) {
        self.pages.retain(|page| page.target_id != target);
    }

    /// Adds an attached session.
    pub fn add_session(&mut self, session: String, target: AttachedTarget) {
        self.invalidate_frames(target.parent.as_deref());
        self.sessions.insert(session, target);
    }

    /// Removes a detached session.
    pub fn remove_session(&mut self, session: &str) {
        self.invalidate_frames(Some(session));
        self.sessions.remove(session);
        self.frames.remove(session);
        self.main_contexts.retain(|(of, _), _| of != session);
        self.enabled_sessions.remove(session);
    }

    /// The session of a page, by its target id.
    pub fn session_of_page(&self, target: &str) -> Option<String> {
        let of_page = |it: &AttachedTarget| it.parent.is_none() && it.target == target;
        self.sessions.iter().find(|(_, it)| of_page(it)).map(|(session, _)| session.clone())
    }

    /// The page's own session, and those of its out-of-process frames.
    pub fn frame_sessions(&self, page: &str) -> Vec<String> {
        let of_page = |(session, it): &(&String, &AttachedTarget)| {
            it.source == ConsoleSource::Iframe && self.page_of(session).as_deref() == Some(page)
        };
        let inner = self.sessions.iter().filter(of_page).map(|(session, _)| session.clone());
        std::iter::once(page.to_owned()).chain(inner).collect()
    }

    /// The session of the page that contains a session.
    pub fn page_of(&self, session: &str) -> Option<String> {
        let mut at = session;
        // Bounded, so that a cycle of parents ends; real pages are never nested this deep.
        for _ in 0..64 {
            match &self.sessions.get(at)?.parent {
                Some(parent) => at = parent,
                None => return Some(at.to_owned()),
            }
        }
        None
    }

    /// Why a session can no longer be used; `None` while it can.
    pub fn session_error(&self, session: &str) -> Option<PageError> {
        match self.sessions.get(session) {
            None => Some(PageError::Closed),
            Some(target) if target.crashed => Some(PageError::Crashed),
            Some(_) => None,
        }
    }

    /// Drops the cached frames of the page that contains a session.
    pub fn invalidate_frames(&mut self, session: Option<&str>) {
        self.frames_version += 1;
        if let Some(page) = session.and_then(|session| self.page_of(session)) {
            self.frames.remove(&page);
        }
    }

    /// Caches the frames of a page, found when `frames_version` was `version`.
    pub fn cache_frames(&mut self, page: &str, frames: Arc<Vec<ScriptedFrame>>, version: u64) {
        if self.frames_version == version {
            self.frames.insert(page.to_owned(), frames);
        }
    }

    /// Ends the retry of a session: its page may have more frames than were found.
    pub fn remove_slow_session(&mut self, session: &str) {
        self.slow_sessions.remove(session);
        self.invalidate_frames(Some(session));
    }

    /// Adds a notice; drops the oldest beyond the limit.
    pub fn add_notice(&mut self, notice: PageNotice) {
        if self.notices.len() == MAX_NOTICES {
            self.notices.remove(0);
        }
        self.notices.push(notice);
    }

    /// Adds a notice for each page that has loaded a document since an operation was answered last: its own script, its server or a
    /// user has done that.
    pub fn notice_loads(&mut self) {
        let has_loaded = |(id, page): &(&String, &AttachedTarget)| {
            page.source == ConsoleSource::Page
                && !self.stub_sessions.contains(*id)
                && page.told_navigations.is_some_and(|told| page.navigations > told)
        };
        let describe = |(_, page): (&String, &AttachedTarget)| {
            let url = redact_connection_tokens(page.url.clone());
            let (tab, url) = (self.tab_id(&page.target), first_chars(&url, MAX_NOTICE_URL));
            format!("{tab} has loaded a document by itself since the last answer: {url:?}")
        };
        let loads: Vec<String> = self.sessions.iter().filter(has_loaded).map(describe).collect();
        loads.into_iter().for_each(|load| self.add_notice(PageNotice::Text(load)));
        self.mark_loads_told();
    }

    /// What has been loaded so far is known: tether has done it, or has told of it.
    pub fn mark_loads_told(&mut self) {
        for page in self.sessions.values_mut() {
            page.told_navigations = Some(page.navigations + u64::from(page.loading));
        }
    }

    /// Removes and returns the texts of all notices, oldest first; an operation is answered with them.
    pub fn take_notices(&mut self) -> Vec<String> {
        self.mark_loads_told();
        std::mem::take(&mut self.notices).into_iter().map(|notice| self.notice_text(notice)).collect()
    }

    fn notice_text(&self, notice: PageNotice) -> String {
        match notice {
            PageNotice::Text(text) => text,
            PageNotice::PageOpened(target) => match self.pages.iter().find(|page| page.target_id == target) {
                // Without the title: browsers send no event when it becomes known.
                Some(page) => {
                    let url = redact_connection_tokens(page.url.clone());
                    format!("a new page was opened: {} {url}", self.tab_id(&target))
                }
                None => "a new page was opened, and closed again".into(),
            },
        }
    }
}

/// A page in one line: `"title" "url"`.
pub fn page_line(page: &TargetInfo) -> String {
    quote_page(&page.title, &page.url)
}

/// The title and the URL of a page, both of which it chooses itself: quoted, so that they cannot end the line, and short.
pub fn quote_page(title: &str, url: &str) -> String {
    format!("{:?} {:?}", clip_chars(title, 100), clip_chars(&redact_connection_tokens(url.to_owned()), 150))
}

/// Sort key, lowest first: a workbench before any other page, a page with content before an empty or internal one.
fn page_rank(page: &TargetInfo) -> (bool, bool) {
    let workbench = page.title.starts_with("[Extension Development Host]");
    let internal = ["devtools://", "chrome-extension://", "about:", "chrome://"];
    (!workbench, internal.iter().any(|prefix| page.url.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(kind: &str, title: &str, url: &str) -> TargetInfo {
        TargetInfo { target_id: url.into(), kind: kind.into(), title: title.into(), url: url.into() }
    }

    fn attached(source: ConsoleSource, parent: Option<&str>) -> AttachedTarget {
        let (target, url) = (String::new(), String::new());
        let parent = parent.map(str::to_owned);
        AttachedTarget {
            target,
            source,
            parent,
            crashed: false,
            loading: false,
            navigations: 0,
            told_navigations: None,
            inner_navigations: 0,
            url,
        }
    }

    #[test]
    fn the_workbench_or_the_first_page_with_content_is_selected() {
        let popup = target("browser_ui", "Omnibox Popup", "chrome://omnibox-popup");
        let worker = target("worker", "", "blob:x");
        let empty = target("page", "about:blank", "about:blank");
        let tools = target("page", "DevTools", "devtools://devtools/inspector.html");
        let app = target("page", "App", "http://127.0.0.1:3000/");
        let other = target("page", "Docs", "http://127.0.0.1:4000/");
        let host = target("page", "[Extension Development Host] ws", "http://127.0.0.1:5000/");
        let check = |infos: &[&TargetInfo], part: Option<&str>, expect: Option<&TargetInfo>| {
            let mut targets = BrowserTargets::default();
            for &info in infos {
                targets.set_page(info.clone());
            }
            assert_eq!(targets.find_page(part).as_ref(), expect);
        };
        check(&[], None, None);
        check(&[&popup, &worker], None, None);
        check(&[&popup, &empty], None, Some(&empty));
        check(&[&empty, &tools, &app], None, Some(&app));
        check(&[&app, &other], None, Some(&app));
        check(&[&other, &app, &host, &empty], None, Some(&host));
        check(&[&app, &other], Some("Docs"), Some(&other));
        check(&[&app, &other], Some(":4000"), Some(&other));
        check(&[&app, &other], Some("nowhere"), None);
        // Both ids are the beginnings that differ.
        let long = "http://127.0.0.1:4";
        check(&[&app, &other], Some(&format!("t{long}")), Some(&other));
    }

    #[test]
    fn out_of_process_frames_belong_to_their_page() {
        let mut targets = BrowserTargets::default();
        targets.add_session("P".into(), attached(ConsoleSource::Page, None));
        targets.add_session("Q".into(), attached(ConsoleSource::Page, None));
        targets.add_session("F".into(), attached(ConsoleSource::Iframe, Some("P")));
        targets.add_session("G".into(), attached(ConsoleSource::Iframe, Some("F")));
        targets.add_session("W".into(), attached(ConsoleSource::Worker, Some("F")));
        let mut sessions = targets.frame_sessions("P");
        sessions.sort();
        assert_eq!(sessions, ["F", "G", "P"]);
        assert_eq!(targets.frame_sessions("Q"), ["Q"]);
        assert_eq!((targets.page_of("W").as_deref(), targets.page_of("X")), (Some("P"), None));
        assert_eq!((targets.session_error("G"), targets.session_error("X")), (None, Some(PageError::Closed)));
        targets.sessions.get_mut("G").unwrap().crashed = true;
        assert_eq!(targets.session_error("G"), Some(PageError::Crashed));
        let version = targets.frames_version;
        targets.cache_frames("P", Arc::default(), version);
        assert!(targets.frames.contains_key("P"));
        targets.invalidate_frames(Some("G"));
        targets.cache_frames("P", Arc::default(), version);
        assert!(!targets.frames.contains_key("P"));
    }

    #[test]
    fn a_document_that_a_page_loads_between_two_answers_is_told_once() {
        let mut targets = BrowserTargets::default();
        targets.add_session("P".into(), attached(ConsoleSource::Page, None));
        let load = |targets: &mut BrowserTargets, loads: u64| {
            let page = targets.sessions.get_mut("P").unwrap();
            (page.navigations, page.url) = (page.navigations + loads, "http://x/next".to_owned());
            targets.notice_loads();
            targets.take_notices()
        };
        assert_eq!(load(&mut targets, 1), [""; 0], "before the first answer");
        let told = load(&mut targets, 2);
        assert!(
            told.len() == 1
                && told[0].ends_with("has loaded a document by itself since the last answer: \"http://x/next\""),
            "{told:?}"
        );
        assert_eq!(load(&mut targets, 0), [""; 0]);
        // What an operation has begun is its own.
        targets.sessions.get_mut("P").unwrap().loading = true;
        targets.take_notices();
        targets.sessions.get_mut("P").unwrap().loading = false;
        assert_eq!(load(&mut targets, 1), [""; 0]);
    }

    #[test]
    fn notices_are_taken_once_and_the_oldest_are_dropped() {
        let mut targets = BrowserTargets::default();
        targets.set_page(target("page", "", "http://x/"));
        targets.add_notice(PageNotice::PageOpened("http://x/".into()));
        targets.set_page(target("page", "Later", "http://x/"));
        assert_eq!(targets.take_notices(), ["a new page was opened: thttp http://x/"]);
        assert!(targets.take_notices().is_empty());
        (0..MAX_NOTICES + 5).for_each(|number| targets.add_notice(PageNotice::Text(number.to_string())));
        assert_eq!(targets.take_notices()[0], "5");
    }
}
