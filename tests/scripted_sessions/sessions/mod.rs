//! Whole sessions whose peers are scripted by the bytes of an input: for the tests, and for the fuzz targets in `fuzz/`.
//!
//! | file | owns |
//! |---|---|
//! | `choices` | the bytes of an input, read as choices |
//! | `runner` | the thread and the virtual time of a session, and its panics |
//! | `editor`, `dap_requests` | the editor's side: random requests of DAP |
//! | `adapters` | the sessions of the adapters in this process |
//! | `peer_loop`, `reply_mode` | the loop of a peer; how it answers a request |
//! | `java_vm`, `java_world` | a virtual machine, and the classes and objects that it has |
//! | `debug_session`, `dap_adapter` | a session of the supervisor, and an adapter |
//! | `inspector`, `js_world` | an inspector of Node, and what it says |

pub mod adapters;
pub mod choices;
mod dap_adapter;
mod dap_requests;
pub mod debug_session;
pub mod editor;
mod inspector;
mod java_vm;
mod java_world;
mod js_world;
mod peer_loop;
mod reply_mode;
pub mod runner;
