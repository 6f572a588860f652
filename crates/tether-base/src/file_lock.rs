//! Locks of files, waited for in bounded time: their holder may be a process that was stopped.

use std::fs::{File, TryLockError};
use std::io;
use std::time::{Duration, Instant};

/// The pause between two attempts doubles from the first to the last.
const PAUSES: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(20));

/// Locks a file for this process alone, until it is unlocked or closed. Blocks. Errors: [`io::ErrorKind::WouldBlock`] when another
/// one holds it all that time.
pub fn lock_within(file: &File, within: Duration) -> io::Result<()> {
    let deadline = Instant::now() + within;
    let (mut pause, longest) = PAUSES;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(cause)) => return Err(cause),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(io::Error::new(io::ErrorKind::WouldBlock, "another process has locked it"));
            }
            Err(TryLockError::WouldBlock) => {}
        }
        std::thread::sleep(pause);
        pause = pause.saturating_mul(2).min(longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_is_waited_for_in_bounded_time() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || File::open(file.path()).unwrap();
        let (holder, waiter) = (open(), open());
        lock_within(&holder, Duration::ZERO).unwrap();
        let refused = lock_within(&waiter, Duration::from_millis(1)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        let release = std::thread::spawn(move || holder.unlock().unwrap());
        lock_within(&waiter, Duration::from_secs(60)).unwrap();
        release.join().unwrap();
    }
}
