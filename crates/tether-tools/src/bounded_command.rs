//! Runs outside programs, such as the registries' ordinary clients, with a deadline and a bound on their output, which is
//! part of the error when they fail.
//!
//! Never in the folder of the caller: npm reads its `.npmrc`, Python takes modules from it, Go and rustup choose toolchains
//! by its files. They run in our own process group, so that Ctrl-C at a terminal ends them too. Does not depend on what is
//! installed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tether_base::path_lookup::{find_on_path, is_program};
use tether_process::clean_environment;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

use super::tool_status::cache_folder;

/// How long one step of an installation may take on a slow network.
const DEADLINE: Duration = Duration::from_secs(15 * 60);
/// How much of a stream is kept, in bytes; the rest is read and dropped.
const MAX_OUTPUT: u64 = 1 << 20;
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
pub(crate) async fn run_quietly<S: AsRef<OsStr>>(argv: &[S], folder: Option<&Path>, lock: &File) -> Result<()> {
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

/// Runs a short command in an empty folder and returns its stdout, trimmed.
pub(crate) async fn read_output<S: AsRef<OsStr>>(argv: &[S], deadline: Duration) -> Result<String> {
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
    let empty = match folder {
        Some(_) => None,
        None => Some(create_empty_folder().doing(|| format!("cannot make a folder for `{}`", display_argv(argv)))?),
    };
    command.current_dir(folder.or(empty.as_ref().map(TempDir::path)).unwrap_or(Path::new("/")));
    let mut child = command.spawn().doing(|| format!("cannot start `{}`", display_argv(argv)))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let ended = async { tokio::try_join!(child.wait(), read_bounded(stdout), read_bounded(stderr)) };
    match timeout(deadline, ended).await {
        Ok(ended) => {
            let (status, stdout, stderr) = ended.doing(|| format!("cannot run `{}`", display_argv(argv)))?;
            Ok(Output { status, stdout, stderr })
        }
        Err(_) => Err(Error::new(ErrorKind::TimedOut, format!("`{}` has not ended", display_argv(argv)))
            .because(format!("it was stopped after {}", humantime::format_duration(deadline)))),
    }
}

/// A new folder of ours, in which no program finds files of anybody else. Its package.json keeps npm from looking above it.
fn create_empty_folder() -> std::io::Result<TempDir> {
    let private = || -> std::io::Result<TempDir> {
        let ours = cache_folder().map_err(std::io::Error::other)?;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&ours)?;
        tempfile::Builder::new().prefix("run-").tempdir_in(ours)
    };
    // Where we have no folder, as in a read-only home.
    let folder = private().or_else(|_| tempfile::tempdir())?;
    std::fs::write(folder.path().join("package.json"), "{}\n")?;
    Ok(folder)
}

/// The first [`MAX_OUTPUT`] bytes of a stream, which is read to its end: a program that prints more must not block.
async fn read_bounded(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    if let Some(mut stream) = stream {
        (&mut stream).take(MAX_OUTPUT).read_to_end(&mut kept).await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    }
    Ok(kept)
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
    async fn a_short_command_runs_in_an_empty_folder_of_ours_which_is_removed() {
        let second = Duration::from_secs(20);
        let printed = read_output(&["sh", "-c", "pwd; ls -A"], second).await.unwrap();
        let (folder, files) = printed.split_once('\n').unwrap();
        assert_ne!(Path::new(folder), std::env::current_dir().unwrap());
        assert_eq!((files, Path::new(folder).exists()), ("package.json", false));
    }

    #[tokio::test]
    async fn the_output_of_a_command_is_bounded_and_read_to_its_end() {
        let endless = "head -c 3000000 /dev/zero | tr '\\0' x; head -c 3000000 /dev/zero >&2; echo end";
        let printed = read_output(&["sh", "-c", endless], Duration::from_secs(60)).await.unwrap();
        assert_eq!(printed.len() as u64, MAX_OUTPUT);
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_stopped_and_its_input_is_empty() {
        let started = std::time::Instant::now();
        let error = read_output(&["sleep", "60"], Duration::from_millis(50)).await.unwrap_err();
        assert!(error.kind == ErrorKind::TimedOut && started.elapsed().as_secs() < 10, "{error}");
        run_quietly(&["sh", "-c", "read line && exit 1; exit 0"], None, &lock()).await.unwrap();
    }
}
