//! A workspace of its own for each test, the real `tether` in it, and the proof that nothing is left of it.

#![allow(dead_code)] // each test program uses a part

pub mod editor_client;
pub mod listening;
pub mod mcp_client;
pub mod other_user;
pub mod palette;
pub mod raw_mcp;
pub mod requirements;
pub mod rpc_client;
pub mod scenario_sandbox;
pub mod split_mix;
pub mod tunnel;
pub mod wrap_client;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use devtether::adapters::FoundAdapter;
use serde_json::Value;

/// The environment variable that marks every process of a sandbox, also detached ones.
const MARK: &str = "DEVTETHER_TEST_SANDBOX";
/// Longer than any step of a test takes: a test that reaches it hangs.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// A workspace with its own user folders. Drop stops what it started; a process that is left fails the test.
pub struct Sandbox {
    home: tempfile::TempDir,
    pub workspace: PathBuf,
    mark: String,
    /// Of every `tether` of the sandbox, beside those that put it there.
    pub more_variables: Vec<(&'static str, std::ffi::OsString)>,
}

/// Exit code and output of one run of `tether`.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl CommandOutput {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Panics unless the exit code is 0.
    pub fn ok(self) -> CommandOutput {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// Panics unless it failed with this exit code and stderr contains all of these words.
    pub fn fails(self, code: i32, words: &[&str]) -> CommandOutput {
        assert_eq!(self.code, code, "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is not in: {}", self.stderr);
        }
        self
    }
}

impl Sandbox {
    pub fn new() -> Sandbox {
        Sandbox::new_in(&std::env::temp_dir())
    }

    /// A sandbox below this folder.
    pub fn new_in(folder: &Path) -> Sandbox {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let home = tempfile::Builder::new().prefix("tether-test-").tempdir_in(folder).unwrap();
        let workspace = home.path().canonicalize().unwrap().join("work space");
        fs::create_dir(&workspace).unwrap();
        fs::DirBuilder::new().mode(0o700).create(home.path().join("run")).unwrap();
        let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Sandbox { home, workspace, mark, more_variables: Vec::new() }
    }

    /// A sandbox with these files, their commands trusted.
    pub fn with(files: &[(&str, &str)]) -> Sandbox {
        let sandbox = Sandbox::new();
        for (path, text) in files {
            sandbox.write(path, text);
        }
        sandbox.tether(&["trust", "--yes"]).ok();
        sandbox
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.workspace.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.workspace.join(path)
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The real `tether` in this sandbox.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tether"));
        command.args(arguments).current_dir(&self.workspace).stdin(Stdio::null());
        command.envs(self.variables()).envs(self.more_variables.iter().cloned());
        command
    }

    /// The environment variables that put a process into this sandbox.
    pub fn variables(&self) -> Vec<(&'static str, std::ffi::OsString)> {
        vec![
            ("XDG_RUNTIME_DIR", self.home.path().join("run").into()),
            ("XDG_STATE_HOME", self.home.path().join("state").into()),
            ("XDG_CONFIG_HOME", self.home.path().join("config").into()),
            ("XDG_CACHE_HOME", self.home.path().join("cache").into()),
            (MARK, self.mark.clone().into()),
        ]
    }

    /// Runs `tether` until it exits.
    pub fn tether(&self, arguments: &[&str]) -> CommandOutput {
        run_command(self.command(arguments))
    }

    /// Runs `tether … --json`, which must succeed.
    pub fn json(&self, arguments: &[&str]) -> Value {
        run_command(self.command(arguments.iter().copied().chain(["--json"]))).ok().json()
    }

    /// The socket of the sandbox's supervisor.
    pub fn socket(&self) -> PathBuf {
        let runtime = self.home().join("run/devtether");
        let mut all = fs::read_dir(runtime).unwrap().filter_map(Result::ok).map(|entry| entry.path());
        // Those of session hosts have another ending.
        all.find(|path| path.extension().is_some_and(|it| it == "sock")).expect("a socket")
    }

    pub fn status(&self) -> Value {
        self.json(&["status"])
    }

    /// A status. `unresponsive` may be a busy machine: the status is read again until the page responds.
    pub fn once_it_answers(&self, reported: Value) -> Value {
        let busy = |status: &Value| status["state"] == "unresponsive";
        if busy(&reported) {
            eventually("the page answers", || Some(self.status()).filter(|it| !busy(it)))
        } else {
            reported
        }
    }

    /// The status of a Chromium that was just started, once its page is loaded. One started from a cold disk is
    /// `ready` before that, and was seen to stay on `about:blank` for two minutes. A page cannot navigate from there to
    /// a file or to `data:`, so Chromium is restarted, and the test prints that.
    pub fn arrived(&self) -> Value {
        let there = "document.readyState === 'complete' && location.protocol !== 'about:'";
        let mut next = Instant::now() + Duration::from_secs(15);
        eventually("the page is there", || {
            let requested = run_command(self.command(["evaluate", there, "--json"]));
            if requested.code == 0 && requested.json()["value"] == true {
                return Some(());
            }
            if Instant::now() > next {
                eprintln!("the page is not there: {requested:?}; the window is restarted");
                self.json(&["restart"]);
                next = Instant::now() + Duration::from_secs(15);
            }
            None
        });
        self.once_it_answers(self.status())
    }

    /// `session.json` as it is now.
    pub fn session(&self) -> Option<Value> {
        let bytes = fs::read(self.path(".devtools/session.json")).ok()?;
        Some(serde_json::from_slice(&bytes).expect("session.json is never half"))
    }

    /// The PID in the supervisor's lock file, if that process is running.
    pub fn supervisor(&self) -> Option<u32> {
        let states = fs::read_dir(self.home.path().join("state/devtether")).ok()?;
        let lock = states.filter_map(Result::ok).next()?.path().join("supervisor.lock");
        let holder: Value = serde_json::from_slice(&fs::read(lock).ok()?).ok()?;
        Some(holder["pid"].as_u64()? as u32).filter(|pid| is_alive(*pid))
    }

    /// The supervisor's peak resident memory in bytes.
    pub fn peak(&self) -> u64 {
        let supervisor = procfs::process::Process::new(self.supervisor().unwrap() as i32).unwrap();
        supervisor.status().unwrap().vmhwm.unwrap() * 1024
    }

    /// Those of its processes that are neither its supervisor nor the host of a session.
    pub fn others(&self) -> Vec<(u32, String)> {
        let is_own = |line: &str| line.contains(" supervise ") || line.contains(" session-host ");
        self.processes().into_iter().filter(|(_, line)| !is_own(line)).collect()
    }

    /// The hosts of its sessions.
    pub fn session_hosts(&self) -> Vec<u32> {
        self.processes().into_iter().filter(|(_, line)| line.contains(" session-host ")).map(|(pid, _)| pid).collect()
    }

    /// Kills its supervisor, and waits for the exit.
    pub fn kill_supervisor(&self) {
        let supervisor = self.supervisor().expect("a supervisor lives");
        kill(supervisor, rustix::process::Signal::KILL);
        wait_for_end(supervisor);
    }

    /// Kills the hosts of its sessions, and waits for their exits.
    pub fn kill_session_hosts(&self) {
        for host in self.session_hosts() {
            kill(host, rustix::process::Signal::KILL);
            wait_for_end(host);
        }
    }

    /// The running processes of this sandbox with their command lines.
    pub fn processes(&self) -> Vec<(u32, String)> {
        carrying(MARK, &self.mark)
    }
}

/// Copies a program with `cp`. A copy by this process could be open for writing in a child that another test forks
/// meanwhile, and then cannot be executed (ETXTBSY).
pub fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").args([from, to]).status().unwrap().success(), "cannot copy {}", from.display());
}

/// Runs a command until it exits.
pub fn run_command(mut command: Command) -> CommandOutput {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    CommandOutput { code: status.code().unwrap_or(-1), stdout: text(stdout), stderr: text(stderr) }
}

/// How much of a supervisor's log is printed with a test that failed, in lines.
const PRINTED_LOG_LINES: usize = 200;

impl Sandbox {
    /// The log of its supervisor and of the hosts of its sessions.
    pub fn supervisor_log(&self) -> String {
        let states = fs::read_dir(self.home.path().join("state/devtether")).into_iter().flatten();
        let logs = states.filter_map(Result::ok).map(|state| state.path().join("supervisor.log"));
        logs.filter_map(|file| fs::read(file).ok()).map(|log| String::from_utf8_lossy(&log).into_owned()).collect()
    }

    /// Prints the end of the supervisor's log: the folder is removed with the test.
    fn print_log(&self) {
        let states = fs::read_dir(self.home.path().join("state/devtether")).into_iter().flatten();
        for file in states.filter_map(Result::ok).map(|state| state.path().join("supervisor.log")) {
            let text = fs::read(&file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let end = &lines[lines.len().saturating_sub(PRINTED_LOG_LINES)..];
            eprintln!("the end of {}:\n{}", file.display(), end.join("\n"));
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.print_log();
        }
        if self.workspace.is_dir() {
            self.tether(&["stop"]);
            self.tether(&["shutdown", "--all"]);
        }
        let left = self.processes();
        for (pid, _) in &left {
            kill(*pid, rustix::process::Signal::KILL);
        }
        assert!(left.is_empty() || std::thread::panicking(), "left running: {left:#?}");
    }
}

/// The running processes whose environment has `name=value`, with their command lines.
pub fn carrying(name: &str, value: &str) -> Vec<(u32, String)> {
    let all = procfs::process::all_processes().unwrap().filter_map(Result::ok);
    all.filter(|it| it.pid as u32 != std::process::id())
        .filter(|it| it.environ().is_ok_and(|all| all.get(OsStr::new(name)).is_some_and(|it| it == value)))
        .filter(|it| it.stat().is_ok_and(|stat| stat.state != 'Z'))
        .map(|it| (it.pid as u32, it.cmdline().unwrap_or_default().join(" ")))
        .collect()
}

/// As [`carrying`], for values with this prefix.
pub fn carrying_prefix(name: &str, prefix: &str) -> Vec<(u32, String)> {
    let all = procfs::process::all_processes().unwrap().filter_map(Result::ok);
    let carries = |value: &std::ffi::OsString| value.to_string_lossy().starts_with(prefix);
    all.filter(|it| it.environ().is_ok_and(|all| all.get(OsStr::new(name)).is_some_and(carries)))
        .filter(|it| it.stat().is_ok_and(|stat| stat.state != 'Z'))
        .map(|it| (it.pid as u32, it.cmdline().unwrap_or_default().join(" ")))
        .collect()
}

/// A Python program with debugpy that prints `port N` when it listens; with `waits` it waits for a debugger first.
pub fn listening_with_debugpy(debugpy: &FoundAdapter, program: &Path, waits: bool) -> Command {
    let script = "import sys, runpy, debugpy; print('port', debugpy.listen(('127.0.0.1', 0))[1], flush=True); \
                  sys.argv[2] and debugpy.wait_for_client(); runpy.run_path(sys.argv[1], run_name='__main__')";
    let mut command = Command::new(debugpy.interpreter.as_ref().unwrap());
    command.args(["-c", script]).arg(program).arg(if waits { "waits" } else { "" });
    command.env("PYTHONPATH", debugpy.path.parent().unwrap());
    command
}

/// Compiles a Java source into its own folder.
pub fn compile_java(source: &Path) {
    let mut command = Command::new("javac");
    // In the C locale, Java cannot open a file whose name is not ASCII.
    command.args(["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-g", "-encoding", "UTF-8"]);
    command.arg(source).env("LC_ALL", "C.UTF-8");
    let compiled = command.output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

/// A Java program that prints its JDWP port first; with `waits` it runs only once a debugger is there.
pub fn java_listening(folder: &Path, class: &str, waits: bool) -> Command {
    let suspend = if waits { 'y' } else { 'n' };
    let mut command = Command::new("java");
    command.arg(format!("-agentlib:jdwp=transport=dt_socket,server=y,suspend={suspend},address=127.0.0.1:0"));
    command.arg("-cp").arg(folder).arg(class).env("LC_ALL", "C.UTF-8");
    command
}

/// What a Java program prints before its JDWP port.
pub const JDWP_PORT: &str = "Listening for transport dt_socket at address: ";

/// Whether a process is running; a zombie is not.
pub fn is_alive(pid: u32) -> bool {
    procfs::process::Process::new(pid as i32).and_then(|it| it.stat()).is_ok_and(|stat| stat.state != 'Z')
}

/// Sends a signal to a process that this test has started.
pub fn kill(pid: u32, signal: rustix::process::Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Blocks in the kernel until a process, child or not, has exited.
pub fn wait_for_end(pid: u32) {
    let Some(pid) = rustix::process::Pid::from_raw(pid as i32) else { return };
    let Ok(handle) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else { return };
    let mut polled = [rustix::event::PollFd::new(&handle, rustix::event::PollFlags::IN)];
    let patience = rustix::event::Timespec { tv_sec: TEST_TIMEOUT.as_secs() as i64, tv_nsec: 0 };
    let ended = rustix::io::retry_on_intr(|| rustix::event::poll(&mut polled, Some(&patience))).unwrap();
    assert!(ended > 0, "process {pid:?} did not end");
}

/// Repeats `check` until it returns a value, for conditions without an event. The pause only saves CPU time.
pub fn eventually<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A Node service with a value to evaluate: `globalThis.answer`.
pub const NODE_SERVICE: &str = r#"
globalThis.answer = 42;
require("http").createServer((_, response) => response.end("hi")).listen(0, "127.0.0.1", () => console.log("up"));
"#;

/// A workspace with a Node service and a build of this shell script.
pub fn node_with_build(script: &str) -> Sandbox {
    let toml = format!(
        "[window]\nkind = \"node\"\nprogram = \"server.js\"\n[build]\ncommand = [\"sh\", \"-c\", {}]\n",
        serde_json::to_string(script).unwrap()
    );
    Sandbox::with(&[("server.js", NODE_SERVICE), ("devtools.toml", &toml)])
}

/// A trusted workspace whose window is a browser on `page.html`, with this text.
pub fn browser(page: &str) -> Sandbox {
    let sandbox = Sandbox::with(&[("page.html", page)]);
    let place = sandbox.workspace.display().to_string().replace(' ', "%20");
    sandbox.write("devtools.toml", &format!("[window]\nkind = 'browser'\nurl = 'file://{place}/page.html'\n"));
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox
}

/// A workspace with a Node service and no build.
pub fn node() -> Sandbox {
    Sandbox::with(&[
        ("server.js", NODE_SERVICE),
        ("devtools.toml", "[window]\nkind = \"node\"\nprogram = \"server.js\"\n"),
    ])
}
