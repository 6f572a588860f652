//! Reports which of a few files were written, by watching their folders.
//!
//! A hint, not a proof: where folders cannot be watched, or on a network drive, nothing is reported.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use tether_base::sync::lock;
use tokio::sync::Notify;

/// Files in more folders are not watched.
const MAX_FOLDERS: usize = 256;

/// A few files that are watched. Dropping it ends that.
#[derive(Default)]
pub struct WrittenFiles {
    /// None: nothing is watched.
    watcher: Option<RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
    seen: Arc<SeenWrites>,
}

/// What notify's thread has seen.
#[derive(Default)]
struct SeenWrites {
    files: Mutex<BTreeSet<PathBuf>>,
    written: Mutex<BTreeSet<PathBuf>>,
    added: Notify,
}

impl WrittenFiles {
    /// Watches these files (absolute paths without links), and no others.
    pub fn watch(&mut self, files: BTreeSet<PathBuf>) {
        let folders: BTreeSet<PathBuf> =
            files.iter().filter_map(|file| Some(file.parent()?.to_owned())).take(MAX_FOLDERS).collect();
        *lock(&self.seen.files) = files;
        if folders == self.folders {
            return;
        }
        if folders.is_empty() {
            self.watcher = None;
        } else if let Err(cause) = self.set_folders(&folders) {
            tracing::debug!("edits of files with breakpoints are not noticed: {cause}");
        }
        self.folders = folders;
    }

    fn set_folders(&mut self, folders: &BTreeSet<PathBuf>) -> notify::Result<()> {
        let watcher = match &mut self.watcher {
            Some(watcher) => watcher,
            None => {
                let seen = Arc::clone(&self.seen);
                self.watcher.insert(notify::recommended_watcher(move |event| seen.record(event))?)
            }
        };
        for gone in self.folders.difference(folders) {
            // Fails when the folder was removed.
            let _ = watcher.unwatch(gone);
        }
        // One that cannot be watched keeps no other from being.
        let failed = folders.difference(&self.folders).filter_map(|new| watch_folder(watcher, new).err());
        failed.last().map_or(Ok(()), Err)
    }

    /// Waits for files that were written since the last time. Cancel-safe.
    pub async fn next(&self) -> BTreeSet<PathBuf> {
        loop {
            let written = std::mem::take(&mut *lock(&self.seen.written));
            if !written.is_empty() {
                return written;
            }
            self.seen.added.notified().await;
        }
    }
}

fn watch_folder(watcher: &mut RecommendedWatcher, folder: &Path) -> notify::Result<()> {
    watcher.watch(folder, RecursiveMode::NonRecursive)
}

impl SeenWrites {
    fn record(&self, event: notify::Result<Event>) {
        // A file that is written in place is complete once it is closed.
        let is_written = |kind: &EventKind| {
            let closed = EventKind::Access(AccessKind::Close(AccessMode::Write));
            *kind == closed || matches!(kind, EventKind::Modify(ModifyKind::Name(_)))
        };
        let Some(event) = event.ok().filter(|event| is_written(&event.kind)) else { return };
        let files = lock(&self.files);
        let written: Vec<PathBuf> = event.paths.into_iter().filter(|path| files.contains(path)).collect();
        drop(files);
        if !written.is_empty() {
            lock(&self.written).extend(written);
            self.added.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn files_that_are_written_or_replaced_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let path = |name: &str| root.join(name);
        for name in ["a.js", "b.js", "other.js"] {
            std::fs::write(path(name), "1").unwrap();
        }
        let mut files = WrittenFiles::default();
        let next =
            async |files: &WrittenFiles| tokio::time::timeout(Duration::from_secs(10), files.next()).await.unwrap();
        files.watch(BTreeSet::from([path("a.js"), path("b.js")]));
        std::fs::write(path("other.js"), "2").unwrap();
        std::fs::write(path("a.js"), "2").unwrap();
        assert_eq!(next(&files).await, BTreeSet::from([path("a.js")]));
        std::fs::write(path("b.js.tmp"), "2").unwrap();
        std::fs::rename(path("b.js.tmp"), path("b.js")).unwrap();
        assert_eq!(next(&files).await, BTreeSet::from([path("b.js")]));
        files.watch(BTreeSet::from([path("other.js")]));
        std::fs::write(path("a.js"), "3").unwrap();
        std::fs::write(path("other.js"), "3").unwrap();
        assert_eq!(next(&files).await, BTreeSet::from([path("other.js")]));
        files.watch(BTreeSet::new());
        assert!(files.watcher.is_none());
    }
}
