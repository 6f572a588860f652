//! Whole sessions of our own client of DAP: a scripted adapter at one end, random operations of the supervisor at the other.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use devtether::adapters::{Connector, Quirks};
use devtether::debug::breakpoints::{BreakpointConditions, BreakpointStore};
use devtether::debug::inspect;
use devtether::debug::inspect::{ScopedId, VariableParent};
use devtether::debug::{DebugSession, Resume, SessionProgram, TargetPlan};
use devtether::vocabulary::RunState;
use futures_util::FutureExt;
use serde_json::json;
use tether_dap::types::{Fields, InitializeArguments, StartRequest};
use tether_dap::{DapConnection, DapError};
use tokio::io::split;
use tokio::time::{Instant, timeout};

use super::choices::Choices;
use super::dap_adapter::serve_adapter;
use super::editor::SessionOutcome;

/// For a request to the adapter.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);
/// Of virtual time: an operation is a handful of requests, each with its deadline.
const OPERATION_DEADLINE: Duration = Duration::from_secs(3600);
/// A file that is there, with a breakpoint.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
/// How many bytes the connection holds.
const PIPE: usize = 16 << 10;

/// A session of the supervisor with any adapter.
pub async fn adapter_session(choices: Choices, limit: usize) -> SessionOutcome {
    let breakpoints = BreakpointStore::in_memory();
    let conditions = BreakpointConditions::default();
    breakpoints.set_line(SOURCE.as_ref(), 2, conditions).await.unwrap();
    let (session, driver) = DebugSession::open(plan_program(&choices), breakpoints, Arc::default());
    let driver = tokio::spawn(driver);
    let mut outcome = SessionOutcome::default();
    let start = Duration::from_secs(choices.pick(&[1, 15, 60]));
    let started = bounded("wait_for_start", session.wait_for_start(0, start)).await;
    outcome.stops += usize::from(started == RunState::Stopped);
    while outcome.requests < limit && !choices.is_at_end() {
        run_operation(&session, &choices, &mut outcome).await;
    }
    bounded("stop", session.stop(choices.is_one_in(2))).await;
    drop(session);
    bounded("the session's task", driver).await.unwrap();
    outcome
}

async fn bounded<T>(name: &str, operation: impl Future<Output = T>) -> T {
    timeout(OPERATION_DEADLINE, operation).await.unwrap_or_else(|_| panic!("`{name}` does not end"))
}

/// Each target of the session has a scripted adapter of its own.
fn plan_program(choices: &Choices) -> SessionProgram {
    let choices_of_adapter = choices.clone();
    let connector: Connector = Arc::new(move || {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        tokio::spawn(serve_adapter(theirs, choices_of_adapter.clone()));
        let (read, write) = split(ours);
        async move { Ok::<_, DapError>(DapConnection::over(read, write)) }.boxed()
    });
    let quirks = Quirks {
        sends_initial_pause: choices.is_one_in(4),
        close_means_terminated: choices.is_one_in(4),
        breakpoints_accumulate: choices.is_one_in(4),
        binds_late: choices.is_one_in(4),
        hides_name_errors: choices.is_one_in(4),
        resumes_one_thread: choices.is_one_in(4),
        ..Quirks::default()
    };
    let plan = TargetPlan {
        initialize: InitializeArguments { adapter_id: "scripted".to_owned(), ..InitializeArguments::default() },
        name: String::new(),
        is_child_process: false,
        start: StartRequest::Launch(Fields::from_iter([("name".to_owned(), json!("scripted"))])),
        quirks,
        is_attached: choices.is_one_in(2),
        process: None,
        stop_on_entry: choices.is_one_in(2),
        launch_id: "scripted".to_owned(),
        allows_run_in_terminal: false,
        initialize_deadline: REQUEST_DEADLINE,
        deadline: REQUEST_DEADLINE,
        start_deadline: REQUEST_DEADLINE,
    };
    SessionProgram { plan, connector, children: None, process_reports: None, is_core: false, pid: None }
}

async fn run_operation(session: &DebugSession, choices: &Choices, outcome: &mut SessionOutcome) {
    let began = Instant::now();
    let (name, succeeded) = operate(session, choices, outcome).await;
    outcome.record(name, began.elapsed(), succeeded);
}

async fn operate(session: &DebugSession, choices: &Choices, outcome: &mut SessionOutcome) -> (&'static str, bool) {
    let id = ScopedId { target: choices.below(session.snapshot().targets.len().clamp(1, 200)), id: choices.number() };
    let parent = match choices.below(3) {
        0 => VariableParent { frame: None, reference: None },
        1 => VariableParent { frame: Some(id), reference: None },
        _ => VariableParent { frame: None, reference: Some(id) },
    };
    let (text, number) = (choices.text(), choices.number());
    match choices.below(16) {
        0 => ("threads", !bounded("threads", inspect::list_threads(session)).await.is_empty()),
        1 => {
            let thread = choices.is_one_in(3).then_some(id);
            (
                "stack",
                bounded("stack", inspect::read_stack(session, thread, Some(number), Some(choices.number())))
                    .await
                    .is_ok(),
            )
        }
        2 => ("variables", bounded("variables", inspect::list_variables(session, &parent)).await.is_ok()),
        3 => {
            let page = inspect::variables_page(session, id, number, choices.number());
            ("variables_page", bounded("variables_page", page).await.is_ok())
        }
        4 => {
            let names = [text, "value0".to_owned(), "[0]1".to_owned()];
            (
                "variables_by_name",
                bounded("variables_by_name", inspect::variables_by_name(session, id, &names)).await.is_ok(),
            )
        }
        5 => {
            let context = choices.pick(&["watch", "repl", "hover"]);
            let frame = choices.is_one_in(2).then_some(id);
            ("evaluate", bounded("evaluate", inspect::evaluate(session, &text, frame, context)).await.is_ok())
        }
        6 => (
            "set_variable",
            bounded("set_variable", inspect::set_variable(session, "value0", &text, &parent)).await.is_ok(),
        ),
        7 => ("source_text", bounded("source_text", inspect::source_text(session, id, None)).await.is_ok()),
        8 => (
            "pause",
            bounded("pause", inspect::pause_thread(session, choices.is_one_in(2).then_some(id))).await.is_ok(),
        ),
        9 => ("exception_info", bounded("exception_info", inspect::exception_info(session, id)).await.is_some()),
        10 => {
            let snapshot = session.snapshot();
            let Some((target, stop)) = snapshot.stops().first().map(|(target, stop)| (*target, (*stop).clone())) else {
                return ("stop_cause", false);
            };
            let cause = bounded("stop_cause", inspect::stop_cause(session, target, &stop)).await;
            drop(cause.thrown_exception());
            ("stop_cause", true)
        }
        11 => {
            let snapshot = session.snapshot();
            let Some((target, stop)) = snapshot.stops().first().map(|(target, stop)| (*target, (*stop).clone())) else {
                return ("summarize_stop", false);
            };
            let thread = ScopedId { target, id: stop.thread_id.unwrap_or(number) };
            let budget = choices.pick(&[0, 1, 200, 4_000]);
            let summary = bounded("summarize_stop", inspect::summarize_stop(session, thread, stop.kind, budget)).await;
            ("summarize_stop", summary.is_ok())
        }
        12 | 13 => {
            let how = choices.pick(&[Resume::Continue, Resume::Over, Resume::Into, Resume::Out]);
            let thread = choices.is_one_in(4).then_some((id.target, number));
            ("resume", bounded("resume", session.resume(how, thread)).await.is_ok())
        }
        _ => {
            let wait = Duration::from_millis(choices.pick(&[1, 500, 5_000]));
            let waited = bounded("wait_for_stop", session.wait_for_stop(wait)).await;
            outcome.stops += usize::from(waited.stop.is_some());
            drop(session.event_log().take_notices());
            ("wait_for_stop", true)
        }
    }
}
