//! `tether watch` without a terminal: a line for each event.

use std::sync::Arc;

use serde_json::{Value, json};
use tether_base::error::Result;

use super::connection::WatchConnection;
use super::view_state::SHOWN_KINDS;
use crate::api::OperationParams;
use crate::api::debug::values::Seconds;
use crate::api::timeline::{TimelineReadParams, WaitForAnyParams};
use crate::api::window::{WindowStartParams, WindowStatusParams};
use crate::frontends::cli::{GlobalArgs, print_result};
use crate::frontends::render::{event_text, render_text};
use crate::vocabulary::{TimelineEvent, TimelineKind};

/// How long one call waits for events, in seconds.
const WAIT: u64 = 3600;

/// Prints until the process is ended. Errors: the window cannot be started.
pub async fn print_events(connection: &Arc<WatchConnection>, common: &GlobalArgs) -> Result<()> {
    let started = json!(connection.call(&WindowStartParams::default()).await?);
    print_result(common, &started, || {
        let status = render_text(WindowStartParams::METHOD, &started);
        format!("{status}\nwatching: each save builds and refreshes it; Ctrl-C ends this, and the window stays")
    })?;
    let newest = TimelineReadParams { limit: Some(1), ..TimelineReadParams::default() };
    let mut cursor = connection.call(&newest).await?.cursor;
    loop {
        let wait = WaitForAnyParams {
            since: Some(cursor),
            timeout: Some(Seconds::of(WAIT)),
            kinds: Some(SHOWN_KINDS.to_vec()),
            ..WaitForAnyParams::default()
        };
        let read = connection.call(&wait).await?;
        cursor = read.cursor;
        for event in read.events {
            if is_failed_build(&event) && !common.json {
                // Its text is the last line of the output.
                let event = TimelineEvent { text: String::new(), ..event };
                print_result(common, &json!(event), || event_text(&event))?;
                print_build_output(connection, common).await?;
            } else {
                print_result(common, &json!(event), || event_text(&event))?;
            }
        }
    }
}

fn is_failed_build(event: &TimelineEvent) -> bool {
    event.kind == TimelineKind::Built && event.failed == Some(true)
}

/// The last lines of the build that has failed.
async fn print_build_output(connection: &WatchConnection, common: &GlobalArgs) -> Result<()> {
    let build = connection.call(&WindowStatusParams {}).await?.last_build.filter(|build| !build.ok);
    match build.map(|build| build.tail).filter(|tail| !tail.trim().is_empty()) {
        Some(tail) => print_result(common, &Value::Null, || format!("  {}", tail.trim_end().replace('\n', "\n  "))),
        None => Ok(()),
    }
}
