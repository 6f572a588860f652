//! Reports that a program is started: by any process of the machine, as the kernel reports that its file is opened.
//!
//! A process shows its new program a moment after the report. Does not know who has started it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Large enough for some events, in bytes: those of files have no names.
const BUFFER: usize = 4096;

/// Watches the files of programs.
pub struct ProgramWatch {
    inotify: AsyncFd<OwnedFd>,
}

impl ProgramWatch {
    /// Watches nothing yet. Must be called within a tokio runtime. Errors: our user has no instance of inotify left.
    pub fn open() -> io::Result<ProgramWatch> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        // SAFETY: an OwnedFd is an open descriptor, always returns the same one, and closes it only when the AsyncFd
        // that owns it from here on is dropped.
        let inotify = unsafe { AsyncFd::register_with_interest(inotify, Interest::READABLE) }?;
        Ok(ProgramWatch { inotify })
    }

    /// Watches a program, once however often it is added. Errors: it cannot be read, or our user has no watch left.
    pub fn add(&self, program: &Path) -> io::Result<()> {
        inotify::add_watch(self.inotify.get_ref(), program, WatchFlags::OPEN)?;
        Ok(())
    }

    /// Resolves when one of the programs was started, or only read, since the last call. Cancel-safe. Errors: the kernel reports
    /// nothing any more.
    pub async fn started(&self) -> io::Result<()> {
        loop {
            let mut ready = self.inotify.readable().await?;
            match ready.try_io(|inotify| read_all(inotify.get_ref())) {
                Ok(read) => return read,
                // Nothing to read yet.
                Err(_would_block) => {}
            }
        }
    }
}

/// Errors: [`io::ErrorKind::WouldBlock`] where there was nothing.
fn read_all(inotify: &OwnedFd) -> io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); BUFFER];
    let mut reader = inotify::Reader::new(inotify, &mut buffer);
    reader.next()?;
    loop {
        match reader.next() {
            Ok(_) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(()),
            Err(cause) => return Err(cause.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn the_start_of_a_watched_program_is_reported_and_of_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let [watched, other] = ["watched", "other"].map(|name| folder.path().join(name));
        for program in [&watched, &other] {
            // By another process: a file that is open for writing is not run.
            assert!(std::process::Command::new("cp").arg("/bin/true").arg(program).status().unwrap().success());
        }
        let watch = ProgramWatch::open().unwrap();
        watch.add(&watched).unwrap();
        watch.add(&watched).unwrap();
        assert!(watch.add(&folder.path().join("not there")).is_err());
        assert!(std::process::Command::new(&other).status().unwrap().success());
        assert!(timeout(Duration::ZERO, watch.started()).await.is_err());
        assert!(std::process::Command::new(&watched).status().unwrap().success());
        watch.started().await.unwrap();
        assert!(timeout(Duration::ZERO, watch.started()).await.is_err());
    }
}
