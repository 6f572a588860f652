//! A test by its name: from how it is run to a session request.

use std::path::{Path, PathBuf};

use serde_json::json;
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};

use super::cargo_test;
use crate::api::debug::DebugLaunchParams;
use crate::config::{NamedTest, PackageRunner, TestRun, TestRunner};
use crate::debug::SessionRequest;
use crate::debug::program::{DebugTarget, DebugTargetKind};
use crate::supervisor::context::SupervisorContext;
use crate::window::Caller;

/// The request that runs the test, and what runs it. Errors: as [`NamedTest::resolve`]; the tests cannot be built, or are not
/// trusted; their runner is not installed.
pub async fn prepare_named_test(
    supervisor: &SupervisorContext,
    it: &DebugLaunchParams,
    name: &str,
    caller: &dyn Caller,
) -> Result<(SessionRequest, TestRunner)> {
    let run = find_test(supervisor.sessions.workspace(), it, name).await?;
    let (args, runner) = (it.args.clone().unwrap_or_default(), run.runner());
    let given_cwd = it.cwd.as_ref().map(|cwd| supervisor.sessions.workspace().join(cwd));
    let given = DebugTarget {
        env: it.env.iter().cloned().collect(),
        stop_on_entry: it.stop_on_entry.unwrap_or_default(),
        ..DebugTarget::default()
    };
    let (language, debug_target) = match run {
        TestRun::Pytest { node, folder } => {
            let what = DebugTargetKind::Module("pytest".to_owned());
            // A node id is relative to where pytest runs.
            let node = match &given_cwd {
                Some(cwd) if *cwd != folder => folder.join(node).to_string_lossy().into_owned(),
                _ => node,
            };
            ("python", DebugTarget { kind: what, args: prepend_args(&[&node], args), cwd: folder, ..given })
        }
        TestRun::Package { by, file, pattern, .. } => {
            ("javascript", package_target(&by, &file, &pattern, args, given)?)
        }
        TestRun::Node { file, pattern, .. } => {
            let cwd = file.parent().unwrap_or(Path::new("/")).to_owned();
            let pattern = json!([format!("--test-name-pattern={pattern}")]);
            let fields = [("runtimeArgs".to_owned(), pattern)].into_iter().collect();
            ("javascript", DebugTarget { kind: DebugTargetKind::Program(file), args, cwd, fields, ..given })
        }
        TestRun::Go { package, pattern } => {
            let fields = [("mode".to_owned(), json!("test"))].into_iter().collect();
            let (args, cwd) = (prepend_args(&["-test.run", &pattern], args), package.clone());
            ("go", DebugTarget { kind: DebugTargetKind::Program(package), args, cwd, fields, ..given })
        }
        TestRun::Cargo { folder } => {
            let program = it.program.as_ref().map(PathBuf::from);
            let test = cargo_test::build_and_find_test(supervisor, &folder, program.as_deref(), name, caller).await?;
            let mut env = given.env.clone();
            // As `cargo test` sets it.
            let manifest = test.folder.to_string_lossy().into_owned();
            env.entry("CARGO_MANIFEST_DIR".to_owned()).or_insert(Some(manifest));
            let args = prepend_args(&[&test.name, "--exact", "--nocapture"], args);
            let (kind, cwd) = (DebugTargetKind::Program(test.program), test.folder);
            ("rust", DebugTarget { kind, args, cwd, env, ..given })
        }
    };
    // By default each runs where its runner would run it.
    let debug_target = match given_cwd {
        Some(cwd) => DebugTarget { cwd, ..debug_target },
        None => debug_target,
    };
    let request = SessionRequest {
        name: name.to_owned(),
        debug_target,
        adapter: it.adapter.clone(),
        language: Some(language.to_owned()),
        ..SessionRequest::default()
    };
    Ok((request, runner))
}

/// vitest and jest, whose own limits of time would end a test that is stopped at a breakpoint. Errors: it is not installed.
fn package_target(
    by: &PackageRunner,
    file: &Path,
    pattern: &str,
    args: Vec<String>,
    given: DebugTarget,
) -> Result<DebugTarget> {
    let command = by.runner.command();
    if !by.script.is_file() {
        let error = Error::new(ErrorKind::MissingTool, format!("cannot run `{command}`"));
        let error = error.because(format!("there is no {}", by.script.display()));
        return Err(error.hint(format!("`npm install` in {} installs what the package names", by.package.display())));
    }
    let file = file.to_string_lossy();
    let own = match by.runner {
        TestRunner::Jest => vec![
            "--runTestsByPath",
            &file,
            "-t",
            pattern,
            "--runInBand",
            "--testTimeout=86400000",
            "--coverage=false",
            "--watchAll=false",
        ],
        _ => vec![
            "run",
            &file,
            "-t",
            pattern,
            "--no-file-parallelism",
            "--testTimeout=0",
            "--hookTimeout=0",
            "--coverage.enabled=false",
        ],
    };
    let skipped = json!(["<node_internals>/**", "**/node_modules/**"]);
    let fields = [("skipFiles".to_owned(), skipped), ("smartStep".to_owned(), json!(true))].into_iter().collect();
    let (kind, cwd) = (DebugTargetKind::Program(by.script.clone()), by.package.clone());
    Ok(DebugTarget { kind, args: prepend_args(&own, args), cwd, fields, ..given })
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

fn prepend_args(ours: &[&str], theirs: Vec<String>) -> Vec<String> {
    ours.iter().map(|word| (*word).to_owned()).chain(theirs).collect()
}
