//! All breakpoints that are wanted in a workspace, and `.devtools/breakpoints.json`, which keeps them.
//!
//! The file lies in a workspace, so it may be anybody's: one that cannot be read is set aside, and said.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::anchor::{AnchorStatus, LineAnchor};
use super::spec::{BreakpointConditions, BreakpointKind, BreakpointSpec, ExceptionSpec};
use crate::debug::source_file;
use crate::error::{Error, ErrorContext, ErrorKind, Result};
use crate::workspace_dir::WorkspaceFile;

const NAME: &str = "breakpoints.json";
const VERSION: u32 = 1;
/// More are a mistake.
const MOST: usize = 10_000;

/// Everything that is wanted. Each change is written at once; what cannot be written is not changed.
#[derive(Debug)]
pub struct BreakpointStore {
    /// None: they are only for once, and kept nowhere.
    workspace: Option<PathBuf>,
    page: StoredBreakpoints,
    /// What was wrong with the file.
    pub problem: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredBreakpoints {
    version: u32,
    last_id: u32,
    breakpoints: Vec<BreakpointSpec>,
    #[serde(default, skip_serializing_if = "ExceptionSpec::is_empty")]
    exceptions: ExceptionSpec,
}

impl BreakpointStore {
    pub fn open(workspace: &Path) -> BreakpointStore {
        let file = store_file(workspace);
        let read = file.read().map_err(|reason| reason.to_string()).and_then(|text| match text {
            Some(text) => parse_stored(&text),
            None => Ok(StoredBreakpoints::default()),
        });
        let (page, problem) = match read {
            Ok(page) => (page, None),
            Err(reason) => {
                (StoredBreakpoints::default(), Some(file.set_aside(&reason).unwrap_or_else(|error| error.to_string())))
            }
        };
        BreakpointStore { workspace: Some(workspace.to_owned()), page, problem }
    }

    /// One that is empty, and kept nowhere.
    pub fn in_memory() -> BreakpointStore {
        BreakpointStore { workspace: None, page: StoredBreakpoints::default(), problem: None }
    }

    pub fn all(&self) -> &[BreakpointSpec] {
        &self.page.breakpoints
    }

    pub fn exceptions(&self) -> &ExceptionSpec {
        &self.page.exceptions
    }

    pub fn get(&self, id: u32) -> Option<&BreakpointSpec> {
        self.page.breakpoints.iter().find(|wanted| wanted.id == id)
    }

    /// The files with line breakpoints.
    pub fn files(&self) -> BTreeSet<PathBuf> {
        self.page.breakpoints.iter().filter_map(|wanted| wanted.file().map(Path::to_owned)).collect()
    }

    /// The line breakpoints of a file.
    pub fn in_file<'a>(&'a self, file: &'a Path) -> impl Iterator<Item = &'a BreakpointSpec> {
        self.page.breakpoints.iter().filter(move |wanted| wanted.file() == Some(file))
    }

    /// Wants a line of a file; the same line again changes the conditions of the one that is there.

    /// Errors: no such file, no such line.
    pub fn set_line_breakpoint(
        &mut self,
        file: &Path,
        line: u32,
        conditions: BreakpointConditions,
    ) -> Result<BreakpointSpec> {
        let (what, known) = self.resolve_line(file, line)?;
        self.put_breakpoint(known.map(|known| known.id), what, conditions)
    }

    /// A line to which one session is to run: nobody else's, and not kept. None when a breakpoint without conditions is

    /// there, which does it. Errors: as [`Book::set_line`].
    pub fn temporary_breakpoint(&mut self, file: &Path, line: u32) -> Result<Option<BreakpointSpec>> {
        let (what, known) = self.resolve_line(file, line)?;
        if known.is_some_and(|known| known.conditions == BreakpointConditions::default()) {
            return Ok(None);
        }
        self.page.last_id += 1;
        Ok(Some(BreakpointSpec { id: self.page.last_id, kind: what, conditions: BreakpointConditions::default() }))
    }

    /// A line of a file as it is now, and the breakpoint that is on it.
    fn resolve_line(&mut self, file: &Path, line: u32) -> Result<(BreakpointKind, Option<BreakpointSpec>)> {
        let file = std::path::absolute(file).doing(|| format!("cannot resolve {}", file.display()))?;
        let file = file.canonicalize().map_err(|cause| {
            let error = Error::new(ErrorKind::Usage, format!("cannot set a breakpoint in {}", file.display()));
            error.because(cause).hint("name a file that is there, relative to the workspace")
        })?;
        let text = source_file::read_source(&file)
            .doing(|| format!("cannot set a breakpoint in {}", file.display()))
            .map_err(|error| error.hint("name a source file, relative to the workspace"))?;
        let Some(anchor) = LineAnchor::from_text(&text, line) else {
            let error = Error::usage(format!("cannot set a breakpoint on line {line} of {}", file.display()));
            return Err(error.because(format!("it has {} lines", text.lines().count())));
        };
        self.follow_source_change(&file);
        let whereabouts = AnchorStatus::Kept;
        let what = BreakpointKind::Line { file: file.clone(), line, anchor, anchor_status: whereabouts };
        let known =
            self.in_file(&file).find(|wanted| matches!(wanted.kind, BreakpointKind::Line {line: l,..} if l == line));
        let known = known.cloned();
        Ok((what, known))
    }

    /// Wants a function, or data; the same again changes the one that is there.
    pub fn set_breakpoint(&mut self, what: BreakpointKind, conditions: BreakpointConditions) -> Result<BreakpointSpec> {
        let same = |wanted: &&BreakpointSpec| match (&wanted.kind, &what) {
            (BreakpointKind::Function { name: a }, BreakpointKind::Function { name: b }) => a == b,
            (BreakpointKind::Data { expression: a, .. }, BreakpointKind::Data { expression: b, .. }) => a == b,
            _ => false,
        };
        let known = self.page.breakpoints.iter().find(same).map(|wanted| wanted.id);
        self.put_breakpoint(known, what, conditions)
    }

    fn put_breakpoint(
        &mut self,
        known: Option<u32>,
        what: BreakpointKind,
        conditions: BreakpointConditions,
    ) -> Result<BreakpointSpec> {
        let mut next = self.page.clone();
        let id = known.unwrap_or(next.last_id + 1);
        let wanted = BreakpointSpec { id, kind: what, conditions };
        match next.breakpoints.iter().position(|other| other.id == id) {
            Some(index) => next.breakpoints[index] = wanted.clone(),
            None if next.breakpoints.len() >= MOST => {
                let error = Error::usage(format!("there are {MOST} breakpoints already"));
                return Err(error.hint("`tether break remove --all` removes them"));
            }
            None => next.breakpoints.push(wanted.clone()),
        }
        next.last_id = next.last_id.max(id);
        self.replace_stored(next)?;
        Ok(wanted)
    }

    pub fn set_exceptions(&mut self, exceptions: ExceptionSpec) -> Result<()> {
        let next = StoredBreakpoints { exceptions, ..self.page.clone() };
        self.replace_stored(next)
    }

    /// Removes those that `gone` chooses; answers with them.
    pub fn remove(&mut self, gone: impl Fn(&BreakpointSpec) -> bool) -> Result<Vec<BreakpointSpec>> {
        let mut next = self.page.clone();
        let removed: Vec<BreakpointSpec> = next.breakpoints.iter().filter(|wanted| gone(wanted)).cloned().collect();
        if !removed.is_empty() {
            next.breakpoints.retain(|wanted| !gone(wanted));
            self.replace_stored(next)?;
        }
        Ok(removed)
    }

    /// Looks where the code of a file's breakpoints is now.
    pub fn follow_source_change(&mut self, path: &Path) {
        // A file that is gone has no code to follow; when it is back, its breakpoints are too.
        let Ok(text) = source_file::read_source(path) else { return };
        let mut next = self.page.clone();
        for wanted in &mut next.breakpoints {
            let BreakpointKind::Line { file, line, anchor, anchor_status: whereabouts, .. } = &mut wanted.kind else {
                continue;
            };
            if file != path {
                continue;
            }
            let (at, now) = anchor.find_line(&text, *line);
            match now {
                AnchorStatus::Kept if whereabouts.has_line() => {}
                _ => *whereabouts = now,
            }
            *line = at;
            if whereabouts.has_line() {
                *anchor = LineAnchor::from_text(&text, at).unwrap_or_default();
            }
        }
        if next.breakpoints != self.page.breakpoints
            && let Err(error) = self.replace_stored(next)
        {
            tracing::warn!("{error}");
        }
    }

    /// As [`Book::follow`], for all files.
    pub fn follow_source_changes(&mut self) {
        for file in self.files() {
            self.follow_source_change(&file);
        }
    }

    fn replace_stored(&mut self, next: StoredBreakpoints) -> Result<()> {
        let next = StoredBreakpoints { version: VERSION, ..next };
        let mut text = serde_json::to_vec_pretty(&next).doing(|| "cannot write the breakpoints".into())?;
        text.push(b'\n');
        if let Some(workspace) = &self.workspace {
            store_file(workspace).replace(&text)?;
        }
        self.page = next;
        Ok(())
    }
}

fn store_file(workspace: &Path) -> WorkspaceFile<'_> {
    WorkspaceFile { workspace, name: NAME, most: 16 << 20, what: "the breakpoints are as they were" }
}

fn parse_stored(text: &[u8]) -> Result<StoredBreakpoints, String> {
    let page: StoredBreakpoints =
        serde_json::from_slice(text).map_err(|cause| format!("it is not a list of breakpoints: {cause}"))?;
    match page.version {
        VERSION if page.breakpoints.len() <= MOST => Ok(page),
        VERSION => Err(format!("it has more than {MOST} breakpoints")),
        newer => Err(format!("it has the schema {newer} (this program knows {VERSION})")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::DataAccess;
    use super::*;

    const CODE: &str = "def f(x):\n    y = x + 1\n    return y\n";

    #[test]
    fn what_is_wanted_is_kept_over_a_restart_and_follows_its_code() {
        let workspace = tempfile::tempdir().unwrap();
        let file = workspace.path().join("a b ü.py");
        std::fs::write(&file, CODE).unwrap();
        let file = file.canonicalize().unwrap();
        let mut book = BreakpointStore::open(workspace.path());
        let conditions = BreakpointConditions { condition: Some("x > 1".into()), ..BreakpointConditions::default() };
        let line = book.set_line_breakpoint(&file, 2, conditions.clone()).unwrap();
        let again = book.set_line_breakpoint(&file, 2, BreakpointConditions::default()).unwrap();
        assert_eq!((line.id, again.id, again.conditions), (1, 1, BreakpointConditions::default()));
        book.set_line_breakpoint(&file, 2, conditions).unwrap();
        let goal =
            |book: &mut BreakpointStore, line| book.temporary_breakpoint(&file, line).unwrap().map(|goal| goal.id);
        assert_eq!((goal(&mut book, 3), goal(&mut book, 2)), (Some(2), Some(3)), "the one there has a condition");
        book.set_line_breakpoint(&file, 1, BreakpointConditions::default()).unwrap();
        assert_eq!(goal(&mut book, 1), None);
        let data = BreakpointKind::Data { expression: "self.x".into(), access: DataAccess::ReadWrite };
        book.set_breakpoint(data, BreakpointConditions::default()).unwrap();
        book.set_exceptions(ExceptionSpec { uncaught: true, ..ExceptionSpec::default() }).unwrap();

        std::fs::write(&file, format!("import os\n{CODE}")).unwrap();
        let mut book = BreakpointStore::open(workspace.path());
        assert_eq!(book.problem, None);
        assert_eq!(book.all().iter().map(|wanted| wanted.id).collect::<Vec<_>>(), [1, 4, 5], "run to line is not kept");
        assert!(book.exceptions().uncaught);
        book.follow_source_changes();
        let BreakpointKind::Line { line, anchor_status: whereabouts, .. } = &book.get(1).unwrap().kind else {
            panic!()
        };
        assert_eq!((*line, whereabouts), (3, &AnchorStatus::Moved { from: 2 }));
        assert_eq!(book.get(1).unwrap().conditions.condition.as_deref(), Some("x > 1"));

        assert_eq!(book.remove(|wanted| wanted.id == 1).unwrap().len(), 1);
        let function = book
            .set_breakpoint(BreakpointKind::Function { name: "f".into() }, BreakpointConditions::default())
            .unwrap();
        assert_eq!(function.id, 6, "an id is never given again");
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let workspace = tempfile::tempdir().unwrap();
        let file = workspace.path().join("a.py");
        std::fs::write(&file, CODE).unwrap();
        let mut book = BreakpointStore::open(workspace.path());
        let check = |book: &mut BreakpointStore, file: &Path, line: u32, expect: &str| {
            let error = book.set_line_breakpoint(file, line, BreakpointConditions::default()).unwrap_err();
            assert!(error.kind == ErrorKind::Usage && error.to_string().contains(expect), "{error}");
        };
        check(&mut book, &workspace.path().join("none.py"), 1, "none.py");
        check(&mut book, &file, 4, "it has 3 lines");
        check(&mut book, &file, 0, "it has 3 lines");
    }

    #[test]
    fn a_file_that_is_not_ours_is_set_aside() {
        let workspace = tempfile::tempdir().unwrap();
        std::fs::create_dir(workspace.path().join(".devtools")).unwrap();
        for text in ["", "[]", "{\"version\": 9, \"lastId\": 1, \"breakpoints\": []}", "\u{0}"] {
            std::fs::write(workspace.path().join(".devtools").join(NAME), text).unwrap();
            let book = BreakpointStore::open(workspace.path());
            assert!(book.all().is_empty() && book.problem.unwrap().contains("set aside"), "{text:?}");
        }
    }
}
