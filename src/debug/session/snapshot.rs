//! The published state of a session: its targets, their phases and stops; and the result of waiting for a stop.
//!
//! Plain data.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::resume::LastResume;
use super::stop::ThreadStop;
use super::target_state::{ProgramExit, TargetEnd, TargetPhase, TargetState};
use crate::vocabulary::RunState;

impl TargetPhase {
    /// As it is published for one target.
    pub fn run_state(&self) -> RunState {
        match self {
            TargetPhase::Starting => RunState::Starting,
            TargetPhase::Running { .. } => RunState::Running,
            TargetPhase::Stopped(_) => RunState::Stopped,
            TargetPhase::Ended(TargetEnd::Terminated { .. }) => RunState::Terminated,
            TargetPhase::Ended(TargetEnd::Disconnected(_)) => RunState::Disconnected,
        }
    }
}

impl RunState {
    /// As the API writes it.
    pub fn name(self) -> String {
        format!("{self:?}").to_uppercase()
    }
}

/// One target as it is published.
#[derive(Clone, Debug, Default)]
pub struct TargetSnapshot {
    pub name: String,
    /// The program of the session that it belongs to.
    pub program: usize,
    /// The target that has started it.
    pub parent: Option<usize>,
    pub state: TargetState,
    /// Its process, if the adapter has reported it.
    pub pid: Option<u32>,
    /// Its virtual machine, if the adapter has reported it.
    pub vm_name: Option<String>,
    /// The generation in which it stopped first since it last ran.
    pub(in crate::debug) stopped_in: u64,
    /// Who has resumed it last.
    pub last_resume: Option<LastResume>,
}

/// An editor that has joined a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedEditor {
    /// Unique among all editors of this supervisor.
    pub id: u64,
    /// For readers.
    pub name: Arc<str>,
}

impl TargetSnapshot {
    /// How texts name it: `target 1 worker.js`.
    pub fn label(&self, id: usize) -> String {
        format!("target {id} {}", self.name).trim_end().to_owned()
    }
}

/// All targets, in the order of their start; the index of one is its id.
#[derive(Clone, Debug, Default)]
pub struct SessionSnapshot {
    pub generation: u64,
    pub targets: Vec<TargetSnapshot>,
    /// In the order in which they joined.
    pub editors: Vec<JoinedEditor>,
    /// Further programs are being started: it has not ended, whatever its targets do.
    pub awaits_programs: bool,
    /// Which stop has ended though nobody resumed it, since the last stop or resume; for readers.
    pub ended_stop: Option<String>,
    /// Programs whose children may still connect once all of their targets have ended.
    pub(in crate::debug) awaits_children: BTreeSet<usize>,
}

impl SessionSnapshot {
    /// Stopped if any target is, else running if any is, and so on.
    pub fn run_state(&self) -> RunState {
        let states = self.targets.iter().map(|target| target.state.phase.run_state());
        let state = states.max().unwrap_or(RunState::Terminated);
        match state {
            RunState::Terminated if !self.awaits_children.is_empty() => RunState::Running,
            _ if self.awaits_programs => state.max(RunState::Starting),
            _ => state,
        }
    }

    /// What one program of the session is doing, with all targets of it.
    pub fn program_state(&self, program: usize) -> RunState {
        let states = self.program_targets(program).map(|target| target.state.phase.run_state());
        match states.max().unwrap_or(RunState::Terminated) {
            RunState::Terminated if self.awaits_children.contains(&program) => RunState::Running,
            state => state,
        }
    }

    /// Whether all targets that a program has so far have ended.
    pub(super) fn are_targets_ended(&self, program: usize) -> bool {
        self.program_targets(program).all(|target| matches!(target.state.phase, TargetPhase::Ended(_)))
    }

    /// Whether a program has ended, with all of its targets.
    pub fn is_program_ended(&self, program: usize) -> bool {
        matches!(self.program_state(program), RunState::Terminated | RunState::Disconnected)
    }

    fn program_targets(&self, program: usize) -> impl Iterator<Item = &TargetSnapshot> {
        self.targets.iter().filter(move |target| target.program == program)
    }

    /// The newest target that is this process.
    pub fn find_process(&self, pid: u32) -> Option<usize> {
        self.targets.iter().rposition(|target| target.pid == Some(pid))
    }

    /// Whether all targets have ended.
    pub fn is_ended(&self) -> bool {
        matches!(self.run_state(), RunState::Terminated | RunState::Disconnected)
    }

    /// Every stop with its target, the primary one first.
    pub fn stops(&self) -> Vec<(usize, &ThreadStop)> {
        let mut targets: Vec<(usize, &TargetSnapshot)> = self.targets.iter().enumerate().collect();
        targets.sort_by_key(|(_, target)| target.stopped_in);
        targets.into_iter().flat_map(|(id, target)| target.state.stops().iter().map(move |stop| (id, stop))).collect()
    }

    /// The newest request that has resumed the program.
    pub fn last_resume(&self) -> Option<&LastResume> {
        self.targets.iter().filter_map(|target| target.last_resume.as_ref()).max_by_key(|it| it.generation)
    }

    /// The exit code of a program, from its first target that has reported one.
    pub fn exit_code(&self, program: usize) -> Option<i64> {
        match self.exit(program)? {
            ProgramExit::Code(code) => Some(code),
            ProgramExit::Signal(_) => None,
        }
    }

    /// How a program has ended, from its first target that has reported that.
    pub fn exit(&self, program: usize) -> Option<ProgramExit> {
        self.program_targets(program).find_map(|target| target.state.exit)
    }

    /// Why the connection of a target of a program ended, where that was not the program's end.
    pub fn disconnect_reason(&self, program: usize) -> Option<&str> {
        self.program_targets(program).find_map(|target| match &target.state.phase {
            TargetPhase::Ended(TargetEnd::Disconnected(reason)) => Some(reason.as_str()),
            _ => None,
        })
    }
}

/// The result of waiting for a stop. That none came is a result, too.
#[derive(Clone, Debug)]
pub struct WaitOutcome {
    /// The primary stop, and its target.
    pub stop: Option<(usize, ThreadStop)>,
    pub state: RunState,
    pub waited: Duration,
    /// That there was none in time. How a session has ended is in its snapshot.
    pub message: Option<String>,
}
