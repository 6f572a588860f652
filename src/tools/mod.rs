//! Outside programs: which version, where they lie, how they are installed.
//!
//! | file | owns |
//! |---|---|
//! | `pins.toml`, `pins` | every tool and its exact version, in one place |
//! | `tool_status` | what of that is there: installed, outdated, missing |
//! | `installer` | bringing a tool to its pin: the order, the lock |
//! | `tool_folder` | the folder of one tool: whole or absent, never half |
//! | `package_install` | how a wheel, an npm package, a virtual environment is put into a folder and proven |
//! | `bounded_command` | running the registries' ordinary clients |
//! | `system_programs` | programs that the distribution provides: probed, never installed |
//! | `path_lookup` | programs on PATH |
//! | `desktop_vscode` | a desktop VS Code, wherever it was installed |
//!
//! Must not know what the tools are used for.

mod bounded_command;
pub mod desktop_vscode;
mod installer;
mod package_install;
mod path_lookup;
mod pins;
mod system_programs;
mod tool_folder;
mod tool_status;

pub use installer::{Installer, install_tool};
pub use path_lookup::{find_on_path, is_program};
pub use pins::{ExtensionTemplate, Pins, SystemPin, Tool, ToolSource};
pub use system_programs::{ProbedProgram, probe_program};
pub use tool_folder::{InstallOutcome, InstallablePackage};
pub use tool_status::{ToolState, ToolStatus, entry_path, list_tools, tool_state, tools_folder};
