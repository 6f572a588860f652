//! What is known of the browser's targets: its pages, what we are attached to, what has happened to them.
//!
//! Kept current by [`super::observe`] before any answer that came after an event is delivered: so whoever has been
//! answered sees here all that happened before. Does no I/O.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::console::ConsoleSource;
use super::frame_tree::ScriptedFrame;
use crate::cdp::types::TargetInfo;

/// Notices that nobody has asked for; older ones are in the console anyway.
const MOST_NOTICES: usize = 20;

#[derive(Default)]
pub struct BrowserTargets {
    /// Oldest known first; the browser lists its most recently used first.
    pages: Vec<TargetInfo>,
    /// By session.
    attached: HashMap<String, AttachedTarget>,
    /// The frames of a page, by its session, until one of them changes.
    frames: HashMap<String, Arc<Vec<ScriptedFrame>>>,
    /// Sessions that were too slow for all of their frames to be found, and are waited for.
    slow_sessions: HashSet<String>,
    /// Rises whenever frames may have changed: what was asked before is not kept.
    pub version: u64,
    /// What the mouse has begun to drag, by the browser's own account.
    pub intercepted_drag: Option<serde_json::Value>,
    /// All pages that there were at the beginning are known: a further one is news.
    pub listed: bool,
    notices: Vec<PageNotice>,
}

/// A target that we are attached to.
#[derive(Clone, Debug)]
pub struct AttachedTarget {
    pub target: String,
    pub source: ConsoleSource,
    /// The session of what it lies in; none for a page.
    pub parent: Option<String>,
    pub crashed: bool,
    pub loading: bool,
    /// How many documents its main frame has begun to show.
    pub visits: u64,
    pub url: String,
}

/// What has happened to the page beside what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageNotice {
    Text(String),
    /// A page was opened: its target. Title and address come later.
    PageOpened(String),
}

/// Why a session cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionLoss {
    Crashed,
    /// It was closed.
    Gone,
}

impl BrowserTargets {
    /// The pages that can be looked at, the best one first.
    pub fn pages(&self) -> Vec<&TargetInfo> {
        let mut pages: Vec<&TargetInfo> = self.pages.iter().collect();
        pages.sort_by_key(|page| page_rank(page));
        pages
    }

    /// A page of which `wanted` is part of the address or title; without it, the one a user would call "the window".
    pub fn find_page(&self, wanted: Option<&str>) -> Option<TargetInfo> {
        let has = |page: &&TargetInfo| wanted.is_none_or(|part| page.url.contains(part) || page.title.contains(part));
        self.pages().into_iter().find(has).cloned()
    }

    /// A page is there, or has changed. Whether it is new.
    pub fn set_page(&mut self, info: TargetInfo) -> bool {
        if info.kind != "page" {
            return false;
        }
        match self.pages.iter_mut().find(|page| page.target_id == info.target_id) {
            Some(known) => {
                *known = info;
                false
            }
            None => {
                self.pages.push(info);
                true
            }
        }
    }

    /// As [`View::set_page`], of a page that is known.
    pub fn update_page(&mut self, info: TargetInfo) {
        if let Some(known) = self.pages.iter_mut().find(|page| page.target_id == info.target_id) {
            *known = info;
        }
    }

    pub fn remove_page(&mut self, target: &str) {
        self.pages.retain(|page| page.target_id != target);
    }

    pub fn add_session(&mut self, session: String, attached: AttachedTarget) {
        self.invalidate_frames(attached.parent.as_deref());
        self.attached.insert(session, attached);
    }

    pub fn remove_session(&mut self, session: &str) {
        self.invalidate_frames(Some(session));
        self.attached.remove(session);
        self.frames.remove(session);
    }

    pub fn attached(&self, session: &str) -> Option<&AttachedTarget> {
        self.attached.get(session)
    }

    pub fn session_ids(&self) -> impl Iterator<Item = &String> {
        self.attached.keys()
    }

    pub fn session_mut(&mut self, session: &str) -> Option<&mut AttachedTarget> {
        self.attached.get_mut(session)
    }

    /// The session of a page's target.
    pub fn session_of_page(&self, target: &str) -> Option<String> {
        let of_page = |it: &AttachedTarget| it.parent.is_none() && it.target == target;
        self.attached.iter().find(|(_, it)| of_page(it)).map(|(session, _)| session.clone())
    }

    /// The page's session and those of the frames in it that have processes of their own.
    pub fn sessions_in(&self, page: &str) -> Vec<String> {
        let of_page = |(session, it): &(&String, &AttachedTarget)| {
            it.source == ConsoleSource::Iframe && self.page_of(session).as_deref() == Some(page)
        };
        let inner = self.attached.iter().filter(of_page).map(|(session, _)| session.clone());
        std::iter::once(page.to_owned()).chain(inner).collect()
    }

    /// The session of the page that a session belongs to.
    pub fn page_of(&self, session: &str) -> Option<String> {
        let mut at = session;
        // Nothing is nested deeper than this; and a circle would have no end.
        for _ in 0..64 {
            match &self.attached.get(at)?.parent {
                Some(parent) => at = parent,
                None => return Some(at.to_owned()),
            }
        }
        None
    }

    pub fn session_loss(&self, session: &str) -> Option<SessionLoss> {
        match self.attached.get(session) {
            None => Some(SessionLoss::Gone),
            Some(attached) if attached.crashed => Some(SessionLoss::Crashed),
            Some(_) => None,
        }
    }

    /// The frames of a session's page have changed.
    pub fn invalidate_frames(&mut self, session: Option<&str>) {
        self.version += 1;
        if let Some(page) = session.and_then(|session| self.page_of(session)) {
            self.frames.remove(&page);
        }
    }

    pub fn cached_frames(&self, page: &str) -> Option<Arc<Vec<ScriptedFrame>>> {
        self.frames.get(page).cloned()
    }

    /// Keeps the frames that were found when [`View::version`] was `version`.
    pub fn cache_frames(&mut self, page: &str, frames: Arc<Vec<ScriptedFrame>>, version: u64) {
        if self.version == version {
            self.frames.insert(page.to_owned(), frames);
        }
    }

    /// Whether a session that was too slow is to be waited for: nobody does so yet.
    pub fn add_slow_session(&mut self, session: &str) -> bool {
        self.slow_sessions.insert(session.to_owned())
    }

    /// A session that was too slow has answered: there may be more frames than were found.
    pub fn remove_slow_session(&mut self, session: &str) {
        self.slow_sessions.remove(session);
        self.invalidate_frames(Some(session));
    }

    pub fn add_notice(&mut self, notice: PageNotice) {
        if self.notices.len() == MOST_NOTICES {
            self.notices.remove(0);
        }
        self.notices.push(notice);
    }

    /// What has happened that nobody was told of yet.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices).into_iter().map(|notice| self.notice_text(notice)).collect()
    }

    fn notice_text(&self, notice: PageNotice) -> String {
        match notice {
            PageNotice::Text(text) => text,
            PageNotice::PageOpened(target) => match self.pages.iter().find(|page| page.target_id == target) {
                // Its title, if it has one by now, is not told of by itself.
                Some(page) => format!("a new page was opened: {}", page.url),
                None => "a new page was opened, and closed again".into(),
            },
        }
    }
}

/// `"title" address`
pub fn page_line(page: &TargetInfo) -> String {
    let url: String = page.url.chars().take(150).collect();
    let dots = if url.len() < page.url.len() { "…" } else { "" };
    format!("{:?} {url}{dots}", page.title)
}

/// A workbench before any other page, a shown one before an empty one; among equals the first.
fn page_rank(page: &TargetInfo) -> (bool, bool) {
    let workbench = page.title.starts_with("[Extension Development Host]");
    let inner = ["devtools://", "chrome-extension://", "about:", "chrome://"];
    (!workbench, inner.iter().any(|prefix| page.url.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(kind: &str, title: &str, url: &str) -> TargetInfo {
        TargetInfo { target_id: url.into(), kind: kind.into(), title: title.into(), url: url.into() }
    }

    fn attached(source: ConsoleSource, parent: Option<&str>) -> AttachedTarget {
        let (target, url) = (String::new(), String::new());
        AttachedTarget {
            target,
            source,
            parent: parent.map(str::to_owned),
            crashed: false,
            loading: false,
            visits: 0,
            url,
        }
    }

    #[test]
    fn the_page_that_a_user_would_call_the_window_is_looked_at() {
        let popup = target("browser_ui", "Omnibox Popup", "chrome://omnibox-popup");
        let worker = target("worker", "", "blob:x");
        let empty = target("page", "about:blank", "about:blank");
        let tools = target("page", "DevTools", "devtools://devtools/inspector.html");
        let app = target("page", "App", "http://127.0.0.1:3000/");
        let other = target("page", "Docs", "http://127.0.0.1:4000/");
        let host = target("page", "[Extension Development Host] ws", "http://127.0.0.1:5000/");
        let check = |targets: &[&TargetInfo], wanted: Option<&str>, expect: Option<&TargetInfo>| {
            let mut view = BrowserTargets::default();
            for &target in targets {
                view.set_page(target.clone());
            }
            assert_eq!(view.find_page(wanted).as_ref(), expect);
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
    }

    #[test]
    fn frames_of_other_processes_belong_to_their_page() {
        let mut view = BrowserTargets::default();
        view.add_session("P".into(), attached(ConsoleSource::Page, None));
        view.add_session("Q".into(), attached(ConsoleSource::Page, None));
        view.add_session("F".into(), attached(ConsoleSource::Iframe, Some("P")));
        view.add_session("G".into(), attached(ConsoleSource::Iframe, Some("F")));
        view.add_session("W".into(), attached(ConsoleSource::Worker, Some("F")));
        let mut sessions = view.sessions_in("P");
        sessions.sort();
        assert_eq!(sessions, ["F", "G", "P"]);
        assert_eq!(view.sessions_in("Q"), ["Q"]);
        assert_eq!((view.page_of("W").as_deref(), view.page_of("X")), (Some("P"), None));
        assert_eq!((view.session_loss("G"), view.session_loss("X")), (None, Some(SessionLoss::Gone)));
        view.session_mut("G").unwrap().crashed = true;
        assert_eq!(view.session_loss("G"), Some(SessionLoss::Crashed));
        let version = view.version;
        view.cache_frames("P", Arc::default(), version);
        assert!(view.cached_frames("P").is_some());
        view.invalidate_frames(Some("G"));
        view.cache_frames("P", Arc::default(), version);
        assert!(view.cached_frames("P").is_none());
    }

    #[test]
    fn notices_are_told_once_and_the_oldest_are_given_up() {
        let mut view = BrowserTargets::default();
        view.set_page(target("page", "", "http://x/"));
        view.add_notice(PageNotice::PageOpened("http://x/".into()));
        view.set_page(target("page", "Later", "http://x/"));
        assert_eq!(view.take_notices(), ["a new page was opened: http://x/"]);
        assert!(view.take_notices().is_empty());
        (0..MOST_NOTICES + 5).for_each(|number| view.add_notice(PageNotice::Text(number.to_string())));
        assert_eq!(view.take_notices()[0], "5");
    }
}
