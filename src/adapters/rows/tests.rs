//! The rows as tables: each is sound, each is chosen by what a caller says, each asks for what it should.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::native;
use crate::adapters::*;
use crate::dap::types::StartRequest;
use crate::error::ErrorKind;
use crate::tools::Pins;

fn row(name: &str) -> &'static Adapter {
    ADAPTERS.iter().find(|row| row.name == name).unwrap()
}

#[test]
fn every_row_is_sound() {
    let pins = Pins::read().unwrap();
    for (at, row) in ADAPTERS.iter().enumerate() {
        let lower = |word: &str| word.to_lowercase() == word;
        assert!(ADAPTERS[..at].iter().all(|other| other.name != row.name), "{} is there twice", row.name);
        assert!(lower(row.name) && row.languages.iter().all(|language| lower(language)), "{}", row.name);
        assert!(row.extensions.iter().all(|extension| lower(extension) && !extension.starts_with('.')), "{}", row.name);
        assert!(!row.languages.is_empty() && !row.types.is_empty() && row.install.contains("install"), "{}", row.name);
        if let Some((_, tool)) = row.install.split_once("`tether adapters install ") {
            let tool = tool.split('`').next().unwrap();
            assert_eq!(tool, row.name);
            assert!(pins.tool(tool).unwrap().brings.iter().any(|brought| brought == row.name), "{tool}");
        }
    }
    for brought in pins.tools.iter().flat_map(|tool| &tool.brings) {
        assert!(ADAPTERS.iter().any(|row| row.name == brought), "there is no adapter {brought}");
    }
}

#[test]
fn a_row_is_chosen_by_the_first_thing_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let check = |ask: AdapterQuery, expect: &[&str]| {
        let names: Vec<_> = select_adapters(ask).unwrap().iter().map(|row| row.name).collect();
        assert_eq!(names, expect, "{ask:?}");
    };
    const NATIVE: &[&str] = &["lldb-dap", "codelldb", "gdb"];
    let app = Path::new("/not there/app.PY");
    fn by_program(program: &Path) -> AdapterQuery<'_> {
        AdapterQuery { program: Some(program), ..AdapterQuery::default() }
    }
    check(by_program(app), &["debugpy"]);
    check(AdapterQuery { language: Some("Go"), ..by_program(app) }, &["dlv"]);
    check(AdapterQuery { kind: Some("chrome"), language: Some("go"), ..by_program(app) }, &["js-debug"]);
    check(AdapterQuery { adapter: Some("gdb"), kind: Some("chrome"), ..by_program(app) }, &["gdb"]);
    check(AdapterQuery { kind: Some("cppdbg"), ..AdapterQuery::default() }, NATIVE);
    check(by_program(Path::new("x.rs")), NATIVE);
    check(by_program(Path::new("x.cs")), &["netcoredbg"]);
    check(by_program(&write("a.out", b"\x7fELF\x02\x01\x01")), NATIVE);
    check(by_program(&write("gone", b"\x7fELF....\xff Go build ID: \"x\"")), &["dlv"]);
    check(by_program(&write("tool", b"#!/usr/bin/env python3.11\nprint()")), &["debugpy"]);
    check(by_program(&write("rake", b"#!/usr/bin/ruby -w\n")), &["rdbg"]);
    check(by_program(&write("cli", b"#!/usr/bin/env -S node --no-warnings\n")), &["js-debug"]);
    check(by_program(write("pkg/main.go", b"package main").parent().unwrap()), &["dlv"]);
    check(by_program(write("mod/__main__.py", b"").parent().unwrap()), &["debugpy"]);
}

#[test]
fn what_nothing_debugs_is_told_with_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, "text").unwrap();
        path
    };
    let check = |ask: AdapterQuery, kind: ErrorKind, parts: &[&str]| {
        let Err(error) = select_adapters(ask) else { panic!("{ask:?}") };
        let told = error.to_string();
        assert!(error.kind == kind && parts.iter().all(|part| told.contains(part)), "{told}");
    };
    let nothing = AdapterQuery::default();
    check(nothing, ErrorKind::Usage, &["not said what", "languages are:"]);
    check(
        AdapterQuery { adapter: Some("xdbg"), ..nothing },
        ErrorKind::Usage,
        &["no adapter \"xdbg\"", "adapters are: debugpy, js-debug"],
    );
    check(AdapterQuery { kind: Some("php"), ..nothing }, ErrorKind::Usage, &["of type \"php\"", "pwa-node"]);
    check(
        AdapterQuery { language: Some("Cobol"), ..nothing },
        ErrorKind::Usage,
        &["nothing debugs \"Cobol\"", "python, rb, rs, ruby"],
    );
    check(
        AdapterQuery { program: Some(&write("a.xyz")), ..nothing },
        ErrorKind::Usage,
        &["nothing debugs .xyz", "a.xyz", "languages are:"],
    );
    check(
        AdapterQuery { program: Some(&write("README")), ..nothing },
        ErrorKind::Usage,
        &["cannot tell what", "README is"],
    );
    check(AdapterQuery { program: Some(folder.path()), ..nothing }, ErrorKind::Usage, &["cannot tell what"]);
    check(
        AdapterQuery { program: Some(Path::new("/not there")), ..nothing },
        ErrorKind::NotFound,
        &["there is no such file"],
    );
}

#[test]
fn of_several_that_are_missing_each_is_told_how_to_get() {
    let search = AdapterSearch {
        env: BTreeMap::new(),
        workspace: "/not there".into(),
        configured: None,
        tools_folder: "/not there/tools".into(),
    };
    let Err(error) = locate_adapter(AdapterQuery { language: Some("rust"), ..AdapterQuery::default() }, &search) else {
        panic!()
    };
    assert_eq!((error.kind, error.hints.len()), (ErrorKind::MissingTool, 3));
    for (row, hint) in [("lldb-dap", 0), ("codelldb", 1), ("gdb", 2)] {
        assert!(error.hints[hint].contains(&format!("tether adapters install {row}")), "{error}");
    }
    for row in ADAPTERS {
        let error = (row.find)(&search).unwrap_err();
        assert_eq!(error.kind, ErrorKind::MissingTool, "{error}");
        assert!(!error.hints.is_empty() && error.source.is_some(), "{error}");
    }
}

/// A folder with programs and sources, and what is asked of an adapter about them.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Desk {
        let folder = tempfile::tempdir().unwrap();
        for name in ["app.py", "app.js", "app.rb", "app.dll", "program"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path().join("program"), mode).unwrap();
        Desk(folder)
    }

    fn ask(&self, name: &str, what: DebugTargetKind, fields: Value) -> crate::error::Result<LaunchPlan> {
        let found = FoundAdapter {
            path: "/the adapter".into(),
            interpreter: Some("/bin/it".into()),
            place: String::new(),
            formatters: Some("/rust etc".into()),
        };
        let fields = serde_json::from_value(fields).unwrap();
        let wanted = DebugTarget {
            kind: what,
            cwd: self.0.path().into(),
            args: vec!["a b".into()],
            fields,
            ..DebugTarget::default()
        };
        (row(name).plan)(&found, &wanted)
    }

    /// The command line, with the folder as `~`, and the request with its fields.
    fn begun(&self, name: &str, what: DebugTargetKind, fields: Value) -> (String, &'static str, Value) {
        let begin = self.ask(name, what, fields).unwrap_or_else(|error| panic!("{error}"));
        let home = self.0.path().to_str().unwrap();
        let argv = begin.process.map(|run| run.argv.join(" ".as_ref())).unwrap_or_default();
        let (request, fields) = match begin.start {
            StartRequest::Launch(fields) => ("launch", fields),
            StartRequest::Attach(fields) => ("attach", fields),
        };
        let fields = serde_json::to_string(&fields).unwrap().replace(home, "~");
        (argv.to_string_lossy().replace(home, "~"), request, serde_json::from_str(&fields).unwrap())
    }

    fn program(&self, name: &str) -> DebugTargetKind {
        DebugTargetKind::Program(self.0.path().join(name))
    }
}

fn holds(fields: &Value, expect: Value) {
    for (name, value) in expect.as_object().unwrap() {
        assert_eq!(&fields[name], value, "{name} in {fields}");
    }
}

#[test]
fn debugpy_is_asked_for_by_the_route_that_can_do_it() {
    let desk = Desk::new();
    const DIRECT: &str = "/the adapter --connect {address} --wait-for-client --configure-subProcess false";
    let (argv, request, fields) = desk.begun("debugpy", desk.program("app.py"), json!({"redirectOutput": true}));
    assert_eq!((argv, request), (format!("/bin/it {DIRECT} ~/app.py a b"), "launch"));
    holds(&fields, json!({"justMyCode": true, "redirectOutput": false, "stopOnEntry": false}));
    let of_user = json!({"request": "launch", "module": "flask", "args": ["run"], "python": "/mine", "pythonArgs": ["-O"],
        "justMyCode": false, "subProcess": false});
    let (argv, _, fields) = desk.begun("debugpy", DebugTargetKind::Configuration, of_user);
    assert_eq!(argv, format!("/mine -O {DIRECT} -m flask run"));
    holds(&fields, json!({"justMyCode": false}));
    let (argv, ..) = desk.begun(
        "debugpy",
        DebugTargetKind::Configuration,
        json!({"request": "launch", "code": ["a", "b"], "subProcess": false}),
    );
    assert_eq!(argv, format!("/bin/it {DIRECT} -c a\nb a b"));

    const ADAPTER: &str = "/bin/it /the adapter/adapter --host 127.0.0.1 --port 0";
    let (argv, request, fields) = desk.begun("debugpy", desk.program("app.py"), json!({"subProcess": true}));
    assert_eq!((argv.as_str(), request), (ADAPTER, "launch"));
    holds(&fields, json!({"program": "~/app.py", "args": ["a b"], "console": "internalConsole", "subProcess": true}));
    // As in VS Code, in a configuration that does not say otherwise.
    let (argv, ..) =
        desk.begun("debugpy", DebugTargetKind::Configuration, json!({"request": "launch", "module": "flask"}));
    assert_eq!(argv, ADAPTER);
    let (argv, request, fields) = desk.begun("debugpy", DebugTargetKind::Pid(7), json!({}));
    assert_eq!((argv.as_str(), request, &fields["processId"]), (ADAPTER, "attach", &json!(7)));
    let connect = json!({"request": "attach", "connect": {"host": "elsewhere", "port": 5678}});
    let (argv, request, fields) = desk.begun("debugpy", DebugTargetKind::Configuration, connect);
    assert_eq!((argv.as_str(), request, fields.get("connect")), ("", "attach", None));
}

#[test]
fn js_debug_is_given_the_names_of_types_that_its_server_knows() {
    let desk = Desk::new();
    let (argv, request, fields) = desk.begun("js-debug", desk.program("app.js"), json!({}));
    assert_eq!((argv.as_str(), request), ("/bin/it /the adapter {socket}", "launch"));
    holds(&fields, json!({"type": "pwa-node", "program": "~/app.js", "args": ["a b"], "console": "internalConsole"}));
    let page = DebugTargetKind::Page { url: "http://127.0.0.1:3000/".to_owned(), port: 9222 };
    let (_, request, fields) = desk.begun("js-debug", page, json!({}));
    assert_eq!(request, "attach");
    holds(&fields, json!({"type": "pwa-chrome", "port": 9222, "urlFilter": "http://127.0.0.1:3000/*"}));
    let of_user = json!({"type": "chrome", "request": "launch", "url": "http://x/"});
    let (_, request, fields) = desk.begun("js-debug", DebugTargetKind::Configuration, of_user);
    assert_eq!((request, &fields["type"]), ("launch", &json!("pwa-chrome")));
    let (_, request, fields) = desk.begun("js-debug", DebugTargetKind::Listener(Address::loopback(9229)), json!({}));
    assert_eq!((request, &fields["type"], &fields["port"]), ("attach", &json!("pwa-node"), &json!(9229)));
    let error = desk.ask("js-debug", DebugTargetKind::Pid(7), json!({})).unwrap_err().to_string();
    assert!(error.contains("`kill -USR1 7`"), "{error}");
}

#[test]
fn the_adapters_for_built_programs_take_every_way_of_writing_a_configuration() {
    let desk = Desk::new();
    let of_cpp = json!({"type": "cppdbg", "request": "launch", "program": "program", "stopAtEntry": true,
        "environment": [{"name": "A", "value": "1"}]});
    for name in ["lldb-dap", "codelldb", "gdb"] {
        let (_, request, fields) = desk.begun(name, DebugTargetKind::Configuration, of_cpp.clone());
        assert_eq!(request, "launch", "{name}");
        holds(&fields, json!({"program": "~/program", "stopOnEntry": true, "env": {"A": "1"}, "args": ["a b"]}));
        let (_, request, fields) =
            desk.begun(name, DebugTargetKind::Configuration, json!({"request": "attach", "processId": "12"}));
        assert_eq!((request, &fields["pid"]), ("attach", &json!(12)), "{name}");
        assert!(desk.ask(name, DebugTargetKind::Module("x".to_owned()), json!({})).is_err());
    }
    let stub = DebugTargetKind::Listener(Address::loopback(2345));
    let remote = |name| desk.begun(name, stub.clone(), json!({}));
    holds(
        &remote("lldb-dap").2,
        json!({"attachCommands": [native::PACKET_TIMEOUT_COMMAND, "gdb-remote 127.0.0.1:2345"]}),
    );
    holds(
        &remote("codelldb").2,
        json!({"processCreateCommands": [native::PACKET_TIMEOUT_COMMAND, "gdb-remote 127.0.0.1:2345"]}),
    );
    holds(&remote("gdb").2, json!({"target": "127.0.0.1:2345"}));
}

#[test]
fn values_of_rust_are_shown_by_its_own_formatters_beside_the_users_commands() {
    let desk = Desk::new();
    let commands = json!({"initCommands": ["mine"]});
    assert_eq!(desk.begun("lldb-dap", desk.program("program"), commands.clone()).2["initCommands"], json!(["mine"]));
    assert!(!desk.begun("gdb", desk.program("program"), json!({})).0.contains("gdb_lookup"));
    std::fs::write(desk.0.path().join("Cargo.toml"), "").unwrap();
    let fields = desk.begun("lldb-dap", desk.program("program"), commands).2;
    let import = r#"command script import "/rust etc/lldb_lookup.py""#;
    let source = r#"command source -s 1 "/rust etc/lldb_commands""#;
    assert_eq!(fields["initCommands"], json!([import, source, "mine"]));
    assert!(
        desk.begun("gdb", DebugTargetKind::Pid(7), json!({}))
            .0
            .contains(r#"sys.path.insert(0, "/rust etc"); import gdb_lookup"#)
    );
    assert_eq!(desk.begun("codelldb", desk.program("program"), json!({})).2["sourceLanguages"], json!(["rust"]));
}

#[test]
fn rdbg_runs_scripts_and_commands_on_a_socket_of_ours() {
    let desk = Desk::new();
    const OPEN: &str = "/the adapter --open --sock-path {socket} -e eval $stdout.sync = true";
    let (argv, request, fields) = desk.begun("rdbg", desk.program("app.rb"), json!({}));
    assert_eq!((argv, request), (format!("{OPEN} -- ~/app.rb a b"), "attach"));
    holds(&fields, json!({"localfs": true, "nonstop": true}));
    let rails = json!({"request": "launch", "command": "bin/rails", "script": "server", "args": []});
    assert_eq!(desk.begun("rdbg", DebugTargetKind::Configuration, rails).0, format!("{OPEN} -c -- bin/rails server"));
    let bundled = json!({"request": "launch", "script": "app.rb", "useBundler": true, "args": []});
    assert_eq!(
        desk.begun("rdbg", DebugTargetKind::Configuration, bundled).0,
        format!("{OPEN} -c -- bundle exec ruby ~/app.rb")
    );
    let error =
        desk.ask("rdbg", DebugTargetKind::Configuration, json!({"request": "attach", "debugPort": "x:y"})).unwrap_err();
    assert!(error.to_string().contains("`debugPort` \"x:y\""), "{error}");
    assert!(desk.ask("rdbg", DebugTargetKind::Pid(7), json!({})).unwrap_err().to_string().contains("rdbg --open"));
}

#[test]
fn netcoredbg_is_asked_by_its_documentation() {
    let desk = Desk::new();
    let (argv, request, fields) = desk.begun("netcoredbg", desk.program("app.dll"), json!({}));
    assert_eq!((argv.as_str(), request), ("/the adapter --interpreter=vscode", "launch"));
    holds(&fields, json!({"program": "~/app.dll", "args": ["a b"], "stopAtEntry": false, "cwd": "~"}));
    let (_, request, fields) = desk.begun("netcoredbg", DebugTargetKind::Pid(7), json!({}));
    assert_eq!((request, &fields["processId"]), ("attach", &json!(7)));
    let error = desk.ask("netcoredbg", desk.program("app.py"), json!({})).unwrap_err();
    assert!(error.to_string().contains("`dotnet build`"), "{error}");
}

#[test]
fn a_program_that_is_not_there_is_told_before_anything_is_started() {
    let desk = Desk::new();
    for name in ["debugpy", "js-debug", "rdbg", "dlv", "lldb-dap", "codelldb", "gdb", "netcoredbg"] {
        let error = desk.ask(name, desk.program("not there"), json!({})).unwrap_err();
        assert!(error.kind == ErrorKind::NotFound && error.to_string().contains("not there"), "{name}: {error}");
        if name != "dlv" {
            let error = desk.ask(name, DebugTargetKind::Configuration, json!({"request": "launch"})).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage, "{name}: {error}");
        }
    }
}
