//! What is published of a session: its targets, their phases and stops; and what a waiting came to.
//!
//! Plain data. Must not know how it comes about.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::state::{End, Phase, TargetState};
use super::stop::Stop;

/// What a session is doing, in the API's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    Starting,
    Running,
    Stopped,
    Terminated,
    Disconnected,
}

impl Phase {
    /// As it is published for one target.
    pub fn state(&self) -> State {
        match self {
            Phase::Starting => State::Starting,
            Phase::Running { .. } => State::Running,
            Phase::Stopped(_) => State::Stopped,
            Phase::Ended(End::Terminated { .. }) => State::Terminated,
            Phase::Ended(End::Disconnected(_)) => State::Disconnected,
        }
    }
}

impl State {
    /// As the API writes it.
    pub fn name(self) -> &'static str {
        match self {
            State::Starting => "STARTING",
            State::Running => "RUNNING",
            State::Stopped => "STOPPED",
            State::Terminated => "TERMINATED",
            State::Disconnected => "DISCONNECTED",
        }
    }
}

/// One target as it is published.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub name: String,
    /// The target whose adapter asked for it.
    pub parent: Option<usize>,
    pub state: TargetState,
    /// The generation in which it stopped first since it last ran.
    pub(super) stopped_in: u64,
}

/// All targets, in the order of their birth; the place of one is its id.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub generation: u64,
    pub targets: Vec<Seen>,
}

impl Snapshot {
    pub fn state(&self) -> State {
        let any = |is: fn(&Phase) -> bool| self.targets.iter().any(|target| is(&target.state.phase));
        if any(|phase| matches!(phase, Phase::Stopped(_))) {
            State::Stopped
        } else if any(|phase| matches!(phase, Phase::Running { .. })) {
            State::Running
        } else if any(|phase| matches!(phase, Phase::Starting)) {
            State::Starting
        } else if any(|phase| matches!(phase, Phase::Ended(End::Disconnected(_)))) {
            State::Disconnected
        } else {
            State::Terminated
        }
    }

    pub fn is_ended(&self) -> bool {
        matches!(self.state(), State::Terminated | State::Disconnected)
    }

    /// Every stop with its target, the primary one first.
    pub fn stops(&self) -> Vec<(usize, &Stop)> {
        let mut targets: Vec<(usize, &Seen)> = self.targets.iter().enumerate().collect();
        targets.sort_by_key(|(_, target)| target.stopped_in);
        targets.into_iter().flat_map(|(id, target)| target.state.stops().iter().map(move |stop| (id, stop))).collect()
    }

    /// How the program exited: the first target's word that has one.
    pub fn exit_code(&self) -> Option<i64> {
        self.targets.iter().find_map(|target| target.state.exit_code)
    }

    /// Why the connection of a target ended, where that was not the program's end.
    pub fn reason(&self) -> Option<&str> {
        self.targets.iter().find_map(|target| match &target.state.phase {
            Phase::Ended(End::Disconnected(reason)) => Some(reason.as_str()),
            _ => None,
        })
    }
}

/// What a waiting for a stop came to; that it came to nothing is an answer, too.
#[derive(Clone, Debug)]
pub struct Waited {
    /// The primary stop, and its target.
    pub stop: Option<(usize, Stop)>,
    pub state: State,
    pub waited: Duration,
    /// Why there is no stop.
    pub message: Option<String>,
}
