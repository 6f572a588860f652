//! The cold path: reads the tracked files of a workspace from disk, in parallel.
//!
//! Owns the walk. What is known from before makes it cheap: a name that was tracked under the same rules needs no rule
//! matching, and a folder that is as it was is shared, not copied. Must not know baselines, watches or what a
//! difference means.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::file_snapshot::FolderTree;
use super::folder_files::{FileStamp, FolderFiles};
use super::ignore_rules::IgnoreRules;
use super::path_bytes;
use super::read_dir::{self, FileKind, WorkspaceRoot};

/// More threads than this only wait for each other in the kernel's directory cache.
const MAX_THREADS: usize = 8;
/// Below so many known folders a second thread costs more than it saves.
const MIN_FOLDERS_PER_THREAD: usize = 32;

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct ScanResult {
    pub tree: Arc<FolderTree>,
    /// Folders that could not be read; what was known of them stands.
    pub unreadable: Vec<(Arc<[u8]>, io::Error)>,
}

/// What was known before the walk.
#[derive(Clone, Copy)]
pub(super) struct KnownTree<'a> {
    pub tree: &'a Arc<FolderTree>,
    /// Whether it was read under the rules of this walk.
    pub same_rules: bool,
}

/// Reads the whole workspace.
///
/// # Errors
/// The root cannot be opened. Below it nothing stops the walk: unreadable folders are told, what vanishes is gone.
pub(super) fn scan_workspace(
    root: &WorkspaceRoot,
    rules: &IgnoreRules,
    known: KnownTree<'_>,
) -> io::Result<ScanResult> {
    let queue = FolderQueue::new(thread_count(known.tree));
    let work = || {
        let mut reader = FolderReader::new(root, rules, known);
        let mut mine = Vec::new();
        while let Some(folder) = queue.next(&mut mine) {
            reader.read_folder(&folder, &mut mine);
            queue.share_half(&mut mine);
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
    all.merge_readers(readers);
    match all.root_error.take() {
        Some(error) => Err(error),
        None => Ok(all.finish()),
    }
}

/// Reads `start` and what is below it, one folder after the other, calling `before` ahead of each folder so that it is
/// watched before it is read. `Ok(false)` from it leaves the folder out, an error ends the walk.
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

/// One thread's reading: scratch space, and what it found.
struct FolderReader<'a> {
    root: &'a WorkspaceRoot,
    rules: &'a IgnoreRules,
    known: KnownTree<'a>,
    buffer: Vec<u8>,
    globs: Vec<usize>,
    names: Vec<u8>,
    files: Vec<(usize, usize, FileStamp)>,
    found: Vec<(Arc<[u8]>, Arc<FolderFiles>)>,
    as_known: usize,
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
            as_known: 0,
            unreadable: Vec::new(),
            root_error: None,
        }
    }

    /// Reads one folder; its tracked sub-folders go to `next`.
    fn read_folder(&mut self, rel: &[u8], next: &mut Vec<Vec<u8>>) {
        let KnownTree { tree, same_rules } = self.known;
        let before = tree.get_key_value(rel);
        let FolderReader { root, rules, buffer, globs, names, files, .. } = self;
        names.clear();
        files.clear();
        let mut as_before = 0;
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
                // What vanished or became something else since it was listed is no file.
                if tracked && let Some((FileKind::File, stamp)) = stamp() {
                    as_before += usize::from(old == Some(stamp));
                    files.push((names.len(), names.len() + name.len(), stamp));
                    names.extend_from_slice(name);
                }
            }
            FileKind::Other => {}
        });
        match (listed, before) {
            (Err(error), _) => self.handle_error(rel, error),
            (Ok(()), Some((path, folder))) if as_before == self.files.len() && as_before == folder.len() => {
                self.as_known += 1;
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

    fn handle_error(&mut self, rel: &[u8], error: io::Error) {
        if rel.is_empty() {
            self.root_error = Some(error);
        } else if !read_dir::is_gone(&error) {
            self.keep_known(rel, error);
        }
        // Gone, or replaced by a file or a link: then it is no folder, and its parent tells what it is.
    }

    /// A folder that cannot be read has not lost its files: what was known of it stands.
    fn keep_known(&mut self, rel: &[u8], error: io::Error) {
        let path: Arc<[u8]> = Arc::from(rel);
        for known in super::file_snapshot::folders_below(self.known.tree, rel) {
            self.as_known += 1;
            self.found.push((Arc::clone(&known), Arc::clone(&self.known.tree[&known])));
        }
        if !self.known.tree.contains_key(rel) {
            self.found.push((Arc::clone(&path), Arc::default()));
        }
        self.unreadable.push((path, error));
    }

    fn merge_readers(&mut self, others: Vec<FolderReader<'_>>) {
        for other in others {
            self.found.extend(other.found);
            self.as_known += other.as_known;
            self.unreadable.extend(other.unreadable);
            self.root_error = self.root_error.take().or(other.root_error);
        }
    }

    fn finish(mut self) -> ScanResult {
        let all_known = self.as_known == self.found.len() && self.as_known == self.known.tree.len();
        let tree = if all_known {
            Arc::clone(self.known.tree)
        } else {
            self.found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
            Arc::new(self.found.into_iter().collect())
        };
        ScanResult { tree, unreadable: self.unreadable }
    }
}

/// Folders yet to be read. Each thread works on its own pile and gives half of it away when another has none left, so
/// that the lock is taken a few times a walk and not once a folder.
struct FolderQueue {
    threads: usize,
    idle: AtomicUsize,
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
        FolderQueue { threads, idle: AtomicUsize::new(0), shared, changed: Condvar::new() }
    }

    /// The next folder; `None` when every thread has run out.
    fn next(&self, mine: &mut Vec<Vec<u8>>) -> Option<Vec<u8>> {
        if let Some(folder) = mine.pop() {
            return Some(folder);
        }
        let mut pile = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        // Counted under the lock: the last one to run dry knows that nobody can add anything any more.
        let idle = self.idle.fetch_add(1, Ordering::Relaxed) + 1;
        if idle == self.threads && pile.folders.is_empty() {
            pile.done = true;
            self.changed.notify_all();
        }
        while pile.folders.is_empty() && !pile.done {
            pile = self.changed.wait(pile).unwrap_or_else(PoisonError::into_inner);
        }
        self.idle.fetch_sub(1, Ordering::Relaxed);
        let next = pile.folders.pop();
        mine.append(&mut pile.folders);
        next
    }

    /// Gives the older half of the pile, which lies higher in the tree, to a thread that has none.
    fn share_half(&self, mine: &mut Vec<Vec<u8>>) {
        if mine.len() > 1 && self.idle.load(Ordering::Relaxed) > 0 {
            let half = mine.drain(..mine.len() / 2);
            self.shared.lock().unwrap_or_else(PoisonError::into_inner).folders.extend(half);
            self.changed.notify_one();
        }
    }
}
