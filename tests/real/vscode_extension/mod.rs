//! The packaged VS Code extension in a real VS Code, driven by MCP: what it shows, and when it stops the MCP server.
//!
//! `npm run package` in `extension/` makes the package. Screenshots are kept in `target/tmp/vscode-extension`.

mod debug_windows;
mod host_editor;
mod joined_session;
mod outside_text;
mod tethered_window;
mod untrusted_folder;
