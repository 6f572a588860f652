//! All breakpoints of a workspace at one moment, and how each change alters them. The content of
//! `breakpoints.json`, and of exported files.
//!
//! Does no I/O. Does not depend on how it is stored.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tether_base::error::{Error, ErrorContext, Result};
use tether_base::line_anchor::{AnchorStatus, LineAnchor, SourceLines};

use super::hit_count::hit_condition;
use super::spec::{
    BreakpointConditions, BreakpointFile, BreakpointKind, BreakpointSpec, EditorExceptions, ExceptionSpec, LinePosition,
};

/// The schema version of the file.
const VERSION: u32 = 1;
/// More are a mistake.
const MAX_BREAKPOINTS: usize = 10_000;

/// All breakpoints, and on which exceptions to stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredBreakpoints {
    pub(super) version: u32,
    /// The last id that was given; ids are never reused.
    pub(super) last_id: u32,
    /// In the order in which they were set.
    pub breakpoints: Vec<BreakpointSpec>,
    /// On which exceptions to stop.
    #[serde(default, skip_serializing_if = "ExceptionSpec::is_empty")]
    pub exceptions: ExceptionSpec,
    /// Somebody has chosen `exceptions`, if only that no exception stops.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) are_exceptions_chosen: bool,
    /// On which exceptions joined editors want to stop, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::debug) editor_exceptions: Vec<EditorExceptions>,
}

impl Default for StoredBreakpoints {
    fn default() -> StoredBreakpoints {
        let (breakpoints, exceptions, editor_exceptions) = Default::default();
        let (version, last_id, are_exceptions_chosen) = (VERSION, 0, false);
        StoredBreakpoints { version, last_id, breakpoints, exceptions, are_exceptions_chosen, editor_exceptions }
    }
}

impl StoredBreakpoints {
    /// Reads the content of the file. Errors complete "… was set aside: …".
    pub fn parse(text: &[u8]) -> Result<StoredBreakpoints, String> {
        let list: StoredBreakpoints =
            serde_json::from_slice(text).map_err(|cause| format!("it is not a list of breakpoints: {cause}"))?;
        match list.version {
            VERSION if list.breakpoints.len() <= MAX_BREAKPOINTS => Ok(list),
            VERSION => Err(format!("it has more than {MAX_BREAKPOINTS} breakpoints")),
            newer => Err(format!("it has the schema {newer} (this program knows {VERSION})")),
        }
    }

    /// Chooses on which exceptions to stop.
    pub fn choose_exceptions(&mut self, exceptions: ExceptionSpec) {
        (self.exceptions, self.are_exceptions_chosen) = (exceptions, true);
    }

    /// Whether a session that stops at uncaught exceptions by default does so.
    pub fn has_default_exceptions(&self) -> bool {
        self.exceptions.is_empty() && !self.are_exceptions_chosen
    }

    /// The text of the file.
    pub fn to_text(&self) -> Result<Vec<u8>> {
        let mut text = serde_json::to_vec_pretty(self).doing(|| "cannot write the breakpoints".into())?;
        text.push(b'\n');
        Ok(text)
    }

    /// As they are exported: files in this folder by relative paths.
    pub fn with_relative_paths(mut self, folder: &Path) -> StoredBreakpoints {
        self.change_paths(|file| file.strip_prefix(folder).map_or_else(|_| file.to_owned(), Path::to_owned));
        self
    }

    fn change_paths(&mut self, change: impl Fn(&Path) -> PathBuf) {
        for spec in &mut self.breakpoints {
            if let BreakpointKind::Line { file, named, .. } = &mut spec.kind {
                *file = change(file);
                *named = named.take().map(|named| change(&named));
            }
        }
    }

    /// Adds exported breakpoints, whose relative paths are below this folder. One on the same line, function or expression
    /// is replaced, and so are the exceptions, if there are any. Errors: too many breakpoints.
    pub fn import(&mut self, mut exported: StoredBreakpoints, folder: &Path) -> Result<()> {
        exported.remove_editors(|_| true);
        exported.change_paths(|file| folder.join(file));
        for BreakpointSpec { kind, conditions, .. } in exported.breakpoints {
            match &kind {
                BreakpointKind::Line { file, line, column, .. } => {
                    let known = self.find_at(file, LinePosition { line: *line, column: *column });
                    self.put(known.map(|known| known.id), kind, conditions)?;
                }
                _ => drop(self.set(kind, conditions)?),
            }
        }
        if !exported.exceptions.is_empty() {
            self.choose_exceptions(exported.exceptions);
        }
        Ok(())
    }

    /// The breakpoint with that id.
    pub fn get(&self, id: u32) -> Option<&BreakpointSpec> {
        self.breakpoints.iter().find(|spec| spec.id == id)
    }

    /// The files with line breakpoints.
    pub fn files(&self) -> BTreeSet<PathBuf> {
        self.breakpoints.iter().filter_map(BreakpointSpec::owned_file).collect()
    }

    /// The line breakpoints of a file.
    pub fn in_file<'a>(&'a self, file: &'a Path) -> impl Iterator<Item = &'a BreakpointSpec> {
        self.breakpoints.iter().filter(move |spec| spec.file() == Some(file))
    }

    /// The workspace's line breakpoint at that place.
    fn find_at(&self, file: &Path, at: LinePosition) -> Option<&BreakpointSpec> {
        self.breakpoints.iter().find(|spec| spec.owner.is_none() && spec.is_at(file, at))
    }

    /// Sets a breakpoint on a line of a file with that text. The conditions of one that is there are replaced.
    /// Errors: no such line, too many breakpoints.
    pub fn set_line(
        &mut self,
        file: BreakpointFile<'_>,
        text: &str,
        at: LinePosition,
        conditions: BreakpointConditions,
    ) -> Result<BreakpointSpec> {
        let (kind, known) = self.resolve_line(file, text, at)?;
        self.put(known.map(|known| known.id), kind, conditions)
    }

    /// A breakpoint on a line of a file with that text, for one session until its next stop: it has an id of its own but
    /// is not in the list. `None` if a breakpoint without conditions is there. Errors: no such line.
    pub fn temporary_on_line(
        &mut self,
        file: BreakpointFile<'_>,
        text: &str,
        line: u32,
    ) -> Result<Option<BreakpointSpec>> {
        let (kind, known) = self.resolve_line(file, text, line.into())?;
        if known.is_some_and(|known| known.conditions == BreakpointConditions::default()) {
            return Ok(None);
        }
        self.last_id = self.next_id();
        Ok(Some(BreakpointSpec { id: self.last_id, kind, conditions: BreakpointConditions::default(), owner: None }))
    }

    /// A line of a file as it is now, and the breakpoint that is on it.
    pub(super) fn resolve_line(
        &mut self,
        BreakpointFile { path: file, named }: BreakpointFile<'_>,
        text: &str,
        at: LinePosition,
    ) -> Result<(BreakpointKind, Option<BreakpointSpec>)> {
        let (source, LinePosition { line, column }) = (SourceLines::of(text), at);
        let Some(anchor) = LineAnchor::of_line(&source, line) else {
            let error = Error::usage(format!("cannot set a breakpoint on line {line} of {}", file.display()));
            return Err(error.because(format!("it has {} lines", source.count())));
        };
        self.follow_source_change(file, &source);
        let known = self.find_at(file, at).cloned();
        let anchor_status = AnchorStatus::Kept;
        let (file, named) = (file.to_owned(), named.map(Path::to_owned));
        Ok((BreakpointKind::Line { file, named, line, column, anchor, anchor_status }, known))
    }

    /// Sets a function, class or data breakpoint. One on the same function, line or expression is replaced.
    /// Errors: too many breakpoints.
    pub fn set(&mut self, kind: BreakpointKind, conditions: BreakpointConditions) -> Result<BreakpointSpec> {
        let is_same = |spec: &&BreakpointSpec| match (&spec.kind, &kind) {
            (BreakpointKind::Data { expression: a, .. }, BreakpointKind::Data { expression: b, .. }) => a == b,
            (one, other) => one.function_name().is_some() && one == other,
        };
        let known = self.breakpoints.iter().filter(|spec| spec.owner.is_none()).find(is_same).map(|spec| spec.id);
        self.put(known, kind, conditions)
    }

    fn put(
        &mut self,
        id: Option<u32>,
        kind: BreakpointKind,
        conditions: BreakpointConditions,
    ) -> Result<BreakpointSpec> {
        let id = id.unwrap_or_else(|| self.next_id());
        self.put_spec(BreakpointSpec { id, kind, conditions, owner: None })
    }

    /// The id of a new breakpoint. A file may say that the last one was the largest, or one that is smaller than those in it.
    pub(super) fn next_id(&self) -> u32 {
        let is_free = |id: &u32| !self.breakpoints.iter().any(|spec| spec.id == *id);
        (self.last_id..=u32::MAX).skip(1).chain(1..=self.last_id).find(is_free).unwrap_or(u32::MAX)
    }

    /// Adds a breakpoint, or replaces the one with its id. Errors: too many breakpoints, a bad hit condition.
    pub(super) fn put_spec(&mut self, spec: BreakpointSpec) -> Result<BreakpointSpec> {
        if let Err(reason) = hit_condition(&spec.conditions) {
            return Err(Error::usage("cannot set the breakpoint").because(reason));
        }
        let id = spec.id;
        let is_full = self.breakpoints.len() >= MAX_BREAKPOINTS;
        match self.breakpoints.iter_mut().find(|other| other.id == id) {
            Some(known) => known.clone_from(&spec),
            None if is_full => {
                let error = Error::usage(format!("there are {MAX_BREAKPOINTS} breakpoints already"));
                return Err(error.hint("`tether break remove --all` removes them"));
            }
            None => self.breakpoints.push(spec.clone()),
        }
        self.last_id = self.last_id.max(id);
        Ok(spec)
    }

    /// Moves a file's breakpoints to where their code is in its text now.
    pub fn follow_source_change(&mut self, path: &Path, source: &SourceLines<'_>) {
        for spec in &mut self.breakpoints {
            let BreakpointKind::Line { file, line, anchor, anchor_status, .. } = &mut spec.kind else { continue };
            if file != path {
                continue;
            }
            let (at, now) = anchor.find_line(source, *line);
            match now {
                AnchorStatus::Kept if anchor_status.has_line() => {}
                _ => *anchor_status = now,
            }
            *line = at;
            if anchor_status.has_line() {
                *anchor = LineAnchor::of_line(source, at).unwrap_or_default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breakpoint_replaces_no_other_whatever_last_id_a_file_says() {
        for (last_id, expect) in [(u32::MAX, [2, 3]), (1, [2, 4]), (0, [2, 4])] {
            let mut list = StoredBreakpoints { last_id, ..StoredBreakpoints::default() };
            let kind = |name: &str| BreakpointKind::Function { name: name.to_owned() };
            let known = if last_id == u32::MAX { vec![1, u32::MAX] } else { vec![1, 3] };
            for id in &known {
                let conditions = BreakpointConditions::default();
                list.breakpoints.push(BreakpointSpec { id: *id, kind: kind(&id.to_string()), conditions, owner: None });
            }
            let given = ["f", "g"].map(|name| list.set(kind(name), BreakpointConditions::default()).unwrap().id);
            assert_eq!(given, expect, "{last_id}");
            assert_eq!(list.breakpoints.len(), 4);
        }
    }
}
