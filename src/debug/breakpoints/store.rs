//! Keeps the breakpoints of a workspace in `breakpoints.json`, in the supervisor's state folder.
//!
//! ```text
//! change ─▶ turn (first come, first served) ─▶ blocking thread: read sources, alter a copy, write ─▶ current
//! ```
//! Readers take the current list without waiting for a file. A change that cannot be written is not made. The supervisor and
//! the hosts of its sessions share the file: a change locks it, and begins with what it has now. It is not in
//! the workspace: that may be read-only or somebody else's, and conditions and log messages are code that runs. One that
//! cannot be read is set aside, and reported.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tether_base::file_lock::lock_within;
use tether_base::line_anchor::SourceLines;
use tether_base::sync::lock;
use tokio::sync::watch;

use super::editor_breakpoints::{EditorLine, ReplacedLines};
use super::given_name::name_as_given;
use super::list::StoredBreakpoints;
use super::requested::{RequestedBreakpoint, RequestedPlace};
use super::spec::{BreakpointConditions, BreakpointFile, BreakpointOwner, BreakpointSpec, LinePosition};
use crate::debug::source_file::read_source;
use crate::workspace::workspace_dir::{AfterPowerFailure, WorkspaceFile};

const NAME: &str = "breakpoints.json";
/// As [`WorkspaceFile::set_aside`] renames it.
const SET_ASIDE: &str = "breakpoints.json.stale";
/// Locked by the process that changes the file; in the state folder, too.
const LOCK: &str = "breakpoints.lock";
/// How long a change waits for one by another process, which takes milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// How much source is read to move breakpoints with their code, in bytes.
const MAX_FOLLOWED: usize = 64 << 20;

/// The breakpoints of a workspace; clones share them.
#[derive(Clone)]
pub struct BreakpointStore(Arc<StoreInner>);

struct StoreInner {
    /// None: kept in memory only.
    folder: Option<PathBuf>,
    /// Why the file is not used, if it could not be set aside.
    problem: Option<String>,
    /// Locked only to read or replace the pointer.
    current: Mutex<Arc<StoredBreakpoints>>,
    /// The file that `current` was read from, or written to.
    seen: Mutex<Option<FileVersion>>,
    /// Serialises changes, and so the writes, in the order in which they were requested.
    changes: Arc<tokio::sync::Mutex<()>>,
    /// Rises with each change of the list.
    changed: watch::Sender<u64>,
}

/// Tells one version of a file from another, which has replaced it: inode, modification time in ns, length.
type FileVersion = (u64, i64, i64, u64);

impl BreakpointStore {
    /// Opens the file in a state folder. Reads it at once.
    pub fn open(folder: &Path) -> BreakpointStore {
        let file = store_file(folder, NAME);
        let seen = read_version(file);
        let (list, problem) = match read_list(file) {
            Ok(list) => (list.unwrap_or_default(), None),
            Err(reason) => (StoredBreakpoints::default(), Some(set_aside(file, &reason))),
        };
        let problem = problem.filter(|_| read_set_aside(folder).is_none());
        BreakpointStore::with_list(Some(folder.to_owned()), list, problem, seen)
    }

    /// An empty store that is kept in memory only.
    pub fn in_memory() -> BreakpointStore {
        BreakpointStore::with_list(None, StoredBreakpoints::default(), None, None)
    }

    fn with_list(
        folder: Option<PathBuf>,
        list: StoredBreakpoints,
        problem: Option<String>,
        seen: Option<FileVersion>,
    ) -> BreakpointStore {
        let (current, seen) = (Mutex::new(Arc::new(list)), Mutex::new(seen));
        let (changes, changed) = Default::default();
        BreakpointStore(Arc::new(StoreInner { folder, problem, current, seen, changes, changed }))
    }

    /// Takes over what another process has changed.
    pub async fn reload(&self) {
        // It cannot fail: it changes nothing itself.
        let _ = self.change(|_| Ok(())).await;
    }

    /// Which breakpoints are not set because their file cannot be read, why, and how to get them back. Repeated until the
    /// file that was set aside is gone.
    pub async fn problem(&self) -> Option<String> {
        let folder = self.0.folder.clone()?;
        let set_aside = tokio::task::spawn_blocking(move || read_set_aside(&folder)).await.ok().flatten();
        set_aside.or_else(|| self.0.problem.clone())
    }

    /// As [`BreakpointStore::problem`], of the file in a state folder; changes nothing.
    pub fn inspect(folder: &Path) -> Option<String> {
        let file = store_file(folder, NAME);
        let unreadable = read_list(file).err();
        let text =
            |reason| format!("{} cannot be read ({reason}); the next command sets it aside", file.path().display());
        unreadable.map(text).or_else(|| read_set_aside(folder))
    }

    /// A count that rises with each change of the breakpoints.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    /// The breakpoints as they are now.
    pub fn current(&self) -> Arc<StoredBreakpoints> {
        Arc::clone(&lock(&self.0.current))
    }

    /// Sets a breakpoint on a line of a file. The conditions of one that is there are replaced.
    /// Errors: no such file, no such line, too many breakpoints, the file cannot be written.
    pub async fn set_line(
        &self,
        file: &Path,
        at: impl Into<LinePosition>,
        conditions: BreakpointConditions,
    ) -> Result<BreakpointSpec> {
        let (file, at) = (file.to_owned(), at.into());
        self.change(move |list| {
            let source = read_breakpoint_source(&file)?;
            list.set_line(source.file(), &source.text, at, conditions)
        })
        .await
    }

    /// Sets breakpoints: all of them, or none. Their ids are in `ids` as soon as they are set, whether or not the caller still
    /// waits. Errors: as for [`BreakpointStore::set_line`]; see also
    /// [`RequestedLine`](super::RequestedLine).
    pub async fn set_all(
        &self,
        requested: Vec<RequestedBreakpoint>,
        ids: Arc<Mutex<Vec<u32>>>,
    ) -> Result<Vec<BreakpointSpec>> {
        self.change(move |list| {
            let mut last: Option<(PathBuf, BreakpointSource)> = None;
            let mut specs = Vec::new();
            for RequestedBreakpoint { place, conditions } in requested {
                let line = match place {
                    RequestedPlace::Line(line) => line,
                    RequestedPlace::Named(kind) => {
                        specs.push(list.set(kind, conditions)?);
                        continue;
                    }
                };
                let source = match last.take().filter(|(known, _)| *known == line.file) {
                    Some((_, source)) => source,
                    None => read_breakpoint_source(&line.file)?,
                };
                specs.push(list.set_line(source.file(), &source.text, line.find(&source.text)?, conditions)?);
                last = Some((line.file, source));
            }
            lock(&ids).extend(specs.iter().map(|spec| spec.id));
            Ok(specs)
        })
        .await
    }

    /// Replaces an editor's breakpoints in a file; see [`StoredBreakpoints::replace_editor_lines`].
    /// Errors: no such file, it is no source file.
    pub async fn replace_editor_lines(
        &self,
        owner: BreakpointOwner,
        file: &Path,
        lines: Vec<EditorLine>,
    ) -> Result<ReplacedLines> {
        let file = file.to_owned();
        self.change(move |list| {
            let source = read_breakpoint_source(&file)?;
            Ok(list.replace_editor_lines(&owner, source.file(), &source.text, lines))
        })
        .await
    }

    /// A breakpoint for one session until its next stop, which is not stored. `None` if a breakpoint without conditions
    /// is there. Errors: no such file, no such line.
    pub async fn temporary_on_line(&self, file: &Path, line: u32) -> Result<Option<BreakpointSpec>> {
        let file = file.to_owned();
        self.change(move |list| {
            let source = read_breakpoint_source(&file)?;
            list.temporary_on_line(source.file(), &source.text, line)
        })
        .await
    }

    /// Moves all breakpoints to where their code is in the source files now. A file that is gone has no code to follow;
    /// when it is back, its breakpoints are too.
    pub async fn follow_source_changes(&self) {
        if self.current().files().is_empty() {
            return;
        }
        // Without a file they are followed again.
        let followed = self.change_and_write(AfterPowerFailure::OldOrNew, |list| {
            let mut left = MAX_FOLLOWED;
            for file in list.files() {
                let Ok(text) = read_source(&file) else { continue };
                left = left.saturating_sub(text.len());
                if left == 0 {
                    tracing::warn!("breakpoints from {} on keep their lines: too much source", file.display());
                    break;
                }
                list.follow_source_change(&file, &SourceLines::of(&text));
            }
            Ok(())
        });
        if let Err(error) = followed.await {
            tracing::warn!("{error}");
        }
    }

    /// Makes a change on a blocking thread, after all that were requested before it. It completes even if the caller is
    /// cancelled. Errors: those of `change`, the file cannot be written.
    pub async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut StoredBreakpoints) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.change_and_write(AfterPowerFailure::New, change).await
    }

    async fn change_and_write<T: Send + 'static>(
        &self,
        promised: AfterPowerFailure,
        change: impl FnOnce(&mut StoredBreakpoints) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let turn = Arc::clone(&self.0.changes).lock_owned().await;
        let store = self.clone();
        let changed = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let _lock = store.lock_file()?;
            store.take_over_file();
            let current = store.current();
            let mut next = StoredBreakpoints::clone(&current);
            let result = change(&mut next)?;
            if !next.has_same_content(&current) {
                store.write(&next, promised)?;
                store.set_current(next);
            } else if next.last_id != current.last_id {
                // Of a temporary breakpoint: other processes give no id twice.
                store.write(&next, AfterPowerFailure::OldOrNew)?;
                *lock(&store.0.current) = Arc::new(next);
            }
            Ok(result)
        });
        changed.await.unwrap_or_else(|cause| Err(Error::other("cannot change the breakpoints").because(cause)))
    }

    fn set_current(&self, list: StoredBreakpoints) {
        *lock(&self.0.current) = Arc::new(list);
        self.0.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Keeps other processes from changing the file, until it is dropped. `None` where there is no file, or its folder is
    /// read-only: then nobody changes it. Errors: another process keeps it locked.
    fn lock_file(&self) -> Result<Option<File>> {
        let Some(path) = self.0.folder.as_ref().map(|folder| folder.join(LOCK)) else { return Ok(None) };
        let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let Ok(file) = opened else { return Ok(None) };
        match lock_within(&file, LOCK_TIMEOUT) {
            Ok(()) => Ok(Some(file)),
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {
                let error = Error::new(ErrorKind::TimedOut, format!("cannot lock {}", path.display())).because(cause);
                Err(error
                    .hint("`tether doctor` lists the processes of the workspace: one of them may have been stopped"))
            }
            // A file system without locks.
            Err(_) => Ok(None),
        }
    }

    /// Reads the file, if another process has changed it.
    fn take_over_file(&self) {
        let Some(folder) = &self.0.folder else { return };
        let file = store_file(folder, NAME);
        let version = read_version(file);
        if version.is_none() || std::mem::replace(&mut *lock(&self.0.seen), version) == version {
            return;
        }
        match read_list(file) {
            Ok(list) => self.set_current(list.unwrap_or_default()),
            Err(reason) => tracing::warn!("{} is not taken over: {reason}", file.path().display()),
        }
    }

    fn write(&self, list: &StoredBreakpoints, promised: AfterPowerFailure) -> Result<()> {
        let Some(folder) = &self.0.folder else { return Ok(()) };
        let file = store_file(folder, NAME);
        file.replace(&list.to_text()?, promised)?;
        *lock(&self.0.seen) = read_version(file);
        Ok(())
    }
}

/// `None`: there is no file.
fn read_version(file: WorkspaceFile<'_>) -> Option<FileVersion> {
    let found = file.path().symlink_metadata().ok()?;
    Some((found.ino(), found.mtime(), found.mtime_nsec(), found.len()))
}

/// A file for a breakpoint.
struct BreakpointSource {
    path: PathBuf,
    named: Option<PathBuf>,
    text: String,
}

impl BreakpointSource {
    fn file(&self) -> BreakpointFile<'_> {
        BreakpointFile { path: &self.path, named: self.named.as_deref() }
    }
}

/// Errors: it is no readable source file.
fn read_breakpoint_source(file: &Path) -> Result<BreakpointSource> {
    let file = std::path::absolute(file).doing(|| format!("cannot resolve {}", file.display()))?;
    let path = file.canonicalize().map_err(|cause| {
        let error = Error::new(ErrorKind::Usage, format!("cannot set a breakpoint in {}", file.display()));
        error.because(cause).hint("name a file that is there, relative to the workspace")
    })?;
    let text = read_source(&path)
        .doing(|| format!("cannot set a breakpoint in {}", file.display()))
        .map_err(|error| error.hint("name a source file, relative to the workspace"))?;
    let named = name_as_given(&file, &path);
    Ok(BreakpointSource { path, named, text })
}

fn store_file<'p>(folder: &'p Path, name: &'p str) -> WorkspaceFile<'p> {
    WorkspaceFile { workspace: folder, name, most: 16 << 20, what: "the breakpoints are as they were" }
}

fn read_list(file: WorkspaceFile<'_>) -> Result<Option<StoredBreakpoints>, String> {
    let text = file.read().map_err(|reason| reason.to_string())?;
    text.map(|text| StoredBreakpoints::parse(&text)).transpose()
}

/// Returns what has become of the file.
fn set_aside(file: WorkspaceFile<'_>, reason: &str) -> String {
    let outcome = file.set_aside(reason).unwrap_or_else(|error| error.to_string());
    tracing::warn!("{outcome}");
    outcome
}

/// What is to be said of a file that was set aside; `None` when there is none.
fn read_set_aside(folder: &Path) -> Option<String> {
    let file = store_file(folder, SET_ASIDE);
    let reason = match read_list(file) {
        Ok(None) => return None,
        Ok(Some(_)) => "it can be read now".to_owned(),
        Err(reason) => reason,
    };
    let path = file.path();
    let path = path.display();
    Some(format!(
        "the breakpoints of before could not be read and are not set; their file is {path} ({reason}): \
         mend it and run `tether break import \"{path}\"`; `rm \"{path}\"` ends this note"
    ))
}

#[cfg(test)]
mod tests {
    use tether_base::line_anchor::AnchorStatus;

    use super::super::spec::{BreakpointKind, ExceptionSpec};
    use super::*;
    use crate::vocabulary::DataAccess;

    const CODE: &str = "def f(x):\n    y = x + 1\n    return y\n";

    #[tokio::test]
    async fn breakpoints_are_kept_over_a_restart_and_follow_their_code() {
        let workspace = tempfile::tempdir().unwrap();
        let file = workspace.path().join("a b ü.py");
        std::fs::write(&file, CODE).unwrap();
        let file = file.canonicalize().unwrap();
        let store = BreakpointStore::open(workspace.path());
        let conditions = BreakpointConditions { condition: Some("x > 1".into()), ..BreakpointConditions::default() };
        let line = store.set_line(&file, 2, conditions.clone()).await.unwrap();
        let again = store.set_line(&file, 2, BreakpointConditions::default()).await.unwrap();
        assert_eq!((line.id, again.id, again.conditions), (1, 1, BreakpointConditions::default()));
        store.set_line(&file, 2, conditions).await.unwrap();
        let temporary = async |line| store.temporary_on_line(&file, line).await.unwrap().map(|spec| spec.id);
        assert_eq!((temporary(3).await, temporary(2).await), (Some(2), Some(3)), "the one there has a condition");
        store.set_line(&file, 1, BreakpointConditions::default()).await.unwrap();
        assert_eq!(temporary(1).await, None);
        let data =
            BreakpointKind::Data { expression: "self.x".into(), access: DataAccess::ReadWrite, persistent_name: None };
        store.change(|list| list.set(data, BreakpointConditions::default())).await.unwrap();
        let exceptions = ExceptionSpec { uncaught: true, ..ExceptionSpec::default() };
        store
            .change(|list| {
                list.choose_exceptions(exceptions);
                Ok(())
            })
            .await
            .unwrap();

        std::fs::write(&file, format!("import os\n{CODE}")).unwrap();
        let store = BreakpointStore::open(workspace.path());
        assert_eq!(store.problem().await, None);
        let list = store.current();
        assert_eq!(
            list.breakpoints.iter().map(|spec| spec.id).collect::<Vec<_>>(),
            [1, 4, 5],
            "temporary ones are not kept"
        );
        assert!(list.exceptions.uncaught);
        store.follow_source_changes().await;
        let list = store.current();
        let BreakpointKind::Line { line, anchor_status, .. } = &list.get(1).unwrap().kind else { panic!() };
        assert_eq!((*line, anchor_status), (3, &AnchorStatus::Moved { from: 2 }));
        assert_eq!(list.get(1).unwrap().conditions.condition.as_deref(), Some("x > 1"));

        assert_eq!(store.change(|list| Ok(list.breakpoints.remove(0))).await.unwrap().id, 1);
        let function = BreakpointKind::Function { name: "f".into() };
        let function = store.change(|list| list.set(function, BreakpointConditions::default())).await.unwrap();
        assert_eq!(function.id, 6, "ids are never reused");
    }

    #[tokio::test]
    async fn processes_that_share_the_file_lose_nothing_of_each_other() {
        let workspace = tempfile::tempdir().unwrap();
        let file = workspace.path().join("a.py");
        std::fs::write(&file, CODE).unwrap();
        let stores = [BreakpointStore::open(workspace.path()), BreakpointStore::open(workspace.path())];
        let set = async |store: &BreakpointStore, line: u32| {
            store.set_line(&file, line, BreakpointConditions::default()).await.unwrap().id
        };
        let (one, other, third) = (set(&stores[0], 1).await, set(&stores[1], 2).await, set(&stores[0], 3).await);
        assert_eq!([one, other, third], [1, 2, 3], "no id is given twice");
        let ids = |store: &BreakpointStore| store.current().breakpoints.iter().map(|it| it.id).collect::<Vec<_>>();
        assert_eq!((ids(&stores[0]), ids(&stores[1])), (vec![1, 2, 3], vec![1, 2]));
        let mut seen = stores[1].watch();
        seen.borrow_and_update();
        stores[1].reload().await;
        assert!(seen.has_changed().unwrap());
        assert_eq!(ids(&stores[1]), [1, 2, 3]);
        // Both at once, again and again.
        let many = |store: BreakpointStore, own: &'static str| async move {
            for number in 0..20 {
                let function = BreakpointKind::Function { name: format!("{own}{number}") };
                store.change(|list| list.set(function, BreakpointConditions::default())).await.unwrap();
            }
        };
        tokio::join!(many(stores[0].clone(), "a"), many(stores[1].clone(), "b"));
        stores[0].reload().await;
        assert_eq!(ids(&stores[0]), (1..=43).collect::<Vec<u32>>());
    }

    #[tokio::test]
    async fn a_line_that_does_not_exist_is_refused_by_name() {
        let workspace = tempfile::tempdir().unwrap();
        let file = workspace.path().join("a.py");
        std::fs::write(&file, CODE).unwrap();
        let store = BreakpointStore::open(workspace.path());
        let check = async |file: &Path, line: u32, expect: &str| {
            let error = store.set_line(file, line, BreakpointConditions::default()).await.unwrap_err();
            assert!(error.kind == ErrorKind::Usage && error.to_string().contains(expect), "{error}");
        };
        check(&workspace.path().join("none.py"), 1, "none.py").await;
        check(&file, 4, "it has 3 lines").await;
        check(&file, 0, "it has 3 lines").await;
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_read_is_set_aside() {
        let workspace = tempfile::tempdir().unwrap();
        std::fs::create_dir(workspace.path().join(".devtools")).unwrap();
        for text in ["", "[]", "{\"version\": 9, \"lastId\": 1, \"breakpoints\": []}", "\u{0}"] {
            std::fs::write(workspace.path().join(".devtools").join(NAME), text).unwrap();
            assert!(BreakpointStore::inspect(workspace.path()).unwrap().contains("the next command sets it aside"));
            let store = BreakpointStore::open(workspace.path());
            let problem = store.problem().await.unwrap();
            assert!(store.current().breakpoints.is_empty() && problem.contains(SET_ASIDE), "{text:?}: {problem}");
            assert_eq!(BreakpointStore::inspect(workspace.path()), Some(problem));
        }
    }
}
