//! The bodies of events.

use serde_json::Value;

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
    InitializedEvent, "initialized", {
        ;
    }
);

event!(StoppedEvent, "stopped", {
    /// `step`, `breakpoint`, `exception`, `pause`, `entry`, `goto`, `function breakpoint`, `data breakpoint`, …
    reason: String,
    ;
    description: Option<String>,
    thread_id: Option<i64>,
    /// The client should not change its focus to this stop.
    preserve_focus_hint: bool,
    text: Option<String>,
    all_threads_stopped: bool,
    hit_breakpoint_ids: Vec<i64>,
});

event!(
    /// Only where `all_threads_continued` is `false`, the other threads stay stopped.
    ContinuedEvent, "continued", {
        thread_id: i64,
        ;
        all_threads_continued: Option<bool>,
    }
);

event!(ExitedEvent, "exited", {
    exit_code: i64,
    ;
});

event!(
    /// Debugging has ended. `restart` is sent with the next `launch` or `attach`.
    TerminatedEvent, "terminated", {
        ;
        restart: Option<Value>,
    }
);

event!(ThreadEvent, "thread", {
    /// `started`, `exited`
    reason: String,
    thread_id: i64,
    ;
});

event!(OutputEvent, "output", {
    output: String,
    ;
    /// `console` (also when missing), `important`, `stdout`, `stderr`, `telemetry`
    category: Option<String>,
    group: Option<String>,
    variables_reference: Option<i64>,
    source: Option<DapSource>,
    line: Option<i64>,
    column: Option<i64>,
    data: Option<Value>,
});

event!(BreakpointEvent, "breakpoint", {
    /// `changed`, `new`, `removed`
    reason: String,
    breakpoint: DapBreakpoint,
    ;
});

event!(ModuleEvent, "module", {
    reason: String,
    module: DapModule,
    ;
});

event!(LoadedSourceEvent, "loadedSource", {
    reason: String,
    source: DapSource,
    ;
});

event!(ProcessEvent, "process", {
    name: String,
    ;
    system_process_id: Option<i64>,
    is_local_process: Option<bool>,
    /// `launch`, `attach`, `attachForSuspendedLaunch`
    start_method: Option<String>,
    pointer_size: Option<i64>,
});

event!(CapabilitiesEvent, "capabilities", {
    capabilities: DapCapabilities,
    ;
});

event!(
    /// What was fetched of these areas (`all`, `stacks`, `threads`, `variables`) is outdated.
    InvalidatedEvent, "invalidated", {
        ;
        areas: Vec<String>,
        thread_id: Option<i64>,
        stack_frame_id: Option<i64>,
    }
);
