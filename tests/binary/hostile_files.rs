//! Files of a workspace that block, never end, or cost everything: read within bounds, before any consent.

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::support::{CommandOutput, Sandbox, TEST_TIMEOUT, run_command};

/// Runs `tether`, which must end in time: `timeout` ends one that does not.
fn tether(sandbox: &Sandbox, arguments: &[&str]) -> CommandOutput {
    let ours = sandbox.command(arguments);
    let mut command = std::process::Command::new("timeout");
    command.arg("--kill-after=1").arg(TEST_TIMEOUT.as_secs().to_string()).arg(ours.get_program()).args(ours.get_args());
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(&sandbox.workspace).stdin(std::process::Stdio::null());
    let started = Instant::now();
    let output = run_command(command);
    assert!(started.elapsed() < TEST_TIMEOUT, "`tether {}` does not end", arguments.join(" "));
    output
}

/// What may lie at a path, and what is said of it.
const KINDS: [(&str, &str); 4] = [
    ("fifo", "it is a FIFO, not a regular file"),
    ("link to fifo", "it is a FIFO, not a regular file"),
    ("link to device", "it is a device, not a regular file"),
    ("huge", "it has 524288000 bytes, more than"),
];

fn place(kind: &str, path: &Path) {
    let _ = fs::remove_file(path);
    let make_fifo = |path: &Path| {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    };
    match kind {
        "fifo" => make_fifo(path),
        "link to fifo" => {
            let fifo = path.with_extension("fifo");
            let _ = fs::remove_file(&fifo);
            make_fifo(&fifo);
            std::os::unix::fs::symlink(fifo, path).unwrap();
        }
        "link to device" => std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
        _ => fs::File::create(path).unwrap().set_len(500 << 20).unwrap(),
    }
}

#[test]
fn n15_a_configuration_file_that_is_no_small_regular_file_is_named_in_time() {
    for (file, others) in [
        ("devtools.toml", &[][..]),
        ("package.json", &[]),
        (".vscode/launch.json", &[]),
        (".vscode/tasks.json", &[(".vscode/launch.json", LAUNCH), ("variables.env", "A=1")]),
        ("variables.env", &[(".vscode/launch.json", LAUNCH), (".vscode/tasks.json", "{\"version\": \"2.0.0\"}")]),
    ] {
        let sandbox = Sandbox::new();
        fs::create_dir(sandbox.path(".vscode")).unwrap();
        others.iter().for_each(|(path, text)| sandbox.write(path, text));
        for (kind, expect) in KINDS {
            place(kind, &sandbox.path(file));
            let words = [&file[file.rfind('/').map_or(0, |slash| slash + 1)..], expect];
            tether(&sandbox, &["start"]).fails(2, &words);
        }
    }
}

const LAUNCH: &str = r#"{"configurations": [{"type": "node", "request": "launch", "name": "a", "program": "a.js",
    "preLaunchTask": "b", "envFile": "${workspaceFolder}/variables.env"}]}"#;

#[test]
fn n15_a_program_or_source_that_is_no_regular_file_is_named_in_time() {
    let sandbox = Sandbox::new();
    for (kind, expect) in &KINDS[..3] {
        place(kind, &sandbox.path("program"));
        tether(&sandbox, &["debug", "launch", "program"]).fails(1, &["cannot debug", expect]);
        place(kind, &sandbox.path("source.py"));
        tether(&sandbox, &["break", "set", "source.py:1"]).fails(1, &["cannot set a breakpoint in", expect]);
    }
    place("huge", &sandbox.path("source.py"));
    tether(&sandbox, &["break", "set", "source.py:1"]).fails(1, &["source.py", KINDS[3].1]);
}

#[test]
fn n15_an_ignore_file_or_a_file_of_ours_that_is_no_small_regular_file_is_named_and_not_used() {
    let sandbox = Sandbox::with(&[("a.txt", ""), ("devtools.toml", "[window]\nkind = 'node'\nprogram = 'a.js'\n")]);
    fs::create_dir(sandbox.path(".devtools")).unwrap();
    for (kind, expect) in KINDS {
        for file in [".devtoolsignore", ".gitignore", ".devtools/session.json", ".devtools/breakpoints.json"] {
            place(kind, &sandbox.path(file));
        }
        let report = tether(&sandbox, &["doctor"]).stdout;
        let link = "it is a symbolic link, which is not followed";
        let expect = if kind.starts_with("link") { link } else { expect };
        assert!(report.contains(".devtoolsignore") && report.contains(expect), "{kind}: {report}");
        assert_eq!(tether(&sandbox, &["status"]).ok().code, 0);
        tether(&sandbox, &["break", "list"]).ok();
        sandbox.tether(&["shutdown"]).ok();
    }
}

/// The peak memory that a supervisor may need for a small hostile file, in bytes.
const MOST_MEMORY: u64 = 400 << 20;

fn with_tasks(tasks: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let launch = r#"{"configurations": [{"type": "node", "request": "launch", "name": "a", "program": "a.js",
        "preLaunchTask": "t0"}]}"#;
    sandbox.write(".vscode/launch.json", launch);
    sandbox.write(".vscode/tasks.json", &format!("{{\"version\": \"2.0.0\", \"tasks\": [{tasks}]}}"));
    sandbox
}

fn tasks(count: usize, depends_on: impl Fn(usize) -> Vec<String>) -> String {
    let task =
        |at: usize| serde_json::json!({"label": format!("t{at}"), "command": "true", "dependsOn": depends_on(at)});
    (0..count).map(|at| task(at).to_string()).collect::<Vec<_>>().join(",")
}

#[test]
fn n15a_tasks_that_each_depend_twice_on_the_next_are_expanded_once() {
    let sandbox = with_tasks(&tasks(40, |at| if at < 39 { vec![format!("t{}", at + 1); 2] } else { Vec::new() }));
    let shown = tether(&sandbox, &["trust"]);
    let lines = shown.stdout.lines().filter(|line| line.contains("[\"true\"]")).count();
    assert_eq!(lines, 40, "each command once: {shown:?}");
    tether(&sandbox, &["start"]).fails(5, &["tether trust"]);
    assert!(sandbox.peak() < MOST_MEMORY);
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.write("a.js", crate::support::NODE_SERVICE);
    tether(&sandbox, &["start"]).ok();
}

#[test]
fn n15a_chains_of_tasks_and_too_many_of_them_are_refused_with_the_limit() {
    let chain = with_tasks(&tasks(1000, |at| if at < 999 { vec![format!("t{}", at + 1)] } else { Vec::new() }));
    tether(&chain, &["start"]).fails(2, &["t64", "`dependsOn` is more than 64 tasks deep"]);
    assert!(chain.supervisor().is_some(), "the supervisor was ended by a file");
    let wide =
        with_tasks(&tasks(1000, |at| if at == 0 { (1..1000).map(|at| format!("t{at}")).collect() } else { vec![] }));
    tether(&wide, &["start"]).fails(2, &["more than 500 tasks run before it"]);
    let same = with_tasks(&tasks(2, |at| if at == 0 { vec!["t1".into(); 10_000] } else { vec![] }));
    tether(&same, &["trust"]).fails(5, &["nothing was trusted"]);
}

#[test]
fn n15a_a_megabyte_of_patterns_is_reported_and_bounded_in_memory() {
    let sandbox = Sandbox::with(&[("a.js", ""), ("devtools.toml", "[window]\nkind = 'node'\nprogram = 'a.js'\n")]);
    sandbox.write(".devtoolsignore", &"*a*b*c*\n".repeat(2_000_000));
    let report = tether(&sandbox, &["doctor"]).stdout;
    assert!(report.contains("it has 16000000 bytes, more than the 1048576 that are read"), "{report}");
    sandbox.write(".devtoolsignore", &"*a*b*c*\n".repeat(100_000));
    let report = tether(&sandbox, &["doctor"]).stdout;
    assert!(report.contains("20000 with a wildcard: from this one on they are not used"), "{report}");
    let _ = tether(&sandbox, &["start"]);
    assert!(sandbox.peak() < MOST_MEMORY, "{} bytes", sandbox.peak());
}

#[test]
fn n15a_the_root_of_the_file_system_is_not_watched() {
    let sandbox = crate::support::node();
    sandbox.write("devtools.toml", "[window]\nkind = 'node'\nprogram = 'server.js'\n[watch]\nroot = '/'\n");
    sandbox.tether(&["trust", "--yes"]).ok();
    tether(&sandbox, &["start"]).fails(2, &["cannot watch /", "it is the root of the file system", "[watch] root"]);
    let home = std::env::home_dir().unwrap();
    let text = format!("[window]\nkind = 'node'\nprogram = 'server.js'\n[watch]\nroot = '{}'\n", home.display());
    sandbox.write("devtools.toml", &text);
    sandbox.tether(&["trust", "--yes"]).ok();
    tether(&sandbox, &["start"]).fails(2, &["cannot watch", "your home folder"]);
}
