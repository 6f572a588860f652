//! Which debug session a joined editor means: the one that is named, or the one that the editor's own `launch` or `attach`
//! starts, with the parameters of the operations of those names.
//!
//! Does not depend on how an editor connects.

use std::sync::Arc;

use futures_util::future::FutureExt;
use serde_json::{Map, Value};
use tether_base::error::{Error, Result};
use tracing::info;

use super::launch_attach::{attach_sessions, launch_sessions};
use super::started_programs::StartedSession;
use crate::api::debug::{DebugAttachParams, DebugLaunchParams};
use crate::debug::ManagedSession;
use crate::debug::join::{SessionChoice, SessionStart};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::params::read_params;
use crate::window::Caller;

/// What editors put into every request of their own, and is no parameter of an operation. What begins with `__` is theirs, too.
const EDITOR_FIELDS: [&str; 9] = [
    "type",
    "name",
    "request",
    "presentation",
    "internalConsoleOptions",
    "preLaunchTask",
    "postDebugTask",
    "debugServer",
    "suppressMultipleSessionWarning",
];
const SESSION_FIELD: &str = "sessionId";

/// The session with that id, which must not have ended; without an id the editor itself says which.
pub async fn choose_session(context: &Arc<SupervisorContext>, session: Option<&str>) -> Result<SessionChoice> {
    if session.is_some() {
        return Ok(SessionChoice::Session(find_active_session(context, session).await?));
    }
    let context = Arc::clone(context);
    Ok(SessionChoice::ByEditor(Box::new(move |start| {
        let context = Arc::clone(&context);
        async move { open_session(&context, start).await }.boxed()
    })))
}

async fn find_active_session(context: &SupervisorContext, session: Option<&str>) -> Result<ManagedSession> {
    match session {
        Some(_) => context.wait_until_settled(session).await,
        None => context.wait_until_decided().await,
    }
    let managed = context.sessions.find_session(session)?;
    if managed.is_ended() {
        let error = Error::usage(format!("cannot join {}", managed.id));
        return Err(error.because("it has ended").hint("`tether debug status` lists the sessions"));
    }
    Ok(managed)
}

async fn open_session(context: &SupervisorContext, start: SessionStart) -> Result<ManagedSession> {
    let started = match start {
        SessionStart::Join(fields) => {
            return find_active_session(context, fields.get(SESSION_FIELD).and_then(Value::as_str)).await;
        }
        SessionStart::Launch(fields) => {
            let params: DebugLaunchParams = read_params(&operation_params(fields))?;
            launch_sessions(context, params, &EditorProgress).await?.1
        }
        SessionStart::Attach(fields) => {
            let params: DebugAttachParams = read_params(&operation_params(fields))?;
            attach_sessions(context, params, &EditorProgress).await?.0
        }
    };
    let StartedSession { first, notes } = started;
    for note in first.note.iter().chain(&notes) {
        first.session.event_log().push_output("console", &format!("tether: {note}\n"));
    }
    Ok(first)
}

/// The parameters of an operation, without what is the editor's own.
fn operation_params(fields: Map<String, Value>) -> Value {
    let is_own = |name: &str| EDITOR_FIELDS.contains(&name) || name.starts_with("__");
    let is_off = |name: &str, value: &Value| name == "noDebug" && *value == Value::Bool(false);
    fields.into_iter().filter(|(name, value)| !is_own(name) && !is_off(name, value)).collect()
}

/// The progress of a start: into the log, since an editor shows none before it has its session.
struct EditorProgress;

impl Caller for EditorProgress {
    fn report_progress(&self, progress: &str) {
        info!("for an editor: {progress}");
    }

    fn is_interrupted(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_the_editors_own_is_no_parameter() {
        let fields = json!({
            "type": "tether", "name": "Run", "request": "launch", "program": "app.py", "__sessionId": "1",
            "noDebug": false, "presentation": {},
        });
        let Value::Object(fields) = fields else { panic!() };
        assert_eq!(operation_params(fields), json!({"program": "app.py"}));
        let Value::Object(fields) = json!({"noDebug": true}) else { panic!() };
        let error = read_params::<DebugLaunchParams>(&operation_params(fields)).unwrap_err().to_string();
        assert!(error.contains("noDebug"), "{error}");
    }
}
