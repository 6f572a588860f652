//! Lock files that are removed when they are released, so that a folder of them does not grow.
//!
//! A waiter may hold a file that its owner has removed meanwhile: after locking, the file must still be the one at the
//! path, else the lock is taken anew. Only the holder of the lock removes the file. Does not depend on what is locked.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A held lock, released and removed on drop. After SIGKILL the file stays, unlocked.
#[derive(Debug)]
pub struct ReleasedFile {
    file: File,
    path: PathBuf,
}

impl Drop for ReleasedFile {
    fn drop(&mut self) {
        // A file that stays is locked again by the next process.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl ReleasedFile {
    /// Waits for the lock. Blocks.
    pub fn acquire(path: &Path) -> io::Result<ReleasedFile> {
        loop {
            let file = open_file(path)?;
            file.lock()?;
            if is_at_path(&file, path) {
                return Ok(ReleasedFile { file, path: path.to_owned() });
            }
        }
    }

    /// Takes the lock if it is free. The inner error is the opened file that another process has locked.
    pub fn try_acquire(path: &Path) -> io::Result<Result<ReleasedFile, File>> {
        loop {
            let file = open_file(path)?;
            match file.try_lock() {
                Ok(()) if is_at_path(&file, path) => return Ok(Ok(ReleasedFile { file, path: path.to_owned() })),
                // Removed by the process that held it.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(Err(file)),
                Err(TryLockError::Error(cause)) => return Err(cause),
            }
        }
    }

    /// The locked file.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn is_at_path(file: &File, path: &Path) -> bool {
    let of = |about: io::Result<std::fs::Metadata>| about.ok().map(|about| (about.dev(), about.ino()));
    of(file.metadata()).is_some_and(|locked| of(path.symlink_metadata()) == Some(locked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn one_thread_at_a_time_holds_it_although_it_is_removed_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let holders = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let lock = ReleasedFile::acquire(&path).unwrap();
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        assert!(ReleasedFile::try_acquire(&path).unwrap().is_err());
                        holders.fetch_sub(1, Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });
        assert!(!path.exists());
    }
}
