//! What the supervisor knows of a hosted session without asking: reported with each change.

use serde::{Deserialize, Serialize};

use super::operations::status::known_status;
use crate::api::debug::results::DebugSessionStatus;
use crate::debug::ManagedSession;

/// A session at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionFacts {
    /// Its status, as far as it is known without a request to its adapter.
    pub status: DebugSessionStatus,
    /// Whether all its targets have ended.
    pub is_ended: bool,
    /// Whether it is attached to the next launch of what it follows, ended or not.
    pub is_following: bool,
    /// Whether it is being attached to again.
    pub is_reconnecting: bool,
    /// The launch ids of the programs that run on without the session.
    pub released: Vec<String>,
    /// Of each program, in the order of their start: whether nothing of it is left.
    pub ended_programs: Vec<bool>,
}

impl SessionFacts {
    /// Of a session now.
    pub fn of(managed: &ManagedSession) -> SessionFacts {
        let programs = managed.programs();
        SessionFacts {
            status: known_status(managed),
            is_ended: managed.is_ended(),
            is_following: managed.is_following(),
            is_reconnecting: managed.is_reconnecting(),
            released: programs
                .iter()
                .filter(|it| it.has_released_program())
                .map(|it| it.launch_id().to_owned())
                .collect(),
            ended_programs: programs.iter().map(ManagedSession::is_program_gone).collect(),
        }
    }
}
