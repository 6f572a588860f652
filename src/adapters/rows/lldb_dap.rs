//! lldb-dap, LLVM's own adapter: C, C++, Rust, and what else LLDB supports.

use std::path::Path;

use serde_json::json;
use tether_base::error::Result;
use tether_dap::types::StartRequest;
use tether_tools::is_program;

use super::native;
use crate::adapters::{
    Adapter, AdapterLookup, AdapterSearch, ConditionReport, ConnectMethod, DebugTarget, DebuggedChildren, FoundAdapter,
    HitCounting, INSTALLED, LaunchPlan, ProcessPlan, Quirks,
};

/// The row of the table.
pub const ADAPTER: Adapter = Adapter {
    name: "lldb-dap",
    id: "lldb-dap",
    languages: native::LANGUAGES,
    extensions: native::EXTENSIONS,
    types: &["lldb-dap", "lldb-vscode", "swift-lldb", "cppdbg"],
    attach_types: &[],
    runtimes: &[],
    children: |_| DebuggedChildren::None("lldb-dap debugs no child processes"),
    quirks: Quirks {
        // Printed behind the stop.
        condition_reports: &[ConditionReport::named("error evaluating condition of breakpoint")],
        hit_counting: HitCounting::FromOnly,
        signals_as_codes: true,
        compares_path_texts: true,
        opens_core_dumps: true,
        ..Quirks::NONE
    },
    install: "`tether adapters install lldb-dap` or `apt-get install lldb` installs it",
    find: find_adapter,
    plan: plan_launch,
};

/// Distributions append the version to the name; before version 18 it was called lldb-vscode.
const NAMES: &[&str] =
    &["lldb-dap", "lldb-dap-22", "lldb-dap-21", "lldb-dap-20", "lldb-dap-19", "lldb-dap-18", "lldb-vscode"];

/// As `rust-lldb`.
fn rust_formatter_commands(formatters: &Path) -> Vec<String> {
    let quoted = |file: &str| format!("{:?}", formatters.join(file).display().to_string());
    vec![
        format!("command script import {}", quoted("lldb_lookup.py")),
        format!("command source -s 1 {}", quoted("lldb_commands")),
    ]
}

fn find_adapter(search: &AdapterSearch) -> Result<FoundAdapter> {
    AdapterLookup::new(search, is_program, &["lldb-dap", "bin/lldb-dap"])
        .try_on_path(NAMES)
        .try_path(search.installed_tool("lldb-dap"), INSTALLED)
        .try_path(search.mason_file("lldb-dap/lldb-dap"), "mason")
        .try_extensions("llvm-vs-code-extensions.lldb-dap", "bin/lldb-dap")
        .finish(ADAPTER.name, ADAPTER.install)
        .map(|found| native::with_formatters(found, search))
}

fn plan_launch(found: &FoundAdapter, target: &DebugTarget) -> Result<LaunchPlan> {
    let mut start = native::start_request(target, ADAPTER.name, json!({}), &REQUESTS)?;
    if let Some(formatters) = found.formatters.as_deref().filter(|_| native::is_rust(target)) {
        let (StartRequest::Launch(fields) | StartRequest::Attach(fields)) = &mut start;
        let mut commands = rust_formatter_commands(formatters);
        commands.extend(target.text_list("initCommands")?);
        fields.insert("initCommands".to_owned(), json!(commands));
    }
    let maps = native::source_maps(target);
    if !maps.is_empty() {
        let (StartRequest::Launch(fields) | StartRequest::Attach(fields)) = &mut start;
        let maps: Vec<_> = maps.into_iter().map(|map| json!([map.remote, map.local])).collect();
        fields.insert("sourceMap".to_owned(), json!(maps));
    }
    let process = ProcessPlan::new(vec![found.path.clone().into()], &target.cwd);
    Ok(LaunchPlan::start_adapter(process, ConnectMethod::Pipes, start))
}

const REQUESTS: native::OwnRequests = native::OwnRequests { remote: remote_request, core: native::core_request };

fn remote_request(address: &str, program: Option<&Path>) -> StartRequest {
    native::attach_request("attachCommands", json!(native::connect_commands(address)), program)
}
