//! A workspace with user folders of its own, and the real `tether` in it.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Drop ends its supervisor.
pub struct Sandbox {
    home: tempfile::TempDir,
    pub workspace: PathBuf,
}

impl Sandbox {
    /// A sandbox with these files.
    pub fn with(files: &[(&str, &str)]) -> Sandbox {
        let home = tempfile::tempdir().unwrap();
        let workspace = home.path().canonicalize().unwrap().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        std::fs::DirBuilder::new().mode(0o700).create(home.path().join("run")).unwrap();
        for (name, text) in files {
            std::fs::write(workspace.join(name), text).unwrap();
        }
        Sandbox { home, workspace }
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tether"));
        command.args(arguments).current_dir(&self.workspace);
        for (name, folder) in [("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config"), ("XDG_RUNTIME_DIR", "run")] {
            command.env(name, self.home().join(folder));
        }
        command
    }

    /// Runs `tether … --json`, which must succeed.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments).arg("--json").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let ended = self.command(&["shutdown"]).output();
        assert!(ended.is_ok_and(|ended| ended.status.success()) || std::thread::panicking());
    }
}
