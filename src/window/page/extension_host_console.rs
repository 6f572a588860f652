//! Records the console of VS Code's extension host, over a second connection to the inspector of its Node process.
//!
//! The page reports an extension's output only in an altered form. When the extension host restarts (on a reload of the
//! window), it prints its inspector's address to the window's output, and is then connected to again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tracing::{debug, info};

use super::console::ConsoleSource;
use super::history::PageHistory;
use super::page_client::enable_node_runtime;
use crate::cdp::{self, CdpError, CdpEvent};
use crate::process;
use crate::window::identity;
use crate::window::launch::parse_inspector_port;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Records the console of an extension host until it is dropped. Neither ends nor delays the extension host.
pub struct ExtensionHostConsole {
    _stop: watch::Sender<()>,
}

/// The inspector of an extension host.
#[derive(Clone, Debug)]
pub struct ExtensionHostInspector {
    /// Its port on the loopback.
    pub port: u16,
    /// The launch id that the listening process must have in its environment.
    pub launch_id: String,
    /// The window's output file.
    pub output: PathBuf,
}

impl ExtensionHostConsole {
    /// Starts the task that records.
    pub fn start(inspector: ExtensionHostInspector, history: Arc<PageHistory>) -> ExtensionHostConsole {
        let (stop, stopped) = watch::channel(());
        tokio::spawn(record_over_restarts(inspector, history, stopped));
        ExtensionHostConsole { _stop: stop }
    }
}

async fn record_over_restarts(
    inspector: ExtensionHostInspector,
    history: Arc<PageHistory>,
    mut stopped: watch::Receiver<()>,
) {
    while stopped.has_changed().is_ok() {
        // Measured before connecting: what is printed after this point belongs to a restart.
        let from = std::fs::metadata(&inspector.output).map_or(0, |data| data.len());
        if let Err(why) = record_until_closed(&inspector, &history, &mut stopped).await {
            debug!("cannot record the console of the extension host on port {}: {why}", inspector.port);
        }
        let listens_again = |line: &str| parse_inspector_port(line).filter(|port| *port == inspector.port);
        tokio::select! {
            _ = stopped.changed() => return,
            found = process::wait_for_line(&inspector.output, from, listens_again) => if found.is_err() { return },
        }
        info!("the extension host has restarted");
    }
}

/// Records until the connection ends, Node has finished, or recording is stopped.
async fn record_until_closed(
    inspector: &ExtensionHostInspector,
    history: &Arc<PageHistory>,
    stopped: &mut watch::Receiver<()>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let ExtensionHostInspector { port, launch_id, .. } = inspector.clone();
    tokio::task::spawn_blocking(move || identity::verify_launch_port(&launch_id, port)).await??;
    let endpoint = cdp::discover_endpoint(port).await?;
    let (recorder, cutoffs) = (Arc::clone(history), history.replay_cutoffs());
    let handler = Box::new(move |event: &CdpEvent| {
        if event.method.starts_with("Runtime.") {
            recorder.record_event(event, ConsoleSource::ExtensionHost, cutoffs);
        }
    });
    let (client, connection) =
        cdp::open_connection_with_handler(port, &endpoint.path, CONNECT_TIMEOUT, handler).await?;
    let mut events = client.subscribe();
    tokio::pin!(connection);
    let finished = async {
        enable_node_runtime(&client).await?;
        while let Some(event) = events.next().await {
            // Node has finished, and exits when its clients have left.
            if event.is_ok_and(|event| event.method == "NodeRuntime.waitingForDisconnect") {
                break;
            }
        }
        Ok::<(), CdpError>(())
    };
    let result = tokio::select! {
        _ = &mut connection => return Ok(()),
        result = finished => result,
        _ = stopped.changed() => Ok(()),
    };
    client.close();
    connection.await;
    Ok(result?)
}
