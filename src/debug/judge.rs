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

use super::breakpoints::What;
use super::seat::Seat;
use super::stop::{Stop, StopKind};
use super::target::heed;
use crate::dap::DapClient;
use crate::dap::types::{ExceptionInfoArguments, StackTraceArguments, ThreadsArguments};

pub enum Verdict {
    Stop(Stop),
    /// Nobody wants it.
    GoOn(Stop),
}

/// A stop that must be looked into.
pub enum Doubt {
    Class(Stop, String),
    Which(Stop),
    /// No thread is named (Delve, at a pause).
    Whose(Stop),
}

/// What can be said without asking. `open`: it is the stop that the adapter opens with; whether one at the entry is wanted.
pub fn at_once(member: &Seat, mut stop: Stop, open: Option<bool>) -> Result<Verdict, Doubt> {
    if member.is_pausing() && is_pause(&stop) {
        stop.kind = StopKind::UserSuspend;
    }
    match open {
        // By whatever name it goes: CodeLLDB's is a signal.
        Some(true) if stop.kind != StopKind::BreakpointHit => {
            stop.kind = StopKind::Entry;
            return Ok(Verdict::Stop(stop));
        }
        Some(false) if matches!(stop.kind, StopKind::UserSuspend | StopKind::Entry) => return Ok(Verdict::GoOn(stop)),
        _ => {}
    }
    match stop.kind {
        _ if stop.thread_id.is_none() => Err(Doubt::Whose(stop)),
        StopKind::Exception => match member.wanted_class() {
            Some(class) => Err(Doubt::Class(stop, class)),
            None => Ok(Verdict::Stop(stop)),
        },
        StopKind::BreakpointHit | StopKind::WatchpointAccess | StopKind::WatchpointModify => {
            let known: Vec<u32> = stop.breakpoints.iter().filter_map(|id| member.wanted_of(*id)).collect();
            stop.hits = known.into_iter().map(|id| (id, member.hit(id))).collect();
            if stop.hits.iter().any(|(id, _)| member.is_for_reads(*id)) {
                stop.kind = StopKind::WatchpointAccess;
            }
            let unknown = stop.hits.is_empty() && stop.kind == StopKind::BreakpointHit;
            if unknown { Err(Doubt::Which(stop)) } else { Ok(Verdict::Stop(stop)) }
        }
        _ => Ok(Verdict::Stop(stop)),
    }
}

/// `keeps`: the adapter never takes a breakpoint away.
pub async fn look_into(client: &DapClient, member: &Seat, doubt: Doubt, keeps: bool, deadline: Duration) -> Verdict {
    match doubt {
        // Asked for what it does not know, an adapter may end (rdbg): its words must do.
        Doubt::Class(stop, class) if !member.able().can("supportsExceptionInfoRequest") => {
            let said = stop.text.as_deref().is_none_or(|text| is_class(text, &class));
            if said { Verdict::Stop(stop) } else { Verdict::GoOn(stop) }
        }
        Doubt::Class(stop, class) => {
            let info = ExceptionInfoArguments { thread_id: stop.thread_id.unwrap_or_default() };
            let Some(info) = heed(client.request(&info, deadline).await) else { return Verdict::Stop(stop) };
            let details = info.details.unwrap_or_default();
            let names = [details.full_type_name, details.type_name, Some(info.exception_id)];
            let is = names.iter().flatten().any(|name| is_class(name, &class));
            // Where the class is only in the words, as in `TypeError: x is not a function`.
            let said = [&info.description, &stop.text].into_iter().flatten().any(|text| is_class(text, &class));
            if is || said { Verdict::Stop(stop) } else { Verdict::GoOn(stop) }
        }
        Doubt::Whose(mut stop) => {
            let threads = heed(client.request(&ThreadsArguments {}, deadline).await).unwrap_or_default().threads;
            // Delve's mark of the current one.
            let current = threads.iter().find(|thread| thread.name.starts_with('*')).or(threads.first());
            stop.thread_id = current.map(|thread| thread.id);
            Verdict::Stop(stop)
        }
        Doubt::Which(mut stop) => {
            let thread_id = stop.thread_id.unwrap_or_default();
            let stack = StackTraceArguments { thread_id, levels: Some(1), ..StackTraceArguments::default() };
            let stack = heed(client.request(&stack, deadline).await);
            let top = stack.and_then(|stack| stack.stack_frames.into_iter().next());
            if let Some(top) = top.as_ref().filter(|top| THROWERS.contains(&top.name.as_str())) {
                (stop.kind, stop.text) = (StopKind::Exception, Some(format!("thrown by {}", top.name)));
                return Verdict::Stop(stop);
            }
            let place = top.as_ref().and_then(|top| Some((top.source.as_ref()?.path.as_deref()?, top.line)));
            let Some((path, line)) = place else { return Verdict::Stop(stop) };
            match member.wanted_at(Path::new(path), line) {
                Some(wanted) => stop.hits = vec![(wanted, member.hit(wanted))],
                None if keeps && member.was_told(Path::new(path), line) => return Verdict::GoOn(stop),
                None => {}
            }
            Verdict::Stop(stop)
        }
    }
}

/// Some call a pause that was asked for a step (js-debug) or a signal (lldb-dap).
fn is_pause(stop: &Stop) -> bool {
    let signal = || stop.text.as_deref().is_some_and(|text| ["SIGSTOP", "SIGINT"].iter().any(|it| text.contains(it)));
    match stop.kind {
        StopKind::StepComplete => true,
        StopKind::Exception => signal(),
        _ => false,
    }
}

/// Where CodeLLDB and gdb stop for a C++ exception or a Rust panic, and call it a breakpoint.
const THROWERS: &[&str] = &["__cxa_throw", "__cxa_begin_catch", "__cxa_rethrow", "rust_panic"];

/// `ValueError` is `builtins.ValueError`, and the class of `ValueError: no`.
fn is_class(name: &str, class: &str) -> bool {
    let name = name.strip_prefix("#<").unwrap_or(name);
    let name = name.split([':', ' ', '(', '\n', '>']).next().unwrap_or_default();
    name == class || name.strip_suffix(class).is_some_and(|before| before.ends_with(['.', ':', '/', '$', '\\']))
}

/// The line breakpoint on that line of a file.
pub fn is_at(what: &What, really: Option<u32>, path: &Path, at: i64) -> bool {
    match what {
        What::Line { file, line, .. } => i64::from(really.unwrap_or(*line)) == at && file == path,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_known_by_their_last_name_and_in_words() {
        let check = |name: &str, class: &str, expect: bool| assert_eq!(is_class(name, class), expect, "{name} {class}");
        check("ValueError", "ValueError", true);
        check("builtins.ValueError", "ValueError", true);
        check("MyValueError", "ValueError", false);
        check("TypeError: x is not a function", "TypeError", true);
        check("java.lang.IllegalStateException", "IllegalStateException", true);
        check("#<ArgumentError: no> is raised.", "ArgumentError", true);
        check("", "ValueError", false);
    }
}
