//! Waits for the inspector that a program opens by itself at a port that is known.

use std::time::{Duration, Instant};

use tether_cdp::discover_endpoint;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::opened_inspector::OpenedInspector;

/// How often the port is tried: nothing reports that it is listened on.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// For so long; later less often.
const POLLED_OFTEN: Duration = Duration::from_secs(30);
const LATER_INTERVAL: Duration = Duration::from_secs(1);

/// Sends the inspector once it answers. Ends with the receiver.
pub(crate) fn watch_port(port: u16) -> mpsc::Receiver<OpenedInspector> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        tokio::select! {
            // Fails when nobody waits for it any more.
            opened = wait_for_inspector(port) => drop(sender.send(opened).await),
            () = sender.closed() => {}
        }
    });
    receiver
}

async fn wait_for_inspector(port: u16) -> OpenedInspector {
    let began = Instant::now();
    loop {
        if let Some(opened) = find_inspector(port).await {
            return opened;
        }
        sleep(if began.elapsed() < POLLED_OFTEN { POLL_INTERVAL } else { LATER_INTERVAL }).await;
    }
}

async fn find_inspector(port: u16) -> Option<OpenedInspector> {
    let endpoint = discover_endpoint(port).await.ok().filter(|endpoint| !endpoint.is_browser)?;
    let pid = tether_process::list_listeners(port).ok()?.into_iter().next()?;
    let program = tether_process::read_name(pid).unwrap_or_default();
    Some(OpenedInspector { pid, url: format!("ws://127.0.0.1:{port}{}", endpoint.path), program, is_at_port: true })
}
