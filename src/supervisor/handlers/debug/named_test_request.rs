//! A test by its name: from how it is run to a session request.

use std::path::{Path, PathBuf};

use tether_base::error::{ErrorContext, Result};

use super::cargo_test;
use super::launch::RequestedLaunch;
use super::test_program::{TestProgram, test_program};
use crate::api::debug::DebugLaunchParams;
use crate::config::{NamedTest, TestRun, TestRunner, describe_script_options};
use crate::debug::SessionRequest;
use crate::debug::program::{DebugTarget, DebugTargetKind};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::handlers::extension_tests::debug_launch::{WantedTests, plan_test_launch};
use crate::window::Caller;

/// V8 says of an exception whether something catches it, and not what.
const CAUGHT_BY_RUNNER: &str = "an exception of a test is caught by its runner, so that `--uncaught` does not stop at it: `tether break \
                                exceptions --caught` stops where the user's own code throws";

/// A test that is to be launched.
pub struct TestRequest {
    pub request: SessionRequest,
    pub runner: TestRunner,
    /// Which options are added, and what does not stop.
    pub notes: Vec<String>,
}

/// What runs the test: a request, or the tests of an extension. Errors: as [`NamedTest::resolve`]; the tests cannot be built, or are not
/// trusted; their runner is not installed.
pub async fn prepare_named_test(
    supervisor: &SupervisorContext,
    it: &DebugLaunchParams,
    name: &str,
    caller: &dyn Caller,
) -> Result<RequestedLaunch> {
    let workspace = supervisor.sessions.workspace();
    let run = find_test(workspace, it, name).await?;
    if let TestRun::Extension { name, file, .. } = run {
        let wanted = WantedTests { config: None, file: name.is_none().then_some(file), name };
        let launch = Box::pin(plan_test_launch(supervisor, it, wanted, caller)).await?;
        return Ok(RequestedLaunch::ExtensionTests(Box::new(launch)));
    }
    let (args, runner) = (it.args.clone().unwrap_or_default(), run.runner());
    let unused = describe_script_options(&run, workspace).filter(|_| args.is_empty());
    let given_cwd = it.cwd.as_ref().map(|cwd| workspace.join(cwd));
    let given = DebugTarget {
        env: it.env.iter().cloned().collect(),
        stop_on_entry: it.stop_on_entry.unwrap_or_default(),
        ..DebugTarget::default()
    };
    let program = match run {
        TestRun::Cargo { folder, source } => {
            let program = it.program.as_ref().map(PathBuf::from);
            let wanted = match &source {
                Some(source) => cargo_test::WantedTest::WholeProgram { source },
                None => cargo_test::WantedTest::Named { name, source: program.as_deref() },
            };
            let test = cargo_test::build_and_find_test(supervisor, &folder, wanted, caller).await?;
            let mut env = given.env.clone();
            for (name, value) in &test.env {
                let (name, value) = (name.to_string_lossy(), value.to_string_lossy().into_owned());
                env.entry(name.into_owned()).or_insert(Some(value));
            }
            let filter = test.name.into_iter().flat_map(|name| [name, "--exact".to_owned()]);
            let args = filter.chain(["--nocapture".to_owned()]).chain(args).collect();
            let (kind, cwd) = (DebugTargetKind::Program(test.program), test.folder);
            let debug_target = DebugTarget { kind, args, cwd, env, ..given };
            TestProgram { language: "rust", debug_target, added: Vec::new() }
        }
        run => test_program(run, workspace, given_cwd.as_deref(), args, given)?,
    };
    let exceptions = supervisor.sessions.exception_support().spec;
    let caught_by_runner = CAUGHT_BY_RUNNER.to_owned();
    let is_silent = program.language == "javascript" && exceptions.uncaught && !exceptions.caught;
    let notes = program.note(runner).into_iter().chain(unused).chain(is_silent.then_some(caught_by_runner)).collect();
    // By default each runs where its runner would run it.
    let debug_target = match given_cwd {
        Some(cwd) => DebugTarget { cwd, ..program.debug_target },
        None => program.debug_target,
    };
    let request = SessionRequest {
        name: name.to_owned(),
        debug_target,
        adapter: it.adapter.clone(),
        language: Some(program.language.to_owned()),
        is_test_run: true,
        ..SessionRequest::default()
    };
    Ok(RequestedLaunch::Test(Box::new(TestRequest { request, runner, notes })))
}

async fn find_test(workspace: &Path, it: &DebugLaunchParams, name: &str) -> Result<TestRun> {
    let (workspace, name, language) = (workspace.to_owned(), name.to_owned(), it.language.clone());
    let real = |path: &String| {
        let path = workspace.join(path);
        path.canonicalize().unwrap_or(path)
    };
    let program = it.program.as_ref().map(real);
    let folder = it.cwd.as_ref().or(it.folder.as_ref()).map_or_else(|| workspace.clone(), real);
    let searching = tokio::task::spawn_blocking(move || {
        let (language, program) = (language.as_deref(), program.as_deref());
        NamedTest { name: &name, language, program, folder: &folder, workspace: &workspace }.resolve()
    });
    searching.await.doing(|| "cannot look for the test".to_owned())?
}
