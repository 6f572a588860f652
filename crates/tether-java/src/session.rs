//! What an active session knows: its virtual machine, its client, and the tables behind the ids of DAP.
//!
//! The tables are behind one lock, which is never held over I/O. Does not depend on what a request does with them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use futures_util::future::BoxFuture;
use tether_backend::Answer;
use tether_backend::request_failure::RequestFailure;
use tether_base::sync::lock;
use tether_dap::DapServer;
use tether_dap::types::ThreadsResponse;
use tether_jdwp::commands::threads::FrameEntryOfThread;
use tether_jdwp::values::{ObjectId, ReferenceTypeId, TaggedObject};
use tokio::sync::{RwLock, mpsc};

use super::breakpoint_table::BreakpointTable;
use super::captured_events::CapturedEvents;
use super::code_origin::CodeOrigin;
use super::collection_pages::Contents;
use super::java_vm::JavaVm;
use super::known_frames::KnownFrames;
use super::old_frames::OldFrames;
use super::smart_step::SmartStep;
use super::sources::SourceFolders;
use super::thread_ids::ThreadIds;
use super::thread_suspends::ThreadSuspends;

/// How many references to values are kept between two resumes.
const MAX_CONTAINERS: usize = 100_000;

/// A session whose virtual machine is connected.
pub(crate) struct JavaSession {
    pub vm: JavaVm,
    pub dap: DapServer,
    pub sources: SourceFolders,
    pub tables: Mutex<SessionTables>,
    /// Where the code of the program has come from.
    pub code_origin: Mutex<CodeOrigin>,
    /// The beginning of the names of temporary folders.
    pub scratch: String,
    /// Itself, for what runs beside the requests.
    pub own: Weak<JavaSession>,
    /// Requests that change what runs or where it stops are carried out one after the other.
    pub order: tokio::sync::Mutex<()>,
    /// What runs beside the requests, until the session ends.
    pub beside: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
}

/// The tables behind the ids of DAP, and what is suspended.
#[derive(Default)]
pub(crate) struct SessionTables {
    /// The threads that have not ended.
    pub threads: ThreadIds,
    /// As they were listed last.
    pub listed_threads: ThreadsResponse,
    /// The virtual machine has reported its end.
    pub has_vm_ended: bool,
    /// Which threads are suspended, and why.
    pub suspends: ThreadSuspends,
    /// Evaluations in one thread run one after the other, and nothing reads its frames meanwhile.
    pub turns: HashMap<ObjectId, Arc<RwLock<()>>>,
    /// The step request of each thread that steps.
    pub steps: HashMap<ObjectId, i32>,
    /// Steps into a chosen method, and the calls of the line that the client has asked for.
    pub smart_steps: HashMap<ObjectId, SmartStep>,
    pub step_targets: Vec<String>,
    /// A written field whose thread has to complete the write before its stop is reported.
    pub writes: HashMap<ObjectId, PendingWrite>,
    /// The frames that were named to the client, by their ids.
    frames: HashMap<i64, HaltedFrame>,
    frame_ids: HashMap<HaltedFrame, i64>,
    last_frame_id: i64,
    pub known_frames: KnownFrames,
    pub old_frames: OldFrames,
    containers: Vec<(ValueContainer, Option<u64>)>,
    /// How many references were given before these.
    past_containers: i64,
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

/// A field that is about to be written.
#[derive(Clone, Debug)]
pub(crate) struct PendingWrite {
    pub request: i32,
    pub field: String,
    pub old_value: String,
    pub new_value: String,
    pub breakpoints: Vec<i64>,
}

/// A frame of a stopped thread: 0 is the innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FrameSpot {
    pub thread: ObjectId,
    pub depth: usize,
}

/// A frame, and the number of the suspension in which it was seen.
type HaltedFrame = (FrameSpot, Option<u64>);

/// What a reference to variables stands for.
#[derive(Clone, Debug)]
pub(crate) enum ValueContainer {
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
    pub(crate) fn with_tables<T>(&self, access: impl FnOnce(&mut SessionTables) -> T) -> T {
        access(&mut lock(&self.tables))
    }

    /// Runs something beside the requests, until the session ends.
    pub(crate) fn run_beside(&self, task: impl Future<Output = ()> + Send + 'static) {
        // Fails when the session has ended.
        let _ = self.beside.send(Box::pin(task));
    }

    /// The thread with that id. Errors: there is none.
    pub(crate) fn thread(&self, id: i64) -> Answer<ObjectId> {
        let found = self.with_tables(|tables| tables.threads.find(id));
        found.ok_or_else(|| RequestFailure(format!("there is no thread {id}")))
    }

    /// The frame with that id. Errors: its thread has run since.
    pub(crate) fn frame_spot(&self, id: i64) -> Answer<FrameSpot> {
        let found = self.with_tables(|tables| tables.frame_spot(id));
        found.ok_or_else(|| RequestFailure(format!("there is no frame {id}: its thread has run since")))
    }

    /// What a reference stands for. Errors: its thread has run since.
    pub(crate) fn container(&self, reference: i64) -> Answer<ValueContainer> {
        let found = self.with_tables(|tables| tables.container(reference));
        found.ok_or_else(|| RequestFailure(format!("there is no value {reference}: the program has run since")))
    }
}

impl SessionTables {
    /// The id of a thread.
    pub(crate) fn thread_id(&mut self, thread: ObjectId) -> i64 {
        self.threads.id(thread)
    }

    /// A thread has ended: nothing is kept of it. Returns its id, if the client may know it.
    pub(crate) fn forget_thread(&mut self, thread: ObjectId) -> Option<i64> {
        self.suspends.forget_thread(thread);
        self.turns.remove(&thread);
        self.steps.remove(&thread);
        self.smart_steps.remove(&thread);
        self.writes.remove(&thread);
        self.threads.remove(thread)
    }

    /// The id of a frame.
    pub(crate) fn frame_id(&mut self, spot: FrameSpot) -> i64 {
        let frame = (spot, self.suspends.halt_number(spot.thread));
        *self.frame_ids.entry(frame).or_insert_with(|| {
            self.last_frame_id = self.last_frame_id.saturating_add(1);
            self.frames.insert(self.last_frame_id, frame);
            self.last_frame_id
        })
    }

    fn frame_spot(&self, id: i64) -> Option<FrameSpot> {
        let (spot, halt) = *self.frames.get(&id)?;
        self.is_same_halt(spot.thread, halt).then_some(spot)
    }

    fn is_same_halt(&self, thread: ObjectId, halt: Option<u64>) -> bool {
        halt.is_some() && halt == self.suspends.halt_number(thread)
    }

    /// Frames of a thread were listed, requested in `epoch`. A call that has not returned may end at any time.
    pub(crate) fn add_known_frames(
        &mut self,
        epoch: u64,
        thread: ObjectId,
        first: usize,
        entries: &[FrameEntryOfThread],
    ) {
        if self.suspends.is_suspended(thread) && !self.suspends.is_calling(thread) {
            self.known_frames.add(epoch, thread, first, entries);
        }
    }

    /// A reference to what can be opened; 0 when there are too many.
    pub(crate) fn add_container(&mut self, container: ValueContainer) -> i64 {
        if self.containers.len() >= MAX_CONTAINERS {
            return 0;
        }
        let halt = match &container {
            ValueContainer::Locals(spot) => self.suspends.halt_number(spot.thread),
            _ => None,
        };
        self.containers.push((container, halt));
        self.last_container()
    }

    /// The number of the container that was added last.
    fn last_container(&self) -> i64 {
        i64::try_from(self.containers.len()).unwrap_or(i64::MAX).saturating_add(self.past_containers)
    }

    fn container(&self, reference: i64) -> Option<ValueContainer> {
        let index = reference.checked_sub(1)?.checked_sub(self.past_containers)?;
        let (container, halt) = self.containers.get(usize::try_from(index).ok()?)?;
        match container {
            ValueContainer::Locals(spot) if !self.is_same_halt(spot.thread, *halt) => None,
            container => Some(container.clone()),
        }
    }

    /// Whether a thread is suspended for the client.
    pub(crate) fn is_suspended(&self, thread: ObjectId) -> bool {
        self.suspends.is_suspended(thread)
    }

    /// Threads are resumed: their frames are gone. Returns the objects that need not be kept any more.
    pub(crate) fn forget_frames(&mut self) -> Vec<ObjectId> {
        self.known_frames.forget();
        if self.suspends.is_any_suspended() {
            return Vec::new();
        }
        // Ids are not used again, since a client may still send an old one.
        self.frames.clear();
        self.frame_ids.clear();
        self.past_containers = self.last_container();
        self.containers.clear();
        std::mem::take(&mut self.kept)
    }
}
