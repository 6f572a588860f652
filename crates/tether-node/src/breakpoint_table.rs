//! The breakpoints of a session: what the client has asked for, and how it is bound in each isolate.
//!
//! Plain data: sends nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tether_backend::hit_condition::HitCondition;
use tether_dap::types::{DapBreakpoint, DapSource};

use super::scripts::LoadedScript;

/// What is said of a file that no script of the program is, or is made of.
pub(crate) const NOT_LOADED: &str = "neither this file nor a script whose source map names it is loaded yet";

/// All breakpoints.
#[derive(Default)]
pub(crate) struct NodeBreakpointTable {
    last_id: i64,
    pub entries: BTreeMap<i64, NodeBreakpoint>,
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
    /// `path` is as the client has it, `file` without links.
    Line {
        path: PathBuf,
        file: PathBuf,
        line: i64,
        column: Option<i64>,
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
}

/// A breakpoint of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoundBreakpoint {
    pub isolate: i64,
    pub engine_id: String,
    /// The script, if it is in one, instead of a URL.
    pub script: Option<String>,
    /// It was removed from the engine, since its script has a map of its own path: only a stop on the right line of the
    /// source is one.
    pub is_retired: bool,
    /// It is by the URL of this script, at the place that was made of the wanted line.
    pub made_in: Option<PathBuf>,
}

impl BoundBreakpoint {
    /// A breakpoint of the engine that is in no script in particular.
    pub(crate) fn new(isolate: i64, engine_id: String) -> BoundBreakpoint {
        BoundBreakpoint { isolate, engine_id, script: None, is_retired: false, made_in: None }
    }

    /// Whether the engine has it where the client wants it, by no source map: in the function, or at the line of the URL, which
    /// may be of compiled text.
    pub(crate) fn is_unmapped(&self) -> bool {
        self.script.is_none() && self.made_in.is_none() && !self.is_retired
    }
}

impl NodeBreakpointTable {
    /// An id that no other breakpoint of the session has.
    pub(crate) fn next_id(&mut self) -> i64 {
        self.last_id = self.last_id.saturating_add(1);
        self.last_id
    }

    /// Adds a breakpoint that is not bound yet; returns its id.
    pub(crate) fn add(&mut self, wanted: WantedBreakpoint) -> i64 {
        let (id, message) = (self.next_id(), None);
        let entry = NodeBreakpoint { id, wanted, hit_count: 0, bound: Vec::new(), place: None, message };
        self.entries.insert(id, entry);
        id
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
            let is_retired = entry.bound.iter().filter(is_here).any(|bound| bound.is_retired);
            let is_elsewhere = entry.bound.iter().any(|bound| !is_here(&bound));
            entry.bound.retain(|bound| bound.isolate != isolate || (bound.script.is_none() && !bound.is_retired));
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

impl NodeBreakpoint {
    /// Counts that it was reached, and returns whether that is asked for.
    pub(crate) fn count_hit(&mut self) -> bool {
        self.hit_count = self.hit_count.saturating_add(1);
        self.wanted.hits.is_none_or(|hits| hits.is_met(self.hit_count))
    }

    /// Its state for the client.
    pub(crate) fn describe(&self) -> DapBreakpoint {
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
        }
    }

    /// The file that it is in, without links.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.wanted.place {
            NodeBreakpointPlace::Line { file, .. } => Some(file),
            _ => None,
        }
    }

    /// Whether it is on that line of its source: 0-based.
    pub(crate) fn is_on_line(&self, at: i64) -> bool {
        matches!(self.wanted.place, NodeBreakpointPlace::Line { line, .. } if line == at)
    }

    /// Whether it is bound in a script of an isolate.
    pub(crate) fn is_in_script(&self, isolate: i64, script: &LoadedScript) -> bool {
        let is_in = |bound: &BoundBreakpoint| {
            bound.script.as_ref() == Some(&script.id) || (bound.made_in.is_some() && bound.made_in == script.path)
        };
        self.bound.iter().any(|bound| bound.isolate == isolate && is_in(bound))
    }
}
