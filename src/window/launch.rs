//! Launching a window: what to start, where it lies, and when it is ready.
//!
//! One file per kind knows its command line and how its ports are learned. What is common lies here: the folders,
//! the environment, and that a launch which fails or is dropped leaves nothing running.
//!
//! ```text
//! <state_dir>/window-<launch id>/      removed when the window stops
//!                      …/browser       Chromium's user data (unless `profile` is set)
//! <state_dir>/output-<launch id>.log   both output streams of everything of this launch
//! ```

mod browser;
mod custom_command;
mod desktop_extension_host;
mod extension_host_args;
mod node;
mod readiness;
mod web_extension_host;

pub use browser::BROWSER_NAMES as BROWSERS;
pub use desktop_extension_host::find_desktop_vscode;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Signal;

pub use self::readiness::parse_inspector_port;
use crate::cdp::Endpoint;
use crate::clock::now_ms;
use crate::config::{WindowKind, WindowSettings};
use crate::error::{Error, ErrorContext, ErrorKind, Result};
use crate::process::{self, DetachedCommand, LAUNCH_ID, Process};
use crate::tools;

/// How long a started program may take to open its debugging port, and each further step of a launch, by default.
const DEADLINE: Duration = Duration::from_secs(120);

/// What to launch.
#[derive(Clone, Debug)]
pub struct WindowLaunchPlan {
    /// With `kind` set.
    pub settings: WindowSettings,
    pub workspace: PathBuf,
    /// Where scratch folder and output file go; made with mode 0700, outside the workspace.
    pub state_dir: PathBuf,
    /// Fresh and random; see [`is_launch_id`].
    pub launch_id: String,
}

/// A window that is ready.
#[derive(Debug)]
pub struct LaunchedWindow {
    /// The window's main process.
    pub process: Process,
    /// What else was started for it; ended by [`super::stop`] through the launch id.
    pub others: Vec<Process>,
    pub boot_id: String,
    pub cdp_port: u16,
    pub inspector_port: Option<u16>,
    /// Who answers on `cdp_port`.
    pub endpoint: Endpoint,
    pub user_data_dir: Option<PathBuf>,
    pub output: PathBuf,
    /// When the launch began; epoch milliseconds.
    pub started_at_ms: u64,
}

/// What a kind of window has learned when it is ready.
struct ReadyProgram {
    process: Process,
    others: Vec<Process>,
    endpoint: Endpoint,
    inspector_port: Option<u16>,
    user_data_dir: Option<PathBuf>,
}

/// Launches the window and resolves when it can be connected to. `progress` is told what is being waited for.
///
/// Dropping the future, or an error, ends everything that was started so far. Errors: a program or setting is
/// missing, a program ends early or never opens its port (with the tail of its output), the port is another's.
pub async fn launch_window(plan: &WindowLaunchPlan, progress: impl Fn(&str) + Send + Sync) -> Result<LaunchedWindow> {
    let kind = plan.settings.kind.ok_or_else(missing_kind)?;
    if !is_launch_id(&plan.launch_id) {
        return Err(Error::usage(format!("{:?} cannot be a launch id", plan.launch_id)));
    }
    let boot_id = process::read_boot_id().doing(|| "cannot read the id of this boot".to_owned())?;
    let launch = LaunchAttempt::begin(plan, &progress)?;
    let started_at_ms = now_ms();
    let started = match kind {
        WindowKind::Browser => browser::launch_browser(&launch).await,
        WindowKind::Node => node::launch_node(&launch).await,
        WindowKind::Command => custom_command::launch_custom_command(&launch).await,
        WindowKind::WebExtensionHost => web_extension_host::launch_web_extension_host(&launch).await,
        // Derived, it only means an extension host: the desktop's where there is one.
        WindowKind::ExtensionHost
            if plan.settings.derived && find_desktop_vscode(&plan.settings, &plan.workspace).is_none() =>
        {
            web_extension_host::launch_web_extension_host(&launch).await
        }
        WindowKind::ExtensionHost => desktop_extension_host::launch_desktop_extension_host(&launch).await,
    };
    let output = launch.output.clone();
    match started {
        Ok(ReadyProgram { process, others, endpoint, inspector_port, user_data_dir }) => {
            launch.keep();
            let cdp_port = endpoint.port;
            Ok(LaunchedWindow {
                process,
                others,
                boot_id,
                cdp_port,
                inspector_port,
                endpoint,
                user_data_dir,
                output,
                started_at_ms,
            })
        }
        Err(error) => {
            // Waited for, so that a second try meets nothing of the first; the drop alone would only signal.
            let _ = super::cleanup::clean_up_launch(&plan.launch_id, &plan.state_dir).await;
            Err(error)
        }
    }
}

fn missing_kind() -> Error {
    Error::usage("cannot tell what kind of window to launch").hint(
        "set `kind = \"browser\"` (or extension-host, web-extension-host, node, command) in the [window] section of devtools.toml",
    )
}

/// Whether `text` has the shape of a launch id: 8–64 of letters, digits and `-`. It becomes part of paths.
pub fn is_launch_id(text: &str) -> bool {
    (8..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The folder of a launch that is removed with it.
pub fn scratch_dir_of(state_dir: &Path, launch_id: &str) -> PathBuf {
    state_dir.join(format!("window-{launch_id}"))
}

/// The launch whose scratch folder has this name.
pub fn launch_id_of_scratch_dir(folder: &OsStr) -> Option<String> {
    let launch_id = folder.to_str()?.strip_prefix("window-")?;
    is_launch_id(launch_id).then(|| launch_id.to_owned())
}

/// The file with the output of a launch.
pub fn output_file_of(state_dir: &Path, launch_id: &str) -> PathBuf {
    state_dir.join(format!("output-{launch_id}.log"))
}

/// What a program of such a window inherits, but for its launch id.
fn environment_of(settings: &WindowSettings) -> BTreeMap<OsString, OsString> {
    process::clean_environment(settings.env.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

/// A launch under way. Dropped before [`Launch::keep`], it kills what carries its id.
struct LaunchAttempt<'a> {
    plan: &'a WindowLaunchPlan,
    scratch: PathBuf,
    output: PathBuf,
    progress: &'a (dyn Fn(&str) + Send + Sync),
    /// What was started so far, each the leader of a group.
    started: Mutex<Vec<Process>>,
    kept: bool,
}

impl<'a> LaunchAttempt<'a> {
    fn begin(plan: &'a WindowLaunchPlan, progress: &'a (dyn Fn(&str) + Send + Sync)) -> Result<Self> {
        make_private(&plan.state_dir)?;
        let scratch = scratch_dir_of(&plan.state_dir, &plan.launch_id);
        make_private(&scratch)?;
        let output = output_file_of(&plan.state_dir, &plan.launch_id);
        remove_old_outputs(&plan.state_dir);
        Ok(LaunchAttempt { plan, scratch, output, progress, started: Mutex::default(), kept: false })
    }

    fn settings(&self) -> &WindowSettings {
        &self.plan.settings
    }

    /// A path of the settings: relative ones are relative to the workspace.
    fn path(&self, path: &Path) -> PathBuf {
        self.plan.workspace.join(path)
    }

    fn environment(&self) -> BTreeMap<OsString, OsString> {
        let mut environment = environment_of(self.settings());
        environment.insert(LAUNCH_ID.into(), self.plan.launch_id.clone().into());
        environment
    }

    /// Looks programs up where the launched ones would.
    fn on_path(&self, names: &[&str]) -> Option<PathBuf> {
        tools::find_on_path(names, self.environment().get(OsStr::new("PATH")).map(OsString::as_os_str))
    }

    /// A program that a setting names: a path, or a name to be looked up as the launched ones would.
    fn program(&self, setting: &Path) -> Option<PathBuf> {
        let path = self.path(setting);
        let bare = setting.components().count() == 1;
        let local = self.plan.workspace.join("node_modules/.bin").join(setting);
        let named = || Some(local).filter(|local| bare && tools::is_program(local));
        let found = || self.on_path(&[setting.to_str().filter(|_| bare)?]);
        Some(path).filter(|path| tools::is_program(path)).or_else(named).or_else(found)
    }

    /// Starts a program of this launch in the workspace, or in the folder that is set.
    fn spawn<S: AsRef<OsStr>>(&self, argv: impl IntoIterator<Item = S>) -> Result<Process> {
        let process = process::spawn_detached(&DetachedCommand {
            argv: argv.into_iter().map(|word| word.as_ref().to_owned()).collect(),
            cwd: self.settings().cwd.as_deref().map_or_else(|| self.plan.workspace.clone(), |cwd| self.path(cwd)),
            env: self.environment(),
            output: self.output.clone(),
        })?;
        self.started.lock().unwrap_or_else(PoisonError::into_inner).push(process.clone());
        Ok(process)
    }

    /// How long each step may take.
    fn deadline(&self) -> Duration {
        self.settings().timeout.unwrap_or(DEADLINE)
    }

    fn progress(&self, text: &str) {
        (self.progress)(text);
    }

    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for LaunchAttempt<'_> {
    fn drop(&mut self) {
        if !self.kept {
            // By group too: for a moment after its start a process does not show its environment yet.
            for process in self.started.get_mut().unwrap_or_else(PoisonError::into_inner) {
                process.signal_group(Signal::KILL);
            }
            process::kill_launch(&self.plan.launch_id);
            // What a dying process still writes there is removed with the state folder's owner.
            let _ = std::fs::remove_dir_all(&self.scratch);
        }
    }
}

/// Keeps the newest outputs of earlier launches: the last window's, and the one's before it.
fn remove_old_outputs(state_dir: &Path) {
    const KEPT: usize = 4;
    let is_output =
        |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with("output-") && name.ends_with(".log"));
    let entries = std::fs::read_dir(state_dir).into_iter().flatten().flatten();
    let mut outputs: Vec<_> = entries.filter(|entry| is_output(&entry.file_name())).collect();
    outputs.sort_by_cached_key(|entry| std::cmp::Reverse(entry.metadata().and_then(|data| data.modified()).ok()));
    for old in outputs.iter().skip(KEPT) {
        // Nothing depends on it.
        let _ = std::fs::remove_file(old.path());
    }
}

/// Makes a folder that only we can look into.
fn make_private(folder: &Path) -> Result<()> {
    let doing = || format!("cannot make the folder {}", folder.display());
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).doing(doing)?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).doing(doing)
}

/// The port is another program's: nothing is to be connected to.
fn untrusted_port(doubt: super::identity::IdentityError) -> Error {
    Error::new(ErrorKind::Other, "cannot trust the debugging port of the launched window").because(doubt)
}
