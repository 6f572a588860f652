//! `tether wrap -- COMMAND…`: an MCP proxy on stdio, whose server is built and restarted behind the client.
//!
//! ```text
//!  client ──lines──▶ proxy ──lines──▶ server (generation 1)  ◀─ finishes its calls, then ends
//!         ◀────────┘   │  └─────────▶ server (generation 2)  ◀─ initialize, log level and subscriptions replayed
//!                      └─ before each request: is a tracked file newer? build, start, swap
//! ```
//!
//! | file | owns |
//! |---|---|
//! | `proxy` | what comes from the client, and where it goes; the end |
//! | `server_events` | what comes from servers |
//! | `replacement` | the next server, and what becomes of the one before |
//! | `calls` | requests that are on their way, with their ids and progress |
//! | `messages` | what is read and changed of a message; messages of our own |
//! | `debugger` | the debugger of the server, in the supervisor (`--debug`) |
//! | `debug_stops` | what a stop in the debugger means for the calls that wait |
//! | `wrapped_server` | the process of a server, and its streams |
//! | `session_state` | what the client has told the server, to be told again; the lists that it has read |
//! | `source_watch` | whether the sources are newer than the server, and the build |
//!
//! A message is passed on as it is, but for the ids of requests that a server sends: two servers may use the same. No call is sent
//! twice. Nothing waits for one side while the other has something to say. Needs a supervisor only for
//! `--debug`.

mod calls;
mod debug_stops;
mod debugger;
mod messages;
mod proxy;
mod replacement;
mod server_events;
mod session_state;
mod source_watch;
mod wrapped_server;

pub use proxy::{WrapArgs, serve_wrap};
