//! The doors to the supervisor. They translate, and never decide; they hold no state that matters.
//!
//! - `cli`: the command line
//! - `machine`: what of the command line is about this machine: tools
//! - `mcp`: MCP on stdio, for agents; `stdio` is its transport
//! - `render`: results as short text, for both
//! - `workspace`: which workspace is meant

pub mod cli;
pub mod mcp;

mod machine;
mod render;
mod stdio;
mod workspace;
