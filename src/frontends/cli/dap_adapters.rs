//! `tether dap java`: one of our own debug adapters, on stdin and stdout, for any editor.
//!
//! Needs no supervisor and no workspace.

use clap::Subcommand;
use tokio::signal::unix::{SignalKind, signal};

use crate::adapters::serve_java;
use crate::dap::DapConnection;
use crate::error::{ErrorContext, Result};

// (No doc comment: clap would use it as the program's.)
#[derive(Subcommand)]
pub enum OwnAdapter {
    /// Java: launch and attach, with the arguments of launch.json's type `java`; needs a JDK only
    Java,
}

/// Serves DAP until the client has closed stdin, or a signal ends us; what was launched ends with it.
pub async fn serve_on_stdio(adapter: OwnAdapter) -> Result<u8> {
    let doing = || "cannot watch for signals".to_owned();
    let mut terminated = signal(SignalKind::terminate()).doing(doing)?;
    let mut interrupted = signal(SignalKind::interrupt()).doing(doing)?;
    let connection = DapConnection::over(tokio::io::stdin(), tokio::io::stdout());
    let served = match adapter {
        OwnAdapter::Java => serve_java(connection, format!("dap-{}-{}", std::process::id(), crate::clock::now_ms())),
    };
    tokio::select! {
        () = served => Ok(0),
        _ = terminated.recv() => Ok(143),
        _ = interrupted.recv() => Ok(130),
    }
}
