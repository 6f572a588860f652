//! Hosting debug sessions: the registry of all sessions, how each is started, ended, stored and recovered.
//!
//! | file | owns |
//! |---|---|
//! | `registry` | all sessions of a workspace, and its breakpoints |
//! | `start` | preparing and starting a session |
//! | `managed_session` | one session with its adapter process, until nothing of it is left |
//! | `store` | the file from which the next supervisor learns of the sessions |
//! | `recover` | what becomes of the sessions of an earlier supervisor |

pub(super) mod managed_session;
mod recover;
pub(super) mod registry;
mod start;
pub mod store;
