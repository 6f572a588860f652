//! Keeps the breakpoints of a workspace in `.devtools/breakpoints.json`.
//!
//! ```text
//! change ─▶ turn (first come, first served) ─▶ blocking thread: read sources, alter a copy, write ─▶ current
//! ```
//! Readers take the current list without waiting for a file. A change that cannot be written is not made. The file is in
//! a workspace, so its content is not trusted: one that cannot be read is set aside, and reported.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::list::StoredBreakpoints;
use super::spec::{BreakpointConditions, BreakpointKind, BreakpointSpec, ExceptionSpec};
use crate::debug::source_file::read_source;
use crate::error::{Error, ErrorContext, ErrorKind, Result};
use crate::sync::lock;
use crate::workspace_dir::WorkspaceFile;

const NAME: &str = "breakpoints.json";

/// The breakpoints of a workspace; clones share them.
#[derive(Clone)]
pub struct BreakpointStore(Arc<StoreInner>);

struct StoreInner {
    /// None: kept in memory only.
    workspace: Option<PathBuf>,
    /// What was wrong with the file.
    problem: Option<String>,
    /// Locked only to read or replace the pointer.
    current: Mutex<Arc<StoredBreakpoints>>,
    /// Serialises changes, and so the writes, in the order in which they were requested.
    changes: Arc<tokio::sync::Mutex<()>>,
}

impl BreakpointStore {
    /// Opens the file of a workspace. Reads it at once.
    pub fn open(workspace: &Path) -> BreakpointStore {
        let file = store_file(workspace);
        let read = file.read().map_err(|reason| reason.to_string()).and_then(|text| match text {
            Some(text) => StoredBreakpoints::parse(&text),
            None => Ok(StoredBreakpoints::default()),
        });
        let (list, problem) = match read {
            Ok(list) => (list, None),
            Err(reason) => {
                let problem = file.set_aside(&reason).unwrap_or_else(|error| error.to_string());
                (StoredBreakpoints::default(), Some(problem))
            }
        };
        BreakpointStore::with_list(Some(workspace.to_owned()), list, problem)
    }

    /// An empty store that is kept in memory only.
    pub fn in_memory() -> BreakpointStore {
        BreakpointStore::with_list(None, StoredBreakpoints::default(), None)
    }

    fn with_list(workspace: Option<PathBuf>, list: StoredBreakpoints, problem: Option<String>) -> BreakpointStore {
        let current = Mutex::new(Arc::new(list));
        BreakpointStore(Arc::new(StoreInner { workspace, problem, current, changes: Arc::default() }))
    }

    /// What was wrong with the file when it was opened.
    pub fn problem(&self) -> Option<&str> {
        self.0.problem.as_deref()
    }

    /// The breakpoints as they are now.
    pub fn current(&self) -> Arc<StoredBreakpoints> {
        Arc::clone(&lock(&self.0.current))
    }

    /// Sets a breakpoint on a line of a file. The conditions of one that is there are replaced.
    /// Errors: no such file, no such line, too many breakpoints, the file cannot be written.
    pub async fn set_line(&self, file: &Path, line: u32, conditions: BreakpointConditions) -> Result<BreakpointSpec> {
        let file = file.to_owned();
        self.change(move |list| {
            let (file, text) = read_breakpoint_source(&file)?;
            list.set_line(&file, &text, line, conditions)
        })
        .await
    }

    /// A breakpoint for one session until its next stop, which is not stored. `None` if a breakpoint without conditions
    /// is there. Errors: no such file, no such line.
    pub async fn temporary_on_line(&self, file: &Path, line: u32) -> Result<Option<BreakpointSpec>> {
        let file = file.to_owned();
        self.change(move |list| {
            let (file, text) = read_breakpoint_source(&file)?;
            list.temporary_on_line(&file, &text, line)
        })
        .await
    }

    /// Sets a function or data breakpoint. One on the same function or expression is replaced.
    /// Errors: too many breakpoints, the file cannot be written.
    pub async fn set(&self, kind: BreakpointKind, conditions: BreakpointConditions) -> Result<BreakpointSpec> {
        self.change(move |list| list.set(kind, conditions)).await
    }

    /// Sets on which exceptions to stop. Errors: the file cannot be written.
    pub async fn set_exceptions(&self, exceptions: ExceptionSpec) -> Result<()> {
        self.change(move |list| {
            list.set_exceptions(exceptions);
            Ok(())
        })
        .await
    }

    /// Removes the breakpoints that `is_removed` selects, and returns them. Errors: the file cannot be written.
    pub async fn remove(
        &self,
        is_removed: impl Fn(&BreakpointSpec) -> bool + Send + 'static,
    ) -> Result<Vec<BreakpointSpec>> {
        self.change(move |list| Ok(list.remove(is_removed))).await
    }

    /// Moves all breakpoints to where their code is in the source files now. A file that is gone has no code to follow;
    /// when it is back, its breakpoints are too.
    pub async fn follow_source_changes(&self) {
        if self.current().files().is_empty() {
            return;
        }
        let followed = self.change(|list| {
            for file in list.files() {
                if let Ok(text) = read_source(&file) {
                    list.follow_source_change(&file, &text);
                }
            }
            Ok(())
        });
        if let Err(error) = followed.await {
            tracing::warn!("{error}");
        }
    }

    /// Makes a change on a blocking thread, after all that were requested before it. It completes even if the caller is
    /// cancelled.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut StoredBreakpoints) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let turn = Arc::clone(&self.0.changes).lock_owned().await;
        let inner = Arc::clone(&self.0);
        let changed = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            inner.change(change)
        });
        changed.await.unwrap_or_else(|cause| Err(Error::other("cannot change the breakpoints").because(cause)))
    }
}

impl StoreInner {
    /// Blocks on the files. Called only by the holder of the turn.
    fn change<T>(&self, change: impl FnOnce(&mut StoredBreakpoints) -> Result<T>) -> Result<T> {
        let current = Arc::clone(&lock(&self.current));
        let mut next = StoredBreakpoints::clone(&current);
        let result = change(&mut next)?;
        if !next.has_same_breakpoints(&current) {
            self.write(&next)?;
        }
        *lock(&self.current) = Arc::new(next);
        Ok(result)
    }

    fn write(&self, list: &StoredBreakpoints) -> Result<()> {
        let Some(workspace) = &self.workspace else { return Ok(()) };
        let mut text = serde_json::to_vec_pretty(list).doing(|| "cannot write the breakpoints".into())?;
        text.push(b'\n');
        store_file(workspace).replace(&text)
    }
}

/// The canonical path and the text of a file for a breakpoint. Errors: it is no readable source file.
fn read_breakpoint_source(file: &Path) -> Result<(PathBuf, String)> {
    let file = std::path::absolute(file).doing(|| format!("cannot resolve {}", file.display()))?;
    let file = file.canonicalize().map_err(|cause| {
        let error = Error::new(ErrorKind::Usage, format!("cannot set a breakpoint in {}", file.display()));
        error.because(cause).hint("name a file that is there, relative to the workspace")
    })?;
    let text = read_source(&file)
        .doing(|| format!("cannot set a breakpoint in {}", file.display()))
        .map_err(|error| error.hint("name a source file, relative to the workspace"))?;
    Ok((file, text))
}

fn store_file(workspace: &Path) -> WorkspaceFile<'_> {
    WorkspaceFile { workspace, name: NAME, most: 16 << 20, what: "the breakpoints are as they were" }
}

#[cfg(test)]
mod tests {
    use super::super::anchor::AnchorStatus;
    use super::super::spec::DataAccess;
    use super::*;

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
        let data = BreakpointKind::Data { expression: "self.x".into(), access: DataAccess::ReadWrite };
        store.set(data, BreakpointConditions::default()).await.unwrap();
        store.set_exceptions(ExceptionSpec { uncaught: true, ..ExceptionSpec::default() }).await.unwrap();

        std::fs::write(&file, format!("import os\n{CODE}")).unwrap();
        let store = BreakpointStore::open(workspace.path());
        assert_eq!(store.problem(), None);
        let list = store.current();
        assert_eq!(list.all().iter().map(|spec| spec.id).collect::<Vec<_>>(), [1, 4, 5], "temporary ones are not kept");
        assert!(list.exceptions().uncaught);
        store.follow_source_changes().await;
        let list = store.current();
        let BreakpointKind::Line { line, anchor_status, .. } = &list.get(1).unwrap().kind else { panic!() };
        assert_eq!((*line, anchor_status), (3, &AnchorStatus::Moved { from: 2 }));
        assert_eq!(list.get(1).unwrap().conditions.condition.as_deref(), Some("x > 1"));

        assert_eq!(store.remove(|spec| spec.id == 1).await.unwrap().len(), 1);
        let function = BreakpointKind::Function { name: "f".into() };
        let function = store.set(function, BreakpointConditions::default()).await.unwrap();
        assert_eq!(function.id, 6, "ids are never reused");
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

    #[test]
    fn a_file_that_cannot_be_read_is_set_aside() {
        let workspace = tempfile::tempdir().unwrap();
        std::fs::create_dir(workspace.path().join(".devtools")).unwrap();
        for text in ["", "[]", "{\"version\": 9, \"lastId\": 1, \"breakpoints\": []}", "\u{0}"] {
            std::fs::write(workspace.path().join(".devtools").join(NAME), text).unwrap();
            let store = BreakpointStore::open(workspace.path());
            assert!(store.current().all().is_empty() && store.problem().unwrap().contains("set aside"), "{text:?}");
        }
    }
}
