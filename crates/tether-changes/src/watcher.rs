//! Watches folders for edits (inotify through notify), with a fence that proves that no event is outstanding.
//!
//! Owns the watcher, the pending events and the fence file. Does not depend on what is tracked or what an event means.
//!
//! # Why the fence is safe
//! inotify has one queue for all watches of an instance, in order of the events, and a system call that changes a file
//! queues its event before it returns. The fence file is renamed after the request arrived, so its event is queued
//! behind the events of all writes that ended before. notify's thread delivers events in order: once the fence's event
//! has arrived, so have the others.
//!
//! Each fence waits for a name that was never used before, so neither a late event of an earlier fence nor another
//! program that touches or removes the file can be mistaken for it. inotify merges an event with the one before it when
//! both are equal and the older is still unread. A new name is never equal; for a tracked file merging loses only the
//! count, as the file's metadata is read after the merged event. `wait_for_fence` takes `&mut self`, so only one fence
//! is in flight; later requests use the next one.
//!
//! Not detected: a write of the same length whose mtime was put back while nobody watched, stores through a shared mapping
//! after the file was closed, writes through a hard link from outside the workspace, and a folder that is mounted at two
//! places of the workspace (only the last one has events).

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{ErrorKind, Event, RecommendedWatcher, RecursiveMode, Watcher};
use tempfile::TempDir;
use tether_base::clock::monotonic_ms;
use tether_base::sync::lock;
use thiserror::Error;
use tokio::sync::{Notify, watch};

use super::read_dir;

/// A fence usually takes 0.1 ms; after this long it is considered failed. In tests a full kernel queue may precede it.
const FENCE_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 10 } else { 1 });
/// For so long the watcher's thread is waited for without sleeping: it takes less time than being woken by it.
const FENCE_SPIN: Duration = Duration::from_micros(60);
/// With more pending paths than this between two requests a scan is cheaper.
const MAX_PENDING_PATHS: usize = 20_000;

/// Why events may be missed. The text completes "cold, because …".
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
    #[error("the watcher did not respond within {} s", FENCE_TIMEOUT.as_secs())]
    FenceTimeout,
    #[error("the watcher failed: {0}")]
    Watcher(String),
    #[error("no fence file can be kept in {}: {why}", dir.display())]
    NoFence { dir: PathBuf, why: String },
    #[error("the workspace is on a network drive ({0}), which does not report edits made elsewhere")]
    NetworkDrive(&'static str),
    #[error("the workspace folder was moved or removed")]
    RootGone,
}

const FENCE_PREFIX: &str = "fence-";

/// Removes the fence files that watchers of a killed process have left in `cookie_dir`. Only while no watcher has one
/// there.
pub fn remove_left_fences(cookie_dir: &Path) {
    let entries = fs::read_dir(cookie_dir).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(FENCE_PREFIX)) {
        // What cannot be removed is only left over.
        let _ = fs::remove_dir_all(entry.path());
    }
}

/// What has happened to a path since the last fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PathEvent {
    /// Its content was written.
    pub written: bool,
    /// It was created, removed or renamed: a folder of that name may be a different one.
    pub moved: bool,
    /// When the last of it was noticed: [`monotonic_ms`].
    pub noticed_at_ms: u64,
}

/// Events by absolute path.
pub(super) type PathEvents = HashMap<PathBuf, PathEvent>;

/// A set of watched folders. Dropping it removes the watches and the fence file.
pub(super) struct WorkspaceWatcher {
    watcher: RecommendedWatcher,
    collector: Arc<EventCollector>,
    /// The folder that contains only the fence file.
    fence_dir: TempDir,
    /// How often the fence file was renamed; its name is this number.
    fence_number: u64,
}

/// Collects events on notify's thread until the next fence.
struct EventCollector {
    /// As it is named in events.
    fence_dir: PathBuf,
    root: PathBuf,
    pending: Mutex<PendingEvents>,
    fence_passed: Notify,
    hints: watch::Sender<u64>,
}

#[derive(Default)]
struct PendingEvents {
    events: PathEvents,
    error: Option<WatchError>,
    /// The name that the fence in flight waits for.
    awaited: Option<PathBuf>,
}

impl WorkspaceWatcher {
    /// Starts a watcher without watches, with its fence file in a new folder in `cookie_dir`.
    pub(crate) fn new(
        root: &Path,
        cookie_dir: &Path,
        hints: watch::Sender<u64>,
    ) -> Result<WorkspaceWatcher, WatchError> {
        let fence_error =
            |error: io::Error| WatchError::NoFence { dir: cookie_dir.to_path_buf(), why: error.to_string() };
        // Events contain the canonical path.
        let parent = cookie_dir.canonicalize().map_err(fence_error)?;
        let fence_dir = tempfile::Builder::new().prefix(FENCE_PREFIX).tempdir_in(parent).map_err(fence_error)?;
        File::create(fence_dir.path().join("0")).map_err(fence_error)?;
        let collector = Arc::new(EventCollector {
            fence_dir: fence_dir.path().to_path_buf(),
            root: root.to_path_buf(),
            pending: Mutex::default(),
            fence_passed: Notify::new(),
            hints,
        });
        let on_event = Arc::clone(&collector);
        let watcher = notify::recommended_watcher(move |event| on_event.collect_event(event));
        let mut watcher = watcher.map_err(|error| watch_error(&error))?;
        watcher.watch(fence_dir.path(), RecursiveMode::NonRecursive).map_err(|error| watch_error(&error))?;
        Ok(WorkspaceWatcher { watcher, collector, fence_dir, fence_number: 0 })
    }

    /// Watches one folder. Watching it again is harmless, and necessary when it may have been replaced. `false` when it
    /// is gone or may not be read.
    pub(crate) fn watch_folder(&mut self, folder: &Path) -> Result<bool, WatchError> {
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
    pub(crate) fn unwatch_folder(&mut self, folder: &Path) {
        // On an error the kernel has already dropped the watch with the folder.
        let _ = self.watcher.unwatch(folder);
    }

    /// Waits until the events of all writes that ended before the call have arrived; returns the events since the last
    /// fence.
    ///
    /// Not cancel-safe: the notification of a dropped fence may end the next wait too early. The tracker's task always
    /// awaits it to the end.
    pub(crate) async fn wait_for_fence(&mut self) -> Result<PathEvents, WatchError> {
        self.rename_fence_file().map_err(|error| {
            lock(&self.collector.pending).awaited = None;
            WatchError::NoFence { dir: self.fence_dir.path().to_path_buf(), why: error.to_string() }
        })?;
        let begun = Instant::now();
        while !self.collector.has_passed() && begun.elapsed() < FENCE_SPIN {
            std::thread::yield_now();
        }
        let passed = tokio::time::timeout(FENCE_TIMEOUT, self.collector.fence_passed.notified()).await;
        passed.map_err(|_| WatchError::FenceTimeout)?;
        let mut pending = lock(&self.collector.pending);
        match pending.error.clone() {
            Some(error) => Err(error),
            None => Ok(std::mem::take(&mut pending.events)),
        }
    }

    /// Renames the fence file to the next number.
    fn rename_fence_file(&mut self) -> io::Result<()> {
        let name = |number: u64| self.fence_dir.path().join(number.to_string());
        let (from, to) = (name(self.fence_number), name(self.fence_number + 1));
        self.fence_number += 1;
        lock(&self.collector.pending).awaited = Some(to.clone());
        match fs::rename(&from, &to) {
            // Removed by a cleaner of temporary files: creating it under the new name causes an event, too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => File::create(&to).map(drop),
            renamed => renamed,
        }
    }
}

impl EventCollector {
    /// Whether the fence in flight has passed; `false` while an event is being collected.
    fn has_passed(&self) -> bool {
        self.pending.try_lock().is_ok_and(|pending| pending.awaited.is_none())
    }

    /// Called on notify's thread for each event: must not block for long.
    fn collect_event(&self, event: notify::Result<Event>) {
        let mut pending = lock(&self.pending);
        let was_quiet = pending.events.is_empty() && pending.error.is_none();
        match event {
            Ok(event) if event.need_rescan() => pending.error = Some(WatchError::Overflow),
            Ok(event) => self.add_event(&mut pending, event),
            Err(error) => pending.error = Some(watch_error(&error)),
        }
        // The fence's event may be among the lost ones: end its wait.
        if pending.error.is_some() && pending.awaited.take().is_some() {
            self.fence_passed.notify_one();
        }
        // One hint per request, not per event: the next one follows the next fence.
        if was_quiet && !(pending.events.is_empty() && pending.error.is_none()) {
            self.hints.send_modify(|count| *count += 1);
        }
    }

    fn add_event(&self, pending: &mut PendingEvents, event: Event) {
        let Some((written, moved)) = classify_event(event.kind) else { return };
        let noticed_at_ms = monotonic_ms();
        for path in event.paths {
            if path.starts_with(&self.fence_dir) {
                if pending.awaited.take_if(|awaited| *awaited == path).is_some() {
                    self.fence_passed.notify_one();
                }
            } else if path == self.root && moved {
                pending.error = Some(WatchError::RootGone);
            } else if pending.events.len() < MAX_PENDING_PATHS || pending.events.contains_key(&path) {
                let entry = pending.events.entry(path).or_default();
                entry.written |= written;
                entry.moved |= moved;
                entry.noticed_at_ms = noticed_at_ms;
            } else {
                pending.error = Some(WatchError::Overflow);
            }
        }
    }
}

/// Whether an event is a write, or a move; `None` for reads, which change nothing.
fn classify_event(kind: EventKind) -> Option<(bool, bool)> {
    Some(match kind {
        // A write through a mapping has no event but the close.
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => (false, false),
        EventKind::Access(_) => return None,
        EventKind::Modify(ModifyKind::Data(_)) => (true, false),
        EventKind::Modify(ModifyKind::Metadata(_)) => (false, false),
        EventKind::Modify(_) | EventKind::Create(_) | EventKind::Remove(_) | EventKind::Any | EventKind::Other => {
            (false, true)
        }
    })
}

fn watch_error(error: &notify::Error) -> WatchError {
    match error.kind {
        ErrorKind::MaxFilesWatch => WatchError::NoWatchesLeft,
        // Only `inotify_init` reports this here; a process without free descriptors fails elsewhere first.
        ErrorKind::Io(ref error) if read_dir::is_limit_error(error) => WatchError::NoInstancesLeft,
        _ => WatchError::Watcher(error.to_string()),
    }
}

/// Refuses file systems that do not report edits made by other machines.
#[cfg(target_os = "linux")]
pub(super) fn refuse_network_drive(root: &Path) -> Result<(), WatchError> {
    // Source: linux/magic.h, and the file systems' own sources for numbers that it does not list.
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
    async fn a_fence_returns_every_write_that_ended_before_it_and_no_reads() {
        let (folder, mut watch) = watched();
        let path = folder.path().join("ws/file");
        for number in 0..500 {
            fs::write(&path, "text").unwrap();
            fs::read(&path).unwrap();
            let events = watch.wait_for_fence().await.unwrap();
            assert!(events[&path].written && events.len() == 1, "{number}: {events:?}");
            assert!(watch.wait_for_fence().await.unwrap().is_empty());
        }
        assert_eq!(*watch.collector.hints.borrow(), 500, "one hint for the events of each request");
    }

    #[tokio::test]
    async fn more_events_than_the_kernels_queue_holds_are_an_overflow_at_the_next_fence() {
        let (folder, mut watch) = watched();
        let queue = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let collector = Arc::clone(&watch.collector);
        // notify's thread waits for the lock, so that the kernel's queue overflows.
        let stalled = lock(&collector.pending);
        let (one, other) = (folder.path().join("ws/one"), folder.path().join("ws/other"));
        for _ in 0..queue.trim().parse::<usize>().unwrap() / 2 {
            fs::write(&one, "").unwrap();
            fs::write(&other, "").unwrap();
        }
        drop(stalled);
        assert!(matches!(watch.wait_for_fence().await, Err(WatchError::Overflow)));
    }

    #[tokio::test]
    async fn a_fence_file_that_others_write_or_remove_still_works() {
        let (folder, mut watch) = watched();
        for number in 0..200 {
            let fence = watch.fence_dir.path().join(watch.fence_number.to_string());
            match number % 3 {
                0 => fs::remove_file(&fence).unwrap(),
                1 => File::options().append(true).open(&fence).unwrap().set_len(number).unwrap(),
                _ => {}
            }
            let path = folder.path().join(format!("ws/{number}"));
            fs::write(&path, "text").unwrap();
            assert!(watch.wait_for_fence().await.unwrap().contains_key(&path), "{number}");
        }
        fs::remove_dir_all(watch.fence_dir.path()).unwrap();
        assert!(matches!(watch.wait_for_fence().await, Err(WatchError::NoFence { .. })));
    }

    #[tokio::test]
    async fn a_missing_folder_is_not_watched_and_causes_no_error() {
        let (folder, mut watch) = watched();
        assert!(!watch.watch_folder(&folder.path().join("ws/gone")).unwrap());
        assert!(watch.wait_for_fence().await.unwrap().is_empty());
    }
}
