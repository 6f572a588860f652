//! Tests of an extension under the debugger: a host that waits until its breakpoints are set, and a session attached to it.
//!
//! The host ends with its tests, or with the session, whichever is first.

use std::path::{Path, PathBuf};

use serde_json::json;
use tether_base::error::{Error, Result};
use tracing::{info, warn};

use super::prepare::{PreparedTests, prepare_tests};
use super::report::ReportBuilder;
use super::run::is_test_file;
use crate::api::debug::DebugLaunchParams;
use crate::config::{EvaluatedTests, TestRunner};
use crate::debug::SessionRequest;
use crate::debug::program::{Address, DebugTarget, DebugTargetKind};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::handlers::debug::launch::{SessionPlace, single_start};
use crate::supervisor::handlers::debug::started_programs::StartedSession;
use crate::supervisor::hosted_sessions::ListedSession;
use crate::window::Caller;
use crate::window::test_host::{TestHost, TestHostFolder, TestSelection};

/// The field by which tether's own adapter stops where a test fails.
const STOPS_AT_TEST_FAILURES: &str = "__stopsAtTestFailures";
/// The test's failure is an exception that Mocha catches.
const NEEDS_FAILURE_FLAG: &str =
    "an exception of a test is caught by Mocha, so that `--uncaught` does not stop at it: `--stop-on-failure` does";

/// Tests that are built, and are to be debugged.
pub struct ExtensionTestLaunch {
    evaluated: EvaluatedTests,
    selection: TestSelection,
    /// Without its target, which is known once the host is launched.
    pub request: SessionRequest,
    notes: Vec<String>,
}

/// Which tests are debugged.
#[derive(Default)]
pub struct WantedTests<'a> {
    /// As for `test/run`.
    pub config: Option<&'a str>,
    pub name: Option<String>,
    /// All tests of a source file.
    pub file: Option<PathBuf>,
}

impl WantedTests<'_> {
    /// The test, suite or file of that name; without one all.
    pub fn named(name: Option<&str>) -> Self {
        let is_file = name.is_some_and(is_test_file);
        let (file, name) = (name.filter(|_| is_file).map(PathBuf::from), name.filter(|_| !is_file).map(str::to_owned));
        WantedTests { config: None, name, file }
    }
}

/// Builds the tests. Errors: as of `test/run`; there are several configurations, and none is named; the program's arguments or
/// folder are given.
pub async fn plan_test_launch(
    supervisor: &SupervisorContext,
    it: &DebugLaunchParams,
    wanted: WantedTests<'_>,
    caller: &dyn Caller,
) -> Result<ExtensionTestLaunch> {
    if it.args.is_some() || it.cwd.is_some() {
        let error = Error::usage("cannot change how the tests of an extension are run");
        return Err(error.because("`args` and `cwd` are those of a program").hint("change their configuration"));
    }
    let PreparedTests { mut tests, mut notes } = Box::pin(prepare_tests(supervisor, wanted.config, caller)).await?;
    if tests.len() > 1 {
        let labels: Vec<String> = tests.iter().map(|it| format!("{:?}", it.label)).collect();
        let error = Error::usage("cannot tell which tests to debug");
        return Err(error
            .because(format!("there are several configurations: {}", labels.join(", ")))
            .hint("name one: `config`; each runs in a host of its own"));
    }
    let mut evaluated = tests.remove(0);
    evaluated.window.env.extend(it.env.iter().map(|(name, value)| (name.clone(), value.clone().unwrap_or_default())));
    notes.extend(evaluated.notes.iter().cloned());
    let stops_at_failure = it.stop_on_failure.unwrap_or_default();
    notes.extend((!stops_at_failure && it.stop_on_uncaught == Some(true)).then(|| NEEDS_FAILURE_FLAG.to_owned()));
    let selection = TestSelection { name: wanted.name, file: wanted.file, waits: true };
    let what = selection.name.clone().or_else(|| selection.file.as_ref().map(|file| file.display().to_string()));
    let mut fields = serde_json::Map::new();
    // As a configuration of launch.json names it.
    fields.insert("type".to_owned(), json!("extensionHost"));
    if stops_at_failure {
        fields.insert(STOPS_AT_TEST_FAILURES.to_owned(), json!(true));
    }
    let request = SessionRequest {
        name: what.map_or_else(|| format!("tests {}", evaluated.label), |what| format!("test {what}")),
        debug_target: DebugTarget { cwd: supervisor.sessions.workspace().to_owned(), fields, ..DebugTarget::default() },
        adapter: it.adapter.clone(),
        launch_type: Some("pwa-extensionHost".to_owned()),
        is_test_run: true,
        ..SessionRequest::default()
    };
    Ok(ExtensionTestLaunch { evaluated, selection, request, notes })
}

impl ExtensionTestLaunch {
    /// Launches the host, attaches a session to it, and lets its tests begin. Errors: the host cannot be launched, or has no
    /// inspector; the session cannot be attached.
    pub async fn start(
        self,
        context: &SupervisorContext,
        caller: &dyn Caller,
        place: SessionPlace,
    ) -> Result<StartedSession> {
        let ExtensionTestLaunch { evaluated, selection, mut request, mut notes } = self;
        let (folder, workspace) = (TestHostFolder::create(&context.paths.state)?, context.sessions.workspace());
        caller.report_progress(&format!("launching the host of {}", evaluated.label));
        let progress = |text: &str| caller.report_progress(text);
        let launching =
            TestHost::launch(folder, workspace, &evaluated.window, (&evaluated.tests, &selection), progress);
        let host = Box::pin(launching).await?;
        let port = host.inspector_port().ok_or_else(|| {
            Error::other("cannot debug the tests").because("their extension host has opened no inspector")
        })?;
        notes.extend(host.notes().iter().cloned());
        request.debug_target.kind = DebugTargetKind::Listener(Address::loopback(port));
        let starting = context.start_session(single_start(request, Some(TestRunner::Mocha)), place);
        let first = Box::pin(starting).await?;
        host.release()?;
        let following = follow_host(host, first.clone(), workspace);
        context.hosted.run_task(following);
        Ok(StartedSession { first, notes })
    }
}

/// Closes the host when its tests have ended, or the session has.
fn follow_host(host: TestHost, session: ListedSession, workspace: &Path) -> impl Future<Output = ()> + Send + 'static {
    let mut report = ReportBuilder::new(workspace);
    async move {
        let session_ended = async {
            match &session {
                ListedSession::Here(managed) => managed.wait_until_ended().await,
                ListedSession::Hosted(hosted) => hosted.wait_until_ended().await,
            }
        };
        let mut on_event = |event| report.add(event);
        tokio::select! {
            ended = host.wait_until_ended(&mut on_event) => {
                if let Err(error) = ended {
                    warn!("{error}");
                }
            }
            () = session_ended => {}
        }
        let done = report.finish(0, Vec::new());
        info!("the tests under the debugger: {} passed, {} failed, {} pending", done.passed, done.failed, done.pending);
        if let Err(error) = host.close().await {
            warn!("{error}");
        }
    }
}
