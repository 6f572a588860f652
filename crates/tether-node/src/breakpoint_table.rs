//! The breakpoints of a session: what the client has asked for, and how it is bound in each isolate.
//!
//! Plain data: sends nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tether_backend::hit_condition::HitCondition;
use tether_base::line_anchor::LineAnchor;
use tether_dap::types::{DapBreakpoint, DapSource};

use super::line_placement::NOWHERE;
use super::scripts::LoadedScript;
use super::unread_maps::{UnreadMap, UnreadMaps};

/// What is said of a file that no script of the program is, or is made of.
pub(crate) const NOT_LOADED: &str = "neither this file nor a script whose source map names it is loaded yet";

/// All breakpoints.
#[derive(Default)]
pub(crate) struct NodeBreakpointTable {
    last_id: i64,
    pub entries: BTreeMap<i64, NodeBreakpoint>,
    /// Scripts that may have the code of breakpoints that are not bound.
    unread: UnreadMaps,
}

/// Breakpoints whose scripts are gone.
#[derive(Debug, Default)]
pub(crate) struct ForgottenBreakpoints {
    /// Those that are bound nowhere now, with their place before.
    pub unbound: Vec<(i64, (i64, i64))>,
    /// Those that are to be bound by URL again.
    pub retired: Vec<i64>,
}

/// Where a breakpoint stops. Lines and columns are 0-based.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeBreakpointPlace {
    /// `path` is as the client has it, `file` without links; `anchor` finds the line in another version of the file.
    Line {
        path: PathBuf,
        file: PathBuf,
        line: i64,
        column: Option<i64>,
        anchor: Option<LineAnchor>,
    },
    Function(String),
    /// The first line of the program.
    Entry(PathBuf),
}

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedBreakpoint {
    pub place: NodeBreakpointPlace,
    pub condition: Option<String>,
    pub hits: Option<HitCondition>,
    pub log_message: Option<String>,
}

/// One breakpoint.
#[derive(Clone, Debug)]
pub(crate) struct NodeBreakpoint {
    pub id: i64,
    pub wanted: WantedBreakpoint,
    /// How often it was reached with its condition true.
    pub hit_count: u64,
    pub bound: Vec<BoundBreakpoint>,
    /// The place in the client's file where it stops, once it is bound: line and column.
    pub place: Option<(i64, i64)>,
    /// Why it is not bound.
    pub message: Option<String>,
    /// The script with its code, where that is older than its file and was made of another text.
    pub older_code: Option<PathBuf>,
}

/// A breakpoint of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoundBreakpoint {
    pub isolate: i64,
    pub engine_id: String,
    pub at: BoundAt,
}

/// By what the engine finds the place of a breakpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BoundAt {
    /// A function object.
    Function,
    /// The URL of the file, and this line: every script of that URL, which may be another version of the file, or compiled.
    Url { line: i64 },
    /// As `Url`, and removed from the engine, since its script has a map of its own path: only a stop on the right line of the
    /// source is one.
    RetiredUrl,
    /// The URL of this script, at the place that was made of the wanted line.
    MadeIn(PathBuf),
    /// A place in this script.
    Script(String),
}

impl BoundBreakpoint {
    /// Whether it stays when the scripts of its isolate are gone.
    fn outlives_scripts(&self) -> bool {
        !matches!(self.at, BoundAt::Script(_) | BoundAt::RetiredUrl)
    }
}

impl NodeBreakpointTable {
    /// An id that no other breakpoint of the session has.
    pub(crate) fn next_id(&mut self) -> i64 {
        self.last_id = self.last_id.saturating_add(1);
        self.last_id
    }

    /// Changes what is wanted of a breakpoint, see [`WantedBreakpoint::has_moved_to`]. Returns whether it is on another line.
    pub(crate) fn change_wanted(&mut self, id: i64, wanted: WantedBreakpoint) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        let has_moved = entry.wanted.place.line() != wanted.place.line();
        entry.wanted = wanted;
        has_moved
    }

    /// Adds a breakpoint that is not bound yet; returns its id.
    pub(crate) fn add(&mut self, wanted: WantedBreakpoint) -> i64 {
        let (id, message) = (self.next_id(), None);
        let entry =
            NodeBreakpoint { id, wanted, hit_count: 0, bound: Vec::new(), place: None, message, older_code: None };
        self.entries.insert(id, entry);
        id
    }

    /// The state of a breakpoint for the client.
    pub(crate) fn describe(&self, id: i64) -> Option<DapBreakpoint> {
        let entry = self.entries.get(&id)?;
        let mut described = entry.describe();
        let unread = entry.file().map(|file| self.unread.describe(file)).filter(|text| !text.is_empty());
        if let (Some(message), Some(unread)) = (&mut described.message, unread)
            && message == NOT_LOADED
        {
            message.push_str(&format!("; {unread}"));
        }
        Some(described)
    }

    /// A script's map was not read. Returns of which breakpoints there is more to say than before. `None`: that is known.
    pub(crate) fn add_unread(&mut self, unread: UnreadMap) -> Option<Vec<DapBreakpoint>> {
        let is_unbound =
            |entry: &&NodeBreakpoint| entry.message.as_deref() == Some(NOT_LOADED) && entry.place.is_none();
        let ids: Vec<i64> = self.entries.values().filter(is_unbound).map(|entry| entry.id).collect();
        let describe = |table: &Self| ids.iter().filter_map(|id| table.describe(*id)).collect::<Vec<_>>();
        let before = describe(self);
        if !self.unread.add(unread) {
            return None;
        }
        let now = describe(self).into_iter().zip(before);
        Some(now.filter(|(now, before)| now.message != before.message).map(|(now, _)| now).collect())
    }

    /// The breakpoint that the engine calls so, and how it is bound.
    pub(crate) fn find_bound(
        &mut self,
        isolate: i64,
        engine_id: &str,
    ) -> Option<(&mut NodeBreakpoint, BoundBreakpoint)> {
        let is_bound = |bound: &&BoundBreakpoint| bound.isolate == isolate && bound.engine_id == engine_id;
        self.entries.values_mut().find_map(|entry| {
            let bound = entry.bound.iter().find(is_bound)?.clone();
            Some((entry, bound))
        })
    }

    /// The scripts of an isolate are gone.
    pub(crate) fn forget_scripts(&mut self, isolate: i64) -> ForgottenBreakpoints {
        let mut forgotten = ForgottenBreakpoints::default();
        for entry in self.entries.values_mut() {
            let is_here = |bound: &&BoundBreakpoint| bound.isolate == isolate;
            let is_bound = entry.bound.iter().any(|bound| is_here(&bound));
            let is_retired = entry.bound.iter().filter(is_here).any(|bound| bound.at == BoundAt::RetiredUrl);
            let is_elsewhere = entry.bound.iter().any(|bound| !is_here(&bound));
            entry.bound.retain(|bound| bound.isolate != isolate || bound.outlives_scripts());
            if let Some(before) = entry.place.filter(|_| is_bound && !is_elsewhere) {
                (entry.place, entry.message) = (None, Some(NOT_LOADED.to_owned()));
                forgotten.unbound.push((entry.id, before));
            }
            if is_retired {
                forgotten.retired.push(entry.id);
            }
        }
        forgotten
    }

    /// An isolate is gone: nothing is bound in it.
    pub(crate) fn forget_isolate(&mut self, isolate: i64) {
        for entry in self.entries.values_mut() {
            entry.bound.retain(|bound| bound.isolate != isolate);
        }
    }
}

impl NodeBreakpointPlace {
    /// The wanted line: 0-based.
    pub(crate) fn line(&self) -> Option<i64> {
        match self {
            NodeBreakpointPlace::Line { line, .. } => Some(*line),
            _ => None,
        }
    }

    /// The wanted column: 0-based.
    pub(crate) fn column(&self) -> Option<i64> {
        match self {
            NodeBreakpointPlace::Line { column, .. } => *column,
            _ => None,
        }
    }
}

impl WantedBreakpoint {
    /// Whether the other is the same on another line, to which its code has moved.
    pub(crate) fn has_moved_to(&self, other: &WantedBreakpoint) -> bool {
        let line = |place: &NodeBreakpointPlace| match place {
            NodeBreakpointPlace::Line { path, column, anchor: Some(anchor), .. } => {
                Some((path.clone(), *column, anchor.text().to_owned()))
            }
            _ => None,
        };
        let conditions = |it: &WantedBreakpoint| (it.condition.clone(), it.hits, it.log_message.clone());
        line(&self.place).is_some_and(|own| line(&other.place).as_ref() == Some(&own))
            && conditions(self) == conditions(other)
    }
}

impl NodeBreakpoint {
    /// Counts that it was reached, and returns whether that is asked for.
    pub(crate) fn count_hit(&mut self) -> bool {
        self.hit_count = self.hit_count.saturating_add(1);
        self.wanted.hits.is_none_or(|hits| hits.is_met(self.hit_count))
    }

    fn describe(&self) -> DapBreakpoint {
        let source = match &self.wanted.place {
            NodeBreakpointPlace::Line { path, .. } => {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
                Some(DapSource { name, path: Some(path.to_string_lossy().into_owned()), ..DapSource::default() })
            }
            _ => None,
        };
        let verified = self.place.is_some();
        DapBreakpoint {
            verified,
            id: Some(self.id),
            message: self.message.clone().filter(|_| !verified),
            source,
            line: self.place.map(|(line, _)| line.saturating_add(1)).filter(|_| self.file().is_some()),
            column: self.place.map(|(_, column)| column.saturating_add(1)).filter(|_| self.file().is_some()),
            reason: None,
            older_code: self.older_code.as_ref().map(|code| code.to_string_lossy().into_owned()),
            ignores_column: None,
        }
    }

    /// The file that it is in, without links.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.wanted.place {
            NodeBreakpointPlace::Line { file, .. } => Some(file),
            _ => None,
        }
    }

    /// The line in a script's version of its file, or of the source that the script was made of: 0-based.
    pub(crate) fn line_in(&self, script: &LoadedScript) -> Option<i64> {
        match self.wanted.place {
            NodeBreakpointPlace::Line { line, .. } => Some(script.placements.line_of(self.id, line)),
            _ => None,
        }
    }

    /// Whether a stop of the engine is one of the breakpoint: `script` is what runs there, `original` the line of its source,
    /// where it has a map.
    pub(crate) fn is_stop(&self, bound: &BoundBreakpoint, script: &LoadedScript, original: Option<i64>) -> bool {
        match bound.at {
            BoundAt::RetiredUrl => original.is_some() && original == self.line_in(script),
            BoundAt::Url { line } => self.line_in(script).is_none_or(|placed| placed == line),
            BoundAt::Function | BoundAt::MadeIn(_) | BoundAt::Script(_) => self.line_in(script) != Some(NOWHERE),
        }
    }

    /// Whether the engine has it where the client wants it, by no source map.
    pub(crate) fn is_where_wanted(&self, bound: &BoundBreakpoint) -> bool {
        match bound.at {
            BoundAt::Function => true,
            BoundAt::Url { line } => self.wanted.place.line().is_none_or(|wanted| wanted == line),
            BoundAt::RetiredUrl | BoundAt::MadeIn(_) | BoundAt::Script(_) => false,
        }
    }

    /// Takes out what is bound on lines that are not wanted any more.
    pub(crate) fn take_former_lines(&mut self, isolate: i64) -> Vec<BoundBreakpoint> {
        let wanted = self.wanted.place.line();
        let is_former = |bound: &BoundBreakpoint| {
            let line = if let BoundAt::Url { line } = bound.at { Some(line) } else { None };
            bound.isolate == isolate && line.is_some() && wanted.is_some() && line != wanted
        };
        self.bound.extract_if(.., |bound| is_former(bound)).collect()
    }

    /// Whether it is bound in a script of an isolate.
    pub(crate) fn is_in_script(&self, isolate: i64, script: &LoadedScript) -> bool {
        let is_in = |at: &BoundAt| match at {
            BoundAt::Script(id) => *id == script.id,
            BoundAt::MadeIn(path) => Some(path) == script.path.as_ref(),
            BoundAt::Function | BoundAt::Url { .. } | BoundAt::RetiredUrl => false,
        };
        self.bound.iter().any(|bound| bound.isolate == isolate && is_in(&bound.at))
    }
}
