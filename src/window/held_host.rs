//! The extension host of the current window, while it waits for the debug sessions that follow it: see
//! [`super::launch::HostHold`].

use std::sync::atomic::Ordering;
use std::time::Duration;

use tether_base::sync::run_blocking;
use tokio::time::timeout;
use tracing::{debug, warn};

use super::context::WindowContext;
use super::identity::find_launch_listener;
use super::launch::HostHold;
use super::live_window::LiveWindow;
use super::window_handle::Window;

/// From the moment when a host's inspector listens until it loads the hook.
const HELD_TIMEOUT: Duration = Duration::from_secs(5);

/// The extension host of the current window, which may wait for debug sessions.
pub struct HeldHost {
    hold: HostHold,
    pid: Option<u32>,
}

impl HeldHost {
    /// Lets it go on. Returns whether it has waited until now, and so has run nothing of an extension yet.
    pub fn release(self) -> bool {
        self.hold.release_hosts(self.pid)
    }
}

impl Window {
    /// Whether extension hosts that start from now on wait until they are released, for some seconds at most.
    pub fn hold_new_hosts(&self, wanted: bool) {
        self.context.holds_new_hosts.store(wanted, Ordering::Relaxed);
        let window = self.context.published.borrow().window.clone();
        if let Some(window) = window {
            self.context.arm_host_hold(&window);
        }
    }

    /// Waits until the current window's extension host waits, if it is to; it must be released then. `None`: hosts of this
    /// window are not held.
    pub async fn wait_for_held_host(&self) -> Option<HeldHost> {
        let window = self.context.published.borrow().window.clone()?;
        let hold = window.host_hold();
        if !self.context.holds_new_hosts.load(Ordering::Relaxed) || !hold.is_installed() {
            return None;
        }
        let port = window.verified_inspector_port().await.ok().flatten();
        let launch_id = window.session.launch_id.clone();
        let pid = run_blocking(move || find_launch_listener(&launch_id, port?).ok()).await;
        if let Some(pid) = pid
            && !matches!(timeout(HELD_TIMEOUT, hold.wait_until_held(pid)).await, Ok(Ok(())))
        {
            debug!("the extension host, process {pid}, does not wait for its debug sessions");
        }
        Some(HeldHost { hold, pid })
    }
}

impl WindowContext {
    /// Makes hosts of this window that start from now on wait, or not, as [`Window::hold_new_hosts`] was told last: no
    /// window is published while one is refreshed.
    pub fn arm_host_hold(&self, window: &LiveWindow) {
        let hold = window.host_hold();
        if !hold.is_installed() {
            return;
        }
        if let Err(error) = hold.set_armed(self.holds_new_hosts.load(Ordering::Relaxed)) {
            warn!("cannot hold extension hosts for their debug sessions: {error}");
        }
    }
}
