//! A launch in progress: its plan, its folders, and the processes that it has started.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use tether_base::clock::now_ms;
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tether_base::sync::lock;
use tether_cdp::Endpoint;
use tether_process::{DetachedCommand, LAUNCH_ID, Process};
use tracing::debug;

use crate::config::{WindowSettings, resolve_program};
use crate::window::identity::IdentityError;
use crate::window::launch_id::{output_file_of, scratch_dir_of};
use crate::window::page::{PageConnection, PageHistory};

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
    /// Where the console and the network requests of the page are recorded, from its first request on.
    pub history: Arc<PageHistory>,
    /// Whether its extension hosts wait for their debug sessions: see `host_hold`.
    pub holds_hosts: bool,
}

impl WindowLaunchPlan {
    /// Resolves a path of the settings against the workspace.
    pub fn resolve_path(&self, path: &Path) -> PathBuf {
        self.workspace.join(path)
    }

    /// The folder in which the programs run.
    pub fn working_folder(&self) -> PathBuf {
        self.settings.cwd.as_deref().map_or(self.workspace.clone(), |cwd| self.resolve_path(cwd))
    }

    /// The environment of all programs of this launch.
    pub fn environment(&self) -> BTreeMap<OsString, OsString> {
        let mut environment = environment_of(&self.settings);
        environment.insert(LAUNCH_ID.into(), self.launch_id.clone().into());
        environment
    }

    /// The first of these programs on the PATH of the launched programs.
    pub fn find_on_path(&self, names: &[&str]) -> Option<PathBuf> {
        tether_tools::find_on_path(names, self.environment().get(OsStr::new("PATH")).map(OsString::as_os_str))
    }

    /// The program of a setting: a path, or a name in `node_modules/.bin` or on the PATH of the launched programs.
    /// `name` is the setting's, and `doing` begins the error.
    pub fn find_program(&self, name: &str, setting: &Path, doing: &str) -> Result<PathBuf> {
        let environment = self.environment();
        let path = environment.get(OsStr::new("PATH")).map(OsString::as_os_str);
        let program = resolve_program(&self.workspace, setting, path);
        program.ok_or_else(|| {
            Error::new(ErrorKind::MissingTool, format!("{doing} {}", self.resolve_path(setting).display()))
                .because("there is no such program")
                .hint(format!(
                    "correct `{name}` in the [window] section of devtools.toml, or `runtimeExecutable` in launch.json"
                ))
        })
    }
}

/// A window that was launched and can be connected to.
#[derive(Debug)]
pub struct LaunchedWindow {
    /// The window's main process.
    pub process: Process,
    /// The other programs of the launch; [`crate::window::cleanup`] kills them by the launch id.
    pub others: Vec<Process>,
    pub boot_id: String,
    pub cdp_port: u16,
    pub inspector_port: Option<u16>,
    /// The browser or Node behind `cdp_port`.
    pub endpoint: Endpoint,
    /// The connection over which its page was loaded.
    pub page: Option<PageConnection>,
    pub user_data_dir: Option<PathBuf>,
    /// The extensions under development that the extension host on `inspector_port` is to run.
    pub extensions: Vec<PathBuf>,
    /// What a user should know.
    pub notes: Vec<String>,
    pub output: PathBuf,
    /// The start of the launch; epoch milliseconds.
    pub started_at_ms: u64,
}

/// Resolves when the window before is closed. Errors: it cannot be closed.
pub type OldWindowClosed<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// A started program of a launch; [`super::readiness`] waits for it.
pub struct StartedProgram<'a> {
    pub attempt: &'a LaunchAttempt<'a>,
    pub process: Process,
    /// For messages.
    pub name: String,
}

/// A launch in progress. Dropped before [`LaunchAttempt::complete`], it kills all processes with its launch id.
pub struct LaunchAttempt<'a> {
    pub plan: &'a WindowLaunchPlan,
    boot_id: String,
    started_at_ms: u64,
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
        let boot_id = tether_process::read_boot_id().doing(|| "cannot read the id of this boot".to_owned())?;
        create_private_dir(&plan.state_dir)?;
        let scratch = scratch_dir_of(&plan.state_dir, &plan.launch_id);
        create_private_dir(&scratch)?;
        let output = output_file_of(&plan.state_dir, &plan.launch_id);
        let (started, started_at_ms) = (Mutex::default(), now_ms());
        Ok(LaunchAttempt { plan, boot_id, started_at_ms, scratch, output, progress, started, completed: false })
    }

    /// Logs that the launch has come this far, and after what time.
    pub fn log_moment(&self, what: &str) {
        let elapsed = now_ms().saturating_sub(self.started_at_ms);
        debug!("launching the window: {what} after {elapsed}ms");
    }

    /// The launched window; a kind adds the fields that only it has.
    pub fn launched_window(&self, process: Process, endpoint: Endpoint) -> LaunchedWindow {
        LaunchedWindow {
            process,
            others: Vec::new(),
            boot_id: self.boot_id.clone(),
            cdp_port: endpoint.port,
            inspector_port: None,
            endpoint,
            page: None,
            user_data_dir: None,
            extensions: Vec::new(),
            notes: Vec::new(),
            output: self.output.clone(),
            started_at_ms: self.started_at_ms,
        }
    }

    /// Connects to the page of a started browser, and records what it loads from now on. Repeated while the browser is still
    /// busy with its start; the launch's deadline ends it.
    pub async fn connect_to_page(&self, endpoint: &Endpoint) -> Result<PageConnection> {
        repeat_while_busy(|| PageConnection::open_endpoint(endpoint.clone(), Arc::clone(&self.plan.history))).await
    }

    /// The folder of the `profile` setting; without one, a folder that is removed with the window.
    pub fn profile_dir(&self, name: &str) -> PathBuf {
        let kept = self.plan.settings.profile.as_deref().map(|kept| self.plan.resolve_path(kept));
        kept.unwrap_or_else(|| self.scratch.join(name))
    }

    /// Starts a program of this launch in the workspace, or in the folder of the `cwd` setting.
    pub fn spawn(&self, name: &str, argv: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<StartedProgram<'_>> {
        let process = tether_process::spawn_detached(&DetachedCommand {
            argv: argv.into_iter().map(|word| word.as_ref().to_owned()).collect(),
            cwd: self.plan.working_folder(),
            env: self.plan.environment(),
            output: self.output.clone(),
        })?;
        lock(&self.started).push(process.clone());
        Ok(StartedProgram { attempt: self, process, name: name.into() })
    }

    /// Waits for a line in the output of this launch, and returns what `parse` makes of it.
    pub async fn wait_for_line(&self, parse: fn(&str) -> Option<u16>) -> Result<u16> {
        let found = tether_process::wait_for_line(&self.output, 0, parse).await;
        found.doing(|| format!("cannot read {}", self.output.display()))
    }

    /// The deadline of each step.
    pub fn deadline(&self) -> Duration {
        self.plan.settings.timeout.unwrap_or(DEADLINE)
    }

    /// Reports the current step.
    pub fn report_progress(&self, text: &str) {
        (self.progress)(text);
    }

    /// Keeps the started processes running.
    pub fn complete(mut self) {
        self.completed = true;
    }
}

impl Drop for LaunchAttempt<'_> {
    fn drop(&mut self) {
        if !self.completed {
            // First, while the children of the started processes are still their own.
            tether_process::kill_launch(&self.plan.launch_id);
            // By process group too: a process that has just been started has no environment in /proc yet.
            for process in lock(&self.started).iter() {
                process.signal_group(Signal::KILL);
            }
            // What a killed process has written after this is removed by the next clean-up of the state folder.
            let _ = std::fs::remove_dir_all(&self.scratch);
        }
    }
}

/// The environment of the programs of a window with these settings, without the launch id.
pub fn environment_of(settings: &WindowSettings) -> BTreeMap<OsString, OsString> {
    tether_process::clean_environment(settings.env.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

/// Repeats what a browser that is still busy with its start did not respond to in time; the launch's deadline ends it.
pub async fn repeat_while_busy<T, F: Future<Output = Result<T>>>(operation: impl Fn() -> F) -> Result<T> {
    loop {
        match operation().await {
            Err(error) if error.kind == ErrorKind::TimedOut => {}
            outcome => return outcome,
        }
    }
}

/// Creates a folder with mode 0700.
pub fn create_private_dir(folder: &Path) -> Result<()> {
    let doing = || format!("cannot make the folder {}", folder.display());
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).doing(doing)?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).doing(doing)
}

/// A flag whose value is a path.
pub fn flag_with_path(flag: &str, path: &Path) -> OsString {
    let mut word = OsString::from(flag);
    word.push(path);
    word
}

/// The error of a debugging port that belongs to another program and must not be connected to.
pub fn untrusted_port_error(reason: IdentityError) -> Error {
    Error::new(ErrorKind::Other, "cannot trust the debugging port of the launched window").because(reason)
}
