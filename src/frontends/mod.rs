//! The front ends of the supervisor. They translate and decide nothing; they hold no state that matters.
//!
//! - `cli`: the command line
//! - `mcp`: MCP on stdio, for agents
//! - `editor`: JSON-RPC on stdio, for editors
//! - `dap`, `dap_route`: DAP on stdio, for editors; where an editor's session lives
//! - `repeated_call`: a call that goes on over the next supervisor
//! - `render`: results as short text, for both
//! - `doctor`: findings of the doctor, as text or JSON
//! - `stdio_lines`: the lines of messages on stdio
//! - `workspace`: which workspace is meant
//! - `wrap`: an MCP proxy that restarts its server behind the client

mod chrome_trace;
pub mod cli;
pub mod mcp;

mod dap;
mod dap_route;
mod doctor;
mod editor;
mod render;
mod repeated_call;
mod stdio_lines;
mod workspace;
mod wrap;
