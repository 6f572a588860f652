//! A test by its name: from how it is run to a session request.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::cargo_test;
use crate::api::debug::DebugLaunchParams;
use crate::config::{NamedTest, TestRun};
use crate::debug::SessionRequest;
use crate::debug::program::{DebugTarget, DebugTargetKind};
use crate::error::{ErrorContext, Result};
use crate::supervisor::context::SupervisorContext;
use crate::window::Caller;

/// Errors: as [`NamedTest::find`]; the tests cannot be built, or are not trusted.
pub async fn prepare_named_test(
    supervisor: &SupervisorContext,
    it: &DebugLaunchParams,
    name: &str,
    caller: &dyn Caller,
) -> Result<SessionRequest> {
    let run = find_test(supervisor.sessions.workspace(), it, name).await?;
    let args = it.args.clone().unwrap_or_default();
    let given = DebugTarget {
        env: it.env.iter().cloned().collect(),
        stop_on_entry: it.stop_on_entry.unwrap_or_default(),
        ..DebugTarget::default()
    };
    let (language, debug_target) = match run {
        TestRun::Pytest { node, folder } => {
            let what = DebugTargetKind::Module("pytest".to_owned());
            ("python", DebugTarget { kind: what, args: prepend_args(&[&node], args), cwd: folder, ..given })
        }
        TestRun::Node { file, pattern } => {
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
            ("rust", DebugTarget { kind: DebugTargetKind::Program(test.program), args, cwd: test.folder, env, ..given })
        }
    };
    Ok(SessionRequest {
        name: name.to_owned(),
        debug_target,
        adapter: it.adapter.clone(),
        language: Some(language.to_owned()),
        ..SessionRequest::default()
    })
}

async fn find_test(workspace: &Path, it: &DebugLaunchParams, name: &str) -> Result<TestRun> {
    let (workspace, name, language) = (workspace.to_owned(), name.to_owned(), it.language.clone());
    let real = |path: &String| {
        let path = workspace.join(path);
        path.canonicalize().unwrap_or(path)
    };
    let program = it.program.as_ref().map(real);
    let folder = it.cwd.as_ref().map_or_else(|| workspace.clone(), real);
    let searching = tokio::task::spawn_blocking(move || {
        let (language, program) = (language.as_deref(), program.as_deref());
        NamedTest { name: &name, language, program, folder: &folder, workspace: &workspace }.resolve()
    });
    searching.await.doing(|| "cannot look for the test".to_owned())?
}

fn prepend_args(ours: &[&str], theirs: Vec<String>) -> Vec<String> {
    ours.iter().map(|word| (*word).to_owned()).chain(theirs).collect()
}
