//! Being, finding and talking to the one supervisor of a workspace.
//!
//! - `place`: where a workspace's supervisor keeps its socket, its lock and its state
//! - `claim`: being the only one
//! - `connect`: finding it, or starting it; what every front end goes through
//! - `server`: its life: accept, serve, detach
//! - `conversation`: one connection to it
//! - `dispatch`: from a method's name to what does it
//! - `answers`: from the window's own words to the API's
//! - `on_debug`: the debug operations
//! - `on_page`: the same, for what looks into the page and acts on it
//! - `tie`: what ties debug sessions to the window
//! - `journal`: its log file

pub mod connect;
pub mod lock;
pub mod log_file;
pub mod paths;
pub mod server;

mod answers;
mod connection;
mod dispatch;
mod on_debug;
mod on_page;
mod window_follow;
