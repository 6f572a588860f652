//! `tether watch`: starts the window, has it built and refreshed after each save, and prints what happens, a line for each event,
//! until it is ended. The window stays.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tether_base::error::{Error, Result};
use tether_base::sync::lock;
use tokio::sync::mpsc;

use super::{GlobalArgs, connect_to_supervisor_as, initialize_params, print_result};
use crate::api::protocol::{ClientCapabilities, InitializeParams};
use crate::api::timeline::{TimelineEvents, TimelineReadParams, WaitForAnyParams};
use crate::api::window::{WindowStartParams, WindowStatus, WindowStatusParams};
use crate::api::{OperationEffect, OperationParams, find_operation};
use crate::frontends::render::event_text;
use crate::frontends::repeated_call;
use crate::supervisor::connect::{IfNotRunning, SupervisorConnection};
use crate::vocabulary::{TimelineEvent, TimelineKind};

/// What is printed.
const KINDS: [TimelineKind; 10] = [
    TimelineKind::Edited,
    TimelineKind::Built,
    TimelineKind::WindowLaunched,
    TimelineKind::WindowFound,
    TimelineKind::WindowRefreshed,
    TimelineKind::RefreshHeld,
    TimelineKind::WindowEnded,
    TimelineKind::ConsoleError,
    TimelineKind::Stopped,
    TimelineKind::SessionEnded,
];
/// How long one call waits for events, in seconds.
const WAIT: u32 = 3600;

/// Watches until the process is ended. Errors: the window cannot be started.
pub(super) async fn watch_workspace(common: &GlobalArgs, workspace: &Path) -> Result<()> {
    let watch = WatchConnection { workspace, current: Mutex::default() };
    let started = watch.call(WindowStartParams::METHOD, json!({})).await?;
    print_result(common, &started, || {
        let status = crate::frontends::render::render_text(WindowStartParams::METHOD, &started);
        format!("{status}\nwatching: each save builds and refreshes it; Ctrl-C ends this, and the window stays")
    })?;
    let newest = watch.call(TimelineReadParams::METHOD, json!({"limit": 1})).await?;
    let mut cursor = newest.get("cursor").cloned().unwrap_or_default();
    loop {
        let params = json!({"since": cursor, "timeout": WAIT, "kinds": KINDS});
        let answer = watch.call(WaitForAnyParams::METHOD, params).await?;
        cursor = answer.get("cursor").cloned().unwrap_or(cursor);
        let read = serde_json::from_value::<TimelineEvents>(answer);
        for event in read.map(|it| it.events).unwrap_or_default() {
            if is_failed_build(&event) && !common.json {
                // Its text is the last line of the output.
                let event = TimelineEvent { text: String::new(), ..event };
                print_result(common, &json!(event), || event_text(&event))?;
                watch.print_build_output(common).await?;
            } else {
                print_result(common, &json!(event), || event_text(&event))?;
            }
        }
    }
}

fn is_failed_build(event: &TimelineEvent) -> bool {
    event.kind == TimelineKind::Built && event.failed == Some(true)
}

/// The connection by which the supervisor knows that saves are to refresh the window.
struct WatchConnection<'a> {
    workspace: &'a Path,
    current: Mutex<Option<Arc<SupervisorConnection>>>,
}

impl WatchConnection<'_> {
    async fn connect(&self) -> Result<Arc<SupervisorConnection>> {
        let known = lock(&self.current).clone();
        if let Some(known) = known.filter(|known| !known.peer.is_closed()) {
            return Ok(known);
        }
        let client = initialize_params(IfNotRunning::Start);
        let capabilities = ClientCapabilities { refresh_on_save: true, ..client.capabilities };
        let client = InitializeParams { capabilities, ..client };
        let connection = Arc::new(connect_to_supervisor_as(self.workspace, &client).await?);
        *lock(&self.current) = Some(Arc::clone(&connection));
        Ok(connection)
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value> {
        let operation =
            find_operation(method).ok_or_else(|| Error::other(format!("there is no operation {method}")))?;
        let is_repeated = |effect: OperationEffect| effect.is_repeatable();
        let ignored = mpsc::unbounded_channel().0;
        repeated_call::call_operation(operation, &params, &ignored, is_repeated, || self.connect()).await
    }

    /// The last lines of the build that has failed.
    async fn print_build_output(&self, common: &GlobalArgs) -> Result<()> {
        let status = self.call(WindowStatusParams::METHOD, json!({})).await?;
        let status: Option<WindowStatus> = serde_json::from_value(status).ok();
        let tail = status.and_then(|status| status.last_build).filter(|build| !build.ok).map(|build| build.tail);
        match tail.filter(|tail| !tail.trim().is_empty()) {
            Some(tail) => print_result(common, &Value::Null, || format!("  {}", tail.trim_end().replace('\n', "\n  "))),
            None => Ok(()),
        }
    }
}
