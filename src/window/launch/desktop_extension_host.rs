//! A desktop VS Code (or one of its kin) as the window, with the extension under development in it.
//!
//! ```text
//! `code` (a script) ──► its CLI (Electron as Node) ──spawns, ends with 0──► Electron, the window's main process
//!                                                         │                      │ DevToolsActivePort in its user data
//!                       no child of ours any more: found by port, user data and launch id
//! ```
//! The user data folder is fresh, so no running VS Code can take the window over. Not `--wait`: with it the CLI waits
//! for the window's end, which pidfd tells us better. VS Code reads its arguments as
//! <https://github.com/microsoft/vscode/blob/main/src/vs/platform/environment/node/argv.ts> says; that Electron writes
//! its port to the user data folder: <https://github.com/electron/electron/pull/17800>.
//!
//! No desktop VS Code has ever been started by this code: the command line and all that follows it have been run
//! against a stand-in launcher with a real Chromium behind it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::timeout;

use super::browser::{PORT_FILE, has_display, read_port};
use super::custom_command::find_free_port;
use super::extension_host_args::ExtensionHostArgs;
use super::readiness::{wait_for, wait_for_endpoint, wait_for_launcher, wait_for_listener};
use super::web_extension_host::{wait_for_workbench_title, write_settings};
use super::{LaunchAttempt, ReadyProgram, environment_of, make_private, untrusted_port};
use crate::cdp::Endpoint;
use crate::config::WindowSettings;
use crate::error::{Error, ErrorContext, ErrorKind, Result};
use crate::process::{self, Process};
use crate::tools;
use crate::window::identity::{IdentityError, verify_launch_port, verify_tree_port};

/// How long the workbench and its extension host may take before the window counts as ready anyway.
const FIRST_WINDOW: Duration = Duration::from_secs(30);
/// How much of VS Code's own log an error shows.
const LOG_LINES: usize = 10;

/// What keeps the window the same at each launch, and silent towards the outside.
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
/// What we set ourselves: with another value we would wait for what never comes.
const OURS: &[&str] = &[
    "--user-data-dir",
    "--extensions-dir",
    "--remote-debugging-port",
    "--remote-debugging-pipe",
    "--inspect-extensions",
    "--inspect-brk-extensions",
];

pub async fn launch_desktop_extension_host(launch: &LaunchAttempt<'_>) -> Result<ReadyProgram> {
    let launcher = find_launcher(launch)?;
    let shown = ExtensionHostArgs::read(launch)?;
    check_args(&shown.args)?;
    let profile = VsCodeProfile::prepare(launch)?;
    let inspector = find_free_port()?;
    launch.progress("starting VS Code");
    let started = launch.spawn(command_line(&launcher, &profile, inspector, &shown))?;
    let ready = async {
        let file = profile.user.join(PORT_FILE);
        let found = process::watch_until(&profile.user, || read_port(&file)).await;
        found.doing(|| format!("cannot watch {}", profile.user.display()))
    };
    let unmarked = KillProfileUsers { profile: &profile };
    let living =
        || [process::find_launch_processes(&launch.plan.launch_id).unwrap_or_default(), profile.users()].concat();
    let waiting = wait_for_launcher(launch, &started, living, "VS Code", "opened its debugging port", ready).await;
    let port = waiting.map_err(|error| append_vscode_log(error, &profile.user))?;
    let process = find_main_process(launch, &started, port, &profile.user)?;
    std::mem::forget(unmarked); // it carries the launch id: whoever ends the launch finds it
    let endpoint =
        wait_for(launch, &process, "VS Code", "answered on its debugging port", wait_for_endpoint(&process, port));
    let endpoint = endpoint.await?;
    launch.progress("waiting for the extension host");
    let first_window = wait_for_workbench(launch, &process, &endpoint, inspector);
    let inspector_port = wait_for(launch, &process, "VS Code", "shown its window", first_window).await?;
    let others = if started.pid() == process.pid() { Vec::new() } else { vec![started] };
    Ok(ReadyProgram { process, others, endpoint, inspector_port, user_data_dir: Some(profile.user) })
}

/// The launcher of a desktop VS Code that a window with these settings can be: one is found, and there is a display.
pub fn find_desktop_vscode(settings: &WindowSettings, workspace: &Path) -> Option<PathBuf> {
    let environment = environment_of(settings);
    let setting = settings.vscode.as_deref().map(|path| workspace.join(path));
    let path = environment.get(OsStr::new("PATH")).map(OsString::as_os_str);
    let launcher = tools::vscode::find_launcher(setting.as_deref(), path)?;
    (!settings.headless && has_display(&environment)).then_some(launcher)
}

/// The launcher, or why there is none. Used before anything is started.
fn find_launcher(launch: &LaunchAttempt<'_>) -> Result<PathBuf> {
    let setting = launch.settings().vscode.as_deref().map(|path| launch.path(path));
    let environment = launch.environment();
    let path = environment.get(OsStr::new("PATH"));
    let web = |error: Error| {
        error
            .hint("`kind = \"web-extension-host\"` in devtools.toml runs the extension in VS Code in a browser")
            .hint("`tether adapters install code-server` installs what that needs")
    };
    let Some(launcher) = tools::vscode::find_launcher(setting.as_deref(), path.map(OsString::as_os_str)) else {
        let error = Error::new(ErrorKind::MissingTool, "cannot find a desktop VS Code");
        return Err(match setting {
            Some(setting) => web(error
                .because(format!("{} is no program", setting.display()))
                .hint("correct `vscode` in the [window] section of devtools.toml")),
            None => web(error
                .because(format!("none is on PATH or in the usual places: {}", tools::vscode::describe_products()))
                .hint("set `vscode = \"/path/to/bin/code\"` in the [window] section of devtools.toml")),
        });
    };
    if launch.settings().headless || !has_display(&environment) {
        let reason = if launch.settings().headless { "`headless` is set" } else { "there is no display" };
        return Err(web(Error::usage("cannot start a desktop VS Code without a visible window").because(reason)));
    }
    Ok(launcher)
}

fn check_args(args: &[String]) -> Result<()> {
    let ours = |arg: &&String| OURS.iter().any(|flag| arg.split('=').next() == Some(flag));
    match args.iter().find(ours) {
        None => Ok(()),
        Some(arg) => Err(Error::usage(format!("cannot start VS Code with `{arg}`"))
            .because("tether chooses ports and folders itself")
            .hint("remove it from `args`; `profile = \"path\"` in devtools.toml keeps settings and extensions")),
    }
}

/// Where this VS Code keeps its data: nothing of the user's own VS Code is touched.
struct VsCodeProfile {
    user: PathBuf,
    extensions: PathBuf,
}

impl VsCodeProfile {
    fn prepare(launch: &LaunchAttempt<'_>) -> Result<VsCodeProfile> {
        let folder = match &launch.settings().profile {
            Some(kept) => launch.path(kept),
            None => launch.scratch.join("vscode"),
        };
        let profile = VsCodeProfile { user: folder.join("user"), extensions: folder.join("extensions") };
        if let Some(other) = profile.users().first() {
            return Err(Error::usage(format!("cannot use the profile {}", folder.display()))
                .because(format!("a running VS Code uses it (process {})", other.pid()))
                .hint("close that one, or remove `profile` from devtools.toml: each launch then gets a fresh one"));
        }
        make_private(&profile.user)?;
        make_private(&profile.extensions)?;
        write_settings(&profile.user.join("User"))?;
        // It survives every kind of end: another run's would be taken for this one's.
        match std::fs::remove_file(profile.user.join(PORT_FILE)) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(cause).doing(|| format!("cannot remove the stale {PORT_FILE} in {}", profile.user.display()))
            }
            _ => Ok(profile),
        }
    }

    /// Who runs with this user data folder.
    fn users(&self) -> Vec<Process> {
        let joined = flag_with_path("--user-data-dir=", &self.user);
        process::find_by_argument(&[&joined, self.user.as_os_str()]).unwrap_or_default()
    }
}

/// What a launcher that drops the environment has started carries no launch id: known by the user data folder, which
/// nobody else used, it is ended when the launch fails.
struct KillProfileUsers<'a> {
    profile: &'a VsCodeProfile,
}

impl Drop for KillProfileUsers<'_> {
    fn drop(&mut self) {
        let users = self.profile.users();
        // Its helpers overwrite their command lines: known as its descendants, while it lives.
        let below = users.iter().filter_map(|process| process::list_tree(process).ok()).flatten().collect::<Vec<_>>();
        for process in users.iter().chain(&below) {
            let _ = process.signal(Signal::KILL);
        }
    }
}

fn flag_with_path(flag: &str, path: &Path) -> OsString {
    let mut word = OsString::from(flag);
    word.push(path);
    word
}

fn command_line(launcher: &Path, profile: &VsCodeProfile, inspector: u16, shown: &ExtensionHostArgs) -> Vec<OsString> {
    let mut argv = vec![launcher.as_os_str().to_owned()];
    argv.push(flag_with_path("--user-data-dir=", &profile.user));
    argv.push(flag_with_path("--extensions-dir=", &profile.extensions));
    argv.extend(FLAGS.iter().map(OsString::from));
    argv.push(format!("--inspect-extensions={inspector}").into());
    if rustix::process::geteuid().is_root() {
        argv.push("--no-sandbox".into()); // Electron refuses to run as root with it
    }
    argv.extend(shown.extensions.iter().map(|path| flag_with_path("--extensionDevelopmentPath=", path)));
    argv.extend(shown.args.iter().map(OsString::from));
    argv.push(shown.folder.clone().into());
    argv
}

/// The real Electron behind the launcher: of this launch, the owner of the port, with our user data on its command line.
fn find_main_process(launch: &LaunchAttempt<'_>, started: &Process, port: u16, user: &Path) -> Result<Process> {
    let doing = || "cannot find the process of the launched VS Code".to_owned();
    let carriers = process::find_launch_processes(&launch.plan.launch_id).doing(doing)?;
    let pids: Vec<u32> = carriers.iter().map(Process::pid).collect();
    let owner = process::find_listener_among(port, &pids).doing(doing)?;
    let Some(owner) = owner else {
        let doubt =
            verify_launch_port(&launch.plan.launch_id, port).err().map(|doubt| doubt.to_string()).unwrap_or_default();
        return Err(Error::other(doing()).because(doubt).hint(
            "a launcher that changes the environment (flatpak, a wrapper) hides it: set `vscode` to the real one",
        ));
    };
    let data = process::read_arguments(owner).doing(doing)?;
    if !names_user_data(&data, user) {
        return Err(Error::other(doing())
            .because(format!("process {owner} owns its port {port}, but runs with another user data folder")));
    }
    if owner == started.pid() {
        return Ok(started.clone()); // our child, whose exit code will be known
    }
    carriers.into_iter().find(|process| process.pid() == owner).ok_or_else(|| Error::other(doing()))
}

/// Whether `--user-data-dir` is `user`, in either of its spellings.
fn names_user_data(arguments: &[OsString], user: &Path) -> bool {
    arguments.contains(&flag_with_path("--user-data-dir=", user))
        || arguments.windows(2).any(|two| two[0] == "--user-data-dir" && two[1] == user)
}

/// Waits for the workbench and for the extension host's inspector, whose port it answers. A window that is late with
/// either is there all the same.
async fn wait_for_workbench(
    launch: &LaunchAttempt<'_>,
    process: &Process,
    endpoint: &Endpoint,
    inspector: u16,
) -> Result<Option<u16>> {
    let ours = |port: u16| -> Result<(), IdentityError> {
        verify_tree_port(process, port).or_else(|_| verify_launch_port(&launch.plan.launch_id, port))
    };
    let within = FIRST_WINDOW.min(launch.deadline() / 2);
    let inspected = timeout(within, wait_for_listener(inspector, |port| ours(port).map_err(untrusted_port)));
    let titled = timeout(within, wait_for_workbench_title(endpoint, within));
    let (inspected, titled) = tokio::join!(inspected, titled);
    match titled {
        Ok(Err(error)) if !process.is_alive() => return Err(error),
        Ok(Ok(())) => {}
        _ => launch.progress("the workbench has no title of an Extension Development Host yet"),
    }
    match inspected {
        Ok(Ok(_)) => Ok(Some(inspector)),
        _ => {
            launch.progress("the extension host has opened no inspector");
            Ok(None)
        }
    }
}

/// Adds what VS Code wrote to its own log: its output goes nowhere when its launcher has ended.
fn append_vscode_log(error: Error, user: &Path) -> Error {
    let runs = std::fs::read_dir(user.join("logs")).into_iter().flatten().flatten();
    let newest = runs.map(|run| run.path().join("main.log")).filter(|log| log.is_file()).max();
    match newest.and_then(|log| process::read_tail(&log, LOG_LINES).ok()).filter(|tail| !tail.is_empty()) {
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
    fn the_command_line_is_what_vs_code_understands() {
        let profile = VsCodeProfile { user: "/s t/user".into(), extensions: "/s t/extensions".into() };
        let shown = ExtensionHostArgs {
            extensions: vec!["/ws/a".into(), "/ws/b".into()],
            folder: "/ws".into(),
            args: vec!["--disable-extensions".into()],
        };
        let argv = command_line(Path::new("/usr/bin/code"), &profile, 9229, &shown);
        let told: Vec<String> = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let sandbox = rustix::process::geteuid().is_root().then_some("--no-sandbox");
        let expected = ["/usr/bin/code", "--user-data-dir=/s t/user", "--extensions-dir=/s t/extensions"]
            .into_iter()
            .chain(FLAGS.iter().copied())
            .chain(["--inspect-extensions=9229"])
            .chain(sandbox)
            .chain(["--extensionDevelopmentPath=/ws/a", "--extensionDevelopmentPath=/ws/b", "--disable-extensions"])
            .chain(["/ws"]);
        assert_eq!(told, expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_desktop_is_there_when_a_launcher_and_a_display_are() {
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
    fn only_what_tether_does_not_choose_itself_may_be_given() {
        let check = |arg: &str, expect: bool| assert_eq!(check_args(&[arg.to_owned()]).is_ok(), expect, "{arg}");
        check("--disable-extensions", true);
        check("--extensionTestsPath=/x", true);
        check("--user-data-dir=/mine", false);
        check("--user-data-dir", false);
        check("--inspect-brk-extensions=1", false);
        check("--remote-debugging-port=9222", false);
    }

    #[test]
    fn the_user_data_folder_is_found_in_either_spelling() {
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
