//! The first message of an editor, `initialize`: connects to the supervisor in the editor's name, and starts one if none runs.
//!
//! Every other message before it gets an error. Does not depend on what follows.

use std::path::Path;

use bytes::Bytes;
use futures_util::SinkExt;
use serde::Deserialize;
use serde_json::{Value, json};
use tether_base::error::{Error, ErrorKind, Result};
use tether_wire::rpc::{PARSE_ERROR, RpcError, read_single_params};
use tokio::io::AsyncWrite;

use super::stdio_frames::{EditorInput, EditorOutput, report_broken_input, send_error};
use crate::api::OPERATIONS;
use crate::api::protocol::{
    ClientCapabilities, ClientRole, EDITOR_METHODS, INITIALIZE, InitializeParams, InitializeResult,
};
use crate::supervisor::connect::{IfNotRunning, SupervisorPaths, SupervisorStream, connect_stream};

/// A message before the connection is initialized.
#[derive(Deserialize)]
struct EarlyMessage {
    id: Option<Value>,
    #[serde(default)]
    method: String,
    #[serde(default)]
    params: Value,
}

/// What an editor reports of itself; as `initialize` of LSP, `clientInfo` may have its name and version.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct EditorParams {
    name: Option<String>,
    version: Option<String>,
    client_info: Option<ClientInfo>,
    role: Option<ClientRole>,
    capabilities: ClientCapabilities,
    launch_id: Option<String>,
}

#[derive(Deserialize)]
struct ClientInfo {
    name: String,
    version: Option<String>,
}

/// Responds to messages until `initialize` has succeeded. `None`: the editor has closed its side.
pub(super) async fn initialize_editor(
    workspace: &Path,
    input: &mut EditorInput,
    output: &mut EditorOutput<impl AsyncWrite + Unpin>,
) -> Result<Option<SupervisorStream>> {
    while let Some(frame) = input.recv().await {
        let body = match frame {
            Ok(body) => body,
            Err(cause) => return Err(report_broken_input(output, cause).await),
        };
        let (id, outcome) = match serde_json::from_slice(&body) {
            // A notification, which has no response.
            Ok(EarlyMessage { id: None, .. }) => continue,
            Ok(EarlyMessage { id: Some(id), method, params }) if method == INITIALIZE => {
                (id, connect_editor(workspace, params).await.map_err(|error| RpcError::from(&error)))
            }
            Ok(EarlyMessage { id: Some(id), method, .. }) => (id, Err(RpcError::from(&early_error(&method)))),
            Err(cause) => (Value::Null, Err(RpcError::plain(PARSE_ERROR, cause.to_string()))),
        };
        let sent = match outcome {
            Ok(supervisor) => {
                let response = json!({"jsonrpc": "2.0", "id": id, "result": initialize_result(&supervisor.supervisor)});
                output.send(Bytes::from(response.to_string())).await.map(|()| Some(supervisor))
            }
            Err(error) => send_error(output, &id, &error).await.map(|()| None),
        };
        match sent {
            Ok(Some(supervisor)) => return Ok(Some(supervisor)),
            Ok(None) => {}
            // A closed stdout is no error.
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// What the supervisor has answered, and in the words of other servers (`serverInfo`, `capabilities`) who it is, and which methods
/// it handles: an editor's client warns of a method that is not among `routes`.
fn initialize_result(supervisor: &InitializeResult) -> Value {
    let operations = OPERATIONS.iter().map(|operation| operation.method);
    let routes: Vec<&str> = [INITIALIZE].into_iter().chain(EDITOR_METHODS.iter().copied()).chain(operations).collect();
    let mut result = json!(supervisor);
    result["serverInfo"] = json!({"name": supervisor.name, "version": supervisor.version});
    result["capabilities"] = json!({"routes": routes});
    result
}

fn early_error(method: &str) -> Error {
    Error::usage(format!("the first message must be `{INITIALIZE}`")).because(format!("it was `{method}`"))
}

async fn connect_editor(workspace: &Path, params: Value) -> Result<SupervisorStream> {
    let client = client_params(params)?;
    let paths = SupervisorPaths::of_workspace(workspace)?;
    let connected = connect_stream(&paths, &client, IfNotRunning::Start).await?;
    connected.ok_or_else(|| Error::new(ErrorKind::NotFound, "there is no supervisor"))
}

/// The version is this program's: by it the supervisor decides whether it is outdated.
fn client_params(params: Value) -> Result<InitializeParams> {
    let mut params = read_single_params(params);
    let inner = params.get_mut("request").filter(|it| it.is_object()).map(Value::take);
    // The form of easy-dotnet.nvim, whose client names no capabilities, and opens and ends sessions when it is asked to.
    let opens_sessions = inner.as_ref().is_some_and(|it| it.get("projectInfo").is_some());
    params = inner.unwrap_or(params);
    let mut params: EditorParams = if params.is_null() {
        EditorParams::default()
    } else {
        serde_json::from_value(params).map_err(|cause| {
            let error = Error::usage(format!("the parameters of {INITIALIZE} are wrong")).because(cause);
            error.hint("it takes: name, version, role (`editor`, `host`, `windowBridge`), capabilities")
        })?
    };
    params.capabilities.start_debug_session |= opens_sessions;
    params.capabilities.terminate_debug_session |= opens_sessions;
    let info = params.client_info;
    let (name, version) = match (params.name, info) {
        (Some(name), _) => (name, params.version),
        (None, Some(info)) => (info.name, info.version),
        (None, None) => ("an editor".to_owned(), params.version),
    };
    Ok(InitializeParams {
        name: [Some(name), version, Some("over tether rpc".to_owned())]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" "),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        role: params.role.unwrap_or(ClientRole::Editor),
        capabilities: params.capabilities,
        launch_id: params.launch_id,
        wraps: None,
        environment: tether_process::caller_environment(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_editor_introduces_itself_in_any_of_the_usual_forms() {
        let check = |params: Value, name: &str, role: ClientRole| {
            let client = client_params(params.clone()).unwrap();
            let expected = (name, env!("CARGO_PKG_VERSION"), role);
            assert_eq!((client.name.as_str(), client.version.as_str(), client.role), expected, "{params}");
        };
        let editor = ClientRole::Editor;
        check(json!({"name": "nvim", "version": "0.11"}), "nvim 0.11 over tether rpc", editor);
        check(json!([{"name": "nvim"}]), "nvim over tether rpc", editor);
        check(
            json!({"clientInfo": {"name": "nvim", "version": "9"}, "processId": 7}),
            "nvim 9 over tether rpc",
            editor,
        );
        let wrapped =
            json!({"request": {"clientInfo": {"name": "E", "version": "2"}, "projectInfo": {"rootDir": "/"}}});
        check(wrapped.clone(), "E 2 over tether rpc", editor);
        let capabilities = client_params(wrapped).unwrap().capabilities;
        assert!(capabilities.start_debug_session && capabilities.terminate_debug_session);
        check(Value::Null, "an editor over tether rpc", editor);
        check(json!({"name": "code", "role": "host"}), "code over tether rpc", ClientRole::Host);
        let client = client_params(json!({"capabilities": {"startDebugSession": true, "unknown": 1}})).unwrap();
        assert!(client.capabilities.start_debug_session && !client.capabilities.terminate_debug_session);
        let wrong = client_params(json!({"role": "boss"})).unwrap_err().to_string();
        assert!(wrong.contains("windowBridge"), "{wrong}");
    }
}
