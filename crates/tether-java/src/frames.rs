//! Threads and frames: their names, places and sources.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::{join_all, try_join_all};
use tether_backend::Answer;
use tether_backend::request_failure::RequestFailure;
use tether_base::sync::lock;
use tether_dap::types::{
    DapScope, DapSource, DapStackFrame, DapThread, StackTraceArguments, StackTraceResponse, ThreadsResponse,
};
use tether_jdwp::commands::reference_types::{DeclaredMethod, MethodVariables};
use tether_jdwp::commands::threads::{
    ContendedMonitor, FrameCount, FrameEntryOfThread, Frames, OwnedMonitors, ThreadName, ThreadStatus,
};
use tether_jdwp::commands::virtual_machine::AllThreads;
use tether_jdwp::values::{CodeLocation, FrameId, JdwpValue, ObjectId};
use tether_jdwp::{JdwpError, JdwpErrorCode};

use super::collection_pages::ObjectFields;
use super::java_vm::{JavaClass, STATIC, line_of};
use super::old_frames::OldMethod;
use super::session::{FrameSpot, JavaSession, ValueContainer};
use super::signatures::{is_jdk_class, is_lambda_class};
use super::{class_origin, monitor_events};

/// How many frames are read when the client does not limit them.
const MAX_FRAMES: i32 = 1000;
/// How many threads are listed.
const MAX_THREADS: usize = 300;
/// How many monitors of a thread are named.
const MAX_MONITORS: usize = 20;

/// A frame with its code.
#[derive(Clone)]
pub(crate) struct CodeFrame {
    /// Valid until the thread runs, if only for a call of an evaluation.
    pub id: FrameId,
    pub location: CodeLocation,
    pub class: Arc<JavaClass>,
    pub method: DeclaredMethod,
    pub code: FrameCode,
}

/// Which code a frame runs.
#[derive(Clone)]
pub(crate) enum FrameCode {
    /// That of its class as it is.
    Current,
    /// That of before a swap, and what was read of it then.
    Old(Option<Arc<OldMethod>>),
}

/// The threads, with their names and what they do: of many the first, which are no virtual ones, and those that have stopped.
pub(crate) async fn list_threads(session: &JavaSession) -> Answer<ThreadsResponse> {
    let mut threads = session.vm.request(&AllThreads {}).await?;
    let stopped: Vec<ObjectId> = session.with_tables(|tables| tables.suspends.stopped().collect());
    if threads.len() > MAX_THREADS
        && let Some(first) = threads.first().copied()
        && session.vm.is_virtual(first).await
    {
        // The others come behind the virtual ones.
        threads.reverse();
    }
    // A virtual thread that has stopped may not be among all.
    let unlisted = threads.len().saturating_sub(MAX_THREADS);
    let behind: HashSet<ObjectId> = threads.split_off(threads.len().min(MAX_THREADS)).into_iter().collect();
    let others: Vec<ObjectId> = stopped.into_iter().filter(|thread| !threads.contains(thread)).collect();
    let unlisted = unlisted.saturating_sub(others.iter().filter(|thread| behind.contains(thread)).count());
    threads.extend(others);
    let described = join_all(threads.into_iter().map(|thread| describe_thread(session, thread))).await;
    // A thread without a name has ended meanwhile.
    let mut described: Vec<(ObjectId, DapThread)> = described.into_iter().flatten().collect();
    // The first thread that clients know is the one that they pause.
    described.sort_by_key(|(_, described)| described.name != "main");
    let with_id = |(thread, described)| {
        let id = session.with_tables(|tables| tables.thread_id(thread));
        DapThread { id, ..described }
    };
    let mut found: Vec<DapThread> = described.into_iter().map(with_id).collect();
    found.sort_by_key(|thread| thread.id);
    let listed = ThreadsResponse { threads: found, unlisted: (unlisted > 0).then_some(unlisted) };
    session.with_tables(|tables| tables.listed_threads.clone_from(&listed));
    Ok(listed)
}

async fn describe_thread(session: &JavaSession, thread: ObjectId) -> Option<(ObjectId, DapThread)> {
    let (name_request, status_request) = (ThreadName { thread }, ThreadStatus { thread });
    let (name, status, (holds, waits_for)) = tokio::join!(
        session.vm.request(&name_request),
        session.vm.request(&status_request),
        describe_monitors(session, thread)
    );
    let state = status.ok().and_then(|(status, _)| thread_state(status)).map(str::to_owned);
    let name = match name.ok()? {
        name if name.is_empty() => unnamed_thread(session, thread).await,
        name => name,
    };
    Some((thread, DapThread { id: 0, name, state, holds, waits_for }))
}

/// What a thread without a name is called, as most virtual threads are: by its number in Java, as in thread dumps.
pub(crate) async fn unnamed_thread(session: &JavaSession, thread: ObjectId) -> String {
    let number = async {
        let class = session.vm.class_of(thread).await.ok()?;
        let fields = ObjectFields { vm: &session.vm, object: thread, class: &class };
        match fields.read(["tid"]).await.ok()?? {
            [JdwpValue::Long(number)] => Some(format!("#{number}")),
            _ => None,
        }
    };
    let kind = if session.vm.is_virtual(thread).await { "virtual thread" } else { "thread" };
    [Some(kind.to_owned()), number.await].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The monitors that a thread holds, and the one that it waits for: known of suspended threads only.
async fn describe_monitors(session: &JavaSession, thread: ObjectId) -> (Vec<String>, Option<String>) {
    let able = &session.vm.capabilities;
    let is_known = able.get_owned_monitor_info && able.get_current_contended_monitor;
    if !is_known || !session.with_tables(|tables| tables.is_suspended(thread)) {
        return (Vec::new(), None);
    }
    let (owned_request, contended_request) = (OwnedMonitors { thread }, ContendedMonitor { thread });
    let (owned, contended) = tokio::join!(session.vm.request(&owned_request), session.vm.request(&contended_request));
    let owned = owned.unwrap_or_default().into_iter().take(MAX_MONITORS);
    let holds = join_all(owned.map(|monitor| monitor_events::describe_monitor(session, monitor))).await;
    match contended.ok().filter(|monitor| !monitor.id.is_null()) {
        Some(monitor) => (holds, Some(monitor_events::describe_monitor(session, monitor).await)),
        None => (holds, None),
    }
}

/// Frames of a suspended thread.
pub(crate) async fn stack_trace(session: &JavaSession, arguments: StackTraceArguments) -> Answer<StackTraceResponse> {
    let thread = session.thread(arguments.thread_id)?;
    let running = |error: JdwpError| match error.has_code(JdwpErrorCode::THREAD_NOT_SUSPENDED) {
        true => RequestFailure("notStopped".to_owned()),
        false => error.into(),
    };
    let epoch = session.with_tables(|tables| tables.known_frames.epoch());
    let total = session.vm.request(&FrameCount { thread }).await.map_err(running)?;
    let (first, count) = frame_range(total, arguments.start_frame, arguments.levels)?;
    let entries = match count {
        0 => Vec::new(),
        count => session.vm.request(&Frames { thread, first, count }).await.map_err(running)?,
    };
    let depth = usize::try_from(first).unwrap_or(0);
    session.with_tables(|tables| tables.add_known_frames(epoch, thread, depth, &entries));
    let spots = (depth..).map(|depth| FrameSpot { thread, depth });
    let frames = spots.zip(entries).map(|(spot, entry)| describe_frame(session, spot, entry));
    Ok(StackTraceResponse { stack_frames: try_join_all(frames).await?, total_frames: Some(i64::from(total)) })
}

async fn describe_frame(session: &JavaSession, spot: FrameSpot, entry: FrameEntryOfThread) -> Answer<DapStackFrame> {
    let frame = read_code(session, spot, entry).await?;
    let line = frame_line(session, &frame).await?;
    let source = frame_source(session, &frame).await?;
    let is_foreign = is_jdk_class(&frame.class.signature) || is_lambda_class(&frame.class.signature);
    let class = frame.class.name();
    Ok(DapStackFrame {
        id: session.with_tables(|tables| tables.frame_id(spot)),
        name: match &frame.code {
            FrameCode::Current => format!("{class}.{}", frame.method.name),
            FrameCode::Old(Some(_)) => format!("{class}.{} [old code]", frame.method.name),
            FrameCode::Old(None) => format!("{class} [old code]"),
        },
        line: i64::from(line.max(0)),
        column: i64::from(line > 0),
        source,
        presentation_hint: is_foreign.then(|| "subtle".to_owned()),
    })
}

/// The line of a frame; 0 where it is not known.
pub(crate) async fn frame_line(session: &JavaSession, frame: &CodeFrame) -> Result<i32, JdwpError> {
    match &frame.code {
        FrameCode::Current => session.vm.line_at(&frame.class, frame.location.method, frame.location.index).await,
        FrameCode::Old(old) => Ok(old.as_ref().map_or(0, |old| line_of(&old.lines, frame.location.index))),
    }
}

/// The variables of a frame's method; `None` where they are not known.
pub(crate) async fn frame_variables(
    session: &JavaSession,
    frame: &CodeFrame,
) -> Result<Option<Arc<MethodVariables>>, JdwpError> {
    match &frame.code {
        FrameCode::Current => session.vm.variables(&frame.class, frame.location.method).await,
        FrameCode::Old(old) => Ok(old.as_ref().and_then(|old| old.variables.clone())),
    }
}

/// The source of a frame. That of old code is not its file, which has changed, but the text of before.
async fn frame_source(session: &JavaSession, frame: &CodeFrame) -> Answer<Option<DapSource>> {
    let FrameCode::Old(old) = &frame.code else {
        let source = source_of(session, &frame.class).await?;
        if let Some(path) = source.as_ref().and_then(|source| source.path.as_ref()) {
            let compiled = lock(&session.code_origin).since;
            session.sources.remember_text(path.as_ref(), compiled).await;
        }
        return Ok(source);
    };
    let name = session.vm.source_file(&frame.class).await?;
    let source_reference = old.as_ref().and_then(|old| old.source);
    Ok(name.map(|name| DapSource { name: Some(name), source_reference, ..DapSource::default() }))
}

/// The source of a class: with a path where the file is found.
pub(crate) async fn source_of(session: &JavaSession, class: &JavaClass) -> Answer<Option<DapSource>> {
    let Some(name) = session.vm.source_file(class).await? else { return Ok(None) };
    let files = session.sources.find_files(&class.signature, &name).await;
    let path = match files.as_slice() {
        [] | [_] => files.first().cloned(),
        [first, ..] => class_origin::own_source(session, class, &name).await?.or_else(|| Some(first.clone())),
    };
    let path = path.map(|path| path.to_string_lossy().into_owned());
    Ok(Some(DapSource { name: Some(name), path, ..DapSource::default() }))
}

/// A frame as it is now: its id changes when its thread has run a call. Errors: the thread has no such frame.
pub(crate) async fn read_frame(session: &JavaSession, spot: FrameSpot) -> Answer<CodeFrame> {
    if let Some(entry) = session.with_tables(|tables| tables.known_frames.get(spot.thread, spot.depth)) {
        return read_code(session, spot, entry).await;
    }
    let first = i32::try_from(spot.depth).unwrap_or(i32::MAX);
    let found = session.vm.request(&Frames { thread: spot.thread, first, count: 1 }).await?;
    let entry = found.into_iter().next().ok_or("the frame is gone")?;
    read_code(session, spot, entry).await
}

async fn read_code(session: &JavaSession, spot: FrameSpot, entry: FrameEntryOfThread) -> Answer<CodeFrame> {
    let FrameEntryOfThread { frame: id, location } = entry;
    let class = session.vm.class(location.class, location.type_tag).await?;
    if session.vm.is_current(&class, location.method).await?
        && let Some(method) = session.vm.method(&class, location.method).await?
    {
        return Ok(CodeFrame { id, location, class, method, code: FrameCode::Current });
    }
    let total = session.vm.request(&FrameCount { thread: spot.thread }).await?;
    let height = usize::try_from(total).ok().and_then(|total| total.checked_sub(spot.depth));
    let old = height
        .and_then(|height| session.with_tables(|tables| tables.old_frames.get((spot.thread, height), location.class)));
    // Static: whether there is a `this` is not known.
    let unknown = || DeclaredMethod {
        id: location.method,
        name: "?".to_owned(),
        signature: String::new(),
        generic: String::new(),
        modifiers: STATIC,
    };
    let method = old.as_ref().map_or_else(unknown, |old| old.method.clone());
    Ok(CodeFrame { id, location, class, method, code: FrameCode::Old(old) })
}

/// Why a frame was not changed: of a virtual thread, the virtual machine changes the innermost one only, where it runs.
pub(crate) async fn explain_refusal(session: &JavaSession, spot: FrameSpot, error: JdwpError) -> RequestFailure {
    if !error.has_code(JdwpErrorCode::OPAQUE_FRAME) || !session.vm.is_virtual(spot.thread).await {
        return error.into();
    }
    let what = match spot.depth {
        0 => "the virtual thread is not at a breakpoint or the end of a step",
        _ => "this is a lower frame of a virtual thread",
    };
    RequestFailure(format!("{what}: the virtual machine changes only the innermost frame of one that has stopped"))
}

/// The text of a source that is in no file any more.
pub(crate) fn source_text(session: &JavaSession, reference: i64) -> Answer<String> {
    let text = session.with_tables(|tables| tables.old_frames.text(reference));
    let text = text.ok_or_else(|| format!("there is no source {reference}"))?;
    Ok(text.as_ref().to_owned())
}

/// The scopes of a frame: its variables; the static fields of its class.
pub(crate) async fn scopes(session: &JavaSession, frame_id: i64) -> Answer<Vec<DapScope>> {
    let spot = session.frame_spot(frame_id)?;
    let frame = read_frame(session, spot).await?;
    let fields = session.vm.fields(&frame.class).await?;
    let has_statics = fields.iter().any(|field| field.modifiers & STATIC != 0);
    let mut scopes = vec![scope(session, "Locals", Some("locals"), false, ValueContainer::Locals(spot))];
    if has_statics {
        scopes.push(scope(session, "Static fields", None, true, ValueContainer::Statics(frame.class.id)));
    }
    Ok(scopes)
}

fn scope(
    session: &JavaSession,
    name: &str,
    hint: Option<&str>,
    expensive: bool,
    container: ValueContainer,
) -> DapScope {
    DapScope {
        name: name.to_owned(),
        variables_reference: session.with_tables(|tables| tables.add_container(container)),
        expensive,
        presentation_hint: hint.map(str::to_owned),
    }
}

/// The thread on which a pause is reported: `main`, or the first one.
pub(crate) async fn main_thread(session: &JavaSession) -> Answer<ObjectId> {
    let threads = list_threads(session).await?;
    let threads = threads.threads;
    let main = threads.iter().find(|thread| thread.name == "main").or(threads.first());
    session.thread(main.ok_or("the program has no threads")?.id)
}

/// The first frame and the number of frames that a client has asked for, of those that a thread has. Errors: the virtual
/// machine has sent what is no count.
fn frame_range(total: i32, start: Option<i64>, levels: Option<i64>) -> Answer<(i32, i32)> {
    if total < 0 {
        return Err(format!("the virtual machine sent a stack of {total} frames").into());
    }
    let first = i32::try_from(start.unwrap_or(0).max(0)).unwrap_or(i32::MAX).min(total);
    let levels = levels.filter(|levels| *levels > 0).map(|levels| i32::try_from(levels).unwrap_or(i32::MAX));
    // Both are from 0 to `total`.
    Ok((first, levels.unwrap_or(MAX_FRAMES).min(total.saturating_sub(first))))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_frames_is_within_the_stack_whatever_is_asked_or_sent() {
        let range = |total, start, levels| frame_range(total, start, levels).ok();
        assert_eq!(range(3, None, None), Some((0, 3)));
        assert_eq!(range(3, Some(1), Some(1)), Some((1, 1)));
        assert_eq!(range(3, Some(9), Some(1)), Some((3, 0)));
        assert_eq!(range(3, Some(-9), Some(-1)), Some((0, 3)));
        assert_eq!(range(3, Some(i64::MAX), Some(i64::MAX)), Some((3, 0)));
        assert_eq!(range(i32::MAX, None, None), Some((0, MAX_FRAMES)));
        assert_eq!((range(-1, None, None), range(i32::MIN, Some(i64::MIN), None)), (None, None));
    }
}
