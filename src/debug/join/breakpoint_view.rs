//! What one joined editor has been told of the breakpoints: its own, by the responses to its requests, and by events the
//! changes of those and everything that others set.
//!
//! The ids are those of the workspace's breakpoints. Pure.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use tether_dap::types::set_field;

use crate::debug::breakpoints::{BindingStatus, BreakpointKind, BreakpointOwner, BreakpointSpec, StoredBreakpoints};

/// What an editor is told of one breakpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct ToldBreakpoint {
    verified: bool,
    file: Option<PathBuf>,
    line: Option<u32>,
    column: Option<u32>,
    message: Option<String>,
}

impl ToldBreakpoint {
    /// A breakpoint as it is bound now; `file` is the path for the editor.
    pub fn of_spec(spec: &BreakpointSpec, status: BindingStatus, file: Option<PathBuf>) -> ToldBreakpoint {
        let (line, column) = match &spec.kind {
            BreakpointKind::Line { line, column, .. } => (Some(*line), *column),
            _ => (None, None),
        };
        let unbound = |message| ToldBreakpoint { verified: false, file: file.clone(), line, column, message };
        match status {
            BindingStatus::Verified { line: bound, column: at, note } => {
                ToldBreakpoint { verified: true, file, line: bound.or(line), column: at.or(column), message: note }
            }
            BindingStatus::Pending(reason) => unbound(reason),
            BindingStatus::Unbound(reason) => unbound(Some(reason)),
        }
    }

    /// The same with the column that the breakpoint itself has, if any.
    fn at_column_of(self, spec: &BreakpointSpec) -> ToldBreakpoint {
        ToldBreakpoint { column: spec.column(), ..self }
    }

    /// The `Breakpoint` of the protocol.
    pub fn to_json(&self, id: u32) -> Value {
        let mut it = json!({"id": id, "verified": self.verified});
        let source = self.file.as_ref().map(|file| {
            json!({"name": file.file_name().unwrap_or_default().to_string_lossy(), "path": file.to_string_lossy()})
        });
        let message = self.message.clone().map(Value::from);
        let fields = [("source", source), ("line", self.line.map(Value::from)), ("message", message)];
        for (name, value) in fields {
            if let Some(value) = value {
                set_field(&mut it, name, value);
            }
        }
        if let Some(column) = self.column {
            set_field(&mut it, "column", column);
        }
        it
    }
}

/// What one editor has been told.
#[derive(Debug, Default)]
pub struct BreakpointView {
    told: HashMap<u32, ToldBreakpoint>,
}

impl BreakpointView {
    /// Records what a response tells.
    pub fn record(&mut self, id: u32, told: ToldBreakpoint) {
        self.told.insert(id, told);
    }

    /// The editor itself has removed these.
    pub fn forget(&mut self, ids: &[u32]) {
        self.told.retain(|id, _| !ids.contains(id));
    }

    /// The bodies of the `breakpoint` events that are due. A breakpoint of the editor's own that is not told yet is left to
    /// the response to its request. `file`: the path for the editor of a breakpoint's file.
    pub fn take_events(
        &mut self,
        owner: &BreakpointOwner,
        list: &StoredBreakpoints,
        status: impl Fn(u32) -> BindingStatus,
        file: impl Fn(&BreakpointSpec) -> Option<PathBuf>,
    ) -> Vec<Value> {
        let event =
            |reason: &str, id: u32, told: &ToldBreakpoint| json!({"reason": reason, "breakpoint": told.to_json(id)});
        let mut events = Vec::new();
        for spec in &list.breakpoints {
            let is_shown = spec.file().is_some() && spec.has_line() && spec.owner.as_ref() != Some(owner);
            let now = ToldBreakpoint::of_spec(spec, status(spec.id), file(spec));
            let reason = match self.told.get(&spec.id) {
                Some(told) if *told == now => continue,
                Some(_) => "changed",
                None if is_shown => "new",
                None => continue,
            };
            // An editor keeps a new breakpoint as it is told: with the column that it is bound to, it would be another one.
            let told = if reason == "new" { now.clone().at_column_of(spec) } else { now.clone() };
            events.push(event(reason, spec.id, &told));
            self.told.insert(spec.id, now);
        }
        let gone = self.told.extract_if(|id, _| list.get(*id).is_none());
        events.extend(gone.map(|(id, told)| event("removed", id, &told)));
        events
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::debug::breakpoints::{BreakpointConditions, EditorLine};

    fn summary(events: &[Value]) -> Vec<String> {
        let words = |it: &Value| {
            let breakpoint = &it["breakpoint"];
            format!(
                "{} {} {} {}",
                it["reason"].as_str().unwrap(),
                breakpoint["id"],
                breakpoint["line"],
                breakpoint["verified"]
            )
        };
        events.iter().map(words).collect()
    }

    #[test]
    fn an_editor_is_told_what_others_set_and_how_its_own_are_bound() {
        let (mut list, mut view, file) = (StoredBreakpoints::default(), BreakpointView::default(), Path::new("/a.py"));
        let owner = BreakpointOwner { editor: 1, name: "an editor".into(), host: None };
        let text = "a\nb\nc\n";
        list.set_line(file.into(), text, 1.into(), BreakpointConditions::default()).unwrap();
        let line = EditorLine { at: 2.into(), conditions: BreakpointConditions::default() };
        list.replace_editor_lines(&owner, file.into(), text, vec![line]);
        let pending = |_| BindingStatus::Pending(None);
        let events = view.take_events(&owner, &list, pending, BreakpointSpec::owned_file);
        assert_eq!(summary(&events), ["new 1 1 false"], "its own is left to the response");
        assert_eq!(events[0]["breakpoint"]["source"], json!({"name": "a.py", "path": "/a.py"}));
        view.record(
            2,
            ToldBreakpoint::of_spec(list.get(2).unwrap(), BindingStatus::Pending(None), Some(file.to_owned())),
        );
        assert!(view.take_events(&owner, &list, pending, BreakpointSpec::owned_file).is_empty());
        let bound = |id| BindingStatus::Verified { line: Some(id + 1), column: None, note: None };
        assert_eq!(
            summary(&view.take_events(&owner, &list, bound, BreakpointSpec::owned_file)),
            ["changed 1 2 true", "changed 2 3 true"]
        );
        // The agent removes both by their ids.
        list.breakpoints.clear();
        let mut events = summary(&view.take_events(&owner, &list, bound, BreakpointSpec::owned_file));
        events.sort();
        assert_eq!(events, ["removed 1 2 true", "removed 2 3 true"]);
    }

    #[test]
    fn a_new_breakpoint_is_told_with_its_own_column_and_not_with_that_of_its_place() {
        let (mut list, mut view, file) = (StoredBreakpoints::default(), BreakpointView::default(), Path::new("/a.js"));
        let owner = BreakpointOwner { editor: 1, name: "an editor".into(), host: None };
        list.set_line(file.into(), "a\nb\n", 1.into(), BreakpointConditions::default()).unwrap();
        let bound = |column| move |_| BindingStatus::Verified { line: Some(1), column: Some(column), note: None };
        let events = view.take_events(&owner, &list, bound(3), BreakpointSpec::owned_file);
        assert_eq!((&events[0]["reason"], &events[0]["breakpoint"]["column"]), (&json!("new"), &Value::Null));
        assert!(view.take_events(&owner, &list, bound(3), BreakpointSpec::owned_file).is_empty());
        let events = view.take_events(&owner, &list, bound(4), BreakpointSpec::owned_file);
        assert_eq!((&events[0]["reason"], &events[0]["breakpoint"]["column"]), (&json!("changed"), &json!(4)));
    }
}
