//! `tether dap java`, `tether dap node`: one of our own debug adapters, on stdin and stdout or on a port, for any editor.
//!
//! Needs no supervisor and no workspace.

use std::io::Write;
use std::net::Ipv4Addr;

use clap::ValueEnum;
use tether_backend::ServeContext;
use tether_base::error::{ErrorContext, Result};
use tether_dap::DapConnection;
use tether_java::serve_java;
use tether_node::{serve_node, wait_for_late_workers};
use tether_process::accept_own_user;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// An adapter that runs in this process.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum OwnAdapter {
    /// Launch and attach to Java programs, with the arguments of launch.json's type `java`. Needs only a JDK
    Java,
    /// Launch and attach to Node programs, with the arguments of launch.json's type `node`. Needs only Node
    Node,
}

/// Serves DAP until the client has closed stdin, or a signal ends us; on a port until a signal does. What was launched
/// ends with it.
pub async fn serve_adapter(adapter: OwnAdapter, listen: Option<u16>) -> Result<u8> {
    let doing = || "cannot watch for signals".to_owned();
    let mut terminated = signal(SignalKind::terminate()).doing(doing)?;
    let mut interrupted = signal(SignalKind::interrupt()).doing(doing)?;
    let served = async {
        match listen {
            Some(port) => serve_on_port(adapter, port).await,
            None => {
                serve(adapter, DapConnection::over(tokio::io::stdin(), tokio::io::stdout())).await;
                wait_for_late_workers().await;
                Ok(0)
            }
        }
    };
    tokio::select! {
        served = served => served,
        _ = terminated.recv() => Ok(143),
        _ = interrupted.recv() => Ok(130),
    }
}

async fn serve(adapter: OwnAdapter, connection: DapConnection) {
    let launch_id = format!("dap-{}-{}", std::process::id(), tether_base::clock::now_ms());
    let context = ServeContext { launch_id, exit: watch::Sender::new(None) };
    match adapter {
        OwnAdapter::Java => serve_java(connection, context).await,
        OwnAdapter::Node => serve_node(connection, context).await,
    }
}

/// One conversation after the other, with clients of our user only. Prints the address first.
async fn serve_on_port(adapter: OwnAdapter, port: u16) -> Result<u8> {
    let doing = || format!("cannot listen on 127.0.0.1:{port}");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.doing(doing)?;
    let address = listener.local_addr().doing(doing)?;
    writeln!(std::io::stdout(), "DAP server listening at: {address}").doing(doing)?;
    loop {
        let stream = accept_own_user(&listener).await.doing(doing)?;
        stream.set_nodelay(true).doing(doing)?;
        let (reader, writer) = stream.into_split();
        serve(adapter, DapConnection::over(reader, writer)).await;
    }
}
