//! Outside programs: which version, where they lie, how they are installed.
//!
//! | file | owns |
//! |---|---|
//! | `pins.toml`, `pins` | every tool and its exact version, in one place |
//! | `table` | what of that is there: installed, outdated, missing |
//! | `install` | bringing a tool to its pin: the order, the lock |
//! | `slot` | the folder of one tool: whole or absent, never half |
//! | `package` | how a wheel, an npm package, a virtual environment is put into a folder and proven |
//! | `command` | running the registries' ordinary clients |
//! | `system` | programs that the distribution provides: probed, never installed |
//! | `find` | programs on PATH |
//! | `vscode` | a desktop VS Code, wherever it was installed |
//!
//! Must not know what the tools are used for.

mod command;
mod find;
mod install;
mod package;
mod pins;
mod slot;
mod system;
mod table;
pub mod vscode;

pub use find::{find_on_path, is_program};
pub use install::{Installer, install_tool};
pub use pins::{ExtensionTemplate, Pins, SystemPin, Tool, ToolSource};
pub use slot::{InstallOutcome, InstallablePackage};
pub use system::{ProbedProgram, probe_program};
pub use table::{ToolState, ToolStatus, entry_path, list_tools, tool_state, tools_folder};
