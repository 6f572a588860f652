//! What an active session knows: its isolates, its client, and the tables behind the ids of DAP.
//!
//! Each table is behind a lock of its own, none of which is held over I/O. Does not depend on what a request does with them.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tether_backend::Answer;
use tether_backend::request_failure::RequestFailure;
use tether_base::display_text::break_links;
use tether_base::sync::lock;
use tether_dap::DapServer;
use tether_dap::types::{ConditionFailure, OutputEvent};
use tokio::sync::Notify;

use super::breakpoint_table::NodeBreakpointTable;
use super::data_breakpoint_table::DataBreakpointTable;
use super::isolate::{Isolate, IsolatePause};
use super::scripts::{LoadedScript, SkipPatterns};
use super::source_maps::MapFolders;

/// How many references to values are kept between two resumes.
const MAX_CONTAINERS: usize = 100_000;

/// An active session.
pub(crate) struct NodeSession {
    pub dap: DapServer,
    pub maps: MapFolders,
    pub skip: SkipPatterns,
    /// The name of the function by which breakpoints report.
    pub binding: String,
    /// Our script in the program, by which it announces its modules.
    pub hook: Option<PathBuf>,
    isolates: Mutex<BTreeMap<i64, Arc<Isolate>>>,
    values: Mutex<ValueTable>,
    breakpoints: Mutex<NodeBreakpointTable>,
    data_breakpoints: Mutex<DataBreakpointTable>,
    settings: Mutex<NodeSettings>,
    /// An isolate was removed.
    pub isolate_removed: Notify,
}

/// What the client has chosen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeSettings {
    pub stops_at_caught: bool,
    pub stops_at_uncaught: bool,
    /// At assertions that fail, also where a test runner catches what they throw.
    pub stops_at_assertions: bool,
    /// Where a test fails: chosen with the start, whatever else is chosen.
    pub stops_at_failures: bool,
    /// The client has sent all its breakpoints.
    pub is_configured: bool,
}

/// The tables behind the ids of frames, values and sources.
#[derive(Default)]
struct ValueTable {
    last_id: i64,
    frames: HashMap<i64, NodeFrame>,
    containers: HashMap<i64, NodeContainer>,
    sources: Vec<SourceOrigin>,
}

impl ValueTable {
    /// An id that no other frame or value of the session has.
    fn next_id(&mut self) -> i64 {
        self.last_id = self.last_id.saturating_add(1);
        self.last_id
    }
}

/// A frame of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeFrame {
    pub isolate: i64,
    pub pause: u64,
    /// Its place in the stack; none: it has been left, and waits for an asynchronous call.
    pub depth: Option<usize>,
}

/// Where the text of a source without a file comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SourceOrigin {
    Script {
        isolate: i64,
        script: String,
    },
    /// The text that a source map has.
    Map {
        isolate: i64,
        script: String,
        source: u32,
    },
}

/// What a reference to variables stands for.
#[derive(Clone, Debug)]
pub(crate) struct NodeContainer {
    pub isolate: i64,
    pub object_id: String,
    pub kind: ContainerKind,
}

/// How a container is opened.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ContainerKind {
    /// The variables of a scope of that frame.
    Scope { frame: NodeFrame, scope: usize },
    /// The properties of an object.
    Properties,
    /// The elements of an array.
    Elements,
    /// A map with so many entries.
    MapEntries(i64),
    /// A set with so many entries.
    SetEntries(i64),
    /// A getter, which runs only when it is opened.
    Getter(String),
}

impl NodeSession {
    /// A session without isolates.
    pub(crate) fn new(
        dap: DapServer,
        maps: MapFolders,
        skip: SkipPatterns,
        binding: String,
        hook: Option<PathBuf>,
    ) -> NodeSession {
        NodeSession {
            dap,
            maps,
            skip,
            binding,
            hook,
            isolates: Mutex::default(),
            values: Mutex::default(),
            breakpoints: Mutex::default(),
            data_breakpoints: Mutex::default(),
            settings: Mutex::default(),
            isolate_removed: Notify::new(),
        }
    }

    /// Sends a text to the client's console.
    pub(crate) async fn print(&self, category: &str, text: &str) {
        // An editor shows what is important as a notification.
        let text = if category == "important" { break_links(text) } else { text.to_owned() };
        let output = OutputEvent::new(category, text);
        // Fails when the client has gone, which ends the session.
        let _ = self.dap.send_event(&output).await;
    }

    /// Reports that a condition could not be evaluated; the program has run on.
    pub(crate) async fn report_condition_failure(&self, condition: &str, reason: String) {
        let text = format!("Breakpoint condition error: `{condition}`: {reason}\n");
        let failure = ConditionFailure { condition: condition.to_owned(), reason, ..ConditionFailure::default() };
        // Fails when the client has gone, which ends the session.
        let _ = self.dap.send_event(&OutputEvent::new("stderr", text).with_condition_failure(&failure)).await;
    }

    /// Reads or changes the breakpoints.
    pub(crate) fn with_breakpoints<T>(&self, access: impl FnOnce(&mut NodeBreakpointTable) -> T) -> T {
        access(&mut lock(&self.breakpoints))
    }

    /// Reads or changes the data breakpoints.
    pub(crate) fn with_data_breakpoints<T>(&self, access: impl FnOnce(&mut DataBreakpointTable) -> T) -> T {
        access(&mut lock(&self.data_breakpoints))
    }

    /// Reads or changes what the client has chosen.
    pub(crate) fn with_settings<T>(&self, access: impl FnOnce(&mut NodeSettings) -> T) -> T {
        access(&mut lock(&self.settings))
    }

    /// Adds an isolate.
    pub(crate) fn add_isolate(&self, isolate: Arc<Isolate>) {
        lock(&self.isolates).insert(isolate.id, isolate);
    }

    /// Removes an isolate that has ended, with everything that refers to it.
    pub(crate) fn remove_isolate(&self, id: i64) -> Option<Arc<Isolate>> {
        self.forget_pause(id);
        self.with_breakpoints(|breakpoints| breakpoints.forget_isolate(id));
        self.with_data_breakpoints(|table| table.forget_isolate(id));
        let removed = lock(&self.isolates).remove(&id);
        self.isolate_removed.notify_one();
        removed
    }

    /// All isolates, in the order of their start.
    pub(crate) fn isolates(&self) -> Vec<Arc<Isolate>> {
        lock(&self.isolates).values().cloned().collect()
    }

    /// The isolate that is that thread of DAP. Errors: there is none.
    pub(crate) fn isolate(&self, id: i64) -> Answer<Arc<Isolate>> {
        lock(&self.isolates).get(&id).cloned().ok_or_else(|| RequestFailure(format!("there is no thread {id}")))
    }

    /// The id of a frame.
    pub(crate) fn frame_id(&self, frame: NodeFrame) -> i64 {
        let mut values = lock(&self.values);
        let id = values.next_id();
        values.frames.insert(id, frame);
        id
    }

    /// The isolate of a frame. `None`: its thread has run since.
    pub(crate) fn isolate_of_frame(&self, id: i64) -> Option<i64> {
        lock(&self.values).frames.get(&id).map(|frame| frame.isolate)
    }

    /// The frame with that id, with its pause. Errors: its thread has run since.
    pub(crate) fn find_frame(&self, id: i64) -> Answer<(Arc<Isolate>, Arc<IsolatePause>, NodeFrame)> {
        let gone = || RequestFailure(format!("there is no frame {id}: its thread has run since"));
        let frame = lock(&self.values).frames.get(&id).copied().ok_or_else(gone)?;
        let isolate = self.isolate(frame.isolate)?;
        let pause = isolate.pause().filter(|pause| pause.number == frame.pause).ok_or_else(gone)?;
        Ok((isolate, pause, frame))
    }

    /// A reference to what can be opened; 0 when there are too many.
    pub(crate) fn add_container(&self, container: NodeContainer) -> i64 {
        let mut values = lock(&self.values);
        if values.containers.len() >= MAX_CONTAINERS {
            return 0;
        }
        let id = values.next_id();
        values.containers.insert(id, container);
        id
    }

    /// What a reference stands for. Errors: its thread has run since.
    pub(crate) fn container(&self, reference: i64) -> Answer<NodeContainer> {
        let found = lock(&self.values).containers.get(&reference).cloned();
        found.ok_or_else(|| RequestFailure(format!("there is no value {reference}: the program has run since")))
    }

    /// The isolate runs: its frames and values are gone.
    pub(crate) fn forget_pause(&self, isolate: i64) {
        let mut values = lock(&self.values);
        values.frames.retain(|_, frame| frame.isolate != isolate);
        values.containers.retain(|_, container| container.isolate != isolate);
    }

    /// A reference to the text of a source without a file.
    pub(crate) fn source_reference(&self, origin: SourceOrigin) -> i64 {
        let mut values = lock(&self.values);
        let known = values.sources.iter().position(|known| *known == origin);
        let at = known.unwrap_or(values.sources.len());
        if known.is_none() {
            values.sources.push(origin);
        }
        (at as i64).saturating_add(1)
    }

    /// Where the text of a source comes from.
    pub(crate) fn source_origin(&self, reference: i64) -> Answer<SourceOrigin> {
        let place = usize::try_from(reference.saturating_sub(1)).ok();
        let found = place.and_then(|place| lock(&self.values).sources.get(place).cloned());
        found.ok_or_else(|| RequestFailure(format!("there is no source {reference}")))
    }

    /// A script of an isolate.
    pub(crate) fn script(&self, isolate: i64, id: &str) -> Option<Arc<LoadedScript>> {
        self.isolate(isolate).ok()?.with_state(|state| state.scripts.get(id))
    }

    /// Whether a script is ours, which each process loads first.
    pub(crate) fn is_hook(&self, script: &LoadedScript) -> bool {
        script.path.is_some() && script.path == self.hook
    }
}
