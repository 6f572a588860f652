//! `devtether`: keeps the window under development, and its debug sessions, alive and fresh
//! while everything around it restarts.
//!
//! The map of the house, from the doors down. Data flows down; only events and snapshots flow up.
//!
//! | room | owns |
//! |---|---|
//! | [`frontends`] | the doors: command line, MCP; they translate, and never decide |
//! | [`api`] | the operations: names, parameters, results, words |
//! | [`supervisor`] | being, finding and talking to the one supervisor of a workspace |
//! | [`doctor`] | what is wrong with this machine, this workspace and this tether |
//! | [`window`] | the tether: launch, identity, reconnect, build and swap |
//! | [`debug`] | debug sessions: what they are doing, why they stopped, who waits for it |
//! | [`adapters`] | the table of debug adapters: how each is found, started and asked |
//! | [`changes`] | has anything changed since? which file? why does it count? |
//! | [`config`] | `devtools.toml`, and whether the user trusts what it wants to run |
//! | [`steps`] | running the steps of a build, or of the tasks around a debug session, once |
//! | [`keep`] | `.devtools`: the files that a workspace keeps for us |
//! | [`ring`] | bounded rings that readers follow with a cursor |
//! | [`wire`] | Content-Length frames and JSON-RPC 2.0 |
//! | [`dap`] | the Debug Adapter Protocol, both sides of it |
//! | [`cdp`] | the Chrome DevTools Protocol |
//! | [`tools`] | outside programs: which version, where they lie, how they are installed |
//! | [`process`] | groups, identity, graceful ends, output |
//! | [`clock`], [`sync`] | the wall clock; locking of mutexes |
//! | [`error`] | the one user-facing error |

pub mod adapters;
pub mod api;
pub mod cdp;
pub mod changes;
pub mod clock;
pub mod config;
pub mod dap;
pub mod debug;
pub mod doctor;
pub mod error;
pub mod frontends;
pub mod process;
pub mod ring;
pub mod supervisor;
pub mod sync;
pub mod task_runner;
pub mod tools;
pub mod window;
pub mod wire;
pub mod workspace_dir;
