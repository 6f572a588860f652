//! What the view of `tether watch` shows: the window, the sessions, what has happened, the last answer. Pure: it is told, and asks
//! nothing itself.

use std::collections::VecDeque;

use crate::api::debug::results::DebugSessionStatus;
use crate::api::window::{BuildReport, WindowStatus};
use crate::frontends::render::event_text;
use crate::vocabulary::{RunState, TimelineEvent, TimelineKind};

/// Which events are shown.
pub const SHOWN_KINDS: [TimelineKind; 11] = [
    TimelineKind::Edited,
    TimelineKind::Built,
    TimelineKind::Checked,
    TimelineKind::WindowLaunched,
    TimelineKind::WindowFound,
    TimelineKind::WindowRefreshed,
    TimelineKind::RefreshHeld,
    TimelineKind::WindowEnded,
    TimelineKind::ConsoleError,
    TimelineKind::Stopped,
    TimelineKind::SessionEnded,
];
/// How many events are kept.
pub const MAX_EVENTS: usize = 1000;

/// One line of what has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// In epoch ms.
    pub at: u64,
    pub text: String,
    /// Somebody should look.
    pub is_bad: bool,
}

/// The last answer to a key, or what is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Message {
    #[default]
    None,
    Busy(String),
    Done(String),
    Failed(String),
}

/// Everything that is drawn.
#[derive(Debug, Default)]
pub struct WatchState {
    pub workspace: String,
    pub window: Option<WindowStatus>,
    /// The active ones.
    pub sessions: Vec<DebugSessionStatus>,
    /// The oldest first.
    pub events: VecDeque<LoggedEvent>,
    /// For the next read of the timeline.
    pub cursor: u64,
    pub message: Message,
    /// A stop was asked for, and waits for a second key.
    pub asks_to_stop: bool,
    /// How many of the newest events are below the lower edge.
    pub scrolled: usize,
}

impl WatchState {
    /// Adds what was read of the timeline.
    pub fn add_events(&mut self, events: Vec<TimelineEvent>, cursor: u64) {
        self.cursor = cursor;
        for event in events.into_iter().filter(|event| SHOWN_KINDS.contains(&event.kind)) {
            let is_bad = event.failed == Some(true)
                || matches!(
                    event.kind,
                    TimelineKind::ConsoleError | TimelineKind::WindowEnded | TimelineKind::RefreshHeld
                );
            // What it has printed is shown beside it.
            let is_failed_build = event.kind == TimelineKind::Built && event.failed == Some(true);
            let event = if is_failed_build { TimelineEvent { text: String::new(), ..event } } else { event };
            if self.scrolled > 0 {
                // What is read stays where it is.
                self.scrolled += 1;
            }
            self.events.push_back(LoggedEvent { at: event.at, text: event_text(&event), is_bad });
        }
        while self.events.len() > MAX_EVENTS {
            self.events.pop_front();
        }
        self.scroll(0);
    }

    /// Takes over what has changed of a session.
    pub fn set_session(&mut self, session: DebugSessionStatus) {
        let is_active = !matches!(session.state, RunState::Terminated | RunState::Disconnected);
        let known = self.sessions.iter_mut().find(|known| known.session_id == session.session_id);
        match known {
            Some(known) => *known = session,
            None => self.sessions.push(session),
        }
        if !is_active {
            self.sessions.retain(|it| !matches!(it.state, RunState::Terminated | RunState::Disconnected));
        }
    }

    /// The session that is joined by a key: the first that is stopped, or else the newest.
    pub fn session_to_join(&self) -> Option<&DebugSessionStatus> {
        let stopped = self.sessions.iter().find(|session| session.state == RunState::Stopped);
        stopped.or_else(|| self.sessions.last())
    }

    /// The last build, if it has failed.
    pub fn failed_build(&self) -> Option<&BuildReport> {
        self.window.as_ref()?.last_build.as_ref().filter(|build| !build.ok)
    }

    /// Moves so many events up; down, where it is negative.
    pub fn scroll(&mut self, lines: isize) {
        let most = self.events.len().saturating_sub(1);
        self.scrolled = self.scrolled.saturating_add_signed(lines).min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: TimelineKind, text: &str, failed: Option<bool>) -> TimelineEvent {
        TimelineEvent { text: text.into(), failed, ..blank(kind) }
    }

    fn blank(kind: TimelineKind) -> TimelineEvent {
        let blank = serde_json::json!({"number": 1, "at": 1, "kind": kind, "text": ""});
        serde_json::from_value(blank).unwrap()
    }

    #[test]
    fn events_are_bounded_and_what_is_read_stays_where_it_is() {
        let mut state = WatchState::default();
        state.add_events((0..MAX_EVENTS + 9).map(|_| event(TimelineKind::Edited, "a.ts", None)).collect(), 7);
        assert_eq!((state.events.len(), state.cursor, state.scrolled), (MAX_EVENTS, 7, 0));
        state.scroll(5);
        state.add_events(
            vec![event(TimelineKind::Built, "error", Some(true)), event(TimelineKind::Called, "x", None)],
            8,
        );
        assert_eq!(state.scrolled, 6, "one of the two is shown");
        let last = state.events.back().unwrap();
        assert_eq!((last.text.as_str(), last.is_bad), ("build failed", true));
        state.scroll(isize::MAX);
        assert_eq!(state.scrolled, MAX_EVENTS - 1);
        state.scroll(isize::MIN);
        assert_eq!(state.scrolled, 0);
    }

    #[test]
    fn sessions_that_have_ended_are_gone_and_a_stopped_one_is_joined() {
        let mut state = WatchState::default();
        let session =
            |id: &str, state: RunState| DebugSessionStatus { session_id: id.into(), state, ..Default::default() };
        state.set_session(session("d1", RunState::Running));
        state.set_session(session("d2", RunState::Running));
        assert_eq!(state.session_to_join().unwrap().session_id, "d2");
        state.set_session(session("d1", RunState::Stopped));
        assert_eq!(state.session_to_join().unwrap().session_id, "d1");
        state.set_session(session("d1", RunState::Terminated));
        state.set_session(session("d3", RunState::Disconnected));
        assert_eq!(state.sessions.iter().map(|it| it.session_id.as_str()).collect::<Vec<_>>(), ["d2"]);
    }
}
