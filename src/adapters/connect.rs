//! Making connections to an adapter: the only one that it takes, or another one each time.
//!
//! Must not know how the adapter was started.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::net::{TcpListener, TcpStream, UnixStream, lookup_host};
use tokio::time::{Instant, timeout_at};

use super::debug_target::Address;
use crate::dap::{DapConnection, DapError};
use crate::process;

/// Opens another connection to the same adapter, within a deadline of its own.
pub type Connector = Arc<dyn Fn() -> BoxFuture<'static, Result<DapConnection, DapError>> + Send + Sync>;

/// For each single dial.
const DIALLING: Duration = Duration::from_secs(10);
/// How long a socket may be there that nobody listens on yet.
const BETWEEN: Duration = Duration::from_millis(500);

/// The first connection from a program of our user; strangers are left standing.
pub(super) async fn accept_own_user(listener: &TcpListener) -> std::io::Result<TcpStream> {
    loop {
        let (stream, from) = listener.accept().await?;
        if process::is_own_connection(from, listener.local_addr()?)? {
            return Ok(stream);
        }
    }
}

pub(super) fn single_connection(connection: DapConnection, address: &str) -> Connector {
    let (one, address) = (Mutex::new(Some(connection)), address.to_owned());
    connector(move || {
        let one = one.lock().unwrap_or_else(PoisonError::into_inner).take();
        let cause = "it takes one connection only, and has that".to_owned();
        let dialled = one.ok_or(DapError::Unreachable { address: address.clone(), cause });
        std::future::ready(dialled).boxed()
    })
}

fn connector(
    dial: impl Fn() -> BoxFuture<'static, Result<DapConnection, DapError>> + Send + Sync + 'static,
) -> Connector {
    Arc::new(dial)
}

/// Between the making of a socket and the listening on it, nothing tells: rdbg may announce it before either.
async fn connect_unix(socket: PathBuf) -> Result<DapConnection, DapError> {
    let until = Instant::now() + BETWEEN;
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

pub(super) fn connect_to(address: Address) -> Connector {
    connector(move || connect_host(address.clone()).boxed())
}

/// Tries each address that the name has.
async fn connect_host(address: Address) -> Result<DapConnection, DapError> {
    let until = Instant::now() + DIALLING;
    let told = format!("{}:{}", address.host, address.port);
    let unreachable = |cause: String| DapError::Unreachable { address: told.clone(), cause };
    let found = timeout_at(until, lookup_host((address.host.as_str(), address.port))).await;
    let found = found.map_err(|_| unreachable("its name was not found in time".to_owned()))?;
    let mut failed = unreachable("its name stands for no address".to_owned());
    for one in found.map_err(|cause| unreachable(cause.to_string()))? {
        match DapConnection::connect_tcp(one, until - Instant::now()).await {
            Ok(connection) => return Ok(connection),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

pub(super) fn connect_to_socket(socket: PathBuf) -> Connector {
    connector(move || connect_unix(socket.clone()).boxed())
}

pub(super) fn connect_to_port(address: SocketAddr) -> Connector {
    connector(move || DapConnection::connect_tcp(address, DIALLING).boxed())
}
