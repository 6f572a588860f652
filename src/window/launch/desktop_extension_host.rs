//! A desktop VS Code (or a derived editor) as the window, with the extension under development in it.
//!
//! ```text
//! `code` (a script) ──► its CLI (Electron as Node) ──spawns, ends with 0──► Electron, the window's main process
//!                                                         │                      │ DevToolsActivePort in its user data
//!                       not our child any more: found by port, user data and launch id
//! ```
//! The user data folder is not shared, so that no running VS Code opens the window instead. `--wait` is not used: pidfd
//! reports the exit of the window more reliably than the CLI. VS Code's arguments:
//! <https://github.com/microsoft/vscode/blob/main/src/vs/platform/environment/node/argv.ts>; Electron writes its port to
//! the user data folder: <https://github.com/electron/electron/pull/17800>.
//!
//! Tested with a simulated launcher that starts a real Chromium; never run with a desktop VS Code.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tether_base::sync::run_blocking;
use tether_cdp::Endpoint;
use tether_process::Process;
use tokio::time::timeout;

use super::attempt::{
    LaunchAttempt, LaunchedWindow, StartedProgram, WindowLaunchPlan, create_private_dir, environment_of,
    flag_with_path, untrusted_port_error,
};
use super::browser::{PORT_FILE, has_display, remove_stale_file, wait_for_port_file};
use super::custom_command::find_free_port;
use super::extension_host_args::ExtensionHostArgs;
use super::readiness::wait_for_listener;
use super::web_extension_host::wait_for_title;
use super::window_bridge::install_window_bridge;
use crate::config::{WEB_WORKER_KIND, WindowSettings, prepare_user_settings};
use crate::window::identity::{IdentityError, verify_launch_port, verify_tree_port};
use crate::window::page::PageConnection;

/// How long the workbench and its extension host are waited for; the window counts as ready after this time.
const WORKBENCH_TIMEOUT: Duration = Duration::from_secs(30);
/// How many lines of VS Code's own log an error contains.
const LOG_LINES: usize = 10;

/// Flags that show the same window at each launch, without unrequested network access.
const FLAGS: &[&str] = &[
    "--remote-debugging-port=0",
    "--new-window",
    "--disable-workspace-trust",
    "--skip-welcome",
    "--skip-release-notes",
    "--skip-add-to-recently-opened",
    "--disable-updates",
    "--disable-telemetry",
    "--disable-crash-reporter",
    "--disable-experiments",
    "--password-store=basic",
];
/// The flags that we set: with other values, we would wait for a port that is never opened.
const RESERVED_FLAGS: &[&str] = &[
    "--user-data-dir",
    "--extensions-dir",
    "--remote-debugging-port",
    "--remote-debugging-pipe",
    "--inspect-extensions",
    "--inspect-brk-extensions",
];

/// Starts VS Code, finds its main process, and waits for the workbench and the extension host.
pub async fn launch_desktop_extension_host(attempt: &LaunchAttempt<'_>) -> Result<LaunchedWindow> {
    let launcher = find_launcher(attempt.plan)?;
    let args = ExtensionHostArgs::read(attempt.plan)?;
    check_args(&args.args)?;
    let profile = VsCodeProfile::prepare(attempt)?;
    let inspector = find_free_port()?;
    attempt.report_progress("starting VS Code");
    let started = attempt.spawn("VS Code", command_line(&launcher, &profile, inspector, &args))?;
    let kill_on_error = KillProfileUsers { profile: &profile };
    let running = || {
        [tether_process::find_launch_processes(&attempt.plan.launch_id).unwrap_or_default(), profile.users()].concat()
    };
    let ready = wait_for_port_file(&profile.user);
    let waiting = started.wait_for_launched(running, "opened its debugging port", ready).await;
    let port = waiting.map_err(|error| append_vscode_log(error, &profile.user))?;
    let (launch_id, launched, user) = (attempt.plan.launch_id.clone(), started.process.clone(), profile.user.clone());
    let process = run_blocking(move || find_main_process(&launch_id, &launched, port, &user)).await?;
    std::mem::forget(kill_on_error); // from here on it is found by its launch id
    let others = if started.process.pid() == process.pid() { Vec::new() } else { vec![started.process.clone()] };
    let vscode = StartedProgram { process, ..started };
    let endpoint = vscode.wait_for_endpoint("answered on its debugging port", port).await?;
    attempt.report_progress("waiting for the extension host");
    let first_window = wait_for_workbench(&vscode, &endpoint, inspector);
    let (page, inspector_port) = vscode.wait_for("shown its window", first_window).await?;
    let launched = attempt.launched_window(vscode.process, endpoint);
    let (user_data_dir, (extensions, note)) = (Some(profile.user), args.extensions_on_node());
    let notes = note.into_iter().collect();
    Ok(LaunchedWindow { others, page, inspector_port, user_data_dir, extensions, notes, ..launched })
}

/// The launcher of the desktop VS Code for these settings, if one is installed and there is a display.
pub fn find_desktop_vscode(settings: &WindowSettings, workspace: &Path) -> Option<PathBuf> {
    let environment = environment_of(settings);
    let setting = settings.vscode.as_deref().map(|path| workspace.join(path));
    let path = environment.get(OsStr::new("PATH")).map(OsString::as_os_str);
    let launcher = tether_tools::desktop_vscode::find_launcher(setting.as_deref(), path)?;
    (!settings.headless && has_display(&environment)).then_some(launcher)
}

/// The launcher, or an error that explains why there is none. Called before anything is started.
pub(super) fn find_launcher(plan: &WindowLaunchPlan) -> Result<PathBuf> {
    let setting = plan.settings.vscode.as_deref().map(|path| plan.resolve_path(path));
    let environment = plan.environment();
    let path = environment.get(OsStr::new("PATH"));
    let web = |error: Error| {
        error
            .hint("`kind = \"web-extension-host\"` in devtools.toml runs the extension in VS Code in a browser")
            .hint("`tether adapters install code-server` installs what that needs")
    };
    let launcher = tether_tools::desktop_vscode::find_launcher(setting.as_deref(), path.map(OsString::as_os_str));
    let launcher = launcher.ok_or_else(|| {
        let error = Error::new(ErrorKind::MissingTool, "cannot find a desktop VS Code");
        let products = tether_tools::desktop_vscode::describe_products();
        web(match &setting {
            Some(setting) => error
                .because(format!("{} is not a program", setting.display()))
                .hint("correct `vscode` in the [window] section of devtools.toml"),
            None => error
                .because(format!("none is on PATH or in the usual places: {products}"))
                .hint("set `vscode = \"/path/to/bin/code\"` in the [window] section of devtools.toml"),
        })
    })?;
    if plan.settings.headless || !has_display(&environment) {
        let reason = if plan.settings.headless { "`headless` is set" } else { "there is no display" };
        return Err(web(Error::usage("cannot start a desktop VS Code without a visible window").because(reason)));
    }
    Ok(launcher)
}

pub(super) fn check_args(args: &[String]) -> Result<()> {
    let is_reserved = |arg: &&String| RESERVED_FLAGS.iter().any(|flag| arg.split('=').next() == Some(flag));
    match args.iter().find(is_reserved) {
        None => Ok(()),
        Some(arg) => Err(Error::usage(format!("cannot start VS Code with `{arg}`"))
            .because("tether chooses ports and folders itself")
            .hint("remove it from `args`; `profile = \"path\"` in devtools.toml keeps settings and extensions")),
    }
}

/// The data folders of this VS Code; those of the user's own VS Code are not used.
struct VsCodeProfile {
    user: PathBuf,
    extensions: PathBuf,
}

impl VsCodeProfile {
    fn prepare(attempt: &LaunchAttempt<'_>) -> Result<VsCodeProfile> {
        let folder = attempt.profile_dir("vscode");
        let profile = VsCodeProfile { user: folder.join("user"), extensions: folder.join("extensions") };
        if let Some(other) = profile.users().first() {
            return Err(Error::usage(format!("cannot use the profile {}", folder.display()))
                .because(format!("a running VS Code uses it (process {})", other.pid()))
                .hint("close that one, or remove `profile` from devtools.toml: each launch then gets a fresh one"));
        }
        create_private_dir(&profile.user)?;
        create_private_dir(&profile.extensions)?;
        install_window_bridge(&attempt.plan.settings, &profile.extensions)?;
        let settings = profile.user.join("User");
        create_private_dir(&settings)?;
        prepare_user_settings(&settings.join("settings.json"))?;
        // VS Code never removes it: the file of an earlier run would be taken for that of this one.
        remove_stale_file(&profile.user.join(PORT_FILE))
            .doing(|| format!("cannot remove the stale {PORT_FILE} in {}", profile.user.display()))?;
        Ok(profile)
    }

    /// The processes with this user data folder on their command line.
    fn users(&self) -> Vec<Process> {
        let joined = flag_with_path("--user-data-dir=", &self.user);
        tether_process::find_by_argument(&[&joined, self.user.as_os_str()]).unwrap_or_default()
    }
}

/// Kills all processes with this user data folder on drop, when the launch fails: a launcher that changes the environment
/// starts processes without a launch id.
struct KillProfileUsers<'a> {
    profile: &'a VsCodeProfile,
}

impl Drop for KillProfileUsers<'_> {
    fn drop(&mut self) {
        let users = self.profile.users();
        // Its helper processes overwrite their command lines: found as descendants while it runs.
        let below =
            users.iter().filter_map(|process| tether_process::list_tree(process).ok()).flatten().collect::<Vec<_>>();
        for process in users.iter().chain(&below) {
            let _ = process.signal(Signal::KILL);
        }
    }
}

fn command_line(launcher: &Path, profile: &VsCodeProfile, inspector: u16, args: &ExtensionHostArgs) -> Vec<OsString> {
    let mut argv = vec![launcher.as_os_str().to_owned()];
    argv.push(flag_with_path("--user-data-dir=", &profile.user));
    argv.push(flag_with_path("--extensions-dir=", &profile.extensions));
    argv.extend(FLAGS.iter().map(OsString::from));
    argv.push(format!("--inspect-extensions={inspector}").into());
    if rustix::process::geteuid().is_root() {
        argv.push("--no-sandbox".into()); // Electron refuses to run as root with it
    }
    argv.extend(args.extensions.iter().map(|path| flag_with_path("--extensionDevelopmentPath=", path)));
    argv.extend(args.tests.as_deref().map(|path| flag_with_path("--extensionTestsPath=", path)));
    argv.extend(args.in_web_worker.then(|| WEB_WORKER_KIND.into()));
    argv.extend(args.args.iter().map(OsString::from));
    argv.push(args.folder.clone().into());
    argv
}

/// The Electron main process behind the launcher: it has our launch id, owns the port, and has our user data folder on its
/// command line.
fn find_main_process(launch_id: &str, started: &Process, port: u16, user: &Path) -> Result<Process> {
    let doing = || "cannot find the process of the launched VS Code".to_owned();
    let candidates = tether_process::find_launch_processes(launch_id).doing(doing)?;
    let pids: Vec<u32> = candidates.iter().map(Process::pid).collect();
    let owner = tether_process::find_listener_among(port, &pids).doing(doing)?;
    let Some(owner) = owner else {
        let reason = verify_launch_port(launch_id, port).err();
        let reason = reason.map(|reason| reason.to_string()).unwrap_or_default();
        return Err(Error::other(doing()).because(reason).hint(
            "a launcher that changes the environment (flatpak, a wrapper) hides it: set `vscode` to the real one",
        ));
    };
    let data = tether_process::read_arguments(owner).doing(doing)?;
    if !names_user_data(&data, user) {
        return Err(Error::other(doing())
            .because(format!("process {owner} owns its port {port}, but runs with another user data folder")));
    }
    if owner == started.pid() {
        return Ok(started.clone()); // our child, whose exit code we receive
    }
    candidates.into_iter().find(|process| process.pid() == owner).ok_or_else(|| Error::other(doing()))
}

/// Whether `--user-data-dir` is `user`, in either of its forms.
fn names_user_data(arguments: &[OsString], user: &Path) -> bool {
    arguments.contains(&flag_with_path("--user-data-dir=", user))
        || arguments.windows(2).any(|two| two[0] == "--user-data-dir" && two[1] == user)
}

/// Waits for the workbench and for the extension host's inspector; returns the page and the inspector's port. A timeout of
/// either is not an error.
async fn wait_for_workbench(
    vscode: &StartedProgram<'_>,
    endpoint: &Endpoint,
    inspector: u16,
) -> Result<(Option<PageConnection>, Option<u16>)> {
    let StartedProgram { attempt, process, .. } = vscode;
    let (owner, launch_id) = (process.clone(), attempt.plan.launch_id.clone());
    let check_owner = move |port: u16| -> Result<(), IdentityError> {
        verify_tree_port(&owner, port).or_else(|_| verify_launch_port(&launch_id, port))
    };
    let within = WORKBENCH_TIMEOUT.min(attempt.deadline() / 2);
    let inspected =
        timeout(within, wait_for_listener(inspector, move |port| check_owner(port).map_err(untrusted_port_error)));
    let titled = timeout(within, async {
        let page = attempt.connect_to_page(endpoint).await?;
        wait_for_title(&page, within).await.map(|()| page)
    });
    let (inspected, titled) = tokio::join!(inspected, titled);
    let page = match titled {
        Ok(Err(error)) if !process.is_alive() => return Err(error),
        Ok(Ok(page)) => Some(page),
        _ => {
            attempt.report_progress("the workbench has no title of an Extension Development Host yet");
            None
        }
    };
    let is_inspected = matches!(inspected, Ok(Ok(_)));
    if !is_inspected {
        attempt.report_progress("the extension host has opened no inspector");
    }
    Ok((page, is_inspected.then_some(inspector)))
}

/// Adds the tail of VS Code's own log: its output is not connected to ours after its launcher has exited.
fn append_vscode_log(error: Error, user: &Path) -> Error {
    let runs = std::fs::read_dir(user.join("logs")).into_iter().flatten().flatten();
    let newest = runs.map(|run| run.path().join("main.log")).filter(|log| log.is_file()).max();
    match newest.and_then(|log| tether_process::read_tail(&log, LOG_LINES).ok()).filter(|tail| !tail.is_empty()) {
        Some(tail) => Error { hints: error.hints, ..Error::new(error.kind, error.doing) }.because(format!(
            "{}\nits log ends with:\n{tail}",
            error.source.map(|source| source.to_string()).unwrap_or_default()
        )),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_has_the_flags_of_vs_code() {
        let profile = VsCodeProfile { user: "/s t/user".into(), extensions: "/s t/extensions".into() };
        let args = ExtensionHostArgs {
            extensions: vec!["/ws/a".into(), "/ws/b".into()],
            folder: "/ws".into(),
            args: vec!["--disable-extensions".into()],
            in_web_worker: false,
            tests: Some("/t/run.cjs".into()),
        };
        let argv = command_line(Path::new("/usr/bin/code"), &profile, 9229, &args);
        let words: Vec<String> = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let sandbox = rustix::process::geteuid().is_root().then_some("--no-sandbox");
        let expected = ["/usr/bin/code", "--user-data-dir=/s t/user", "--extensions-dir=/s t/extensions"]
            .into_iter()
            .chain(FLAGS.iter().copied())
            .chain(["--inspect-extensions=9229"])
            .chain(sandbox)
            .chain(["--extensionDevelopmentPath=/ws/a", "--extensionDevelopmentPath=/ws/b"])
            .chain(["--extensionTestsPath=/t/run.cjs", "--disable-extensions"])
            .chain(["/ws"]);
        assert_eq!(words, expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_desktop_vs_code_needs_a_launcher_and_a_display() {
        let check = |vscode: &str, display: &str, headless: bool, expect: Option<&str>| {
            let env =
                [("DISPLAY", display), ("WAYLAND_DISPLAY", "")].map(|(name, it)| (name.to_owned(), it.to_owned()));
            let settings =
                WindowSettings { vscode: Some(vscode.into()), headless, env: env.into(), ..WindowSettings::default() };
            assert_eq!(find_desktop_vscode(&settings, Path::new("/")), expect.map(PathBuf::from), "{settings:?}");
        };
        check("bin/sh", ":1", false, Some("/bin/sh"));
        check("bin/sh", ":1", true, None);
        check("bin/sh", "", false, None);
        check("bin/no-such-program", ":1", false, None);
    }

    #[test]
    fn reserved_flags_are_rejected() {
        let check = |arg: &str, expect: bool| assert_eq!(check_args(&[arg.to_owned()]).is_ok(), expect, "{arg}");
        check("--disable-extensions", true);
        check("--extensionTestsPath=/x", true);
        check("--user-data-dir=/mine", false);
        check("--user-data-dir", false);
        check("--inspect-brk-extensions=1", false);
        check("--remote-debugging-port=9222", false);
    }

    #[test]
    fn the_user_data_folder_is_found_in_both_forms() {
        let check = |arguments: &[&str], expect: bool| {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            assert_eq!(names_user_data(&arguments, Path::new("/a b")), expect, "{arguments:?}");
        };
        check(&["code", "--user-data-dir=/a b"], true);
        check(&["code", "--user-data-dir", "/a b"], true);
        check(&["code", "--user-data-dir=/a"], false);
        check(&["code", "/a b"], false);
    }
}
