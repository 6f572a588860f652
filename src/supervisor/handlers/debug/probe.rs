//! Probe: runs a program to a line, or through several hits of lines, evaluates expressions there, and ends the program.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tether_base::clipped_text::clip_bytes;
use tether_base::error::{Error, Result};

use super::launch::program_request;
use crate::api::debug::results::{EvaluatedValue, ProbeHit, ProbeReport, ProbeValue, StopReport};
use crate::api::debug::values::FileLine;
use crate::api::debug::{DEFAULT_SNAPSHOT_TOKENS, DEFAULT_STOP_TIMEOUT, DebugLaunchParams, DebugProbeParams};
use crate::config::DotnetChoice;
use crate::debug::inspect;
use crate::debug::{ManagedSession, Resume, SessionRegistry, display_path};
use crate::session_host::operations::convert;
use crate::session_host::operations::stop_report::{BYTES_PER_TOKEN, stop_report};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};
use crate::vocabulary::RunState;

impl OperationHandler for DebugProbeParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<ProbeReport> {
        run_probe(self, context, call).await
    }
}

/// How many hits of several lines are collected, and the most that may be asked for.
const DEFAULT_HITS: u32 = 20;
const MAX_HITS: u32 = 1000;
/// How much of a value a table has, in bytes.
const MAX_CELL: usize = 200;

/// Runs the program to the line, evaluates the expressions, and ends the program.
async fn run_probe(
    params: DebugProbeParams,
    context: &SupervisorContext,
    call: &OperationCall<'_>,
) -> Result<ProbeReport> {
    let sessions = &context.sessions;
    let spot = FileLine::parse(&params.at, None)?;
    let others: Vec<FileLine> =
        params.also.iter().flatten().map(|at| FileLine::parse(at, None)).collect::<Result<_>>()?;
    let max = params.max.unwrap_or(if others.is_empty() { 1 } else { DEFAULT_HITS });
    if max == 0 || max > MAX_HITS {
        return Err(Error::usage(format!("cannot collect {max} hits")).hint(format!("`max` is from 1 to {MAX_HITS}")));
    }
    let program = params.program.as_deref().unwrap_or(&spot.file);
    let launch = DebugLaunchParams { args: params.args, cwd: params.cwd, ..DebugLaunchParams::default() };
    let mut request = program_request(sessions, &launch, program, &DotnetChoice::default())?;
    request.debug_target.caller_env.clone_from(call.environment);
    let lines: Vec<(PathBuf, u32)> =
        [&spot].into_iter().chain(&others).map(|it| (PathBuf::from(&it.file), it.line)).collect();
    let probing = sessions.start_unlisted_session(request, &lines).await?;
    let timeout = params.timeout.unwrap_or(DEFAULT_STOP_TIMEOUT).duration();
    let expressions = params.expressions.unwrap_or_default();
    let mut report = if max == 1 {
        probe_once(&probing.managed, timeout, (expressions, params.budget), context).await
    } else {
        let hits = HitCollector { managed: &probing.managed, sessions, expressions, budget: params.budget };
        hits.collect(max as usize, timeout).await
    };
    probing.managed.stop(Some(false)).await;
    let is_ended = matches!(report.state, RunState::Terminated | RunState::Disconnected);
    if !report.stopped && is_ended {
        let place = format!("{}:{}", display_path(sessions.workspace(), Path::new(&spot.file)), spot.line);
        let never = format!("{place} was never reached");
        report.message = [never].into_iter().chain(report.message).reduce(|never, why| format!("{never}: {why}"));
    }
    report.notes.extend(probing.managed.note.clone());
    Ok(report)
}

/// The first stop, with everything that is visible there.
async fn probe_once(
    managed: &ManagedSession,
    timeout: Duration,
    (expressions, budget): (Vec<String>, Option<u32>),
    context: &SupervisorContext,
) -> ProbeReport {
    let waited = managed.session.wait_for_stop(timeout).await;
    let report = stop_report(managed, waited, (None, budget), &context.sessions).await;
    let mut values = Vec::new();
    for expression in expressions {
        values.push(evaluate_at_stop(managed, expression, report.stopped).await);
    }
    ProbeReport {
        stopped: report.stopped,
        state: report.state,
        stop_reason: report.stop_reason,
        waited_ms: report.waited_ms,
        exit_code: report.exit_code,
        message: report.message,
        snapshot: report.snapshot.unwrap_or_default(),
        values,
        notes: report.notes,
        ..ProbeReport::default()
    }
}

/// Collects the hits of a probe.
struct HitCollector<'a> {
    managed: &'a ManagedSession,
    sessions: &'a SessionRegistry,
    /// None: the local variables.
    expressions: Vec<String>,
    /// Of the result, in tokens.
    budget: Option<u32>,
}

impl HitCollector<'_> {
    /// Until there are that many, the program ends, the time is over, or the result is large enough.
    async fn collect(&self, max: usize, timeout: Duration) -> ProbeReport {
        let (began, mut hits, mut size) = (Instant::now(), Vec::new(), 0);
        let most = self.budget.unwrap_or(DEFAULT_SNAPSHOT_TOKENS) as usize * BYTES_PER_TOKEN;
        let (last, why) = loop {
            let waited = self.managed.session.wait_for_stop(timeout.saturating_sub(began.elapsed())).await;
            let snapshot = if self.expressions.is_empty() { self.budget } else { Some(0) };
            let report = stop_report(self.managed, waited, (None, snapshot), self.sessions).await;
            if !report.stopped {
                let is_late = began.elapsed() >= timeout;
                break (report, is_late.then(|| format!("no further within {} s", timeout.as_secs())));
            }
            let hit = self.read_hit(&report).await;
            size += hit.values.iter().map(cell_size).sum::<usize>();
            hits.push(hit);
            if hits.len() == max {
                break (report, Some(format!("`max` is {max}, and the program was ended there")));
            }
            if size > most {
                let why = "the result has reached its `budget`, and the program was ended there".to_owned();
                break (report, Some(why));
            }
            if let Err(error) = self.managed.session.resume(Resume::Continue, None).await {
                break (report, Some(error.to_string()));
            }
        };
        let is_over = last.stop_reason.is_none();
        ProbeReport {
            stopped: !hits.is_empty(),
            state: last.state,
            waited_ms: began.elapsed().as_millis() as u64,
            exit_code: last.exit_code,
            message: why.or(last.message),
            hits,
            not_reached: if is_over { last.not_reached } else { Vec::new() },
            notes: last.notes,
            ..ProbeReport::default()
        }
    }

    async fn read_hit(&self, report: &StopReport) -> ProbeHit {
        let location = report.stop_reason.as_ref().and_then(|reason| reason.location.as_ref());
        let at = location.map(|it| format!("{}:{}", it.source_path.as_deref().unwrap_or("?"), it.line_number));
        let mut values = Vec::new();
        for expression in &self.expressions {
            values.push(evaluate_at_stop(self.managed, expression.clone(), true).await);
        }
        let locals = report.snapshot.iter().flat_map(|it| &it.locals).filter(|_| self.expressions.is_empty());
        values.extend(locals.map(|it| {
            let (result, of) = (it.value.clone(), it.of.clone());
            let value = EvaluatedValue { result, of, ..EvaluatedValue::default() };
            ProbeValue { expression: it.name.clone(), value: Some(value), error: None }
        }));
        for value in values.iter_mut().filter_map(|it| it.value.as_mut()) {
            value.result = clip_bytes(&value.result, MAX_CELL);
        }
        ProbeHit { at: at.unwrap_or_default(), values }
    }
}

fn cell_size(value: &ProbeValue) -> usize {
    value.value.as_ref().map_or(0, |it| it.result.len()).saturating_add(value.expression.len())
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
