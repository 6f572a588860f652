//! A real workspace on disk, and an independent listing of its tracked files and their differences.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use tether_changes::{ChangeCriterion, ChangeReport, ChangeTracker, CheckMethod, FileChangeKind, TrackerOptions};

/// mtime in seconds and nanoseconds, size, inode.
type Seen = (i64, i64, u64, u64);
/// By path, which is UTF-8 here.
pub type Files = BTreeMap<String, Seen>;

pub struct Workspace {
    pub root: PathBuf,
    pub cookies: TempDir,
    _folder: TempDir,
}

impl Workspace {
    pub fn new() -> Workspace {
        Workspace::below(&std::env::temp_dir())
    }

    fn below(base: &Path) -> Workspace {
        let make = || tempfile::tempdir_in(base).unwrap();
        let folder = make();
        let root = folder.path().canonicalize().unwrap();
        Workspace { root, cookies: make(), _folder: folder }
    }

    /// `folders` folders with ten files each, four levels deep, and something to ignore.
    pub fn with_folders(folders: usize) -> Workspace {
        Workspace::new().filled(folders)
    }

    /// As [`Workspace::with_folders`], at a path that other users can reach.
    pub fn reachable(folders: usize) -> Workspace {
        Workspace::below(Path::new("/tmp")).filled(folders)
    }

    fn filled(self, folders: usize) -> Workspace {
        let workspace = self;
        for folder in 0..folders {
            let path = workspace.root.join(format!("p{}/m{}/f{folder}", folder / 100, folder / 10));
            fs::create_dir_all(&path).unwrap();
            (0..10).for_each(|file| fs::write(path.join(format!("s{file}.ts")), "let x = 1;\n").unwrap());
        }
        workspace.write("node_modules/lib/index.js", "x");
        workspace.write(".devtoolsignore", "*.log\n");
        workspace
    }

    pub fn path(&self, rel: &str) -> PathBuf {
        self.root.join(rel)
    }

    pub fn write(&self, rel: &str, text: &str) {
        fs::create_dir_all(self.path(rel).parent().unwrap()).unwrap();
        fs::write(self.path(rel), text).unwrap();
    }

    /// Returns once new writes get a later mtime than all earlier ones, also in milliseconds, in which snapshots count.
    pub fn tick(&self) {
        let milliseconds = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
        let now = milliseconds(SystemTime::now());
        let probe = self.cookies.path().join("tick");
        let stamped = || {
            fs::write(&probe, "").unwrap();
            milliseconds(probe.metadata().unwrap().modified().unwrap())
        };
        while stamped() <= now {
            std::thread::yield_now();
        }
    }

    pub fn start(&self, confirm: ChangeCriterion) -> ChangeTracker {
        let (root, cookie_dir) = (self.root.clone(), self.cookies.path().to_path_buf());
        ChangeTracker::start(TrackerOptions { root, cookie_dir, criterion: confirm, derived: Default::default() })
    }

    /// A tracker with its watches set, and the present workspace as the baseline.
    pub async fn watched(&self, confirm: ChangeCriterion) -> ChangeTracker {
        let tracker = self.start(confirm);
        warm(&tracker).await;
        tracker.set_baseline(tracker.take_snapshot().await.unwrap()).await;
        tracker
    }

    /// The tracked files at and below `rel`, read with std only; the tests' ignore rules are written out here.
    pub fn look(&self, rel: &Path, into: &mut Files) {
        let ignored = |name: &str| ["node_modules", "dist", ".git", ".devtools"].contains(&name);
        let hidden = rel.components().any(|part| ignored(&part.as_os_str().to_string_lossy()));
        let Ok(about) = fs::symlink_metadata(self.root.join(rel)) else { return };
        if hidden || rel.extension().is_some_and(|end| end == "vsix" || end == "log") {
            return;
        }
        if about.is_dir() {
            for entry in fs::read_dir(self.root.join(rel)).unwrap() {
                self.look(&rel.join(entry.unwrap().file_name()), into);
            }
        } else if about.is_file() || about.is_symlink() {
            into.insert(
                rel.to_str().unwrap().to_owned(),
                (about.mtime(), about.mtime_nsec(), about.size(), about.ino()),
            );
        }
    }
}

/// Waits until the watches are set; the tracker's notification drives the wait.
pub async fn warm(tracker: &ChangeTracker) {
    let mut hints = tracker.subscribe_hints();
    hints.wait_for(|count| *count > 0).await.unwrap();
}

/// Checks that must be answered from the watch.
///
/// A fence has a deadline of a second, which a busy machine may exceed. A few times that is accepted: the report says
/// that it came from a scan, and the next check waits until the watches are set again. The fence of a snapshot may be
/// late as well; the check after it may find the watches being set again.
#[derive(Default)]
pub struct Vouched {
    late: Cell<usize>,
}

/// More late fences in one test than this are a defect.
const MOST_LATE: usize = 5;

impl Vouched {
    pub async fn check(&self, tracker: &ChangeTracker) -> ChangeReport {
        let check = tracker.compare_with_baseline().await.unwrap();
        if let CheckMethod::Cold { because } = &check.method {
            self.late.set(self.late.get() + 1);
            let late = ["did not respond within", "still being set"].iter().any(|reason| because.contains(reason));
            assert!(late && self.late.get() <= MOST_LATE, "cold for the {}. time: {because}", self.late.get());
            warm_again(tracker).await;
        }
        check
    }
}

/// Waits until a lost watch was replaced; checks trigger the replacement.
pub async fn warm_again(tracker: &ChangeTracker) {
    let mut hints = tracker.subscribe_hints();
    hints.mark_unchanged();
    while tracker.compare_with_baseline().await.unwrap().method != CheckMethod::Warm {
        let _ = tokio::time::timeout(Duration::from_millis(300), hints.changed()).await;
    }
}

/// The changes as `M path`, `A path`, `R path`.
pub fn shown(check: &ChangeReport) -> Vec<String> {
    let letter = |kind| match kind {
        FileChangeKind::Modified => 'M',
        FileChangeKind::Added => 'A',
        FileChangeKind::Removed => 'R',
    };
    check.changed.iter().map(|change| format!("{} {}", letter(change.kind), change.path.display())).collect()
}

/// How `now` differs from `then`, in the same format and order.
pub fn difference(then: &Files, now: &Files) -> Vec<String> {
    let mut changes: BTreeMap<&str, char> = BTreeMap::new();
    for (path, seen) in now {
        match then.get(path) {
            Some(before) if before == seen => {}
            before => {
                changes.insert(path, if before.is_some() { 'M' } else { 'A' });
            }
        }
    }
    changes.extend(then.keys().filter(|path| !now.contains_key(*path)).map(|path| (path.as_str(), 'R')));
    changes.into_iter().map(|(path, kind)| format!("{kind} {path}")).collect()
}

/// Removes `rel` and everything below it.
pub fn forget(files: &mut Files, rel: &str) {
    let below = format!("{rel}/");
    let gone = files.range(rel.to_owned()..).map(|(path, _)| path).take_while(|path| path.starts_with(rel));
    let gone: Vec<_> = gone.filter(|path| *path == rel || path.starts_with(&below)).cloned().collect();
    gone.iter().for_each(|path| {
        files.remove(path);
    });
}

/// Makes the present workspace the baseline.
pub async fn baseline(tracker: &ChangeTracker) {
    let snapshot: Arc<_> = tracker.take_snapshot().await.unwrap();
    tracker.set_baseline(snapshot).await;
}
