//! Locking of `std` mutexes, which a panic of another thread must not make unusable.
//!
//! Does not depend on any other module.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex, also after a thread has panicked while holding it: what our mutexes guard is valid after every
/// statement.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
