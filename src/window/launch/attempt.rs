//! A launch in progress: its plan, its folders, and the processes that it has started.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::Signal;

use crate::cdp::Endpoint;
use crate::config::WindowSettings;
use crate::error::{Error, ErrorContext, ErrorKind, Result};
use crate::process::{self, DetachedCommand, LAUNCH_ID, Process};
use crate::sync::lock;
use crate::tools;
use crate::window::identity::IdentityError;
use crate::window::launch_id::{output_file_of, scratch_dir_of};

/// The default deadline of each step of a launch, such as opening the debugging port.
const DEADLINE: Duration = Duration::from_secs(120);

/// What to launch.
#[derive(Clone, Debug)]
pub struct WindowLaunchPlan {
    /// With `kind` set.
    pub settings: WindowSettings,
    pub workspace: PathBuf,
    /// For the scratch folder and the output file; created with mode 0700, outside the workspace.
    pub state_dir: PathBuf,
    /// New and random; see [`crate::window::launch_id::is_launch_id`].
    pub launch_id: String,
}

/// What each kind of launch returns.
pub struct ReadyProgram {
    pub process: Process,
    pub others: Vec<Process>,
    pub endpoint: Endpoint,
    pub inspector_port: Option<u16>,
    pub user_data_dir: Option<PathBuf>,
}

/// A launch in progress. Dropped before [`LaunchAttempt::complete`], it kills all processes with its launch id.
pub struct LaunchAttempt<'a> {
    plan: &'a WindowLaunchPlan,
    /// Removed with the window, or with a failed launch.
    pub scratch: PathBuf,
    /// The output of all processes of this launch.
    pub output: PathBuf,
    progress: &'a (dyn Fn(&str) + Send + Sync),
    /// The started processes, each the leader of a process group.
    started: Mutex<Vec<Process>>,
    completed: bool,
}

impl<'a> LaunchAttempt<'a> {
    /// Creates the folders of a launch. `progress` receives the current step.
    pub fn start(plan: &'a WindowLaunchPlan, progress: &'a (dyn Fn(&str) + Send + Sync)) -> Result<Self> {
        create_private_dir(&plan.state_dir)?;
        let scratch = scratch_dir_of(&plan.state_dir, &plan.launch_id);
        create_private_dir(&scratch)?;
        let output = output_file_of(&plan.state_dir, &plan.launch_id);
        Ok(LaunchAttempt { plan, scratch, output, progress, started: Mutex::default(), completed: false })
    }

    /// The window's settings.
    pub fn settings(&self) -> &WindowSettings {
        &self.plan.settings
    }

    /// The workspace's folder.
    pub fn workspace(&self) -> &Path {
        &self.plan.workspace
    }

    /// The value of [`LAUNCH_ID`] in the environment of all programs of this launch.
    pub fn launch_id(&self) -> &str {
        &self.plan.launch_id
    }

    /// Resolves a path of the settings against the workspace.
    pub fn resolve_path(&self, path: &Path) -> PathBuf {
        self.plan.workspace.join(path)
    }

    /// The environment of all programs of this launch.
    pub fn environment(&self) -> BTreeMap<OsString, OsString> {
        let mut environment = environment_of(self.settings());
        environment.insert(LAUNCH_ID.into(), self.plan.launch_id.clone().into());
        environment
    }

    /// The first of these programs on the PATH of the launched programs.
    pub fn find_on_path(&self, names: &[&str]) -> Option<PathBuf> {
        tools::find_on_path(names, self.environment().get(OsStr::new("PATH")).map(OsString::as_os_str))
    }

    /// The program of a setting: a path, or a name in `node_modules/.bin` or on the PATH of the launched programs.
    pub fn find_program(&self, setting: &Path) -> Option<PathBuf> {
        let path = self.resolve_path(setting);
        let bare = setting.components().count() == 1;
        let local = self.plan.workspace.join("node_modules/.bin").join(setting);
        let named = || Some(local).filter(|local| bare && tools::is_program(local));
        let found = || self.find_on_path(&[setting.to_str().filter(|_| bare)?]);
        Some(path).filter(|path| tools::is_program(path)).or_else(named).or_else(found)
    }

    /// Starts a program of this launch in the workspace, or in the folder of the `cwd` setting.
    pub fn spawn<S: AsRef<OsStr>>(&self, argv: impl IntoIterator<Item = S>) -> Result<Process> {
        let workspace = || self.plan.workspace.clone();
        let process = process::spawn_detached(&DetachedCommand {
            argv: argv.into_iter().map(|word| word.as_ref().to_owned()).collect(),
            cwd: self.settings().cwd.as_deref().map_or_else(workspace, |cwd| self.resolve_path(cwd)),
            env: self.environment(),
            output: self.output.clone(),
        })?;
        lock(&self.started).push(process.clone());
        Ok(process)
    }

    /// The deadline of each step.
    pub fn deadline(&self) -> Duration {
        self.settings().timeout.unwrap_or(DEADLINE)
    }

    /// Reports the current step.
    pub fn report_progress(&self, text: &str) {
        (self.progress)(text);
    }

    /// Keeps the started processes running; returns the path of their output.
    pub fn complete(mut self) -> PathBuf {
        self.completed = true;
        self.output.clone()
    }
}

impl Drop for LaunchAttempt<'_> {
    fn drop(&mut self) {
        if !self.completed {
            // By process group too: a process that has just been started has no environment in /proc yet.
            for process in lock(&self.started).iter() {
                process.signal_group(Signal::KILL);
            }
            process::kill_launch(&self.plan.launch_id);
            // What a killed process has written after this is removed by the next clean-up of the state folder.
            let _ = std::fs::remove_dir_all(&self.scratch);
        }
    }
}

/// The environment of the programs of a window with these settings, without the launch id.
pub fn environment_of(settings: &WindowSettings) -> BTreeMap<OsString, OsString> {
    process::clean_environment(settings.env.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

/// Creates a folder with mode 0700.
pub fn create_private_dir(folder: &Path) -> Result<()> {
    let doing = || format!("cannot make the folder {}", folder.display());
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).doing(doing)?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).doing(doing)
}

/// The error of a debugging port that belongs to another program and must not be connected to.
pub fn untrusted_port_error(reason: IdentityError) -> Error {
    Error::new(ErrorKind::Other, "cannot trust the debugging port of the launched window").because(reason)
}
