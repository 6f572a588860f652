//! Whether a stop is one: which breakpoint was hit, and whether anybody wanted it.
//!
//! ```text
//! stopped ──┬─ as it is ───────────────────────────────────────▶ Stop
//!           ├─ the pause that an adapter opens with ───────────▶ GoOn, or Stop as ENTRY
//!           ├─ an exception, and only one class is wanted ─ exceptionInfo ─▶ Stop or GoOn
//!           ├─ a breakpoint that the adapter does not name ─ stackTrace ───▶ Stop
//!           └─ no thread is named ─ threads ───────────────────────────────▶ Stop
//! ```
//! Until it has been judged, nobody sees it.

use std::path::Path;
use std::time::Duration;

use super::stop::{StopKind, ThreadStop};
use super::target::log_error;
use super::target_handle::TargetHandle;
use crate::dap::DapClient;
use crate::dap::types::{ExceptionInfoArguments, StackTraceArguments, ThreadsArguments};
use crate::debug::breakpoints::BreakpointKind;

pub enum StopDecision {
    Stop(ThreadStop),
    /// Nobody wants it.
    AutoContinue(ThreadStop),
}

/// A stop that must be looked into.
pub enum Undecided {
    ExceptionClass(ThreadStop, String),
    UnknownBreakpoint(ThreadStop),
    /// No thread is named (Delve, at a pause).
    UnknownThread(ThreadStop),
}

/// What can be said without asking. `open`: it is the stop that the adapter opens with; whether one at the entry is wanted.
pub fn decide_without_requests(
    member: &TargetHandle,
    mut stop: ThreadStop,
    open: Option<bool>,
) -> Result<StopDecision, Undecided> {
    if member.take_pause_request() && is_pause(&stop) {
        stop.kind = StopKind::UserSuspend;
    }
    match open {
        // By whatever name it goes: CodeLLDB's is a signal.
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
        StopKind::Exception => match member.exception_class() {
            Some(class) => Err(Undecided::ExceptionClass(stop, class)),
            None => Ok(StopDecision::Stop(stop)),
        },
        StopKind::BreakpointHit | StopKind::WatchpointAccess | StopKind::WatchpointModify => {
            let known: Vec<u32> = stop.breakpoints.iter().filter_map(|id| member.spec_of_adapter_id(*id)).collect();
            stop.hits = known.into_iter().map(|id| (id, member.count_hit(id))).collect();
            if stop.hits.iter().any(|(id, _)| member.is_read_watchpoint(*id)) {
                stop.kind = StopKind::WatchpointAccess;
            }
            let unknown = stop.hits.is_empty() && stop.kind == StopKind::BreakpointHit;
            if unknown { Err(Undecided::UnknownBreakpoint(stop)) } else { Ok(StopDecision::Stop(stop)) }
        }
        _ => Ok(StopDecision::Stop(stop)),
    }
}

/// `keeps`: the adapter never takes a breakpoint away.
pub async fn decide_with_requests(
    client: &DapClient,
    member: &TargetHandle,
    doubt: Undecided,
    keeps: bool,
    deadline: Duration,
) -> StopDecision {
    match doubt {
        // Asked for what it does not know, an adapter may end (rdbg): its words must do.
        Undecided::ExceptionClass(stop, class) if !member.capabilities().can("supportsExceptionInfoRequest") => {
            let said = stop.text.as_deref().is_none_or(|text| names_class(text, &class));
            if said { StopDecision::Stop(stop) } else { StopDecision::AutoContinue(stop) }
        }
        Undecided::ExceptionClass(stop, class) => {
            let info = ExceptionInfoArguments { thread_id: stop.thread_id.unwrap_or_default() };
            let Some(info) = log_error(client.request(&info, deadline).await) else { return StopDecision::Stop(stop) };
            let details = info.details.unwrap_or_default();
            let names = [details.full_type_name, details.type_name, Some(info.exception_id)];
            let is = names.iter().flatten().any(|name| names_class(name, &class));
            // Where the class is only in the words, as in `TypeError: x is not a function`.
            let said = [&info.description, &stop.text].into_iter().flatten().any(|text| names_class(text, &class));
            if is || said { StopDecision::Stop(stop) } else { StopDecision::AutoContinue(stop) }
        }
        Undecided::UnknownThread(mut stop) => {
            let threads = log_error(client.request(&ThreadsArguments {}, deadline).await).unwrap_or_default().threads;
            // Delve's mark of the current one.
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
            match member.breakpoint_at_line(Path::new(path), line) {
                Some(wanted) => stop.hits = vec![(wanted, member.count_hit(wanted))],
                None if keeps && member.was_line_sent(Path::new(path), line) => {
                    return StopDecision::AutoContinue(stop);
                }
                None => {}
            }
            StopDecision::Stop(stop)
        }
    }
}

/// Some call a pause that was asked for a step (js-debug) or a signal (lldb-dap).
fn is_pause(stop: &ThreadStop) -> bool {
    let signal = || stop.text.as_deref().is_some_and(|text| ["SIGSTOP", "SIGINT"].iter().any(|it| text.contains(it)));
    match stop.kind {
        StopKind::StepComplete => true,
        StopKind::Exception => signal(),
        _ => false,
    }
}

/// Where CodeLLDB and gdb stop for a C++ exception or a Rust panic, and call it a breakpoint.
const THROW_FUNCTIONS: &[&str] = &["__cxa_throw", "__cxa_begin_catch", "__cxa_rethrow", "rust_panic"];

/// `ValueError` is `builtins.ValueError`, and the class of `ValueError: no`.
fn names_class(name: &str, class: &str) -> bool {
    let name = name.strip_prefix("#<").unwrap_or(name);
    let name = name.split([':', ' ', '(', '\n', '>']).next().unwrap_or_default();
    name == class || name.strip_suffix(class).is_some_and(|before| before.ends_with(['.', ':', '/', '$', '\\']))
}

/// The line breakpoint on that line of a file.
pub fn is_on_line(what: &BreakpointKind, really: Option<u32>, path: &Path, at: i64) -> bool {
    match what {
        BreakpointKind::Line { file, line, .. } => i64::from(really.unwrap_or(*line)) == at && file == path,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_known_by_their_last_name_and_in_words() {
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
