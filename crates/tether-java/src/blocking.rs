//! Work on files, off the threads that serve connections: a slow disk must not hold them up.

use tether_backend::Answer;
use tether_backend::request_failure::RequestFailure;

/// Runs work that may wait for a disk on a thread for such work. Errors: it did not end.
pub(crate) async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Answer<T> {
    tokio::task::spawn_blocking(work).await.map_err(|cause| RequestFailure(format!("a task has failed: {cause}")))
}
