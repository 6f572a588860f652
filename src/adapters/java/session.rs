//! What an active session knows: its virtual machine, its client, and the tables behind the ids of DAP.
//!
//! The tables are behind one lock, which is never held over I/O. Does not depend on what a request does with them.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use super::breakpoint_table::BreakpointTable;
use super::captured_events::CapturedEvents;
use super::code_origin::CodeOrigin;
use super::collection_pages::Contents;
use super::java_vm::JavaVm;
use super::known_frames::KnownFrames;
use super::old_frames::OldFrames;
use super::smart_step::SmartStep;
use super::sources::SourceFolders;
use crate::adapters::request_failure::RequestFailure;
use crate::dap::DapServer;
use crate::jdwp::commands::threads::FrameEntryOfThread;
use crate::jdwp::values::{ObjectId, ReferenceTypeId, TaggedObject};
use crate::sync::lock;

/// How many references to values are kept between two resumes.
const MAX_CONTAINERS: usize = 100_000;

/// A session whose virtual machine is connected.
pub struct JavaSession {
    pub vm: JavaVm,
    pub dap: DapServer,
    pub sources: SourceFolders,
    pub tables: Mutex<SessionTables>,
    /// Where the code of the program has come from.
    pub code_origin: Mutex<CodeOrigin>,
    /// The beginning of the names of temporary folders.
    pub scratch: String,
}

/// The tables behind the ids of DAP, and what is suspended.
#[derive(Default)]
pub struct SessionTables {
    /// The threads that were ever named to the client; their ids are the places from 1.
    threads: Vec<ObjectId>,
    /// The threads that an event has stopped, or the steps of which have ended.
    pub stopped: HashMap<ObjectId, ThreadHalt>,
    /// All threads are suspended once more: by a pause, or since the start.
    pub is_vm_suspended: bool,
    /// Threads that run a method for an evaluation: their events stop nothing.
    pub invoking: HashSet<ObjectId>,
    /// The step request of each thread that steps.
    pub steps: HashMap<ObjectId, i32>,
    /// Steps into a chosen method, and the calls of the line that the client has asked for.
    pub smart_steps: HashMap<ObjectId, SmartStep>,
    pub step_targets: Vec<String>,
    /// A written field whose thread has to complete the write before its stop is reported.
    pub writes: HashMap<ObjectId, PendingWrite>,
    frames: Vec<FrameSpot>,
    pub known_frames: KnownFrames,
    pub old_frames: OldFrames,
    containers: Vec<ValueContainer>,
    /// Objects that must not be collected while they can be referred to.
    pub kept: Vec<ObjectId>,
    pub breakpoints: BreakpointTable,
    /// Events that are recorded and stop nothing.
    pub captured: CapturedEvents,
    /// The client has sent all its breakpoints.
    pub is_configured: bool,
    /// The thread of a virtual machine that is suspended since its start.
    pub vm_start: Option<ObjectId>,
    /// Whether that is reported as a stop: the program was attached to.
    pub reports_vm_start: bool,
}

/// Why a thread is stopped.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadHalt {
    /// What was thrown, and whether it will be caught.
    pub exception: Option<(TaggedObject, bool)>,
}

/// A field that is about to be written.
#[derive(Clone, Debug)]
pub struct PendingWrite {
    pub request: i32,
    pub field: String,
    pub old_value: String,
    pub new_value: String,
    pub breakpoints: Vec<i64>,
}

/// A frame of a stopped thread: 0 is the innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSpot {
    pub thread: ObjectId,
    pub depth: usize,
}

/// What a reference to variables stands for.
#[derive(Clone, Debug)]
pub enum ValueContainer {
    Locals(FrameSpot),
    /// The static fields of a class.
    Statics(ReferenceTypeId),
    Fields(TaggedObject),
    Elements {
        array: ObjectId,
        length: usize,
    },
    Contents(Contents),
    /// A key and its value.
    Entry(Box<super::collection_pages::Entry>),
}

impl JavaSession {
    /// Reads or changes the tables.
    pub fn with_tables<T>(&self, access: impl FnOnce(&mut SessionTables) -> T) -> T {
        access(&mut lock(&self.tables))
    }

    /// The thread with that id. Errors: there is none.
    pub fn thread(&self, id: i64) -> Result<ObjectId, RequestFailure> {
        let found = self.with_tables(|tables| tables.thread(id));
        found.ok_or_else(|| RequestFailure(format!("there is no thread {id}")))
    }

    /// The frame with that id. Errors: its thread has run since.
    pub fn frame_spot(&self, id: i64) -> Result<FrameSpot, RequestFailure> {
        let found = self.with_tables(|tables| tables.frame_spot(id));
        found.ok_or_else(|| RequestFailure(format!("there is no frame {id}: its thread has run since")))
    }

    /// What a reference stands for. Errors: its thread has run since.
    pub fn container(&self, reference: i64) -> Result<ValueContainer, RequestFailure> {
        let found = self.with_tables(|tables| tables.container(reference));
        found.ok_or_else(|| RequestFailure(format!("there is no value {reference}: the program has run since")))
    }
}

impl SessionTables {
    /// The id of a thread.
    pub fn thread_id(&mut self, thread: ObjectId) -> i64 {
        let at = self.threads.iter().position(|known| *known == thread).unwrap_or_else(|| {
            self.threads.push(thread);
            self.threads.len() - 1
        });
        at as i64 + 1
    }

    fn thread(&self, id: i64) -> Option<ObjectId> {
        self.threads.get(usize::try_from(id.checked_sub(1)?).ok()?).copied()
    }

    /// The id of a frame.
    pub fn frame_id(&mut self, spot: FrameSpot) -> i64 {
        let at = self.frames.iter().position(|known| *known == spot).unwrap_or_else(|| {
            self.frames.push(spot);
            self.frames.len() - 1
        });
        at as i64 + 1
    }

    fn frame_spot(&self, id: i64) -> Option<FrameSpot> {
        let spot = self.frames.get(usize::try_from(id.checked_sub(1)?).ok()?).copied()?;
        self.is_suspended(spot.thread).then_some(spot)
    }

    /// Frames of a thread were listed, requested in `epoch`. A call that has not returned may end at any time.
    pub fn add_known_frames(&mut self, epoch: u64, thread: ObjectId, first: usize, entries: &[FrameEntryOfThread]) {
        if self.is_suspended(thread) && !self.invoking.contains(&thread) {
            self.known_frames.add(epoch, thread, first, entries);
        }
    }

    /// A reference to what can be opened; 0 when there are too many.
    pub fn add_container(&mut self, container: ValueContainer) -> i64 {
        if self.containers.len() >= MAX_CONTAINERS {
            return 0;
        }
        self.containers.push(container);
        self.containers.len() as i64
    }

    fn container(&self, reference: i64) -> Option<ValueContainer> {
        self.containers.get(usize::try_from(reference.checked_sub(1)?).ok()?).cloned()
    }

    /// Whether a thread is suspended for the client.
    pub fn is_suspended(&self, thread: ObjectId) -> bool {
        self.is_vm_suspended || self.stopped.contains_key(&thread)
    }

    /// A thread is resumed: its frames are gone. Returns the objects that need not be kept any more.
    pub fn forget_stop(&mut self, thread: ObjectId) -> Vec<ObjectId> {
        self.stopped.remove(&thread);
        self.known_frames.forget();
        if !self.stopped.is_empty() || self.is_vm_suspended {
            return Vec::new();
        }
        // Ids are not used again, since a client may still send an old one.
        self.frames.iter_mut().for_each(|spot| spot.thread = ObjectId(0));
        self.containers.clear();
        std::mem::take(&mut self.kept)
    }
}
