//! CodeLLDB: C, C++ and Rust. It contains LLDB, and shows Rust's values readably.

use std::path::{Path, PathBuf};

use serde_json::json;
use tether_base::error::Result;
use tether_dap::types::{Fields, StartRequest};
use tether_tools::is_program;

use super::native;
use crate::adapters::{
    Adapter, AdapterLookup, AdapterSearch, ConditionReport, ConnectMethod, DebugTarget, DebuggedChildren, FoundAdapter,
    INSTALLED, LaunchPlan, ProcessPlan, Quirks,
};

/// The row of the table.
pub const ADAPTER: Adapter = Adapter {
    name: "codelldb",
    id: "lldb",
    languages: native::LANGUAGES,
    extensions: native::EXTENSIONS,
    types: &["lldb", "codelldb", "cppdbg"],
    attach_types: &[],
    runtimes: &[],
    children: |_| DebuggedChildren::None("CodeLLDB debugs no child processes"),
    quirks: Quirks {
        condition_reports: &[
            ConditionReport { is_lasting: true, ..ConditionReport::named("Could not parse breakpoint condition") },
            ConditionReport::unnamed("Could not evaluate breakpoint condition"),
        ],
        signals_as_codes: true,
        compares_path_texts: true,
        opens_core_dumps: true,
        test_failure_filter: Some("rust_panic"),
        ..Quirks::NONE
    },
    install: "`tether adapters install codelldb` installs it",
    find: find_adapter,
    plan: plan_launch,
};

fn find_adapter(search: &AdapterSearch) -> Result<FoundAdapter> {
    AdapterLookup::new(search, is_program, &["codelldb", "adapter/codelldb", "extension/adapter/codelldb"])
        .try_on_path(&["codelldb"])
        .try_path(search.installed_tool("js-debug").map(in_package), INSTALLED)
        .try_path(search.mason_file("codelldb/extension/adapter/codelldb"), "mason")
        .try_extensions("vadimcn.vscode-lldb", "adapter/codelldb")
        .finish(ADAPTER.name, ADAPTER.install)
}

/// Below the npm package that contains it, by Node's names of this system and architecture.
fn in_package(entry: PathBuf) -> PathBuf {
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    entry.join(format!("dist/vendor/codelldb/{system}-{machine}/adapter/codelldb"))
}

fn plan_launch(found: &FoundAdapter, target: &DebugTarget) -> Result<LaunchPlan> {
    let languages: &[&str] = if native::is_rust(target) { &["rust"] } else { &["cpp"] };
    let launch = json!({"type": "lldb", "request": "launch", "terminal": "console", "sourceLanguages": languages});
    let mut start = native::start_request(target, ADAPTER.name, launch, &REQUESTS)?;
    let maps = native::source_maps(target);
    if !maps.is_empty() {
        let (StartRequest::Launch(fields) | StartRequest::Attach(fields)) = &mut start;
        let maps: Fields =
            maps.into_iter().map(|map| (map.remote.to_string_lossy().into_owned(), json!(map.local))).collect();
        fields.insert("sourceMap".to_owned(), json!(maps));
    }
    let process = ProcessPlan::new(vec![found.path.clone().into()], &target.cwd);
    Ok(LaunchPlan::start_adapter(process, ConnectMethod::Pipes, start))
}

const REQUESTS: native::OwnRequests = native::OwnRequests { remote: remote_request, core: core_request };

/// CodeLLDB opens a core dump by a launch with custom commands.
fn core_request(core: &Path, program: &Path) -> StartRequest {
    let [core, program] = [core, program].map(|path| format!("{:?}", path.display().to_string()));
    let create = json!([format!("target create --core {core} {program}")]);
    let fields = [("name", json!("core dump")), ("targetCreateCommands", create), ("processCreateCommands", json!([]))];
    StartRequest::Launch(fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect())
}

/// CodeLLDB attaches to a remote stub by a launch with custom commands.
fn remote_request(address: &str, program: Option<&Path>) -> StartRequest {
    let create = program.map(|program| format!("target create {:?}", program.display().to_string()));
    let fields = [
        ("name", json!("remote")),
        ("targetCreateCommands", json!(Vec::from_iter(create))),
        ("processCreateCommands", json!(native::connect_commands(address))),
    ];
    StartRequest::Launch(fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect())
}
