//! Runs the registries' ordinary clients with a deadline; their output is part of the error when they fail.
//!
//! They run in our own process group, so that Ctrl-C at a terminal ends them too. Does not depend on what is installed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use crate::error::{Error, ErrorContext, ErrorKind, Result};
use crate::path_lookup::{find_on_path, is_program};
use crate::process::clean_environment;

/// How long one step of an installation may take on a slow network.
const DEADLINE: Duration = Duration::from_secs(15 * 60);
/// How much of a failed command's output an error shows.
const TAIL_LINES: usize = 20;
/// What npm and pip print when they cannot reach their registry.
const OFFLINE: &[&str] = &[
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "ETIMEDOUT",
    "ENETUNREACH",
    "NewConnectionError",
    "Failed to establish a new connection",
    "Temporary failure in name resolution",
    "Connection refused",
    // pip, when the index does not have an existing package: no index, or one behind a proxy.
    "(from versions: none)",
];

/// Runs a command to its end. `lock` becomes its stdin (it reads as empty): if we are killed, the lock is held until
/// the command has ended too, so that no other install writes into the same folder meanwhile.
pub async fn run_quietly<S: AsRef<OsStr>>(argv: &[S], folder: Option<&Path>, lock: &File) -> Result<()> {
    let lock = lock.try_clone().doing(|| "cannot duplicate the lock of the tools".into())?;
    let output = run_bounded(argv, folder, Stdio::from(lock), DEADLINE).await?;
    if output.status.success() {
        return Ok(());
    }
    let printed = last_lines(&[output.stdout, output.stderr].concat());
    let error =
        Error::other(format!("`{}` failed", display_argv(argv))).because(format!("{}\n{printed}", output.status));
    Err(if OFFLINE.iter().any(|word| printed.contains(word)) { error.hint(offline_hint(argv)) } else { error })
}

/// Runs a short command and returns its stdout, trimmed.
pub async fn read_output<S: AsRef<OsStr>>(argv: &[S], deadline: Duration) -> Result<String> {
    let output = run_bounded(argv, None, Stdio::null(), deadline).await?;
    let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        return Ok(printed);
    }
    Err(Error::other(format!("`{}` failed", display_argv(argv)))
        .because(format!("{}\n{}", output.status, last_lines(&output.stderr)).trim_end().to_owned()))
}

async fn run_bounded<S: AsRef<OsStr>>(
    argv: &[S],
    folder: Option<&Path>,
    stdin: Stdio,
    deadline: Duration,
) -> Result<Output> {
    let (program, arguments) = argv.split_first().ok_or_else(|| Error::usage("cannot run an empty command"))?;
    let environment = clean_environment::<OsString, OsString>([]);
    let program = locate_program(program.as_ref(), environment.get(OsStr::new("PATH")).map(OsString::as_os_str))?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(environment).stdin(stdin).kill_on_drop(true);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    folder.map(|folder| command.current_dir(folder));
    let child = command.spawn().doing(|| format!("cannot start `{}`", display_argv(argv)))?;
    match timeout(deadline, child.wait_with_output()).await {
        Ok(output) => output.doing(|| format!("cannot run `{}`", display_argv(argv))),
        Err(_) => Err(Error::new(ErrorKind::TimedOut, format!("`{}` has not ended", display_argv(argv)))
            .because(format!("it was stopped after {}", humantime::format_duration(deadline)))),
    }
}

/// The path of the program. Errors: [`ErrorKind::MissingTool`], without a hint: the caller knows what installs it.
fn locate_program(program: &OsStr, path: Option<&OsStr>) -> Result<PathBuf> {
    let found = match (program.to_str(), Path::new(program).components().count()) {
        (Some(name), 1) => find_on_path(&[name], path),
        _ => Some(PathBuf::from(program)).filter(|file| is_program(file)),
    };
    found.ok_or_else(|| {
        Error::new(ErrorKind::MissingTool, format!("cannot run {}", program.to_string_lossy()))
            .because("there is no such program on PATH")
    })
}

fn offline_hint<S: AsRef<OsStr>>(argv: &[S]) -> &'static str {
    let npm = argv.first().is_some_and(|program| program.as_ref().to_string_lossy().ends_with("npm"));
    if npm {
        "the registry cannot be reached: `npm ping` tries it, `npm config get registry` names it"
    } else {
        "the package index cannot be reached: `python3 -m pip config list` shows which one and which proxy"
    }
}

/// The command as it would be typed.
fn display_argv<S: AsRef<OsStr>>(argv: &[S]) -> String {
    argv.iter().map(|word| word.as_ref().to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn last_lines(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> File {
        tempfile::tempfile().unwrap()
    }

    #[tokio::test]
    async fn a_failed_command_is_reported_with_its_last_lines_and_a_hint() {
        let check = async |argv: &[&str], kind: ErrorKind, parts: &[&str]| {
            let error = run_quietly(argv, None, &lock()).await.unwrap_err();
            assert_eq!(error.kind, kind, "{error}");
            for part in parts {
                assert!(error.to_string().contains(part), "{part:?} is not in {error}");
            }
        };
        run_quietly(&["true"], None, &lock()).await.unwrap();
        check(&["sh", "-c", "echo one; echo two >&2; exit 3"], ErrorKind::Other, &["exit status: 3", "one", "two"])
            .await;
        check(&["sh", "-c", "echo npm ERR! ECONNREFUSED; exit 1"], ErrorKind::Other, &["hint: the package index"])
            .await;
        check(&["no-such-program-here"], ErrorKind::MissingTool, &["cannot run no-such-program-here", "on PATH"]).await;
        check(&["/no/such/program"], ErrorKind::MissingTool, &["cannot run /no/such/program"]).await;
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_stopped_and_its_input_is_empty() {
        let started = std::time::Instant::now();
        let error = read_output(&["sleep", "60"], Duration::from_millis(50)).await.unwrap_err();
        assert!(error.kind == ErrorKind::TimedOut && started.elapsed().as_secs() < 10, "{error}");
        run_quietly(&["sh", "-c", "read line && exit 1; exit 0"], None, &lock()).await.unwrap();
    }
}
