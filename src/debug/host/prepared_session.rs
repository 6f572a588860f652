//! A session that can be started: its adapter is found, and how it is started is planned. Starting it makes it a managed one.
//!
//! Does not depend on the registry.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt;
use tether_backend::output_reader::OutputPiece;
use tether_base::clock::now_ms;
use tether_base::error::{Error, Result};
use tether_base::ring::RingQuery;
use tether_dap::types::InitializeArguments;
use tether_process::Process;
use tokio::sync::mpsc;

use super::managed_session::{ManagedSession, REQUEST_TIMEOUT};
use super::process_survey::{ProcessSurvey, SurveyScope};
use super::session_end_driver::{SessionEnding, SessionRun, drive_to_end};
use super::session_request::SessionRequest;
use crate::adapters::{self, Adapter, ConnectMethod, DebugTargetKind, LaunchPlan, PRINTED_NOTHING, Quirks};
use crate::debug::breakpoints::BreakpointStore;
use crate::debug::session::debug_session::DebugSession;
use crate::debug::session::event_log::EventLog;
use crate::debug::session::target::TargetPlan;
use crate::debug::session::task::SessionProgram;

/// For an adapter to be connected, and then for its first response: from a slow disk lldb-dap loads for 10 s and more.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How many pieces of output the error of a failed start has.
const LAST_OUTPUT_PIECES: usize = 10;
/// For the response to `launch` or `attach`: Delve compiles first.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(180);

/// A session that can be started. Nothing of it runs yet.
pub(in crate::debug) struct PreparedSession {
    /// The session's id.
    pub id: String,
    /// What it is started with.
    pub request: SessionRequest,
    /// Its adapter.
    pub row: &'static Adapter,
    /// How the adapter is started and connected.
    pub plan: LaunchPlan,
    /// The launch id for its processes.
    pub launch_id: String,
    /// Its breakpoints.
    pub breakpoints: BreakpointStore,
    /// The log to which output and events are appended.
    pub event_log: Arc<EventLog>,
    /// What its caller should know of its start.
    pub note: Option<String>,
    /// Where the adapter's scripts lie.
    pub tool_folder: Option<PathBuf>,
    /// The session that it is a further program of.
    pub joins: Option<ManagedSession>,
    /// Further programs are started for the session.
    pub awaits_programs: bool,
}

impl PreparedSession {
    /// Why the session is lost if the supervisor exits.
    pub fn loss_message(&self) -> String {
        let name = self.row.name;
        let gone = |which: &str| format!("{name}, {which}, went with it, and so did its program");
        let loss = match (&self.request.debug_target.kind, &self.plan.connect, self.plan.is_program) {
            _ if self.request.debug_target.is_listener() => {
                "what was attached to could not be attached to again".to_owned()
            }
            (DebugTargetKind::Pid(pid), ..) => format!("{name} has let go of process {pid}: attach to it again"),
            (_, _, true) => format!("{name}'s program went with its connection"),
            (_, ConnectMethod::Pipes, _) => gone("which spoke over its pipes"),
            (_, ConnectMethod::ConnectBack, _) => gone("which takes one connection only"),
            _ => format!("{name} went with it, and so did the program that it had launched"),
        };
        format!("the supervisor died, and {loss}")
    }
}

/// Starts a session. The returned future drives it to its end, and must be spawned.
pub(super) async fn start_adapter(
    prepared: PreparedSession,
) -> Result<(ManagedSession, impl Future<Output = ()> + Send)> {
    let PreparedSession { id, request, row, plan, launch_id, breakpoints, event_log, note, tool_folder, .. } = prepared;
    let (by_pipe, is_program, allows_run_in_terminal) =
        (plan.output_by_pipe, plan.is_program, plan.allows_run_in_terminal());
    adapters::verify_target_listener(&request.debug_target).await?;
    // Before it is connected to: a virtual machine with a debugger does not listen.
    let attached_process = adapters::find_attached_process(&request.debug_target).await;
    event_log.read_reports(&row.quirks);
    let mut host = adapters::start_adapter(row.name, plan, &launch_id, CONNECT_TIMEOUT).await?;
    let plan = TargetPlan {
        initialize: initialize_request(row.id, allows_run_in_terminal),
        name: request.name.clone(),
        start: host.start.clone(),
        is_child_process: false,
        quirks: Quirks {
            test_failure_filter: row.quirks.test_failure_filter.filter(|_| request.is_test_run),
            ..row.quirks
        },
        is_attached: request.debug_target.is_attach(),
        process: attached_process.clone(),
        stop_on_entry: request.debug_target.stop_on_entry(),
        initialize_deadline: CONNECT_TIMEOUT,
        deadline: REQUEST_TIMEOUT,
        start_deadline: LAUNCH_TIMEOUT,
        launch_id: launch_id.clone(),
        allows_run_in_terminal,
    };
    let program = SessionProgram {
        plan,
        connector: Arc::clone(&host.connect),
        children: host.children.take(),
        process_reports: host.process_reports.take(),
        is_core: request.debug_target.core_file().is_some(),
        pid: host.pid().filter(|_| is_program),
    };
    let (session, program, driver) = match prepared.joins {
        Some(first) => {
            let (index, driver) = first.session.add_program(program);
            (first.session.clone(), index, driver.boxed())
        }
        None => {
            let (session, driver) = DebugSession::open(program, breakpoints, event_log);
            session.set_awaits_programs(prepared.awaits_programs);
            (session, 0, driver.boxed())
        }
    };
    session.shared.with_state(|state| state.stops_at_uncaught |= request.stops_at_uncaught);
    let ending = Arc::new(SessionEnding::default());
    let (pid, started_at) = (host.pid(), now_ms());
    let output = std::mem::replace(&mut host.output, mpsc::channel(1).1);
    let output = copy_output(output, Arc::clone(session.event_log()), by_pipe);
    let (snapshots, request) = (session.watch(), Arc::new(request));
    let attached = attached_process.as_ref().map(Process::pid);
    let scope = SurveyScope {
        program,
        adapter: row,
        target: &request.debug_target,
        first: pid.filter(|_| is_program).or(attached),
        adapter_process: pid.filter(|_| !is_program),
        tool_folder,
    };
    let survey = Arc::new(ProcessSurvey::new(Arc::clone(&session.shared), scope));
    let run = SessionRun {
        session: Some(driver),
        program,
        snapshots,
        host: Some(host),
        ending: Arc::clone(&ending),
        survey: Arc::clone(&survey),
    };
    let (ended, watched) = (drive_to_end(run, output, is_program), Arc::clone(&survey));
    let lifetime = async move {
        tokio::select! {
            () = ended => {}
            () = watched.watch() => {}
        }
    };
    let managed = ManagedSession {
        id,
        request,
        adapter: row,
        session,
        started_at,
        code_swapped_at: Default::default(),
        pid,
        is_program,
        program,
        companions: Arc::default(),
        attached_process,
        launch_id,
        note,
        ending,
        survey: Some(survey),
    };
    Ok((managed, lifetime))
}

/// Logs what the started process prints: the program's output, or its adapter's.
async fn copy_output(mut output: mpsc::Receiver<OutputPiece>, event_log: Arc<EventLog>, is_program: bool) {
    while let Some(piece) = output.recv().await {
        match piece {
            OutputPiece::Stdout(text) => event_log.push_output(if is_program { "stdout" } else { "adapter" }, &text),
            OutputPiece::Stderr(text) => event_log.push_output(if is_program { "stderr" } else { "adapter" }, &text),
            OutputPiece::Dropped(count) => event_log.push_event("lost", format!("{count} pieces of output")),
        }
    }
}

fn initialize_request(adapter: &str, supports_run_in_terminal_request: bool) -> InitializeArguments {
    InitializeArguments {
        adapter_id: adapter.to_owned(),
        client_id: Some("devtether".to_owned()),
        client_name: Some("devtether".to_owned()),
        locale: Some("en".to_owned()),
        lines_start_at1: true,
        columns_start_at1: true,
        path_format: Some("path".to_owned()),
        supports_variable_type: true,
        supports_variable_paging: true,
        supports_run_in_terminal_request,
        supports_start_debugging_request: true,
    }
}

/// The error of a start that has failed, with the last output of the adapter.
pub(in crate::debug) fn start_error(managed: &ManagedSession) -> Error {
    let what = if managed.is_attached() { "attach to" } else { "launch" };
    let error = Error::other(format!("cannot {what} {} with {}", managed.request.name, managed.adapter.name));
    let problem = managed.problem().unwrap_or_else(|| "it ended at once".to_owned());
    let query = RingQuery { limit: LAST_OUTPUT_PIECES, ..RingQuery::default() };
    let output = managed.session.event_log().read_output(&query).entries;
    let output = output.into_iter().map(|it| it.text).collect::<String>();
    let because = match output.trim_end() {
        "" => problem,
        // The adapter has told it as an event.
        output => format!("{}; it printed:\n{output}", problem.trim_end_matches(PRINTED_NOTHING)),
    };
    error.because(because).hint("`tether adapters` lists the installed adapters; `tether logs` has more")
}
