//! Requests, and what they are answered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::shapes::*;
use super::{Fields, Nothing, Request, request, shape};

request!(Initialize, "initialize" -> Capabilities, {
    #[serde(rename = "adapterID")]
    adapter_id: String,
    /// Sent even when they are false: the protocol's own default is true.
    lines_start_at1: bool,
    columns_start_at1: bool,
    ;
    #[serde(rename = "clientID")]
    client_id: Option<String>,
    client_name: Option<String>,
    locale: Option<String>,
    /// `path` or `uri`
    path_format: Option<String>,
    supports_variable_type: bool,
    supports_variable_paging: bool,
    supports_run_in_terminal_request: bool,
    supports_memory_references: bool,
    supports_progress_reporting: bool,
    supports_invalidated_event: bool,
    supports_memory_event: bool,
    supports_args_can_be_interpreted_by_shell: bool,
    supports_start_debugging_request: bool,
});

/// The arguments are the adapter's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Launch(pub Fields);

impl Request for Launch {
    const COMMAND: &'static str = "launch";
    type Answer = Nothing;
}

/// The arguments are the adapter's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attach(pub Fields);

impl Request for Attach {
    const COMMAND: &'static str = "attach";
    type Answer = Nothing;
}

request!(ConfigurationDone, "configurationDone" -> Nothing, {
    ;
});

request!(Disconnect, "disconnect" -> Nothing, {
    ;
    restart: Option<bool>,
    terminate_debuggee: Option<bool>,
    suspend_debuggee: Option<bool>,
});

request!(Terminate, "terminate" -> Nothing, {
    ;
    restart: Option<bool>,
});

request!(
    /// `arguments` is the changed configuration of `launch` or `attach`.
    Restart, "restart" -> Nothing, {
        ;
        arguments: Option<Fields>,
    }
);

request!(SetBreakpoints, "setBreakpoints" -> Breakpoints, {
    source: Source,
    breakpoints: Vec<SourceBreakpoint>,
    ;
    /// The file differs from what the program was made of.
    source_modified: Option<bool>,
});

request!(SetFunctionBreakpoints, "setFunctionBreakpoints" -> Breakpoints, {
    breakpoints: Vec<FunctionBreakpoint>,
    ;
});

request!(SetExceptionBreakpoints, "setExceptionBreakpoints" -> MaybeBreakpoints, {
    filters: Vec<String>,
    ;
    filter_options: Vec<ExceptionFilterOptions>,
    exception_options: Vec<ExceptionOptions>,
});

request!(SetDataBreakpoints, "setDataBreakpoints" -> Breakpoints, {
    breakpoints: Vec<DataBreakpoint>,
    ;
});

shape!(
    /// In the order in which they were asked for.
    Breakpoints {
        breakpoints: Vec<Breakpoint>,
        ;
    }
);

shape!(MaybeBreakpoints {
    ;
    breakpoints: Vec<Breakpoint>,
});

request!(DataBreakpointInfo, "dataBreakpointInfo" -> DataBreakpointAnswer, {
    name: String,
    ;
    variables_reference: Option<i64>,
    frame_id: Option<i64>,
});

shape!(DataBreakpointAnswer {
    /// Null where the data cannot be watched; the description says why.
    data_id: Option<String>,
    description: String,
    ;
    access_types: Vec<String>,
    can_persist: bool,
});

request!(BreakpointLocations, "breakpointLocations" -> BreakpointLocationsAnswer, {
    source: Source,
    line: i64,
    ;
    column: Option<i64>,
    end_line: Option<i64>,
    end_column: Option<i64>,
});

shape!(BreakpointLocationsAnswer {
    breakpoints: Vec<BreakpointLocation>,
    ;
});

request!(Threads, "threads" -> ThreadsAnswer, {
    ;
});

shape!(ThreadsAnswer {
    threads: Vec<Thread>,
    ;
});

request!(StackTrace, "stackTrace" -> StackTraceAnswer, {
    thread_id: i64,
    ;
    start_frame: Option<i64>,
    levels: Option<i64>,
    format: Option<StackFrameFormat>,
});

shape!(StackTraceAnswer {
    stack_frames: Vec<StackFrame>,
    ;
    total_frames: Option<i64>,
});

request!(Scopes, "scopes" -> ScopesAnswer, {
    frame_id: i64,
    ;
});

shape!(ScopesAnswer {
    scopes: Vec<Scope>,
    ;
});

request!(Variables, "variables" -> VariablesAnswer, {
    variables_reference: i64,
    ;
    /// `indexed` or `named`
    filter: Option<String>,
    start: Option<i64>,
    count: Option<i64>,
    format: Option<ValueFormat>,
});

shape!(VariablesAnswer {
    variables: Vec<Variable>,
    ;
});

request!(Evaluate, "evaluate" -> EvaluateAnswer, {
    expression: String,
    ;
    frame_id: Option<i64>,
    /// `watch`, `repl`, `hover`, `clipboard`, `variables`
    context: Option<String>,
    format: Option<ValueFormat>,
});

shape!(EvaluateAnswer {
    result: String,
    #[serde(default)]
    variables_reference: i64,
    ;
    #[serde(rename = "type")]
    kind: Option<String>,
    presentation_hint: Option<PresentationHint>,
    named_variables: Option<i64>,
    indexed_variables: Option<i64>,
    memory_reference: Option<String>,
});

request!(SetVariable, "setVariable" -> SetAnswer, {
    variables_reference: i64,
    name: String,
    value: String,
    ;
    format: Option<ValueFormat>,
});

request!(SetExpression, "setExpression" -> SetAnswer, {
    expression: String,
    value: String,
    ;
    frame_id: Option<i64>,
    format: Option<ValueFormat>,
});

shape!(SetAnswer {
    value: String,
    ;
    #[serde(rename = "type")]
    kind: Option<String>,
    variables_reference: Option<i64>,
    named_variables: Option<i64>,
    indexed_variables: Option<i64>,
});

request!(ExceptionInfo, "exceptionInfo" -> ExceptionInfoAnswer, {
    thread_id: i64,
    ;
});

shape!(ExceptionInfoAnswer {
    exception_id: String,
    break_mode: String,
    ;
    description: Option<String>,
    details: Option<ExceptionDetails>,
});

request!(SourceText, "source" -> SourceTextAnswer, {
    source_reference: i64,
    ;
    source: Option<Source>,
});

shape!(SourceTextAnswer {
    content: String,
    ;
    mime_type: Option<String>,
});

request!(LoadedSources, "loadedSources" -> LoadedSourcesAnswer, {
    ;
});

shape!(LoadedSourcesAnswer {
    sources: Vec<Source>,
    ;
});

request!(Continue, "continue" -> ContinueAnswer, {
    thread_id: i64,
    ;
    single_thread: Option<bool>,
});

shape!(ContinueAnswer {
    ;
    /// Missing means that they all go on.
    all_threads_continued: Option<bool>,
});

request!(Next, "next" -> Nothing, {
    thread_id: i64,
    ;
    single_thread: Option<bool>,
    granularity: Option<String>,
});

request!(StepIn, "stepIn" -> Nothing, {
    thread_id: i64,
    ;
    single_thread: Option<bool>,
    target_id: Option<i64>,
    granularity: Option<String>,
});

request!(StepOut, "stepOut" -> Nothing, {
    thread_id: i64,
    ;
    single_thread: Option<bool>,
    granularity: Option<String>,
});

request!(StepInTargets, "stepInTargets" -> StepInTargetsAnswer, {
    frame_id: i64,
    ;
});

shape!(StepInTargetsAnswer {
    targets: Vec<StepInTarget>,
    ;
});

request!(Pause, "pause" -> Nothing, {
    thread_id: i64,
    ;
});

request!(GotoTargets, "gotoTargets" -> GotoTargetsAnswer, {
    source: Source,
    line: i64,
    ;
    column: Option<i64>,
});

shape!(GotoTargetsAnswer {
    targets: Vec<GotoTarget>,
    ;
});

request!(Goto, "goto" -> Nothing, {
    thread_id: i64,
    target_id: i64,
    ;
});

request!(Cancel, "cancel" -> Nothing, {
    ;
    request_id: Option<i64>,
    progress_id: Option<String>,
});

request!(
    /// Asked by the adapter.
    RunInTerminal, "runInTerminal" -> RunInTerminalAnswer, {
        cwd: String,
        args: Vec<String>,
        ;
        /// `integrated` or `external`
        kind: Option<String>,
        title: Option<String>,
        /// A `null` takes the variable away.
        env: BTreeMap<String, Option<String>>,
        args_can_be_interpreted_by_shell: bool,
    }
);

shape!(RunInTerminalAnswer {
    ;
    process_id: Option<i64>,
    shell_process_id: Option<i64>,
});

request!(
    /// Asked by the adapter: a new connection to it, with this configuration, is another target of the session.
    StartDebugging, "startDebugging" -> Nothing, {
        configuration: Fields,
        /// `launch` or `attach`
        request: String,
        ;
    }
);

/// The request that a debugging begins with. The arguments are the adapter's own.
#[derive(Clone, Debug, PartialEq)]
pub enum Start {
    Launch(Fields),
    Attach(Fields),
}

impl From<StartDebugging> for Start {
    fn from(wanted: StartDebugging) -> Start {
        match wanted.request.as_str() {
            "attach" => Start::Attach(wanted.configuration),
            _ => Start::Launch(wanted.configuration),
        }
    }
}
