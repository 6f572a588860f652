//! Follows VS Code's extension host over a second connection, to the inspector of its Node process: records its console, and
//! publishes how far the extensions under development are loaded.
//!
//! The page reports an extension's output only in an altered form. When the extension host restarts (on a reload of the
//! window), it prints its inspector's address to the window's output, and is then connected to again. One that could not be
//! connected to is tried again while it is waited for: a busy machine may have kept it from answering.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tether_cdp::{CdpClient, CdpError, CdpEvent};
use tether_process::Process;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tracing::{debug, info};

use super::console::ConsoleSource;
use super::extension_registration::{ExtensionState, install_registration_script, is_finished, parse_report};
use super::history::PageHistory;
use super::page_client::enable_node_runtime;
use crate::window::identity::{IdentityError, find_launch_listener};
use crate::window::launch::parse_inspector_port;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two attempts to connect, doubled each time.
const MIN_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// From the end of its connection until a host has ended.
const END_TIME: Duration = Duration::from_millis(500);
/// Searches in a row that find nobody on the port: the inspector is closed.
const MIN_SEARCHES: u32 = 3;

/// Records the console of an extension host until it is dropped. Neither ends nor delays the extension host.
pub struct ExtensionHostConsole {
    _stop: watch::Sender<()>,
    state: watch::Receiver<(ExtensionState, Instant)>,
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
    /// The folders of the extensions under development.
    pub extensions: Vec<PathBuf>,
}

impl ExtensionHostConsole {
    /// Starts the task that records.
    pub fn start(inspector: ExtensionHostInspector, history: Arc<PageHistory>) -> ExtensionHostConsole {
        let (stop, stopped) = watch::channel(());
        let (states, state) = watch::channel((ExtensionState::HostStarting, Instant::now()));
        tokio::spawn(record_over_restarts(inspector, history, stopped, states));
        ExtensionHostConsole { _stop: stop, state }
    }

    /// How far the extensions under development are loaded, and since when; and its changes.
    pub fn watch_extensions(&self) -> watch::Receiver<(ExtensionState, Instant)> {
        self.state.clone()
    }
}

async fn record_over_restarts(
    inspector: ExtensionHostInspector,
    history: Arc<PageHistory>,
    mut stopped: watch::Receiver<()>,
    states: watch::Sender<(ExtensionState, Instant)>,
) {
    let mut failures = Failures::default();
    while stopped.has_changed().is_ok() {
        // Measured before connecting: what is printed after this point belongs to a restart.
        let from = std::fs::metadata(&inspector.output).map_or(0, |data| data.len());
        let state = match record_until_closed(&inspector, &history, &mut stopped, &states).await {
            Ok(host) => match timeout(END_TIME, host.wait_for_exit()).await {
                Ok(_) => ExtensionState::HostEnded,
                Err(_) => ExtensionState::InspectorClosed,
            },
            Err(why) => {
                debug!("cannot record the console of the extension host on port {}: {why}", inspector.port);
                failures.add(&why)
            }
        };
        // The time of a state that stays counts from its beginning.
        states.send_if_modified(|last| {
            let is_changed = last.0 != state;
            if is_changed {
                *last = (state, Instant::now());
            }
            is_changed
        });
        let is_awaited = {
            let (state, since) = &*states.borrow();
            *state == ExtensionState::HostStarting && state.deadline(*since).is_some_and(|until| until > Instant::now())
        };
        let listens_again = |line: &str| parse_inspector_port(line).filter(|port| *port == inspector.port);
        tokio::select! {
            _ = stopped.changed() => return,
            found = tether_process::wait_for_line(&inspector.output, from, listens_again) => {
                if found.is_err() {
                    return;
                }
                failures = Failures::default();
                states.send_replace((ExtensionState::HostStarting, Instant::now()));
                info!("the extension host has restarted");
            }
            () = tokio::time::sleep(failures.pause()), if is_awaited => {}
        }
    }
}

/// Attempts to connect to one host, which have failed.
#[derive(Default)]
struct Failures {
    count: u32,
    /// The last of them, in a row, that found nobody of the launch on the port.
    without_listener: u32,
}

impl Failures {
    /// Adds one; returns the state of the host.
    fn add(&mut self, why: &RecordError) -> ExtensionState {
        self.count += 1;
        let is_missing = matches!(why, RecordError::Unverified(IdentityError::PortOutsideLaunch { .. }));
        self.without_listener = if is_missing { self.without_listener + 1 } else { 0 };
        if self.without_listener < MIN_SEARCHES {
            ExtensionState::HostStarting
        } else {
            ExtensionState::InspectorClosed
        }
    }

    /// Before the next attempt.
    fn pause(&self) -> Duration {
        (MIN_PAUSE * 2_u32.saturating_pow(self.count.saturating_sub(1))).min(MAX_PAUSE)
    }
}

/// Why the console of a host is not recorded.
#[derive(Debug, thiserror::Error)]
enum RecordError {
    #[error(transparent)]
    Unverified(#[from] IdentityError),
    #[error(transparent)]
    Unconnected(#[from] CdpError),
    #[error(transparent)]
    Unsearched(#[from] tokio::task::JoinError),
}

/// Records until the connection ends, Node has finished, or recording is stopped. Returns the host.
async fn record_until_closed(
    inspector: &ExtensionHostInspector,
    history: &Arc<PageHistory>,
    stopped: &mut watch::Receiver<()>,
    states: &watch::Sender<(ExtensionState, Instant)>,
) -> Result<Process, RecordError> {
    let ExtensionHostInspector { port, launch_id, .. } = inspector.clone();
    let find = move || Ok::<_, IdentityError>(Process::open(find_launch_listener(&launch_id, port)?)?);
    let host = tokio::task::spawn_blocking(find).await??;
    let endpoint = tether_cdp::discover_endpoint(port).await?;
    let (recorder, cutoffs) = (Arc::clone(history), history.replay_cutoffs());
    let handler = Box::new(move |event: &CdpEvent| {
        if event.method.starts_with("Runtime.") {
            recorder.record_event(event, ConsoleSource::ExtensionHost, cutoffs);
        }
    });
    let (client, connection) =
        tether_cdp::open_connection_with_handler(port, &endpoint.path, CONNECT_TIMEOUT, handler).await?;
    tokio::pin!(connection);
    let result = tokio::select! {
        _ = &mut connection => return Ok(host),
        result = follow_until_finished(&client, &inspector.extensions, states) => result,
        _ = stopped.changed() => Ok(()),
    };
    client.close();
    connection.await;
    result?;
    Ok(host)
}

/// Publishes how far the extensions are loaded, until Node has finished.
async fn follow_until_finished(
    client: &CdpClient,
    extensions: &[PathBuf],
    states: &watch::Sender<(ExtensionState, Instant)>,
) -> Result<(), CdpError> {
    let mut events = client.subscribe();
    enable_node_runtime(client).await?;
    let publish = |state| drop(states.send_replace((state, Instant::now())));
    if !extensions.is_empty() {
        install_registration_script(client, &mut events, extensions).await?.into_iter().for_each(publish);
    }
    while let Some(event) = events.next().await {
        let Ok(event) = event else { continue };
        if is_finished(&event) {
            break;
        }
        parse_report(&event).into_iter().for_each(publish);
    }
    Ok(())
}
