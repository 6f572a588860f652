//! The requests, responses and events that are used, as typed structs; nothing else of the protocol.
//!
//! Arguments are called `XArguments`, response bodies `XResponse`, event bodies `XEvent`; the other structs have DAP's
//! name, with `Dap` before it where that is too general. Fields have DAP's names. A field that may be missing is read
//! as empty, also where a peer sends `null`; empty ones are not sent. Unknown fields are ignored: what forwards a
//! message uses its raw body.
//!
//! <https://microsoft.github.io/debug-adapter-protocol/specification>

mod events;
mod protocol;
mod requests;
mod shapes;
#[cfg(test)]
mod tests;

pub use events::*;
pub use protocol::{DapEvent, DapRequest, EmptyResponse, Fields, set_field};
pub use requests::*;
pub use shapes::*;
