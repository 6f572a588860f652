//! Probe: runs a program to a line, evaluates expressions there, and ends the program.

use std::path::Path;

use tether_base::error::Result;

use super::launch_attach::program_request;
use crate::api::debug::results::{EvaluatedValue, ProbeReport, ProbeValue};
use crate::api::debug::values::FileLine;
use crate::api::debug::{DEFAULT_STOP_TIMEOUT, DebugLaunchParams, DebugProbeParams};
use crate::config::DotnetChoice;
use crate::debug::inspect;
use crate::debug::{ManagedSession, display_path};
use crate::session_host::operations::convert;
use crate::session_host::operations::stop_report::stop_report;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};
use crate::vocabulary::RunState;

impl OperationHandler for DebugProbeParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<ProbeReport> {
        run_probe(self, context).await
    }
}

/// Runs the program to the line, evaluates the expressions, and ends the program.
async fn run_probe(params: DebugProbeParams, context: &SupervisorContext) -> Result<ProbeReport> {
    let sessions = &context.sessions;
    let spot = FileLine::parse(&params.at, None)?;
    let program = params.program.as_deref().unwrap_or(&spot.file);
    let launch = DebugLaunchParams { args: params.args, cwd: params.cwd, ..DebugLaunchParams::default() };
    let request = program_request(sessions, &launch, program, &DotnetChoice::default())?;
    let probing = sessions.start_unlisted_session(request, Path::new(&spot.file), spot.line).await?;
    let timeout = params.timeout.unwrap_or(DEFAULT_STOP_TIMEOUT).duration();
    let waited = probing.managed.session.wait_for_stop(timeout).await;
    let report = stop_report(&probing.managed, waited, (None, params.budget), sessions).await;
    let mut values = Vec::new();
    for expression in params.expressions.unwrap_or_default() {
        values.push(evaluate_at_stop(&probing.managed, expression, report.stopped).await);
    }
    probing.managed.stop(Some(false)).await;
    let is_ended = matches!(report.state, RunState::Terminated | RunState::Disconnected);
    let never = (!report.stopped && is_ended).then(|| {
        format!("{}:{} was never reached", display_path(sessions.workspace(), Path::new(&spot.file)), spot.line)
    });
    Ok(ProbeReport {
        stopped: report.stopped,
        state: report.state,
        stop_reason: report.stop_reason,
        waited_ms: report.waited_ms,
        exit_code: report.exit_code,
        message: never.into_iter().chain(report.message).reduce(|never, message| format!("{never}: {message}")),
        snapshot: report.snapshot.unwrap_or_default(),
        values,
        notes: report.notes.into_iter().chain(probing.managed.note.clone()).collect(),
    })
}

/// Evaluates `expression` at the stop of the probe. `stopped`: whether there is one.
async fn evaluate_at_stop(managed: &ManagedSession, expression: String, stopped: bool) -> ProbeValue {
    if !stopped {
        return ProbeValue { expression, value: None, error: Some("the line was not reached".to_owned()) };
    }
    match inspect::evaluate(&managed.session, &expression, None, "watch").await {
        Ok((inside, answer)) => {
            let value = convert::evaluated_value(answer.result, answer.kind, inside);
            // The program ends with the probe: nobody can look inside the value later.
            let value = EvaluatedValue { variables_reference: None, ..value };
            ProbeValue { expression, value: Some(value), error: None }
        }
        Err(error) => ProbeValue { expression, value: None, error: Some(error.causes().join(": ")) },
    }
}
