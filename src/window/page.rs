//! Inspects and controls the window's pages over CDP: evaluate, screenshot, snapshot, input, console, network.
//!
//! ```text
//!  browser:  WebSocket of the browser ──► a flat session for each page ──► and for each iframe and worker in it
//!  Node:     WebSocket of its only target; no page, so only evaluate and console
//! ```
//! | file | defines |
//! |---|---|
//! | `page_connection` | opening, running and closing the connection |
//! | `page_client` | selecting and attaching pages; sending commands to their sessions |
//! | `page_state`, `targets`, `event_handler` | the state of the browser's targets, and the events that update it |
//! | `frame_tree`, `injected_script` | the frames of a page, and the script that runs in each |
//! | `element_refs` | refs, the names of elements |
//! | `tabs` | pages as tabs, and where each goes |
//! | `navigation` | loading a URL, setting cookies |
//! | `evaluation_place` | where an expression is evaluated: a page, a frame, an element |
//! | `page_snapshot`, `expression`, `screenshot` | the operations that inspect a page |
//! | `input_batch`, `input_action`, `element_point`, `form_input`, `mouse`, `keyboard`, `wait_condition` | the operation that acts on it |
//! | `server_updates`, `update_wait` | what a dev server has told its page; the wait for what comes of it |
//! | `page_error`, `action_error` | failures, and the user-facing errors for them |
//! | `page_settings`, `request_rules` | what is set for pages and stays set; how requests are blocked, delayed and answered |
//! | `emulation`, `page_storage` | devices, preferences and slow conditions; cookies and storage |
//! | `profile` | traces, CPU profiles and heap snapshots, summed up |
//! | `history`, `console`, `network` | the recorded console and network, over all launches |
//! | `extension_host_console` | the connection to VS Code's extension host: its console |
//! | `workbench_services` | restarting the extension hosts, through the workbench in the page |
//! | `page_reload` | loading the page anew, and the proof of it |
//! | `extension_registration` | whether that host has loaded the extensions under development |
//!
//! The operations are free functions over a [`PageClient`]. JavaScript dialogs are answered at once, as an action has
//! said before, since they block the page and all commands to it.
//!
//! Does not depend on callers or their intent, and never ends or replaces the window.

mod action_error;
mod console;
mod element_point;
mod element_refs;
mod emulation;
mod evaluation_place;
mod event_handler;
mod expression;
mod extension_host_console;
mod extension_registration;
mod form_input;
mod frame_tree;
mod history;
mod injected_script;
mod input_action;
mod input_batch;
mod keyboard;
mod mouse;
mod navigation;
mod network;
mod page_client;
mod page_connection;
mod page_error;
mod page_reload;
mod page_settings;
mod page_snapshot;
mod page_state;
mod page_storage;
mod profile;
mod request_rules;
mod screenshot;
mod server_updates;
mod tabs;
mod targets;
mod update_wait;
mod wait_condition;
mod workbench_services;

pub use self::console::{ConsoleMessage, ConsoleSource};
pub use self::emulation::emulate;
pub use self::evaluation_place::PlaceRequest;
pub use self::expression::{ExpressionResult, await_expression, evaluate_at, evaluate_on_page};
pub use self::extension_host_console::{ExtensionHostConsole, ExtensionHostInspector};
pub use self::extension_registration::ExtensionState;
pub use self::history::PageHistory;
pub use self::input_action::{ActionKind, ActionTarget, InputAction, WaitCondition};
pub use self::input_batch::{ActionOutcome, BatchOutcome, run_actions};
pub use self::navigation::{navigate_page, set_cookie};
pub use self::network::RecordedRequest;
pub use self::network::har::write_har;
pub use self::network::initiator_places::describe_initiator;
pub use self::network::request_details::{ChannelMessage, Headers, RecordedBody, RequestDetail};
pub use self::network::response_body::load_body;
pub use self::page_client::PageClient;
pub use self::page_connection::PageConnection;
pub use self::page_reload::{PageReload, reload_page};
pub use self::page_snapshot::{PageSnapshot, SnapshotRequest, take_snapshot};
pub use self::page_storage::{
    OriginDocument, StateCookie, StateItem, StorageState, WebStorage, clear_cookies, clear_origin, find_origin,
    load_state, read_cookies, read_state, set_cookie_entry,
};
pub use self::profile::{ProfileKind, ProfileOutcome, ProfileRequest, record_profile};
pub use self::request_rules::apply_rules;
pub use self::screenshot::{CapturedImage, ScreenshotRequest, capture_screenshot};
pub use self::tabs::{PageTab, TabAction, control_tab, list_tabs};
pub use self::targets::DialogAnswer;
pub use self::update_wait::{UpdateOutcome, follow_server_update};
pub use self::workbench_services::{install_workbench_script, restart_extension_hosts};
