//! Windows and builds from launch.json, tasks.json and package.json, with the real `tether`; errors in them; commands
//! without consent.

use std::fs;

use crate::support::{NODE_SERVICE, Sandbox, is_alive, run_command, wait_for_end};
use serde_json::json;

/// A launch.json whose one configuration is a Node service, with this `preLaunchTask`.
fn launch(task: &str) -> String {
    format!(
        "{{\n  \"configurations\": [\n    {{ \"name\": \"Serve\", \"type\": \"node\", \"request\": \"launch\",\n\
         \"program\": \"${{workspaceFolder}}/server.js\",\n\"preLaunchTask\": {} }},\n  ],\n}}\n",
        json!(task)
    )
}

/// The service with tasks, without consent.
fn untrusted(task: &str, tasks: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("server.js", NODE_SERVICE);
    sandbox.write(".vscode/launch.json", &launch(task));
    sandbox.write(".vscode/tasks.json", &format!("{{ \"version\": \"2.0.0\", \"tasks\": [{tasks}] }}"));
    sandbox
}

fn trusted(task: &str, tasks: &str) -> Sandbox {
    let sandbox = untrusted(task, tasks);
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox
}

/// A task of type `shell`.
fn shell(label: &str, command: &str, more: &str) -> String {
    format!("{{ \"label\": {}, \"type\": \"shell\", \"command\": {} {more} }}", json!(label), json!(command))
}

fn lines(sandbox: &Sandbox, file: &str) -> Vec<String> {
    fs::read_to_string(sandbox.path(file)).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn pid_in(sandbox: &Sandbox, file: &str) -> u32 {
    lines(sandbox, file)[0].parse().unwrap()
}

#[test]
fn consent_says_what_it_covers_and_what_is_left() {
    let sandbox = untrusted("make", &shell("make", "true", ""));
    let all = sandbox.tether(&["trust", "--yes"]).ok().stdout;
    assert!(all.contains("trusted, until one of them changes:") && all.contains("of the window"), "{all}");
    let left = all.split("not covered, and asked for before it runs:").nth(1).expect(&all);
    assert!(left.contains("trust --workspace") && left.contains("--config Serve"), "{all}");
    let rest = sandbox.tether(&["trust", "--config", "Serve", "--yes"]).ok().stdout;
    assert!(!rest.contains("not covered"), "{rest}");
}

#[test]
fn a_launch_json_and_its_task_are_enough() {
    let sandbox = trusted(
        "make",
        &shell(
            "make",
            "mkdir -p .devtools; echo $WHO >> .devtools/made",
            ", \"options\": {\"env\": {\"WHO\": \"me\"}}",
        ),
    );
    let started = sandbox.json(&["start"]);
    assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], 42);
    assert_eq!(lines(&sandbox, ".devtools/made"), ["me"]);
    // An edit relaunches.
    sandbox.write("server.js", &NODE_SERVICE.replace("42", "43"));
    let answer = sandbox.json(&["evaluate", "answer"]);
    assert_eq!((&answer["value"], &answer["refreshed"]["because"]), (&json!(43), &json!("server.js was modified")));
    assert!(!is_alive(started["pid"].as_u64().unwrap() as u32));
    assert_eq!(lines(&sandbox, ".devtools/made").len(), 2);
}

#[test]
fn errors_in_files_name_file_line_and_field() {
    let sandbox = untrusted("a", &shell("a", "true", ", \"dependsOn\": \"b\""));
    let tasks = |text: &str| sandbox.write(".vscode/tasks.json", text);
    let refuses = |words: &[&str]| {
        for command in [&["start"][..], &["start", "--print-config"], &["trust", "--yes"]] {
            sandbox.tether(command).fails(2, words);
        }
    };
    refuses(&["cannot find the task \"b\"", "the task \"a\" of ", "tasks.json:1", "it", "[build]"]);
    tasks(
        "{ \"tasks\": [\n{ \"label\": \"a\", \"command\": \"x\", \"dependsOn\": \"b\" },\n{ \"label\": \"b\", \"dependsOn\": \"a\" } ] }",
    );
    refuses(&["\"a\" of ", "tasks.json:2", "depends on itself: a → b → a", "hint:"]);
    tasks("{ \"tasks\": [{ \"label\": \"a\", \"command\": \"x\",\n \"args\": [\"${input:which}\"] }] }");
    refuses(&["the task \"a\"", "tasks.json:2", "`args`", "`${input:which}`", "hint:"]);
    tasks("{ \"tasks\": [{ \"label\": \"a\", \"command\": \"x\", \"isBackground\": true }] }");
    refuses(&["cannot know when the background task \"a\"", "tasks.json:1", "problemMatcher"]);
    tasks("{ \"tasks\": [\n  { \"label\": \"a\" \"command\": \"x\" }] }");
    refuses(&["tasks.json:2:17"]);
    let broken = launch("a").replace("\"request\"", "\"${nonsense}\": \"\", \"cwd\": \"${nonsense}\", \"request\"");
    sandbox.write(".vscode/launch.json", &broken);
    refuses(&["the configuration \"Serve\" of ", "launch.json:3", "`cwd`", "`${nonsense}`"]);
    sandbox.write(".vscode/launch.json", "{\n  \"configurations\": [\n    { \"name\": \"Serve\",, }\n");
    refuses(&["launch.json:3:23"]);
    // A complete devtools.toml, as `tether init` writes it, replaces them.
    sandbox.tether(&["init"]).ok();
    sandbox.tether(&["trust", "--yes"]).ok();
    assert_eq!(sandbox.json(&["start"])["state"], "ready");
}

#[test]
fn a_task_that_never_ends_is_stopped_with_its_group() {
    let sandbox = trusted(
        "watch",
        &shell("watch", "echo $$ > .devtools/leader; sleep 1000 & echo $! > .devtools/child; wait", ""),
    );
    fs::create_dir(sandbox.path(".devtools")).unwrap();
    sandbox.write("devtools.toml", "[build]\ntimeout = '300ms'\n");
    let words = ["`watch` (.vscode/tasks.json:1)", "did not end within 300ms", "timeout", "isBackground"];
    sandbox.tether(&["start"]).fails(4, &words);
    for file in [".devtools/leader", ".devtools/child"] {
        wait_for_end(pid_in(&sandbox, file));
    }
    assert_eq!(sandbox.status()["state"], "absent");
}

/// A watcher that prints the begin and end of a cycle, and in it the contents of the file `result`.
const WATCHER: &str = "echo $$ >> .devtools/watchers; echo begin; cat result; echo end; exec sleep 1000";
const MATCHER: &str = r#", "isBackground": true, "problemMatcher": { "pattern": { "regexp": "^(.*): error: (.*)$", "file": 1, "message": 2 },
    "background": { "activeOnStart": false, "beginsPattern": "^begin$", "endsPattern": { "regexp": "^end$" } } }"#;

#[test]
fn a_watcher_is_waited_for_by_its_end_pattern_and_started_anew_by_the_next_build() {
    let sandbox = trusted("watch", &shell("watch", WATCHER, MATCHER));
    fs::create_dir(sandbox.path(".devtools")).unwrap();
    sandbox.write("result", "fine\n");
    let started = sandbox.json(&["start"]);
    assert_eq!(started["state"], "ready");
    assert_eq!(started["lastBuild"]["tail"], "begin\nfine\nend");
    let is_last_alive = || is_alive(lines(&sandbox, ".devtools/watchers").last().unwrap().parse().unwrap());
    assert!(is_last_alive(), "only the watcher of an extension host is ended with its first cycle");
    // An error in its cycle fails the build: the window stays.
    sandbox.write("result", "src/a.ts: error: no such thing\n");
    sandbox
        .tether(&["evaluate", "answer"])
        .fails(4, &["`watch`", "failed with 1 error", "src/a.ts: error: no such thing"]);
    assert_eq!(sandbox.status()["pid"], started["pid"]);
    sandbox.write("result", "fine again\n");
    assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], 42);
    assert!(is_last_alive());
    let watchers = lines(&sandbox, ".devtools/watchers");
    assert_eq!(watchers.len(), 3);
    for pid in &watchers[..2] {
        wait_for_end(pid.parse().unwrap());
    }
    sandbox.json(&["stop"]);
    wait_for_end(watchers[2].parse().unwrap());
}

#[test]
fn a_background_task_that_exits_without_output_is_an_error() {
    let sandbox = trusted("watch", &shell("watch", "echo begin; echo no compiler here; exit 3", MATCHER));
    sandbox
        .tether(&["start"])
        .fails(4, &["`watch`", "before it printed its end pattern `^end$`", "code 3", "no compiler here"]);
    sandbox.write(
        ".vscode/tasks.json",
        &format!("{{\"tasks\": [{}]}}", shell("watch", "echo begin; exec sleep 1000", MATCHER)),
    );
    sandbox.write("devtools.toml", "[build]\ntimeout = '300ms'\n");
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.tether(&["start"]).fails(4, &["`watch`", "did not print its end pattern `^end$` within 300ms", "begin"]);
}

#[test]
fn tasks_run_side_by_side_or_in_sequence_and_each_once() {
    // Each waits for the other, so they only end if they run in parallel.
    let meet = |own: &str, other: &str| {
        format!("echo {own} >> .devtools/run_command; echo x > .devtools/{own} & cat .devtools/{other}")
    };
    let base = r#", "dependsOn": "base""#;
    let tasks = [
        shell(
            "base",
            "mkdir -p .devtools; echo base >> .devtools/run_command; mkfifo .devtools/left .devtools/right",
            "",
        ),
        shell("left", &meet("left", "right"), base),
        shell("right", &meet("right", "left"), base),
        shell("last", "echo last >> .devtools/run_command", r#", "dependsOn": ["left", "right"]"#),
        shell("one", "echo one >> .devtools/run_command", ""),
        r#"{ "label": "all", "dependsOn": ["last", "one"], "dependsOrder": "sequence" }"#.to_owned(),
    ];
    let sandbox = trusted("all", &tasks.join(","));
    sandbox.tether(&["start"]).ok();
    let run_command = lines(&sandbox, ".devtools/run_command");
    assert_eq!(
        (run_command.len(), run_command[0].as_str(), &run_command[3..]),
        (5, "base", &["last".to_owned(), "one".to_owned()][..]),
        "{run_command:?}"
    );
    let printed = sandbox.json(&["start", "--print-config"]);
    assert_eq!(printed["build"]["order"], "(`base`, then `left` with `base`, then `right`), then `last`, then `one`");
}

#[test]
fn the_first_task_that_fails_ends_the_others() {
    let tasks = [
        shell("bad", "cat .devtools/go; echo wrong >&2; exit 7", ""),
        shell("endless", "echo $$ > .devtools/endless; echo x > .devtools/go; exec sleep 1000", ""),
        r#"{ "label": "both", "dependsOn": ["bad", "endless"] }"#.to_owned(),
    ];
    let sandbox = trusted("both", &tasks.join(","));
    fs::create_dir(sandbox.path(".devtools")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(sandbox.path(".devtools/go")).status().unwrap().success());
    sandbox.tether(&["start"]).fails(4, &["`bad` (.vscode/tasks.json:1) failed", "code 7", "wrong"]);
    wait_for_end(pid_in(&sandbox, ".devtools/endless"));
}

#[test]
fn a_command_that_has_changed_by_one_byte_is_not_run() {
    let sandbox = untrusted("npm: compile", "");
    let package = |script: &str| {
        sandbox.write(
            "package.json",
            &json!({"scripts": {"compile": script, "precompile": "true", "lint": "x"}}).to_string(),
        );
    };
    sandbox.tether(&["start"]).fails(2, &["\"npm: compile\""]);
    package("echo 1");
    sandbox.tether(&["start"]).fails(5, &["not trusted", "consent to them is not recorded", "tether trust"]);
    let reported = sandbox.tether(&["trust", "--yes"]).ok().stdout;
    for line in [
        r#"build: ["npm","run","compile"]"#,
        r#"script "compile": "echo 1"   [package.json:1]"#,
        r#"script "precompile": "true""#,
        r#"script "lint": "x""#,
    ] {
        assert!(reported.contains(line), "{line} is not in {reported}");
    }
    sandbox.json(&["start"]);
    package("echo 2");
    sandbox
        .tether(&["evaluate", "answer"])
        .fails(5, &["has changed since you agreed: script \"compile\": \"echo 2\" (package.json:1)"]);
    assert_eq!(sandbox.status()["state"], "stale", "the old window stays");
    package("echo 1");
    sandbox.json(&["evaluate", "answer"]);
    // The same holds for each other file.
    for (file, from, to, reported) in [
        (".vscode/launch.json", "server.js", "server2.js", "window.program"),
        (".vscode/launch.json", "\"request\"", "\"env\": {\"NODE_OPTIONS\": \"\"}, \"request\"", "window.env"),
    ] {
        let text = fs::read_to_string(sandbox.path(file)).unwrap();
        sandbox.write(file, &text.replace(from, to));
        sandbox.tether(&["restart"]).fails(5, &["has changed since you agreed", reported, file]);
        sandbox.write(file, &text);
    }
    sandbox.write(".npmrc", "script-shell = ./evil.sh\n");
    sandbox.tether(&["restart"]).fails(5, &[".npmrc script-shell", "./evil.sh", ".npmrc:1"]);
    assert!(!sandbox.path("run_command").exists());
}

#[test]
fn consent_covers_every_script_of_the_workspace() {
    let sandbox = untrusted("npm: compile", "");
    sandbox.write("package.json", r#"{"scripts": {"compile": "cd $UI && npm run build"}}"#);
    let package = |script: &str| {
        sandbox.write("webview-ui/package.json", &json!({"scripts": {"build": script, "lint": "x"}}).to_string());
    };
    let lint = |script: &str| sandbox.write("a/b/package.json", &json!({"scripts": {"lint": script}}).to_string());
    package("echo 1");
    lint("x");
    let reported = sandbox.tether(&["trust", "--yes"]).ok().stdout;
    assert!(reported.contains(r#"script "webview-ui: build": "echo 1"   [webview-ui/package.json:1]"#), "{reported}");
    lint("y");
    sandbox.tether(&["start"]).fails(5, &[r#"script "a/b: lint": "y" (a/b/package.json:1)"#]);
    lint("x");
    package("echo 2");
    let words = r#"has changed since you agreed: script "webview-ui: build": "echo 2" (webview-ui/package.json:1)"#;
    sandbox.tether(&["start"]).fails(5, &[words, "tether trust --workspace '"]);
    package("echo 1");
    sandbox.write("a/b/package.json", "{");
    sandbox.tether(&["start"]).fails(2, &["cannot read", "a/b/package.json:1:"]);
}

#[test]
fn a_repository_cannot_contain_its_own_consent() {
    let sandbox = untrusted("make", &shell("make", "true", ""));
    // The consent of another user or the author, as a file of the repository.
    let inside = sandbox.path("cfg");
    let with_inside = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        command.env("XDG_CONFIG_HOME", &inside);
        run_command(command)
    };
    with_inside(&["trust", "--yes"])
        .fails(5, &["cannot use the trust records", "inside the workspace", "XDG_CONFIG_HOME"]);
    assert!(!inside.exists());
    let recorded = sandbox.tether(&["trust", "--yes", "--json"]).ok().json();
    let record = recorded["record"].as_str().unwrap().to_owned();
    let name = std::path::Path::new(&record).file_name().unwrap().to_str().unwrap();
    for place in ["cfg/devtether/trust", ".devtools/trust", ".devtools", "trust"] {
        fs::create_dir_all(sandbox.path(place)).unwrap();
        fs::copy(&record, sandbox.path(place).join(name)).unwrap();
    }
    fs::remove_file(&record).unwrap();
    sandbox.tether(&["start"]).fails(5, &["consent to them is not recorded"]);
    sandbox.tether(&["shutdown"]).ok();
    with_inside(&["start"]).fails(5, &["cannot use the trust records"]);
    // Nor through a link that points back into it.
    fs::remove_dir_all(sandbox.home().join("config")).unwrap();
    std::os::unix::fs::symlink(&inside, sandbox.home().join("config")).unwrap();
    sandbox.tether(&["shutdown"]).ok();
    sandbox.tether(&["start"]).fails(5, &["cannot use the trust records"]);
}

#[test]
fn a_chosen_configuration_holds_until_the_window_is_stopped() {
    let sandbox = Sandbox::new();
    let configuration = |name: &str, answer: u32| json!({"name": name, "type": "node", "program": "server.js", "env": {"ANSWER": answer.to_string()}});
    let launch = json!({
        "configurations": [configuration("One", 1), configuration("Two", 2)],
        "compounds": [{"name": "Both", "configurations": ["One", "Two"]}],
    });
    sandbox.write(".vscode/launch.json", &launch.to_string());
    let service = "globalThis.answer = process.env.ANSWER; setInterval(() => {}, 1000);";
    sandbox.write("server.js", service);
    sandbox.tether(&["start", "--config", "Three"]).fails(3, &["\"Three\"", "\"One\", \"Two\""]);
    sandbox.tether(&["start", "--config", "Both"]).fails(3, &["compound", "\"One\", \"Two\""]);
    sandbox.tether(&["trust", "--yes"]).ok();
    // Each needs its own consent, and a refused one changes nothing.
    sandbox.tether(&["start", "--config", "Two"]).fails(5, &["\"Two\"", "--config Two`"]);
    let answers = |expect: &str| assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], expect);
    sandbox.json(&["start"]);
    answers("1");
    sandbox.tether(&["trust", "--yes", "--config", "Two"]).ok();
    let two = sandbox.json(&["start", "--config", "Two"]);
    answers("2");
    assert_eq!(sandbox.json(&["start", "--config", "Two"])["pid"], two["pid"], "it runs already");
    assert_eq!(sandbox.json(&["start"])["pid"], two["pid"]);
    // A relaunch, then a new supervisor, then its relaunch.
    sandbox.write("server.js", &format!("{service}\n"));
    answers("2");
    sandbox.tether(&["shutdown"]).ok();
    answers("2");
    sandbox.write("server.js", &format!("{service}\n\n"));
    answers("2");
    assert_eq!(sandbox.json(&["start", "--print-config"])["configuration"], "Two");
    // Removed from the file, it is an error with a hint.
    sandbox.write(".vscode/launch.json", &launch.to_string().replace("\"Two\"", "\"2\""));
    sandbox.tether(&["restart"]).fails(3, &["\"Two\"", "`tether stop`"]);
    sandbox.write(".vscode/launch.json", &launch.to_string());
    sandbox.tether(&["stop"]).ok();
    sandbox.json(&["start"]);
    answers("1");
}

#[test]
fn a_configuration_that_is_chosen_while_another_is_built_is_built_itself() {
    let sandbox = Sandbox::new();
    let configuration = |name: &str| json!({"name": name, "type": "node", "program": "server.js", "env": {"ANSWER": name}, "preLaunchTask": name});
    sandbox.write(
        ".vscode/launch.json",
        &json!({"configurations": [configuration("one"), configuration("two")]}).to_string(),
    );
    let tasks = [
        shell("one", "echo one >> .devtools/built; cat .devtools/go", ""),
        shell("two", "echo two >> .devtools/built", ""),
    ];
    sandbox.write(".vscode/tasks.json", &format!("{{\"tasks\": [{}]}}", tasks.join(",")));
    sandbox.write("server.js", "globalThis.answer = process.env.ANSWER; setInterval(() => {}, 1000);");
    fs::create_dir(sandbox.path(".devtools")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(sandbox.path(".devtools/go")).status().unwrap().success());
    for name in ["one", "two"] {
        sandbox.tether(&["trust", "--yes", "--config", name]).ok();
    }
    let mut one = sandbox.command(["start"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    // Opening the FIFO for writing blocks until the build reads it.
    let go = fs::OpenOptions::new().write(true).open(sandbox.path(".devtools/go")).unwrap();
    let two = sandbox.command(["start", "--config", "two"]).stdout(std::process::Stdio::null()).spawn();
    // The second request was received once its choice is stored.
    crate::support::eventually("the choice is kept", || {
        let states = fs::read_dir(sandbox.home().join("state/devtether")).unwrap().filter_map(Result::ok);
        states.map(|state| state.path().join("configuration.json")).find(|file| file.exists())
    });
    drop(go);
    assert!(two.unwrap().wait().unwrap().success() && one.wait().unwrap().success());
    assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], "two");
    assert_eq!(lines(&sandbox, ".devtools/built"), ["one", "two"]);
}

#[test]
fn what_the_build_writes_is_no_change() {
    let sandbox =
        trusted("tsc", &shell("tsc", "mkdir -p out; date +%N > out/a.js; date +%N > tsconfig.tsbuildinfo", ""));
    sandbox.write(
        "tsconfig.json",
        "{\n  // compiled\n  \"compilerOptions\": {\n    \"incremental\": true,\n    \"outDir\": \"./out\"\n  }\n}\n",
    );
    let started = sandbox.json(&["start"]);
    assert_eq!(started.get("notes"), None, "{started}");
    sandbox.write("out/b.js", "");
    assert_eq!(sandbox.status()["stale"], false);
    let reported = sandbox.json(&["changes", "out/a.js"]);
    assert_eq!(
        (&reported["tracked"], &reported["rule"], &reported["line"]),
        (&json!(false), &json!("/out/"), &json!(5))
    );
    assert!(reported["file"].as_str().unwrap().ends_with("tsconfig.json"));
    // The user's devtools.toml wins.
    sandbox.write(".devtoolsignore", "!/out/\n");
    assert_eq!(sandbox.status()["stale"], true);
    assert_eq!(sandbox.json(&["changes", "out/a.js"])["tracked"], true);
}

#[test]
fn what_would_run_is_printed_and_not_run() {
    let sandbox = untrusted("make", &shell("make", "touch run_command", ""));
    let printed = sandbox.json(&["start", "--print-config"]);
    assert_eq!((&printed["configuration"], &printed["trusted"]), (&json!("Serve"), &json!(false)));
    assert_eq!(printed["window"]["kind"], "node");
    let step = &printed["build"]["steps"][0];
    assert_eq!(
        (&step["label"], &step["file"], &step["line"]),
        (&json!("make"), &json!(".vscode/tasks.json"), &json!(1))
    );
    let text = sandbox.tether(&["start", "--print-config", "--config", "Serve"]).ok().stdout;
    for line in ["window.kind: \"node\"   [.vscode/launch.json:3]", "[.vscode/launch.json:4]", "not trusted yet"] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    sandbox.tether(&["start", "--print-config", "--config", "No"]).fails(3, &["\"Serve\""]);
    assert!(!sandbox.path("run_command").exists());
    assert_eq!((sandbox.supervisor(), sandbox.processes()), (None, vec![]), "no supervisor was needed");
    let schema = sandbox.tether(&["schema"]).ok().json();
    assert!(schema["$defs"]["WindowSettings"]["properties"]["codeServer"].is_object(), "{schema}");
}

#[test]
fn an_empty_folder_is_pointed_to_tether_init() {
    let sandbox = Sandbox::new();
    for command in [&["start"][..], &["start", "--print-config"]] {
        sandbox.tether(command).fails(2, &["cannot tell what to launch", "`tether init`"]);
    }
    sandbox.write("server.js", NODE_SERVICE);
    let written = sandbox.tether(&["init"]).ok().stdout;
    assert!(written.contains("devtools.toml") && written.contains("tether trust"), "{written}");
    sandbox.tether(&["init"]).fails(2, &["devtools.toml", "not overwritten"]);
    assert!(sandbox.path(".devtools/devtools.schema.json").is_file());
    assert_eq!(lines(&sandbox, ".devtools/.gitignore"), ["*"]);
    sandbox.tether(&["trust", "--yes"]).ok();
    assert_eq!(sandbox.json(&["start"])["state"], "ready");
}

#[test]
fn a_client_is_set_up_by_consent_and_taken_back() {
    let sandbox = Sandbox::new();
    let file = sandbox.path(".mcp.json");
    sandbox.write(".mcp.json", "{\n  // mine\n  \"mcpServers\": {}\n}\n");
    let before = std::fs::read_to_string(&file).unwrap();
    sandbox.tether(&["setup", "claude-code"]).fails(5, &["nothing was written", "`tether setup claude-code --yes`"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    let shown = sandbox.tether(&["setup", "claude-code", "--yes"]).ok().stdout;
    assert!(shown.contains("+     \"tether\"") && shown.contains("wrote "), "{shown}");
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.contains("// mine") && written.contains("\"args\": [\"mcp\"]"), "{written}");
    assert!(sandbox.tether(&["setup", "claude-code", "--yes"]).ok().stdout.contains("has tether already"));
    sandbox.tether(&["setup", "claude-code", "--remove", "--yes"]).ok();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    sandbox.tether(&["setup", "emacs"]).fails(2, &["claude-code", "gemini", "zed"]);
}
