//! What tasks become, as tables.

use super::*;
use crate::config::vscode::variables::VariableContext;

const PACKAGE: &str = r#"{"scripts": {"compile": "tsc -p .", "watch": "tsc -w", "precompile": "echo"}}"#;

/// The plan of `task` with these tasks, in which the workspace's path is `<ws>`.
fn planned(tasks: &str, task: &str) -> Result<BuildPlan> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".vscode")).unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    if !tasks.is_empty() {
        std::fs::write(folder.path().join(".vscode/tasks.json"), tasks).unwrap();
    }
    for path in ["package.json", "sub/package.json"] {
        std::fs::write(folder.path().join(path), PACKAGE).unwrap();
    }
    let variables = VariableContext::new(folder.path());
    let reference = JsonNode { line: 9, value: JsonValue::String(task.to_owned()) };
    let mut plan = plan_task(&TasksFile::read(&variables)?, &reference, "the configuration", Duration::from_secs(9))?;
    let short = |text: &str| text.replace(folder.path().to_str().unwrap(), "<ws>");
    for step in &mut plan.steps {
        step.argv.iter_mut().for_each(|word| *word = short(word).replace("/bin/bash", "/bin/sh"));
        step.cwd = short(step.cwd.to_str().unwrap()).into();
    }
    Ok(plan)
}

/// `expect`: each step as "label: argv in cwd (origin)".
#[track_caller]
fn check(tasks: &str, task: &str, expect: &[&str], order: StepOrder) {
    let plan = planned(tasks, task).unwrap_or_else(|error| panic!("{error}"));
    let actual = |step: &BuildStep| {
        let ends = if matches!(step.completion, StepCompletion::OnExit) { "" } else { " ~" };
        format!("{}: {:?} in {} ({}){ends}", step.label, step.argv, step.cwd.display(), step.origin)
    };
    assert_eq!(plan.steps.iter().map(actual).collect::<Vec<_>>(), expect);
    assert_eq!(plan.order, order);
}

#[track_caller]
fn refuses(tasks: &str, task: &str, parts: &[&str]) {
    let actual = planned(tasks, task).unwrap_err().to_string();
    for part in parts {
        assert!(actual.contains(part), "{part:?} is not in {actual}");
    }
}

#[test]
fn every_type_of_task_becomes_a_command() {
    let tasks = r#"{ "version": "2.0.0", "options": {"env": {"A": "1"}}, "tasks": [
        { "label": "shell", "type": "shell", "command": "echo", "args": ["a b", {"value": "$X", "quoting": "weak"}, "${HOME}"],
          "options": {"cwd": "sub", "env": {"B": "${env:B}"}} },
        { "label": "process", "command": "${workspaceFolder}/build", "args": ["a b"], "linux": {"args": ["on linux"]} },
        { "label": "fish", "type": "shell", "command": "ls", "options": {"shell": {"executable": "fish", "args": ["-i"]}} },
        { "type": "npm", "script": "compile", "path": "sub" },
        { "type": "typescript", "tsconfig": "tsconfig.json", "option": "watch" },
        { "label": "watch", "type": "npm", "script": "watch", "isBackground": true, "problemMatcher": ["$tsc-watch"],
          "group": {"kind": "build", "isDefault": true} },
    ] }"#;
    let one = StepOrder::Step(0);
    check(
        tasks,
        "shell",
        &[r#"shell: ["/bin/sh", "-c", "echo 'a b' \"$X\" ${HOME}"] in <ws>/sub (.vscode/tasks.json:2)"#],
        one.clone(),
    );
    let env = planned(tasks, "shell").unwrap().steps[0].env.clone();
    assert_eq!(env.into_iter().collect::<Vec<_>>(), [("A", "1"), ("B", "${env:B}")].map(|(a, b)| (a.into(), b.into())));
    check(tasks, "process", &[r#"process: ["<ws>/build", "on linux"] in <ws> (.vscode/tasks.json:4)"#], one.clone());
    check(tasks, "fish", &[r#"fish: ["fish", "-i", "-c", "ls"] in <ws> (.vscode/tasks.json:5)"#], one.clone());
    check(
        tasks,
        "npm: compile - sub",
        &[r#"npm: compile - sub: ["npm", "run", "compile"] in <ws>/sub (.vscode/tasks.json:6)"#],
        one.clone(),
    );
    check(
        tasks,
        "tsc: watch - tsconfig.json",
        &[r#"tsc: watch - tsconfig.json: ["tsc", "-p", "tsconfig.json", "--watch"] in <ws> (.vscode/tasks.json:7) ~"#],
        one.clone(),
    );
    check(
        tasks,
        "${defaultBuildTask}",
        &[r#"watch: ["npm", "run", "watch"] in <ws> (.vscode/tasks.json:8) ~"#],
        one.clone(),
    );
    // What VS Code finds by itself.
    check("", "npm: compile", &[r#"npm: compile: ["npm", "run", "compile"] in <ws> (package.json:1)"#], one.clone());
    check(
        tasks,
        "npm: watch - sub",
        &[r#"npm: watch - sub: ["npm", "run", "watch"] in <ws>/sub (sub/package.json:1)"#],
        one,
    );
}

#[test]
fn a_task_is_not_troubled_by_others_that_nobody_asks_for() {
    let tasks = r#"{ "tasks": [
        { "type": "gulp", "task": "default", "group": "test" }, { "type": "npm" }, { "type": "odd", "x": 1 }, 7, {},
        { "type": "npm", "script": "watch" }, { "type": "gulp", "label": "named", "task": "x" },
        { "label": "mine", "command": "make" } ] }"#;
    check(tasks, "mine", &[r#"mine: ["make"] in <ws> (.vscode/tasks.json:4)"#], StepOrder::Step(0));
    check(
        tasks,
        "npm: watch",
        &[r#"npm: watch: ["npm", "run", "watch"] in <ws> (.vscode/tasks.json:3)"#],
        StepOrder::Step(0),
    );
    refuses(tasks, "gulp: default", &["tasks.json:2", "tasks of type \"gulp\" are an extension's"]);
    refuses(tasks, "named", &["tasks.json:3", "\"gulp\""]);
    refuses(tasks, "nobody", &["has: \"gulp: default\", \"npm: watch\", \"named\", \"mine\""]);
}

#[test]
fn a_shell_gets_each_word_whole_whatever_a_variable_stands_for() {
    let tasks = r#"{ "tasks": [
        { "label": "alone", "type": "shell", "command": "${workspaceFolder}/run" },
        { "label": "line", "type": "shell", "command": "${workspaceFolder}/run --x" },
        { "label": "words", "type": "shell", "command": "cat", "args": ["${env:CARGO_PKG_DESCRIPTION}", "$X"] },
        { "label": "late", "type": "shell", "command": "cat ${env:DEVTETHER_SURELY_UNSET} ${env:CARGO_PKG_NAME}" },
        { "label": "process", "type": "process", "command": "bash", "args": ["-c", "cat '${env:CARGO_PKG_NAME}'", "x y"] } ] }"#;
    let line = |task: &str| {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("my app");
        std::fs::create_dir_all(workspace.join(".vscode")).unwrap();
        std::fs::write(workspace.join(".vscode/tasks.json"), tasks).unwrap();
        let variables = VariableContext::new(&workspace);
        let reference = JsonNode { line: 9, value: JsonValue::String(task.to_owned()) };
        let tasks = TasksFile::read(&variables).unwrap();
        let mut plan = plan_task(&tasks, &reference, "the configuration", Duration::from_secs(9)).unwrap();
        plan.steps[0].substitute_environment();
        let by_hand = plan.steps[0].shell_command_with_cd();
        let typed = by_hand.strip_prefix(&format!("cd '{}' && ", workspace.display())).unwrap();
        let short = |text: &str| text.replace(workspace.to_str().unwrap(), "<ws>");
        (short(&plan.steps[0].argv[2]), short(typed))
    };
    let check = |task: &str, run: &str, shown: &str| assert_eq!(line(task), (run.to_owned(), shown.to_owned()));
    check("alone", "'<ws>/run'", "'<ws>/run'");
    // As VS Code does.
    check("line", "<ws>/run --x", "<ws>/run --x");
    let description = format!("cat '{}' $X", env!("CARGO_PKG_DESCRIPTION"));
    check("words", &description, "cat \"${CARGO_PKG_DESCRIPTION}\" $X");
    check("late", "cat  devtether", "cat ${DEVTETHER_SURELY_UNSET} ${CARGO_PKG_NAME}");
    let quoted = crate::config::vscode::shell_quoting::quote_word(r#"cat ''"${CARGO_PKG_NAME}"''"#);
    check("process", "cat 'devtether'", &format!("bash -c {quoted} 'x y'"));
}

#[test]
fn dependencies_come_first_in_their_order_and_each_runs_once() {
    let tasks = r#"{ "tasks": [
        { "label": "all", "dependsOn": ["a", {"type": "npm", "script": "watch"}], "dependsOrder": "sequence" },
        { "label": "a", "command": "a", "dependsOn": "base" },
        { "label": "base", "command": "base" },
        { "label": "both", "command": "both", "dependsOn": ["a", "base"] } ] }"#;
    let (a, base, watch) = (
        r#"a: ["a"] in <ws> (.vscode/tasks.json:3)"#,
        r#"base: ["base"] in <ws> (.vscode/tasks.json:4)"#,
        r#"npm: watch: ["npm", "run", "watch"] in <ws> (.vscode/tasks.json:2)"#,
    );
    use StepOrder::*;
    let first = Sequence(vec![Parallel(vec![Step(0)]), Step(1)]);
    check(tasks, "all", &[base, a, watch], Sequence(vec![Sequence(vec![first.clone(), Step(2)])]));
    let both = r#"both: ["both"] in <ws> (.vscode/tasks.json:5)"#;
    check(tasks, "both", &[base, a, both], Sequence(vec![Parallel(vec![first, Step(0)]), Step(2)]));
}

#[test]
fn what_cannot_be_run_is_told_with_file_line_and_label() {
    let tasks = r#"{ "tasks": [
        { "label": "a", "command": "a", "dependsOn": "b" },
        { "label": "b", "command": "b", "dependsOn": ["c"] },
        { "label": "c", "command": "c", "dependsOn": "a" },
        { "label": "lonely", "command": "x", "dependsOn": "nobody" },
        { "label": "gulp", "type": "gulp", "task": "x" },
        { "label": "bg", "command": "x", "isBackground": true, "problemMatcher": "$mine" },
        { "label": "script", "type": "npm", "script": "nope" },
        { "label": "input", "command": "x", "args": ["${input:y}"] },
        { "label": "empty" } ] }"#;
    refuses(tasks, "a", &["\"a\" of ", "tasks.json:2", "it depends on itself: a → b → c → a"]);
    refuses(tasks, "lonely", &["cannot find the task \"nobody\"", "the task \"lonely\"", "has: \"a\", \"b\""]);
    refuses(tasks, "gulp", &["tasks.json:6", "\"gulp\"", "[build]"]);
    refuses(tasks, "bg", &["cannot know when the background task \"bg\"", "tasks.json:7", "`$mine`", "endsPattern"]);
    refuses(tasks, "script", &["tasks.json:8", "no script \"nope\""]);
    refuses(tasks, "input", &["the task \"input\"", "tasks.json:9", "`args`", "`${input:y}`"]);
    refuses(tasks, "empty", &["tasks.json:10", "neither a `command` nor a `dependsOn`"]);
    refuses("", "${defaultBuildTask}", &["the default build", "no task in the group"]);
    refuses("", "build", &["cannot find the task \"build\"", "there is no "]);
    refuses(r#"{ "version": "0.1.0" }"#, "x", &["tasks.json:1", "\"0.1.0\""]);
    refuses("{ \"tasks\": [\n{] }", "x", &["tasks.json:2:2"]);
}
