//! Opens connections to an adapter: the only one that it accepts, or another one each time.
//!
//! Does not depend on how the adapter was started.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tether_base::clock::deadline_after;
use tether_base::sync::lock;
use tether_dap::{DapConnection, DapError};
use tether_process::foreign_listener;
use tokio::net::{UnixStream, lookup_host};
use tokio::time::{Instant, timeout_at};

use super::debug_target::Address;

/// Opens another connection to the same adapter, with a deadline of its own.
pub type Connector = Arc<dyn Fn() -> BoxFuture<'static, Result<DapConnection, DapError>> + Send + Sync>;

/// The deadline of each connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a Unix socket may refuse connections between its bind and its listen.
const LISTEN_TIMEOUT: Duration = Duration::from_millis(500);

/// A connector that returns this connection once, and errors after that.
pub(super) fn single_connection(connection: DapConnection, address: &str) -> Connector {
    let (one, address) = (Mutex::new(Some(connection)), address.to_owned());
    boxed_connector(move || {
        let one = lock(&one).take();
        let cause = "it accepts one connection only, which is open already".to_owned();
        let taken = one.ok_or(DapError::Unreachable { address: address.clone(), cause });
        std::future::ready(taken).boxed()
    })
}

fn boxed_connector(
    connect: impl Fn() -> BoxFuture<'static, Result<DapConnection, DapError>> + Send + Sync + 'static,
) -> Connector {
    Arc::new(connect)
}

/// Retries while the socket refuses: rdbg reports that it listens before its `bind` and `listen`, of which only the
/// first can be watched.
async fn connect_unix(socket: PathBuf) -> Result<DapConnection, DapError> {
    let until = deadline_after(LISTEN_TIMEOUT);
    loop {
        match UnixStream::connect(&socket).await {
            Err(cause) if cause.kind() == ErrorKind::ConnectionRefused && Instant::now() < until => {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok(stream) => return Ok(DapConnection::unix(stream)),
            Err(cause) => {
                let address = socket.display().to_string();
                return Err(DapError::Unreachable { address, cause: cause.to_string() });
            }
        }
    }
}

/// A connector to a host and port. A local listener must be our user's, unless `allows_foreign`.
pub(super) fn connect_to(address: Address, allows_foreign: bool) -> Connector {
    boxed_connector(move || connect_host(address.clone(), allows_foreign).boxed())
}

/// Tries each address of the host name.
async fn connect_host(address: Address, allows_foreign: bool) -> Result<DapConnection, DapError> {
    let until = deadline_after(CONNECT_TIMEOUT);
    let name = format!("{}:{}", address.host, address.port);
    let unreachable = |cause: String| DapError::Unreachable { address: name.clone(), cause };
    let found = timeout_at(until, lookup_host((address.host.as_str(), address.port))).await;
    let found = found.map_err(|_| unreachable("its host name was not resolved in time".to_owned()))?;
    let mut failed = unreachable("its host name has no address".to_owned());
    for one in found.map_err(|cause| unreachable(cause.to_string()))? {
        let connected = match DapConnection::connect_tcp(one, until.saturating_duration_since(Instant::now())).await {
            Ok(connection) if allows_foreign => Ok(connection),
            Ok(connection) => refuse_foreign_listener(connection, one),
            Err(error) => Err(error),
        };
        match connected {
            Ok(connection) => return Ok(connection),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Checked once it is connected: before that, another process could take the port after the check.
fn refuse_foreign_listener(connection: DapConnection, address: SocketAddr) -> Result<DapConnection, DapError> {
    let refused = |cause: String| DapError::Unreachable { address: address.to_string(), cause };
    match foreign_listener(address).map_err(|cause| refused(cause.to_string()))? {
        Some(foreign) => Err(refused(foreign)),
        None => Ok(connection),
    }
}

/// A connector to a Unix socket.
pub(super) fn connect_to_socket(socket: PathBuf) -> Connector {
    boxed_connector(move || connect_unix(socket.clone()).boxed())
}

/// A connector to a local TCP port, whose listener must be our user's.
pub(super) fn connect_to_port(address: SocketAddr) -> Connector {
    boxed_connector(move || {
        let connected = DapConnection::connect_tcp(address, CONNECT_TIMEOUT);
        connected.map(move |connected| refuse_foreign_listener(connected?, address)).boxed()
    })
}
