//! The wire API, declared once: each operation's name, parameters, result and help text.
//!
//! The JSON-RPC method `window/status`, the MCP tool `window_status` and the command line `tether status` all come
//! from one row of the operation table. An operation is added as one type with its parameters, one row in
//! `operation_table`, and one handler in the supervisor. Does not depend on how an operation is done.
//!
//! | file | owns |
//! |---|---|
//! | `operation_table` | the rows |
//! | `operation` | what a row holds |
//! | `window`, `page`, `page_input`, `page_network`, `page_control` | operations on the window and on its page |
//! | `window_bridge` | operations that the extension inside the window carries out |
//! | `debug` | operations on debug sessions |
//! | `extension_tests` | the operation that runs the tests of a VS Code extension |
//! | `protocol` | what passes beside the operations: the first message, notifications |

pub mod debug;
pub mod extension_tests;
pub mod operation;
pub mod operation_table;
pub mod page;
pub mod page_control;
pub mod page_input;
pub mod page_network;
pub mod protocol;
pub mod timeline;
pub mod window;
pub mod window_bridge;

pub use operation::{Operation, OperationEffect, OperationGroup, OperationParams};
pub(crate) use operation_table::for_each_operation;
pub use operation_table::{OPERATIONS, find_operation};
