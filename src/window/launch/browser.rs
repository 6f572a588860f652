//! A Chromium as the window: the program, its flags, its profile and its debugging port.
//!
//! Chromium chooses the port and writes it to `DevToolsActivePort` in its profile. It never removes that file, so the
//! file of an earlier run is removed before the start.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::attempt::{LaunchAttempt, LaunchedWindow, StartedProgram, create_private_dir, flag_with_path};
use crate::bounded_file::{self, Links};
use crate::cdp::Endpoint;
use crate::error::{Error, ErrorContext, ErrorKind, Result};
use crate::process;
use crate::window::page::{ExpressionResult, PageConnection, PageHistory, evaluate_expression};

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

/// Starts the browser with the configured address.
pub async fn launch_browser(attempt: &LaunchAttempt<'_>) -> Result<LaunchedWindow> {
    let url = attempt.plan.settings.url.as_deref().unwrap_or("about:blank");
    let (_, launched) = start_browser(attempt, url, &attempt.plan.settings.args).await?;
    attempt.report_progress("loading the first page");
    // A page that is slow is no reason to fail: the window runs.
    match timeout(FIRST_PAGE_TIMEOUT, wait_for_first_page(&launched.endpoint, url)).await {
        Ok(Ok(FirstPage::Failed(reason))) => Err(Error::other(format!("cannot load {url} in the window"))
            .because(reason)
            .hint("start what serves it, or let a background task start it: `preLaunchTask` in launch.json")
            .hint("`tether start --print-config` shows where the address comes from")),
        _ => Ok(launched),
    }
}

/// How the first page was loaded.
enum FirstPage {
    Parsed,
    /// Chromium shows an error page instead: why.
    Failed(String),
}

/// Resolves when the first page has been parsed. A navigation destroys the waiting script, which is then evaluated again
/// in the new document.
async fn wait_for_first_page(endpoint: &Endpoint, url: &str) -> Result<FirstPage> {
    let page = PageConnection::open_endpoint(endpoint.clone(), Arc::new(PageHistory::new(None))).await?;
    let parsed = format!(
        "new Promise(done => {{
            if (location.href === 'about:blank' && {url:?} !== 'about:blank') return; // the navigation follows
            const report = () => {{
                if (location.protocol !== 'chrome-error:') return done(true);
                // The error page renders its code after it is parsed.
                const code = () => document.querySelector('.error-code')?.textContent.trim();
                const look = () => code() ? done(code()) : setTimeout(look, 20);
                setTimeout(() => done('Chromium shows an error page'), 2000);
                look();
            }};
            if (document.readyState !== 'loading') return report();
            document.addEventListener('DOMContentLoaded', report);
        }})"
    );
    loop {
        match evaluate_expression(&page, &parsed, FIRST_PAGE_TIMEOUT).await? {
            ExpressionResult::Value(Value::Bool(true)) => return Ok(FirstPage::Parsed),
            ExpressionResult::Value(Value::String(reason)) => return Ok(FirstPage::Failed(reason)),
            _ => {}
        }
    }
}

/// Starts the browser on `url` and waits for its debugging port.
pub async fn start_browser<'a>(
    attempt: &'a LaunchAttempt<'a>,
    url: &str,
    args: &[String],
) -> Result<(StartedProgram<'a>, LaunchedWindow)> {
    check_url(url)?;
    check_args(args)?;
    let program = find_browser(attempt)?;
    let profile = prepare_profile(attempt)?;
    attempt.report_progress("starting the browser");
    let browser = attempt.spawn("the browser", command_line(attempt, &program, &profile, args, url))?;
    let port = browser.wait_for("opened its debugging port", wait_for_port_file(&profile)).await;
    let port = port.map_err(|error| explain_used_profile(error, &profile))?;
    let endpoint = browser.wait_for_endpoint("answered on its debugging port", port).await?;
    let launched = attempt.launched_window(browser.process.clone(), endpoint);
    Ok((browser, LaunchedWindow { user_data_dir: Some(profile), ..launched }))
}

fn check_url(url: &str) -> Result<()> {
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
fn check_args(args: &[String]) -> Result<()> {
    let reserved = ["--user-data-dir", "--remote-debugging-port", "--remote-debugging-pipe"];
    match args.iter().find(|arg| reserved.iter().any(|flag| arg.starts_with(flag))) {
        None => Ok(()),
        Some(arg) => Err(Error::usage(format!("cannot start the browser with `{arg}`"))
            .because("tether chooses port and profile itself")
            .hint("remove it from `args` in devtools.toml; `profile = \"path\"` keeps a profile")),
    }
}

fn find_browser(attempt: &LaunchAttempt<'_>) -> Result<PathBuf> {
    match &attempt.plan.settings.browser {
        Some(setting) => attempt.find_program("browser", setting, "cannot start the browser"),
        None => attempt.find_on_path(BROWSER_NAMES).ok_or_else(|| {
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
    process::read_facts(pid).is_ok_and(|facts| !facts.zombie).then_some(pid)
}

fn command_line(
    attempt: &LaunchAttempt<'_>,
    program: &Path,
    profile: &Path,
    args: &[String],
    url: &str,
) -> Vec<OsString> {
    let mut argv = vec![program.as_os_str().to_owned()];
    argv.extend(FLAGS.iter().map(OsString::from));
    argv.push(flag_with_path("--user-data-dir=", profile));
    if attempt.plan.settings.headless || !has_display(&attempt.environment()) {
        if !attempt.plan.settings.headless {
            attempt.report_progress("there is no display: the browser runs without a visible window");
        }
        argv.extend(["--headless=new", "--disable-gpu", "--window-size=1280,800"].map(OsString::from));
    }
    if rustix::process::geteuid().is_root() {
        argv.push("--no-sandbox".into()); // Chromium refuses to run as root with it
    }
    argv.extend(args.iter().map(OsString::from));
    argv.push(url.into());
    argv
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
    let found = process::watch_until(profile, || read_port(&file)).await;
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
