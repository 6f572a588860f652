//! How far VS Code's extension host has come with the extensions under development: whether they are in its registry, and
//! whether the activation of those that activate themselves at the start has ended.
//!
//! ```text
//! inspector ◄── a script in the host looks at `vscode.extensions` ── a binding reports each change ──► ExtensionState
//! ```
//! The script depends on `process.getBuiltinModule` (Node 20.16, 22.3) and on the host's module loader, which all hosts on
//! Node have had; one that lacks them is [`ExtensionState::Unknown`].

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use tether_base::clipped_text::clip_chars;
use tether_cdp::events::{BindingCalled, ScriptParsed};
use tether_cdp::types::{AddBinding, DisableDebugger, EnableDebugger, Evaluate};
use tether_cdp::{CdpClient, CdpError, CdpEvent, EventSubscription};
use tokio::time::Instant;

const SCRIPT: &str = include_str!("extension_registration.js");
/// The id of our own extension, in lower case: the bridge of a window.
const BRIDGE: &str = "devtether.tether";
/// The function in the host that reports.
const BINDING: &str = "devtetherExtensions";
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long each state is waited for before the window counts as ready without the extension.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// VS Code starts a host again within this time, where it does.
const RESTART_TIMEOUT: Duration = Duration::from_secs(5);
const REGISTRATION_TIMEOUT: Duration = Duration::from_secs(10);
const ACTIVATION_TIMEOUT: Duration = Duration::from_secs(15);
/// How many extensions a note names, and how much of each name.
const MAX_NAMES: usize = 5;
const MAX_NAME: usize = 200;

/// How far the extensions under development are loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtensionState {
    /// The host is starting, or is not connected to.
    HostStarting,
    /// The host has ended, and VS Code has not started it again.
    HostEnded,
    /// Nobody listens on its inspector's port.
    InspectorClosed,
    /// The host runs, and these folders are not those of its extensions.
    Unregistered(Vec<String>),
    /// All are registered; the activation of these has not ended.
    Activating(Vec<String>),
    /// All are registered, and no activation at the start is pending.
    Loaded {
        /// Whether our own extension is registered too.
        has_bridge: bool,
    },
    /// It cannot be found out, for this reason.
    Unknown(String),
}

impl ExtensionState {
    /// Until when this state, entered at `since`, is waited for; `None` when it is final.
    pub fn deadline(&self, since: Instant) -> Option<Instant> {
        match self {
            ExtensionState::HostStarting => Some(since + START_TIMEOUT),
            ExtensionState::HostEnded | ExtensionState::InspectorClosed => Some(since + RESTART_TIMEOUT),
            ExtensionState::Unregistered(_) => Some(since + REGISTRATION_TIMEOUT),
            ExtensionState::Activating(_) => Some(since + ACTIVATION_TIMEOUT),
            ExtensionState::Loaded { .. } | ExtensionState::Unknown(_) => None,
        }
    }

    /// What is waited for, or why it is not known; `None` when everything is loaded.
    pub fn describe(&self) -> Option<String> {
        Some(match self {
            ExtensionState::Loaded { .. } => return None,
            ExtensionState::HostStarting => "extension not loaded yet: the extension host is still starting".to_owned(),
            ExtensionState::HostEnded => {
                "extension not loaded: the extension host has ended, and VS Code has not started it \
                 again; an edit or `tether restart` starts it"
                    .to_owned()
            }
            ExtensionState::InspectorClosed => {
                "cannot tell whether the extension is loaded: the extension host has closed its inspector, or has ended"
                    .to_owned()
            }
            ExtensionState::Unregistered(names) => format!(
                "extension not loaded yet: the extension host has not registered {}; VS Code loads no extension whose \
                 `engines.vscode` or `extensionKind` does not fit (the console shows why)",
                quote_names(names)
            ),
            ExtensionState::Activating(names) => {
                format!("extension not loaded yet: the activation of {} has not ended", quote_names(names))
            }
            ExtensionState::Unknown(reason) => format!("cannot tell whether the extension is loaded: {reason}"),
        })
    }
}

/// Names of the workspace's choice: quoted and bounded.
fn quote_names(names: &[String]) -> String {
    let quoted = names.iter().take(MAX_NAMES).map(|name| format!("{:?}", clip_chars(name, MAX_NAME)));
    let mut list = quoted.collect::<Vec<_>>().join(", ");
    if names.len() > MAX_NAMES {
        let _ = write!(list, " and {} more", names.len() - MAX_NAMES);
    }
    list
}

/// Installs the script in the host that `client` is connected to. Later states are reported by events: see
/// [`parse_report`]. Returns a state if the host cannot run the script.
pub async fn install_registration_script(
    client: &CdpClient,
    events: &mut EventSubscription,
    extensions: &[PathBuf],
) -> Result<Option<ExtensionState>, CdpError> {
    wait_for_first_script(client, events).await?;
    client.call(None, &AddBinding { name: BINDING.into() }, CALL_TIMEOUT).await?;
    let paths = serde_json::to_string(extensions).unwrap_or_default();
    // No promise: Node may exit meanwhile, and V8 collects promises that it awaits.
    let install = Evaluate {
        expression: format!("{SCRIPT}({paths}, {BRIDGE:?}, globalThis.{BINDING})"),
        return_by_value: true,
        ..Evaluate::default()
    };
    let details = client.call(None, &install, CALL_TIMEOUT).await?.exception_details;
    let reason = |text: String| format!("{:?}", clip_chars(text.lines().next().unwrap_or_default(), MAX_NAME));
    Ok(details.map(|details| ExtensionState::Unknown(reason(details.text()))))
}

/// An evaluation before Node runs its first script may prevent it from ever running.
async fn wait_for_first_script(client: &CdpClient, events: &mut EventSubscription) -> Result<(), CdpError> {
    client.call(None, &EnableDebugger {}, CALL_TIMEOUT).await?;
    while let Some(event) = events.next().await {
        let Ok(event) = event else { continue };
        if is_finished(&event) {
            return Err(CdpError::Closed("Node has finished".to_owned()));
        }
        let script = event.parse_as::<ScriptParsed>("Debugger.scriptParsed");
        if script.is_some_and(|script| script.url.starts_with("file:")) {
            client.call(None, &DisableDebugger {}, CALL_TIMEOUT).await?;
            return Ok(());
        }
    }
    Err(CdpError::Closed(client.wait_closed().await))
}

/// Whether Node reports that it has finished, and exits when its clients have left.
pub fn is_finished(event: &CdpEvent) -> bool {
    event.method == "NodeRuntime.waitingForDisconnect"
}

#[derive(Deserialize)]
struct ReportedExtension {
    name: String,
    state: String,
}

/// The state that an event of the host reports; `None` for other events.
pub fn parse_report(event: &CdpEvent) -> Option<ExtensionState> {
    let called = event.parse_as::<BindingCalled>("Runtime.bindingCalled").filter(|it| it.name == BINDING)?;
    let reported: Vec<ReportedExtension> = serde_json::from_str(&called.payload).ok()?;
    let names_in = |state: &str| -> Vec<String> {
        reported.iter().filter(|it| it.state == state).map(|it| it.name.clone()).collect()
    };
    let (unregistered, activating) = (names_in("unregistered"), names_in("activating"));
    Some(match () {
        () if reported.is_empty() => ExtensionState::HostStarting,
        () if !unregistered.is_empty() => ExtensionState::Unregistered(unregistered),
        () if !activating.is_empty() => ExtensionState::Activating(activating),
        () => ExtensionState::Loaded { has_bridge: names_in("absent").is_empty() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, value::RawValue};

    #[test]
    fn the_least_loaded_extension_decides_the_state() {
        let check = |payload: &str, expect: Option<ExtensionState>| {
            let params = json!({"name": BINDING, "payload": payload, "executionContextId": 1}).to_string();
            let params = RawValue::from_string(params).unwrap();
            let event = CdpEvent { session: None, method: "Runtime.bindingCalled".into(), params };
            assert_eq!(parse_report(&event), expect, "{payload}");
        };
        let states = |all: &[(&str, &str)]| {
            json!(all.iter().map(|(name, state)| json!({"name": name, "state": state})).collect::<Vec<_>>()).to_string()
        };
        check("[]", Some(ExtensionState::HostStarting));
        check("{", None);
        check(&states(&[("a.b", "loaded")]), Some(ExtensionState::Loaded { has_bridge: true }));
        let without = states(&[("a.b", "loaded"), (BRIDGE, "absent")]);
        check(&without, Some(ExtensionState::Loaded { has_bridge: false }));
        let two = states(&[("a.b", "activating"), ("a.c", "loaded")]);
        check(&two, Some(ExtensionState::Activating(vec!["a.b".into()])));
        let both = states(&[("a.b", "activating"), ("/c", "unregistered")]);
        check(&both, Some(ExtensionState::Unregistered(vec!["/c".into()])));
    }

    #[test]
    fn names_are_quoted_and_bounded() {
        let names = vec!["a\n\"b".to_owned(); 9];
        let text = ExtensionState::Activating(names).describe().unwrap();
        assert!(text.contains(r#""a\n\"b", "#) && text.contains(" and 4 more has not ended"), "{text}");
        assert_eq!(ExtensionState::Loaded { has_bridge: true }.describe(), None);
    }
}
