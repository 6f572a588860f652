//! The warm path's ears: the kernel's news of edits, and the fence that proves that none is outstanding.
//!
//! Owns the watcher, the pile of touched paths and the fence file. Must not know what is tracked or what a touch means.
//!
//! # Why the fence is safe
//! inotify has one queue for all watches of an instance, in order of the events, and a system call that changes a file
//! queues its event before it returns. We rename the fence file after the question was asked, so that news stands
//! behind the news of every write that ended before. notify's thread hands events on in order: once the fence's has
//! come, so have the others.
//!
//! Each fence waits for a name that was never used before, so neither a late event of an earlier fence nor another
//! program that touches or removes the file can pass for it. inotify merges an event with the one before it when both
//! are alike and the older is still unread; a new name is like no other, and of a tracked file the merging loses only
//! a count: whoever reads the merged event looks at the file afterwards. `fence` takes `&mut self`, so there is one in
//! flight at a time, and whoever asks meanwhile gets the next.
//!
//! What no watch sees: stores through a shared mapping after the file was closed, writes through a hard link from
//! outside the workspace, and a folder that is mounted at two places of it (it tells its news at the last one only).

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{ErrorKind, Event, RecommendedWatcher, RecursiveMode, Watcher};
use tempfile::TempDir;
use thiserror::Error;
use tokio::sync::{Notify, watch};

use super::read_dir;

/// A fence takes a tenth of a millisecond; one that takes this long will not come. In tests it may stand behind as much as
/// the kernel's queue holds.
const FENCE_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 10 } else { 1 });
/// More touched paths than this between two questions are not worth keeping: a walk is cheaper.
const MAX_PENDING_PATHS: usize = 20_000;

/// Why the watch no longer tells the truth. Its text completes "cold, because …".
#[derive(Clone, Debug, Error)]
pub(super) enum WatchError {
    #[error("the watches are still being set")]
    SettingUp,
    #[error("the kernel has no inotify watches left for this user")]
    NoWatchesLeft,
    #[error("the kernel has no inotify instances left for this user")]
    NoInstancesLeft,
    #[error("there were more edits at once than the kernel's queue holds")]
    Overflow,
    #[error("the watcher did not answer within {} s", FENCE_TIMEOUT.as_secs())]
    FenceTimeout,
    #[error("the watcher failed: {0}")]
    Watcher(String),
    #[error("no fence file can be kept in {}: {why}", dir.display())]
    NoFence { dir: PathBuf, why: String },
    #[error("the workspace lies on a network drive ({0}), which does not tell of edits made elsewhere")]
    NetworkDrive(&'static str),
    #[error("the workspace folder was moved or removed")]
    RootGone,
}

/// What is known to have happened to a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PathEvent {
    /// Its content was written.
    pub written: bool,
    /// It came, went or was renamed: a folder of that name may be another one.
    pub moved: bool,
}

/// Absolute paths, and what happened to them.
pub(super) type PathEvents = HashMap<PathBuf, PathEvent>;

/// A set of watched folders. Dropping it takes the watches away.
pub(super) struct WorkspaceWatcher {
    watcher: RecommendedWatcher,
    collector: Arc<EventCollector>,
    /// The fence file's own folder, and how often it was renamed; its name is that number.
    fences: TempDir,
    passed: u64,
}

struct EventCollector {
    /// As events name them.
    fences: PathBuf,
    root: PathBuf,
    pending: Mutex<PendingEvents>,
    passed: Notify,
    hints: watch::Sender<u64>,
}

#[derive(Default)]
struct PendingEvents {
    touched: PathEvents,
    error: Option<WatchError>,
    /// The name that the fence in flight waits for.
    awaited: Option<PathBuf>,
}

impl WorkspaceWatcher {
    /// Starts a watcher that watches nothing yet; its fence file lies in `cookie_dir`.
    pub fn new(root: &Path, cookie_dir: &Path, hints: watch::Sender<u64>) -> Result<WorkspaceWatcher, WatchError> {
        let no_cookie =
            |error: io::Error| WatchError::NoFence { dir: cookie_dir.to_path_buf(), why: error.to_string() };
        // The kernel's own name for the folder, as events carry it.
        let parent = cookie_dir.canonicalize().map_err(no_cookie)?;
        let fences = tempfile::Builder::new().prefix("fence-").tempdir_in(parent).map_err(no_cookie)?;
        File::create(fences.path().join("0")).map_err(no_cookie)?;
        let (path, root) = (fences.path().to_path_buf(), root.to_path_buf());
        let inbox =
            EventCollector { fences: path.clone(), root, pending: Mutex::default(), passed: Notify::new(), hints };
        let inbox = Arc::new(inbox);
        let ear = Arc::clone(&inbox);
        let mut watcher =
            notify::recommended_watcher(move |event| ear.collect_event(event)).map_err(|error| watch_error(&error))?;
        watcher.watch(&path, RecursiveMode::NonRecursive).map_err(|error| watch_error(&error))?;
        Ok(WorkspaceWatcher { watcher, collector: inbox, fences, passed: 0 })
    }

    /// Watches one folder; again is harmless, and right after it may have been replaced. `false` when it is gone or may
    /// not be read.
    pub fn watch_folder(&mut self, folder: &Path) -> Result<bool, WatchError> {
        match self.watcher.watch(folder, RecursiveMode::NonRecursive) {
            Ok(()) => Ok(true),
            Err(error) => match error.kind {
                ErrorKind::PathNotFound => Ok(false),
                ErrorKind::Io(ref error) if read_dir::is_path_error(error) => Ok(false),
                _ => Err(watch_error(&error)),
            },
        }
    }

    /// Stops watching one folder, if it was watched.
    pub fn unwatch_folder(&mut self, folder: &Path) {
        // Nothing to do about a failure: the kernel has dropped the watch with the folder.
        let _ = self.watcher.unwatch(folder);
    }

    /// Waits until every write that ended before the call has been heard; gives what was touched since the last fence.
    ///
    /// Not cancel-safe: what a dropped fence leaves in flight may wake the next one too early. The tracker's task awaits
    /// it to the end.
    pub async fn wait_for_fence(&mut self) -> Result<PathEvents, WatchError> {
        self.rename_fence_file().map_err(|error| {
            self.collector.lock_pending().awaited = None;
            WatchError::NoFence { dir: self.fences.path().to_path_buf(), why: error.to_string() }
        })?;
        let passed = tokio::time::timeout(FENCE_TIMEOUT, self.collector.passed.notified()).await;
        passed.map_err(|_| WatchError::FenceTimeout)?;
        let mut pile = self.collector.lock_pending();
        match pile.error.clone() {
            Some(lost) => Err(lost),
            None => Ok(std::mem::take(&mut pile.touched)),
        }
    }

    /// Gives the fence file its next name.
    fn rename_fence_file(&mut self) -> io::Result<()> {
        let name = |number: u64| self.fences.path().join(number.to_string());
        let (from, to) = (name(self.passed), name(self.passed + 1));
        self.passed += 1;
        self.collector.lock_pending().awaited = Some(to.clone());
        match fs::rename(&from, &to) {
            // Swept away by a cleaner of old files: a new one under the new name tells as much.
            Err(error) if error.kind() == io::ErrorKind::NotFound => File::create(&to).map(drop),
            renamed => renamed,
        }
    }
}

impl EventCollector {
    fn lock_pending(&self) -> MutexGuard<'_, PendingEvents> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs on notify's thread for each event: it may only collect.
    fn collect_event(&self, event: notify::Result<Event>) {
        let mut pile = self.lock_pending();
        let was_quiet = pile.touched.is_empty() && pile.error.is_none();
        match event {
            Ok(event) if event.need_rescan() => pile.error = Some(WatchError::Overflow),
            Ok(event) => self.add_event(&mut pile, event),
            Err(error) => pile.error = Some(watch_error(&error)),
        }
        // The fence's event may be among what was lost: nobody should wait for it.
        if pile.error.is_some() && pile.awaited.take().is_some() {
            self.passed.notify_one();
        }
        // Once a question, not once an event: the next hint follows the next fence.
        if was_quiet && !(pile.touched.is_empty() && pile.error.is_none()) {
            self.hints.send_modify(|count| *count += 1);
        }
    }

    fn add_event(&self, pile: &mut PendingEvents, event: Event) {
        let Some(touch) = classify_event(event.kind) else { return };
        for path in event.paths {
            if path.starts_with(&self.fences) {
                if pile.awaited.take_if(|awaited| *awaited == path).is_some() {
                    self.passed.notify_one();
                }
            } else if path == self.root && touch.moved {
                pile.error = Some(WatchError::RootGone);
            } else if pile.touched.len() < MAX_PENDING_PATHS || pile.touched.contains_key(&path) {
                let entry = pile.touched.entry(path).or_default();
                entry.written |= touch.written;
                entry.moved |= touch.moved;
            } else {
                pile.error = Some(WatchError::Overflow);
            }
        }
    }
}

/// What an event says; `None` for reading, which changes nothing.
fn classify_event(kind: EventKind) -> Option<PathEvent> {
    let (written, moved) = match kind {
        // A file that was written through a mapping tells of it only when it is closed.
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => (false, false),
        EventKind::Access(_) => return None,
        EventKind::Modify(ModifyKind::Data(_)) => (true, false),
        EventKind::Modify(ModifyKind::Metadata(_)) => (false, false),
        EventKind::Modify(_) | EventKind::Create(_) | EventKind::Remove(_) | EventKind::Any | EventKind::Other => {
            (false, true)
        }
    };
    Some(PathEvent { written, moved })
}

fn watch_error(error: &notify::Error) -> WatchError {
    match error.kind {
        ErrorKind::MaxFilesWatch => WatchError::NoWatchesLeft,
        // Only `inotify_init` runs out of descriptors here: a process that has none left fails in many other places.
        ErrorKind::Io(ref error) if read_dir::is_limit_error(error) => WatchError::NoInstancesLeft,
        _ => WatchError::Watcher(error.to_string()),
    }
}

/// Drives that do not tell of edits made by other machines.
#[cfg(target_os = "linux")]
pub(super) fn refuse_network_drive(root: &Path) -> Result<(), WatchError> {
    // linux/magic.h, and the file systems' own sources for those that are not in it.
    let name = match rustix::fs::statfs(root).map(|about| about.f_type as u32) {
        Ok(0x6969) => "nfs",
        Ok(0x517B | 0xFE53_4D42 | 0xFF53_4D42) => "smb",
        Ok(0x0102_1997) => "9p",
        Ok(0x6573_5546) => "fuse",
        Ok(0x00C3_6400) => "ceph",
        Ok(0x5346_414F | 0x6B41_4653) => "afs",
        Ok(0x786F_4256) => "vboxsf",
        Ok(0x0BD0_0BD0) => "lustre",
        Ok(0x7375_7245) => "coda",
        Ok(_) | Err(_) => return Ok(()),
    };
    Err(WatchError::NetworkDrive(name))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn refuse_network_drive(_root: &Path) -> Result<(), WatchError> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs;

    fn watched() -> (tempfile::TempDir, WorkspaceWatcher) {
        let folder = tempfile::tempdir().unwrap();
        let (root, cookies) = (folder.path().join("ws"), folder.path().join("cookies"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&cookies).unwrap();
        let mut watch = WorkspaceWatcher::new(&root, &cookies, tokio::sync::watch::Sender::new(0)).unwrap();
        assert!(watch.watch_folder(&root).unwrap());
        (folder, watch)
    }

    #[tokio::test]
    async fn a_fence_brings_every_write_that_ended_before_it_and_reading_is_no_news() {
        let (folder, mut watch) = watched();
        let path = folder.path().join("ws/file");
        for number in 0..500 {
            fs::write(&path, "text").unwrap();
            fs::read(&path).unwrap();
            let touched = watch.wait_for_fence().await.unwrap();
            assert!(touched[&path].written && touched.len() == 1, "{number}: {touched:?}");
            assert!(watch.wait_for_fence().await.unwrap().is_empty());
        }
        assert_eq!(*watch.collector.hints.borrow(), 500, "one hint for each question's worth of news");
    }

    #[tokio::test]
    async fn more_news_than_the_kernels_queue_holds_is_an_overflow_at_the_next_fence() {
        let (folder, mut watch) = watched();
        let queue = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let inbox = Arc::clone(&watch.collector);
        // notify's thread waits for the pile, so that the kernel's queue really runs over.
        let stalled = inbox.lock_pending();
        let (one, other) = (folder.path().join("ws/one"), folder.path().join("ws/other"));
        for _ in 0..queue.trim().parse::<usize>().unwrap() / 2 {
            fs::write(&one, "").unwrap();
            fs::write(&other, "").unwrap();
        }
        drop(stalled);
        assert!(matches!(watch.wait_for_fence().await, Err(WatchError::Overflow)));
    }

    #[tokio::test]
    async fn a_fence_file_that_others_touch_or_sweep_away_still_proves_what_it_should() {
        let (folder, mut watch) = watched();
        for number in 0..200 {
            let fence = watch.fences.path().join(watch.passed.to_string());
            match number % 3 {
                0 => fs::remove_file(&fence).unwrap(),
                1 => File::options().append(true).open(&fence).unwrap().set_len(number).unwrap(),
                _ => {}
            }
            let path = folder.path().join(format!("ws/{number}"));
            fs::write(&path, "text").unwrap();
            assert!(watch.wait_for_fence().await.unwrap().contains_key(&path), "{number}");
        }
        fs::remove_dir_all(watch.fences.path()).unwrap();
        assert!(matches!(watch.wait_for_fence().await, Err(WatchError::NoFence { .. })));
    }

    #[tokio::test]
    async fn a_folder_that_is_gone_is_not_watched_and_harms_nothing() {
        let (folder, mut watch) = watched();
        assert!(!watch.watch_folder(&folder.path().join("ws/gone")).unwrap());
        assert!(watch.wait_for_fence().await.unwrap().is_empty());
    }
}
