//! Sessions that an editor was requested to open: asked for with `startDebugSession`, ended with `terminateDebugSession`.
//!
//! ```text
//!  debugger/open ─▶ listener ─▶ startDebugSession {host, port} ─┬─ its id ─▶ listed ─▶ terminateDebugSession ─▶ relay closed
//!                                                               └─ an error, no id, too late ─▶ relay closed
//! ```
//! An id is the editor's own, and is sent back as it came. A session is forgotten when its relay or its editor's connection
//! ends. Does not depend on what a relay does.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tokio::time::timeout;
use tracing::{info, warn};

use super::connected_editors::ConnectedEditor;
use super::debugger_start::{DebuggerStartParams, resolve_target};
use super::relay::serve_relay;
use super::session_table::EditorSession;
use crate::api::protocol::{START_DEBUG_SESSION, TERMINATE_DEBUG_SESSION};
use crate::session_host::loopback_listener::{LISTENER_LIFETIME, LoopbackListener};
use crate::supervisor::context::SupervisorContext;

/// An editor may answer only once the program runs.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a relay may take to end by itself once its editor has closed the session.
const RELAY_END_TIMEOUT: Duration = Duration::from_secs(3);

/// The parameters of `debugger/close`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DebuggerCloseParams {
    session_id: Value,
}

/// Opens a debug conversation in the newest editor that can open sessions. Returns the editor's id of it.
pub async fn open_in_editor(supervisor: &Arc<SupervisorContext>, params: &DebuggerStartParams) -> Result<Value> {
    let target = resolve_target(supervisor, params)?;
    let editor = find_session_opener(supervisor)?;
    let listener =
        LoopbackListener::open(LISTENER_LIFETIME).doing(|| "cannot listen on 127.0.0.1 for an editor".to_owned())?;
    let (port, name) = (listener.port(), target.prepared.name.clone());
    let number = supervisor.editors.sessions.next_number();
    let end = supervisor.editors.conversations.spawn_conversation(|end| {
        let (context, editor) = (Arc::clone(supervisor), Arc::clone(&editor));
        async move {
            let relay = serve_relay(Arc::clone(&context), listener, target, end.clone());
            tokio::pin!(relay);
            tokio::select! {
                () = &mut relay => {}
                () = editor.wait_closed() => {
                    context.editors.sessions.forget_session(number);
                    // The conversation itself goes on until it ends.
                    relay.await;
                }
            }
            end.cancel();
            context.editors.sessions.forget_session(number);
        }
    });
    // Also when the caller goes away meanwhile.
    let closing = end.clone().drop_guard();
    let session_id = request_session(&editor, port, &name).await?;
    let session = EditorSession { number, editor, session_id: session_id.clone(), end: end.clone() };
    supervisor.editors.sessions.add_session(session);
    if end.is_cancelled() {
        supervisor.editors.sessions.forget_session(number);
        return Err(Error::other("the debug session has ended before its editor has answered"));
    }
    closing.disarm();
    Ok(json!({"sessionId": session_id, "port": port}))
}

fn find_session_opener(supervisor: &SupervisorContext) -> Result<Arc<ConnectedEditor>> {
    let editor = supervisor.editors.connected.find_newest(|editor| editor.client.capabilities.start_debug_session);
    editor.ok_or_else(|| {
        let error = Error::new(ErrorKind::NotFound, "no editor is connected that can open a debug session");
        error.hint("an editor connects with `tether rpc`, and has the capability `startDebugSession`: see \"Editors\" in the documentation")
    })
}

/// Requests the editor to open a session on a port. Returns its id of the session.
async fn request_session(editor: &ConnectedEditor, port: u16, name: &str) -> Result<Value> {
    let params = json!({"host": "127.0.0.1", "port": port, "name": name});
    let answer = editor.send_request(START_DEBUG_SESSION, &params, START_TIMEOUT).await;
    let answer = answer.inspect_err(|error| warn!("{error}"))?;
    read_session_id(&answer).ok_or_else(|| {
        let error = Error::other(format!("{START_DEBUG_SESSION} failed in {}", editor.client.name));
        let error = error.because(format!("its result is {answer}, and not the id of a session: a number or a string"));
        warn!("{error}");
        error
    })
}

/// A number or a string, alone or as `sessionId`.
fn read_session_id(answer: &Value) -> Option<Value> {
    let id = answer.get("sessionId").unwrap_or(answer);
    (id.is_number() || id.is_string()).then(|| id.clone())
}

/// Requests the editor to end a session, closes its relay, and forgets it. Returns whether the editor has confirmed it.
pub async fn close_in_editor(supervisor: &SupervisorContext, params: &DebuggerCloseParams) -> Result<Value> {
    let session = supervisor.editors.sessions.take_session(&params.session_id).ok_or_else(|| {
        let error = Error::new(ErrorKind::NotFound, format!("no editor has a session {}", params.session_id));
        error.hint(supervisor.editors.sessions.describe_ids())
    })?;
    // Also when the caller goes away meanwhile.
    let _closing = session.end.clone().drop_guard();
    let asked = json!({"sessionId": session.session_id});
    let answer = session.editor.send_request(TERMINATE_DEBUG_SESSION, &asked, TERMINATE_TIMEOUT).await;
    let is_confirmed = matches!(answer, Ok(Value::Bool(true)));
    match answer {
        Ok(_) if is_confirmed => {
            info!("{} has closed its session {}", session.editor.client.name, session.session_id);
            // Its conversation may have its last messages on the way.
            let _ = timeout(RELAY_END_TIMEOUT, session.end.cancelled()).await;
        }
        Ok(answer) => {
            warn!("{} has not closed its session {}: {answer}", session.editor.client.name, session.session_id);
        }
        Err(error) => warn!("{error}"),
    }
    Ok(json!({"confirmed": is_confirmed}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_any_number_or_string_alone_or_in_an_object() {
        let check = |answer: Value, expect: Option<Value>| assert_eq!(read_session_id(&answer), expect, "{answer}");
        check(json!(7), Some(json!(7)));
        check(json!(-1.5), Some(json!(-1.5)));
        check(json!({"sessionId": "a b"}), Some(json!("a b")));
        check(json!({"sessionId": 0}), Some(json!(0)));
        check(json!(true), None);
        check(Value::Null, None);
        check(json!({}), None);
    }
}
