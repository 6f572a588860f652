//! From a method's name to what does it: one arm per operation.
//!
//! Reads parameters, asks the window, writes the answer. Must not decide anything about either.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::server::Supervisor;
use super::{answers, on_debug, on_page};
use crate::api::editor::Progress;
use crate::api::page::{Console, Input, Network, Snapshot};
use crate::api::window::{Changes, Evaluate, Restart, Screenshot, Start, Status, Stop, WindowStatus};
use crate::api::{OPERATIONS, Operation, Params};
use crate::error::{Context, Error, Result};
use crate::window::{Caller, RebuildPolicy};
use crate::wire::rpc::{RpcId, RpcPeer};

/// How long an expression may take when the caller does not say.
const EVALUATE: Duration = Duration::from_secs(30);

/// One request, and where its progress goes.
pub(super) struct Call<'a> {
    pub method: &'a str,
    pub params: Value,
    pub peer: &'a RpcPeer,
    pub id: &'a RpcId,
    pub started: Instant,
    /// Set when the asker has cancelled it.
    pub withdrawn: &'a AtomicBool,
}

impl Caller for Call<'_> {
    fn report_progress(&self, message: &str) {
        let elapsed_ms = self.started.elapsed().as_millis() as u64;
        if let Ok(value) = serde_json::to_value(Progress { message: message.to_owned(), elapsed_ms }) {
            self.peer.send_progress(self.id, &value);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.withdrawn.load(Ordering::SeqCst)
    }
}

/// Carries out one call.
pub(super) async fn dispatch(supervisor: &Supervisor, call: Call<'_>) -> Result<Value> {
    if let Some(outcome) = on_debug::dispatch(supervisor, &call).await {
        return outcome;
    }
    let window = &supervisor.window;
    // What only reads what is known cannot have been the window's end.
    let apart = [Status::METHOD, Changes::METHOD, Console::METHOD, Network::METHOD].contains(&call.method);
    let _doing = (!apart).then(|| window.track_call(brief(&call)));
    let progress: &dyn Caller = &call;
    match call.method {
        Status::METHOD => {
            read::<Status>(&call)?;
            write::<Status>(look(supervisor).await)
        }
        Start::METHOD => {
            let Start { config, rebuild } = read(&call)?;
            window.start(config.as_deref(), wanted(rebuild), progress).await?;
            write::<Start>(look(supervisor).await)
        }
        Stop::METHOD => {
            read::<Stop>(&call)?;
            window.stop(progress).await?;
            write::<Stop>(look(supervisor).await)
        }
        Restart::METHOD => {
            let Restart { rebuild } = read(&call)?;
            window.restart(wanted(rebuild), progress).await?;
            write::<Restart>(look(supervisor).await)
        }
        Changes::METHOD => {
            let Changes { path } = read(&call)?;
            let explanation = match &path {
                Some(path) => Some(window.explain_path(Path::new(path)).await?),
                None => None,
            };
            write::<Changes>(answers::changes(window.inspect_changes().await?, explanation))
        }
        Evaluate::METHOD => {
            let Evaluate { expression, timeout_ms, page } = read(&call)?;
            let timeout = timeout_ms.map_or(EVALUATE, Duration::from_millis);
            let evaluated = window.evaluate(&expression, timeout, page.as_deref(), progress).await?;
            write::<Evaluate>(answers::evaluated(evaluated))
        }
        Screenshot::METHOD => {
            let shot = on_page::shot(read(&call)?);
            write::<Screenshot>(on_page::picture(window.screenshot(&shot, progress).await?))
        }
        Snapshot::METHOD => {
            let look = on_page::look(read(&call)?);
            write::<Snapshot>(on_page::seen(window.snapshot(&look, progress).await?))
        }
        Input::METHOD => {
            let Input { actions, snapshot, page } = read(&call)?;
            let actions = on_page::actions(actions)?;
            let look = snapshot.unwrap_or_default().then_some(on_page::MOST_BYTES);
            write::<Input>(on_page::acted(window.act(&actions, page.as_deref(), look, progress).await?))
        }
        Console::METHOD => {
            let Console { since, limit, filter } = read(&call)?;
            write::<Console>(on_page::console(window.console(&on_page::query(since, limit, filter)).await))
        }
        Network::METHOD => {
            let Network { since, limit, filter } = read(&call)?;
            write::<Network>(on_page::network(window.network(&on_page::query(since, limit, filter)).await))
        }
        method => {
            let known: Vec<_> = OPERATIONS.iter().map(|operation| operation.method).collect();
            Err(Error::usage(format!("there is no method {method:?}")).hint(format!("there are: {}", known.join(", "))))
        }
    }
}

/// The window's status, with what is debugged beside it.
pub(super) async fn look(supervisor: &Supervisor) -> WindowStatus {
    let sessions = supervisor.sessions.living().into_iter().map(|it| it.id).collect();
    WindowStatus { sessions, ..answers::look(supervisor.window.inspect().await) }
}

/// What the call wants, in one line: told when the window dies under it.
fn brief(call: &Call<'_>) -> String {
    const MOST: usize = 120;
    let mut line = call.method.to_owned();
    if call.params.as_object().is_some_and(|params| !params.is_empty()) {
        line.push(' ');
        line.extend(call.params.to_string().chars().take(MOST));
    }
    line
}

pub(super) fn read<P: Params>(call: &Call<'_>) -> Result<P> {
    // No parameters at all, and an empty object, are the same.
    let params = if call.params.is_null() { Value::Object(serde_json::Map::new()) } else { call.params.clone() };
    serde_json::from_value(params).map_err(|cause| {
        let known = crate::api::operation(P::METHOD).map(Operation::parameters).unwrap_or_default();
        let names = if known.is_empty() { "it takes none".into() } else { format!("it takes: {}", known.join(", ")) };
        Error::usage(format!("the parameters of {} are wrong", call.method)).because(cause).hint(names)
    })
}

pub(super) fn write<P: Params>(answer: P::Answer) -> Result<Value> {
    serde_json::to_value(answer).doing(|| format!("cannot write the answer of {}", P::METHOD))
}

fn wanted(rebuild: Option<crate::api::window::Rebuild>) -> RebuildPolicy {
    match rebuild.unwrap_or_default() {
        crate::api::window::Rebuild::Auto => RebuildPolicy::Auto,
        crate::api::window::Rebuild::Always => RebuildPolicy::Always,
        crate::api::window::Rebuild::Never => RebuildPolicy::Never,
    }
}
