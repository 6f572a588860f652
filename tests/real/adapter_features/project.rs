//! A program of several files in a workspace of its own, built as its users would.

use std::path::{Path, PathBuf};
use std::process::Command;

use devtether::debug::SessionRequest;
use devtether::debug::breakpoints::BreakpointConditions;
use devtether::debug::program::{DebugTarget, DebugTargetKind};

use crate::adapter_features::sessions::FeatureSessions;

/// What the programs of an adapter are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Python,
    JavaScript,
    Ruby,
    Go,
    Java,
    Cpp,
}

impl Language {
    pub fn of(adapter: &str) -> Language {
        match adapter {
            "debugpy" => Language::Python,
            "js-debug" | "node" => Language::JavaScript,
            "rdbg" => Language::Ruby,
            "dlv" => Language::Go,
            "java" => Language::Java,
            _ => Language::Cpp,
        }
    }
}

/// A file, by its path in the workspace, and its text.
pub type ProjectFile = (&'static str, &'static str);

/// A program, and its workspace.
pub struct Project {
    pub adapter: &'static str,
    pub language: Language,
    pub workspace: PathBuf,
    _folder: tempfile::TempDir,
}

impl Project {
    /// Writes these files.
    pub fn with_files(adapter: &'static str, files: &[ProjectFile]) -> Project {
        let folder = tempfile::Builder::new().prefix("tether abilities ").tempdir().unwrap();
        let workspace = folder.path().canonicalize().unwrap();
        let project = Project { adapter, language: Language::of(adapter), workspace, _folder: folder };
        for (path, text) in files {
            let path = project.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        project
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.workspace.join(path)
    }

    /// The line of a file that ends with this marker.
    pub fn line(&self, file: &str, marker: &str) -> u32 {
        let text = std::fs::read_to_string(self.path(file)).unwrap();
        let line = (1..).zip(text.lines()).find(|(_, line)| line.ends_with(&format!(" {marker}")));
        line.unwrap_or_else(|| panic!("{file} has no {marker}")).0
    }

    /// The program of these sources, built in a folder where that is needed.
    pub fn program(&self, folder: &str, sources: &[&str]) -> PathBuf {
        let built = self.path("built app");
        // As a shell in that folder sets it.
        let folder = self.path(folder);
        match self.language {
            Language::Go => {
                let mut build = Command::new("go");
                build.args(["build", "-gcflags=all=-N -l", "-o"]).arg(&built);
                run(build.current_dir(&folder).env("PWD", &folder));
                built
            }
            Language::Cpp => {
                let mut build = Command::new("c++");
                build.args(["-g", "-O0", "-o"]).arg(&built).args(sources).args(["-ldl"]);
                run(build.current_dir(&folder).env("PWD", &folder));
                built
            }
            _ => folder.join(sources[0]),
        }
    }

    pub fn request(&self, program: &Path) -> SessionRequest {
        SessionRequest {
            name: "the program".to_owned(),
            debug_target: DebugTarget {
                kind: DebugTargetKind::Program(program.to_owned()),
                cwd: self.workspace.clone(),
                ..DebugTarget::default()
            },
            adapter: Some(self.adapter.to_owned()),
            ..SessionRequest::default()
        }
    }

    /// Sets a breakpoint on a marked line. Returns its id.
    pub async fn set(&self, stage: &FeatureSessions, file: &str, marker: &str) -> u32 {
        let (path, line) = (self.path(file), self.line(file, marker));
        stage.sessions.set_line_breakpoint(&path, line, BreakpointConditions::default()).await.unwrap().spec.id
    }
}

/// Runs a build.
pub fn run(command: &mut Command) {
    let run_command = command.output().unwrap();
    assert!(run_command.status.success(), "{}", String::from_utf8_lossy(&run_command.stderr));
}
