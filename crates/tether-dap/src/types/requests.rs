//! Requests and their responses.

// Names and fields are those of the specification.
#![allow(missing_docs)]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::protocol::{DapRequest, EmptyResponse, Fields, request, shape};
use super::shapes::*;

request!(InitializeArguments, "initialize" -> DapCapabilities, {
    #[serde(rename = "adapterID")]
    adapter_id: String,
    /// Sent even when `false`: the protocol's default is `true`.
    lines_start_at1: bool,
    columns_start_at1: bool;
    #[serde(rename = "clientID")]
    client_id: Option<String>,
    client_name: Option<String>,
    locale: Option<String>,
    /// `path` or `uri`
    path_format: Option<String>,
    supports_variable_type: bool,
    supports_variable_paging: bool,
    supports_run_in_terminal_request: bool,
    supports_start_debugging_request: bool,
});

/// The adapter defines the arguments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LaunchArguments(pub Fields);

impl DapRequest for LaunchArguments {
    const COMMAND: &'static str = "launch";
    type Response = EmptyResponse;
}

/// The adapter defines the arguments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttachArguments(pub Fields);

impl DapRequest for AttachArguments {
    const COMMAND: &'static str = "attach";
    type Response = EmptyResponse;
}

request!(ConfigurationDoneArguments, "configurationDone" -> EmptyResponse, {});
request!(TerminateArguments, "terminate" -> EmptyResponse, {});
request!(DisconnectArguments, "disconnect" -> EmptyResponse, { terminate_debuggee: Option<bool> });

request!(
    /// debugpy's own.
    SetDebuggerPropertyArguments, "setDebuggerProperty" -> EmptyResponse, {
        /// Exceptions of conditions that it does not report; its default is `NameError`.
        skip_print_breakpoint_exception: Vec<String>;
    }
);

request!(
    /// Not of the protocol: our own adapter for Java has it. These kinds of `monitorEvent` are sent from now on.
    CaptureEventsArguments, "captureEvents" -> CaptureEventsResponse, { kinds: Vec<String>; }
);
shape!(
    /// What is captured now.
    CaptureEventsResponse { kinds: Vec<String>; }
);

request!(
    /// Not of the protocol: vscode-java-debug has it, and our own adapter for Java.
    RedefineClassesArguments, "redefineClasses" -> RedefineClassesResponse, {}
);
shape!(
    /// The classes that were redefined, by name; or why none could be.
    RedefineClassesResponse { changed_classes: Vec<String>; error_message: Option<String>, }
);

request!(SetBreakpointsArguments, "setBreakpoints" -> SetBreakpointsResponse, {
    source: DapSource,
    breakpoints: Vec<SourceBreakpoint>;
});
request!(SetFunctionBreakpointsArguments, "setFunctionBreakpoints" -> SetBreakpointsResponse, {
    breakpoints: Vec<FunctionBreakpoint>;
});
request!(SetExceptionBreakpointsArguments, "setExceptionBreakpoints" -> SetExceptionBreakpointsResponse, {
    filters: Vec<String>;
    filter_options: Vec<ExceptionFilterOptions>,
});
request!(SetDataBreakpointsArguments, "setDataBreakpoints" -> SetBreakpointsResponse, {
    breakpoints: Vec<DataBreakpoint>;
});
shape!(
    /// In the order of the request.
    SetBreakpointsResponse { breakpoints: Vec<DapBreakpoint>; }
);
shape!(SetExceptionBreakpointsResponse { breakpoints: Vec<DapBreakpoint> });

request!(DataBreakpointInfoArguments, "dataBreakpointInfo" -> DataBreakpointInfoResponse, {
    name: String;
    variables_reference: Option<i64>,
    frame_id: Option<i64>,
});
shape!(DataBreakpointInfoResponse {
    /// `None` where the data cannot be watched; the description is the reason.
    data_id: Option<String>,
    description: String;
    access_types: Vec<String>,
    /// The id stands for the same data in the next session, too.
    can_persist: bool,
});

request!(ThreadsArguments, "threads" -> ThreadsResponse, {});
shape!(ThreadsResponse {
    threads: Vec<DapThread>;
    /// Not of the protocol; our own adapter for Java sends it: how many threads there are beside these.
    unlisted: Option<usize>,
});

request!(StackTraceArguments, "stackTrace" -> StackTraceResponse, {
    thread_id: i64;
    start_frame: Option<i64>,
    levels: Option<i64>,
});
shape!(StackTraceResponse {
    stack_frames: Vec<DapStackFrame>;
    total_frames: Option<i64>,
});

request!(ScopesArguments, "scopes" -> ScopesResponse, { frame_id: i64; });
shape!(ScopesResponse { scopes: Vec<DapScope>; });

request!(VariablesArguments, "variables" -> VariablesResponse, {
    variables_reference: i64;
    /// `indexed` or `named`
    filter: Option<String>,
    start: Option<i64>,
    count: Option<i64>,
});
shape!(VariablesResponse { variables: Vec<DapVariable>; });

request!(EvaluateArguments, "evaluate" -> EvaluateResponse, {
    expression: String;
    frame_id: Option<i64>,
    /// `watch`, `repl`, `hover`, `clipboard`, `variables`
    context: Option<String>,
});
shape!(EvaluateResponse {
    result: String,
    #[serde(default)]
    variables_reference: i64;
    #[serde(rename = "type")]
    kind: Option<String>,
    named_variables: Option<i64>,
    indexed_variables: Option<i64>,
});

request!(SetVariableArguments, "setVariable" -> SetVariableResponse, {
    variables_reference: i64,
    name: String,
    value: String;
});
request!(SetExpressionArguments, "setExpression" -> SetVariableResponse, {
    expression: String,
    value: String;
    frame_id: Option<i64>,
});
shape!(SetVariableResponse {
    /// The protocol requires it; lldb-dap 19 leaves it out.
    value: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    variables_reference: Option<i64>,
});

request!(ExceptionInfoArguments, "exceptionInfo" -> ExceptionInfoResponse, { thread_id: i64; });
shape!(ExceptionInfoResponse {
    exception_id: String,
    break_mode: String;
    description: Option<String>,
    details: Option<DapExceptionDetails>,
});

request!(SourceArguments, "source" -> SourceResponse, {
    source_reference: i64;
    source: Option<DapSource>,
});
shape!(SourceResponse { content: String; });

request!(ContinueArguments, "continue" -> ContinueResponse, { thread_id: i64; });
shape!(ContinueResponse {
    /// Missing means that all threads continue.
    all_threads_continued: Option<bool>,
});

request!(NextArguments, "next" -> EmptyResponse, { thread_id: i64; });
request!(StepInArguments, "stepIn" -> EmptyResponse, { thread_id: i64; target_id: Option<i64>, });
request!(StepInTargetsArguments, "stepInTargets" -> StepInTargetsResponse, { frame_id: i64; });
shape!(StepInTargetsResponse { targets: Vec<StepInTarget>; });
request!(CompletionsArguments, "completions" -> CompletionsResponse, {
    text: String,
    /// From 1, in UTF-16 code units.
    column: i64;
    frame_id: Option<i64>,
    /// Of the text, from 1; the first one, if it is missing.
    line: Option<i64>,
});
shape!(CompletionsResponse { targets: Vec<CompletionItem>; });
request!(StepOutArguments, "stepOut" -> EmptyResponse, { thread_id: i64; });
request!(PauseArguments, "pause" -> EmptyResponse, { thread_id: i64; });

request!(
    /// A reverse request: sent by the adapter.
    RunInTerminalArguments, "runInTerminal" -> RunInTerminalResponse, {
        cwd: String,
        args: Vec<String>;
        /// `None` unsets the variable.
        env: BTreeMap<String, Option<String>>,
        args_can_be_interpreted_by_shell: bool,
    }
);
shape!(RunInTerminalResponse { process_id: Option<i64> });

request!(
    /// A reverse request: a new connection to the adapter, with this configuration, is another target of the session.
    StartDebuggingArguments, "startDebugging" -> EmptyResponse, {
        configuration: Fields,
        /// `launch` or `attach`
        request: String;
    }
);

/// The request that starts debugging. The adapter defines the arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum StartRequest {
    Launch(Fields),
    Attach(Fields),
}

impl From<StartDebuggingArguments> for StartRequest {
    fn from(reverse: StartDebuggingArguments) -> StartRequest {
        match reverse.request.as_str() {
            "attach" => StartRequest::Attach(reverse.configuration),
            _ => StartRequest::Launch(reverse.configuration),
        }
    }
}
