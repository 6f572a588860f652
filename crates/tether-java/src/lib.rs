//! The adapter for Java: a DAP server in this process that speaks JDWP to the virtual machine.
//!
//! | file | owns |
//! |---|---|
//! | `java_backend` | the backend: how a program is launched or attached to, its events and requests, how it is let go |
//! | `launch_arguments` | the arguments of `launch` and `attach` |
//! | `attach` | a connection to a program that runs: its port, or its process |
//! | `compiled_source` | from a source to a class that can be run |
//! | `compile_cache`, `compile_inputs` | classes of earlier compilations; what a compilation is made from |
//! | `project_modules`, `maven_pom` | the class path of a project that Maven or Gradle builds |
//! | `class_origin` | which file a loaded class is from, where several have its name |
//! | `class_file` | what a class file says of itself |
//! | `java_program` | the process of a launched program |
//! | `session` | the tables of an active session |
//! | `dap_requests` | the requests of DAP |
//! | `evaluation`, `completions` | requests that evaluate; what a text may go on with |
//! | `stops` | from events of the virtual machine to stops |
//! | `step_targets`, `smart_step` | steps into a chosen call: the requests, and when such a step ends |
//! | `monitor_events`, `captured_events` | threads, classes, monitors: events that stop nothing; which are captured |
//! | `resume` | continue, step, pause |
//! | `thread_suspends`, `thread_control` | how often each thread is suspended and why; the commands that follow, and calls |
//! | `thread_ids` | the ids of threads |
//! | `breakpoints`, `breakpoint_table`, `stop_conditions` | breakpoints: their binding, their table, their conditions |
//! | `line_code`, `line_entries`, `bytecode`, `lambdas` | which code of a line a breakpoint is bound to: where the line begins, which lambda |
//! | `class_age` | where class files lie, and whether one is older than its source |
//! | `hot_swap`, `code_origin` | changed classes are redefined while the program runs; where its code has come from |
//! | `old_frames` | frames of code that was redefined: what was read of it before |
//! | `blocking` | work on files, off the runtime's threads |
//! | `frames`, `known_frames`, `variables` | threads, frames; frames that were read already; variables, page by page |
//! | `value_text`, `collections`, `collection_pages` | values as people read them, without running code |
//! | `expression` | Java expressions |
//! | `java_vm`, `signatures`, `sources` | classes; names of types; source files |
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

mod attach;
mod blocking;
mod breakpoint_table;
mod breakpoints;
mod bytecode;
mod captured_events;
mod class_age;
mod class_file;
mod class_origin;
mod code_origin;
mod collection_pages;
mod collections;
mod compile_cache;
mod compile_inputs;
mod compiled_source;
mod completions;
mod dap_requests;
mod evaluation;
mod expression;
mod frames;
#[cfg(test)]
mod hostile_input;
mod hot_swap;
mod java_backend;
mod java_program;
mod java_vm;
mod known_frames;
mod lambdas;
mod launch_arguments;
mod line_code;
mod line_entries;
mod maven_pom;
#[cfg(test)]
mod model_tests;
mod monitor_events;
mod old_frames;
mod project_modules;
mod resume;
#[cfg(test)]
mod scripted_vm;
mod session;
mod signatures;
#[cfg(test)]
mod small_stack;
mod smart_step;
mod sources;
mod step_targets;
mod stop_conditions;
mod stops;
mod thread_control;
mod thread_ids;
mod thread_suspends;
mod value_text;
mod variables;

pub use java_backend::serve_java;
