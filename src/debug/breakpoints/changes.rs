//! What has changed between two lists of breakpoints, as far as running programs are told of it.
//!
//! A breakpoint that has only moved with its code is not told: the program runs the code that it was started with. Does no
//! I/O.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::list::StoredBreakpoints;
use super::spec::{BreakpointKind, BreakpointSpec};
use super::sync::ChangedBreakpoints;

/// The kinds of breakpoints that have changed.
#[derive(Debug, Default, PartialEq)]
pub struct BreakpointChanges {
    files: BTreeSet<PathBuf>,
    /// Function breakpoints; whether one was removed.
    functions: Option<bool>,
    exceptions: bool,
    /// Data breakpoints; whether one was added.
    data: Option<bool>,
    /// The ids of those that are gone.
    pub removed: Vec<u32>,
}

impl BreakpointChanges {
    /// What has to be told of `now` to who knows `before`.
    pub fn between(before: &StoredBreakpoints, now: &StoredBreakpoints) -> BreakpointChanges {
        let mut changes = BreakpointChanges {
            exceptions: before.exceptions != now.exceptions || before.editor_exceptions != now.editor_exceptions,
            ..BreakpointChanges::default()
        };
        for spec in &before.breakpoints {
            match now.get(spec.id) {
                Some(same) if is_same(spec, same) => {}
                Some(other) => {
                    changes.record(spec, false);
                    changes.record(other, true);
                }
                None => {
                    changes.removed.push(spec.id);
                    changes.record(spec, false);
                }
            }
        }
        for spec in now.breakpoints.iter().filter(|spec| before.get(spec.id).is_none()) {
            changes.record(spec, true);
        }
        changes
    }

    fn record(&mut self, spec: &BreakpointSpec, is_added: bool) {
        match &spec.kind {
            BreakpointKind::Line { file, .. } => drop(self.files.insert(file.clone())),
            BreakpointKind::Function { .. } | BreakpointKind::ClassLine { .. } => {
                self.functions = Some(self.functions.unwrap_or_default() || !is_added);
            }
            BreakpointKind::Data { .. } => self.data = Some(self.data.unwrap_or_default() || is_added),
        }
    }

    /// As they are sent.
    pub fn requests(&self) -> impl Iterator<Item = ChangedBreakpoints<'_>> {
        let files = self.files.iter().map(|file| ChangedBreakpoints::File(file));
        let data =
            self.data.map(|is_added| if is_added { ChangedBreakpoints::NewData } else { ChangedBreakpoints::Data });
        files
            .chain(self.functions.map(ChangedBreakpoints::Functions))
            .chain(self.exceptions.then_some(ChangedBreakpoints::Exceptions))
            .chain(data)
    }
}

/// Whether a program would be told the same of both, which have the same id.
fn is_same(one: &BreakpointSpec, other: &BreakpointSpec) -> bool {
    let is_same_place = match (&one.kind, &other.kind) {
        (
            BreakpointKind::Line { file, column, .. },
            BreakpointKind::Line { file: others, column: other_column, .. },
        ) => file == others && column == other_column,
        (one, other) => one == other,
    };
    is_same_place && one.conditions == other.conditions
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::spec::BreakpointConditions;
    use super::*;
    use crate::vocabulary::DataAccess;

    const TEXT: &str = "one\ntwo\nthree\n";

    #[test]
    fn each_kind_that_has_changed_is_told_once() {
        let requests = |before: &StoredBreakpoints, now: &StoredBreakpoints| {
            let changes = BreakpointChanges::between(before, now);
            (changes.requests().map(|it| format!("{it:?}")).collect::<Vec<_>>(), changes.removed)
        };
        let mut list = StoredBreakpoints::default();
        let empty = list.clone();
        let line = |list: &mut StoredBreakpoints, file: &str, at: u32, conditions: BreakpointConditions| {
            list.set_line(Path::new(file).into(), TEXT, at.into(), conditions).unwrap().id
        };
        let first = line(&mut list, "/a", 1, BreakpointConditions::default());
        line(&mut list, "/a", 2, BreakpointConditions::default());
        let function = BreakpointKind::Function { name: "f".into() };
        list.set(function, BreakpointConditions::default()).unwrap();
        let data = BreakpointKind::Data { expression: "x".into(), access: DataAccess::Write, persistent_name: None };
        list.set(data, BreakpointConditions::default()).unwrap();
        let all = [r#"File("/a")"#, "Functions(false)", "NewData"].map(str::to_owned).to_vec();
        assert_eq!(requests(&empty, &list), (all, vec![]));
        let gone = [r#"File("/a")"#, "Functions(true)", "Data"].map(str::to_owned).to_vec();
        assert_eq!(requests(&list, &empty), (gone, vec![1, 2, 3, 4]));
        assert_eq!(requests(&list, &list), (vec![], vec![]));

        let mut changed = list.clone();
        let condition = BreakpointConditions { condition: Some("x".into()), ..BreakpointConditions::default() };
        assert_eq!(line(&mut changed, "/a", 1, condition), first);
        changed.exceptions.caught = true;
        let told = [r#"File("/a")"#, "Exceptions"].map(str::to_owned).to_vec();
        assert_eq!(requests(&list, &changed), (told, vec![]));

        let mut moved = list.clone();
        moved.follow_source_change(
            Path::new("/a"),
            &tether_base::line_anchor::SourceLines::of(&format!("zero\n{TEXT}")),
        );
        assert_ne!(moved, list);
        assert_eq!(requests(&list, &moved), (vec![], vec![]), "it has only moved with its code");
    }
}
