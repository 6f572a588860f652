//! A workspace with user folders of its own, and the real `tether` in it.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Drop ends its supervisor, and its sessions.
pub struct Sandbox {
    home: tempfile::TempDir,
    pub workspace: PathBuf,
    /// The `tether` that it runs.
    program: PathBuf,
}

impl Sandbox {
    /// A sandbox with these files.
    pub fn with(files: &[(&str, &str)]) -> Sandbox {
        Sandbox::of(Path::new(env!("CARGO_BIN_EXE_tether")), files)
    }

    /// As [`Sandbox::with`], for another build.
    pub fn of(program: &Path, files: &[(&str, &str)]) -> Sandbox {
        let home = tempfile::tempdir().unwrap();
        let workspace = home.path().canonicalize().unwrap().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        std::fs::DirBuilder::new().mode(0o700).create(home.path().join("run")).unwrap();
        for (name, text) in files {
            std::fs::write(workspace.join(name), text).unwrap();
        }
        Sandbox { home, workspace, program: program.to_owned() }
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.workspace);
        for (name, folder) in [("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config"), ("XDG_RUNTIME_DIR", "run")] {
            command.env(name, self.home().join(folder));
        }
        command
    }

    /// What its supervisor has written of itself.
    pub fn supervisor(&self) -> Option<rustix::process::Pid> {
        let state = std::fs::read_dir(self.home().join("state/devtether")).ok()?.next()?.ok()?;
        let lock = std::fs::read(state.path().join("supervisor.lock")).ok()?;
        let holder: Value = serde_json::from_slice(&lock).ok()?;
        rustix::process::Pid::from_raw(holder["pid"].as_i64()? as i32)
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
        let ends = |arguments: &[&str]| self.command(arguments).output().is_ok_and(|ended| ended.status.success());
        // A build of before session hosts does not know the flag.
        assert!(ends(&["shutdown", "--all"]) || ends(&["shutdown"]) || std::thread::panicking());
    }
}
