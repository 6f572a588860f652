//! From the files of the workspace to tests that can be launched: consent, then the build, then the configurations, which
//! may be code of the workspace.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tether_base::bounded_file::{self, Links};
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tether_base::sync::run_blocking;
use tether_process::CapturedCommand;

use crate::config::trust::WorkspaceCommands;
use crate::config::{
    BuildStep, EVALUATE_SCRIPT, EvaluatedTests, ExtensionTestSource, TestDescription, WindowSettings, read_evaluated,
    resolve_program,
};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::handlers::debug::launch_config::{run_tasks_for, task_notes};
use crate::tasks::task_runner::BackgroundUser;
use crate::window::Caller;
use crate::window::test_host::TestHostFolder;

/// A configuration that does not end within this time waits for something.
const EVALUATE_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_RESULT: u64 = 16 << 20;

/// Tests that can be launched.
pub struct PreparedTests {
    /// At least one.
    pub tests: Vec<EvaluatedTests>,
    /// What a user should know of the build.
    pub notes: Vec<String>,
}

/// The tests of that configuration, built. Errors: there is none, the user has not consented, the build fails, a
/// configuration cannot be evaluated.
pub async fn prepare_tests(
    supervisor: &SupervisorContext,
    config: Option<&str>,
    caller: &dyn Caller,
) -> Result<PreparedTests> {
    let (workspace, name) = (supervisor.sessions.workspace().to_owned(), config.map(str::to_owned));
    let source = run_blocking(move || ExtensionTestSource::find(&workspace, name.as_deref())).await?;
    WorkspaceCommands::of_extension_tests(&source).require_consent()?;
    let mut build = source.build.clone();
    build.steps.iter_mut().for_each(BuildStep::substitute_environment);
    let user = BackgroundUser { name: "a test run", needs_new_cycle: true, keeps_watchers: false };
    let ran = run_tasks_for(supervisor, &build, user, caller).await?;
    let tests = match &source.description {
        TestDescription::Launch(tests) => vec![EvaluatedTests::clone(tests)],
        TestDescription::File { path, label } => {
            caller.report_progress("reading the test configurations");
            let written = evaluate(&supervisor.paths.state, &source.workspace, path, &source.programs).await?;
            read_evaluated(path, &written, label.as_deref(), &source.programs)?
        }
    };
    Ok(PreparedTests { tests, notes: task_notes(&ran) })
}

/// Evaluates a `.vscode-test.*` file with Node.
async fn evaluate(state: &Path, workspace: &Path, file: &Path, programs: &WindowSettings) -> Result<String> {
    let doing = || format!("cannot evaluate {}", file.display());
    let folder = TestHostFolder::create(state)?;
    let (script, result) = (folder.path.join("evaluate.mjs"), folder.path.join("configurations.json"));
    std::fs::write(&script, EVALUATE_SCRIPT).doing(|| format!("cannot write {}", script.display()))?;
    let what = CapturedCommand {
        argv: [&find_node(workspace, programs)?, &script, file, &result]
            .map(|word| word.as_os_str().to_owned())
            .to_vec(),
        cwd: file.parent().unwrap_or(workspace).to_owned(),
        env: folder.environment(),
        timeout: EVALUATE_TIMEOUT,
    };
    let finished = tether_process::run_command(&what, std::future::pending()).await?;
    if finished.is_success() {
        return bounded_file::read_text(&result, MAX_RESULT, Links::Refuse).doing(doing);
    }
    const TAIL_LINES: usize = 15;
    let lines: Vec<&str> = finished.tail.lines().collect();
    let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
    let how = match finished.outcome {
        tether_process::RunOutcome::TimedOut => {
            format!("it did not end within {}", humantime::format_duration(EVALUATE_TIMEOUT))
        }
        _ => format!("it printed last:\n{tail}"),
    };
    let hint = format!("`node {}` runs it by hand", file.file_name().unwrap_or_default().to_string_lossy());
    Err(Error::usage(doing()).because(how).hint(hint))
}

/// The Node that evaluates configurations: that of the settings, on PATH, or of the installed tools.
fn find_node(workspace: &Path, programs: &WindowSettings) -> Result<PathBuf> {
    let path = std::env::var_os("PATH");
    let set = programs.node.as_deref().and_then(|node| resolve_program(workspace, node, path.as_deref()));
    let found = set.or_else(|| tether_tools::find_on_path(&["node"], path.as_deref()));
    found.or_else(|| tether_tools::entry_path("node24").ok().filter(|node| node.is_file())).ok_or_else(|| {
        let error = Error::new(ErrorKind::MissingTool, "cannot evaluate the test configurations without Node");
        error.because("`node` is not on PATH").hint("`tether adapters install code-server` installs one")
    })
}
