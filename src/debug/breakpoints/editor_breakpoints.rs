//! The breakpoints of joined editors: each belongs to its editor, and goes with it.
//!
//! An editor replaces its own and no others. They are sent to every session, as the workspace's are, and are stored with them,
//! so that each session's host knows them; those of an editor whose process has ended are removed.
//! Does no I/O. Does not depend on how an editor sends them.

use std::path::PathBuf;

use tether_base::error::Result;
use tether_dap::types::ExceptionFilterOptions;

use super::list::StoredBreakpoints;
use super::spec::{
    BreakpointConditions, BreakpointFile, BreakpointKind, BreakpointOwner, BreakpointSpec, EditorExceptions,
    LinePosition,
};

/// A line breakpoint as an editor requests it.
#[derive(Clone, Debug)]
pub struct EditorLine {
    /// Where it is.
    pub at: LinePosition,
    /// When it stops there.
    pub conditions: BreakpointConditions,
}

/// What has become of the line breakpoints that an editor has replaced.
#[derive(Debug)]
pub struct ReplacedLines {
    /// The file by its canonical path, as the breakpoints name it.
    pub file: PathBuf,
    /// For each requested line the breakpoint there, or why there is none.
    pub specs: Vec<Result<BreakpointSpec>>,
    /// The ids of those that are gone.
    pub removed: Vec<u32>,
}

impl StoredBreakpoints {
    /// Replaces an editor's line breakpoints in a file with that text. One that is there already keeps its id; where the
    /// workspace itself has the same breakpoint, that one counts as the editor's too.
    pub fn replace_editor_lines(
        &mut self,
        owner: &BreakpointOwner,
        file: BreakpointFile<'_>,
        text: &str,
        lines: Vec<EditorLine>,
    ) -> ReplacedLines {
        let is_own = |spec: &BreakpointSpec| spec.owner.as_ref() == Some(owner) && spec.file() == Some(file.path);
        let mut before: Vec<BreakpointSpec> = self.breakpoints.extract_if(.., |spec| is_own(spec)).collect();
        let specs = lines.into_iter().map(|line| self.put_editor_line(owner, file, text, line, &mut before)).collect();
        ReplacedLines { file: file.path.to_owned(), specs, removed: before.iter().map(|spec| spec.id).collect() }
    }

    fn put_editor_line(
        &mut self,
        owner: &BreakpointOwner,
        file: BreakpointFile<'_>,
        text: &str,
        EditorLine { at, conditions }: EditorLine,
        before: &mut Vec<BreakpointSpec>,
    ) -> Result<BreakpointSpec> {
        let (kind, of_workspace) = self.resolve_line(file, text, at)?;
        if let Some(same) = of_workspace.filter(|spec| spec.conditions == conditions) {
            return Ok(same);
        }
        let known = before.iter().position(|spec| spec.is_at(file.path, at)).map(|index| before.remove(index).id);
        let id = known.unwrap_or_else(|| self.next_id());
        self.put_spec(BreakpointSpec { id, kind, conditions, owner: Some(owner.clone()) })
    }

    /// Replaces an editor's function breakpoints. Returns those that it has now, and the ids of those that are gone.
    pub fn replace_editor_functions(
        &mut self,
        owner: &BreakpointOwner,
        functions: Vec<(String, BreakpointConditions)>,
    ) -> (Vec<Result<BreakpointSpec>>, Vec<u32>) {
        let is_own = |spec: &BreakpointSpec| {
            spec.owner.as_ref() == Some(owner) && matches!(spec.kind, BreakpointKind::Function { .. })
        };
        let mut before: Vec<BreakpointSpec> = self.breakpoints.extract_if(.., |spec| is_own(spec)).collect();
        let mut specs = Vec::new();
        for (name, conditions) in functions {
            let is_same =
                |spec: &BreakpointSpec| matches!(&spec.kind, BreakpointKind::Function { name: it } if *it == name);
            let known = before.iter().position(is_same).map(|index| before.remove(index).id);
            let (id, kind) = (known.unwrap_or_else(|| self.next_id()), BreakpointKind::Function { name });
            specs.push(self.put_spec(BreakpointSpec { id, kind, conditions, owner: Some(owner.clone()) }));
        }
        (specs, before.iter().map(|spec| spec.id).collect())
    }

    /// Replaces the exceptions on which an editor wants to stop.
    pub fn replace_editor_exceptions(&mut self, owner: &BreakpointOwner, filters: Vec<ExceptionFilterOptions>) {
        self.editor_exceptions.retain(|it| it.owner != *owner);
        if !filters.is_empty() {
            self.editor_exceptions.push(EditorExceptions { owner: owner.clone(), filters });
        }
    }

    /// Removes everything of an editor, and returns its breakpoints.
    pub fn remove_editor(&mut self, owner: &BreakpointOwner) -> Vec<BreakpointSpec> {
        self.editor_exceptions.retain(|it| it.owner != *owner);
        self.breakpoints.extract_if(.., |spec| spec.owner.as_ref() == Some(owner)).collect()
    }

    /// Removes what belongs to editors for which `is_gone` is true.
    pub fn remove_editors(&mut self, is_gone: impl Fn(&BreakpointOwner) -> bool) {
        self.editor_exceptions.retain(|it| !is_gone(&it.owner));
        self.breakpoints.retain(|spec| !spec.owner.as_ref().is_some_and(&is_gone));
    }

    /// What is exported: the workspace's own.
    pub(in crate::debug) fn without_editors(&self) -> StoredBreakpoints {
        let mut own = self.clone();
        own.remove_editors(|_| true);
        own
    }

    /// Whether all breakpoints and exceptions are the same, apart from the last id.
    pub(super) fn has_same_content(&self, other: &StoredBreakpoints) -> bool {
        self.breakpoints == other.breakpoints
            && self.exceptions == other.exceptions
            && self.are_exceptions_chosen == other.are_exceptions_chosen
            && self.editor_exceptions == other.editor_exceptions
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const TEXT: &str = "a\nb\nc\nd\n";

    fn editor(number: u64) -> BreakpointOwner {
        BreakpointOwner { editor: number, name: format!("editor {number}").into(), host: None }
    }

    fn lines(numbers: &[u32]) -> Vec<EditorLine> {
        let line = |line: &u32| EditorLine { at: (*line).into(), conditions: BreakpointConditions::default() };
        numbers.iter().map(line).collect()
    }

    fn ids(replaced: &ReplacedLines) -> Vec<Option<u32>> {
        replaced.specs.iter().map(|spec| spec.as_ref().ok().map(|spec| spec.id)).collect()
    }

    #[test]
    fn an_editor_replaces_only_its_own_and_those_of_others_stay() {
        let (mut list, file) = (StoredBreakpoints::default(), Path::new("/a.py"));
        list.set_line(file.into(), TEXT, 1.into(), BreakpointConditions::default()).unwrap();
        let first = list.replace_editor_lines(&editor(1), file.into(), TEXT, lines(&[2, 3, 9]));
        assert_eq!((ids(&first), first.removed), (vec![Some(2), Some(3), None], vec![]));
        assert!(first.specs[2].as_ref().unwrap_err().to_string().contains("it has 4 lines"));
        let other = list.replace_editor_lines(&editor(2), file.into(), TEXT, lines(&[2]));
        assert_eq!(ids(&other), [Some(4)], "each has its own on the same line");
        // Line 3 keeps its id; the workspace's own breakpoint on line 1 counts for both.
        let again = list.replace_editor_lines(&editor(1), file.into(), TEXT, lines(&[3, 1]));
        assert_eq!((ids(&again), again.removed), (vec![Some(3), Some(1)], vec![2]));
        let none = list.replace_editor_lines(&editor(1), file.into(), TEXT, Vec::new());
        assert_eq!(none.removed, [3], "the workspace's own stays");
        assert_eq!(list.breakpoints.iter().map(|spec| spec.id).collect::<Vec<_>>(), [1, 4]);
        // The agent's breakpoint on an editor's line is a second one.
        assert_eq!(list.set_line(file.into(), TEXT, 2.into(), BreakpointConditions::default()).unwrap().id, 5);
        assert_eq!(list.remove_editor(&editor(2)).len(), 1);
        assert_eq!(list.breakpoints.len(), 2);
    }

    #[test]
    fn what_an_editor_has_is_stored_with_it_and_not_exported() {
        let (mut list, file) = (StoredBreakpoints::default(), Path::new("/a.py"));
        list.replace_editor_lines(&editor(1), file.into(), TEXT, lines(&[2]));
        let functions = vec![("f".to_owned(), BreakpointConditions::default())];
        let (specs, _) = list.replace_editor_functions(&editor(1), functions.clone());
        assert_eq!(specs[0].as_ref().unwrap().id, 2);
        let (specs, removed) = list.replace_editor_functions(&editor(1), functions);
        assert_eq!((specs[0].as_ref().unwrap().id, removed), (2, vec![]), "it keeps its id");
        list.replace_editor_exceptions(&editor(1), vec![ExceptionFilterOptions::default()]);
        let stored = StoredBreakpoints::parse(&list.to_text().unwrap()).unwrap();
        assert!(stored.has_same_content(&list));
        let exported = list.without_editors();
        assert!(exported.breakpoints.is_empty() && exported.editor_exceptions.is_empty());
        list.remove_editors(|owner| owner.editor == 2);
        assert!(stored.has_same_content(&list));
        list.remove_editors(|owner| owner.editor == 1);
        assert!(list.has_same_content(&StoredBreakpoints::default()));
    }
}
