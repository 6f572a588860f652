//! A process of a launched program that has opened its inspector.

use serde::Deserialize;
use tether_backend::Answer;

use super::connection::{InspectorAddress, process_name};
use super::isolate_host::IsolateHost;
use super::launch_arguments::websocket_address;

/// A process that has opened its inspector, as it says so itself.
#[derive(Debug, Deserialize)]
pub(crate) struct OpenedInspector {
    pub pid: u32,
    /// `ws://127.0.0.1:PORT/ID`
    pub url: String,
    /// The path of its script.
    pub program: String,
    /// It was found by its port, and may be of another runtime than Node.
    #[serde(skip)]
    pub is_at_port: bool,
}

impl OpenedInspector {
    /// How its main thread is called.
    pub(crate) fn name(&self) -> String {
        process_name(&self.program, self.pid)
    }

    /// Where it listens: the port must be one of our user.
    pub(crate) fn address(&self) -> Answer<InspectorAddress> {
        let (port, path) = websocket_address(&self.url)?;
        let (name, host) = (self.name(), IsolateHost::Node);
        Ok(InspectorAddress { port, path, name, host, allows_foreign: false, is_launched: true })
    }
}
