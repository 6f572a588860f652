//! Session hosts that panic on command: this test program itself, which runs the real `host_session` beside a thread that
//! panics. No other process can make a host panic.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::Sandbox;

/// Set in the process that is to be a supervisor whose hosts panic on command, and in these hosts.
const WORKSPACE: &str = "DEVTETHER_TEST_PANICKING_HOSTS";
/// In a host: its arguments.
const ARGUMENTS: &str = "DEVTETHER_TEST_HOST_ARGUMENTS";

/// A supervisor whose hosts panic on command; killed on drop.
pub struct PanickingHosts {
    supervisor: Child,
    folder: PathBuf,
}

impl PanickingHosts {
    /// Starts the supervisor of a sandbox that has none; returns once it listens.
    pub fn start(sandbox: &Sandbox) -> PanickingHosts {
        let folder = sandbox.home().join("hosts");
        std::fs::create_dir(&folder).unwrap();
        let program = std::env::current_exe().unwrap();
        let module = module_path!().split_once("::").unwrap().1;
        // The arguments of a host are none of the test program.
        let script = format!(
            "#!/bin/sh\nexport {ARGUMENTS}=\"$*\"\nexec '{}' --exact {module}::hosts_until_told --nocapture\n",
            program.display()
        );
        let wrapper = folder.join("host.sh");
        std::fs::write(&wrapper, script).unwrap();
        std::fs::set_permissions(&wrapper, PermissionsExt::from_mode(0o755)).unwrap();
        let mut command = Command::new(program);
        command.args(["--exact", &format!("{module}::supervises_until_killed"), "--nocapture"]);
        command.env(WORKSPACE, &sandbox.workspace).envs(sandbox.variables()).env("HOST_PROGRAM", &wrapper);
        command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
        let supervisor = command.spawn().unwrap();
        crate::support::eventually("it has become the supervisor", || sandbox.supervisor());
        PanickingHosts { supervisor, folder }
    }

    /// The hosts of a sandbox's sessions.
    pub fn running(sandbox: &Sandbox) -> Vec<u32> {
        let all = sandbox.processes().into_iter();
        all.filter(|(_, line)| line.contains("hosts_until_told")).map(|(pid, _)| pid).collect()
    }

    /// Makes a thread of the host with this process id panic.
    pub fn panic(&self, host: u32) {
        std::fs::write(self.folder.join(host.to_string()), "").unwrap();
    }
}

impl Drop for PanickingHosts {
    fn drop(&mut self) {
        let _ = self.supervisor.kill();
        let _ = self.supervisor.wait();
    }
}

/// Does nothing in a usual run: [`PanickingHosts::start`] runs it in a process of its own.
#[test]
fn supervises_until_killed() {
    let (Some(workspace), Some(program)) = (std::env::var_os(WORKSPACE), std::env::var_os("HOST_PROGRAM")) else {
        return;
    };
    let program = Path::new(&program);
    devtether::supervisor::server::supervise_with(workspace.as_ref(), program, Duration::from_secs(600)).unwrap();
}

/// As [`supervises_until_killed`].
#[test]
fn hosts_until_told() {
    let (Ok(arguments), Some(program)) = (std::env::var(ARGUMENTS), std::env::var_os("HOST_PROGRAM")) else { return };
    let command = Path::new(&program).with_file_name(std::process::id().to_string());
    std::thread::spawn(move || {
        // Nothing else tells a process from outside; the pause only saves CPU time.
        while !command.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the test has told this host to panic");
    });
    let value = |name: &str| arguments.split_once(&format!("--{name} ")).unwrap().1.split(" --").next().unwrap();
    let path = |name: &str| Path::new(value(name));
    devtether::session_host::server::host_session(path("workspace"), path("state"), path("socket"), value("launch-id"))
        .unwrap();
}
