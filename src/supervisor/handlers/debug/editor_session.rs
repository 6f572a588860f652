//! Which debug session a joined editor means: the one that is named, or the one that the editor's own `launch` or `attach`
//! starts, with the parameters of the operations of those names.
//!
//! Does not depend on how an editor connects.

use std::sync::Arc;

use futures_util::future::FutureExt;
use serde_json::{Map, Value};
use tether_base::error::{Error, Result};
use tracing::info;

use super::attach::attach_sessions;
use super::launch::{LaunchCaller, SessionPlace, launch_sessions};
use super::started_programs::StartedSession;
use crate::api::debug::{DebugAttachParams, DebugLaunchParams};
use crate::debug::join::{SessionChoice, SessionStart};
use crate::debug::{ManagedSession, SessionEntry};
use crate::session_host::params::read_params;
use crate::session_host::protocol::EditorStart;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::hosted_sessions::{EmptyHost, ListedSession};
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

/// The session that the editor itself names or starts.
pub fn choose_by_editor(context: &Arc<SupervisorContext>) -> SessionChoice {
    let context = Arc::clone(context);
    SessionChoice::ByEditor(Box::new(move |start| {
        let context = Arc::clone(&context);
        async move { open_session(&context, start).await }.boxed()
    }))
}

/// The session with that id, or the only active one. Errors: it has ended.
pub async fn find_active_session(context: &SupervisorContext, session: Option<&str>) -> Result<ListedSession> {
    match session {
        Some(_) => context.wait_until_settled(session).await,
        None => context.wait_until_decided().await,
    }
    let found = context.find_session(session)?;
    if found.is_ended() {
        let error = Error::usage(format!("cannot join {}", found.id()));
        return Err(error.because("it has ended").hint("`tether debug status` lists the sessions"));
    }
    Ok(found)
}

/// What hosts do for an editor that says what it debugs.
pub fn start_for_editors(context: &Arc<SupervisorContext>) {
    let weak = Arc::downgrade(context);
    context.hosted.start_for_editors(Box::new(move |host, start| {
        let context = weak.upgrade();
        async move {
            let ending = || {
                Error::other("cannot start a debug session")
                    .because("its supervisor is ending")
                    .hint("start it again: a new supervisor is started")
            };
            open_in_host(&*context.ok_or_else(ending)?, host, start).await
        }
        .boxed()
    }));
}

async fn open_in_host(context: &SupervisorContext, host: Arc<EmptyHost>, start: EditorStart) -> Result<Vec<String>> {
    let StartedSession { first, notes } = match start {
        EditorStart::Launch(fields) => {
            let params: DebugLaunchParams = read_params(&operation_params(fields))?;
            launch_sessions(context, params, LaunchCaller::without_environment(&EditorProgress), SessionPlace::In(host))
                .await?
                .1
        }
        EditorStart::Attach(fields) => {
            let params: DebugAttachParams = read_params(&operation_params(fields))?;
            attach_sessions(context, params, &EditorProgress, SessionPlace::In(host)).await?.0
        }
    };
    Ok(first.note().into_iter().chain(notes).collect())
}

async fn open_session(context: &SupervisorContext, start: SessionStart) -> Result<ManagedSession> {
    let started = match start {
        SessionStart::Join(fields) => {
            let found = find_active_session(context, fields.get(SESSION_FIELD).and_then(Value::as_str)).await?;
            return match found {
                ListedSession::Here(managed) => Ok(managed),
                ListedSession::Hosted(hosted) => {
                    let error = Error::usage(format!("cannot join {} over this connection", hosted.id));
                    Err(error.hint("name it in `debugger/join`, whose port is its own; `tether dap` does that"))
                }
            };
        }
        SessionStart::Launch(fields) => {
            let params: DebugLaunchParams = read_params(&operation_params(fields))?;
            launch_sessions(context, params, LaunchCaller::without_environment(&EditorProgress), SessionPlace::Here)
                .await?
                .1
        }
        SessionStart::Attach(fields) => {
            let params: DebugAttachParams = read_params(&operation_params(fields))?;
            attach_sessions(context, params, &EditorProgress, SessionPlace::Here).await?.0
        }
    };
    let StartedSession { first, notes } = started;
    let ListedSession::Here(first) = first else { return Err(Error::other("the session was started elsewhere")) };
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
