//! Classifies DAP `stopped` events: report to the user, or continue automatically.
//!
//! ```text
//! stopped ──┬─ decided by the event ───────────────────────────▶ Stop
//!           ├─ the adapter's initial pause ────────────────────▶ AutoContinue, or Stop as ENTRY
//!           ├─ an exception, and one class is set ─ exceptionInfo ─▶ Stop or AutoContinue
//!           ├─ a breakpoint that the adapter does not name ─ stackTrace ─▶ Stop, or as the next
//!           ├─ a breakpoint whose hits are counted here ───────▶ Stop or AutoContinue
//!           ├─ a step that may end in a generated file ─ stackTrace ─▶ Stop, or StepOn
//!           └─ no thread is named ─ threads ─────────────────────▶ Stop
//! ```
//! A stop is not published before it has been classified.

use std::path::Path;

use tether_dap::DapClient;
use tether_dap::types::{DapStackFrame, ExceptionInfoArguments, StackTraceArguments, ThreadsArguments};

use super::disconnect::log_error;
use super::resume::Resume;
use super::stop::ThreadStop;
use super::target_handle::TargetHandle;
use crate::debug::breakpoints::function_sync::PANIC_FUNCTION;
use crate::debug::breakpoints::hit_count::counted_here;
use crate::debug::breakpoints::{BreakpointSpec, StoredBreakpoints};
use crate::debug::source_file::canonical_path;
use crate::vocabulary::StopKind;

/// The exception by which a Python program exits.
const SYSTEM_EXIT: &str = "SystemExit";

/// What happens at a stop.
pub enum StopDecision {
    /// It is reported to the user.
    Stop(ThreadStop),
    /// The program is resumed automatically.
    AutoContinue(ThreadStop),
    /// The step goes on automatically.
    StepOn(ThreadStop, Resume),
}

/// A stop that cannot be classified without requests to the adapter.
pub enum Undecided {
    /// An exception, and the only class to stop at.
    ExceptionClass(ThreadStop, Box<str>),
    /// A breakpoint that the adapter does not name.
    UnknownBreakpoint(ThreadStop),
    /// The end of a step, which may be in a file that the compiler has made, of that name.
    StepEnd(ThreadStop, &'static str),
    /// The adapter names no thread (Delve, at a pause).
    UnknownThread(ThreadStop),
}

/// Classifies a stop without requests. `initial` is set for the stop that an adapter sends at the start: whether a stop at
/// the entry is to be reported. Errors: requests are needed.
pub fn decide_without_requests(
    target: &TargetHandle,
    mut stop: ThreadStop,
    initial: Option<bool>,
) -> Result<StopDecision, Box<Undecided>> {
    // The stop is the result of a requested pause.
    if target.shared.with_state(|state| state.pausing.remove(&target.id)) && is_pause(&stop) {
        stop.kind = StopKind::UserSuspend;
    }
    if stop.kind != StopKind::StepComplete {
        target.shared.with_state(|state| state.left_calls.remove(&target.id));
    }
    match initial {
        // Whatever its reason: CodeLLDB sends a signal.
        Some(true) if stop.kind != StopKind::BreakpointHit => {
            stop.kind = StopKind::Entry;
            return Ok(StopDecision::Stop(stop));
        }
        Some(false) if matches!(stop.kind, StopKind::UserSuspend | StopKind::Entry) => {
            return Ok(StopDecision::AutoContinue(stop));
        }
        _ => {}
    }
    let stored = target.shared.breakpoints.current();
    match stop.kind {
        _ if stop.thread_id.is_none() => Err(Undecided::UnknownThread(stop).into()),
        StopKind::Exception if stop.condition_failure.is_some() => Err(Undecided::UnknownBreakpoint(stop).into()),
        // As nobody has asked for: a program that exits has not failed.
        StopKind::Exception
            if stored.has_default_exceptions()
                && stored.editor_exceptions.is_empty()
                && stop.text.as_deref().is_some_and(|text| names_class(text, SYSTEM_EXIT)) =>
        {
            Ok(StopDecision::AutoContinue(stop))
        }
        StopKind::Exception => match &stored.exceptions.class {
            // A joined editor may want to stop at others.
            Some(class) if stored.editor_exceptions.is_empty() => {
                Err(Undecided::ExceptionClass(stop, class.as_str().into()).into())
            }
            _ => Ok(StopDecision::Stop(stop)),
        },
        StopKind::BreakpointHit
        | StopKind::MethodEntry
        | StopKind::MethodExit
        | StopKind::WatchpointAccess
        | StopKind::WatchpointModify => {
            stop.hits = target.shared.with_state(|state| match stop.kind {
                StopKind::WatchpointAccess | StopKind::WatchpointModify => {
                    state.count_watchpoint_hits(target.id, &stop.breakpoints)
                }
                _ => state.bindings.count_hits(target.id, &stop.breakpoints),
            });
            if stop.hits.iter().filter_map(|(id, _)| stored.get(*id)).any(BreakpointSpec::is_read_watchpoint) {
                stop.kind = StopKind::WatchpointAccess;
            }
            if stop.hits.is_empty() && stop.kind == StopKind::BreakpointHit {
                return Err(Undecided::UnknownBreakpoint(stop).into());
            }
            Ok(decide_by_hits(target, &stored, stop))
        }
        StopKind::StepComplete if let Some(generated) = target.quirks().generated_source => {
            Err(Undecided::StepEnd(stop, generated).into())
        }
        _ => Ok(StopDecision::Stop(stop)),
    }
}

/// Classifies a stop by requests to the adapter. `accumulates`: the adapter never removes a breakpoint.
pub async fn decide_with_requests(
    client: &DapClient,
    target: &TargetHandle,
    undecided: Undecided,
    accumulates: bool,
) -> StopDecision {
    let (shared, deadline) = (&target.shared, target.shared.request_timeout);
    match undecided {
        // An adapter may exit at a request that it does not support (rdbg): the text of the stop is read instead.
        Undecided::ExceptionClass(stop, class) if !target.capabilities().can("supportsExceptionInfoRequest") => {
            let matches = stop.text.as_deref().is_none_or(|text| names_class(text, &class));
            if matches { StopDecision::Stop(stop) } else { StopDecision::AutoContinue(stop) }
        }
        Undecided::ExceptionClass(stop, class) => {
            let info = ExceptionInfoArguments { thread_id: stop.thread_id.unwrap_or_default() };
            let Some(info) = log_error(client.request(&info, deadline).await) else { return StopDecision::Stop(stop) };
            let details = info.details.unwrap_or_default();
            let names = [details.full_type_name, details.type_name, Some(info.exception_id)];
            let is = names.iter().flatten().any(|name| names_class(name, &class));
            // Where the class is only in the text, as in `TypeError: x is not a function`.
            let in_text = [&info.description, &stop.text].into_iter().flatten().any(|text| names_class(text, &class));
            if is || in_text { StopDecision::Stop(stop) } else { StopDecision::AutoContinue(stop) }
        }
        Undecided::StepEnd(stop, generated) => {
            let thread_id = stop.thread_id.unwrap_or_default();
            let stack = StackTraceArguments { thread_id, levels: Some(2), ..StackTraceArguments::default() };
            let frames = log_error(client.request(&stack, deadline).await).unwrap_or_default().stack_frames;
            decide_step_end(target, stop, generated, &frames)
        }
        Undecided::UnknownThread(mut stop) => {
            let threads = log_error(client.request(&ThreadsArguments {}, deadline).await).unwrap_or_default().threads;
            // Delve marks the current one with `*`.
            let current = threads.iter().find(|thread| thread.name.starts_with('*')).or(threads.first());
            stop.thread_id = current.map(|thread| thread.id);
            StopDecision::Stop(stop)
        }
        Undecided::UnknownBreakpoint(mut stop) => {
            let thread_id = stop.thread_id.unwrap_or_default();
            let stack = StackTraceArguments { thread_id, levels: Some(1), ..StackTraceArguments::default() };
            let stack = log_error(client.request(&stack, deadline).await);
            let top = stack.and_then(|stack| stack.stack_frames.into_iter().next());
            let stored = shared.breakpoints.current();
            if let Some(thrown_by) = top.as_ref().and_then(|top| throw_function(&top.name)) {
                stop.kind = StopKind::Exception;
                stop.is_panic = thrown_by == PANIC_FUNCTION;
                stop.text = Some(if stop.is_panic { PANIC.to_owned() } else { format!("thrown by {thrown_by}") });
                let is_other = stored.exceptions.class.as_deref().is_some_and(|class| class != PANIC);
                let is_passed = stop.is_panic && is_other;
                return if is_passed { StopDecision::AutoContinue(stop) } else { StopDecision::Stop(stop) };
            }
            let place = top.as_ref().and_then(|top| Some((top.source.as_ref()?.path.as_deref()?, top.line)));
            let Some((path, line)) = place else { return StopDecision::Stop(stop) };
            // As breakpoints name it.
            let path = &canonical_path(Path::new(path));
            let is_removed = shared.with_state(|state| {
                let found = state.breakpoints_at_line(target.id, &stored.breakpoints, path, line);
                stop.hits = found.into_iter().map(|id| (id, state.bindings.count_hit(id))).collect();
                stop.hits.is_empty() && accumulates && state.bindings.was_line_sent(target.id, path, line)
            });
            if is_removed {
                return StopDecision::AutoContinue(stop);
            }
            if !stop.hits.is_empty() {
                stop.kind = StopKind::BreakpointHit;
            }
            decide_by_hits(target, &stored, stop)
        }
    }
}

/// A step out of a generated file ends in the call of it, on the line from which the user has stepped: that step goes over the rest
/// of the line.
fn decide_step_end(target: &TargetHandle, stop: ThreadStop, generated: &str, frames: &[DapStackFrame]) -> StopDecision {
    let place = |frame: &DapStackFrame| (frame.name.clone(), frame.line);
    let is_generated = |frame: &DapStackFrame| {
        let path = frame.source.as_ref().and_then(|source| source.path.as_deref().or(source.name.as_deref()));
        path.is_some_and(|path| Path::new(path).file_name().is_some_and(|name| name == generated))
    };
    let left = target.shared.with_state(|state| state.left_calls.remove(&target.id));
    match frames {
        [top, caller, ..] if is_generated(top) => {
            target.shared.with_state(|state| state.left_calls.insert(target.id, place(caller)));
            StopDecision::StepOn(stop, Resume::Out)
        }
        [top, ..] if left == Some(place(top)) => StopDecision::StepOn(stop, Resume::Over),
        _ => StopDecision::Stop(stop),
    }
}

/// Passes a stop if the hits of all its breakpoints are counted here, and none of their conditions asks for this one. A step that
/// ends there is not continued from: it would run on.
fn decide_by_hits(target: &TargetHandle, stored: &StoredBreakpoints, mut stop: ThreadStop) -> StopDecision {
    let counting = target.quirks().hit_counting;
    let is_asked_for = |(id, hits): &(u32, u64)| {
        let counted = stored.get(*id).and_then(|spec| counted_here(spec, counting));
        counted.is_none_or(|condition| condition.is_met(*hits))
    };
    let asked_for: Vec<(u32, u64)> = stop.hits.iter().copied().filter(is_asked_for).collect();
    if !asked_for.is_empty() || stop.hits.is_empty() {
        stop.hits = asked_for;
        return StopDecision::Stop(stop);
    }
    let resumed = target.shared.snapshot.borrow().targets.get(target.id).and_then(|it| it.last_resume.clone());
    if resumed.is_none_or(|resumed| resumed.how == Resume::Continue) {
        return StopDecision::AutoContinue(stop);
    }
    if let Some((id, hits)) = stop.hits.first()
        && let Some(condition) = stored.get(*id).and_then(|spec| spec.conditions.hit_condition.as_deref())
    {
        let text =
            format!("the step has ended at breakpoint {id}: this is its hit {hits}, and it stops at `{condition}`");
        target.shared.event_log.push_notice("stepEnded", text);
    }
    stop.kind = StopKind::StepComplete;
    stop.hits.clear();
    StopDecision::Stop(stop)
}

/// Some adapters report a requested pause as a step (js-debug) or a signal (lldb-dap).
fn is_pause(stop: &ThreadStop) -> bool {
    let is_signal = |text: &str| ["SIGSTOP", "SIGINT"].iter().any(|signal| text.contains(signal));
    stop.kind == StopKind::StepComplete
        || (stop.kind == StopKind::Exception && stop.text.as_deref().is_some_and(is_signal))
}

/// The functions in which CodeLLDB and gdb stop for a C++ exception or a Rust panic, and report a breakpoint.
const THROW_FUNCTIONS: &[&str] = &["__cxa_throw", "__cxa_begin_catch", "__cxa_rethrow", PANIC_FUNCTION];
/// The class of a Rust panic, as users name it.
const PANIC: &str = "panic";

/// Which of these a function is, in whatever namespace: `__rustc::rust_panic`.
fn throw_function(name: &str) -> Option<&'static str> {
    let name = name.split('(').next().unwrap_or_default();
    let own = name.rsplit("::").next().unwrap_or_default();
    THROW_FUNCTIONS.iter().copied().find(|function| *function == own)
}

/// Whether a name or a text is of that class: `ValueError` is `builtins.ValueError` and the class of `ValueError: no`.
fn names_class(name: &str, class: &str) -> bool {
    let name = name.strip_prefix("#<").unwrap_or(name);
    let name = name.split([':', ' ', '(', '\n', '>']).next().unwrap_or_default();
    name == class || name.strip_suffix(class).is_some_and(|before| before.ends_with(['.', ':', '/', '$', '\\']))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::session_shared::SessionShared;
    use super::super::snapshot::TargetSnapshot;
    use super::*;
    use crate::debug::breakpoints::BreakpointStore;
    use tether_dap::types::StoppedEvent;

    #[test]
    fn classes_match_by_their_last_name_and_in_texts() {
        let check =
            |name: &str, class: &str, expect: bool| assert_eq!(names_class(name, class), expect, "{name} {class}");
        check("ValueError", "ValueError", true);
        check("builtins.ValueError", "ValueError", true);
        check("MyValueError", "ValueError", false);
        check("TypeError: x is not a function", "TypeError", true);
        check("java.lang.IllegalStateException", "IllegalStateException", true);
        check("#<ArgumentError: no> is raised.", "ArgumentError", true);
        check("", "ValueError", false);
    }

    #[test]
    fn functions_that_throw_are_known_in_every_namespace() {
        let check = |name: &str, expect: Option<&str>| assert_eq!(throw_function(name), expect, "{name}");
        check("__rustc::rust_panic", Some("rust_panic"));
        check("std::panicking::rust_panic", Some("rust_panic"));
        check("rust_panic", Some("rust_panic"));
        check("__cxa_throw", Some("__cxa_throw"));
        check("app::rust_panic_handler", None);
        check("total(int)", None);
    }

    #[test]
    fn a_pause_request_is_taken_by_the_next_stop_only() {
        let shared = Arc::new(SessionShared::new(BreakpointStore::in_memory(), Arc::default(), Duration::ZERO));
        let target = shared.add_target(TargetSnapshot::default());
        shared.with_state(|state| state.pausing.extend([0]));
        let kind_of_step = || {
            let (reason, thread_id) = ("step".to_owned(), Some(1));
            let stop = ThreadStop::from_event(StoppedEvent { reason, thread_id, ..StoppedEvent::default() });
            match decide_without_requests(&target, stop, None) {
                Ok(StopDecision::Stop(stop)) => stop.kind,
                _ => panic!("not decided"),
            }
        };
        assert_eq!((kind_of_step(), kind_of_step()), (StopKind::UserSuspend, StopKind::StepComplete));
    }
}
