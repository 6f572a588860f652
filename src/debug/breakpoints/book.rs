//! All breakpoints that are wanted in a workspace, and `.devtools/breakpoints.json`, which keeps them.
//!
//! The file lies in a workspace, so it may be anybody's: one that cannot be read is set aside, and said.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::anchor::Anchor;
use super::wanted::{Conditions, Exceptions, Wanted, What};
use crate::debug::source_file;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::keep::Kept;

const NAME: &str = "breakpoints.json";
const VERSION: u32 = 1;
/// More are a mistake.
const MOST: usize = 10_000;

/// Everything that is wanted. Each change is written at once; what cannot be written is not changed.
#[derive(Debug)]
pub struct Book {
    /// None: they are only for once, and kept nowhere.
    workspace: Option<PathBuf>,
    page: Page,
    /// What was wrong with the file.
    pub problem: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    version: u32,
    last_id: u32,
    breakpoints: Vec<Wanted>,
    #[serde(default, skip_serializing_if = "Exceptions::is_none")]
    exceptions: Exceptions,
}

impl Book {
    pub fn open(workspace: &Path) -> Book {
        let file = kept(workspace);
        let read = file.read().map_err(|reason| reason.to_string()).and_then(|text| match text {
            Some(text) => parse(&text),
            None => Ok(Page::default()),
        });
        let (page, problem) = match read {
            Ok(page) => (page, None),
            Err(reason) => (Page::default(), Some(file.set_aside(&reason).unwrap_or_else(|error| error.to_string()))),
        };
        Book { workspace: Some(workspace.to_owned()), page, problem }
    }

    /// One that is empty, and kept nowhere.
    pub fn blank() -> Book {
        Book { workspace: None, page: Page::default(), problem: None }
    }

    pub fn all(&self) -> &[Wanted] {
        &self.page.breakpoints
    }

    pub fn exceptions(&self) -> &Exceptions {
        &self.page.exceptions
    }

    pub fn get(&self, id: u32) -> Option<&Wanted> {
        self.page.breakpoints.iter().find(|wanted| wanted.id == id)
    }

    /// The files with line breakpoints.
    pub fn files(&self) -> BTreeSet<PathBuf> {
        self.page.breakpoints.iter().filter_map(|wanted| wanted.file().map(Path::to_owned)).collect()
    }

    /// The line breakpoints of a file.
    pub fn in_file<'a>(&'a self, file: &'a Path) -> impl Iterator<Item = &'a Wanted> {
        self.page.breakpoints.iter().filter(move |wanted| wanted.file() == Some(file))
    }

    /// Wants a line of a file; the same line again changes the conditions of the one that is there.
    /// Errors: no such file, no such line.
    pub fn set_line(&mut self, file: &Path, line: u32, conditions: Conditions) -> Result<Wanted> {
        let (what, known) = self.line(file, line)?;
        self.put(known.map(|known| known.id), what, conditions)
    }

    /// A line to which one session is to run: nobody else's, and not kept. None when a breakpoint without conditions is
    /// there, which does it. Errors: as [`Book::set_line`].
    pub fn goal(&mut self, file: &Path, line: u32) -> Result<Option<Wanted>> {
        let (what, known) = self.line(file, line)?;
        if known.is_some_and(|known| known.conditions == Conditions::default()) {
            return Ok(None);
        }
        self.page.last_id += 1;
        Ok(Some(Wanted { id: self.page.last_id, what, conditions: Conditions::default() }))
    }

    /// A line of a file as it is now, and the breakpoint that is on it.
    fn line(&mut self, file: &Path, line: u32) -> Result<(What, Option<Wanted>)> {
        let file = std::path::absolute(file).doing(|| format!("cannot resolve {}", file.display()))?;
        let file = file.canonicalize().map_err(|cause| {
            let error = Error::new(ErrorKind::Usage, format!("cannot set a breakpoint in {}", file.display()));
            error.because(cause).hint("name a file that is there, relative to the workspace")
        })?;
        let text = source_file::read(&file)
            .doing(|| format!("cannot set a breakpoint in {}", file.display()))
            .map_err(|error| error.hint("name a source file, relative to the workspace"))?;
        let Some(anchor) = Anchor::of(&text, line) else {
            let error = Error::usage(format!("cannot set a breakpoint on line {line} of {}", file.display()));
            return Err(error.because(format!("it has {} lines", text.lines().count())));
        };
        self.follow(&file);
        let whereabouts = super::wanted::Whereabouts::Kept;
        let what = What::Line { file: file.clone(), line, anchor, whereabouts };
        let known = self.in_file(&file).find(|wanted| matches!(wanted.what, What::Line { line: l, .. } if l == line));
        let known = known.cloned();
        Ok((what, known))
    }

    /// Wants a function, or data; the same again changes the one that is there.
    pub fn set(&mut self, what: What, conditions: Conditions) -> Result<Wanted> {
        let same = |wanted: &&Wanted| match (&wanted.what, &what) {
            (What::Function { name: a }, What::Function { name: b }) => a == b,
            (What::Data { expression: a, .. }, What::Data { expression: b, .. }) => a == b,
            _ => false,
        };
        let known = self.page.breakpoints.iter().find(same).map(|wanted| wanted.id);
        self.put(known, what, conditions)
    }

    fn put(&mut self, known: Option<u32>, what: What, conditions: Conditions) -> Result<Wanted> {
        let mut next = self.page.clone();
        let id = known.unwrap_or(next.last_id + 1);
        let wanted = Wanted { id, what, conditions };
        match next.breakpoints.iter().position(|other| other.id == id) {
            Some(index) => next.breakpoints[index] = wanted.clone(),
            None if next.breakpoints.len() >= MOST => {
                let error = Error::usage(format!("there are {MOST} breakpoints already"));
                return Err(error.hint("`tether break remove --all` removes them"));
            }
            None => next.breakpoints.push(wanted.clone()),
        }
        next.last_id = next.last_id.max(id);
        self.turn(next)?;
        Ok(wanted)
    }

    pub fn set_exceptions(&mut self, exceptions: Exceptions) -> Result<()> {
        let next = Page { exceptions, ..self.page.clone() };
        self.turn(next)
    }

    /// Removes those that `gone` chooses; answers with them.
    pub fn remove(&mut self, gone: impl Fn(&Wanted) -> bool) -> Result<Vec<Wanted>> {
        let mut next = self.page.clone();
        let removed: Vec<Wanted> = next.breakpoints.iter().filter(|wanted| gone(wanted)).cloned().collect();
        if !removed.is_empty() {
            next.breakpoints.retain(|wanted| !gone(wanted));
            self.turn(next)?;
        }
        Ok(removed)
    }

    /// Looks where the code of a file's breakpoints is now.
    pub fn follow(&mut self, path: &Path) {
        // A file that is gone has no code to follow; when it is back, its breakpoints are too.
        let Ok(text) = source_file::read(path) else { return };
        let mut next = self.page.clone();
        for wanted in &mut next.breakpoints {
            let What::Line { file, line, anchor, whereabouts, .. } = &mut wanted.what else { continue };
            if file != path {
                continue;
            }
            let (at, now) = anchor.follow(&text, *line);
            match now {
                super::wanted::Whereabouts::Kept if whereabouts.is_known() => {}
                _ => *whereabouts = now,
            }
            *line = at;
            if whereabouts.is_known() {
                *anchor = Anchor::of(&text, at).unwrap_or_default();
            }
        }
        if next.breakpoints != self.page.breakpoints
            && let Err(error) = self.turn(next)
        {
            tracing::warn!("{error}");
        }
    }

    /// As [`Book::follow`], for all files.
    pub fn follow_all(&mut self) {
        for file in self.files() {
            self.follow(&file);
        }
    }

    fn turn(&mut self, next: Page) -> Result<()> {
        let next = Page { version: VERSION, ..next };
        let mut text = serde_json::to_vec_pretty(&next).doing(|| "cannot write the breakpoints".into())?;
        text.push(b'\n');
        if let Some(workspace) = &self.workspace {
            kept(workspace).replace(&text)?;
        }
        self.page = next;
        Ok(())
    }
}

fn kept(workspace: &Path) -> Kept<'_> {
    Kept { workspace, name: NAME, most: 16 << 20, what: "the breakpoints are as they were" }
}

fn parse(text: &[u8]) -> Result<Page, String> {
    let page: Page =
        serde_json::from_slice(text).map_err(|cause| format!("it is not a list of breakpoints: {cause}"))?;
    match page.version {
        VERSION if page.breakpoints.len() <= MOST => Ok(page),
        VERSION => Err(format!("it has more than {MOST} breakpoints")),
        newer => Err(format!("it has the schema {newer} (this program knows {VERSION})")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::wanted::{Access, Whereabouts};
    use super::*;

    const CODE: &str = "def f(x):\n    y = x + 1\n    return y\n";

    #[test]
    fn what_is_wanted_is_kept_over_a_restart_and_follows_its_code() {
        let workspace = tempfile::tempdir().unwrap();
        let file = workspace.path().join("a b ü.py");
        std::fs::write(&file, CODE).unwrap();
        let file = file.canonicalize().unwrap();
        let mut book = Book::open(workspace.path());
        let conditions = Conditions { condition: Some("x > 1".into()), ..Conditions::default() };
        let line = book.set_line(&file, 2, conditions.clone()).unwrap();
        let again = book.set_line(&file, 2, Conditions::default()).unwrap();
        assert_eq!((line.id, again.id, again.conditions), (1, 1, Conditions::default()));
        book.set_line(&file, 2, conditions).unwrap();
        let goal = |book: &mut Book, line| book.goal(&file, line).unwrap().map(|goal| goal.id);
        assert_eq!((goal(&mut book, 3), goal(&mut book, 2)), (Some(2), Some(3)), "the one there has a condition");
        book.set_line(&file, 1, Conditions::default()).unwrap();
        assert_eq!(goal(&mut book, 1), None);
        let data = What::Data { expression: "self.x".into(), access: Access::ReadWrite };
        book.set(data, Conditions::default()).unwrap();
        book.set_exceptions(Exceptions { uncaught: true, ..Exceptions::default() }).unwrap();

        std::fs::write(&file, format!("import os\n{CODE}")).unwrap();
        let mut book = Book::open(workspace.path());
        assert_eq!(book.problem, None);
        assert_eq!(book.all().iter().map(|wanted| wanted.id).collect::<Vec<_>>(), [1, 4, 5], "run to line is not kept");
        assert!(book.exceptions().uncaught);
        book.follow_all();
        let What::Line { line, whereabouts, .. } = &book.get(1).unwrap().what else { panic!() };
        assert_eq!((*line, whereabouts), (3, &Whereabouts::Moved { from: 2 }));
        assert_eq!(book.get(1).unwrap().conditions.condition.as_deref(), Some("x > 1"));

        assert_eq!(book.remove(|wanted| wanted.id == 1).unwrap().len(), 1);
        let function = book.set(What::Function { name: "f".into() }, Conditions::default()).unwrap();
        assert_eq!(function.id, 6, "an id is never given again");
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let workspace = tempfile::tempdir().unwrap();
        let file = workspace.path().join("a.py");
        std::fs::write(&file, CODE).unwrap();
        let mut book = Book::open(workspace.path());
        let check = |book: &mut Book, file: &Path, line: u32, expect: &str| {
            let error = book.set_line(file, line, Conditions::default()).unwrap_err();
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
            let book = Book::open(workspace.path());
            assert!(book.all().is_empty() && book.problem.unwrap().contains("set aside"), "{text:?}");
        }
    }
}
