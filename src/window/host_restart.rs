//! Follows an extension host that was replaced in the window itself: by VS Code's "Restart Extension Host" or "Reload
//! Window", or because it had crashed.
//!
//! ```text
//! "Debugger listening on …" in the output ──► an extension host of this launch, newer than the window's? ──► next generation
//! ```

use std::sync::Arc;

use tether_base::clock::now_ms;
use tracing::{debug, info};

use super::context::WindowContext;
use super::identity::find_launch_listener;
use super::launch::{HostHold, parse_inspector_port};
use super::live_window::{LiveWindow, WindowPage};
use super::session_file::WindowSession;

/// Of a process that is an extension host of a VS Code server.
const HOST_FLAG: &str = "--type=extensionHost";

/// Resolves to the window as it is after its extension host was replaced; `None`: there is nothing to follow. Dropped when a
/// refresh of our own begins.
pub async fn follow_replaced_host(context: &WindowContext, window: &LiveWindow) -> Option<LiveWindow> {
    let (mut from, began_ticks) = window.connected_at();
    window.session.inspector_port.filter(|port| *port != window.session.cdp_port)?;
    let port = loop {
        let port = window.wait_for_output_line(from, parse_inspector_port).await.ok()?;
        from = window.output_length();
        let (launch_id, hold) = (window.session.launch_id.clone(), window.host_hold());
        let is_new = tokio::task::spawn_blocking(move || is_new_host(&launch_id, &hold, port, began_ticks)).await;
        if is_new.is_ok_and(|is_new| is_new) {
            break port;
        }
        debug!("port {port} is not the inspector of a new extension host");
    };
    info!("the extension host was replaced in the window; its inspector is on port {port}");
    let now = now_ms();
    let session = WindowSession {
        inspector_port: Some(port),
        debug_window_started_at: now,
        persisted_at: now,
        ..window.session.clone()
    };
    context.history.record_launch();
    let page = WindowPage::At(window.page().await.ok().map(|page| page.endpoint().clone()));
    let (output, history) = (window.output().to_owned(), Arc::clone(&context.history));
    let mut renewed = LiveWindow::connect(session, window.process.clone(), page, output, history).await;
    renewed.keep_background_tasks(window.background_tasks());
    renewed.launched_from.clone_from(&window.launched_from);
    renewed.contributed.clone_from(&window.contributed);
    renewed.is_host_replaced = true;
    renewed.notes = vec![format!("{}, and not by tether", renewed.describe_renewal())];
    Some(renewed)
}

/// Whether an extension host of this launch listens on `port`, and could run no extension before `began_ticks`.
fn is_new_host(launch_id: &str, hold: &HostHold, port: u16, began_ticks: u64) -> bool {
    let Ok(pid) = find_launch_listener(launch_id, port) else { return false };
    let is_newer = hold.read_start(pid).is_ok_and(|start| start >= began_ticks);
    let arguments = tether_process::read_arguments(pid).unwrap_or_default();
    is_newer && arguments.iter().any(|argument| argument == HOST_FLAG)
}
