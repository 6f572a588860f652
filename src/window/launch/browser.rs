//! A Chromium as the window: the program, its flags, its profile and its debugging port.
//!
//! Chromium chooses the port and writes it to `DevToolsActivePort` in its profile. It never removes that file, so the
//! file of an earlier run is removed before the start.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tether_base::bounded_file::{self, Links};
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tokio::time::timeout;

use super::attempt::{
    LaunchAttempt, LaunchedWindow, OldWindowClosed, StartedProgram, WindowLaunchPlan, create_private_dir,
    flag_with_path,
};
use crate::window::page::{ExpressionResult, PageConnection, await_expression, navigate_page};

/// The names of Chromium browsers on PATH, in the order of preference.
pub const BROWSER_NAMES: &[&str] = &[
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "brave-browser",
];
/// How long the first page is waited for; the window counts as ready after this time.
const FIRST_PAGE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the empty page may take to answer before the first one is loaded all the same.
const EMPTY_PAGE_TIMEOUT: Duration = Duration::from_secs(3);
/// What the browser is started on.
pub(super) const EMPTY_PAGE: &str = "about:blank";
pub(super) const PORT_FILE: &str = "DevToolsActivePort";

/// Flags for every window: no first-run pages, no network requests besides the page's, and no throttling of a window
/// that is covered by others.
const FLAGS: &[&str] = &[
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--disable-breakpad",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--password-store=basic",
];
/// The lists below the address bar, which Chromium otherwise loads as hidden pages at each start: 0.7 s of a core, 50 MB.
const DISABLED_FEATURES: &[&str] = &["WebUIOmniboxPopup", "WebUIOmniboxAimPopup"];
const DISABLE_FEATURES: &str = "--disable-features=";
const ENABLE_FEATURES: &str = "--enable-features=";

/// Starts the browser, and loads the configured address over the connection that records its first requests. The window
/// before may be closing: the page is loaded once it is closed, so that the requests of each are told apart.
pub async fn launch_browser(attempt: &LaunchAttempt<'_>, closed: OldWindowClosed<'_>) -> Result<LaunchedWindow> {
    let url = attempt.plan.settings.url.as_deref().unwrap_or(EMPTY_PAGE);
    check_url(url)?;
    let (browser, launched) =
        start_browser(attempt, EMPTY_PAGE, &attempt.plan.settings.args, KindFlags::default()).await?;
    closed.await?;
    attempt.report_progress("loading the first page");
    let loading = async {
        let page = attempt.connect_to_page(&launched.endpoint).await?;
        attempt.log_moment("its page is connected to");
        let failure = if url == EMPTY_PAGE { None } else { load_first_page(&page, url).await? };
        Ok((page, failure))
    };
    let (page, failure) = browser.wait_for("loaded the first page", loading).await?;
    attempt.log_moment("the first page has loaded");
    match failure {
        Some(reason) => Err(Error::other(format!("cannot load {url} in the window"))
            .because(reason)
            .hint("start what serves it, or let a background task start it: `preLaunchTask` in launch.json")
            .hint("`tether start --print-config` shows where the address comes from")),
        None => Ok(LaunchedWindow { page: Some(page), ..launched }),
    }
}

/// Loads the first page, and waits until it has been parsed and its module scripts have run; returns why it cannot be
/// loaded. A page that is slow is no reason to fail: the window runs.
async fn load_first_page(page: &PageConnection, url: &str) -> Result<Option<String>> {
    // Once the empty page answers, it has enabled its events. Where it is left before that, Chromium enables them only after
    // the next document has been loaded, and the end of that document's request is never reported.
    let _ = await_expression(page, "0", EMPTY_PAGE_TIMEOUT).await;
    let loading = async {
        match navigate_page(page, url).await {
            // A page that does not respond, or is gone: the window runs.
            Ok(()) => Ok(wait_until_parsed(page).await.err().and(None)),
            // A download, or a response without content: the page stays empty.
            Err(error) if error.source.as_ref().is_some_and(|cause| cause.to_string() == "net::ERR_ABORTED") => {
                Ok(None)
            }
            Err(error) if error.kind == ErrorKind::TimedOut => Ok(None),
            Err(error) => {
                let cause = error.source.as_ref().map_or_else(|| error.doing.clone(), ToString::to_string);
                Ok(Some(cause.strip_prefix("net::").map_or(cause.clone(), str::to_owned)))
            }
        }
    };
    timeout(FIRST_PAGE_TIMEOUT, loading).await.unwrap_or(Ok(None))
}

/// A navigation destroys the waiting script, which is then evaluated again in the new document.
async fn wait_until_parsed(page: &PageConnection) -> Result<()> {
    // Module scripts run between the end of parsing and this event.
    let parsed = "new Promise(done => {
        const isParsed = () => performance.getEntriesByType('navigation')[0]?.domContentLoadedEventEnd > 0;
        if (document.readyState === 'complete' || isParsed()) done(true);
        else addEventListener('DOMContentLoaded', () => setTimeout(done, 0, true));
    })";
    while await_expression(page, parsed, FIRST_PAGE_TIMEOUT).await? != ExpressionResult::Value(true.into()) {}
    Ok(())
}

/// Flags of a kind of window, besides those for every window.
#[derive(Default)]
pub struct KindFlags {
    pub flags: Vec<OsString>,
    /// Features of Chromium that are switched off where the user does not switch them on.
    pub disabled_features: &'static [&'static str],
}

/// Starts the browser on `url`, with arguments of the user and flags of ours, and waits for its debugging port.
pub async fn start_browser<'a>(
    attempt: &'a LaunchAttempt<'a>,
    url: &str,
    args: &[String],
    kind: KindFlags,
) -> Result<(StartedProgram<'a>, LaunchedWindow)> {
    check_url(url)?;
    check_args(args)?;
    let mut flags = kind.flags;
    flags.extend(args.iter().map(OsString::from));
    // Last: of several, Chromium takes the last.
    flags.push(disable_features(&[DISABLED_FEATURES, kind.disabled_features].concat(), args).into());
    let program = find_browser(attempt.plan)?;
    let profile = prepare_profile(attempt)?;
    attempt.report_progress("starting the browser");
    let browser = attempt.spawn("the browser", command_line(attempt, &program, &profile, flags, url))?;
    let port = browser.wait_for("opened its debugging port", wait_for_port_file(&profile)).await;
    let port = port.map_err(|error| explain_used_profile(error, &profile))?;
    attempt.log_moment("the browser listens");
    let endpoint = browser.wait_for_endpoint("answered on its debugging port", port).await?;
    let launched = attempt.launched_window(browser.process.clone(), endpoint);
    Ok((browser, LaunchedWindow { user_data_dir: Some(profile), ..launched }))
}

/// Errors: the browser would take it for something else.
pub(super) fn check_url(url: &str) -> Result<()> {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme).filter(|scheme| !scheme.is_empty());
    // The browser would take anything else for a flag or a search.
    if scheme.is_some_and(|scheme| {
        scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte)) && !scheme.starts_with('-')
    }) {
        return Ok(());
    }
    Err(Error::usage(format!("cannot open {url:?} in the browser"))
        .because("it has no scheme")
        .hint("write `url = \"http://127.0.0.1:3000\"` or `url = \"file:///…\"` in devtools.toml"))
}

/// Rejects the flags that we set: with other values, we would wait for a port that is never written.
pub(super) fn check_args(args: &[String]) -> Result<()> {
    let reserved = ["--user-data-dir", "--remote-debugging-port", "--remote-debugging-pipe"];
    match args.iter().find(|arg| reserved.iter().any(|flag| arg.starts_with(flag))) {
        None => Ok(()),
        Some(arg) => Err(Error::usage(format!("cannot start the browser with `{arg}`"))
            .because("tether chooses port and profile itself")
            .hint("remove it from `args` in devtools.toml; `profile = \"path\"` keeps a profile")),
    }
}

/// The browser, by the settings.
pub(super) fn find_browser(plan: &WindowLaunchPlan) -> Result<PathBuf> {
    match &plan.settings.browser {
        Some(setting) => plan.find_program("browser", setting, "cannot start the browser"),
        None => plan.find_on_path(BROWSER_NAMES).ok_or_else(|| {
            Error::new(ErrorKind::MissingTool, "cannot find a Chromium to open the window in")
                .because(format!("none of {} is on PATH", BROWSER_NAMES.join(", ")))
                .hint("`apt-get install chromium`, or set `browser = \"/path/to/chrome\"` in devtools.toml")
        }),
    }
}

/// Creates the profile folder, and removes the port file and the lock of an earlier run.
fn prepare_profile(attempt: &LaunchAttempt<'_>) -> Result<PathBuf> {
    let profile = attempt.profile_dir("browser");
    create_private_dir(&profile)?;
    if let Some(owner) = profile_owner(&profile) {
        return Err(Error::usage(format!("cannot use the profile {}", profile.display()))
            .because(format!("a running browser uses it (process {owner})"))
            .hint("close that browser, or remove `profile` from devtools.toml: each launch then gets a fresh one"));
    }
    for file in [PORT_FILE, "SingletonLock", "SingletonSocket", "SingletonCookie"].map(|name| profile.join(name)) {
        remove_stale_file(&file).doing(|| format!("cannot remove the stale {}", file.display()))?;
    }
    Ok(profile)
}

/// The process that uses the profile: `SingletonLock` is a link to `<host>-<pid>`. A process that has exited, or one on
/// another machine from which the profile was copied, does not count.
fn profile_owner(profile: &Path) -> Option<u32> {
    let target = std::fs::read_link(profile.join("SingletonLock")).ok()?;
    let (host, pid) = target.to_str()?.rsplit_once('-')?;
    let here = rustix::system::uname().nodename().to_str().is_ok_and(|name| name == host);
    let pid: u32 = pid.parse().ok().filter(|_| here)?;
    tether_process::read_facts(pid).is_ok_and(|facts| !facts.zombie).then_some(pid)
}

fn command_line(
    attempt: &LaunchAttempt<'_>,
    program: &Path,
    profile: &Path,
    more: Vec<OsString>,
    url: &str,
) -> Vec<OsString> {
    let mut argv = vec![program.as_os_str().to_owned()];
    argv.extend(FLAGS.iter().map(OsString::from));
    argv.push(flag_with_path("--user-data-dir=", profile));
    if attempt.plan.settings.headless || !has_display(&attempt.plan.environment()) {
        if !attempt.plan.settings.headless {
            attempt.report_progress("there is no display: the browser runs without a visible window");
        }
        argv.extend(["--headless=new", "--disable-gpu", "--window-size=1280,800"].map(OsString::from));
    }
    if rustix::process::geteuid().is_root() {
        argv.push("--no-sandbox".into()); // Chromium refuses to run as root with it
    }
    argv.extend(more);
    argv.push(url.into());
    argv
}

/// The flag that switches off these features and those that the arguments of the user switch off, but none that they
/// switch on.
fn disable_features(ours: &[&str], args: &[String]) -> String {
    let listed = |flag: &'static str| {
        let lists = args.iter().filter_map(move |arg| arg.strip_prefix(flag));
        lists.flat_map(|list| list.split(',')).map(str::trim).filter(|feature| !feature.is_empty())
    };
    // A feature may be followed by its parameters or its trial.
    let name = |feature: &str| feature.split(['<', ':']).next().unwrap_or_default().to_owned();
    let switched_on: Vec<String> = listed(ENABLE_FEATURES).map(name).collect();
    let ours = ours.iter().copied().filter(|feature| !switched_on.iter().any(|on| on == feature));
    let features: Vec<&str> = ours.chain(listed(DISABLE_FEATURES)).collect();
    format!("{DISABLE_FEATURES}{}", features.join(","))
}

pub(super) fn has_display(environment: &BTreeMap<OsString, OsString>) -> bool {
    let set = |name: &str| environment.get(OsStr::new(name)).is_some_and(|value| !value.is_empty());
    cfg!(target_os = "macos") || set("DISPLAY") || set("WAYLAND_DISPLAY")
}

/// Removes a file of an earlier run, if there is one.
pub(super) fn remove_stale_file(file: &Path) -> io::Result<()> {
    std::fs::remove_file(file).or_else(|cause| match cause.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(cause),
    })
}

/// Waits for the port in the port file of a profile.
pub(super) async fn wait_for_port_file(profile: &Path) -> Result<u16> {
    let file = profile.join(PORT_FILE);
    let found = tether_process::watch_until(profile, || read_port(&file)).await;
    found.doing(|| format!("cannot watch {}", profile.display()))
}

/// The file has two lines. The profile may lie in the workspace.
const MAX_PORT_FILE: u64 = 4096;

/// The port, once the file is complete: its second line is the path of the browser's WebSocket.
fn read_port(file: &Path) -> io::Result<Option<u16>> {
    match bounded_file::read_text(file, MAX_PORT_FILE, Links::Follow) {
        Ok(text) => Ok(parse_port(&text)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause),
    }
}

fn parse_port(text: &str) -> Option<u16> {
    let (port, path) = text.split_once('\n')?;
    let id = path.trim_end().strip_prefix("/devtools/browser/")?;
    (id.len() == 36).then(|| port.trim().parse().ok().filter(|&port| port > 0))?
}

/// A browser whose profile is in use opens its page in the other browser, and exits with 0.
fn explain_used_profile(error: Error, profile: &Path) -> Error {
    match profile_owner(profile) {
        Some(owner) => error.hint(format!("process {owner} uses the profile {}: close it first", profile.display())),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_file_is_read_when_it_is_complete() {
        let check = |text: &str, expect: Option<u16>| assert_eq!(parse_port(text), expect, "{text:?}");
        check("37427\n/devtools/browser/161d8ae9-9745-4f5c-a16a-eae1e4a430c3", Some(37427));
        check("37427\n/devtools/browser/161d8ae9-9745-4f5c-a16a-eae1e4a430c3\n", Some(37427));
        for half in [
            "",
            "374",
            "37427",
            "37427\n",
            "37427\n/devtools/browser/161d8ae9",
            "0\n/devtools/browser/161d8ae9-9745-4f5c-a16a-eae1e4a430c3",
            "x\n/y",
        ] {
            check(half, None);
        }
    }

    #[test]
    fn only_urls_are_passed_to_the_browser() {
        let check = |url: &str, expect: bool| assert_eq!(check_url(url).is_ok(), expect, "{url:?}");
        for url in ["http://127.0.0.1:3000/a?b=c", "file:///a b/ü.html", "about:blank", "data:text/html,x"] {
            check(url, true);
        }
        for url in ["--remote-debugging-address=0.0.0.0", "-x:y", "index.html", "", ":", "a b:c"] {
            check(url, false);
        }
    }

    #[test]
    fn features_of_the_user_are_added_to_those_that_are_switched_off_and_left_on() {
        let check = |args: &[&str], expect: &str| {
            let args: Vec<String> = args.iter().map(|&arg| arg.into()).collect();
            assert_eq!(disable_features(&["A", "B"], &args), format!("--disable-features={expect}"), "{args:?}");
        };
        check(&["--kiosk"], "A,B");
        check(&["--disable-features=C", "--disable-features=D, E"], "A,B,C,D,E");
        check(&["--enable-features=B:size/2,X", "--disable-features="], "A");
        check(&["--enable-features=A<Trial,B"], "");
        // What the user asks for twice is Chromium's to decide.
        check(&["--enable-features=A", "--disable-features=A"], "B,A");
    }

    #[test]
    fn a_profile_lock_counts_while_its_owner_runs_on_this_machine() {
        let folder = tempfile::tempdir().unwrap();
        let host = rustix::system::uname().nodename().to_str().unwrap().to_owned();
        let check = |target: &str, expect: Option<u32>| {
            let lock = folder.path().join("SingletonLock");
            let _ = std::fs::remove_file(&lock);
            std::os::unix::fs::symlink(target, &lock).unwrap();
            assert_eq!(profile_owner(folder.path()), expect, "{target}");
        };
        assert_eq!(profile_owner(folder.path()), None);
        check(&format!("{host}-{}", std::process::id()), Some(std::process::id()));
        check(&format!("{host}-{}", i32::MAX), None);
        check(&format!("another-{host}-{}", std::process::id()), None);
        check("nonsense", None);
    }
}
