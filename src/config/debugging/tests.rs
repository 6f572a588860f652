//! What names of a launch.json become, and what is told of those that become nothing.

use super::*;

const LAUNCH: &str = r#"{ // ours
  "configurations": [
    { "name": "App", "type": "debugpy", "request": "launch", "program": "${workspaceFolder}/app.py",
      "args": ["--port", "${config:port}", "${env:CARGO_PKG_NAME}"],
      "linux": { "cwd": "${workspaceFolder}/sub" }, "cwd": "/elsewhere",
      "envFile": "${workspaceFolder}/.env", "env": { "B": "over", "N": null },
      "preLaunchTask": "build", "postDebugTask": "tidy", "stopOnEntry": false, "serverReadyAction": {} },
    { "name": "File", "type": "debugpy", "request": "launch", "program": "${file}", "args": ["${fileBasename}"] },
    { "name": "Pick", "type": "lldb", "request": "attach", "pid": "${command:pickProcess}" },
    { "name": "Npm", "type": "node", "request": "launch", "runtimeExecutable": "npm", "runtimeArgs": ["run", "serve"] },
    { "name": "Unknown", "type": "go", "request": "launch",
      "program": "${nobody}" },
    { "name": "Asks", "type": "go", "request": "launch", "args": [
      "${input:port}"] },
    { "name": "Host", "type": "extensionHost", "request": "launch" },
    { "name": "No type", "request": "launch" },
    { "name": "No request", "type": "go" },
    { "name": "Odd", "type": "go", "request": "run" },
    { "name": "No file", "type": "go", "request": "launch", "envFile": "${workspaceFolder}/none.env" },
    { "name": "No task", "type": "go", "request": "launch", "preLaunchTask": "nope" },
    { "name": "Files", "type": "go", "request": "launch", "envFile": ["${workspaceFolder}/.env", "b.env"], "env": { "D": "4" } },
    { "name": "One file", "type": "go", "request": "launch", "envFile": [".env",
      "none.env"] },
    { "name": "Attached", "type": "debugpy", "request": "attach" },
  ],
  "compounds": [
    { "name": "Both", "configurations": ["File", { "name": "Npm", "folder": "my app" }], "stopAll": true, "preLaunchTask": "build" },
    { "name": "Lost", "configurations": ["File",
      "Gone"] },
    { "name": "Away", "configurations": [{ "name": "File", "folder": "other" }] },
    { "name": "Empty", "configurations": [] },
  ],
}"#;
const TASKS: &str = r#"{ "version": "2.0.0", "tasks": [
  { "label": "build", "type": "process", "command": "make", "args": ["${fileBasenameNoExtension}"], "options": {"cwd": "${fileDirname}"} },
  { "label": "tidy", "type": "process", "command": "rm" } ] }"#;

struct Place {
    _home: tempfile::TempDir,
    folder: PathBuf,
}

impl Place {
    fn new(launch: &str) -> Place {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("my app");
        std::fs::create_dir_all(folder.join(".vscode")).unwrap();
        let files = [
            (".vscode/launch.json", launch),
            (".vscode/tasks.json", TASKS),
            (".vscode/settings.json", "{\"port\": 80}"),
            ("package.json", "{\"scripts\": {\"serve\": \"node s.js\"}}"),
            (".env", "A=of ${nobody}\nexport B=\"below\"\n"),
            ("b.env", "B=later\nD=3\n"),
        ];
        files.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).unwrap());
        Place { _home: home, folder }
    }

    fn of(&self, name: &str) -> Result<DebugPlan> {
        DebugPlan::resolve(&self.folder, name)
    }

    fn shown(&self, text: impl ToString) -> String {
        text.to_string().replace(self.folder.to_str().unwrap(), "<ws>")
    }
}

fn given() -> EditorInputs {
    EditorInputs { file: Some("/x/one.py".into()), pid: Some(42) }
}

#[test]
fn a_configuration_reaches_its_debugger_as_it_is_written() {
    let place = Place::new(LAUNCH);
    let all = place.of("App").unwrap().with_editor_inputs(&given()).unwrap();
    let [it] = &all.configurations[..] else { panic!("{all:?}") };
    let expect = json!({
        "name": "App", "type": "debugpy", "request": "launch", "program": "<ws>/app.py", "cwd": "<ws>/sub",
        "args": ["--port", "80", "devtether"], "stopOnEntry": false, "serverReadyAction": {},
        "env": {"A": "of ${nobody}", "B": "over", "N": null},
    });
    let fields: Value = place.shown(Value::from(it.fields.clone())).parse().unwrap();
    assert_eq!((fields, it.kind.as_str()), (expect, "debugpy"));
    let (before, after) = (&it.before.steps[0], &it.after.steps[0]);
    assert_eq!((&before.argv[..], before.cwd.as_path()), (&["make", "one"].map(str::to_owned)[..], Path::new("/x")));
    assert_eq!(after.argv, ["rm"]);
    assert_eq!(it.notes, [".vscode/launch.json:7: `serverReadyAction` is not honoured"]);
}

#[test]
fn files_of_variables_are_read_as_each_debugger_does() {
    let place = Place::new(LAUNCH);
    let env = |name: &str| place.of(name).unwrap().configurations[0].fields.get("env").cloned();
    let dot_env = json!({"A": "of ${nobody}", "B": "below"});
    assert_eq!(env("File"), Some(dot_env), "`.env` is Python's when nobody names another");
    assert_eq!(env("Files"), Some(json!({"A": "of ${nobody}", "B": "later", "D": "4"})));
    assert_eq!((env("Attached"), env("Pick")), (None, None));
    let told = place.shown(place.of("One file").unwrap_err());
    assert!(told.contains("there is no `envFile` <ws>/none.env (line 23)"), "{told}");
    let lines = place.of("File").unwrap().lines();
    let line = lines.iter().find(|line| line.text.starts_with("debug.env: ")).unwrap();
    assert_eq!(line.origin.as_ref().unwrap().to_string(), ".env");
    std::fs::remove_file(place.folder.join(".env")).unwrap();
    assert_eq!(env("File"), None, "and is not missed");
    std::fs::create_dir(place.folder.join(".env")).unwrap();
    assert_eq!(env("File"), None, "nor is a folder of that name taken for it");
}

#[test]
fn what_is_said_by_hand_stands_for_the_editor() {
    let place = Place::new(LAUNCH);
    let fields = |name: &str, given: &EditorInputs| {
        place.of(name).unwrap().with_editor_inputs(given).map(|it| Value::from(it.configurations[0].fields.clone()))
    };
    let file = fields("File", &given()).unwrap();
    assert_eq!((&file["program"], &file["args"]), (&json!("/x/one.py"), &json!(["one.py"])));
    assert_eq!(fields("Pick", &given()).unwrap()["pid"], json!(42));
    let told = place.shown(fields("File", &EditorInputs::default()).unwrap_err());
    for part in
        ["\"File\" of <ws>/.vscode/launch.json:8", "`args` has the variable `${fileBasename}`", "debug launch FILE"]
    {
        assert!(told.contains(part), "{part:?} is not in {told}");
    }
    let told = fields("Pick", &EditorInputs::default()).unwrap_err().to_string();
    assert!(told.contains("${command:pickProcess}") && told.contains("--pid PID"), "{told}");
    let task = place.of("App").unwrap().with_editor_inputs(&EditorInputs::default()).unwrap_err().to_string();
    assert!(task.contains("the task \"build\" of .vscode/tasks.json:2") && task.contains("fileBasename"), "{task}");
}

#[test]
fn everything_that_runs_is_agreed_to_whoever_asks() {
    let place = Place::new(LAUNCH);
    let lines = |name: &str| -> Vec<String> {
        let lines = place.of(name).unwrap().lines();
        lines.iter().map(|line| place.shown(format!("{} [{}]", line.text, line.origin.as_ref().unwrap()))).collect()
    };
    let at = ".vscode/launch.json";
    assert_eq!(
        lines("App"),
        [
            r#"before: ["make","${fileBasenameNoExtension}"] in "${fileDirname}" [.vscode/tasks.json:2]"#.to_owned(),
            format!(r#"debug.args: ["--port","80","${{env:CARGO_PKG_NAME}}"] [{at}:4]"#),
            format!(r#"debug.cwd: "<ws>/sub" [{at}:5]"#),
            format!(r#"debug.env: {{"A":"of ${{nobody}}","B":"over","N":null}} [{at}:6]"#),
            format!(r#"debug.program: "<ws>/app.py" [{at}:3]"#),
            format!(r#"debug.request: "launch" [{at}:3]"#),
            format!(r#"debug.serverReadyAction: {{}} [{at}:7]"#),
            format!(r#"debug.stopOnEntry: false [{at}:7]"#),
            format!(r#"debug.type: "debugpy" [{at}:3]"#),
            r#"after: ["rm"] [.vscode/tasks.json:3]"#.to_owned(),
        ]
    );
    assert_eq!(lines("Npm").last().unwrap(), r#"script "serve": "node s.js" [package.json:1]"#);
    let by_args = r#"{"configurations": [{"name": "a", "type": "node", "request": "launch", "runtimeExecutable": "npm",
        "args": ["run", "serve"]}]}"#;
    assert_eq!(Place::new(by_args).of("a").unwrap().lines().last().unwrap().text, r#"script "serve": "node s.js""#);
    let terminal = r#"{"configurations": [{"name": "a", "type": "node-terminal", "request": "launch", "command": "npm run serve"}]}"#;
    assert_eq!(Place::new(terminal).of("a").unwrap().lines().last().unwrap().text, r#"script "serve": "node s.js""#);
    let both = lines("Both");
    assert!(both[0].starts_with("before: [\"make\"") && both[1].starts_with("debug \"File\".args:"), "{both:#?}");
    // A key cannot pass for another line.
    let odd = r#"{"configurations": [{"name": "a", "type": "go", "request": "launch", "x: 1\ndebug.y": 2}]}"#;
    let odd = Place::new(odd).of("a").unwrap().lines();
    assert_eq!(odd.last().unwrap().text, r#"debug."x: 1\ndebug.y": 2"#);
}

#[test]
fn a_compound_is_all_its_parts() {
    let place = Place::new(LAUNCH);
    let both = place.of("Both").unwrap();
    let names: Vec<_> = both.configurations.iter().map(|it| it.name.as_str()).collect();
    assert_eq!((names, both.stop_all, both.before.steps.len()), (vec!["File", "Npm"], true, 1));
}

#[test]
fn what_cannot_be_debugged_is_told_with_file_line_and_what_there_is() {
    let place = Place::new(LAUNCH);
    let check = |name: &str, parts: &[&str]| {
        let told = place.shown(place.of(name).unwrap_err());
        for part in parts {
            assert!(told.contains(part), "{part:?} is not in {told}");
        }
    };
    check("Nope", &["\"Nope\"", "it has: \"App\", \"File\"", "\"Empty\""]);
    check("Unknown", &["launch.json:12", "`program`", "`${nobody}`: tether does not know it", "write its value"]);
    check("Asks", &["launch.json:14", "`${input:port}`: it asks the user"]);
    check("Host", &["launch.json:15", "--config Host`", "--window extensionHost"]);
    check("No type", &["launch.json:16", "no `type`"]);
    check("No request", &["launch.json:17", "no `request`"]);
    check("Odd", &["launch.json:18", "\"run\""]);
    check("No file", &["there is no `envFile` <ws>/none.env (line 19)"]);
    check("No task", &["cannot find the task \"nope\"", "launch.json:20", "\"build\", \"tidy\""]);
    check("Lost", &["\"Lost\" of <ws>/.vscode/launch.json:28", "its part \"Gone\" (line 29)", "\"App\""]);
    check("Away", &["the folder \"other\""]);
    check("Empty", &["no `configurations`"]);
    let broken = Place::new("{\n  \"configurations\": [\n    { \"name\": \"a\" \"type\": \"go\" } ] }");
    assert!(broken.shown(broken.of("a").unwrap_err()).starts_with("cannot read <ws>/.vscode/launch.json:3:"));
    let none = tempfile::tempdir().unwrap();
    let told = DebugPlan::resolve(none.path(), "a").unwrap_err().to_string();
    assert!(told.contains("there is no ") && told.contains("`tether debug launch PROGRAM`"), "{told}");
}
