//! Launching a window: one file per kind starts its programs and learns its ports.
//!
//! A launch that fails or is dropped leaves no process running. The paths of a launch: [`super::launch_id`].
//!
//! The time line of a relaunch of an Extension Development Host in a browser, as `DEVTETHER_LOG=debug` shows it (two quiet
//! cores, medians; an extension that is activated when the start has ended):
//!
//! | after | what |
//! |---|---|
//! | 0.00 s | the old window is asked to close |
//! | 0.16 s | its browser has ended |
//! | 0.21 s | its VS Code server has ended, and its folder is removed |
//! | 0.36 s | the new server and the browser listen, started together |
//! | 0.64 s | the browser's page has the cookie and begins to load the workbench |
//! | 1.46 s | the workbench shows its title |
//! | 1.67 s | the extension host's inspector answers: the window is launched |
//! | 3.40 s | the extension is loaded: the host's start beside the workbench's, whose page keeps a core busy until then |
//!
//! Closing and starting take 0.4 s together; the rest is VS Code's, and most of it the work of one page on one core. What
//! makes it shorter, each measured by itself:
//!
//! | saves | what |
//! |---|---|
//! | 0.9 s | the browser's compiled code of the workbench, whose script has 19 MB, is kept (`workbench_cache`) |
//! | 0.6 s | the browser's files of the workbench are kept (`workbench_cache`) |
//! | 0.5 s | the server's list of built-in extensions is kept (`workbench_cache`) |
//! | 0.5 s | the browser loads no lists for its address bar (`browser`) |
//! | 0.4 s | compiled code of the hosts is kept (`compile_cache`); a restart of the host alone gains as much |
//! | 0.1 s | and of the language servers of VS Code's extensions (`host_hold`); so does a restart of the host alone |
//! | 0.1 s | messages are not compressed (`web_extension_host`); so does a restart of the host alone |
//! | 0.3 s | no agent host is started beside the server (`web_extension_host`) |
//!
//! And no login shell is started before the extension host where a shell has set up the environment (`host_hold`): how
//! long it would take is up to the user's profile. The first relaunch in a workspace, which fills what is kept, takes 1 s
//! longer than those after it. Measured and not done: the first extension host started together with the server (0.1 to
//! 0.2 s), a smaller window and flags of V8 (nothing), a workbench without its AI features (0.15 s) or without git (0.3 s
//! more): a window that differs is not worth it.
//!
//! A page is relaunched in 0.50 s, and not in 0.65 s, because its new browser is started while the old one closes; a Node
//! program 10 ms sooner.
//!
//! A restart of the extension host alone waits for the extensions that were active before it. VS Code's npm extension would
//! open `package.json` 4.5 s after each start, which activates the JSON extension: each later restart would take 0.2 s
//! longer. The settings of a new profile switch its search for scripts off (`config::vscode`).

mod attempt;
mod browser;
mod compile_cache;
mod connection_token;
mod custom_command;
mod desktop_extension_host;
mod development_folder;
mod extension_host_args;
mod extension_manifest;
mod host_hold;
mod launch_check;
mod node;
mod readiness;
mod web_extension_host;
mod window_bridge;
mod workbench_cache;

use std::path::PathBuf;

use tether_base::error::{Error, Result};
use tokio::sync::oneshot;

use self::attempt::{LaunchAttempt, OldWindowClosed};
pub use self::attempt::{LaunchedWindow, WindowLaunchPlan, create_private_dir};
pub use self::browser::BROWSER_NAMES;
pub use self::desktop_extension_host::find_desktop_vscode;
use self::extension_host_args::ExtensionHostArgs;
pub use self::extension_manifest::describe_missing_mains;
pub use self::host_hold::HostHold;
pub use self::launch_check::check_launch;
pub use self::readiness::parse_inspector_port;
pub use self::web_extension_host::wait_for_title;
use super::cleanup;
use super::launch_id::is_launch_id;
use crate::config::WindowKind;

/// Launches the window and waits until it can be connected to. `progress` receives the current step.
///
/// An error, or dropping the future, kills all started processes. Errors: a program or setting is missing, a program
/// exits early or never opens its port (with the tail of its output), the port belongs to another program.
pub async fn launch_window(plan: &WindowLaunchPlan, progress: impl Fn(&str) + Send + Sync) -> Result<LaunchedWindow> {
    launch_while_closing(plan, async { Ok(()) }, progress).await
}

/// As [`launch_window`], while the window before is closed, which happens in any case. A browser is started meanwhile, and
/// loads its page afterwards; Node is started, and runs its program afterwards; all else begins afterwards. Errors: also that
/// of `closing`.
pub async fn launch_while_closing(
    plan: &WindowLaunchPlan,
    closing: impl Future<Output = Result<()>>,
    progress: impl Fn(&str) + Send + Sync,
) -> Result<LaunchedWindow> {
    let (sender, receiver) = oneshot::channel();
    let closing = async move {
        closing.await?;
        let _ = sender.send(());
        Ok(())
    };
    // The error of `closing` is returned in its place.
    let not_closed = |_| Error::other("the window before was not closed");
    let closed: OldWindowClosed<'_> = Box::pin(async move { receiver.await.map_err(not_closed) });
    let (closed, launched) = tokio::join!(closing, launch(plan, closed, &progress));
    closed.and(launched)
}

async fn launch(
    plan: &WindowLaunchPlan,
    mut closed: OldWindowClosed<'_>,
    progress: &(impl Fn(&str) + Send + Sync),
) -> Result<LaunchedWindow> {
    let kind = plan.settings.kind.ok_or_else(missing_kind)?;
    if !is_launch_id(&plan.launch_id) {
        return Err(Error::usage(format!("{:?} cannot be a launch id", plan.launch_id)));
    }
    // Two windows of other kinds, or of one profile, would want the same ports or files.
    let starts_meanwhile = kind == WindowKind::Node || kind == WindowKind::Browser && plan.settings.profile.is_none();
    if !starts_meanwhile {
        closed.await?;
        closed = Box::pin(async { Ok(()) });
    }
    progress("launching");
    let attempt = LaunchAttempt::start(plan, progress)?;
    let launched = launch_kind(kind, &attempt, closed).await;
    match &launched {
        Ok(_) => attempt.complete(),
        // Waits for the killed processes, so that the next attempt finds none; dropping the attempt only signals.
        Err(_) => drop(cleanup::clean_up_launch(&plan.launch_id, &plan.state_dir).await),
    }
    launched
}

/// The folders of the extensions under development that run on Node, of an Extension Development Host.
pub fn development_folders(plan: &WindowLaunchPlan) -> Vec<PathBuf> {
    let is_host = matches!(plan.settings.kind, Some(WindowKind::ExtensionHost | WindowKind::WebExtensionHost));
    let args = ExtensionHostArgs::read(plan).ok().filter(|_| is_host);
    args.map(|args| args.extensions_on_node().0).unwrap_or_default()
}

async fn launch_kind(
    kind: WindowKind,
    attempt: &LaunchAttempt<'_>,
    closed: OldWindowClosed<'_>,
) -> Result<LaunchedWindow> {
    match kind {
        WindowKind::Browser => browser::launch_browser(attempt, closed).await,
        WindowKind::Node => node::launch_node(attempt, closed).await,
        WindowKind::Command => custom_command::launch_custom_command(attempt).await,
        WindowKind::WebExtensionHost => web_extension_host::launch_web_extension_host(attempt).await,
        // A derived kind only means some extension host: the desktop's if there is one.
        WindowKind::ExtensionHost
            if attempt.plan.settings.derived
                && find_desktop_vscode(&attempt.plan.settings, &attempt.plan.workspace).is_none() =>
        {
            web_extension_host::launch_web_extension_host(attempt).await
        }
        WindowKind::ExtensionHost => desktop_extension_host::launch_desktop_extension_host(attempt).await,
    }
}

fn missing_kind() -> Error {
    Error::usage("no kind of window is configured").hint(
        "set `kind = \"browser\"` (or extension-host, web-extension-host, node, command) in the [window] section of devtools.toml",
    )
}
