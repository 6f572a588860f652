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
//! | [`doctor`] | diagnosis of this machine, this workspace and its supervisor |
//! | [`window`] | the window: launch, identity, reconnect, build and relaunch |
//! | [`debug`] | debug sessions: state, stops, breakpoints, inspection |
//! | [`adapters`] | the table of debug adapters: how each is found, started and connected to |
//! | [`changes`] | which tracked files changed since the window's build |
//! | [`config`] | `devtools.toml`, launch.json, tasks.json, package.json, and the user's consent |
//! | [`background_tasks`] | tasks that run on, such as dev servers, while a window or a debug session uses them |
//! | [`task_runner`] | runs the steps of a build, or the tasks around a debug session |
//! | [`workspace_dir`] | `.devtools`, our folder in the workspace |
//! | [`workspace_programs`] | which programs of a workspace debugging may run, with the user's consent |
//! | [`bounded_file`] | the reader of files that others may have written |
//! | [`ring`] | bounded rings that readers follow with a cursor |
//! | [`wire`] | Content-Length frames, JSON-RPC 2.0, pending requests |
//! | [`dap`] | the Debug Adapter Protocol: client and server |
//! | [`cdp`] | the Chrome DevTools Protocol: client |
//! | [`jdwp`] | the Java Debug Wire Protocol: client |
//! | [`tools`] | outside programs: pinned versions, paths, installs |
//! | [`path_lookup`] | finds programs on PATH |
//! | [`process`] | process groups, identity, graceful stop, output |
//! | [`clock`], [`sync`] | the wall clock; locking of mutexes, sets of tasks |
//! | [`display_text`] | escapes what outside people and programs say, before it is shown |
//! | [`secret_values`] | masks values of variables in what is shown of a command, its output and its failure |
//! | [`file_owner`] | whether a file belongs to our user |
//! | [`error`] | the one user-facing error |

pub mod adapters;
pub mod api;
pub mod background_tasks;
pub mod bounded_file;
pub mod cdp;
pub mod changes;
pub mod clipped_text;
pub mod clock;
pub mod config;
pub mod dap;
pub mod debug;
pub mod display_text;
pub mod doctor;
pub mod error;
pub mod file_owner;
pub mod frontends;
pub mod jdwp;
pub mod path_lookup;
pub mod process;
pub mod ring;
pub mod secret_values;
pub mod supervisor;
pub mod sync;
pub mod task_runner;
pub mod tools;
pub mod window;
pub mod wire;
pub mod workspace_dir;
pub mod workspace_programs;
