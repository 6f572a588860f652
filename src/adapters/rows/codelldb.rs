//! CodeLLDB: C, C++ and Rust. It contains LLDB, and shows Rust's values readably.

use std::path::{Path, PathBuf};

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
    name: "codelldb",
    id: "lldb",
    languages: native::LANGUAGES,
    extensions: native::EXTENSIONS,
    types: &["lldb", "codelldb", "cppdbg"],
    quirks: Quirks::NONE,
    install: "`tether adapters install codelldb` installs it",
    find: find_adapter,
    plan: plan_launch,
};

const WORDS: NativeRequests = NativeRequests {
    adapter: ADAPTER.name,
    launch: |target| {
        let languages: &[&str] = if native::is_rust(target) { &["rust"] } else { &["cpp"] };
        json!({"type": "lldb", "request": "launch", "terminal": "console", "sourceLanguages": languages})
    },
    remote: |address, program| {
        let connect = format!("gdb-remote {}:{}", address.host, address.port);
        let create = program.map(|program| format!("target create {:?}", program.display().to_string()));
        let fields = [
            ("name", json!("remote")),
            ("targetCreateCommands", json!(Vec::from_iter(create))),
            ("processCreateCommands", json!([native::PACKET_TIMEOUT_COMMAND, connect])),
        ];
        // CodeLLDB attaches to a remote stub by a launch with custom commands.
        StartRequest::Launch(Fields::from_iter(fields.map(|(name, value)| (name.to_owned(), value))))
    },
};

fn find_adapter(search: &AdapterSearch) -> Result<FoundAdapter> {
    AdapterLookup::new(
        search,
        native::configured_program(&["codelldb", "adapter/codelldb", "extension/adapter/codelldb"]),
    )
    .try_on_path(&["codelldb"])
    .try_installed_tool("js-debug", in_package, is_program)
    .try_path(search.mason_file("codelldb/extension/adapter/codelldb"), "mason", is_program)
    .try_extensions("vadimcn.vscode-lldb", "adapter/codelldb", is_program)
    .finish(ADAPTER.name, ADAPTER.install)
}

/// Below the npm package that contains it, by Node's names of this system and architecture.
fn in_package(entry: &Path) -> PathBuf {
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    entry.join(format!("dist/vendor/codelldb/{system}-{machine}/adapter/codelldb"))
}

fn plan_launch(found: &FoundAdapter, target: &DebugTarget) -> Result<LaunchPlan> {
    let argv = vec![found.path.clone().into()];
    Ok(LaunchPlan {
        process: Some(ProcessPlan { argv, cwd: target.cwd.clone(), env: Default::default() }),
        connect: ConnectMethod::Pipes,
        start: native::start_request(target, &WORDS)?,
        is_program: false,
        output_by_pipe: false,
    })
}
