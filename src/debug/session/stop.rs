//! Why a program stopped: DAP reasons become the API's stop types.
//!
//! Does not depend on sessions. <https://microsoft.github.io/debug-adapter-protocol/specification#Events_Stopped>

use tether_dap::types::{DataChange, StoppedEvent};

use crate::vocabulary::StopKind;

/// One stop of one thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadStop {
    pub kind: StopKind,
    /// None where the adapter names no thread.
    pub thread_id: Option<i64>,
    /// Its name, if the adapter reports it with the stop.
    pub thread_name: Option<String>,
    /// Whether all other threads have stopped too.
    pub all_threads: bool,
    /// The adapter's own text: an exception's name, a signal.
    pub text: Option<String>,
    /// The adapter's ids of the breakpoints that were hit.
    pub breakpoints: Vec<i64>,
    /// What a data breakpoint has seen, if the adapter reports it.
    pub data_change: Option<Box<DataChange>>,
    /// The breakpoints of the store that were hit, and how often each has been in this session.
    pub hits: Vec<(u32, u64)>,
    /// Whether it is a panic of a Rust program, which no adapter describes.
    pub is_panic: bool,
    /// Why the condition of the breakpoint could not be evaluated, where the adapter stops with that.
    pub condition_failure: Option<String>,
}

impl ThreadStop {
    /// The stop of a `stopped` event.
    pub fn from_event(stopped: StoppedEvent) -> ThreadStop {
        ThreadStop {
            kind: classify_reason(&stopped),
            thread_id: stopped.thread_id,
            thread_name: stopped.thread_name,
            all_threads: stopped.all_threads_stopped,
            text: stopped.text.or(stopped.description).filter(|text| !text.is_empty()),
            breakpoints: stopped.hit_breakpoint_ids,
            data_change: stopped.data_change.map(Box::new),
            hits: Vec::new(),
            is_panic: false,
            condition_failure: None,
        }
    }

    /// With the reason of a condition that could not be evaluated, where the text of the stop begins so.
    pub fn with_condition_stop(mut self, beginning: Option<&str>) -> ThreadStop {
        let reason = beginning.and_then(|beginning| self.text.as_deref()?.strip_prefix(beginning));
        self.condition_failure = reason.map(str::to_owned);
        self
    }
}

/// The specification leaves the reasons open, and adapters have their own:
/// Delve `hardcoded breakpoint`, gdb `signal`, js-debug `promise rejection`, lldb-dap 19 `breakpoint` for a watchpoint,
/// ours `method entry`.
fn classify_reason(stopped: &StoppedEvent) -> StopKind {
    use StopKind as K;
    let text = [stopped.description.as_deref(), stopped.text.as_deref()].into_iter().flatten().collect::<String>();
    match stopped.reason.as_str() {
        "data breakpoint" if is_read_access(&text) => K::WatchpointAccess,
        "data breakpoint" => K::WatchpointModify,
        "breakpoint" if text.starts_with("watchpoint ") => K::WatchpointModify,
        "entry" => K::Entry,
        "pause" if text.contains("debugger statement") => K::BreakpointHit,
        "pause" => K::UserSuspend,
        "method entry" => K::MethodEntry,
        "method exit" => K::MethodExit,
        "vm start" => K::VmStart,
        "vm death" => K::VmDeath,
        "exception" | "promise rejection" | "signal" | "panic" => K::Exception,
        "next" => K::StepComplete,
        reason if reason.contains("step") => K::StepComplete,
        reason if reason.contains("breakpoint") || reason == "debugger statement" => K::BreakpointHit,
        _ => K::UserSuspend,
    }
}

/// The access is only in the text for readers; most adapters can watch only writes.
fn is_read_access(text: &str) -> bool {
    let text = text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    says(&["read", "access"]) && !says(&["writ", "modif", "chang"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_every_adapter_are_classified() {
        let check = |reason: &str, description: &str, expect: StopKind| {
            let description = Some(description.to_owned());
            let stopped = StoppedEvent { reason: reason.to_owned(), description, ..StoppedEvent::default() };
            assert_eq!(ThreadStop::from_event(stopped).kind, expect, "{reason}");
        };
        check("breakpoint", "", StopKind::BreakpointHit);
        check("function breakpoint", "", StopKind::BreakpointHit);
        check("instruction breakpoint", "", StopKind::BreakpointHit);
        check("hardcoded breakpoint", "", StopKind::BreakpointHit);
        check("pause", "Paused on debugger statement", StopKind::BreakpointHit);
        check("pause", "Paused", StopKind::UserSuspend);
        check("step", "", StopKind::StepComplete);
        check("step back", "", StopKind::StepComplete);
        check("next", "", StopKind::StepComplete);
        check("exception", "signal SIGSEGV", StopKind::Exception);
        check("promise rejection", "", StopKind::Exception);
        check("signal", "", StopKind::Exception);
        check("data breakpoint", "x was read", StopKind::WatchpointAccess);
        check("data breakpoint", "", StopKind::WatchpointModify);
        check("data breakpoint", "read, then written", StopKind::WatchpointModify);
        check("breakpoint", "watchpoint 1", StopKind::WatchpointModify);
        check("entry", "", StopKind::Entry);
        check("method entry", "", StopKind::MethodEntry);
        check("method exit", "", StopKind::MethodExit);
        check("vm start", "", StopKind::VmStart);
        check("vm death", "", StopKind::VmDeath);
        check("solib", "a word that nobody has heard", StopKind::UserSuspend);
    }
}
