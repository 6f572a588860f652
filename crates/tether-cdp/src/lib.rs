//! The part of the Chrome DevTools Protocol that tether uses with browsers, Electron and Node.
//!
//! | file | defines |
//! |---|---|
//! | `types`, `events` | names and shapes of commands, their results, and events |
//! | `network` | those by which requests are recorded, read and answered |
//! | `page_control` | those by which pages are opened, emulated and filled in |
//! | `profiling` | those by which a trace, a CPU profile and a heap snapshot are taken |
//! | `debugger` | those by which a JavaScript program is debugged |
//! | `endpoint` | HTTP discovery of the WebSocket behind a debugging port |
//! | `websocket` | opening that WebSocket |
//! | `client` | one connection: commands, responses, event subscriptions |
//! | `session` | one target of a connection: its own, a frame or worker of a page, a worker of Node |
//! | `fuzz_messages` | decodes arbitrary bytes, for tests and the fuzz target |
//!
//! Does not depend on windows or debug sessions; of the rest of the crate it uses only `wire`.
//!
//! <https://chromedevtools.github.io/devtools-protocol/>

#![warn(missing_docs, unreachable_pub)]
// What is read here comes from outside.
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod cdp_error;
mod client;
pub mod debugger;
mod endpoint;
pub mod events;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz_messages;
pub mod network;
pub mod page_control;
pub mod profiling;
mod session;
pub mod types;
mod websocket;

pub use cdp_error::CdpError;
pub use client::{CdpClient, CdpConnection, CdpEvent, EventHandler, EventSubscription, EventsLost};
pub use endpoint::{Endpoint, TargetListEntry, discover_endpoint, list_targets};
pub use session::{CdpSession, FlatSession, WorkerSession};
pub use types::CdpCommand;
pub use websocket::{open_connection, open_connection_with_handler};
