//! Real windows, real debug adapters, real programs: Chromium, VS Code, Node, Python, Ruby, Go, native code.
//!
//! A missing tool skips loudly on a laptop and fails where `CI` is set.

mod adapter_features;
mod adapters;
mod dap_client;
mod debug_commands;
mod debug_scenarios;
mod debug_survival;
mod editor_relays;
mod extension_templates;
mod extension_tests;
mod joined_editors;
mod lifecycle;
mod listed_page;
mod node_programs;
mod page_tools;
mod skill;
#[path = "../support/mod.rs"]
mod support;
mod vscode_extension;
mod windows;
mod wrapped_debug;
mod wrapped_servers;
