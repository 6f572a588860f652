//! Names and shapes of the commands and events of the Debugger, Runtime, NodeRuntime and NodeWorker domains by which a
//! JavaScript program is debugged.
//!
//! Lines and columns are 0-based; columns are UTF-16 code units. Fields that a peer may omit are optional.

// Names and fields are those of the specification.
#![allow(missing_docs)]

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::types::{CdpCommand, EvaluateResult, RemoteObject, StackTrace, command, received};

command!(
    /// In the scripts with that URL, or whose URL matches, now and later.
    SetBreakpointByUrl, "Debugger.setBreakpointByUrl", SetBreakpointByUrlResult, {
        /// As JavaScript has it.
        url_regex: String,
        line_number: i64,
        column_number: i64,
        #[serde(skip_serializing_if = "Option::is_none")]
        condition: Option<String>,
    }
);
command!(
    /// In a script that is parsed already.
    SetScriptBreakpoint, "Debugger.setBreakpoint", SetScriptBreakpointResult, {
        location: ScriptLocation,
        #[serde(skip_serializing_if = "Option::is_none")]
        condition: Option<String>,
    }
);
command!(
    /// At each call of a function object.
    SetCallBreakpoint, "Debugger.setBreakpointOnFunctionCall", SetCallBreakpointResult, {
        object_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        condition: Option<String>,
    }
);
command!(RemoveBreakpoint, "Debugger.removeBreakpoint", IgnoredAny, { breakpoint_id: String });
command!(
    /// `none`, `caught`, `uncaught` or `all`.
    SetPauseOnExceptions, "Debugger.setPauseOnExceptions", IgnoredAny, { state: &'static str });
command!(SetAsyncCallStackDepth, "Debugger.setAsyncCallStackDepth", IgnoredAny, { max_depth: u32 });
command!(
    /// `beforeScriptExecution` or `beforeScriptWithSourceMapExecution`.
    SetInstrumentationBreakpoint, "Debugger.setInstrumentationBreakpoint", IgnoredAny, { instrumentation: &'static str });
command!(
    /// Steps pass over scripts whose URL matches.
    SetBlackboxPatterns, "Debugger.setBlackboxPatterns", IgnoredAny, { patterns: Vec<String> });
command!(
    /// Steps pass over every second of the ranges between these places, beginning with the first.
    SetBlackboxedRanges, "Debugger.setBlackboxedRanges", IgnoredAny, {
        script_id: String,
        positions: Vec<ScriptPosition>,
    }
);
command!(ResumeScript, "Debugger.resume", IgnoredAny, {});
command!(SetSkipAllPauses, "Debugger.setSkipAllPauses", IgnoredAny, { skip: bool });
command!(StepInto, "Debugger.stepInto", IgnoredAny, {});
command!(StepOver, "Debugger.stepOver", IgnoredAny, {});
command!(StepOut, "Debugger.stepOut", IgnoredAny, {});
command!(PauseScript, "Debugger.pause", IgnoredAny, {});
command!(
    /// `mode` is `StepInto`, the only one that is left.
    RestartCallFrame, "Debugger.restartFrame", IgnoredAny, { call_frame_id: String, mode: &'static str });
command!(
    /// Is terminated by the engine after `timeout` milliseconds.
    EvaluateOnCallFrame, "Debugger.evaluateOnCallFrame", EvaluateResult, {
        call_frame_id: String,
        expression: String,
        object_group: String,
        throw_on_side_effect: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
    }
);
command!(
    /// Without a frame; with `replMode` top-level `await` is allowed.
    EvaluateInGlobalScope, "Runtime.evaluate", EvaluateResult, {
        expression: String,
        object_group: String,
        throw_on_side_effect: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
        repl_mode: bool,
        await_promise: bool,
        #[serde(rename = "includeCommandLineAPI")]
        include_command_line_api: bool,
        /// No breakpoint and no step stops in it.
        disable_breaks: bool,
    }
);
command!(
    /// What scripts have declared outside of all functions with `let`, `const` and `class`.
    GetGlobalLexicalNames, "Runtime.globalLexicalScopeNames", GlobalLexicalNames, {});
command!(
    /// Only where a function is about to return, and of the top frame.
    SetReturnValue, "Debugger.setReturnValue", IgnoredAny, { new_value: CallArgument });
command!(SetVariableValue, "Debugger.setVariableValue", IgnoredAny, {
    scope_number: usize,
    variable_name: String,
    new_value: CallArgument,
    call_frame_id: String,
});
command!(GetScriptSource, "Debugger.getScriptSource", GetScriptSourceResult, { script_id: String });
command!(RunIfWaitingForDebugger, "Runtime.runIfWaitingForDebugger", IgnoredAny, {});
command!(GetProperties, "Runtime.getProperties", GetPropertiesResult, {
    object_id: String,
    own_properties: bool,
    non_indexed_properties_only: bool,
});
command!(CallFunction, "Runtime.callFunctionOn", EvaluateResult, {
    object_id: String,
    function_declaration: &'static str,
    arguments: Vec<CallArgument>,
    object_group: String,
    generate_preview: bool,
    return_by_value: bool,
});
command!(
    /// As the page itself would load it. A worker has no frame.
    LoadNetworkResource, "Network.loadNetworkResource", LoadNetworkResourceResult, {
        #[serde(skip_serializing_if = "Option::is_none")]
        frame_id: Option<String>,
        url: String,
        options: LoadResourceOptions,
    }
);
command!(ReadStream, "IO.read", ReadStreamResult, { handle: String, size: usize });
command!(CloseStream, "IO.close", IgnoredAny, { handle: String });
command!(EnableNodeWorker, "NodeWorker.enable", IgnoredAny, { wait_for_debugger_on_start: bool });
command!(SendMessageToWorker, "NodeWorker.sendMessageToWorker", IgnoredAny, { message: String, session_id: String });

/// CDP's `Network.LoadNetworkResourceOptions`.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadResourceOptions {
    pub disable_cache: bool,
    pub include_credentials: bool,
}

/// A place in a script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScriptLocation {
    pub script_id: String,
    pub line_number: i64,
    #[serde(default)]
    pub column_number: i64,
}

/// A place in a script that is named beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScriptPosition {
    pub line_number: i64,
    pub column_number: i64,
}

/// An argument of a call: an object by its id, or a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallArgument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unserializable_value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_id: Option<String>,
}

impl CallArgument {
    /// A value that has a JSON form.
    pub fn from_value(value: impl Into<Value>) -> CallArgument {
        CallArgument { value: Some(value.into()), ..CallArgument::default() }
    }

    /// What was evaluated before. `undefined` has none of the three.
    pub fn from_object(object: &RemoteObject) -> CallArgument {
        CallArgument {
            value: object.value.clone().or((object.subtype.as_deref() == Some("null")).then_some(Value::Null)),
            unserializable_value: object.unserializable_value.clone(),
            object_id: object.object_id.clone(),
        }
    }
}

received! {
    /// Result of `Debugger.setBreakpointByUrl`; the places are those in scripts that are parsed already.
    struct SetBreakpointByUrlResult {
        breakpoint_id: String,
        #[serde(default)]
        locations: Vec<ScriptLocation>,
    }

    /// Result of `Debugger.setBreakpoint`.
    struct SetScriptBreakpointResult {
        breakpoint_id: String,
        actual_location: ScriptLocation,
    }

    /// Result of `Debugger.setBreakpointOnFunctionCall`.
    struct SetCallBreakpointResult { breakpoint_id: String }

    /// Result of `Runtime.globalLexicalScopeNames`.
    struct GlobalLexicalNames {
        #[serde(default)]
        names: Vec<String>,
    }

    /// Result of `Debugger.getScriptSource`.
    struct GetScriptSourceResult { script_source: String }

    /// Result of `Network.loadNetworkResource`.
    struct LoadNetworkResourceResult { resource: LoadedResource }

    /// CDP's `Network.LoadNetworkResourcePageResult`.
    struct LoadedResource {
        success: bool,
        net_error_name: Option<String>,
        http_status_code: Option<f64>,
        stream: Option<String>,
    }

    /// Result of `IO.read`.
    struct ReadStreamResult {
        #[serde(default)]
        base64_encoded: bool,
        data: String,
        eof: bool,
    }

    /// Result of `Runtime.getProperties`.
    struct GetPropertiesResult {
        #[serde(default)]
        result: Vec<PropertyDescriptor>,
        #[serde(default)]
        internal_properties: Vec<NamedValue>,
        #[serde(default)]
        private_properties: Vec<PropertyDescriptor>,
    }

    /// CDP's `Runtime.PropertyDescriptor`; a getter has no value.
    struct PropertyDescriptor {
        name: String,
        value: Option<RemoteObject>,
        get: Option<RemoteObject>,
        set: Option<RemoteObject>,
    }

    /// CDP's `Runtime.InternalPropertyDescriptor`.
    struct NamedValue {
        name: String,
        value: Option<RemoteObject>,
    }

    /// `Debugger.scriptParsed`
    struct ParsedScript {
        script_id: String,
        #[serde(default)]
        url: String,
        #[serde(default, rename = "sourceMapURL")]
        source_map_url: String,
        #[serde(default)]
        start_line: i64,
        #[serde(default)]
        start_column: i64,
        /// In UTF-16 code units.
        #[serde(default)]
        length: i64,
    }

    /// `Debugger.paused`
    struct PausedEvent {
        #[serde(default)]
        call_frames: Vec<PausedFrame>,
        #[serde(default)]
        reason: String,
        /// Of exceptions: the thrown value, with `uncaught`. Of instrumentation: the script.
        data: Option<Value>,
        #[serde(default)]
        hit_breakpoints: Vec<String>,
        async_stack_trace: Option<StackTrace>,
    }

    /// CDP's `Debugger.CallFrame`.
    struct PausedFrame {
        call_frame_id: String,
        #[serde(default)]
        function_name: String,
        function_location: Option<ScriptLocation>,
        location: ScriptLocation,
        #[serde(default)]
        scope_chain: Vec<PausedScope>,
        this: Option<RemoteObject>,
        return_value: Option<RemoteObject>,
    }

    /// CDP's `Debugger.Scope`.
    struct PausedScope {
        /// `local`, `block`, `closure`, `catch`, `module`, `script`, `global`, `with`, `eval`
        #[serde(rename = "type")]
        kind: String,
        object: RemoteObject,
        name: Option<String>,
    }

    /// `Debugger.breakpointResolved`
    struct BreakpointResolved {
        breakpoint_id: String,
        location: ScriptLocation,
    }

    /// `NodeWorker.attachedToWorker`
    struct AttachedToWorker {
        session_id: String,
        worker_info: NodeWorkerInfo,
        #[serde(default)]
        waiting_for_debugger: bool,
    }

    /// CDP's `NodeWorker.WorkerInfo`.
    struct NodeWorkerInfo {
        #[serde(default)]
        title: String,
    }

    /// `NodeWorker.receivedMessageFromWorker`
    struct ReceivedMessageFromWorker {
        session_id: String,
        message: String,
    }

    /// `NodeWorker.detachedFromWorker`
    struct DetachedFromWorker { session_id: String }
}
