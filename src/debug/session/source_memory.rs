//! The source files of a session's programs as they were when they were loaded: a file that is edited meanwhile is not what
//! runs.
//!
//! ```text
//! session begins ─▶ files with breakpoints ─┐
//! stop ───────────▶ files of its frames ────┴▶ read, and remembered if unchanged since they were loaded
//! loadedSource ───▶ a remembered file: read again
//! ```
//! A file counts as loaded when the session begins, or when the adapter reports it. Bounded: the texts that were used last
//! stay. A file is known by its canonical path, over whichever link it is named. Does not depend on frames.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tether_base::sync::lock;

use crate::debug::source_file::{canonical_path, read_source};

/// Bytes of all remembered texts. A longer one is not remembered.
const MAX_BYTES: usize = 16 << 20;
/// How many reports of loaded files are kept.
const MAX_LOADED: usize = 10_000;

/// How the text of a source is related to its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceChange {
    /// The file has changed; the text is that which runs.
    Remembered,
    /// The file had changed before it was read: what runs may be an earlier text of it.
    Unknown,
}

/// The text of a source, as far as it is known the one that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningSource {
    /// The whole text.
    pub text: Arc<str>,
    /// None: the file is as it was loaded.
    pub change: Option<SourceChange>,
}

/// By which a changed file is recognised.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    modified: SystemTime,
    bytes: u64,
}

struct RememberedText {
    path: PathBuf,
    stamp: FileStamp,
    text: Arc<str>,
}

/// The remembered sources of one session; clones share them.
#[derive(Clone)]
pub struct SourceMemory(Arc<Mutex<Remembered>>);

struct Remembered {
    /// When the session began.
    began: SystemTime,
    /// When the adapter has reported a file last, if that was later.
    loaded: HashMap<PathBuf, SystemTime>,
    /// The one that was used last is the last.
    texts: VecDeque<RememberedText>,
}

impl Remembered {
    fn loaded_at(&self, path: &Path) -> SystemTime {
        self.loaded.get(path).copied().unwrap_or(self.began)
    }

    /// Moves a text to the end, and returns it.
    fn use_text(&mut self, path: &Path) -> Option<&mut RememberedText> {
        let index = self.texts.iter().position(|it| it.path == path)?;
        let used = self.texts.remove(index)?;
        self.texts.push_back(used);
        self.texts.back_mut()
    }

    fn put(&mut self, remembered: RememberedText) {
        self.texts.retain(|it| it.path != remembered.path);
        if remembered.text.len() > MAX_BYTES {
            return;
        }
        self.texts.push_back(remembered);
        let mut bytes: usize = self.texts.iter().map(|it| it.text.len()).sum();
        while bytes > MAX_BYTES {
            bytes = bytes.saturating_sub(self.texts.pop_front().map_or(bytes, |oldest| oldest.text.len()));
        }
    }
}

impl SourceMemory {
    /// Of a session that begins now.
    pub fn begin() -> SourceMemory {
        SourceMemory(Arc::new(Mutex::new(Remembered {
            began: SystemTime::now(),
            loaded: HashMap::new(),
            texts: VecDeque::new(),
        })))
    }

    /// The text of a file that the program runs. Errors: it cannot be read, and is not remembered.
    pub async fn load(&self, path: &Path) -> io::Result<RunningSource> {
        let (memory, path) = (self.clone(), path.to_owned());
        let load = tokio::task::spawn_blocking(move || memory.read(&path));
        load.await.unwrap_or_else(|cause| Err(io::Error::other(cause)))
    }

    /// The remembered text of a file that has changed since.
    pub async fn load_changed(&self, path: &Path) -> Option<RunningSource> {
        if !self.is_remembered(path) {
            return None;
        }
        self.load(path).await.ok().filter(|source| source.change == Some(SourceChange::Remembered))
    }

    /// Remembers those files that are not yet.
    pub async fn remember(&self, paths: impl IntoIterator<Item = PathBuf>) {
        let new: Vec<PathBuf> = paths.into_iter().filter(|path| !self.is_remembered(path)).collect();
        if new.is_empty() {
            return;
        }
        let memory = self.clone();
        let read = move || new.iter().for_each(|path| drop(memory.read(path)));
        let _ = tokio::task::spawn_blocking(read).await;
    }

    /// Records that a program has loaded a file. Returns whether it is remembered, and so has to be refreshed.
    pub fn record_loaded(&self, path: &Path) -> bool {
        let path = &canonical_path(path);
        let mut inner = lock(&self.0);
        if inner.loaded.len() >= MAX_LOADED {
            inner.loaded.clear();
        }
        inner.loaded.insert(path.to_owned(), SystemTime::now());
        inner.texts.iter().any(|it| it.path == *path)
    }

    /// When a program has loaded a file last, as far as that was reported.
    pub fn last_loaded(&self, path: &Path) -> Option<SystemTime> {
        lock(&self.0).loaded.get(&canonical_path(path)).copied()
    }

    /// Reads a file again that was loaded again. If it has changed even since then, it is forgotten.
    pub async fn refresh(&self, path: PathBuf) {
        let memory = self.clone();
        let refresh = move || {
            let path = canonical_path(&path);
            let fresh = read_file(&path).ok();
            let mut inner = lock(&memory.0);
            let loaded_at = inner.loaded_at(&path);
            inner.texts.retain(|it| it.path != path);
            if let Some((stamp, text)) = fresh.filter(|(stamp, _)| stamp.modified <= loaded_at) {
                inner.put(RememberedText { path, stamp, text });
            }
        };
        let _ = tokio::task::spawn_blocking(refresh).await;
    }

    fn is_remembered(&self, path: &Path) -> bool {
        lock(&self.0).texts.iter().any(|it| it.path == path)
    }

    /// Blocks.
    fn read(&self, path: &Path) -> io::Result<RunningSource> {
        let path = &canonical_path(path);
        let now = file_stamp(path);
        if let Some(known) = lock(&self.0).use_text(path)
            && now.as_ref().is_ok_and(|now| *now == known.stamp)
        {
            return Ok(RunningSource { text: Arc::clone(&known.text), change: None });
        }
        let read = read_file(path);
        let mut inner = lock(&self.0);
        let loaded_at = inner.loaded_at(path);
        match (inner.use_text(path), read) {
            // Written anew with the same text.
            (Some(known), Ok((stamp, text))) if known.text == text => {
                known.stamp = stamp;
                Ok(RunningSource { text, change: None })
            }
            (Some(known), _) => {
                Ok(RunningSource { text: Arc::clone(&known.text), change: Some(SourceChange::Remembered) })
            }
            (None, Ok((stamp, text))) if stamp.modified <= loaded_at => {
                inner.put(RememberedText { path: path.to_owned(), stamp, text: Arc::clone(&text) });
                Ok(RunningSource { text, change: None })
            }
            (None, Ok((_, text))) => Ok(RunningSource { text, change: Some(SourceChange::Unknown) }),
            (None, Err(cause)) => Err(cause),
        }
    }
}

fn file_stamp(path: &Path) -> io::Result<FileStamp> {
    let metadata = std::fs::metadata(path)?;
    Ok(FileStamp { modified: metadata.modified()?, bytes: metadata.len() })
}

/// A file's text, and its stamp from before it was read: a change during that is noticed later.
fn read_file(path: &Path) -> io::Result<(FileStamp, Arc<str>)> {
    let stamp = file_stamp(path)?;
    Ok((stamp, read_source(path)?.into()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    struct SourceFile {
        _folder: tempfile::TempDir,
        path: PathBuf,
    }

    impl SourceFile {
        fn new() -> SourceFile {
            let folder = tempfile::tempdir().unwrap();
            SourceFile { path: folder.path().join("äpp.py"), _folder: folder }
        }

        /// Writes a text as if that was so many seconds after now.
        fn write(&self, text: &str, seconds: i64) {
            std::fs::write(&self.path, text).unwrap();
            let shift = Duration::from_secs(seconds.unsigned_abs());
            let now = SystemTime::now();
            let at = if seconds < 0 { now - shift } else { now + shift };
            std::fs::File::options().write(true).open(&self.path).unwrap().set_modified(at).unwrap();
        }
    }

    async fn loaded(memory: &SourceMemory, file: &SourceFile) -> (String, Option<SourceChange>) {
        let source = memory.load(&file.path).await.unwrap();
        (source.text.to_string(), source.change)
    }

    #[tokio::test]
    async fn what_was_loaded_is_remembered_and_a_later_change_is_reported() {
        let (file, memory) = (SourceFile::new(), SourceMemory::begin());
        assert!(memory.load(&file.path).await.is_err());
        file.write("one", -10);
        memory.remember([file.path.clone()]).await;
        file.write("two", 10);
        let remembered = ("one".to_owned(), Some(SourceChange::Remembered));
        assert_eq!(loaded(&memory, &file).await, remembered);
        assert!(memory.load_changed(&file.path).await.is_some());
        std::fs::remove_file(&file.path).unwrap();
        assert_eq!(loaded(&memory, &file).await, remembered, "it is gone");
        file.write("one", 20);
        assert_eq!(loaded(&memory, &file).await, ("one".to_owned(), None), "it is as before");
        assert!(memory.load_changed(&file.path).await.is_none());
    }

    #[tokio::test]
    async fn a_file_that_had_changed_before_it_was_read_is_not_taken_for_what_runs() {
        let (file, memory) = (SourceFile::new(), SourceMemory::begin());
        file.write("two", 10);
        assert_eq!(loaded(&memory, &file).await, ("two".to_owned(), Some(SourceChange::Unknown)));
        assert!(memory.load_changed(&file.path).await.is_none());
    }

    #[tokio::test]
    async fn a_file_that_is_loaded_again_is_read_again() {
        let (file, memory) = (SourceFile::new(), SourceMemory::begin());
        assert!(!memory.record_loaded(&file.path), "it is not remembered");
        file.write("one", -10);
        memory.remember([file.path.clone()]).await;
        file.write("two", -5);
        assert!(memory.record_loaded(&file.path));
        memory.refresh(file.path.clone()).await;
        assert_eq!(loaded(&memory, &file).await, ("two".to_owned(), None));
        assert!(memory.record_loaded(&file.path));
        file.write("three", 10);
        memory.refresh(file.path.clone()).await;
        assert_eq!(loaded(&memory, &file).await, ("three".to_owned(), Some(SourceChange::Unknown)));
    }

    #[tokio::test]
    async fn the_memory_is_bounded() {
        let (file, other, memory) = (SourceFile::new(), SourceFile::new(), SourceMemory::begin());
        let long = "x".repeat(MAX_BYTES - 10);
        file.write(&long, -10);
        other.write("a text that is longer than that", -10);
        memory.remember([file.path.clone()]).await;
        assert!(memory.is_remembered(&file.path));
        memory.remember([other.path.clone()]).await;
        assert!(memory.is_remembered(&other.path) && !memory.is_remembered(&file.path));
        file.write(&"x".repeat(MAX_BYTES + 1), -10);
        memory.remember([file.path.clone()]).await;
        assert!(memory.is_remembered(&other.path) && !memory.is_remembered(&file.path));
    }
}
