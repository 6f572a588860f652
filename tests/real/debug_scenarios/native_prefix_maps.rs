//! C programs whose debug information has other paths than this machine: prefix maps of the compiler.

use std::process::Command;

use serde_json::json;

use crate::support::run_command;
use crate::support::scenario_sandbox::ScenarioSandbox;

const APP: &str = "\
#include <stdio.h>

int twice(int order) {
  int total = order * 2;
  return total; // STOP
}

int main(void) {
  printf(\"%d\\n\", twice(21));
  return 0;
}
";

const ADAPTERS: [&str; 3] = ["gdb", "lldb-dap", "codelldb"];

/// Compiles in a folder of the workspace, with these options; the source below it.
fn compile(stage: &ScenarioSandbox, folder: &str, source: &str, options: &[String]) {
    let mut command = Command::new("cc");
    command.args(["-g", "-O0"]).args(options).arg("-o").arg(stage.sandbox.path("app")).arg(source);
    command.current_dir(stage.sandbox.path(folder));
    run_command(command).ok();
}

#[test]
fn a_breakpoint_stops_where_the_compiler_has_written_another_folder() {
    for adapter in ADAPTERS {
        let Some(stage) = ScenarioSandbox::with(adapter, "src/app.c", APP) else { continue };
        let workspace = stage.sandbox.workspace.display().to_string();
        let maps = [
            // The whole workspace; its folder of sources, of which only the name of the file is left; none.
            ("", "src/app.c", format!("-ffile-prefix-map={workspace}=/usr/src/app-1.0")),
            ("src", "app.c", format!("-fdebug-prefix-map={workspace}/src=/build/reproducible")),
            ("", "src/app.c", format!("-fdebug-prefix-map={workspace}=.")),
        ];
        for (folder, source, map) in maps {
            compile(&stage, folder, source, std::slice::from_ref(&map));
            stage.breaks("STOP");
            let stopped = stage.json(&["debug", "launch", "app", "--adapter", adapter, "--wait", "60"]);
            stage.check(&stopped, "BREAKPOINT_HIT", "STOP");
            assert_eq!(stopped["stopReason"]["location"]["sourcePath"], "src/app.c", "{adapter} {map}: {stopped:#}");
            assert_eq!(ScenarioSandbox::local(&stopped, "total"), "42");
            stage.json(&["debug", "stop"]);
        }
        stage.nothing_is_left();
    }
}

#[test]
fn where_several_files_may_be_meant_the_map_to_write_is_named_and_does_it() {
    for adapter in ADAPTERS {
        let Some(stage) = ScenarioSandbox::with(adapter, "src/app.c", APP) else { continue };
        stage.sandbox.write("old/app.c", APP);
        let workspace = stage.sandbox.workspace.display().to_string();
        compile(&stage, "src", "app.c", &[format!("-ffile-prefix-map={workspace}/src=/build/reproducible")]);
        stage.breaks("STOP");
        let ended = stage.json(&["debug", "launch", "app", "--adapter", adapter, "--wait", "60"]);
        assert_eq!(ended["state"], "TERMINATED", "{adapter}: {ended:#}");
        let reason = ended["notReached"][0]["reason"].as_str().unwrap_or_default();
        let map = json!({"/build/reproducible": format!("{workspace}/src")});
        let expected = format!("compiled of /build/reproducible/app.c: in launch.json, `\"sourceMap\":{map}` maps it");
        assert!(reason.contains(&expected), "{adapter}: {reason}");
        let kind = if adapter == "codelldb" { "lldb" } else { adapter };
        let configuration = json!({"name": "app", "type": kind, "request": "launch", "program": "${workspaceFolder}/app",
            "sourceMap": map});
        let launch = json!({"version": "0.2.0", "configurations": [configuration]});
        stage.sandbox.write(".vscode/launch.json", &launch.to_string());
        stage.sandbox.tether(&["trust", "--yes", "--config", "app"]).ok();
        let stopped = stage.json(&["debug", "launch", "--config", "app", "--adapter", adapter, "--wait", "60"]);
        stage.check(&stopped, "BREAKPOINT_HIT", "STOP");
        stage.json(&["debug", "stop"]);
        stage.nothing_is_left();
    }
}
