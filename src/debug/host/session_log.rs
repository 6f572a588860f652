//! The supervisor's log of a session: when it began, stopped and why, went on, ended.
//!
//! No text of the program is logged: it may have secrets. Sends no requests: the place of a stop is that of the breakpoint
//! that was hit.

use tracing::info;

use super::managed_session::ManagedSession;
use crate::debug::breakpoints::BreakpointKind;
use crate::debug::session::snapshot::{SessionSnapshot, TargetSnapshot};
use crate::debug::session::stop::ThreadStop;
use crate::vocabulary::{RunState, StopKind};

/// Logs the changes of one session's targets.
pub(super) struct SessionLog {
    managed: ManagedSession,
    /// Of each target: what it was doing, and in which generation it had stopped.
    seen: Vec<(RunState, u64)>,
}

impl SessionLog {
    /// Logs that the session begins.
    pub fn begin(managed: ManagedSession) -> SessionLog {
        info!("{}: {} begins, with {}", managed.id, managed.request.name, managed.adapter.name);
        SessionLog { managed, seen: Vec::new() }
    }

    /// Logs what has changed.
    pub fn record_snapshot(&mut self, snapshot: &SessionSnapshot) {
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
            }
            match self.seen.get_mut(index) {
                Some(seen) => *seen = now,
                None => self.seen.push(now),
            }
        }
    }

    fn describe_change(&self, target: &TargetSnapshot, before: Option<RunState>) -> Option<String> {
        Some(match (before, target.state.phase.run_state()) {
            (_, RunState::Starting) => return None,
            (_, RunState::Stopped) => self.describe_stop(target.state.stops().first()?),
            (Some(RunState::Stopped), RunState::Running) => "continues".to_owned(),
            (_, RunState::Running) => "runs".to_owned(),
            (_, RunState::Terminated) => match target.state.exit_code {
                Some(code) => format!("ended with code {code}"),
                None => "ended".to_owned(),
            },
            (_, RunState::Disconnected) => "its connection ended".to_owned(),
        })
    }

    fn describe_stop(&self, stop: &ThreadStop) -> String {
        let hit = stop.hits.first().map(|(id, _)| *id);
        let thread = stop.thread_id.map(|id| format!(", thread {id}")).unwrap_or_default();
        let Some(id) = hit else { return format!("stopped: {}{thread}", stop_word(stop.kind)) };
        let breakpoints = self.managed.session.shared.breakpoints.current();
        let place = breakpoints.get(id).and_then(|spec| match &spec.kind {
            BreakpointKind::Line { file, line, .. } => Some(format!(" at {}:{line}", file.display())),
            BreakpointKind::Function { name } => Some(format!(" in {name}")),
            BreakpointKind::ClassLine { class_name, line } => Some(format!(" at {class_name}:{line}")),
            BreakpointKind::Data { .. } => None,
        });
        format!("stopped: {} {id}{}{thread}", stop_word(stop.kind), place.unwrap_or_default())
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
