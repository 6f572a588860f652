//! Names and shapes of the CDP commands that tether sends, and of their results.
//!
//! Field names are the protocol's own; fields that a peer may omit are optional.

// Names and fields are those of the specification.
#![allow(missing_docs)]

use std::borrow::Cow;

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

/// A command of the protocol. The implementing type is its parameters.
pub trait CdpCommand: Serialize {
    /// `Domain.command`
    const METHOD: &'static str;
    /// The result.
    type Response: DeserializeOwned;
}

macro_rules! command {
    ($(#[$doc:meta])* $name:ident, $method:literal, $response:ty, { $($(#[$attr:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Serialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name { $($(#[$attr])* pub $field: $type),* }
        impl CdpCommand for $name {
            const METHOD: &'static str = $method;
            type Response = $response;
        }
    };
}

command!(GetTargets, "Target.getTargets", GetTargetsResult, {});
command!(AttachToTarget, "Target.attachToTarget", AttachToTargetResult, { target_id: String, flatten: bool });
command!(CloseBrowser, "Browser.close", IgnoredAny, {});
command!(ClosePage, "Page.close", IgnoredAny, {});
command!(EnableRuntime, "Runtime.enable", IgnoredAny, {});
command!(EnableNodeRuntime, "NodeRuntime.enable", IgnoredAny, {});
command!(
    /// Node sends `NodeRuntime.waitingForDisconnect` when it has finished, and waits for its clients to disconnect.
    NotifyWhenWaitingForDisconnect, "NodeRuntime.notifyWhenWaitingForDisconnect", IgnoredAny, { enabled: bool });
command!(EnableDebugger, "Debugger.enable", IgnoredAny, {});
command!(DisableDebugger, "Debugger.disable", IgnoredAny, {});
command!(
    /// Adds a function of this name to the global scope; each call of it sends `Runtime.bindingCalled`.
    AddBinding, "Runtime.addBinding", IgnoredAny, { name: Cow<'static, str> });
command!(EnablePage, "Page.enable", IgnoredAny, {});
command!(ReloadPage, "Page.reload", IgnoredAny, { ignore_cache: bool });
command!(AddScriptToEvaluateOnNewDocument, "Page.addScriptToEvaluateOnNewDocument", IgnoredAny, { source: String });
command!(Navigate, "Page.navigate", NavigateResult, { url: String });
command!(SetCookies, "Storage.setCookies", IgnoredAny, { cookies: Vec<CookieParam> });
command!(EnableLog, "Log.enable", IgnoredAny, {});
command!(HandleJavascriptDialog, "Page.handleJavaScriptDialog", IgnoredAny, {
    accept: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_text: Option<String>,
});
command!(CaptureScreenshot, "Page.captureScreenshot", CaptureScreenshotResult, {
    format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    quality: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clip: Option<ScreenshotClip>,
    capture_beyond_viewport: bool,
    optimize_for_speed: bool,
});
command!(GetLayoutMetrics, "Page.getLayoutMetrics", GetLayoutMetricsResult, {});
command!(GetFrameTree, "Page.getFrameTree", GetFrameTreeResult, {});
command!(
    /// Returns the existing world when the frame still shows the same document.
    CreateIsolatedWorld, "Page.createIsolatedWorld", CreateIsolatedWorldResult, { frame_id: String, world_name: &'static str });
command!(GetFrameOwner, "DOM.getFrameOwner", GetFrameOwnerResult, { frame_id: String });
command!(ResolveNode, "DOM.resolveNode", ResolveNodeResult, { backend_node_id: i64, execution_context_id: i64 });
command!(SetDiscoverTargets, "Target.setDiscoverTargets", IgnoredAny, { discover: bool });
command!(SetAutoAttach, "Target.setAutoAttach", IgnoredAny, {
    auto_attach: bool,
    wait_for_debugger_on_start: bool,
    flatten: bool,
});
command!(EnableInspector, "Inspector.enable", IgnoredAny, {});
command!(SetFocusEmulationEnabled, "Emulation.setFocusEmulationEnabled", IgnoredAny, { enabled: bool });
command!(BringToFront, "Page.bringToFront", IgnoredAny, {});
command!(
    /// `kind` is `mousePressed`, `mouseReleased`, `mouseMoved` or `mouseWheel`; `modifiers`: 1 Alt, 2 Control, 4 Meta,
    /// 8 Shift.
    DispatchMouseEvent, "Input.dispatchMouseEvent", IgnoredAny, {
        #[serde(rename = "type")]
        kind: &'static str,
        x: f64,
        y: f64,
        button: &'static str,
        buttons: u8,
        click_count: u32,
        delta_x: f64,
        delta_y: f64,
    }
);
command!(
    /// `kind` is `keyDown`, `rawKeyDown` (without text) or `keyUp`.
    DispatchKeyEvent, "Input.dispatchKeyEvent", IgnoredAny, {
        #[serde(rename = "type")]
        kind: &'static str,
        modifiers: u8,
        key: String,
        code: String,
        windows_virtual_key_code: u32,
        location: u8,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        unmodified_text: Option<String>,
        is_keypad: bool,
    }
);
command!(
    /// Native drags are not started, but reported by `Input.dragIntercepted`.
    SetInterceptDrags, "Input.setInterceptDrags", IgnoredAny, { enabled: bool });
command!(
    /// `kind` is `dragEnter`, `dragOver`, `drop` or `dragCancel`; `data` as in `Input.dragIntercepted`.
    DispatchDragEvent, "Input.dispatchDragEvent", IgnoredAny, {
        #[serde(rename = "type")]
        kind: &'static str,
        x: f64,
        y: f64,
        data: Value,
    }
);
command!(InsertText, "Input.insertText", IgnoredAny, { text: String });
command!(TerminateExecution, "Runtime.terminateExecution", IgnoredAny, {});
command!(
    /// `timeout` is in milliseconds. With `replMode` a promise is not awaited unless the expression has `await`.
    Evaluate, "Runtime.evaluate", EvaluateResult, {
        expression: String,
        object_group: String,
        await_promise: bool,
        user_gesture: bool,
        repl_mode: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        context_id: Option<i64>,
        return_by_value: bool,
    }
);
command!(AwaitPromise, "Runtime.awaitPromise", EvaluateResult, {
    promise_object_id: String,
    return_by_value: bool,
});
command!(CallFunctionOn, "Runtime.callFunctionOn", EvaluateResult, {
    object_id: String,
    function_declaration: &'static str,
    return_by_value: bool,
});
command!(ReleaseObjectGroup, "Runtime.releaseObjectGroup", IgnoredAny, { object_group: String });

/// Structs that a peer sends.
macro_rules! received {
    ($($(#[$attr:meta])* struct $name:ident { $($(#[$field_attr:meta])* $field:ident: $type:ty),* $(,)? })*) => { $(
        $(#[$attr])*
        #[derive(Clone, Debug, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name { $($(#[$field_attr])* pub $field: $type),* }
    )*
        /// As how many of these structs the text can be read.
        #[cfg(any(test, fuzzing))]
        pub(in crate) fn decode_as_each(text: &str) -> usize {
            0 $(+ usize::from(serde_json::from_str::<$name>(text).is_ok()))*
        }
    };
}

pub(super) use {command, received};

received! {
    /// Result of `Target.getTargets`.
    struct GetTargetsResult { target_infos: Vec<TargetInfo> }

    /// CDP's `Target.TargetInfo`.
    #[derive(PartialEq, Eq)]
    struct TargetInfo {
        target_id: String,
        /// `page`, `iframe`, `worker`, `browser_ui`, …
        #[serde(rename = "type")]
        kind: String,
        title: String,
        url: String,
    }

    /// Result of `Target.attachToTarget`.
    struct AttachToTargetResult { session_id: String }

    /// Result of `Page.navigate`.
    struct NavigateResult {
        /// Of a navigation that failed.
        error_text: Option<String>,
        /// None where the document stays.
        loader_id: Option<String>,
    }

    /// Result of `Page.captureScreenshot`.
    struct CaptureScreenshotResult {
        /// Base64.
        data: String,
    }

    /// Result of `Runtime.evaluate`, `awaitPromise` and `callFunctionOn`.
    struct EvaluateResult {
        result: RemoteObject,
        exception_details: Option<ExceptionDetails>,
    }

    /// CDP's `Runtime.RemoteObject`.
    struct RemoteObject {
        #[serde(rename = "type")]
        kind: String,
        /// Of objects: `promise`, `node`, `error`, `array`, …
        subtype: Option<String>,
        /// Of objects that were not returned by value.
        object_id: Option<String>,
        value: Option<Value>,
        /// Values without a JSON form: `NaN`, `-0`, `Infinity`, `10n`.
        unserializable_value: Option<String>,
        description: Option<String>,
        /// Of objects that were logged to the console, or where it was requested.
        preview: Option<ObjectPreview>,
        /// Of objects: the name of their constructor.
        class_name: Option<String>,
    }

    /// CDP's `Runtime.ExceptionDetails`.
    struct ExceptionDetails {
        text: String,
        exception: Option<RemoteObject>,
    }

    /// Result of `Page.getLayoutMetrics`, in CSS pixels.
    struct GetLayoutMetricsResult {
        css_visual_viewport: VisualViewport,
        css_content_size: LayoutSize,
    }

    /// CDP's `Page.VisualViewport`.
    #[derive(Copy)]
    struct VisualViewport {
        /// Relative to the document.
        page_x: f64,
        page_y: f64,
        client_width: f64,
        client_height: f64,
    }

    /// Width and height of the document.
    #[derive(Copy)]
    struct LayoutSize {
        width: f64,
        height: f64,
    }

    /// Result of `Page.getFrameTree`.
    struct GetFrameTreeResult { frame_tree: FrameTree }

    /// A frame and its children within the same session.
    struct FrameTree {
        frame: FrameInfo,
        #[serde(default)]
        child_frames: Vec<FrameTree>,
    }

    /// CDP's `Page.Frame`.
    struct FrameInfo {
        id: String,
        parent_id: Option<String>,
        name: Option<String>,
        #[serde(default)]
        url: String,
    }

    /// Result of `Page.createIsolatedWorld`.
    struct CreateIsolatedWorldResult { execution_context_id: i64 }

    /// Result of `DOM.getFrameOwner`.
    struct GetFrameOwnerResult { backend_node_id: i64 }

    /// Result of `DOM.resolveNode`.
    struct ResolveNodeResult { object: RemoteObject }

    /// CDP's `Runtime.ObjectPreview`.
    struct ObjectPreview {
        #[serde(rename = "type", default)]
        kind: String,
        subtype: Option<String>,
        description: Option<String>,
        #[serde(default)]
        overflow: bool,
        #[serde(default)]
        properties: Vec<PropertyPreview>,
        /// Of maps and sets.
        #[serde(default)]
        entries: Vec<EntryPreview>,
    }

    /// CDP's `Runtime.EntryPreview`; a set has no key.
    struct EntryPreview {
        key: Option<Box<ObjectPreview>>,
        value: Box<ObjectPreview>,
    }

    /// CDP's `Runtime.PropertyPreview`.
    struct PropertyPreview {
        name: String,
        #[serde(rename = "type")]
        kind: String,
        value: Option<String>,
        subtype: Option<String>,
    }

    /// CDP's `Runtime.StackTrace`.
    struct StackTrace {
        /// What was awaited: `await`, `setTimeout`, …
        description: Option<String>,
        parent: Option<Box<StackTrace>>,
        #[serde(default)]
        call_frames: Vec<CallFrame>,
    }

    /// Lines and columns are 0-based.
    struct CallFrame {
        #[serde(default)]
        function_name: String,
        #[serde(default)]
        script_id: String,
        #[serde(default)]
        url: String,
        #[serde(default)]
        line_number: i64,
        #[serde(default)]
        column_number: i64,
    }
}

impl RemoteObject {
    /// The text that a console shows.
    pub fn text(&self) -> String {
        match (&self.value, &self.unserializable_value, &self.description) {
            (Some(Value::String(text)), ..) => text.clone(),
            (Some(value), _, None) => value.to_string(),
            (_, Some(text), _) | (_, _, Some(text)) => text.clone(),
            _ => self.kind.clone(),
        }
    }
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

/// A rectangle of the document, in CSS pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ScreenshotClip {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
    pub scale: f64,
}

/// A cookie to be set.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CookieParam {
    pub name: &'static str,
    pub value: String,
    /// Decides the domain, the path and whether the cookie is secure.
    pub url: String,
    /// `Strict`, `Lax` or `None`.
    pub same_site: &'static str,
    /// Epoch seconds.
    pub expires: u64,
}
