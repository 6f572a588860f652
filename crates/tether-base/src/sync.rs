//! Locking of `std` mutexes, which a panic of another thread must not make unusable; a set of tasks with an owner; work on
//! threads of its own.
//!
//! Does not depend on any other module.

use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Where tasks are sent that run until their driver is dropped.
pub type TaskSender = mpsc::UnboundedSender<BoxFuture<'static, ()>>;

/// Locks the mutex, also after a thread has panicked while holding it: what our mutexes guard is valid after every
/// statement.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs work that waits for the disk, or reads all of `/proc`, off the threads of the runtime: its other tasks would wait
/// meanwhile. The work ends also when the future is dropped. A panic of the work is one of the caller.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime ends, and this task with it.
        Err(_) => std::future::pending().await,
    }
}

/// A sender of tasks, and the future that runs them concurrently until all senders are dropped. Dropping it aborts them.
pub fn open_task_set() -> (TaskSender, impl Future<Output = ()> + Send + 'static) {
    let (tasks, mut inbox) = mpsc::unbounded_channel();
    let driver = async move {
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                task = inbox.recv() => match task {
                    Some(task) => drop(running.spawn(task)),
                    None => return,
                },
                Some(_) = running.join_next() => {}
            }
        }
    };
    (tasks, driver)
}
