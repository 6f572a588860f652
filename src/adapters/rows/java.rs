//! Java: our own adapter, which needs nothing but a JDK.
//!
//! It runs in this process, and launches the program itself.

use std::path::{Path, PathBuf};

use serde_json::json;
use tether_base::error::{Error, Result};
use tether_dap::types::{Fields, StartRequest, set_field};
use tether_java::serve_java;
use tether_tools::is_program;

use crate::adapters::{
    Adapter, AdapterLookup, AdapterSearch, ConnectMethod, DebugTarget, DebugTargetKind, DebuggedChildren, FoundAdapter,
    LaunchPlan, PathMapUse, Quirks,
};

/// The row of the table.
pub const ADAPTER: Adapter = Adapter {
    name: "java",
    id: "java",
    languages: &["java"],
    extensions: &["java", "jar"],
    types: &["java"],
    attach_types: &[],
    runtimes: &["java"],
    children: |_| DebuggedChildren::None("the adapter for Java debugs no child processes"),
    quirks: Quirks {
        path_maps: PathMapUse::Needless,
        resumes_one_thread: true,
        test_failure_filter: Some("assertions"),
        ..Quirks::NONE
    },
    install: "`apt-get install openjdk-17-jdk-headless` installs a JDK, which is all that it needs",
    find: find_java,
    plan: plan_launch,
};

fn find_java(search: &AdapterSearch) -> Result<FoundAdapter> {
    let home = search.var("JAVA_HOME").map(|home| Path::new(home).join("bin/java"));
    AdapterLookup::new(search, is_program, &["bin/java"])
        .try_path(home, "JAVA_HOME")
        .try_on_path(&["java"])
        .finish("for java (a JDK)", ADAPTER.install)
}

fn plan_launch(found: &FoundAdapter, target: &DebugTarget) -> Result<LaunchPlan> {
    let start = match &target.kind {
        DebugTargetKind::Listener(address) => {
            let mut fields = json!({"port": address.port, "cwd": target.cwd()});
            // A host that was not named must be one of our own programs.
            if target.is_host_named || address.host != "127.0.0.1" {
                set_field(&mut fields, "hostName", address.host.as_str());
            }
            StartRequest::Attach(target.with_configuration(fields))
        }
        DebugTargetKind::Configuration if target.is_attach() => {
            StartRequest::Attach(target.with_configuration(json!({"cwd": target.cwd()})))
        }
        DebugTargetKind::Pid(pid) => {
            StartRequest::Attach(target.with_configuration(json!({"processId": pid, "cwd": target.cwd()})))
        }
        DebugTargetKind::Page { .. } => {
            let can = "it attaches to a program that was started with `-agentlib:jdwp`, by its port or its process";
            return Err(target.unsupported_error(ADAPTER.name, can));
        }
        _ => StartRequest::Launch(launch_fields(found, target)?),
    };
    Ok(LaunchPlan::serve_in_process(ConnectMethod::InProcess { serve: serve_java }, start))
}

fn launch_fields(found: &FoundAdapter, target: &DebugTarget) -> Result<Fields> {
    let mut ours = json!({"javaExec": found.path, "stopOnEntry": target.stop_on_entry()});
    let program = target.program().map(|program| target.require_file(&program)).transpose()?;
    match (program, target.module()) {
        (Some(program), _) => set_field(&mut ours, "program", json!(program)),
        (None, Some(class)) => set_field(&mut ours, "mainClass", json!(class)),
        (None, None) if ["mainClass", "jar"].iter().any(|name| target.fields.contains_key(*name)) => {}
        (None, None) => {
            return Err(Error::usage("cannot launch Java")
                .because("there is no `mainClass`, `jar` or `program`")
                .hint("`tether debug launch Main.java` debugs a file"));
        }
    }
    let mut fields = target.with_configuration(ours);
    // These are resolved here: they may be relative to the workspace.
    let env: serde_json::Map<String, serde_json::Value> =
        target.env().into_iter().map(|(name, value)| (name, value.into())).collect();
    let cwd: PathBuf = target.cwd();
    for (name, value) in [("cwd", json!(cwd)), ("env", env.into()), ("args", json!(target.args()?))] {
        fields.insert(name.to_owned(), value);
    }
    Ok(fields)
}
