//! The one supervisor of a workspace: being it, finding it, and serving connections.
//!
//! | file | owns |
//! |---|---|
//! | `paths` | where a workspace's supervisor keeps its socket, its lock and its state |
//! | `lock` | the lock that only one supervisor holds |
//! | `released_file` | a lock file that is removed when it is released |
//! | `deleted_workspaces` | the state of workspaces that are gone |
//! | `connect` | finding or starting the supervisor; used by every front end |
//! | `server` | the life cycle: acquire the lock, accept connections, exit |
//! | `context` | what connections and handlers share |
//! | `replaced_program` | whether it exits because the file of its program was replaced |
//! | `connection`, `notifications` | one connection: handshake, requests; what is sent without a request |
//! | `dispatch`, `operation_call` | from a method to its handler |
//! | `handlers` | one handler per operation; types of `window` and `debug` into those of the API |
//! | `hosted_sessions` | the debug sessions that live in processes of their own |
//! | `editors` | connected editors, what they are requested, and their debug conversations |
//! | `window_follow` | sessions that follow the window over its launches |
//! | `wrapped_servers` | debug sessions that follow servers of `tether wrap` over their restarts |
//! | `timeline_records` | what this process records in the timeline |
//! | `launch_memory` | what launches leave for the next call |
//! | `busy_times` | a record of how long the runtime's threads are busy (`DEVTETHER_BUSY_RECORD`) |

pub mod connect;
pub mod deleted_workspaces;
pub mod lock;
pub mod paths;
pub mod server;

mod background_users;
mod busy_times;
mod connection;
mod context;
mod dispatch;
mod editors;
mod handlers;
mod hosted_sessions;
mod launch_memory;
mod notifications;
mod operation_call;
mod released_file;
mod replaced_program;
mod save_refresh;
mod timeline_records;
mod window_follow;
mod wrapped_servers;
