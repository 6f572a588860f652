//! A debug session in a process of its own, which outlives the supervisor: whatever becomes of that, the program stays where it
//! is, its editors stay joined, and the next supervisor finds everything as it was.
//!
//! ```text
//!  supervisor ──socket──▶ session host (`tether session-host`) ──▶ adapter ──▶ program
//!   routes, starts          the session: its state, stops, output,
//!   windows, builds         breakpoints' bindings, joined editors
//! ```
//! A host is no child that could be taken along: it has a session of its own. It ends a while after its program has. Its state
//! lives where its connections live, so nothing is replayed when a supervisor comes back.
//!
//! | file | owns |
//! |---|---|
//! | `server` | the process: its socket, its life, its connections |
//! | `requests` | what a supervisor requests of it |
//! | `protocol` | these requests, and what it reports |
//! | `facts` | what the supervisor knows of a session without asking |
//! | `context` | what the operations on a session share |
//! | `operations` | the operations themselves; the supervisor carries them out with the same code where it has the session |
//! | `params` | reading the parameters of an operation; errors that name the wrong one |
//! | `editor_join` | an editor that joins the session |
//! | `loopback_listener` | a port for one connection of our own user, for a limited time |
//! | `log_file` | the log, which it shares with the supervisor |

pub mod context;
pub mod editor_join;
pub mod facts;
pub mod log_file;
pub mod loopback_listener;
pub mod operations;
pub mod params;
pub mod protocol;
mod requests;
pub mod server;
