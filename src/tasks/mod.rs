//! The commands around a window and a debug session: the steps of a build, tasks before and after a session, and servers
//! that run on while something uses them.
//!
//! | file | owns |
//! |---|---|
//! | `task_runner` | runs the steps of a build, or the tasks around a debug session |
//! | `background_tasks` | tasks that run on, such as dev servers, while a window or a debug session uses them |

pub mod background_tasks;
pub mod task_runner;
