//! Classifies DAP `stopped` events: report to the user, or continue automatically.
//!
//! ```text
//! stopped ──┬─ decided by the event ───────────────────────────▶ Stop
//!           ├─ the adapter's initial pause ────────────────────▶ AutoContinue, or Stop as ENTRY
//!           ├─ an exception, and one class is set ─ exceptionInfo ─▶ Stop or AutoContinue
//!           ├─ a breakpoint that the adapter does not name ─ stackTrace ─▶ Stop
//!           └─ no thread is named ─ threads ─────────────────────▶ Stop
//! ```
//! A stop is not published before it has been classified.

use std::path::Path;
use std::time::Duration;

use super::requests::log_error;
use super::stop::{StopKind, ThreadStop};
use super::target_handle::TargetHandle;
use crate::dap::DapClient;
use crate::dap::types::{ExceptionInfoArguments, StackTraceArguments, ThreadsArguments};

/// What happens at a stop.
pub enum StopDecision {
    /// It is reported to the user.
    Stop(ThreadStop),
    /// The program is resumed automatically.
    AutoContinue(ThreadStop),
}

/// A stop that cannot be classified without requests to the adapter.
pub enum Undecided {
    /// An exception, and the only class to stop at.
    ExceptionClass(ThreadStop, String),
    /// A breakpoint that the adapter does not name.
    UnknownBreakpoint(ThreadStop),
    /// The adapter names no thread (Delve, at a pause).
    UnknownThread(ThreadStop),
}

/// Classifies a stop without requests. `initial` is set for the stop that an adapter sends at the start: whether a stop at
/// the entry is to be reported. Errors: requests are needed.
pub fn decide_without_requests(
    target: &TargetHandle,
    mut stop: ThreadStop,
    initial: Option<bool>,
) -> Result<StopDecision, Undecided> {
    if target.take_pause_request() && is_pause(&stop) {
        stop.kind = StopKind::UserSuspend;
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
    match stop.kind {
        _ if stop.thread_id.is_none() => Err(Undecided::UnknownThread(stop)),
        StopKind::Exception => match target.exception_class() {
            Some(class) => Err(Undecided::ExceptionClass(stop, class)),
            None => Ok(StopDecision::Stop(stop)),
        },
        StopKind::BreakpointHit | StopKind::WatchpointAccess | StopKind::WatchpointModify => {
            let known: Vec<u32> = stop.breakpoints.iter().filter_map(|id| target.spec_of_adapter_id(*id)).collect();
            stop.hits = known.into_iter().map(|id| (id, target.count_hit(id))).collect();
            if stop.hits.iter().any(|(id, _)| target.is_read_watchpoint(*id)) {
                stop.kind = StopKind::WatchpointAccess;
            }
            let unknown = stop.hits.is_empty() && stop.kind == StopKind::BreakpointHit;
            if unknown { Err(Undecided::UnknownBreakpoint(stop)) } else { Ok(StopDecision::Stop(stop)) }
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
    deadline: Duration,
) -> StopDecision {
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
            let said = [&info.description, &stop.text].into_iter().flatten().any(|text| names_class(text, &class));
            if is || said { StopDecision::Stop(stop) } else { StopDecision::AutoContinue(stop) }
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
            if let Some(top) = top.as_ref().filter(|top| THROW_FUNCTIONS.contains(&top.name.as_str())) {
                (stop.kind, stop.text) = (StopKind::Exception, Some(format!("thrown by {}", top.name)));
                return StopDecision::Stop(stop);
            }
            let place = top.as_ref().and_then(|top| Some((top.source.as_ref()?.path.as_deref()?, top.line)));
            let Some((path, line)) = place else { return StopDecision::Stop(stop) };
            match target.breakpoint_at_line(Path::new(path), line) {
                Some(id) => stop.hits = vec![(id, target.count_hit(id))],
                None if accumulates && target.was_line_sent(Path::new(path), line) => {
                    return StopDecision::AutoContinue(stop);
                }
                None => {}
            }
            StopDecision::Stop(stop)
        }
    }
}

/// Some adapters report a requested pause as a step (js-debug) or a signal (lldb-dap).
fn is_pause(stop: &ThreadStop) -> bool {
    let signal = || stop.text.as_deref().is_some_and(|text| ["SIGSTOP", "SIGINT"].iter().any(|it| text.contains(it)));
    match stop.kind {
        StopKind::StepComplete => true,
        StopKind::Exception => signal(),
        _ => false,
    }
}

/// The functions in which CodeLLDB and gdb stop for a C++ exception or a Rust panic, and report a breakpoint.
const THROW_FUNCTIONS: &[&str] = &["__cxa_throw", "__cxa_begin_catch", "__cxa_rethrow", "rust_panic"];

/// Whether a name or a text is of that class: `ValueError` is `builtins.ValueError` and the class of `ValueError: no`.
fn names_class(name: &str, class: &str) -> bool {
    let name = name.strip_prefix("#<").unwrap_or(name);
    let name = name.split([':', ' ', '(', '\n', '>']).next().unwrap_or_default();
    name == class || name.strip_suffix(class).is_some_and(|before| before.ends_with(['.', ':', '/', '$', '\\']))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
