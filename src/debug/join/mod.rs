//! Editors that join a debug session: each gets a DAP server of its own, made of what the session already knows, so that it
//! is debugged by several at once.
//!
//! | file | owns |
//! |---|---|
//! | `conversation` | one editor's requests, from `initialize` to `disconnect`; what wakes it |
//! | `session_requests` | threads, resume, pause, and the requests that are forwarded to an adapter |
//! | `breakpoint_requests` | the editor's own breakpoints and exceptions |
//! | `event_report` | the events that the editor is sent |
//! | `state_events` | what has changed between two states of a session: a pure function |
//! | `session_feed` | what has changed at all |
//! | `breakpoint_view` | what the editor has been told of breakpoints |
//! | `editor_context` | what its requests share |
//! | `source_names` | the paths by which the editor knows files |
//! | `editor_ids`, `id_rewrite` | the ids that the editor sees, and those in forwarded messages |
//! | `capabilities` | what the editor is told that it may request |
//! | `membership` | the editor in its session's list; leaving |
//!
//! All targets of a session are one conversation, with the threads of all of them, and not one per target through
//! `startDebugging`: an editor that gets `startDebugging` opens a new connection of the kind by which it has come, and a
//! joined editor has one connection to one session. So it works in every client, and a target that only coordinates
//! others (js-debug's first) is not seen at all. A stop names the threads that it is of, so nothing is shown as stopped that
//! runs.
//!
//! Leaving, by `disconnect` or by closing the connection, ends nothing; `terminate`, or `disconnect` with
//! `terminateDebuggee`, ends the session for everybody. Does not depend on how an editor connects.

mod breakpoint_requests;
mod breakpoint_view;
mod capabilities;
mod conversation;
mod editor_context;
mod editor_ids;
mod event_report;
mod id_rewrite;
mod membership;
mod session_feed;
mod session_requests;
mod source_names;
mod state_events;

pub use conversation::{OpenSession, SessionChoice, SessionStart, serve_editor, serve_tcp_editor};
