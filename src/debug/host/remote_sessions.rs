//! The sessions of the workspace that live in other processes, as far as breakpoints are concerned.
//!
//! All processes share the stored breakpoints. Does not depend on how the processes are reached.

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tether_base::error::Result;

use crate::debug::breakpoints::BindingStatus;
use crate::vocabulary::DataAccess;

/// Reaches the sessions in other processes.
pub trait RemoteSessions: Send + Sync {
    /// Has each send the stored breakpoints to its program; with `bound`, waits until that breakpoint is bound, a short time at
    /// most.
    fn send_breakpoints(&self, bound: Option<u32>) -> BoxFuture<'_, ()>;

    /// How each has bound the breakpoints when it was last told of them.
    fn bindings(&self) -> Vec<SessionBindings>;

    /// Sets a data breakpoint in the session where it can be found, and returns its id. `None`: no session elsewhere is active.
    fn watch_data<'a>(&'a self, expression: &'a str, access: DataAccess) -> BoxFuture<'a, Option<Result<u32>>>;
}

/// How one breakpoint is bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedBinding {
    /// The id of the breakpoint.
    pub id: u32,
    /// How it is bound.
    pub status: BindingStatus,
    /// How often it was hit.
    pub hits: u64,
}

/// How the sessions of one process have bound all breakpoints, and which exceptions they can stop at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionBindings {
    /// One for each breakpoint.
    pub bindings: Vec<ReportedBinding>,
    /// The filter ids that the adapters offer.
    pub known_filters: Vec<String>,
    /// One sentence for each session whose adapter cannot stop at some of the exceptions that are set.
    pub unsupported: Vec<String>,
}
