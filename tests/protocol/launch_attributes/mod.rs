//! Every attribute of launch.json that VS Code's debuggers document: what `attributes.md` says becomes of it is what
//! the notes say, and what the adapters receive. Nothing is started.
//!
//! `UPDATE_ATTRIBUTES=1 cargo test --test protocol launch_attributes` writes the table again.

mod attribute_table;

use std::fs;
use std::path::Path;

use devtether::adapters::{ADAPTERS, Adapter, DebugTarget, FoundAdapter, LaunchPlan};
use devtether::config::{AttributeReader, AttributeUse, DebugConfiguration, DebugPlan, EditorInputs};
use serde_json::{Value, json};
use tether_base::error::Result;
use tether_dap::types::StartRequest;

/// The documented attributes of one type; `*`: of every type.
pub struct DocumentedType {
    pub kind: String,
    pub source: String,
    /// Of `launch` and `attach`, where there is such a request.
    pub requests: Vec<(&'static str, Vec<String>)>,
}

fn documented_types() -> Vec<DocumentedType> {
    let table: toml::Table = include_str!("../../../src/config/vscode/documented_attributes.toml").parse().unwrap();
    let words = |text: &toml::Value| text.as_str().unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let read = |one: &toml::Value| {
        let text = |name: &str| one[name].as_str().unwrap().to_owned();
        let requests = ["launch", "attach"].into_iter().filter_map(|name| Some((name, words(one.get(name)?))));
        DocumentedType { kind: text("type"), source: text("source"), requests: requests.collect() }
    };
    table["type"].as_array().unwrap().iter().map(read).collect()
}

/// The adapters that debug a configuration of this type.
pub fn adapters_of(kind: &str, request: &str) -> Vec<&'static Adapter> {
    let attaches = |row: &Adapter| request == "attach" && row.attach_types.contains(&kind);
    // An extension host is launched as a window.
    let launches = |row: &Adapter| row.types.contains(&kind) && (kind, request) != ("extensionHost", "launch");
    ADAPTERS.iter().filter(|row| launches(row) || attaches(row)).collect()
}

/// A workspace with a program for each type, and what is planned for a configuration in it.
struct SampleWorkspace(tempfile::TempDir);

impl SampleWorkspace {
    fn new() -> SampleWorkspace {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".vscode")).unwrap();
        let tasks = json!({"tasks": [{"label": "other", "type": "process", "command": "make"}]}).to_string();
        for (name, text) in [("program", ""), ("a.env", "A=1"), (".vscode/tasks.json", &tasks)] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path().join("program"), mode).unwrap();
        SampleWorkspace(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn configuration(&self, fields: &Value) -> DebugConfiguration {
        let text = json!({"configurations": [fields]}).to_string();
        fs::write(self.path().join(".vscode/launch.json"), text).unwrap();
        let plan = DebugPlan::resolve(self.path(), "it").unwrap_or_else(|error| panic!("{fields}: {error}"));
        plan.with_editor_inputs(&EditorInputs::default()).unwrap().configurations.remove(0)
    }

    fn plan(&self, adapter: &Adapter, configuration: &DebugConfiguration) -> Result<LaunchPlan> {
        let found = FoundAdapter {
            path: "/the adapter".into(),
            interpreter: Some("/bin/it".into()),
            place: String::new(),
            formatters: None,
            search_path: None,
            note: None,
        };
        let (cwd, fields) = (self.path().to_owned(), configuration.fields.clone());
        (adapter.plan)(&found, &DebugTarget { cwd, fields, ..DebugTarget::default() })
    }
}

/// A configuration of this type with nothing but what it needs.
fn plain_configuration(kind: &str, request: &str) -> Value {
    let mut fields = json!({"name": "it", "type": kind, "request": request});
    match (kind, request) {
        ("chrome", "launch") => fields["url"] = json!("http://x/"),
        (_, "launch") => fields["program"] = json!("program"),
        ("debugpy" | "go" | "lldb-dap" | "lldb" | "cppdbg", _) => {}
        _ => fields["port"] = json!(9229),
    }
    fields
}

/// A value that asks for something.
fn asking_value(name: &str) -> Value {
    match name {
        "program" => json!("./program"),
        "args" | "runtimeArgs" | "pythonArgs" | "vmArgs" | "code" => json!(["other"]),
        "env" => json!({"A": "1"}),
        "linux" | "osx" | "windows" => json!({"name": "it"}),
        "environment" => json!([{"name": "A", "value": "1"}]),
        "envFile" => json!("a.env"),
        "port" | "processId" | "pid" => json!(4711),
        "connect" => json!({"port": 4711}),
        "miDebuggerServerAddress" => json!("127.0.0.1:2345"),
        "stopOnEntry" | "stopAtEntry" | "gevent" | "sudo" | "pyramid" => json!(true),
        "subProcess" => json!(false),
        "cwd" => json!("."),
        _ => json!("other"),
    }
}

/// The configuration with this attribute is treated as the table says.
fn check(workspace: &SampleWorkspace, adapter: &Adapter, (kind, request, name): (&str, &str, &str)) {
    let reader = AttributeReader { name: adapter.name, kind, request };
    let plain = plain_configuration(kind, request);
    let mut asking = plain.clone();
    if !["name", "type", "request"].contains(&name) {
        asking[name] = asking_value(name);
    }
    let configuration = workspace.configuration(&asking);
    let place = format!("{} {kind} {request}: {name}", adapter.name);
    let notes = configuration.attribute_notes(adapter.name).map(|notes| notes.join("\n"));
    let does = reader.use_of(name);
    match (does, &notes) {
        (AttributeUse::Unknown, _) => panic!("{place}: no table has it"),
        (AttributeUse::Refused(why), notes) => {
            let error = notes.as_ref().unwrap_err().to_string();
            assert!(error.contains(&format!("`{name}`")) && error.contains(why), "{place}: {error}");
        }
        (AttributeUse::Noted(why), Ok(notes)) => {
            let expect = format!(".vscode/launch.json:1: `{name}` is not honoured: {why}");
            assert!(notes.lines().any(|note| note == expect), "{place}: {notes}");
        }
        (_, notes) => assert_eq!(notes.as_ref().unwrap(), "", "{place}"),
    }
    let plan = |fields: &Value| workspace.plan(adapter, &workspace.configuration(fields));
    if does == AttributeUse::Passed {
        let (StartRequest::Launch(fields) | StartRequest::Attach(fields)) = plan(&asking).unwrap().start;
        assert!(fields.contains_key(name), "{place}: {fields:?}");
    }
    let of_vscode = ["name", "type", "request", "linux", "preLaunchTask", "postDebugTask"];
    if does == AttributeUse::Honoured && !of_vscode.contains(&name) {
        let mut without = plain;
        without.as_object_mut().unwrap().remove(name);
        assert_ne!(format!("{:?}", plan(&without)), format!("{:?}", plan(&asking)), "{place} changes nothing");
    }
}

#[test]
fn every_documented_attribute_is_treated_as_the_table_says() {
    let workspace = SampleWorkspace::new();
    let types = documented_types();
    let (every, types): (Vec<_>, Vec<_>) = types.into_iter().partition(|it| it.kind == "*");
    let general = &every[0].requests;
    let mut checked = 0;
    for DocumentedType { kind, requests, .. } in &types {
        for (request, names) in requests {
            let of_all = general.iter().find(|(name, _)| name == request).unwrap();
            for adapter in adapters_of(kind, request) {
                for name in names.iter().chain(&of_all.1) {
                    check(&workspace, adapter, (kind, request, name));
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 700, "{checked}");
    attribute_table::hold(&every[0], &types);
}
