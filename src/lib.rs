//! `devtether`: keeps the window under development, and its debug sessions, running and up to date
//! while everything around it restarts.
//!
//! The modules, from the front ends down. Data flows down; only events and snapshots flow up.
//!
//! | module | owns |
//! |---|---|
//! | [`frontends`] | the command line and the MCP server; they translate, and decide nothing |
//! | [`api`] | the operations: names, parameters, results, descriptions |
//! | [`supervisor`] | the one supervisor of a workspace: its lock, its socket, its handlers |
//! | [`session_host`] | a debug session in a process of its own, which outlives the supervisor |
//! | [`doctor`] | diagnosis of this machine, this workspace and its supervisor |
//! | [`window`] | the window: launch, identity, reconnect, build and relaunch |
//! | [`debug`] | debug sessions: state, stops, breakpoints, inspection |
//! | [`adapters`] | the table of debug adapters: how each is found, started and connected to |
//! | [`config`] | `devtools.toml`, launch.json, tasks.json, package.json, and the user's consent |
//! | [`tasks`] | the steps of a build, the tasks around a session, servers that run on |
//! | [`timeline`] | what has happened in the workspace, in a file that all its processes share |
//! | [`vocabulary`] | words that several of them share: why a thread stopped, what a session does |
//! | [`workspace`] | `.devtools`, and which programs of the workspace may run |
//!
//! They rest on crates of their own, in `crates/`:
//!
//! | crate | owns |
//! |---|---|
//! | `tether-java`, `tether-node` | our debug adapters for Java and for Node and browsers |
//! | `tether-backend` | what these have in common |
//! | `tether-dap`, `tether-cdp`, `tether-jdwp` | the three debug protocols |
//! | `tether-wire` | Content-Length frames, JSON-RPC 2.0, pending requests |
//! | `tether-changes` | which tracked files changed since the window's build |
//! | `tether-tools` | outside programs: pinned versions, paths, installs |
//! | `tether-process` | process groups, identity, graceful stop, output |
//! | `tether-base` | the one user-facing error, safe display of outside text, bounded reading |

pub mod adapters;
pub mod api;
pub mod config;
pub mod debug;
pub mod doctor;
pub mod frontends;
pub mod session_host;
pub mod supervisor;
pub mod tasks;
pub mod timeline;
pub mod vocabulary;
pub mod window;
pub mod workspace;
