//! MCP servers that `tether wrap --debug` runs: how each is started so that it waits for its debugger, and its debug session, which
//! follows it over its restarts.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tokio::time::timeout;

use super::context::SupervisorContext;
use super::handlers::debug::launch::{SessionPlace, single_start};
use super::hosted_sessions::ListedSession;
use crate::api::protocol::{
    SERVER_ATTACH, SERVER_PLAN, ServerAttachParams, ServerAttached, ServerPlan, ServerPlanParams,
};
use crate::debug::program::{Address, DebugTarget, DebugTargetKind};
use crate::debug::{SessionEntry, SessionRequest};

/// How long the program of a session may take to end once its proxy has.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a method is one of `tether wrap`, and not an operation of the API.
pub fn is_server_method(method: &str) -> bool {
    [SERVER_PLAN, SERVER_ATTACH].contains(&method)
}

/// Carries out one call of `tether wrap`.
pub async fn call_server_method(context: &SupervisorContext, method: &str, params: Value) -> Result<Value> {
    match method {
        SERVER_PLAN => {
            let ServerPlanParams { command } = read(method, params)?;
            let (argv, language) = context.sessions.plan_waiting_command(&command)?;
            to_value(method, &ServerPlan { argv, language })
        }
        _ => to_value(method, &attach_server(context, read(method, params)?).await?),
    }
}

fn read<P: DeserializeOwned>(method: &str, params: Value) -> Result<P> {
    P::deserialize(params).doing(|| format!("cannot read the parameters of {method}"))
}

fn to_value(method: &str, result: &impl Serialize) -> Result<Value> {
    serde_json::to_value(result).doing(|| format!("cannot serialize the result of {method}"))
}

/// The newest session that follows this server; of all servers without a name.
fn sessions_of(context: &SupervisorContext, name: Option<&str>) -> Vec<ListedSession> {
    let follows = |it: &ListedSession| {
        let is_it = |server: &str| name.is_none_or(|name| name == server);
        it.is_following() && it.request().followed_server().is_some_and(is_it)
    };
    context.list_sessions().into_iter().filter(follows).collect()
}

/// The session of a server. Errors: no server of this name is being debugged.
pub(super) fn find_server_session(context: &SupervisorContext, name: &str) -> Result<ListedSession> {
    if let Some(session) = sessions_of(context, Some(name)).pop() {
        return Ok(session);
    }
    let known = sessions_of(context, None);
    let names: Vec<&str> = known.iter().filter_map(|it| it.request().followed_server()).collect();
    let error = Error::new(ErrorKind::NotFound, format!("there is no server {name:?} to attach to"));
    let error = if names.is_empty() { error } else { error.because(format!("there are: {}", names.join(", "))) };
    Err(error.hint("`tether wrap --debug --name NAME -- COMMAND` runs a server under its debugger"))
}

/// Attaches the session of a server to a new process of it, which waits for that; its breakpoints are bound when this returns.
async fn attach_server(context: &SupervisorContext, params: ServerAttachParams) -> Result<ServerAttached> {
    let ServerAttachParams { name, port, language, why } = params;
    let request = SessionRequest {
        name: format!("server {name}"),
        debug_target: DebugTarget {
            kind: DebugTargetKind::Listener(Address::loopback(port)),
            cwd: context.sessions.workspace().to_owned(),
            ..DebugTarget::default()
        },
        language: Some(language),
        ..SessionRequest::default()
    }
    .following_server(&name);
    let known = sessions_of(context, Some(&name)).pop();
    let session = match known {
        Some(ListedSession::Hosted(hosted)) => {
            if !hosted.reattach(Ok(request), &why).await? {
                let status = hosted.read_facts(|facts| facts.status.message.clone());
                return Err(Error::other(format!("cannot attach {} to {name}", hosted.id))
                    .because(status.unwrap_or_else(|| "it gives no reason".to_owned())));
            }
            hosted.report_reattached(&why, None).await?;
            ListedSession::Hosted(hosted)
        }
        Some(ListedSession::Here(lost)) if lost.is_lost() => {
            context.sessions.reattach_lost(&lost, Ok(request), &why, &context.hosted).await;
            find_server_session(context, &name)?
        }
        _ => context.start_session(single_start(request, None), SessionPlace::New).await?,
    };
    Ok(ServerAttached { session_id: session.id().to_owned() })
}

/// Ends the session of a server whose proxy has ended: nothing restarts it any more.
pub(super) async fn release_server(context: &SupervisorContext, name: &str) {
    for session in sessions_of(context, Some(name)) {
        if let ListedSession::Hosted(hosted) = &session {
            let _ = timeout(END_TIMEOUT, hosted.wait_until_ended()).await;
        }
        if let Err(error) = session.stop(&context.sessions, None).await {
            tracing::warn!("{}: {error}", session.id());
        }
    }
}
