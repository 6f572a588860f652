//! The window: the long-lived program under development, from its build to the clean-up after its exit.
//!
//! | file | owns |
//! |---|---|
//! | `window_handle` | [`Window`], the supervisor's handle: start, stop, restart, status; refreshes a stale window |
//! | `page_requests` | its recorded requests in full, the rules for them, what is emulated |
//! | `page_operations` | the page of an up-to-date window, and its history |
//! | `window_feed` | notifications of changes of the state and of tracked files |
//! | `caller` | the caller of an operation; messages to the actor |
//! | `command_requests` | sends commands to the actor, and waits for their results |
//! | `config_selection` | the configuration that a start selects, while it runs |
//! | `actor` | the task that owns the window; `state` has its transitions, `operations` does the work |
//! | `waiting_callers` | who waits for the running operation: it is shared |
//! | `operation_results` | what the results of the operations lead to; late ones are dropped |
//! | `search` | the search for the window of an earlier supervisor |
//! | `context` | the state that these share: the published state, the trackers of the window's files |
//! | `running_calls` | the calls that use the window, for the report of an exit |
//! | `server_updates` | the windows of dev servers, which update their page themselves |
//! | `window_number` | the number of a window among all windows of a workspace |
//! | `crash_loop` | the pause after repeated crashes |
//! | `build`, `repeated_builds` | the build; whether it must be run again because files changed meanwhile |
//! | `build_checks` | type checkers and linters of a build, which report after it |
//! | `unattended_build` | a build whose callers have left |
//! | `held_host` | an extension host that waits for the debug sessions that follow it |
//! | `host_restart` | following an extension host that was replaced in the window itself |
//! | `live_window`, `window_exit` | a running window and its connections; how it exited |
//! | `test_host` | an extension host that runs tests and ends, beside the window |
//! | `launch`, `launch_id` | launching each kind of window; the id and the paths of a launch |
//! | `former_window` | the window before, started again after its replacement could not be launched |
//! | `recorded_launch` | launches a window while the old one closes, and records both |
//! | `pending_launch` | the record of a window that is being launched |
//! | `session_file` | `.devtools/session.json`, with which a new supervisor finds the window again |
//! | `identity` | verification that a session file describes our own window |
//! | `page` | the window's page over CDP |
//! | `refresh` | the ladder: how a window is made fresh without a relaunch |
//! | `token_redaction` | what is not shown of URLs |
//! | `cleanup` | closing a window, and removing its processes and files |
//!
//! Does not depend on debug sessions, front ends or the wire API.

pub mod cleanup;
pub mod identity;
pub mod launch;
pub mod launch_id;
pub mod page;
pub mod refresh;
pub mod session_file;
pub mod test_host;

mod actor;
mod build;
mod build_checks;
mod caller;
mod command_requests;
mod config_selection;
mod context;
mod crash_loop;
mod former_window;
mod held_host;
mod host_restart;
mod live_window;
mod operation_results;
mod operations;
mod page_operations;
mod page_requests;
mod pending_launch;
mod recorded_launch;
mod repeated_builds;
mod running_calls;
mod search;
mod server_updates;
mod state;
mod token_redaction;
mod unattended_build;
mod waiting_callers;
mod window_exit;
mod window_feed;
mod window_handle;
mod window_number;

// The types of the changed files are part of this module's interface.
pub use build::BuildSummary;
pub use build_checks::CheckSummary;
pub use caller::{Caller, OperationOutcome};
pub use context::{PublishedState, WindowPaths};
pub use held_host::HeldHost;
pub use live_window::LiveWindow;
pub use page_operations::{FreshPage, PageResult};
pub use page_requests::{
    InspectedRequest, RuleChange, change_emulation, change_rules, check_workspace_file, inspect_request,
    inspect_requests, read_file_of_workspace, save_output_file,
};
pub use window_feed::WindowFeed;

pub use running_calls::RunningCallGuard;
pub use state::WindowPhase;
pub use tether_changes::{ChangeReport, FileChange, FileChangeKind, PathExplanation};
pub use window_exit::WindowExit;
pub use window_handle::{FileChanges, StaleRefresh, Window, WindowInspection};
