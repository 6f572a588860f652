//! The log of a session, and its part of the timeline: when it began, stopped and why, went on and for whom, ended.
//!
//! No text of the program is recorded: it may have secrets. Sends no requests: the place of a stop is that of the breakpoint
//! that was hit.

use tracing::info;

use super::managed_session::ManagedSession;
use crate::debug::breakpoints::BreakpointKind;
use crate::debug::file_names::FileNames;
use crate::debug::session::snapshot::{SessionSnapshot, TargetSnapshot};
use crate::debug::session::stop::ThreadStop;
use crate::debug::session::target_state::ProgramExit;
use crate::timeline::{Timeline, event_now};
use crate::vocabulary::{RunState, StopKind, TimelineEvent, TimelineKind};

/// Records the changes of one session's targets.
pub(super) struct SessionLog {
    managed: ManagedSession,
    names: FileNames,
    timeline: Timeline,
    /// Of each target: what it was doing, and in which generation it had stopped.
    seen: Vec<(RunState, u64)>,
    /// The generation of the last resume.
    resumed_in: u64,
    is_end_recorded: bool,
}

impl SessionLog {
    /// Records that the session begins.
    pub fn begin(managed: ManagedSession, names: FileNames, timeline: Timeline) -> SessionLog {
        info!("{}: {} begins, with {}", managed.id, managed.request.name, managed.adapter.name);
        let log = SessionLog { managed, names, timeline, seen: Vec::new(), resumed_in: 0, is_end_recorded: false };
        let text = format!("{}, with {}", log.managed.request.name, log.managed.adapter.name);
        log.record_event(TimelineKind::SessionStarted, text, |_| ());
        log
    }

    fn record_event(&self, kind: TimelineKind, text: String, complete: impl FnOnce(&mut TimelineEvent)) {
        let mut event = TimelineEvent { session_id: Some(self.managed.id.clone()), ..event_now(kind, text) };
        complete(&mut event);
        self.timeline.record(event);
    }

    /// Records what has changed.
    pub fn record_snapshot(&mut self, snapshot: &SessionSnapshot) {
        if let Some(resume) = snapshot.last_resume().filter(|it| it.generation > self.resumed_in) {
            self.resumed_in = resume.generation;
            let by = Some(resume.by.to_string());
            self.record_event(TimelineKind::Resumed, resume.how.name().to_owned(), |event| event.by = by);
        }
        for (index, target) in snapshot.targets.iter().enumerate() {
            let now = (target.state.phase.run_state(), target.stopped_in);
            let before = self.seen.get(index).copied();
            if before == Some(now) {
                continue;
            }
            if let Some(change) = self.describe_change(target, before.map(|(state, _)| state)) {
                // The first target goes by the name of the session.
                let name = if index == 0 { String::new() } else { format!(" target {index} {}", target.name) };
                info!("{}{name}: {change}", self.managed.id);
                if let (RunState::Stopped, Some(stop)) = (now.0, target.state.stops().first()) {
                    let place = self.stop_place(stop);
                    let text = format!("{}{name}", stop_word(stop.kind));
                    self.record_event(TimelineKind::Stopped, text, |event| event.place = place);
                }
            }
            match self.seen.get_mut(index) {
                Some(seen) => *seen = now,
                None => self.seen.push(now),
            }
        }
        if !self.is_end_recorded && snapshot.is_ended() {
            self.is_end_recorded = true;
            let exit = snapshot.exit(0);
            let text = match (exit, snapshot.disconnect_reason(0)) {
                (Some(ProgramExit::Code(code)), _) => format!("with code {code}"),
                (Some(ProgramExit::Signal(signal)), _) => format!("by signal {signal}"),
                (None, Some(_)) => "its connection ended".to_owned(),
                (None, None) => "ended".to_owned(),
            };
            let failed = exit.map(|exit| exit != ProgramExit::Code(0));
            self.record_event(TimelineKind::SessionEnded, text, |event| event.failed = failed);
        }
    }

    fn describe_change(&self, target: &TargetSnapshot, before: Option<RunState>) -> Option<String> {
        Some(match (before, target.state.phase.run_state()) {
            (_, RunState::Starting) => return None,
            (_, RunState::Stopped) => self.describe_stop(target.state.stops().first()?),
            (Some(RunState::Stopped), RunState::Running) => "continues".to_owned(),
            (_, RunState::Running) => "runs".to_owned(),
            (_, RunState::Terminated) => match target.state.exit {
                Some(exit) => exit.to_string(),
                None => "ended".to_owned(),
            },
            (_, RunState::Disconnected) => "its connection ended".to_owned(),
        })
    }

    fn describe_stop(&self, stop: &ThreadStop) -> String {
        let hit = stop.hits.first().map(|(id, _)| *id);
        let thread = stop.thread_id.map(|id| format!(", thread {id}")).unwrap_or_default();
        let Some(id) = hit else { return format!("stopped: {}{thread}", stop_word(stop.kind)) };
        let place = self.stop_place(stop).map(|place| format!(" at {place}"));
        format!("stopped: {} {id}{}{thread}", stop_word(stop.kind), place.unwrap_or_default())
    }

    /// Where the breakpoint is that was hit.
    fn stop_place(&self, stop: &ThreadStop) -> Option<String> {
        let (id, _) = stop.hits.first()?;
        let breakpoints = self.managed.session.shared.breakpoints.current();
        let kind = &breakpoints.get(*id)?.kind;
        (!matches!(kind, BreakpointKind::Data { .. })).then(|| self.names.show_place(kind).text)
    }
}

fn stop_word(kind: StopKind) -> &'static str {
    match kind {
        StopKind::BreakpointHit => "breakpoint",
        StopKind::StepComplete => "step",
        StopKind::Exception => "exception",
        StopKind::WatchpointAccess | StopKind::WatchpointModify => "watchpoint",
        StopKind::MethodEntry => "method entry",
        StopKind::MethodExit => "method exit",
        StopKind::VmStart => "VM start",
        StopKind::VmDeath => "VM death",
        StopKind::UserSuspend => "pause",
        StopKind::Entry => "entry",
    }
}
