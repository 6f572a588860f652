//! netcoredbg: .NET. No package registry has it, so its command line and arguments follow its documentation, and the
//! tests do not run it.
//!
//! Source: <https://github.com/Samsung/netcoredbg#readme>

use std::path::PathBuf;

use serde_json::{Value, json};
use tether_base::error::{Error, Result};
use tether_dap::types::StartRequest;
use tether_tools::is_program;

use crate::adapters::{
    Adapter, AdapterLookup, AdapterSearch, ConnectMethod, DebugTarget, DebugTargetKind, DebuggedChildren, FoundAdapter,
    HitCounting, LaunchPlan, PathMapUse, ProcessPlan, Quirks,
};

/// The row of the table.
pub const ADAPTER: Adapter = Adapter {
    name: "netcoredbg",
    id: "coreclr",
    languages: &["c#", "csharp", "f#", "fsharp", "vb", ".net", "dotnet"],
    extensions: &["dll", "cs", "fs", "vb", "csproj", "fsproj", "vbproj"],
    types: &["coreclr", "netcoredbg", "dotnet"],
    attach_types: &[],
    runtimes: &["dotnet"],
    children: |_| DebuggedChildren::None("netcoredbg debugs no child processes"),
    quirks: Quirks { path_maps: PathMapUse::Never, hit_counting: HitCounting::None, ..Quirks::NONE },
    install: "its releases are on github.com/Samsung/netcoredbg; `:MasonInstall netcoredbg` in Neovim installs it, too",
    find: find_adapter,
    plan: plan_launch,
};

fn find_adapter(search: &AdapterSearch) -> Result<FoundAdapter> {
    AdapterLookup::new(search, is_program, &["netcoredbg", "netcoredbg/netcoredbg"])
        .try_on_path(&["netcoredbg"])
        .try_path(search.mason_file("netcoredbg/netcoredbg"), "mason")
        .try_path(search.mason_file("netcoredbg/libexec/netcoredbg/netcoredbg"), "mason")
        .try_path(Some(PathBuf::from("/usr/local/netcoredbg/netcoredbg")), "/usr/local")
        .finish(ADAPTER.name, ADAPTER.install)
}

fn plan_launch(found: &FoundAdapter, target: &DebugTarget) -> Result<LaunchPlan> {
    let start = match &target.kind {
        DebugTargetKind::Pid(pid) => target.attach_request(json!({"processId": pid})),
        DebugTargetKind::Configuration if target.is_attach() => target.attach_request(json!({})),
        DebugTargetKind::Program(_) | DebugTargetKind::Configuration => launch_request(target)?,
        _ => return Err(target.unsupported_error(ADAPTER.name, "it debugs assemblies and processes")),
    };
    let argv = vec![found.path.clone().into(), "--interpreter=vscode".into()];
    Ok(LaunchPlan::start_adapter(ProcessPlan::new(argv, &target.cwd), ConnectMethod::Pipes, start))
}

fn launch_request(target: &DebugTarget) -> Result<StartRequest> {
    let hint = "`dotnet build`, then `tether debug launch bin/Debug/net8.0/NAME.dll`";
    let program = target
        .program()
        .ok_or_else(|| Error::usage("cannot launch .NET").because("there is no `program`").hint(hint))?;
    let program = target.require_file(&program)?;
    if program.extension().is_some_and(|extension| extension != "dll") {
        let error = Error::usage(format!("cannot debug {} as it is", program.display()));
        return Err(error.because("it is not an assembly: build the project first").hint(hint));
    }
    let usual = target.launch_fields(&program)?;
    let mut fields =
        target.with_configuration(json!({"name": ".NET", "type": "coreclr", "request": "launch", "justMyCode": true}));
    for name in ["program", "args", "cwd", "env"] {
        fields.extend(usual.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    fields.insert("stopAtEntry".to_owned(), Value::from(target.stop_on_entry()));
    Ok(StartRequest::Launch(fields))
}
