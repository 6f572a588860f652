//! Starting a program detached: own session and group, no terminal, output in a file.
//!
//! The output is a file and never a pipe: a pipe would end with the supervisor, and the program with it (EPIPE).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use super::process_handle::Process;
use crate::error::{Error, ErrorKind, Result};

/// What to start. `argv[0]` is looked up on the `PATH` of `env` unless it contains a slash.
#[derive(Clone, Debug)]
pub struct DetachedCommand {
    pub argv: Vec<OsString>,
    pub cwd: PathBuf,
    /// The whole environment; see [`super::clean_environment`].
    pub env: BTreeMap<OsString, OsString>,
    /// Both output streams are appended here; made with mode 0600.
    pub output: PathBuf,
}

/// Starts the program as the leader of its own session. Errors: [`ErrorKind::MissingTool`] when it is not there,
/// [`ErrorKind::Usage`] for an empty command or a missing folder, [`ErrorKind::Other`] else.
pub fn spawn_detached(what: &DetachedCommand) -> Result<Process> {
    let output = open_output(&what.output)?;
    let again = output.try_clone().map_err(|cause| start_error(&what.argv, cause))?;
    let mut command = build_command(&what.argv, &what.cwd, &what.env)?;
    command.stdout(output).stderr(again);
    spawn_process(command, &what.argv)
}

/// The command with everything set but where its output goes.
pub(super) fn build_command(argv: &[OsString], cwd: &Path, env: &BTreeMap<OsString, OsString>) -> Result<Command> {
    let (program, args) = argv.split_first().ok_or_else(|| Error::usage("cannot start an empty command"))?;
    if !cwd.is_dir() {
        return Err(Error::usage(format!("cannot start {} in {}", display_command(argv), cwd.display()))
            .because("there is no such folder"));
    }
    let mut command = Command::new(program);
    command.args(args).current_dir(cwd).env_clear().envs(env).stdin(Stdio::null()).kill_on_drop(false);
    let lead_a_session = || rustix::process::setsid().map(drop).map_err(io::Error::from);
    // SAFETY: between fork and exec only async-signal-safe calls are allowed; setsid is one bare system call,
    // and the conversion of its error does not allocate.
    unsafe { command.pre_exec(lead_a_session) };
    Ok(command)
}

pub(super) fn spawn_process(mut command: Command, argv: &[OsString]) -> Result<Process> {
    let child = command.spawn().map_err(|cause| start_error(argv, cause))?;
    Process::from_child(child).map_err(|cause| start_error(argv, cause))
}

fn open_output(path: &PathBuf) -> Result<File> {
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    opened
        .map_err(|cause| Error::other(format!("cannot write the window's output to {}", path.display())).because(cause))
}

pub(super) fn start_error(argv: &[OsString], cause: io::Error) -> Error {
    let kind = if cause.kind() == io::ErrorKind::NotFound { ErrorKind::MissingTool } else { ErrorKind::Other };
    let error = Error::new(kind, format!("cannot start {}", display_command(argv)));
    match cause.kind() {
        io::ErrorKind::NotFound => error.because("there is no such program").hint(lookup_hint(argv)),
        _ => error.because(cause),
    }
}

fn lookup_hint(argv: &[OsString]) -> String {
    let program = argv.first().map(|program| program.to_string_lossy()).unwrap_or_default();
    format!("`command -v {program}` shows whether it is on your PATH; install it, or correct devtools.toml")
}

/// A command as a reader would type it, shortened for messages.
pub(super) fn display_command(argv: &[OsString]) -> String {
    let mut text = argv.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = text.char_indices().nth(200) {
        text.truncate(end);
        text.push('…');
    }
    format!("`{text}`")
}

#[cfg(test)]
mod tests {
    use super::super::{ProcessExit, clean_environment, read_facts};
    use super::*;

    fn spec(folder: &std::path::Path, argv: &[&str]) -> DetachedCommand {
        DetachedCommand {
            argv: argv.iter().map(OsString::from).collect(),
            cwd: folder.to_owned(),
            env: clean_environment([("MARK", "märk wert")]),
            output: folder.join("output.log"),
        }
    }

    #[tokio::test]
    async fn a_program_leads_its_own_session_and_writes_to_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let spec = spec(folder.path(), &["sh", "-c", "echo out $MARK; echo err >&2; exec sleep 60"]);
        let process = spawn_detached(&spec).unwrap();
        super::super::wait_for_line(&spec.output, 0, |line| (line == "err").then_some(())).await.unwrap();
        assert_eq!(read_facts(process.pid()).unwrap().session, process.pid());
        assert_eq!(std::fs::read_to_string(&spec.output).unwrap(), "out märk wert\nerr\n");
        process.signal_group(rustix::process::Signal::KILL);
        assert_eq!(process.wait_for_exit().await, ProcessExit::Signal(9));
    }

    #[tokio::test]
    async fn what_cannot_be_started_is_named_with_a_next_step() {
        let folder = tempfile::tempdir().unwrap();
        let check = |argv: &[&str], cwd: &str, kind: ErrorKind, text: &str| {
            let mut spec = spec(folder.path(), argv);
            spec.cwd = folder.path().join(cwd);
            let error = spawn_detached(&spec).unwrap_err();
            assert_eq!(error.kind, kind, "{error}");
            assert!(error.to_string().contains(text), "{error}");
        };
        check(&["no-such-program-here", "x"], "", ErrorKind::MissingTool, "cannot start `no-such-program-here x`");
        check(&["no-such-program-here"], "", ErrorKind::MissingTool, "hint: `command -v no-such-program-here`");
        check(&["/"], "", ErrorKind::Other, "ermission denied");
        check(&["true"], "missing folder", ErrorKind::Usage, "there is no such folder");
        check(&[], "", ErrorKind::Usage, "empty command");
    }
}
