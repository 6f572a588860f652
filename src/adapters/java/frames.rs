//! Threads and frames: their names, places and sources.

use std::sync::Arc;

use futures_util::future::{join_all, try_join_all};

use super::java_vm::JavaClass;
use super::session::{FrameSpot, JavaSession};
use super::signatures::is_jdk_class;
use crate::adapters::request_failure::RequestFailure;
use crate::dap::types::{DapScope, DapSource, DapStackFrame, DapThread, StackTraceArguments, StackTraceResponse};
use crate::jdwp::commands::reference_types::DeclaredMethod;
use crate::jdwp::commands::threads::{
    ContendedMonitor, FrameCount, FrameEntryOfThread, Frames, OwnedMonitors, ThreadName, ThreadStatus,
};
use crate::jdwp::commands::virtual_machine::AllThreads;
use crate::jdwp::values::{CodeLocation, FrameId, ObjectId};
use crate::jdwp::{JdwpError, JdwpErrorCode};

use super::session::ValueContainer;

/// How many frames are read when the client does not limit them.
const MAX_FRAMES: i32 = 1000;
/// How many monitors of a thread are named.
const MAX_MONITORS: usize = 20;

/// A frame with its code.
#[derive(Clone)]
pub struct CodeFrame {
    /// Valid until the thread runs, if only for a call of an evaluation.
    pub id: FrameId,
    pub location: CodeLocation,
    pub class: Arc<JavaClass>,
    pub method: DeclaredMethod,
}

impl JavaSession {
    /// All threads, with their names and what they do.
    pub async fn list_threads(&self) -> Result<Vec<DapThread>, RequestFailure> {
        let threads = self.vm.request(&AllThreads {}).await?;
        let described = join_all(threads.into_iter().map(|thread| self.describe_thread(thread))).await;
        // A thread without a name has ended meanwhile.
        let mut described: Vec<(ObjectId, DapThread)> = described.into_iter().flatten().collect();
        // The first thread that clients know is the one that they pause.
        described.sort_by_key(|(_, described)| described.name != "main");
        let with_id = |(thread, described)| {
            let id = self.with_tables(|tables| tables.thread_id(thread));
            DapThread { id, ..described }
        };
        let mut found: Vec<DapThread> = described.into_iter().map(with_id).collect();
        found.sort_by_key(|thread| thread.id);
        Ok(found)
    }

    async fn describe_thread(&self, thread: ObjectId) -> Option<(ObjectId, DapThread)> {
        let (name_request, status_request) = (ThreadName { thread }, ThreadStatus { thread });
        let (name, status, (holds, waits_for)) = tokio::join!(
            self.vm.request(&name_request),
            self.vm.request(&status_request),
            self.describe_monitors(thread)
        );
        let state = status.ok().and_then(|(status, _)| thread_state(status)).map(str::to_owned);
        Some((thread, DapThread { id: 0, name: name.ok()?, state, holds, waits_for }))
    }

    /// The monitors that a thread holds, and the one that it waits for: known of suspended threads only.
    async fn describe_monitors(&self, thread: ObjectId) -> (Vec<String>, Option<String>) {
        let able = &self.vm.capabilities;
        let is_known = able.get_owned_monitor_info && able.get_current_contended_monitor;
        if !is_known || !self.with_tables(|tables| tables.is_suspended(thread)) {
            return (Vec::new(), None);
        }
        let (owned_request, contended_request) = (OwnedMonitors { thread }, ContendedMonitor { thread });
        let (owned, contended) = tokio::join!(self.vm.request(&owned_request), self.vm.request(&contended_request));
        let owned = owned.unwrap_or_default().into_iter().take(MAX_MONITORS);
        let holds = join_all(owned.map(|monitor| self.describe_monitor(monitor))).await;
        match contended.ok().filter(|monitor| !monitor.id.is_null()) {
            Some(monitor) => (holds, Some(self.describe_monitor(monitor).await)),
            None => (holds, None),
        }
    }

    /// Frames of a suspended thread.
    pub async fn stack_trace(&self, arguments: StackTraceArguments) -> Result<StackTraceResponse, RequestFailure> {
        let thread = self.thread(arguments.thread_id)?;
        let running = |error: JdwpError| match error.has_code(JdwpErrorCode::THREAD_NOT_SUSPENDED) {
            true => RequestFailure("notStopped".to_owned()),
            false => error.into(),
        };
        let epoch = self.with_tables(|tables| tables.known_frames.epoch());
        let total = self.vm.request(&FrameCount { thread }).await.map_err(running)?;
        let first = i32::try_from(arguments.start_frame.unwrap_or(0)).unwrap_or(0).clamp(0, total);
        let levels = arguments.levels.filter(|levels| *levels > 0).and_then(|levels| i32::try_from(levels).ok());
        let count = levels.unwrap_or(MAX_FRAMES).min(total - first);
        let entries = match count {
            0 => Vec::new(),
            count => self.vm.request(&Frames { thread, first, count }).await.map_err(running)?,
        };
        self.with_tables(|tables| tables.add_known_frames(epoch, thread, first as usize, &entries));
        let frames = entries.into_iter().enumerate().map(|(at, entry)| {
            let spot = FrameSpot { thread, depth: first as usize + at };
            self.describe_frame(spot, entry)
        });
        Ok(StackTraceResponse { stack_frames: try_join_all(frames).await?, total_frames: Some(i64::from(total)) })
    }

    async fn describe_frame(
        &self,
        spot: FrameSpot,
        entry: FrameEntryOfThread,
    ) -> Result<DapStackFrame, RequestFailure> {
        let frame = self.read_code(entry).await?;
        let line = self.vm.line_at(&frame.class, frame.location.method, frame.location.index).await?;
        let source = self.source_of(&frame.class).await?;
        let is_foreign = is_jdk_class(&frame.class.signature);
        Ok(DapStackFrame {
            id: self.with_tables(|tables| tables.frame_id(spot)),
            name: format!("{}.{}", frame.class.name(), frame.method.name),
            line: i64::from(line.max(0)),
            column: i64::from(line > 0),
            source,
            presentation_hint: is_foreign.then(|| "subtle".to_owned()),
        })
    }

    /// The source of a class: with a path where the file is found.
    pub async fn source_of(&self, class: &JavaClass) -> Result<Option<DapSource>, JdwpError> {
        let Some(name) = self.vm.source_file(class).await? else { return Ok(None) };
        let path = self.sources.find_file(&class.signature, &name);
        let path = path.map(|path| path.to_string_lossy().into_owned());
        Ok(Some(DapSource { name: Some(name), path, ..DapSource::default() }))
    }

    /// A frame as it is now: its id changes when its thread has run a call. Errors: the thread has no such frame.
    pub async fn read_frame(&self, spot: FrameSpot) -> Result<CodeFrame, RequestFailure> {
        if let Some(entry) = self.with_tables(|tables| tables.known_frames.get(spot.thread, spot.depth)) {
            return self.read_code(entry).await;
        }
        let first = i32::try_from(spot.depth).unwrap_or(i32::MAX);
        let found = self.vm.request(&Frames { thread: spot.thread, first, count: 1 }).await?;
        let entry = found.into_iter().next().ok_or("the frame is gone")?;
        self.read_code(entry).await
    }

    async fn read_code(&self, entry: FrameEntryOfThread) -> Result<CodeFrame, RequestFailure> {
        let FrameEntryOfThread { frame, location } = entry;
        let class = self.vm.class(location.class, location.type_tag).await?;
        let method = self.vm.method(&class, location.method).await?;
        let method = method.unwrap_or_else(|| DeclaredMethod {
            id: location.method,
            name: "obsolete".to_owned(),
            signature: "()V".to_owned(),
            generic: String::new(),
            modifiers: 0,
        });
        Ok(CodeFrame { id: frame, location, class, method })
    }

    /// The scopes of a frame: its variables; the static fields of its class.
    pub async fn scopes(&self, frame_id: i64) -> Result<Vec<DapScope>, RequestFailure> {
        let spot = self.frame_spot(frame_id)?;
        let frame = self.read_frame(spot).await?;
        let fields = self.vm.fields(&frame.class).await?;
        let has_statics = fields.iter().any(|field| field.modifiers & super::java_vm::STATIC != 0);
        let mut scopes = vec![self.scope("Locals", Some("locals"), false, ValueContainer::Locals(spot))];
        if has_statics {
            scopes.push(self.scope("Static fields", None, true, ValueContainer::Statics(frame.class.id)));
        }
        Ok(scopes)
    }

    fn scope(&self, name: &str, hint: Option<&str>, expensive: bool, container: ValueContainer) -> DapScope {
        DapScope {
            name: name.to_owned(),
            variables_reference: self.with_tables(|tables| tables.add_container(container)),
            expensive,
            presentation_hint: hint.map(str::to_owned),
        }
    }

    /// The thread on which a pause is reported: `main`, or the first one.
    pub async fn main_thread(&self) -> Result<ObjectId, RequestFailure> {
        let threads = self.list_threads().await?;
        let main = threads.iter().find(|thread| thread.name == "main").or(threads.first());
        self.thread(main.ok_or("the program has no threads")?.id)
    }
}

/// The word for a thread status (JDWP: ThreadStatus Constants).
fn thread_state(status: i32) -> Option<&'static str> {
    Some(match status {
        0 => "ended",
        1 => "running",
        2 => "sleeping",
        3 => "blocked",
        4 => "waiting",
        _ => return None,
    })
}
