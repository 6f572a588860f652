//! `debugger/start`: what an editor wants to debug, resolved before it connects; and the port that it connects to.
//!
//! Does not depend on what happens once it has connected.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tether_base::error::{Error, Result};

use super::relay::{RelayTarget, serve_relay};
use crate::api::debug::DebugLaunchParams;
use crate::config::{BuildPlan, DotnetChoice, EditorInputs};
use crate::debug::SessionRequest;
use crate::debug::host::adapter_relay::PreparedRelay;
use crate::session_host::loopback_listener::{LoopbackListener, OpenedPort};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::handlers::debug::launch::{existing_path, program_request};
use crate::supervisor::handlers::debug::launch_config::{self, ConfigOverrides};

/// The parameters; those that are not known are ignored, since clients of other servers send more.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DebuggerStartParams {
    /// A program, a .NET project file, or the name of a configuration of launch.json.
    target_path: Option<String>,
    /// A configuration of launch.json; `targetPath` is then its `${file}`.
    config: Option<String>,
    /// Of a .NET project: `net8.0`.
    target_framework: Option<String>,
    /// Of a .NET project: `Debug`, `Release`.
    configuration: Option<String>,
    /// Of a .NET project: a profile of launchSettings.json.
    launch_profile_name: Option<String>,
    adapter: Option<String>,
    language: Option<String>,
    args: Option<Vec<String>>,
    cwd: Option<String>,
    env: std::collections::BTreeMap<String, Option<String>>,
    stop_on_entry: Option<bool>,
}

/// The parameters of an editor's method: one object, as `request` of an object (StreamJsonRpc's name of a single
/// parameter), or none. Errors: one is of another type.
pub fn read_editor_params<'de, P: Default + Deserialize<'de>>(method: &str, mut params: Value) -> Result<P> {
    if let Some(inner) = params.get_mut("request").filter(|it| it.is_object()) {
        params = inner.take();
    }
    if params.is_null() {
        return Ok(P::default());
    }
    P::deserialize(params).map_err(|cause| Error::usage(format!("the parameters of {method} are wrong")).because(cause))
}

/// Resolves the target, opens the port, and leaves the rest to the relay.
pub fn start_debugger(supervisor: &Arc<SupervisorContext>, params: &DebuggerStartParams) -> Result<OpenedPort> {
    let target = resolve_target(supervisor, params)?;
    let Some(listener) = LoopbackListener::open_for_editor() else { return Ok(OpenedPort::default()) };
    let port = Some(listener.port());
    let context = Arc::clone(supervisor);
    supervisor.editors.conversations.spawn_conversation(|end| serve_relay(context, listener, target, end));
    Ok(OpenedPort { success: true, port })
}

/// Finds out what is to be debugged, and with what; starts nothing. Errors: there is no such target, its adapter is not
/// installed, it is not trusted.
pub fn resolve_target(supervisor: &SupervisorContext, params: &DebuggerStartParams) -> Result<RelayTarget> {
    let sessions = &supervisor.sessions;
    let named_path = params.target_path.as_deref().filter(|path| !path.is_empty());
    let (request, before, after) = match (named_path, params.config.as_deref()) {
        (path, Some(config)) => params.configured_request(supervisor, config, path)?,
        (Some(path), None) if !sessions.workspace().join(path).exists() && is_configuration_name(path) => {
            let configured = params.configured_request(supervisor, path, None);
            configured.map_err(|error| error.hint("a program is named by its path, relative to the workspace"))?
        }
        (Some(path), None) => (params.program_request(supervisor, path)?, Vec::new(), BuildPlan::empty(Duration::ZERO)),
        (None, None) => {
            let error = Error::usage("nothing to debug was named");
            return Err(error.hint(
                "name `targetPath`: a program, a .NET project file, or a configuration of launch.json; or `config`",
            ));
        }
    };
    Ok(RelayTarget { prepared: PreparedRelay::new(sessions, request)?, before, after })
}

/// Whether a text that is no path of a file can be meant as a name.
fn is_configuration_name(text: &str) -> bool {
    !text.contains('/') && std::path::Path::new(text).extension().is_none()
}

impl DebuggerStartParams {
    fn program_request(&self, supervisor: &SupervisorContext, path: &str) -> Result<SessionRequest> {
        let launch = DebugLaunchParams {
            args: self.args.clone(),
            cwd: self.cwd.clone(),
            env: self.env.clone().into_iter().collect(),
            adapter: self.adapter.clone(),
            language: self.language.clone(),
            stop_on_entry: self.stop_on_entry,
            ..DebugLaunchParams::default()
        };
        let choice = DotnetChoice {
            target_framework: self.target_framework.clone(),
            configuration: self.configuration.clone(),
            launch_profile: self.launch_profile_name.clone(),
        };
        program_request(&supervisor.sessions, &launch, path, &choice)
    }

    fn configured_request(
        &self,
        supervisor: &SupervisorContext,
        config: &str,
        file: Option<&str>,
    ) -> Result<(SessionRequest, Vec<BuildPlan>, BuildPlan)> {
        let sessions = &supervisor.sessions;
        let file = file.map(|file| existing_path(sessions.workspace(), file)).transpose()?;
        let overrides = ConfigOverrides {
            given: EditorInputs::new(file, None),
            args: self.args.clone(),
            cwd: self.cwd.clone(),
            env: self.env.clone().into_iter().collect(),
            stop_on_entry: self.stop_on_entry,
            adapter: self.adapter.clone(),
            paths: None,
        };
        launch_config::prepare_config(sessions, config, &overrides)?.into_single()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_read_flat_and_as_a_request() {
        let check = |params: Value| {
            let read: DebuggerStartParams = read_editor_params("debugger/start", params).unwrap();
            (read.target_path, read.target_framework)
        };
        let expected = (Some("A.csproj".to_owned()), Some("net8.0".to_owned()));
        let fields =
            json!({"targetPath": "A.csproj", "targetFramework": "net8.0", "launchProfileName": null, "more": 1});
        assert_eq!(check(fields.clone()), expected);
        assert_eq!(check(json!({"request": fields})), expected);
        assert_eq!(check(Value::Null), (None, None));
        let wrong = read_editor_params::<DebuggerStartParams>("debugger/start", json!({"targetPath": 7})).unwrap_err();
        assert!(wrong.to_string().contains("the parameters of debugger/start are wrong"), "{wrong}");
    }

    #[test]
    fn a_name_without_a_path_or_an_extension_may_be_a_configuration() {
        let check = |text: &str, expect| assert_eq!(is_configuration_name(text), expect, "{text}");
        check("Run server", true);
        check("app.py", false);
        check("bin/app", false);
    }
}
