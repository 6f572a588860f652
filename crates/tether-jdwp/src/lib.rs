//! The Java Debug Wire Protocol: the client side.
//!
//! | file | owns |
//! |---|---|
//! | `id_sizes` | how many bytes each kind of id has: asked of each virtual machine, never assumed |
//! | `values` | ids, locations and values, as the protocol has them |
//! | `reader`, `writer` | the data of a packet, read and written field by field |
//! | `packet` | the frames of the protocol: header and data, with a limit |
//! | `commands` | every command that is used, with its section of the specification |
//! | `events` | composite events |
//! | `event_request` | requests for events, with their modifiers |
//! | `client` | one connection: requests with deadlines, events in order |
//! | `fuzz_packets` | decodes arbitrary bytes, for tests and the fuzz target |
//!
//! A virtual machine is not trusted: every length is checked against what was received before anything is allocated for
//! it. Does not depend on DAP or on sessions; of the crate's modules only on `wire`.
//!
//! <https://docs.oracle.com/en/java/javase/17/docs/specs/jdwp/jdwp-spec.html> (the protocol),
//! <https://docs.oracle.com/en/java/javase/17/docs/specs/jdwp/jdwp-protocol.html> (the commands)

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

mod client;
pub mod commands;
mod event_request;
mod events;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz_packets;
mod id_sizes;
mod jdwp_error;
mod packet;
mod reader;
pub mod values;
mod writer;

pub use client::{JdwpClient, JdwpDriver, JdwpEvents, SentCommand};
pub use commands::JdwpCommand;
pub use event_request::{ClearEventRequest, EventKind, EventModifier, SetEventRequest, StepDepth, SuspendPolicy};
pub use events::{CompositeEvent, ExceptionEvent, FieldEvent, JdwpEvent, MonitorEventKind, UnreadableEvent};
pub use id_sizes::IdSizes;
pub use jdwp_error::{JdwpError, JdwpErrorCode};
