//! Names and shapes of the commands and events that we use; nothing else of the protocol.
//!
//! Field names are the protocol's own. What a peer may leave out is optional here.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A command of the protocol: its parameters are the implementing type, its method and answer are named here.
pub trait Command: Serialize {
    const METHOD: &'static str;
    type Answer: DeserializeOwned;
}

macro_rules! command {
    ($(#[$doc:meta])* $name:ident, $method:literal, $answer:ty, { $($(#[$attr:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Serialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name { $($(#[$attr])* pub $field: $type),* }
        impl Command for $name {
            const METHOD: &'static str = $method;
            type Answer = $answer;
        }
    };
}

command!(GetTargets, "Target.getTargets", Targets, {});
command!(AttachToTarget, "Target.attachToTarget", Attached, { target_id: String, flatten: bool });
command!(CloseBrowser, "Browser.close", IgnoredAny, {});
command!(EnableRuntime, "Runtime.enable", IgnoredAny, {});
command!(EnableNodeRuntime, "NodeRuntime.enable", IgnoredAny, {});
command!(
    /// Answered by `NodeRuntime.waitingForDisconnect` when all code has run: Node then waits for its clients to leave.
    NotifyWhenWaitingForDisconnect, "NodeRuntime.notifyWhenWaitingForDisconnect", IgnoredAny, { enabled: bool });
command!(EnableDebugger, "Debugger.enable", IgnoredAny, {});
command!(
    /// Puts a function of this name into the global scope; a call of it is told by `Runtime.bindingCalled`.
    AddBinding, "Runtime.addBinding", IgnoredAny, { name: &'static str });
command!(EnablePage, "Page.enable", IgnoredAny, {});
command!(EnableLog, "Log.enable", IgnoredAny, {});
command!(HandleDialog, "Page.handleJavaScriptDialog", IgnoredAny, { accept: bool });
command!(CaptureScreenshot, "Page.captureScreenshot", Screenshot, { format: &'static str });
command!(TerminateExecution, "Runtime.terminateExecution", IgnoredAny, {});
command!(
    /// `timeout` is in milliseconds. With `replMode` a promise is not awaited unless the expression says `await`.
    Evaluate, "Runtime.evaluate", EvaluateAnswer, {
        expression: String,
        object_group: &'static str,
        await_promise: bool,
        user_gesture: bool,
        repl_mode: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
    }
);
command!(AwaitPromise, "Runtime.awaitPromise", EvaluateAnswer, {
    promise_object_id: String,
    return_by_value: bool,
});
command!(CallFunctionOn, "Runtime.callFunctionOn", EvaluateAnswer, {
    object_id: String,
    function_declaration: &'static str,
    return_by_value: bool,
});
command!(ReleaseObjectGroup, "Runtime.releaseObjectGroup", IgnoredAny, { object_group: &'static str });

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Targets {
    pub target_infos: Vec<TargetInfo>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetInfo {
    pub target_id: String,
    /// `page`, `iframe`, `worker`, `browser_ui`, …
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub url: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attached {
    pub session_id: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Screenshot {
    /// Base64.
    pub data: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvaluateAnswer {
    pub result: RemoteObject,
    pub exception_details: Option<ExceptionDetails>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteObject {
    #[serde(rename = "type")]
    pub kind: String,
    /// Of objects: `promise`, `node`, `error`, `array`, …
    pub subtype: Option<String>,
    /// Of objects that were not returned by value.
    pub object_id: Option<String>,
    pub value: Option<Value>,
    /// `NaN`, `-0`, `Infinity`, `10n`: what JSON cannot say.
    pub unserializable_value: Option<String>,
    pub description: Option<String>,
}

impl RemoteObject {
    /// As a console would show it.
    pub fn text(&self) -> String {
        match (&self.value, &self.unserializable_value, &self.description) {
            (Some(Value::String(text)), ..) => text.clone(),
            (Some(value), _, None) => value.to_string(),
            (_, Some(text), _) | (_, _, Some(text)) => text.clone(),
            _ => self.kind.clone(),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExceptionDetails {
    pub text: String,
    pub exception: Option<RemoteObject>,
}

impl ExceptionDetails {
    /// The exception's own description (message and stack) where there is one.
    pub fn text(&self) -> String {
        match &self.exception {
            Some(exception) => exception.text(),
            None => self.text.clone(),
        }
    }
}

/// `Runtime.consoleAPICalled`
#[derive(Clone, Debug, Deserialize)]
pub struct ConsoleApiCalled {
    /// `log`, `warning`, `error`, …
    #[serde(rename = "type")]
    pub kind: String,
    pub args: Vec<RemoteObject>,
    /// Epoch milliseconds.
    pub timestamp: f64,
}

/// `Runtime.exceptionThrown`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExceptionThrown {
    pub timestamp: f64,
    pub exception_details: ExceptionDetails,
}

/// `Log.entryAdded`
#[derive(Clone, Debug, Deserialize)]
pub struct EntryAdded {
    pub entry: LogEntry,
}

#[derive(Clone, Debug, Deserialize)]
pub struct LogEntry {
    pub source: String,
    pub level: String,
    pub text: String,
    pub timestamp: f64,
    pub url: Option<String>,
}

/// `Debugger.scriptParsed`
#[derive(Clone, Debug, Deserialize)]
pub struct ScriptParsed {
    pub url: String,
}

/// `Target.detachedFromTarget`
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Detached {
    pub session_id: String,
}
