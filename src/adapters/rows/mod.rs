//! The table of debug adapters: one row and one file for each.
//!
//! `native`, `python` and `typescript_runner` are shared by rows: what the adapters for C, C++ and Rust have in common, which
//! Python runs a program, and what runs a TypeScript file; `waiting_command` is how a command waits for its debugger. To add an adapter, add a file with its row and a line here. Does not depend on sessions.

mod codelldb;
mod debugpy;
mod delve;
mod gdb;
mod java;
mod js_debug;
mod lldb_dap;
mod native;
mod netcoredbg;
mod node;
mod python;
mod python_attach;
mod rdbg;
#[cfg(test)]
mod tests;
mod typescript_runner;
mod waiting_command;

use super::adapter::Adapter;
pub use waiting_command::waiting_command;

/// Every adapter. Of several for the same language, the first that is found is used.
pub const ADAPTERS: &[Adapter] = &[
    debugpy::ADAPTER,
    node::ADAPTER,
    js_debug::ADAPTER,
    rdbg::ADAPTER,
    delve::ADAPTER,
    codelldb::ADAPTER,
    lldb_dap::ADAPTER,
    gdb::ADAPTER,
    netcoredbg::ADAPTER,
    java::ADAPTER,
];
