//! The front ends of the supervisor. They translate and decide nothing; they hold no state that matters.
//!
//! - `cli`: the command line
//! - `mcp`: MCP on stdio, for agents
//! - `editor`: JSON-RPC on stdio, for editors
//! - `dap`: DAP on stdio, for editors
//! - `render`: results as short text, for both
//! - `doctor`: findings of the doctor, as text or JSON
//! - `workspace`: which workspace is meant

pub mod cli;
pub mod mcp;

mod dap;
mod doctor;
mod editor;
mod render;
mod workspace;
