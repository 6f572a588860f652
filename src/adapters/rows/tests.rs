//! The table of adapters: every row is valid, is selected by the right queries, and plans the right requests.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use tether_base::error::ErrorKind;
use tether_dap::types::StartRequest;
use tether_tools::Pins;

use crate::adapters::*;

fn row(name: &str) -> &'static Adapter {
    ADAPTERS.iter().find(|row| row.name == name).unwrap()
}

#[test]
fn every_row_is_valid() {
    let pins = Pins::read().unwrap();
    for (at, row) in ADAPTERS.iter().enumerate() {
        let lower = |word: &str| word.to_lowercase() == word;
        assert!(ADAPTERS[..at].iter().all(|other| other.name != row.name), "{} is listed twice", row.name);
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
fn the_first_field_of_a_query_selects_the_row() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let check = |query: AdapterQuery, expect: &[&str]| {
        let names: Vec<_> = select_adapters(query).unwrap().iter().map(|row| row.name).collect();
        assert_eq!(names, expect, "{query:?}");
    };
    const NATIVE: &[&str] = &["codelldb", "lldb-dap", "gdb"];
    let app = Path::new("/not there/app.PY");
    fn by_program(program: &Path) -> AdapterQuery<'_> {
        AdapterQuery { program: Some(program), ..AdapterQuery::default() }
    }
    check(by_program(app), &["debugpy"]);
    check(AdapterQuery { language: Some("Go"), ..by_program(app) }, &["dlv"]);
    check(AdapterQuery { kind: Some("chrome"), language: Some("go"), ..by_program(app) }, &["js-debug"]);
    check(AdapterQuery { kind: Some("chrome"), is_attach: true, ..by_program(app) }, &["node", "js-debug"]);
    let host = AdapterQuery { kind: Some("pwa-extensionHost"), ..AdapterQuery::default() };
    check(host, &["js-debug"]);
    check(AdapterQuery { is_attach: true, ..host }, &["node", "js-debug"]);
    check(AdapterQuery { adapter: Some("gdb"), kind: Some("chrome"), ..by_program(app) }, &["gdb"]);
    check(AdapterQuery { kind: Some("cppdbg"), ..AdapterQuery::default() }, NATIVE);
    check(by_program(Path::new("x.rs")), NATIVE);
    check(by_program(Path::new("x.cs")), &["netcoredbg"]);
    check(by_program(&write("a.out", b"\x7fELF\x02\x01\x01")), NATIVE);
    check(by_program(&write("gone", b"\x7fELF....\xff Go build ID: \"x\"")), &["dlv"]);
    check(by_program(&write("tool", b"#!/usr/bin/env python3.11\nprint()")), &["debugpy"]);
    check(by_program(&write("rake", b"#!/usr/bin/ruby -w\n")), &["rdbg"]);
    check(by_program(&write("cli", b"#!/usr/bin/env -S node --no-warnings\n")), &["node", "js-debug"]);
    check(by_program(write("pkg/main.go", b"package main").parent().unwrap()), &["dlv"]);
    check(by_program(write("mod/__main__.py", b"").parent().unwrap()), &["debugpy"]);
}

#[test]
fn the_error_for_an_unknown_language_lists_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, "text").unwrap();
        path
    };
    let check = |query: AdapterQuery, kind: ErrorKind, parts: &[&str]| {
        let Err(error) = select_adapters(query) else { panic!("{query:?}") };
        let text = error.to_string();
        assert!(error.kind == kind && parts.iter().all(|part| text.contains(part)), "{text}");
    };
    let nothing = AdapterQuery::default();
    check(nothing, ErrorKind::Usage, &["does not show its language", "languages are:"]);
    check(
        AdapterQuery { adapter: Some("xdbg"), ..nothing },
        ErrorKind::Usage,
        &["no adapter \"xdbg\"", "adapters are: debugpy, node, js-debug"],
    );
    check(AdapterQuery { kind: Some("php"), ..nothing }, ErrorKind::Usage, &["of type \"php\"", "pwa-node"]);
    check(
        AdapterQuery { language: Some("Cobol"), ..nothing },
        ErrorKind::Usage,
        &["no adapter debugs \"Cobol\"", "python, rb, rs, ruby"],
    );
    check(
        AdapterQuery { program: Some(&write("a.xyz")), ..nothing },
        ErrorKind::Usage,
        &["no adapter debugs .xyz", "a.xyz", "languages are:"],
    );
    check(
        AdapterQuery { program: Some(&write("README")), ..nothing },
        ErrorKind::Usage,
        &["cannot identify the language of", "/README"],
    );
    check(
        AdapterQuery { program: Some(folder.path()), ..nothing },
        ErrorKind::Usage,
        &["cannot identify the language"],
    );
    check(
        AdapterQuery { program: Some(Path::new("/not there")), ..nothing },
        ErrorKind::NotFound,
        &["there is no such file"],
    );
}

#[test]
fn the_error_for_missing_adapters_has_the_install_command_of_each() {
    let search = AdapterSearch {
        env: BTreeMap::new(),
        workspace: "/not there".into(),
        consent: Default::default(),
        configured: None,
        tools_folder: "/not there/tools".into(),
    };
    let Err(error) = locate_adapter(AdapterQuery { language: Some("rust"), ..AdapterQuery::default() }, &search) else {
        panic!()
    };
    assert_eq!((error.kind, error.hints.len()), (ErrorKind::MissingTool, 3));
    for (row, hint) in [("codelldb", 0), ("lldb-dap", 1), ("gdb", 2)] {
        assert!(error.hints[hint].contains(&format!("tether adapters install {row}")), "{error}");
    }
    for row in ADAPTERS {
        let error = (row.find)(&search).unwrap_err();
        assert_eq!(error.kind, ErrorKind::MissingTool, "{error}");
        assert!(!error.hints.is_empty() && error.source.is_some(), "{error}");
    }
}

/// A folder with programs and sources, and launch plans for them.
struct SampleFolder {
    folder: tempfile::TempDir,
    /// The maps of each target.
    paths: Vec<PathMap>,
}

impl SampleFolder {
    fn new() -> SampleFolder {
        let folder = tempfile::tempdir().unwrap();
        for name in ["app.py", "app.js", "app.rb", "app.dll", "program"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path().join("program"), mode).unwrap();
        SampleFolder { folder, paths: Vec::new() }
    }

    fn plan(&self, name: &str, what: DebugTargetKind, fields: Value) -> tether_base::error::Result<LaunchPlan> {
        let found = FoundAdapter {
            path: "/the adapter".into(),
            interpreter: Some("/bin/it".into()),
            place: String::new(),
            formatters: Some("/rust etc".into()),
            search_path: None,
            note: None,
        };
        let fields = serde_json::from_value(fields).unwrap();
        let target = DebugTarget {
            kind: what,
            cwd: self.folder.path().into(),
            args: vec!["a b".into()],
            fields,
            paths: self.paths.clone(),
            ..DebugTarget::default()
        };
        row(name).plan_start(&found, &target)
    }

    /// The command line, with the folder as `~`, and the first request with its fields.
    fn planned_start(&self, name: &str, what: DebugTargetKind, fields: Value) -> (String, &'static str, Value) {
        let begin = self.plan(name, what, fields).unwrap_or_else(|error| panic!("{error}"));
        let home = self.folder.path().to_str().unwrap();
        let argv = begin.process.map(|run| run.argv.join(" ".as_ref())).unwrap_or_default();
        let (request, fields) = match begin.start {
            StartRequest::Launch(fields) => ("launch", fields),
            StartRequest::Attach(fields) => ("attach", fields),
        };
        let fields = serde_json::to_string(&fields).unwrap().replace(home, "~");
        (argv.to_string_lossy().replace(home, "~"), request, serde_json::from_str(&fields).unwrap())
    }

    fn program(&self, name: &str) -> DebugTargetKind {
        DebugTargetKind::Program(self.folder.path().join(name))
    }
}

fn assert_fields(fields: &Value, expect: Value) {
    for (name, value) in expect.as_object().unwrap() {
        assert_eq!(&fields[name], value, "{name} in {fields}");
    }
}

#[test]
fn debugpy_is_direct_unless_the_target_needs_its_adapter() {
    let sample = SampleFolder::new();
    const DIRECT: &str = "/the adapter --connect {address} --wait-for-client --configure-subProcess true";
    let (argv, request, fields) =
        sample.planned_start("debugpy", sample.program("app.py"), json!({"redirectOutput": true}));
    assert_eq!((argv, request), (format!("/bin/it {DIRECT} ~/app.py a b"), "launch"));
    assert_fields(&fields, json!({"justMyCode": true, "redirectOutput": false, "stopOnEntry": false}));
    let of_user = json!({"request": "launch", "module": "flask", "args": ["run"], "python": "/mine", "pythonArgs": ["-O"],
        "justMyCode": false});
    let plan = sample.plan("debugpy", DebugTargetKind::Configuration, of_user.clone()).unwrap();
    let StartRequest::Attach(of_child) = plan.children.unwrap().start else { panic!("a child is attached to") };
    assert_eq!(of_child.keys().collect::<Vec<_>>(), ["justMyCode", "redirectOutput", "showReturnValue", "type"]);
    let (argv, _, fields) = sample.planned_start("debugpy", DebugTargetKind::Configuration, of_user);
    assert_eq!(argv, format!("/mine -O {DIRECT} -m flask run"));
    assert_fields(&fields, json!({"justMyCode": false}));
    let (argv, ..) = sample.planned_start(
        "debugpy",
        DebugTargetKind::Configuration,
        json!({"request": "launch", "code": ["a", "b"]}),
    );
    assert_eq!(argv, format!("/bin/it {DIRECT} -c a\nb a b"));
    let without = sample.plan("debugpy", sample.program("app.py"), json!({"subProcess": false})).unwrap();
    assert!(without.children.is_none());
    assert!(without.process.unwrap().argv.contains(&"false".into()));

    const ADAPTER: &str = "/bin/it /the adapter/adapter --host 127.0.0.1 --port 0";
    let (argv, request, fields) = sample.planned_start("debugpy", sample.program("app.py"), json!({"sudo": true}));
    assert_eq!((argv.as_str(), request), (ADAPTER, "launch"));
    assert_fields(&fields, json!({"program": "~/app.py", "args": ["a b"], "console": "internalConsole", "sudo": true}));
    let (argv, request, fields) = sample.planned_start("debugpy", DebugTargetKind::Pid(7), json!({}));
    assert_eq!((argv.as_str(), request, &fields["processId"]), (ADAPTER, "attach", &json!(7)));
    let connect = json!({"request": "attach", "connect": {"host": "elsewhere", "port": 5678}});
    let (argv, request, fields) = sample.planned_start("debugpy", DebugTargetKind::Configuration, connect);
    assert_eq!((argv.as_str(), request, fields.get("connect")), ("", "attach", None));
}

#[test]
fn js_debug_gets_the_type_names_of_its_server() {
    let sample = SampleFolder::new();
    let (argv, request, fields) = sample.planned_start("js-debug", sample.program("app.js"), json!({}));
    assert_eq!(
        (argv.as_str(), request),
        ("/bin/it --require {scratch}/report_exit.js /the adapter {socket}", "launch")
    );
    assert_fields(
        &fields,
        json!({"type": "pwa-node", "program": "~/app.js", "args": ["a b"], "console": "internalConsole"}),
    );
    let page = DebugTargetKind::Page { url: "http://127.0.0.1:3000/".to_owned(), port: 9222 };
    let (_, request, fields) = sample.planned_start("js-debug", page, json!({}));
    assert_eq!(request, "attach");
    assert_fields(&fields, json!({"type": "pwa-chrome", "port": 9222, "urlFilter": "http://127.0.0.1:3000/*"}));
    let of_user = json!({"type": "chrome", "request": "launch", "url": "http://x/"});
    let (_, request, fields) = sample.planned_start("js-debug", DebugTargetKind::Configuration, of_user);
    assert_eq!((request, &fields["type"]), ("launch", &json!("pwa-chrome")));
    let (_, request, fields) =
        sample.planned_start("js-debug", DebugTargetKind::Listener(Address::loopback(9229)), json!({}));
    assert_eq!((request, &fields["type"], &fields["port"]), ("attach", &json!("pwa-node"), &json!(9229)));
    let error = sample.plan("js-debug", DebugTargetKind::Pid(7), json!({})).unwrap_err().to_string();
    assert!(error.contains("`kill -USR1 7`"), "{error}");
}

#[test]
fn node_is_attached_to_at_a_port_or_by_its_process() {
    let sample = SampleFolder::new();
    let check = |what: DebugTargetKind, fields: Value, expect: Value| {
        let (argv, request, fields) = sample.planned_start("node", what, fields);
        assert_eq!((argv.as_str(), request), ("", "attach"));
        assert_fields(&fields, expect);
    };
    check(DebugTargetKind::Pid(7), json!({}), json!({"processId": 7, "cwd": "~", "port": null}));
    let listener = DebugTargetKind::Listener(Address::loopback(9229));
    check(listener, json!({}), json!({"port": 9229, "address": null, "processId": null}));
    let configured = json!({"request": "attach", "processId": "12"});
    check(DebugTargetKind::Configuration, configured, json!({"processId": "12", "cwd": "~"}));
}

#[test]
fn the_native_adapters_accept_every_form_of_a_configuration() {
    let sample = SampleFolder::new();
    let of_cpp = json!({"type": "cppdbg", "request": "launch", "program": "program", "stopAtEntry": true,
        "environment": [{"name": "A", "value": "1"}]});
    for name in ["lldb-dap", "codelldb", "gdb"] {
        let (_, request, fields) = sample.planned_start(name, DebugTargetKind::Configuration, of_cpp.clone());
        assert_eq!(request, "launch", "{name}");
        assert_fields(&fields, json!({"program": "~/program", "stopOnEntry": true, "args": ["a b"]}));
        // The program of gdb inherits gdb's own environment.
        let env = match sample.plan(name, DebugTargetKind::Configuration, of_cpp.clone()).unwrap().process {
            Some(process) if name == "gdb" => json!(process.env),
            _ => fields["env"].clone(),
        };
        assert_eq!(env, json!({"A": "1"}), "{name}");
        let (_, request, fields) =
            sample.planned_start(name, DebugTargetKind::Configuration, json!({"request": "attach", "processId": "12"}));
        assert_eq!((request, &fields["pid"]), ("attach", &json!(12)), "{name}");
        assert!(sample.plan(name, DebugTargetKind::Module("x".to_owned()), json!({})).is_err());
    }
    let by_command = json!({"request": "launch", "targetCreateCommands": ["target create x"]});
    let (_, _, fields) = sample.planned_start("codelldb", DebugTargetKind::Configuration, by_command);
    assert_fields(&fields, json!({"program": null, "args": ["a b"], "targetCreateCommands": ["target create x"]}));
    let stub = DebugTargetKind::Listener(Address::loopback(2345));
    let remote = |name| sample.planned_start(name, stub.clone(), json!({}));
    let [sync, back] = ["False", "True"].map(|value| format!("script lldb.debugger.SetAsync({value})"));
    let timeout = "settings set plugin.process.gdb-remote.packet-timeout 60";
    let commands = json!([timeout, sync, "gdb-remote 127.0.0.1:2345", back]);
    assert_fields(&remote("lldb-dap").2, json!({"attachCommands": commands}));
    assert_fields(&remote("codelldb").2, json!({"processCreateCommands": commands}));
    assert_fields(&remote("gdb").2, json!({"target": "127.0.0.1:2345"}));
}

#[test]
fn rust_formatters_are_loaded_before_the_users_commands() {
    let sample = SampleFolder::new();
    let commands = json!({"initCommands": ["mine"]});
    assert_eq!(
        sample.planned_start("lldb-dap", sample.program("program"), commands.clone()).2["initCommands"],
        json!(["mine"])
    );
    assert!(!sample.planned_start("gdb", sample.program("program"), json!({})).0.contains("gdb_lookup"));
    std::fs::write(sample.folder.path().join("Cargo.toml"), "").unwrap();
    let fields = sample.planned_start("lldb-dap", sample.program("program"), commands).2;
    let import = r#"command script import "/rust etc/lldb_lookup.py""#;
    let source = r#"command source -s 1 "/rust etc/lldb_commands""#;
    assert_eq!(fields["initCommands"], json!([import, source, "mine"]));
    assert!(
        sample
            .planned_start("gdb", DebugTargetKind::Pid(7), json!({}))
            .0
            .contains(r#"sys.path.insert(0, "/rust etc"); import gdb_lookup"#)
    );
    assert_eq!(
        sample.planned_start("codelldb", sample.program("program"), json!({})).2["sourceLanguages"],
        json!(["rust"])
    );
}

#[test]
fn rdbg_runs_scripts_and_commands_on_a_private_socket() {
    let sample = SampleFolder::new();
    let (argv, request, fields) = sample.planned_start("rdbg", sample.program("app.rb"), json!({}));
    let open = argv.split_once(" -- ").unwrap().0.to_owned();
    assert!(open.starts_with("/the adapter --open --sock-path {socket} -e eval $stdout.sync = true; "), "{open}");
    // Commands of its console are lines, and end with `;;`.
    assert!(!open.contains('\n') && !open.contains(";;"), "{open}");
    assert_eq!((argv, request), (format!("{open} -- ~/app.rb a b"), "attach"));
    assert_fields(&fields, json!({"localfs": true, "nonstop": true}));
    let port = DebugTargetKind::Listener(Address::loopback(12345));
    assert_fields(&sample.planned_start("rdbg", port.clone(), json!({})).2, json!({"localfs": true}));
    // It heeds `localfs` first.
    let mapped = sample.planned_start("rdbg", port, json!({"localfsMap": "/app:/w"})).2;
    assert_fields(&mapped, json!({"localfs": null, "localfsMap": "/app:/w"}));
    let rails = json!({"request": "launch", "command": "bin/rails", "script": "server", "args": []});
    assert_eq!(
        sample.planned_start("rdbg", DebugTargetKind::Configuration, rails).0,
        format!("{open} -c -- bin/rails server")
    );
    let bundled = json!({"request": "launch", "script": "app.rb", "useBundler": true, "args": []});
    assert_eq!(
        sample.planned_start("rdbg", DebugTargetKind::Configuration, bundled).0,
        format!("{open} -c -- bundle exec ruby ~/app.rb")
    );
    let error = sample
        .plan("rdbg", DebugTargetKind::Configuration, json!({"request": "attach", "debugPort": "x:y"}))
        .unwrap_err();
    assert!(error.to_string().contains("`debugPort` \"x:y\""), "{error}");
    assert!(sample.plan("rdbg", DebugTargetKind::Pid(7), json!({})).unwrap_err().to_string().contains("rdbg --open"));
}

#[test]
fn netcoredbg_gets_the_requests_of_its_documentation() {
    let sample = SampleFolder::new();
    let (argv, request, fields) = sample.planned_start("netcoredbg", sample.program("app.dll"), json!({}));
    assert_eq!((argv.as_str(), request), ("/the adapter --interpreter=vscode", "launch"));
    assert_fields(&fields, json!({"program": "~/app.dll", "args": ["a b"], "stopAtEntry": false, "cwd": "~"}));
    let (_, request, fields) = sample.planned_start("netcoredbg", DebugTargetKind::Pid(7), json!({}));
    assert_eq!((request, &fields["processId"]), ("attach", &json!(7)));
    let error = sample.plan("netcoredbg", sample.program("app.py"), json!({})).unwrap_err();
    assert!(error.to_string().contains("`dotnet build`"), "{error}");
}

#[test]
fn a_missing_program_is_an_error_before_anything_is_started() {
    let sample = SampleFolder::new();
    for name in ["debugpy", "node", "js-debug", "rdbg", "dlv", "lldb-dap", "codelldb", "gdb", "netcoredbg"] {
        let error = sample.plan(name, sample.program("not there"), json!({})).unwrap_err();
        assert!(error.kind == ErrorKind::NotFound && error.to_string().contains("not there"), "{name}: {error}");
        if name != "dlv" {
            let error = sample.plan(name, DebugTargetKind::Configuration, json!({"request": "launch"})).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage, "{name}: {error}");
        }
    }
}

#[test]
fn path_maps_are_written_as_each_adapter_reads_them() {
    let mut sample = SampleFolder::new();
    sample.paths = [("/w", "/app"), ("/lib", "/usr/lib/it")]
        .map(|(local, remote)| PathMap { local: local.into(), remote: remote.into() })
        .into();
    let port = DebugTargetKind::Listener(Address::loopback(4711));
    let check = |name: &str, target: &DebugTargetKind, expect: Value| {
        assert_fields(&sample.planned_start(name, target.clone(), json!({})).2, expect);
    };
    let maps = json!([{"localRoot": "/w", "remoteRoot": "/app"}, {"localRoot": "/lib", "remoteRoot": "/usr/lib/it"}]);
    check("debugpy", &port, json!({"pathMappings": maps}));
    let maps = json!([{"from": "/w", "to": "/app"}, {"from": "/lib", "to": "/usr/lib/it"}]);
    check("dlv", &port, json!({"substitutePath": maps}));
    check("dlv", &DebugTargetKind::Pid(7), json!({"substitutePath": maps}));
    check("js-debug", &port, json!({"localRoot": "/w", "remoteRoot": "/app"}));
    let maps = json!([{"local": "/w", "remote": "/app"}, {"local": "/lib", "remote": "/usr/lib/it"}]);
    check("node", &port, json!({"__paths": maps}));
    check("rdbg", &port, json!({"localfs": null, "localfsMap": "/app:/w,/usr/lib/it:/lib,/:/"}));
    check("lldb-dap", &DebugTargetKind::Pid(7), json!({"sourceMap": [["/app", "/w"], ["/usr/lib/it", "/lib"]]}));
    check("codelldb", &DebugTargetKind::Pid(7), json!({"sourceMap": {"/app": "/w", "/usr/lib/it": "/lib"}}));
    let argv = sample.planned_start("gdb", DebugTargetKind::Pid(7), json!({})).0;
    assert!(
        argv.contains(r#"set substitute-path "/app" "/w" -iex set substitute-path "/usr/lib/it" "/lib""#),
        "{argv}"
    );
    // A configuration's own come first.
    let own = sample.planned_start("debugpy", port, json!({"pathMappings": []})).2;
    assert_eq!(own["pathMappings"], json!([]));
    sample.paths.push(PathMap { local: "/a:b".into(), remote: "/app".into() });
    let refused = sample.plan("rdbg", DebugTargetKind::Listener(Address::loopback(1)), json!({})).unwrap_err();
    assert!(refused.to_string().contains("rdbg takes no folders with `:`"), "{refused}");
}

#[test]
fn core_dumps_are_opened_by_those_that_read_them() {
    let sample = SampleFolder::new();
    let dump = || DebugTargetKind::Core { core: "/w/core".into(), program: sample.folder.path().join("program") };
    for name in ["gdb", "lldb-dap"] {
        let (_, request, fields) = sample.planned_start(name, dump(), json!({}));
        assert_eq!(request, "attach");
        assert_fields(&fields, json!({"coreFile": "/w/core", "program": "~/program"}));
    }
    let (_, request, fields) = sample.planned_start("codelldb", dump(), json!({}));
    assert_eq!(request, "launch");
    let create = r#"target create --core "/w/core" "~/program""#;
    assert_fields(&fields, json!({"targetCreateCommands": [create], "processCreateCommands": [], "program": null}));
    let (_, request, fields) = sample.planned_start("dlv", dump(), json!({}));
    assert_eq!(request, "launch");
    assert_fields(&fields, json!({"mode": "core", "coreFilePath": "/w/core", "program": "~/program"}));
    for name in ["debugpy", "node", "js-debug", "java", "rdbg", "netcoredbg"] {
        let refused = sample.plan(name, dump(), json!({})).unwrap_err().to_string();
        assert!(refused.contains("it opens no core dumps"), "{name}: {refused}");
    }
    // The attribute of VS Code's C++ extension.
    let configuration = json!({"request": "launch", "program": "program", "coreDumpPath": "core"});
    let fields = sample.planned_start("gdb", DebugTargetKind::Configuration, configuration).2;
    assert_fields(&fields, json!({"coreFile": "~/core", "program": "~/program"}));
}
