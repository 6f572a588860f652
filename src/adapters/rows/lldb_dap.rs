//! lldb-dap, LLVM's own adapter: C, C++, Rust, and what else LLDB supports.

use std::path::Path;

use serde_json::json;

use super::native::{self, NativeRequests};
use crate::adapters::adapter::{Adapter, Quirks};
use crate::adapters::debug_target::DebugTarget;
use crate::adapters::discovery::{AdapterLookup, AdapterSearch, FoundAdapter};
use crate::adapters::launch_plan::{ConnectMethod, LaunchPlan, ProcessPlan};
use crate::dap::types::{Fields, StartRequest};
use crate::error::Result;
use crate::tools::is_program;

/// The row of the table.
pub const ADAPTER: Adapter = Adapter {
    name: "lldb-dap",
    id: "lldb-dap",
    languages: native::LANGUAGES,
    extensions: native::EXTENSIONS,
    types: &["lldb-dap", "lldb-vscode", "swift-lldb", "cppdbg"],
    quirks: Quirks::NONE,
    install: "`tether adapters install lldb-dap` or `apt-get install lldb` installs it",
    find: find_adapter,
    plan: plan_launch,
};

/// Distributions append the version to the name; before version 18 it was called lldb-vscode.
const NAMES: &[&str] =
    &["lldb-dap", "lldb-dap-22", "lldb-dap-21", "lldb-dap-20", "lldb-dap-19", "lldb-dap-18", "lldb-vscode"];

const WORDS: NativeRequests = NativeRequests {
    adapter: ADAPTER.name,
    launch: |_| json!({}),
    remote: |address, program| {
        let connect = format!("gdb-remote {}:{}", address.host, address.port);
        let mut fields =
            Fields::from_iter([("attachCommands".to_owned(), json!([native::PACKET_TIMEOUT_COMMAND, connect]))]);
        fields.extend(program.map(|program| ("program".to_owned(), json!(program))));
        StartRequest::Attach(fields)
    },
};

/// As `rust-lldb`.
fn rust_formatter_commands(formatters: &Path) -> Vec<String> {
    let quoted = |file: &str| format!("{:?}", formatters.join(file).display().to_string());
    vec![
        format!("command script import {}", quoted("lldb_lookup.py")),
        format!("command source -s 1 {}", quoted("lldb_commands")),
    ]
}

fn find_adapter(search: &AdapterSearch) -> Result<FoundAdapter> {
    AdapterLookup::new(search, native::configured_program(&["lldb-dap", "bin/lldb-dap"]))
        .try_on_path(NAMES)
        .try_installed_tool("lldb-dap", |entry| entry.to_owned(), is_program)
        .try_path(search.mason_file("lldb-dap/lldb-dap"), "mason", is_program)
        .try_extensions("llvm-vs-code-extensions.lldb-dap", "bin/lldb-dap", is_program)
        .finish(ADAPTER.name, ADAPTER.install)
        .map(|found| native::with_formatters(found, search))
}

fn plan_launch(found: &FoundAdapter, target: &DebugTarget) -> Result<LaunchPlan> {
    let mut start = native::start_request(target, &WORDS)?;
    if let Some(formatters) = found.formatters.as_deref().filter(|_| native::is_rust(target)) {
        let (StartRequest::Launch(fields) | StartRequest::Attach(fields)) = &mut start;
        let mut commands = rust_formatter_commands(formatters);
        commands.extend(target.text_list("initCommands")?);
        fields.insert("initCommands".to_owned(), json!(commands));
    }
    let argv = vec![found.path.clone().into()];
    Ok(LaunchPlan {
        process: Some(ProcessPlan { argv, cwd: target.cwd.clone(), env: Default::default() }),
        connect: ConnectMethod::Pipes,
        start,
        is_program: false,
        output_by_pipe: false,
    })
}
