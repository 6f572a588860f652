//! Locking of `std` mutexes, which a panic of another thread must not make unusable; a set of tasks with an owner.
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
