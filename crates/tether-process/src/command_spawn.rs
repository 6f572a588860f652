//! Starts a program in its own session and group, without a terminal: detached with its output in a file, or with its
//! streams in our pipes.
//!
//! The output of a detached program is never a pipe: a pipe would end with the supervisor, and the program with it
//! (EPIPE).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tether_base::clipped_text::clip_chars;
use tether_base::display_text::escape_line;
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

use super::environment::LAUNCH_ID;
use super::launch_environment::LaunchEnvironment;
use super::platform;
use super::process_handle::Process;

/// What to start. `argv[0]` is looked up on the `PATH` of `env` unless it contains a slash.
#[derive(Clone, Debug)]
pub struct DetachedCommand {
    /// The program and its arguments; no shell reads them.
    pub argv: Vec<OsString>,
    /// The folder that it starts in; it must exist.
    pub cwd: PathBuf,
    /// The whole environment; see [`super::clean_environment`].
    pub env: BTreeMap<OsString, OsString>,
    /// Both output streams are appended here; made with mode 0600.
    pub output: PathBuf,
}

/// Starts the program as the leader of its own session. Errors: [`ErrorKind::MissingTool`] when it is not there,
/// [`ErrorKind::Usage`] for an empty command or a missing folder, [`ErrorKind::Other`] else.
pub fn spawn_detached(what: &DetachedCommand) -> Result<Process> {
    spawn_with_input(what, Stdio::null())
}

fn spawn_with_input(what: &DetachedCommand, input: Stdio) -> Result<Process> {
    let output = open_output(&what.output)?;
    let again = output.try_clone().map_err(|cause| start_error(&what.argv, cause))?;
    let mut command = build_command(&what.argv, &what.cwd, &what.env)?;
    command.stdin(input).stdout(output).stderr(again);
    spawn_process(command, &what.argv)
}

/// As [`spawn_detached`], with a stdin that stays open, also after we have exited: watchers and dev servers exit when it
/// is closed.
pub fn spawn_background(what: &DetachedCommand) -> Result<Process> {
    let input = platform::open_endless_input().map_err(|cause| start_error(&what.argv, cause))?;
    spawn_with_input(what, input.into())
}

/// A started program and our ends of its streams.
pub struct PipedProcess {
    /// The leader of its own session and group.
    pub process: Process,
    /// `None` if it was started without input.
    pub stdin: Option<ChildStdin>,
    /// The program waits while this pipe is full.
    pub stdout: ChildStdout,
    /// Apart from `stdout`: the order between the two is not known.
    pub stderr: ChildStderr,
}

/// Starts the program as the leader of its own session; `env` is its whole environment. Without `input` its stdin is
/// empty. Who reads the pipes must read on: a program whose pipe is full waits, and one whose pipe is closed ends
/// (SIGPIPE). Errors: as [`spawn_detached`].
pub fn spawn_piped(
    argv: &[OsString],
    cwd: &Path,
    env: &BTreeMap<OsString, OsString>,
    input: bool,
) -> Result<PipedProcess> {
    let mut command = build_command(argv, cwd, env)?;
    if input {
        command.stdin(Stdio::piped());
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|cause| start_error(argv, cause))?;
    let stdin = child.stdin.take();
    let no_output = || start_error(argv, io::Error::other("it has no output"));
    let stdout = child.stdout.take().ok_or_else(no_output)?;
    let stderr = child.stderr.take().ok_or_else(no_output)?;
    let process = Process::from_child(child).map_err(|cause| start_error(argv, cause))?;
    Ok(PipedProcess { process, stdin, stdout, stderr })
}

/// The command with everything set but where its output goes.
pub(super) fn build_command(argv: &[OsString], cwd: &Path, env: &BTreeMap<OsString, OsString>) -> Result<Command> {
    let (program, args) = argv.split_first().ok_or_else(|| Error::usage("cannot start an empty command"))?;
    if !cwd.is_dir() {
        return Err(Error::usage(format!("cannot start {} in {}", display_command(argv), cwd.display()))
            .because("there is no such folder"));
    }
    let mut command = Command::new(program);
    command.args(args).current_dir(cwd).stdin(Stdio::null()).kill_on_drop(false);
    let mut env = env.clone();
    env.entry("PWD".into()).or_insert_with(|| cwd.into());
    let of_launch = env.contains_key(OsStr::new(LAUNCH_ID));
    let environment = of_launch.then(|| LaunchEnvironment::new(&env)).transpose();
    let environment = environment.map_err(|cause| start_error(argv, cause))?;
    if environment.is_none() {
        command.env_clear().envs(env);
    }
    let supervisor = std::process::id();
    let prepare = move || {
        rustix::process::setsid()?;
        // The supervisor was killed since the fork: the next one may have looked for this program already.
        if rustix::process::getppid().is_none_or(|parent| parent.as_raw_pid().unsigned_abs() != supervisor) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        if let Some(environment) = &environment {
            // SAFETY: this is between fork and exec, and the command sets no environment of its own.
            unsafe { environment.apply_in_child() };
        }
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed: these are bare system calls and writes
    // to memory, and the conversion of their errors does not allocate.
    unsafe { command.pre_exec(prepare) };
    Ok(command)
}

pub(super) fn spawn_process(mut command: Command, argv: &[OsString]) -> Result<Process> {
    let child = command.spawn().map_err(|cause| start_error(argv, cause))?;
    Process::from_child(child).map_err(|cause| start_error(argv, cause))
}

fn open_output(path: &PathBuf) -> Result<File> {
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    opened.doing(|| format!("cannot write output to {}", path.display()))
}

pub(super) fn start_error(argv: &[OsString], cause: io::Error) -> Error {
    let doing = format!("cannot start {}", display_command(argv));
    if cause.kind() != io::ErrorKind::NotFound {
        return Error::other(doing).because(cause);
    }
    let program = argv.first().map(|program| program.to_string_lossy()).unwrap_or_default();
    Error::new(ErrorKind::MissingTool, doing)
        .because("there is no such program")
        .hint(format!("`command -v {program}` shows whether it is on your PATH; install it, or correct devtools.toml"))
}

/// A command as a reader would type it, shortened for messages.
pub(super) fn display_command(argv: &[OsString]) -> String {
    format!("`{}`", command_line(argv))
}

/// As a reader would type it, in one line that is cut where it is long.
pub fn command_line(argv: &[OsString]) -> String {
    let text = argv.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    clip_chars(&escape_line(&text), 200)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
    async fn a_program_of_a_launch_has_its_own_pid_in_its_environment_and_is_found_on_its_own_path() {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo $$ $DEVTETHER_LAUNCH_SESSION $DEVTETHER_LAUNCH_ID $MARK";
        let mut spec = spec(folder.path(), &["sh", "-c", script]);
        spec.env.insert(LAUNCH_ID.into(), "some-launch".into());
        let process = spawn_detached(&spec).unwrap();
        assert_eq!(process.wait_for_exit().await, ProcessExit::Code(0));
        let pid = process.pid();
        let expected = format!("{pid} {pid:010} some-launch märk wert\n");
        assert_eq!(std::fs::read_to_string(&spec.output).unwrap(), expected);
        spec.env.insert("PATH".into(), folder.path().into());
        assert_eq!(spawn_detached(&spec).unwrap_err().kind, ErrorKind::MissingTool);
        spec.env.insert("ZERO".into(), "a\0b".into());
        assert!(spawn_detached(&spec).is_err());
    }

    #[tokio::test]
    async fn a_program_is_told_its_own_folder_as_its_user_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let linked = folder.path().join("linked");
        std::os::unix::fs::symlink(std::env::temp_dir(), &linked).unwrap();
        let check = async |env: BTreeMap<OsString, OsString>, expect: &Path| {
            let mut piped = spawn_piped(&["env".into()], &linked, &env, false).unwrap();
            let mut text = String::new();
            piped.stdout.read_to_string(&mut text).await.unwrap();
            let told: Vec<&str> = text.lines().filter(|line| line.contains("PWD=")).collect();
            assert_eq!(told, [format!("PWD={}", expect.display())]);
        };
        check(clean_environment::<&str, &str>([]), &linked).await;
        check(clean_environment([("PWD", "/by/hand")]), Path::new("/by/hand")).await;
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

    fn start(script: &str, input: bool) -> PipedProcess {
        let argv = ["sh", "-c", script].map(OsString::from);
        spawn_piped(&argv, &std::env::temp_dir(), &clean_environment::<&str, &str>([]), input).unwrap()
    }

    #[tokio::test]
    async fn a_program_leads_its_own_session_and_its_streams_are_ours() {
        let mut it = start("read word; echo out $word; echo err >&2; exit 3", true);
        assert_eq!(read_facts(it.process.pid()).unwrap().session, it.process.pid());
        it.stdin.take().unwrap().write_all(b"in\n").await.unwrap();
        let (mut out, mut err) = (String::new(), String::new());
        it.stdout.read_to_string(&mut out).await.unwrap();
        it.stderr.read_to_string(&mut err).await.unwrap();
        assert_eq!((out.as_str(), err.as_str()), ("out in\n", "err\n"));
        assert_eq!(it.process.wait_for_exit().await, ProcessExit::Code(3));
    }

    #[tokio::test]
    async fn without_input_there_is_nothing_to_wait_for() {
        assert_eq!(start("read word || exit 4", false).process.wait_for_exit().await, ProcessExit::Code(4));
    }
}
