//! The requests that handles send to the tracker's task.
//!
//! Does not depend on how they are handled.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::change_report::{ChangeReport, PathExplanation};
use super::file_snapshot::FileSnapshot;
use crate::error::Result;

/// The capacity of the request queue, and how many requests share one fence; further senders wait.
pub(super) const MAX_BATCH: usize = 256;

/// A request with the channel for its response.
#[derive(Debug)]
pub(super) enum TrackerRequest {
    TakeSnapshot(Reply<Arc<FileSnapshot>>),
    Compare(Reply<ChangeReport>),
    Explain(PathBuf, Reply<PathExplanation>),
    SetBaseline(Arc<FileSnapshot>, oneshot::Sender<()>),
}

type Reply<T> = oneshot::Sender<Result<T>>;
