//! Which debug sessions the configurations of a launch.json become, and which are refused.

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

fn inputs() -> EditorInputs {
    EditorInputs::new(Some("/x/one.py".into()), Some(42))
}

#[test]
fn a_debugger_receives_the_keys_of_its_configuration_as_written() {
    let place = Place::new(LAUNCH);
    let all = place.of("App").unwrap().with_editor_inputs(&inputs()).unwrap();
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
    let notes = it.attribute_notes("debugpy").unwrap();
    let why = "nothing is opened when the program prints its address";
    assert_eq!(notes, [format!(".vscode/launch.json:7: `serverReadyAction` is not honoured: {why}")]);
}

#[test]
fn environment_files_are_read_as_each_debugger_does() {
    let place = Place::new(LAUNCH);
    let env = |name: &str| place.of(name).unwrap().configurations[0].fields.get("env").cloned();
    let dot_env = json!({"A": "of ${nobody}", "B": "below"});
    assert_eq!(env("File"), Some(dot_env), "`.env` is read for Python without an `envFile`");
    assert_eq!(env("Files"), Some(json!({"A": "of ${nobody}", "B": "later", "D": "4"})));
    assert_eq!((env("Attached"), env("Pick")), (None, None));
    let message = place.shown(place.of("One file").unwrap_err());
    assert!(message.contains("there is no `envFile` <ws>/none.env (line 23)"), "{message}");
    let lines = place.of("File").unwrap().consent_lines();
    let line = lines.iter().find(|line| line.text.starts_with("debug.env: ")).unwrap();
    assert_eq!(line.origin.as_ref().unwrap().to_string(), ".env");
    std::fs::remove_file(place.folder.join(".env")).unwrap();
    assert_eq!(env("File"), None, "and need not exist");
    std::fs::create_dir(place.folder.join(".env")).unwrap();
    assert_eq!(env("File"), None, "a folder of that name is not read");
}

#[test]
fn editor_inputs_are_substituted() {
    let place = Place::new(LAUNCH);
    let fields = |name: &str, inputs: &EditorInputs| {
        place.of(name).unwrap().with_editor_inputs(inputs).map(|it| Value::from(it.configurations[0].fields.clone()))
    };
    let file = fields("File", &inputs()).unwrap();
    assert_eq!((&file["program"], &file["args"]), (&json!("/x/one.py"), &json!(["one.py"])));
    assert_eq!(fields("Pick", &inputs()).unwrap()["pid"], json!(42));
    let message = place.shown(fields("File", &EditorInputs::default()).unwrap_err());
    for part in
        ["\"File\" of <ws>/.vscode/launch.json:8", "`args` has the variable `${fileBasename}`", "debug launch FILE"]
    {
        assert!(message.contains(part), "{part:?} is not in {message}");
    }
    let message = fields("Pick", &EditorInputs::default()).unwrap_err().to_string();
    assert!(message.contains("${command:pickProcess}") && message.contains("--pid PID"), "{message}");
    let task = place.of("App").unwrap().with_editor_inputs(&EditorInputs::default()).unwrap_err().to_string();
    assert!(task.contains("the task \"build\" of .vscode/tasks.json:2") && task.contains("fileBasename"), "{task}");
}

#[test]
fn consent_covers_everything_that_runs() {
    let place = Place::new(LAUNCH);
    let lines = |name: &str| -> Vec<String> {
        let lines = place.of(name).unwrap().consent_lines();
        lines.iter().map(|line| place.shown(format!("{} [{}]", line.text, line.origin.as_ref().unwrap()))).collect()
    };
    let at = ".vscode/launch.json";
    let shown = show_environment_field(&json!({"A": "of ${nobody}", "B": "over", "N": null}));
    assert_eq!(
        lines("App"),
        [
            r#"before: ["make","${fileBasenameNoExtension}"] in "${fileDirname}" [.vscode/tasks.json:2]"#.to_owned(),
            format!(r#"debug.args: ["--port","80","${{env:CARGO_PKG_NAME}}"] [{at}:4]"#),
            format!(r#"debug.cwd: "<ws>/sub" [{at}:5]"#),
            format!("debug.env: {shown} [{at}:6]"),
            format!(r#"debug.program: "<ws>/app.py" [{at}:3]"#),
            format!(r#"debug.request: "launch" [{at}:3]"#),
            format!(r#"debug.serverReadyAction: {{}} [{at}:7]"#),
            format!(r#"debug.stopOnEntry: false [{at}:7]"#),
            format!(r#"debug.type: "debugpy" [{at}:3]"#),
            r#"after: ["rm"] [.vscode/tasks.json:3]"#.to_owned(),
            r#"script "serve": "node s.js" [package.json:1]"#.to_owned(),
        ]
    );
    assert_eq!(lines("Npm").last().unwrap(), r#"script "serve": "node s.js" [package.json:1]"#);
    let by_args = r#"{"configurations": [{"name": "a", "type": "node", "request": "launch", "runtimeExecutable": "npm",
        "args": ["run", "serve"]}]}"#;
    assert_eq!(
        Place::new(by_args).of("a").unwrap().consent_lines().last().unwrap().text,
        r#"script "serve": "node s.js""#
    );
    let terminal = r#"{"configurations": [{"name": "a", "type": "node-terminal", "request": "launch", "command": "npm run serve"}]}"#;
    assert_eq!(
        Place::new(terminal).of("a").unwrap().consent_lines().last().unwrap().text,
        r#"script "serve": "node s.js""#
    );
    let both = lines("Both");
    assert!(both[0].starts_with("before: [\"make\"") && both[1].starts_with("debug \"File\".args:"), "{both:#?}");
    // A key cannot imitate another line.
    let odd = r#"{"configurations": [{"name": "a", "type": "go", "request": "launch", "x: 1\ndebug.y": 2}]}"#;
    let odd = Place::new(odd).of("a").unwrap().consent_lines();
    assert_eq!(odd[odd.len() - 2].text, r#"debug."x: 1\ndebug.y": 2"#);
}

#[test]
fn a_compound_has_all_its_configurations() {
    let place = Place::new(LAUNCH);
    let both = place.of("Both").unwrap();
    let names: Vec<_> = both.configurations.iter().map(|it| it.name.as_str()).collect();
    assert_eq!((names, both.before.steps.len()), (vec!["File", "Npm"], 1));
}

#[test]
fn errors_name_file_line_and_what_exists() {
    let place = Place::new(LAUNCH);
    let check = |name: &str, parts: &[&str]| {
        let message = place.shown(place.of(name).unwrap_err());
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in {message}");
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
    let message = DebugPlan::resolve(none.path(), "a").unwrap_err().to_string();
    assert!(message.contains("there is no ") && message.contains("`tether debug launch PROGRAM`"), "{message}");
}
