//! From a method's name to what does it: one arm per operation.
//!
//! Reads parameters, asks the window, writes the answer. Must not decide anything about either.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::server::SupervisorContext;
use super::{answers, on_debug, on_page};
use crate::api::page::{PageConsoleParams, PageNetworkParams, PageSnapshotParams};
use crate::api::page::{PageEvaluateParams, PageScreenshotParams};
use crate::api::page_input::PageInputParams;
use crate::api::protocol::ProgressParams;
use crate::api::window::{
    WindowChangesParams, WindowRestartParams, WindowStartParams, WindowStatus, WindowStatusParams, WindowStopParams,
};
use crate::api::{OPERATIONS, Operation, OperationParams};
use crate::error::{Error, ErrorContext, Result};
use crate::window::{Caller, RebuildPolicy};
use crate::wire::rpc::{RpcId, RpcPeer};

/// How long an expression may take when the caller does not say.
const DEFAULT_EVALUATE_TIMEOUT: Duration = Duration::from_secs(30);

/// One request, and where its progress goes.
pub(super) struct OperationCall<'a> {
    pub method: &'a str,
    pub params: Value,
    pub peer: &'a RpcPeer,
    pub id: &'a RpcId,
    pub started: Instant,
    /// Set when the asker has cancelled it.
    pub withdrawn: &'a AtomicBool,
}

impl Caller for OperationCall<'_> {
    fn report_progress(&self, message: &str) {
        let elapsed_ms = self.started.elapsed().as_millis() as u64;
        if let Ok(value) = serde_json::to_value(ProgressParams { message: message.to_owned(), elapsed_ms }) {
            self.peer.send_progress(self.id, &value);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.withdrawn.load(Ordering::SeqCst)
    }
}

/// Carries out one call.
pub(super) async fn dispatch(supervisor: &SupervisorContext, call: OperationCall<'_>) -> Result<Value> {
    if let Some(outcome) = on_debug::dispatch(supervisor, &call).await {
        return outcome;
    }
    let window = &supervisor.window;
    // What only reads what is known cannot have been the window's end.
    let apart =
        [WindowStatusParams::METHOD, WindowChangesParams::METHOD, PageConsoleParams::METHOD, PageNetworkParams::METHOD]
            .contains(&call.method);
    let _doing = (!apart).then(|| window.track_call(summarize_call(&call)));
    let progress: &dyn Caller = &call;
    match call.method {
        WindowStatusParams::METHOD => {
            read_params::<WindowStatusParams>(&call)?;
            write_result::<WindowStatusParams>(window_status(supervisor).await)
        }
        WindowStartParams::METHOD => {
            let WindowStartParams { config, rebuild } = read_params(&call)?;
            window.start(config.as_deref(), rebuild_choice(rebuild), progress).await?;
            write_result::<WindowStartParams>(window_status(supervisor).await)
        }
        WindowStopParams::METHOD => {
            read_params::<WindowStopParams>(&call)?;
            window.stop(progress).await?;
            write_result::<WindowStopParams>(window_status(supervisor).await)
        }
        WindowRestartParams::METHOD => {
            let WindowRestartParams { rebuild } = read_params(&call)?;
            window.restart(rebuild_choice(rebuild), progress).await?;
            write_result::<WindowRestartParams>(window_status(supervisor).await)
        }
        WindowChangesParams::METHOD => {
            let WindowChangesParams { path } = read_params(&call)?;
            let explanation = match &path {
                Some(path) => Some(window.explain_path(Path::new(path)).await?),
                None => None,
            };
            write_result::<WindowChangesParams>(answers::window_changes(window.inspect_changes().await?, explanation))
        }
        PageEvaluateParams::METHOD => {
            let PageEvaluateParams { expression, timeout_ms, page } = read_params(&call)?;
            let timeout = timeout_ms.map_or(DEFAULT_EVALUATE_TIMEOUT, Duration::from_millis);
            let evaluated = window.evaluate(&expression, timeout, page.as_deref(), progress).await?;
            write_result::<PageEvaluateParams>(answers::evaluate_result(evaluated))
        }
        PageScreenshotParams::METHOD => {
            let shot = on_page::screenshot_options(read_params(&call)?);
            write_result::<PageScreenshotParams>(on_page::page_image(window.screenshot(&shot, progress).await?))
        }
        PageSnapshotParams::METHOD => {
            let look = on_page::snapshot_options(read_params(&call)?);
            write_result::<PageSnapshotParams>(on_page::snapshot_result(window.snapshot(&look, progress).await?))
        }
        PageInputParams::METHOD => {
            let PageInputParams { actions, snapshot, page } = read_params(&call)?;
            let actions = on_page::input_actions(actions)?;
            let look = snapshot.unwrap_or_default().then_some(on_page::DEFAULT_SNAPSHOT_BYTES);
            write_result::<PageInputParams>(on_page::input_result(
                window.act(&actions, page.as_deref(), look, progress).await?,
            ))
        }
        PageConsoleParams::METHOD => {
            let PageConsoleParams { since, limit, filter } = read_params(&call)?;
            write_result::<PageConsoleParams>(on_page::console_entries(
                window.console(&on_page::log_query(since, limit, filter)).await,
            ))
        }
        PageNetworkParams::METHOD => {
            let PageNetworkParams { since, limit, filter } = read_params(&call)?;
            write_result::<PageNetworkParams>(on_page::network_entries(
                window.network(&on_page::log_query(since, limit, filter)).await,
            ))
        }
        method => {
            let known: Vec<_> = OPERATIONS.iter().map(|operation| operation.method).collect();
            Err(Error::usage(format!("there is no method {method:?}")).hint(format!("there are: {}", known.join(", "))))
        }
    }
}

/// The window's status, with what is debugged beside it.
pub(super) async fn window_status(supervisor: &SupervisorContext) -> WindowStatus {
    let sessions = supervisor.sessions.active_sessions().into_iter().map(|it| it.id).collect();
    WindowStatus { sessions, ..answers::inspected_window_status(supervisor.window.inspect().await) }
}

/// What the call wants, in one line: told when the window dies under it.
fn summarize_call(call: &OperationCall<'_>) -> String {
    const MOST: usize = 120;
    let mut line = call.method.to_owned();
    if call.params.as_object().is_some_and(|params| !params.is_empty()) {
        line.push(' ');
        line.extend(call.params.to_string().chars().take(MOST));
    }
    line
}

pub(super) fn read_params<P: OperationParams>(call: &OperationCall<'_>) -> Result<P> {
    // No parameters at all, and an empty object, are the same.
    let params = if call.params.is_null() { Value::Object(serde_json::Map::new()) } else { call.params.clone() };
    serde_json::from_value(params).map_err(|cause| {
        let known = crate::api::find_operation(P::METHOD).map(Operation::parameter_names).unwrap_or_default();
        let names = if known.is_empty() { "it takes none".into() } else { format!("it takes: {}", known.join(", ")) };
        Error::usage(format!("the parameters of {} are wrong", call.method)).because(cause).hint(names)
    })
}

pub(super) fn write_result<P: OperationParams>(answer: P::Result) -> Result<Value> {
    serde_json::to_value(answer).doing(|| format!("cannot write the answer of {}", P::METHOD))
}

fn rebuild_choice(rebuild: Option<crate::api::window::RebuildChoice>) -> RebuildPolicy {
    match rebuild.unwrap_or_default() {
        crate::api::window::RebuildChoice::Auto => RebuildPolicy::Auto,
        crate::api::window::RebuildChoice::Always => RebuildPolicy::Always,
        crate::api::window::RebuildChoice::Never => RebuildPolicy::Never,
    }
}
