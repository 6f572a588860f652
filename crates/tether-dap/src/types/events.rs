//! The bodies of events.

// Names and fields are those of the specification.
#![allow(missing_docs)]

use serde::Deserialize;
use serde_json::{Value, json};

use super::protocol::{DapEvent, shape};
use super::shapes::*;

macro_rules! event {
    ($(#[$doc:meta])* $name:ident, $event:literal, $fields:tt) => {
        shape!($(#[$doc])* $name $fields);
        impl DapEvent for $name {
            const EVENT: &'static str = $event;
        }
    };
}

event!(
    /// The adapter accepts breakpoints now. js-debug's children send it twice.
    InitializedEvent, "initialized", {}
);
event!(StoppedEvent, "stopped", {
    /// `step`, `breakpoint`, `exception`, `pause`, `entry`, `goto`, `function breakpoint`, `data breakpoint`, …
    reason: String;
    description: Option<String>,
    thread_id: Option<i64>,
    text: Option<String>,
    all_threads_stopped: bool,
    hit_breakpoint_ids: Vec<i64>,
    /// Not of the protocol; see [`DataChange`].
    data_change: Option<DataChange>,
    /// Not of the protocol, from our own adapters: a list of all threads may take many requests, and the thread may have ended.
    thread_name: Option<String>,
});
event!(
    /// Only where `all_threads_continued` is `false`, the other threads stay stopped.
    ContinuedEvent, "continued", {
        thread_id: i64;
        all_threads_continued: Option<bool>,
    }
);
event!(ExitedEvent, "exited", {
    exit_code: i64;
    /// debugpy's own: `processReplaced` before an `exec`, whose program connects anew.
    pydevd_reason: Option<String>,
});
event!(
    /// Debugging has ended.
    TerminatedEvent, "terminated", {
        /// Not of the protocol, from our own adapters: the connection to the program was lost, for this reason, and the
        /// program may run on.
        connection_lost: Option<String>,
    }
);
event!(ThreadEvent, "thread", {
    /// `started`, `exited`
    reason: String,
    thread_id: i64;
});
event!(OutputEvent, "output", {
    output: String;
    /// `console` (also when missing), `important`, `stdout`, `stderr`, `telemetry`
    category: Option<String>,
    /// The sender defines its form; see [`ConditionFailure`].
    data: Option<Value>,
});
shape!(
    /// A condition of a breakpoint that could not be evaluated, in [`OutputEvent::data`]. Not of the protocol: our own adapters
    /// send it beside the text.
    ConditionFailure {
        /// The condition as the client has set it.
        condition: String,
        reason: String;
        /// The program stops there, as if it were true.
        is_stopped: bool,
        /// It was found when the breakpoint was set, and is not reported again.
        is_lasting: bool,
    }
);

impl OutputEvent {
    /// A text of that category.
    pub fn new(category: &str, output: String) -> OutputEvent {
        OutputEvent { output, category: Some(category.to_owned()), data: None }
    }

    /// As [`OutputEvent::new`], about a condition that could not be evaluated.
    pub fn with_condition_failure(self, failure: &ConditionFailure) -> OutputEvent {
        OutputEvent { data: Some(json!({ CONDITION_FAILURE: failure })), ..self }
    }

    /// The condition that it is about, if it is.
    pub fn condition_failure(&self) -> Option<ConditionFailure> {
        ConditionFailure::deserialize(self.data.as_ref()?.get(CONDITION_FAILURE)?).ok()
    }
}

/// The field of [`OutputEvent::data`].
const CONDITION_FAILURE: &str = "conditionFailure";

event!(BreakpointEvent, "breakpoint", {
    /// `changed`, `new`, `removed`
    reason: String,
    breakpoint: DapBreakpoint;
});
event!(ModuleEvent, "module", { reason: String, module: DapModule; });
event!(LoadedSourceEvent, "loadedSource", { reason: String, source: DapSource; });
event!(
    /// What was read of a stop is not valid any more, although nothing has run: `stacks`, `variables`, `all`.
    InvalidatedEvent, "invalidated", { areas: Vec<String>; }
);
event!(
    /// Something happened that stops nothing. Not of the protocol: our own adapter for Java sends it.
    MonitorEvent, "monitorEvent", {
        kind: String,
        text: String;
        thread_id: Option<i64>,
    }
);
event!(ProcessEvent, "process", {
    name: String;
    system_process_id: Option<i64>,
    /// Not of the protocol; our own adapter for Node sends it: a further process of the same target.
    is_child: Option<bool>,
});
event!(CapabilitiesEvent, "capabilities", { capabilities: DapCapabilities; });
