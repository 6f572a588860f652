//! The handlers of the operations: they convert parameters, call `window` or `debug`, and convert the outcome.
//!
//! | file | owns |
//! |---|---|
//! | `window` | the window: its status, start, stop, restart and changes |
//! | `page`, `page_actions` | the window's page: evaluate, screenshot, snapshot, input, console |
//! | `page_control` | its tabs, what is emulated in them, their storage |
//! | `page_network` | the requests of its page, and the rules for them |
//! | `window_bridge` | what the extension inside the window carries out |
//! | `window_stops` | programs of the window that are stopped in the debugger |
//! | `debug` | debug sessions |
//! | `extension_tests` | the tests of a VS Code extension |
//! | `timeline` | what has happened, and waiting for what happens next |
//!
//! Does not decide anything about windows or sessions.

pub(super) mod debug;
pub(super) mod extension_tests;
mod page;
mod page_actions;
mod page_control;
mod page_network;
mod timeline;
pub(super) mod window;
mod window_bridge;
mod window_stops;
