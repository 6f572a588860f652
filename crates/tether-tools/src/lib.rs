//! Outside programs: their pinned versions, where they are, how they are installed.
//!
//! | file | responsibility |
//! |---|---|
//! | `pins.toml`, `pins` | every tool and its exact version, in one place |
//! | `tool_status` | the state of each tool: installed, outdated, missing |
//! | `installer` | installs tools in the order of their dependencies, under a lock |
//! | `atomic_install` | the folder of one tool: complete or absent, never partial |
//! | `package_install` | installs and verifies a wheel, an npm package, a virtual environment |
//! | `bounded_command` | runs npm and pip with a deadline, and prints their output only on failure |
//! | `system_programs` | programs of the distribution: their versions are checked, they are never installed |
//! | `desktop_vscode` | finds a desktop VS Code |
//!
//! Does not depend on what the tools are used for.

#![warn(missing_docs, unreachable_pub)]

mod atomic_install;
mod bounded_command;
pub mod desktop_vscode;
mod installer;
mod package_install;
mod pins;
mod system_programs;
mod tool_status;

pub use atomic_install::{InstallOutcome, InstallablePackage};
pub use installer::{Installer, install_tool};
pub use pins::{DebianJdk, ExtensionTemplate, Pins, SystemPin, Tool, ToolSource};
pub use system_programs::{SystemProgram, check_program_version};
pub use tether_base::path_lookup::{find_on_path, is_program};
pub use tool_status::{ToolState, ToolStatus, cache_folder, entry_path, list_tools, tools_folder};
