//! The operation `test/run`: builds the tests, and runs each configuration in a host of its own.

use std::time::Instant;

use tether_base::error::{Error, ErrorKind, Result};
use tokio::time::timeout_at;

use super::debug_launch::WantedTests;
use super::prepare::{PreparedTests, prepare_tests};
use super::report::ReportBuilder;
use crate::api::extension_tests::{DEFAULT_TEST_TIMEOUT, TestReport, TestRunParams};
use crate::config::EvaluatedTests;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};
use crate::window::Caller;
use crate::window::test_host::{TestEvent, TestFailure, TestHost, TestHostFolder, TestSelection};

impl OperationHandler for TestRunParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<TestReport> {
        let began = Instant::now();
        let workspace = context.sessions.workspace();
        let PreparedTests { tests, mut notes } = Box::pin(prepare_tests(context, self.config.as_deref(), call)).await?;
        let limit = self.timeout.unwrap_or(DEFAULT_TEST_TIMEOUT).duration();
        let deadline = tokio::time::Instant::now() + limit;
        let WantedTests { name, file, .. } = WantedTests::named(self.name.as_deref());
        let selection = TestSelection { name, file, waits: false };
        let (mut report, several) = (ReportBuilder::new(workspace), tests.len() > 1);
        for evaluated in tests {
            report.begin(several.then(|| evaluated.label.clone()));
            notes.extend(evaluated.notes.iter().cloned());
            match timeout_at(deadline, run_host(context, &evaluated, &selection, &mut report, call)).await {
                Ok(ran) => notes.extend(ran?),
                Err(_) => {
                    let waited = humantime::format_duration(limit);
                    let message = format!("the tests did not end within {waited}, and their host was closed");
                    report.add_error(&TestFailure { message, frames: Vec::new() });
                    break;
                }
            }
        }
        if let (Some(names), Some(wanted)) = (report.unknown_names(), &self.name) {
            let error = Error::new(ErrorKind::NotFound, format!("no test or suite is named {wanted:?}"));
            return Err(error.because(format!("there are: {names}")));
        }
        Ok(report.finish(began.elapsed().as_millis() as u64, notes))
    }
}

/// `src/test/extension.test.ts`
pub fn is_test_file(name: &str) -> bool {
    let endings = [".ts", ".js", ".mts", ".cts", ".mjs", ".cjs", ".tsx", ".jsx"];
    !name.contains(' ') && endings.iter().any(|ending| name.ends_with(ending))
}

/// Launches a host, and runs its tests; returns what a user should know of it. Errors: it cannot be launched.
async fn run_host(
    context: &SupervisorContext,
    evaluated: &EvaluatedTests,
    selection: &TestSelection,
    report: &mut ReportBuilder,
    caller: &dyn Caller,
) -> Result<Vec<String>> {
    let folder = TestHostFolder::create(&context.paths.state)?;
    let workspace = context.sessions.workspace();
    caller.report_progress(&format!("launching the host of {}", evaluated.label));
    let progress = |text: &str| caller.report_progress(text);
    let launching = TestHost::launch(folder, workspace, &evaluated.window, (&evaluated.tests, selection), progress);
    let host = Box::pin(launching).await?;
    let notes = host.notes().to_vec();
    caller.report_progress("running the tests");
    let mut done = 0;
    let mut total = 0;
    let ended = host
        .wait_until_ended(&mut |event| {
            match &event {
                TestEvent::Total { tests } => total += tests,
                TestEvent::Test { titles, .. } => {
                    done += 1;
                    caller.report_progress(&format!("{done} of {total}: {}", titles.join(" > ")));
                }
                _ => {}
            }
            report.add(event);
        })
        .await;
    if let Err(error) = ended {
        report.add_error(&TestFailure { message: error.to_string(), frames: Vec::new() });
    }
    caller.report_progress("closing the host");
    host.close().await?;
    Ok(notes)
}
