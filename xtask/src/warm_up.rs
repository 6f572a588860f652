//! Starts each program of the tests once, so that they are in the disk cache before a test with a deadline starts them.
//!
//! Checks nothing: missing programs are passed over, failures are printed. Does not depend on what the programs are for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use devtether::adapters::{ADAPTERS, AdapterSearch};
use devtether::window::launch::BROWSER_NAMES;
use tether_process::{CapturedCommand, LAUNCH_ID, clean_environment, sweep_launch};
use tether_tools::{Pins, entry_path};

use crate::shell::to_anyhow;
use crate::test_run::TestRun;

/// Longer than any of them takes, from whatever disk.
const TIMEOUT: Duration = Duration::from_secs(120);

type Argv = Vec<OsString>;

/// Runs the programs one after the other, and kills what they leave.
pub fn start_programs(run: &TestRun) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("warm-").tempdir_in(run.folder())?;
    let launch_id = format!("warm-{}", std::process::id());
    let variables = run.variables()?.into_iter().map(|(name, value)| (name, value.into_os_string()));
    let env = clean_environment(variables.chain([(LAUNCH_ID, OsString::from(&launch_id))]));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        for argv in list_programs(folder.path())? {
            run_program(CapturedCommand { argv, cwd: folder.path().to_owned(), env: env.clone(), timeout: TIMEOUT })
                .await;
        }
        sweep_launch(&launch_id, Some(folder.path()), Duration::ZERO).await?;
        Ok(())
    })
}

async fn run_program(what: CapturedCommand) {
    let began = Instant::now();
    let how = match tether_process::run_command(&what, std::future::pending()).await {
        Ok(finished) if finished.is_success() => "succeeded".to_owned(),
        Ok(finished) => format!("{:?}", finished.outcome),
        Err(error) => error.to_string(),
    };
    println!("  {}: {how} after {:.1} s", what.argv[0].display(), began.elapsed().as_secs_f64());
}

fn list_programs(folder: &Path) -> Result<Vec<Argv>> {
    let (pins, search) = (
        Pins::read().map_err(to_anyhow)?,
        AdapterSearch::for_workspace(Path::new("/nowhere"), Default::default()).map_err(to_anyhow)?,
    );
    let data = |flag: &str| format!("{flag}={}", folder.join(flag.trim_start_matches('-')).display());
    let user = data("--user-data-dir");
    let sandbox = rustix::process::geteuid().is_root().then_some("--no-sandbox");
    let flags = ["--headless=new", "--disable-gpu", "--disable-breakpad", &user, "--dump-dom", "about:blank"];
    let flags = flags.into_iter().chain(sandbox);
    let mut all: Vec<Argv> =
        search.on_path(BROWSER_NAMES).map(|browser| build_argv([browser], flags)).into_iter().collect();
    // VS Code's server as windows start it: code-server's own program would write into the user's home.
    let server = entry_path("code-server").map_err(to_anyhow)?.join("lib/vscode/out/server-main.js");
    let node = entry_path("node24").map_err(to_anyhow)?;
    if node.is_file() && server.is_file() {
        let (data, extensions) = (data("--server-data-dir"), data("--extensions-dir"));
        all.push(build_argv([node, server], [&*data, &user, &extensions, "--version"]));
    }
    // Our own installs, with the arguments that verify them.
    for tool in pins.tools.iter().filter(|tool| !tool.proof.is_empty()) {
        let program = entry_path(&tool.name).map_err(to_anyhow)?;
        all.extend(program.is_file().then(|| build_argv([program], tool.proof.iter().map(String::as_str))));
    }
    let adapters = ADAPTERS.iter().filter_map(|row| (row.find)(&search).ok());
    // An adapter that is a module of its interpreter is among our own installs.
    let adapters = adapters.filter(|it| it.interpreter.as_ref() != Some(&it.path));
    all.extend(adapters.map(|it| build_argv(it.interpreter.into_iter().chain([it.path]), ["--help"])));
    Ok(all)
}

fn build_argv<'a>(programs: impl IntoIterator<Item = PathBuf>, words: impl IntoIterator<Item = &'a str>) -> Argv {
    programs.into_iter().map(OsString::from).chain(words.into_iter().map(OsString::from)).collect()
}
