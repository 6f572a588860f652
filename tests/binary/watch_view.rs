//! `tether watch` in a real terminal, which is tmux's.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::support::requirements::has_program;
use crate::support::{NODE_SERVICE, Sandbox, eventually, node_with_build, run_command};

const BUILD: &str = "test ! -e broken || { echo 'src/a.ts(3,1): error TS1005' >&2; exit 2; }";

/// A terminal in which `tether watch` runs; ends with it.
struct Terminal<'a> {
    sandbox: &'a Sandbox,
    socket: PathBuf,
}

impl Terminal<'_> {
    fn watch<'a>(sandbox: &'a Sandbox, size: [&str; 2]) -> Terminal<'a> {
        let terminal = Terminal { sandbox, socket: sandbox.home().join("tmux") };
        let line = format!("{} watch; echo ended with $?; exec cat", env!("CARGO_BIN_EXE_tether"));
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", size[0], "-y", size[1], &line]);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(arguments).current_dir(&self.sandbox.workspace);
        command.envs(self.sandbox.variables()).env("LC_ALL", "C.UTF-8").env("TERM", "screen");
        run_command(command).ok().stdout
    }

    fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Waits until all of it is on the screen.
    fn shows(&self, parts: &[&str]) -> String {
        eventually(&format!("{parts:?} on the screen"), || {
            let screen = self.tmux(&["capture-pane", "-p"]);
            parts.iter().all(|part| screen.contains(part)).then_some(screen)
        })
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

#[test]
fn the_view_shows_saves_and_failed_builds_and_obeys_its_keys() {
    if !has_program("tmux") {
        return;
    }
    let sandbox = node_with_build(BUILD);
    let terminal = Terminal::watch(&sandbox, ["120", "30"]);
    terminal.shows(&["the window is ready: generation 1", "each save builds and refreshes the window", "q quit"]);
    sandbox.write("server.js", &NODE_SERVICE.replace("42", "43"));
    terminal.shows(&["the window is ready: generation 2", "edit: server.js was modified", "relaunched"]);
    sandbox.write("broken", "");
    terminal.shows(&["the window is stale", "the build has failed", "src/a.ts(3,1): error TS1005"]);
    fs::remove_file(sandbox.path("broken")).unwrap();
    sandbox.write("server.js", &NODE_SERVICE.replace("42", "44"));
    let mended = terminal.shows(&["the window is ready: generation 3"]);
    assert!(!mended.contains("error TS1005"), "{mended}");

    terminal.press(&["R"]);
    terminal.shows(&["the window is ready: generation 4", "the window was restarted"]);
    terminal.press(&["j"]);
    terminal.shows(&["there is no debug session to join"]);
    terminal.press(&["s"]);
    terminal.shows(&["close the window", "y yes"]);
    terminal.press(&["n"]);
    terminal.shows(&["the window is ready: generation 4", "q quit"]);
    terminal.press(&["s"]);
    terminal.press(&["y"]);
    terminal.shows(&["no window", "window ended: stopped"]);
    terminal.press(&["r"]);
    terminal.shows(&["the window is ready: generation 5"]);
    terminal.press(&["q"]);
    terminal.shows(&["ended with 0"]);
    assert_eq!(sandbox.status()["state"], "ready", "it stays");
}

#[test]
fn the_view_goes_on_over_another_supervisor_and_in_a_small_terminal() {
    if !has_program("tmux") {
        return;
    }
    let sandbox = node_with_build(BUILD);
    let terminal = Terminal::watch(&sandbox, ["60", "12"]);
    terminal.shows(&["the window is ready: gen"]);
    sandbox.tether(&["shutdown"]).ok();
    // Only the view has it started again.
    sandbox.write("server.js", &NODE_SERVICE.replace("42", "43"));
    terminal.shows(&["edit: server.js was modified", "relaunched"]);
    terminal.tmux(&["resize-window", "-x", "20", "-y", "4"]);
    terminal.shows(&["tether"]);
    terminal.press(&["C-c"]);
    terminal.shows(&["ended with 0"]);
    assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], 43);
}

#[test]
fn a_start_that_fails_is_shown_with_what_to_do() {
    if !has_program("tmux") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("devtools.toml", "[window]\nkind = \"node\"\nprogram = \"server.js\"\n");
    sandbox.write("server.js", NODE_SERVICE);
    let terminal = Terminal::watch(&sandbox, ["120", "30"]);
    terminal.shows(&["no window", "tether trust"]);
    sandbox.tether(&["trust", "--yes"]).ok();
    terminal.press(&["r"]);
    terminal.shows(&["the window is ready: generation 1"]);
    terminal.press(&["q"]);
    terminal.shows(&["ended with 0"]);
}
