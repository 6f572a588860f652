//! `runInTerminal`: an adapter requests that its client runs the program. It runs in its own process group; there is no
//! terminal, so its output becomes the session's, and its input is empty.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use tether_base::error::Result;
use tether_dap::types::{RunInTerminalArguments, RunInTerminalResponse};
use tether_dap::{ErrorResponse, IncomingRequest};
use tether_process::{LAUNCH_ID, OutputPipes, PipedProcess, Process};
use tokio::io::{AsyncRead, AsyncReadExt};
use tracing::warn;

use super::event_log::EventLog;

/// Runs the program, and responds; then reads its output to its end. The launch id identifies the session's processes.
pub async fn run_in_terminal(request: IncomingRequest, event_log: Arc<EventLog>, launch_id: String) {
    let arguments = request.read_arguments().map_err(|cause| format!("runInTerminal: {cause}"));
    let spawned = arguments.and_then(|it| spawn_program(&it, &launch_id).map_err(|error| error.to_string()));
    let piped = match spawned {
        Ok(piped) => piped,
        Err(reason) => return request.respond_error(ErrorResponse::new(reason)),
    };
    let _readers = ReadersOnDrop(OutputPipes::duplicate(&piped.stdout, &piped.stderr).ok(), piped.process.clone());
    let process_id = Some(i64::from(piped.process.pid()));
    request.respond(&RunInTerminalResponse { process_id });
    tokio::join!(log_output(piped.stdout, "stdout", &event_log), log_output(piped.stderr, "stderr", &event_log));
    // Reaped here; the adapter reports how it exited.
    piped.process.wait_for_exit().await;
}

/// Leaves readers for a program that still runs when its session is over: it may have been detached from.
struct ReadersOnDrop(Option<OutputPipes>, Process);

impl Drop for ReadersOnDrop {
    fn drop(&mut self) {
        // Without a runtime the supervisor ends, and the program with it.
        let ReadersOnDrop(Some(pipes), process) = self else { return };
        if process.is_alive()
            && tokio::runtime::Handle::try_current().is_ok()
            && let Err(error) = pipes.leave_readers()
        {
            warn!("{error}");
        }
    }
}

fn spawn_program(arguments: &RunInTerminalArguments, launch_id: &str) -> Result<PipedProcess> {
    let mut env: BTreeMap<OsString, OsString> = tether_process::clean_environment::<&str, &str>([]);
    for (name, value) in &arguments.env {
        match value {
            Some(value) => env.insert(name.into(), value.into()),
            None => env.remove(&OsString::from(name)),
        };
    }
    env.insert(LAUNCH_ID.into(), launch_id.into());
    let argv: Vec<OsString> = if arguments.args_can_be_interpreted_by_shell {
        ["sh", "-c"].map(OsString::from).into_iter().chain([arguments.args.join(" ").into()]).collect()
    } else {
        arguments.args.iter().map(OsString::from).collect()
    };
    tether_process::spawn_piped(&argv, Path::new(&arguments.cwd), &env, false)
}

/// Logs output in the pieces in which it is read, cut at character boundaries.
async fn log_output(mut pipe: impl AsyncRead + Unpin, category: &str, record: &EventLog) {
    let (mut chunk, mut open) = (vec![0; 16 * 1024], Vec::new());
    while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
        open.extend_from_slice(chunk.get(..count).unwrap_or_default());
        let whole = match std::str::from_utf8(&open) {
            Err(cause) if cause.error_len().is_none() => cause.valid_up_to(),
            _ => open.len(),
        };
        let rest = open.split_off(whole);
        record.push_output(category, &String::from_utf8_lossy(&open));
        open = rest;
    }
    record.push_output(category, &String::from_utf8_lossy(&open));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use tether_base::ring::RingQuery;
    use tether_dap::{DapClient, DapConnection, DapIncoming, DapServer};

    #[tokio::test]
    async fn a_program_runs_with_its_environment_and_its_output_is_logged() {
        let (ours, theirs) = DapConnection::pair();
        let (_client, mut inbox, driver) = DapClient::over(ours);
        let (server, _asked, serving) = DapServer::over(theirs);
        let (_driver, _serving) = (tokio::spawn(driver), tokio::spawn(serving));
        let (record, env) = (Arc::<EventLog>::default(), [("WORD".to_owned(), Some("ä €".to_owned()))].into());
        let args = ["sh", "-c", "echo $WORD; echo $DEVTETHER_LAUNCH_ID >&2"].map(str::to_owned).to_vec();
        let cwd = std::env::temp_dir().to_string_lossy().into_owned();
        let spec = RunInTerminalArguments { args, cwd, env, ..RunInTerminalArguments::default() };
        let running = async {
            let Some(DapIncoming::Request(requested)) = inbox.next().await else { panic!("no request") };
            run_in_terminal(requested, Arc::clone(&record), "the mark".to_owned()).await;
        };
        let (answer, ()) = tokio::join!(server.request(&spec, Duration::from_secs(30)), running);
        assert!(answer.unwrap().process_id.is_some());
        let printed = record.read_output(&RingQuery { limit: 10, ..RingQuery::default() }).entries;
        let mut printed: Vec<_> = printed.iter().map(|it| (it.kind.as_str(), it.text.as_str())).collect();
        printed.sort_unstable();
        assert_eq!(printed, [("stderr", "the mark\n"), ("stdout", "ä €\n")]);
    }
}
