//! What is started for and beside an extension host: a login shell only where no shell has set up the environment, and
//! no agent host of VS Code.

use super::VERSION;
use super::refresh::{extension, manifest, started_extension};
use crate::support::requirements::{has_code_server, has_program};
use crate::support::{Sandbox, run_command};

#[test]
fn a_login_shell_is_asked_only_where_no_shell_has_set_up_the_environment() {
    if !has_program("chromium") || !has_program("bash") || !has_code_server() {
        return;
    }
    let tools = devtether::config::xdg::data_dir().unwrap().parent().unwrap().to_owned();
    for (level, expected) in [(Some("1"), "not asked"), (None, "asked")] {
        let sandbox = Sandbox::with(&[
            ("package.json", &manifest("Probe: Greet")),
            ("extension.js", &extension("' + (process.env.PROBE ?? 'not asked') + '", "")),
            ("devtools.toml", "[window]\nkind = 'web-extension-host'\n"),
        ]);
        let home = sandbox.home().join("user");
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join(".bash_profile"), "export PROBE=asked\n").unwrap();
        let mut start = sandbox.command(["start"]);
        start.env("HOME", &home).env("SHELL", "/bin/bash").env("XDG_DATA_HOME", &tools);
        match level {
            Some(level) => start.env("SHLVL", level),
            None => start.env_remove("SHLVL"),
        };
        let started = run_command(start);
        assert_eq!(started.code, 0, "{started:?}");
        assert_eq!(sandbox.json(&["evaluate", VERSION])["value"], expected);
    }
}

#[test]
fn no_agent_host_is_started_beside_the_server() {
    let Some(sandbox) = started_extension() else { return };
    let processes = sandbox.processes();
    let has = |kind: &str| processes.iter().any(|(_, line)| line.contains(kind));
    assert!(has("--type=extensionHost") && !has("--type=agentHost"), "{processes:#?}");
}
