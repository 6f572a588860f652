//! Scans the tracked files of a workspace from disk, in parallel.
//!
//! Owns the directory walk. A known tree makes it cheaper: a name that was tracked under the same rules needs no rule
//! matching, and an unchanged folder is shared, not copied. Does not depend on baselines, watches or what a difference
//! means.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tether_base::sync::lock;

use super::file_snapshot::{FolderTree, folders_below};
use super::folder_files::{FileStamp, FolderFiles};
use super::ignore_rules::IgnoreRules;
use super::path_bytes;
use super::read_dir::{self, FileKind, WorkspaceRoot};

/// More threads than this only contend for the kernel's directory cache.
const MAX_THREADS: usize = 8;
/// With fewer known folders a second thread costs more than it saves.
const MIN_FOLDERS_PER_THREAD: usize = 32;

/// A tree with more tracked files and folders is no project: its scan ends with an error.
const MAX_ENTRIES: usize = 2_000_000;

/// The tree that a scan found, and the folders that it could not read.
#[derive(Debug, Default)]
pub(super) struct ScanResult {
    pub tree: Arc<FolderTree>,
    /// Folders that could not be read; `tree` contains them as they were known.
    pub unreadable: Vec<(Arc<[u8]>, io::Error)>,
}

/// What was known before the scan.
#[derive(Clone, Copy)]
pub(super) struct KnownTree<'a> {
    pub tree: &'a Arc<FolderTree>,
    /// Whether it was read under the rules of this scan.
    pub same_rules: bool,
}

/// Scans the whole workspace.
///
/// # Errors
/// The root cannot be opened. Below it errors do not end the scan: unreadable folders are in the result, and what is
/// removed meanwhile is skipped.
pub(super) fn scan_workspace(
    root: &WorkspaceRoot,
    rules: &IgnoreRules,
    known: KnownTree<'_>,
) -> io::Result<ScanResult> {
    let queue = FolderQueue::new(thread_count(known.tree));
    let work = || {
        let mut reader = FolderReader::new(root, rules, known);
        let mut own = Vec::new();
        while let Some(folder) = queue.next(&mut own) {
            reader.read_folder(&folder, &mut own);
            if queue.count_entries(1 + reader.files.len()) > MAX_ENTRIES {
                reader.root_error = Some(too_many_entries());
                queue.end();
            }
            queue.share_half(&mut own);
        }
        reader
    };
    let mut readers = std::thread::scope(|scope| {
        let others: Vec<_> = (1..queue.threads).map(|_| scope.spawn(work)).collect();
        let mut readers = vec![work()];
        readers.extend(others.into_iter().map(|other| other.join().expect("a walking thread does not panic")));
        readers
    });
    let mut all = readers.swap_remove(0);
    for other in readers {
        all.found.extend(other.found);
        all.reused += other.reused;
        all.unreadable.extend(other.unreadable);
        all.root_error = all.root_error.or(other.root_error);
    }
    match all.root_error.take() {
        Some(error) => Err(error),
        None => Ok(all.finish()),
    }
}

fn too_many_entries() -> io::Error {
    io::Error::other(format!(
        "it has more than {MAX_ENTRIES} tracked files and folders: ignore some, or set [watch] root"
    ))
}

/// Scans `start` and everything below it on one thread. Calls `before` for each folder so that it can be watched before
/// it is read: `Ok(false)` skips the folder, an error ends the scan.
pub(super) fn scan_below<E>(
    root: &WorkspaceRoot,
    rules: &IgnoreRules,
    known: KnownTree<'_>,
    start: &[u8],
    mut before: impl FnMut(&[u8]) -> Result<bool, E>,
) -> Result<ScanResult, E> {
    let mut reader = FolderReader::new(root, rules, known);
    let mut left = vec![start.to_vec()];
    while let Some(folder) = left.pop() {
        if before(&folder)? {
            reader.read_folder(&folder, &mut left);
        } else {
            reader.keep_known(&folder, io::ErrorKind::PermissionDenied.into());
        }
    }
    if let Some(error) = reader.root_error.take() {
        reader.keep_known(b"", error);
    }
    Ok(reader.finish())
}

fn thread_count(known: &FolderTree) -> usize {
    if !known.is_empty() && known.len() < MIN_FOLDERS_PER_THREAD {
        return 1;
    }
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_THREADS))
}

/// One thread of a scan: its buffers and what it found.
struct FolderReader<'a> {
    root: &'a WorkspaceRoot,
    rules: &'a IgnoreRules,
    known: KnownTree<'a>,
    buffer: Vec<u8>,
    globs: Vec<usize>,
    names: Vec<u8>,
    files: Vec<(usize, usize, FileStamp)>,
    found: Vec<(Arc<[u8]>, Arc<FolderFiles>)>,
    reused: usize,
    unreadable: Vec<(Arc<[u8]>, io::Error)>,
    root_error: Option<io::Error>,
}

impl<'a> FolderReader<'a> {
    fn new(root: &'a WorkspaceRoot, rules: &'a IgnoreRules, known: KnownTree<'a>) -> FolderReader<'a> {
        FolderReader {
            root,
            rules,
            known,
            buffer: Vec::new(),
            globs: Vec::new(),
            names: Vec::new(),
            files: Vec::new(),
            found: Vec::new(),
            reused: 0,
            unreadable: Vec::new(),
            root_error: None,
        }
    }

    /// Reads one folder; adds its tracked sub-folders to `next`.
    fn read_folder(&mut self, rel: &[u8], next: &mut Vec<Vec<u8>>) {
        let KnownTree { tree, same_rules } = self.known;
        let before = tree.get_key_value(rel);
        let FolderReader { root, rules, buffer, globs, names, files, .. } = self;
        names.clear();
        files.clear();
        let mut unchanged = 0;
        let listed = root.list_folder(rel, buffer, |name, kind, stamp| match kind {
            FileKind::Folder => {
                let path = path_bytes::join_path(rel, name);
                if (same_rules && tree.contains_key(&path[..])) || rules.is_tracked(&path, true, globs) {
                    next.push(path);
                }
            }
            FileKind::File => {
                let old = before.and_then(|(_, folder)| folder.stamp_of(name));
                let tracked =
                    (same_rules && old.is_some()) || rules.is_tracked(&path_bytes::join_path(rel, name), false, globs);
                // It may have been removed or replaced since it was listed.
                if tracked && let Some((FileKind::File, stamp)) = stamp() {
                    unchanged += usize::from(old == Some(stamp));
                    files.push((names.len(), names.len() + name.len(), stamp));
                    names.extend_from_slice(name);
                }
            }
            FileKind::Other => {}
        });
        match (listed, before) {
            (Err(error), _) if rel.is_empty() => self.root_error = Some(error),
            // Removed, or replaced by a file or a link: not a folder any more.
            (Err(error), _) if read_dir::is_gone(&error) => {}
            (Err(error), _) => self.keep_known(rel, error),
            (Ok(()), Some((path, folder))) if unchanged == self.files.len() && unchanged == folder.len() => {
                self.reused += 1;
                self.found.push((Arc::clone(path), Arc::clone(folder)));
            }
            (Ok(()), before) => self.add_folder(rel, before.map(|(_, folder)| &**folder)),
        }
    }

    fn add_folder(&mut self, rel: &[u8], before: Option<&FolderFiles>) {
        let files = self.files.iter().map(|(start, end, stamp)| (&self.names[*start..*end], *stamp));
        let mut folder = FolderFiles::new(files.collect());
        if let Some(before) = before {
            folder.keep_hashes(before);
        }
        self.found.push((Arc::from(rel), Arc::new(folder)));
    }

    /// Keeps what was known of a folder that cannot be read.
    fn keep_known(&mut self, rel: &[u8], error: io::Error) {
        let path: Arc<[u8]> = Arc::from(rel);
        for known in folders_below(self.known.tree, rel) {
            self.reused += 1;
            self.found.push((Arc::clone(&known), Arc::clone(&self.known.tree[&known])));
        }
        if !self.known.tree.contains_key(rel) {
            self.found.push((Arc::clone(&path), Arc::default()));
        }
        self.unreadable.push((path, error));
    }

    fn finish(mut self) -> ScanResult {
        let all_known = self.reused == self.found.len() && self.reused == self.known.tree.len();
        let tree = if all_known {
            Arc::clone(self.known.tree)
        } else {
            self.found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
            Arc::new(self.found.into_iter().collect())
        };
        ScanResult { tree, unreadable: self.unreadable }
    }
}

/// Folders yet to be read. Each thread has its own stack and shares half of it when another one is idle, so that the
/// lock is taken a few times per scan and not once per folder.
struct FolderQueue {
    threads: usize,
    idle: AtomicUsize,
    /// The files and folders that all threads have found.
    entries: AtomicUsize,
    shared: Mutex<SharedFolders>,
    changed: Condvar,
}

struct SharedFolders {
    folders: Vec<Vec<u8>>,
    done: bool,
}

impl FolderQueue {
    fn new(threads: usize) -> FolderQueue {
        let shared = Mutex::new(SharedFolders { folders: vec![Vec::new()], done: false });
        FolderQueue {
            threads,
            idle: AtomicUsize::new(0),
            entries: AtomicUsize::new(0),
            shared,
            changed: Condvar::new(),
        }
    }

    /// The next folder; `None` when every thread is idle.
    fn next(&self, own: &mut Vec<Vec<u8>>) -> Option<Vec<u8>> {
        if self.entries.load(Ordering::Relaxed) > MAX_ENTRIES {
            return None;
        }
        if let Some(folder) = own.pop() {
            return Some(folder);
        }
        let mut shared = lock(&self.shared);
        // Counted under the lock: once all threads are idle, none can add folders.
        let idle = self.idle.fetch_add(1, Ordering::Relaxed) + 1;
        if idle == self.threads && shared.folders.is_empty() {
            shared.done = true;
            self.changed.notify_all();
        }
        while shared.folders.is_empty() && !shared.done {
            shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
        self.idle.fetch_sub(1, Ordering::Relaxed);
        let next = shared.folders.pop();
        own.append(&mut shared.folders);
        next
    }

    /// Counts files and folders, and returns how many all threads have found.
    fn count_entries(&self, count: usize) -> usize {
        self.entries.fetch_add(count, Ordering::Relaxed) + count
    }

    /// Ends the scan: no thread gets another folder.
    fn end(&self) {
        let mut shared = lock(&self.shared);
        shared.folders.clear();
        shared.done = true;
        self.changed.notify_all();
    }

    /// Shares the older half of the stack, whose folders are nearer to the root, if a thread is idle.
    fn share_half(&self, own: &mut Vec<Vec<u8>>) {
        if own.len() > 1 && self.idle.load(Ordering::Relaxed) > 0 {
            let half = own.drain(..own.len() / 2);
            lock(&self.shared).folders.extend(half);
            self.changed.notify_one();
        }
    }
}
