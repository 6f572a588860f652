//! Queues of work, each done in its order and concurrently with the others: each isolate has a lane for its events, its moves
//! and its breakpoints, so that one that does not answer delays no other; the requests of the client have one, too.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use tether_base::sync::lock;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a response waits for what the lanes of all isolates do; one that is later still does it.
pub(crate) const LANES_TIMEOUT: Duration = Duration::from_secs(3);
/// How much work of a lane may wait.
const MAX_WAITING: usize = 100_000;

/// Where the work of a lane is added.
pub(crate) struct Lane(mpsc::Sender<BoxFuture<'static, ()>>);

/// The tasks of a session: they end when its last handle is dropped.
#[derive(Clone, Default)]
pub(crate) struct SessionTasks(Arc<Mutex<JoinSet<()>>>);

/// Too much work waits.
#[derive(Debug)]
pub(crate) struct LaneFull;

impl Lane {
    /// A lane, whose work one of the tasks does until the lane is dropped.
    pub(crate) fn start(tasks: &SessionTasks) -> Lane {
        let (work, mut waiting) = mpsc::channel::<BoxFuture<'static, ()>>(MAX_WAITING);
        tasks.spawn(async move {
            while let Some(next) = waiting.recv().await {
                next.await;
            }
        });
        Lane(work)
    }

    /// Adds work. Errors: too much waits. Work that is added once the session has ended is dropped.
    pub(crate) fn add(&self, work: impl Future<Output = ()> + Send + 'static) -> Result<(), LaneFull> {
        match self.0.try_send(Box::pin(work)) {
            Err(mpsc::error::TrySendError::Full(_)) => Err(LaneFull),
            _ => Ok(()),
        }
    }

    /// Adds work whose result is waited for. `None`: it was dropped, or too much waits.
    pub(crate) fn request<T, F>(&self, work: F) -> impl Future<Output = Option<T>> + use<T, F>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let (done, result) = oneshot::channel();
        // Without room, the sender is dropped.
        let _ = self.add(async move {
            // Fails when nobody waits any more.
            let _ = done.send(work.await);
        });
        async { result.await.ok() }
    }
}

impl SessionTasks {
    /// Starts a task.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.0);
        // Those that have ended are let go of.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}

/// Waits for the results of work in several lanes, within [`LANES_TIMEOUT`]. `None`: at least one has not come.
pub(crate) async fn wait_for_all<T>(
    requested: impl IntoIterator<Item = impl Future<Output = Option<T>>>,
) -> Option<Vec<T>> {
    let results = timeout(LANES_TIMEOUT, join_all(requested)).await.ok()?;
    Some(results.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_is_done_in_its_order_and_delays_no_other_lane() {
        let tasks = SessionTasks::default();
        let (blocked, free) = (Lane::start(&tasks), Lane::start(&tasks));
        blocked.add(std::future::pending()).unwrap();
        let after = blocked.request(async { 1 });
        let results = Arc::new(Mutex::new(Vec::new()));
        for number in 0..10 {
            let results = Arc::clone(&results);
            free.add(async move { lock(&results).push(number) }).unwrap();
        }
        assert_eq!(free.request(async { 2 }).await, Some(2));
        assert_eq!(*lock(&results), (0..10).collect::<Vec<i32>>());
        assert_eq!(wait_for_all([after]).await, None::<Vec<i32>>);
        let waiting = blocked.request(async { 3 });
        drop(tasks);
        assert_eq!(waiting.await, None);
    }

    #[tokio::test]
    async fn a_lane_takes_no_more_than_its_limit() {
        let tasks = SessionTasks::default();
        let lane = Lane::start(&tasks);
        let taken = (0..=MAX_WAITING).take_while(|_| lane.add(std::future::pending()).is_ok()).count();
        assert_eq!(taken, MAX_WAITING);
    }
}
