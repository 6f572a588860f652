//! A DAP server for debug adapters that are written in Rust and run in this process.
//!
//! An adapter implements [`DapBackend`]: how a program is launched or attached to, what happens next, how it is let go. The
//! server has the rest: the conversation, `initialize`, the loop, output, `exited` and `terminated`, `disconnect`, requests
//! that nobody knows. [`DapRequests`] reads the requests of a session from DAP.
//!
//! | file | owns |
//! |---|---|
//! | `backend` | what an adapter is made of |
//! | `requests` | the requests of a session, and their answers |
//! | `server`, `running_session` | the conversation: its start; its loop, and its end |
//! | `serve_context` | what an adapter is started with |
//! | `launch_fields` | the arguments of `launch` and `attach`; which of them are not known |
//! | `debuggee_process`, `output_reader` | the process of a launched program; what it prints |
//! | `hit_condition`, `log_message` | conditions on counts, log messages |
//! | `completion_text` | the text that is completed |
//! | `request_failure` | why a request failed |
//!
//! Does not depend on any adapter.

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

mod backend;
pub mod completion_text;
pub mod debuggee_process;
pub mod hit_condition;
pub mod launch_fields;
pub mod log_message;
pub mod output_reader;
pub mod request_failure;
pub mod requests;
mod running_session;
mod serve_context;
mod server;

pub use backend::{BackendEnd, DapBackend, LaunchedProgram, StartedBackend, exits_after_close};
pub use requests::{Answer, DapRequests, DapStep};
pub use serve_context::{ServeAdapter, ServeContext};
pub use server::{serve_backend, serve_started};
