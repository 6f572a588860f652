//! The console of VS Code's extension host: a second connection, to the inspector of its Node process.
//!
//! What an extension prints does not come to the page as it was printed. The extension host may restart (a reload of the
//! window) and then says so in the window's output; that is waited for.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tracing::{debug, info};

use super::console::ConsoleSource;
use super::history::PageHistory;
use crate::cdp::{self, CdpClient, CdpEvent, types};
use crate::process;
use crate::window::identity;
use crate::window::launch::parse_inspector_port;

const CONNECTING: Duration = Duration::from_secs(5);

/// Listens to an extension host until it is dropped. Never ends it or holds it up.
pub struct ExtensionHostConsole {
    _leave: watch::Sender<()>,
}

/// Where an extension host is.
#[derive(Clone, Debug)]
pub struct ExtensionHostInspector {
    pub port: u16,
    /// Whoever listens on the port must carry it.
    pub launch_id: String,
    /// What the window prints.
    pub output: PathBuf,
}

impl ExtensionHostConsole {
    pub fn start(inspected: ExtensionHostInspector, records: Arc<PageHistory>) -> ExtensionHostConsole {
        let (leave, left) = watch::channel(());
        tokio::spawn(follow_restarts(inspected, records, left));
        ExtensionHostConsole { _leave: leave }
    }
}

async fn follow_restarts(inspected: ExtensionHostInspector, records: Arc<PageHistory>, mut left: watch::Receiver<()>) {
    while left.has_changed().is_ok() {
        // Before it is looked at: what is printed from here on is a restart.
        let from = std::fs::metadata(&inspected.output).map_or(0, |data| data.len());
        if let Err(why) = record_until_closed(&inspected, &records, &mut left).await {
            debug!("cannot listen to the extension host on port {}: {why}", inspected.port);
        }
        let again = |line: &str| parse_inspector_port(line).filter(|port| *port == inspected.port);
        tokio::select! {
            _ = left.changed() => return,
            listens = process::wait_for_line(&inspected.output, from, again) => if listens.is_err() { return },
        }
        info!("the extension host has restarted");
    }
}

/// Listens until the connection ends, or nobody wants it any more.
async fn record_until_closed(
    inspected: &ExtensionHostInspector,
    records: &Arc<PageHistory>,
    left: &mut watch::Receiver<()>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let ExtensionHostInspector { port, launch_id, .. } = inspected.clone();
    tokio::task::spawn_blocking(move || identity::verify_launch_port(&launch_id, port)).await??;
    let endpoint = cdp::discover_endpoint(port).await?;
    let (kept, known) = (Arc::clone(records), records.replay_cutoffs());
    let observer = Box::new(move |event: &CdpEvent| {
        if event.method.starts_with("Runtime.") {
            kept.record_event(event, ConsoleSource::ExtensionHost, known);
        }
    });
    let (client, connection) = cdp::open_connection_with_handler(port, &endpoint.path, CONNECTING, observer).await?;
    let mut events = client.subscribe();
    tokio::pin!(connection);
    let over = async {
        enable_runtime(&client).await?;
        while let Some(event) = events.next().await {
            // It has run to its end, and stays only because we look at it.
            if event.is_ok_and(|event| event.method == "NodeRuntime.waitingForDisconnect") {
                break;
            }
        }
        Ok::<(), cdp::CdpError>(())
    };
    let over = tokio::select! {
        _ = &mut connection => return Ok(()),
        over = over => over,
        _ = left.changed() => Ok(()),
    };
    client.close();
    connection.await;
    Ok(over?)
}

async fn enable_runtime(client: &CdpClient) -> Result<(), cdp::CdpError> {
    client.send(None, &types::EnableRuntime {}).await?;
    client.send(None, &types::EnableNodeRuntime {}).await?;
    client.send(None, &types::NotifyWhenWaitingForDisconnect { enabled: true }).await
}
