//! The cold path: reads the tracked files of a workspace from disk, in parallel.
//!
//! Owns the walk. What is known from before makes it cheap: a name that was tracked under the same rules needs no rule
//! matching, and a folder that is as it was is shared, not copied. Must not know baselines, watches or what a
//! difference means.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::folder::{Folder, Stamp};
use super::ignore::Rules;
use super::list::{self, Kind, Root};
use super::name;
use super::snapshot::Tree;

/// More threads than this only wait for each other in the kernel's directory cache.
const MOST_THREADS: usize = 8;
/// Below so many known folders a second thread costs more than it saves.
const WORTH_A_THREAD: usize = 32;

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    pub tree: Arc<Tree>,
    /// Folders that could not be read; what was known of them stands.
    pub unreadable: Vec<(Arc<[u8]>, io::Error)>,
}

/// What was known before the walk.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub tree: &'a Arc<Tree>,
    /// Whether it was read under the rules of this walk.
    pub same_rules: bool,
}

/// Reads the whole workspace.
///
/// # Errors
/// The root cannot be opened. Below it nothing stops the walk: unreadable folders are told, what vanishes is gone.
pub(super) fn scan(root: &Root, rules: &Rules, known: Known<'_>) -> io::Result<Scanned> {
    let queue = Queue::new(threads(known.tree));
    let work = || {
        let mut reader = Reader::new(root, rules, known);
        let mut mine = Vec::new();
        while let Some(folder) = queue.next(&mut mine) {
            reader.read(&folder, &mut mine);
            queue.share(&mut mine);
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
    all.take_in(readers);
    match all.root_error.take() {
        Some(error) => Err(error),
        None => Ok(all.finish()),
    }
}

/// Reads `start` and what is below it, one folder after the other, calling `before` ahead of each folder so that it is
/// watched before it is read. `Ok(false)` from it leaves the folder out, an error ends the walk.
pub(super) fn scan_below<E>(
    root: &Root,
    rules: &Rules,
    known: Known<'_>,
    start: &[u8],
    mut before: impl FnMut(&[u8]) -> Result<bool, E>,
) -> Result<Scanned, E> {
    let mut reader = Reader::new(root, rules, known);
    let mut left = vec![start.to_vec()];
    while let Some(folder) = left.pop() {
        if before(&folder)? {
            reader.read(&folder, &mut left);
        } else {
            reader.keep(&folder, io::ErrorKind::PermissionDenied.into());
        }
    }
    if let Some(error) = reader.root_error.take() {
        reader.keep(b"", error);
    }
    Ok(reader.finish())
}

fn threads(known: &Tree) -> usize {
    if !known.is_empty() && known.len() < WORTH_A_THREAD {
        return 1;
    }
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST_THREADS))
}

/// One thread's reading: scratch space, and what it found.
struct Reader<'a> {
    root: &'a Root,
    rules: &'a Rules,
    known: Known<'a>,
    buffer: Vec<u8>,
    globs: Vec<usize>,
    names: Vec<u8>,
    files: Vec<(usize, usize, Stamp)>,
    found: Vec<(Arc<[u8]>, Arc<Folder>)>,
    as_known: usize,
    unreadable: Vec<(Arc<[u8]>, io::Error)>,
    root_error: Option<io::Error>,
}

impl<'a> Reader<'a> {
    fn new(root: &'a Root, rules: &'a Rules, known: Known<'a>) -> Reader<'a> {
        Reader {
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
    fn read(&mut self, rel: &[u8], next: &mut Vec<Vec<u8>>) {
        let Known { tree, same_rules } = self.known;
        let before = tree.get_key_value(rel);
        let Reader { root, rules, buffer, globs, names, files, .. } = self;
        names.clear();
        files.clear();
        let mut as_before = 0;
        let listed = root.each(rel, buffer, |name, kind, stamp| match kind {
            Kind::Folder => {
                let path = name::join(rel, name);
                if (same_rules && tree.contains_key(&path[..])) || rules.tracks(&path, true, globs) {
                    next.push(path);
                }
            }
            Kind::File => {
                let old = before.and_then(|(_, folder)| folder.stamp_of(name));
                let tracked = (same_rules && old.is_some()) || rules.tracks(&name::join(rel, name), false, globs);
                // What vanished or became something else since it was listed is no file.
                if tracked && let Some((Kind::File, stamp)) = stamp() {
                    as_before += usize::from(old == Some(stamp));
                    files.push((names.len(), names.len() + name.len(), stamp));
                    names.extend_from_slice(name);
                }
            }
            Kind::Other => {}
        });
        match (listed, before) {
            (Err(error), _) => self.failed(rel, error),
            (Ok(()), Some((path, folder))) if as_before == self.files.len() && as_before == folder.len() => {
                self.as_known += 1;
                self.found.push((Arc::clone(path), Arc::clone(folder)));
            }
            (Ok(()), before) => self.changed(rel, before.map(|(_, folder)| &**folder)),
        }
    }

    fn changed(&mut self, rel: &[u8], before: Option<&Folder>) {
        let files = self.files.iter().map(|(start, end, stamp)| (&self.names[*start..*end], *stamp));
        let mut folder = Folder::new(files.collect());
        if let Some(before) = before {
            folder.keep_prints(before);
        }
        self.found.push((Arc::from(rel), Arc::new(folder)));
    }

    fn failed(&mut self, rel: &[u8], error: io::Error) {
        if rel.is_empty() {
            self.root_error = Some(error);
        } else if !list::is_gone(&error) {
            self.keep(rel, error);
        }
        // Gone, or replaced by a file or a link: then it is no folder, and its parent tells what it is.
    }

    /// A folder that cannot be read has not lost its files: what was known of it stands.
    fn keep(&mut self, rel: &[u8], error: io::Error) {
        let path: Arc<[u8]> = Arc::from(rel);
        for known in super::snapshot::folders_at(self.known.tree, rel) {
            self.as_known += 1;
            self.found.push((Arc::clone(&known), Arc::clone(&self.known.tree[&known])));
        }
        if !self.known.tree.contains_key(rel) {
            self.found.push((Arc::clone(&path), Arc::default()));
        }
        self.unreadable.push((path, error));
    }

    fn take_in(&mut self, others: Vec<Reader<'_>>) {
        for other in others {
            self.found.extend(other.found);
            self.as_known += other.as_known;
            self.unreadable.extend(other.unreadable);
            self.root_error = self.root_error.take().or(other.root_error);
        }
    }

    fn finish(mut self) -> Scanned {
        let all_known = self.as_known == self.found.len() && self.as_known == self.known.tree.len();
        let tree = if all_known {
            Arc::clone(self.known.tree)
        } else {
            self.found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
            Arc::new(self.found.into_iter().collect())
        };
        Scanned { tree, unreadable: self.unreadable }
    }
}

/// Folders yet to be read. Each thread works on its own pile and gives half of it away when another has none left, so
/// that the lock is taken a few times a walk and not once a folder.
struct Queue {
    threads: usize,
    idle: AtomicUsize,
    pile: Mutex<Pile>,
    changed: Condvar,
}

struct Pile {
    folders: Vec<Vec<u8>>,
    done: bool,
}

impl Queue {
    fn new(threads: usize) -> Queue {
        let pile = Mutex::new(Pile { folders: vec![Vec::new()], done: false });
        Queue { threads, idle: AtomicUsize::new(0), pile, changed: Condvar::new() }
    }

    /// The next folder; `None` when every thread has run out.
    fn next(&self, mine: &mut Vec<Vec<u8>>) -> Option<Vec<u8>> {
        if let Some(folder) = mine.pop() {
            return Some(folder);
        }
        let mut pile = self.pile.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn share(&self, mine: &mut Vec<Vec<u8>>) {
        if mine.len() > 1 && self.idle.load(Ordering::Relaxed) > 0 {
            let half = mine.drain(..mine.len() / 2);
            self.pile.lock().unwrap_or_else(PoisonError::into_inner).folders.extend(half);
            self.changed.notify_one();
        }
    }
}
