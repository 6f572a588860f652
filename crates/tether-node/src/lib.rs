//! The adapter for Node and for pages of a browser: a DAP server in this process that speaks CDP to the inspectors of a
//! program.
//!
//! Each thread of JavaScript (the main thread of a process, a worker, a child process; a page, a frame of it in a process of
//! its own, its workers) is an *isolate* with an inspector of its own, and a thread of DAP.
//!
//! | file | owns |
//! |---|---|
//! | `node_backend` | the backend: how a program is launched or attached to, its events and requests, how it is let go |
//! | `launch_arguments`, `inspector_options` | the arguments of `launch` and `attach`; options of Node that are about its inspector |
//! | `local_programs`, `program_file` | a runtime of the project's own packages; the file of a program without its ending |
//! | `attach_target`, `process_inspector` | the program or page that is attached to; the inspector of a process, which is opened |
//! | `attached_program`, `restart_policy` | attaching to it; and to what is started in its place |
//! | `node_program` | the process of a launched program, and the inspectors that its processes open |
//! | `opened_inspector`, `port_watch` | an inspector that such a process has opened, by itself at a port of its own |
//! | `module_announcements` | has a program that was attached to announce its CommonJS modules |
//! | `isolate`, `isolate_host`, `inspector_queue` | one thread of JavaScript: its scripts, its pause; where it runs; what its inspector sends |
//! | `lane` | a queue of work for each isolate, independent of the others |
//! | `connection` | connects inspectors, and prepares each isolate before it runs |
//! | `release` | leaves a process so that nothing of it waits for us |
//! | `session` | the tables of an active session |
//! | `dap_requests` | the requests of DAP |
//! | `evaluation` | requests that evaluate |
//! | `js_tokens`, `function_ranges` | splits JavaScript into tokens; in which function a place is |
//! | `completions`, `completed_expression` | what a text may go on with; the expression that it ends in |
//! | `engine_events` | what the inspector of an isolate sends, and who handles it |
//! | `stops` | from pauses of the engine to stops |
//! | `resume` | continue, step, pause |
//! | `slowed_functions` | functions that V8 does not optimise after a pause in them |
//! | `breakpoints`, `breakpoint_changes` | binds breakpoints in each isolate; what a client changes of them |
//! | `breakpoint_table`, `breakpoint_code` | their table, their conditions as JavaScript |
//! | `data_breakpoints`, `data_breakpoint_table` | data breakpoints: what can be watched, and what is |
//! | `property_watches`, `watch_stops` | how it is watched; the stops at writes |
//! | `frames`, `variables`, `value_text` | threads, frames; variables, page by page; values as people read them |
//! | `scripts`, `source_maps` | scripts and their files; the sources that they were made of |
//! | `return_places` | where the engine pauses at a `return` |
//! | `line_placement` | where a breakpoint's code is in a script's version of its file |
//! | `dependency_packages` | packages in `node_modules` that are debugged |
//! | `file_urls` | the URLs by which Node names the scripts of files |
//! | `web_files` | the files of a page's scripts, and their URLs |
//! | `monorepo`, `package_manifest` | the repository of several packages that a program is one of; the manifest of a package |
//! | `map_loading`, `map_size` | reads maps from files, or through a page; how much they become |
//! | `unread_maps`, `older_code` | the scripts whose maps were not read; whether a script is older than its source |
//!
//! Does not depend on sessions of the supervisor.

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

mod attach_target;
mod attached_program;
mod breakpoint_changes;
mod breakpoint_code;
mod breakpoint_table;
mod breakpoints;
mod completed_expression;
mod completions;
mod connection;
mod dap_requests;
mod data_breakpoint_table;
mod data_breakpoints;
mod dependency_packages;
mod engine_events;
mod evaluation;
mod file_urls;
mod frames;
mod function_ranges;
mod inspector_options;
mod inspector_queue;
mod isolate;
mod isolate_host;
mod js_tokens;
mod lane;
mod launch_arguments;
mod line_placement;
mod local_programs;
mod map_loading;
mod map_size;
mod module_announcements;
mod monorepo;
mod node_backend;
mod node_program;
mod older_code;
mod opened_inspector;
mod package_manifest;
mod page_map;
mod path_maps;
mod port_watch;
mod process_inspector;
mod program_file;
mod property_watches;
mod release;
mod restart_policy;
mod resume;
mod return_places;
mod scripts;
mod session;
mod shared_workers;
mod slowed_functions;
mod source_maps;
mod stops;
mod unread_maps;
mod value_text;
mod variables;
mod watch_stops;
mod web_files;

pub use inspector_options::denied_inspector;
pub use launch_arguments::BUN_INSPECTOR;
pub use local_programs::find_local_program;
pub use node_backend::serve_node;
pub use page_map::{PageMap, SourcePlace, map_address};
pub use program_file::find_program;
pub use release::wait_for_late_workers;
