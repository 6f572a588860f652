//! The doors to the supervisor. They translate, and never decide; they hold no state that matters.
//!
//! - `cli`: the command line
//! - `machine`: what of the command line needs no supervisor: tools, the doctor
//! - `doctor`: what the doctor found, as text or JSON
//! - `mcp`: MCP on stdio, for agents; `stdio` is its transport
//! - `render`: results as short text, for both
//! - `workspace`: which workspace is meant

pub mod cli;
pub mod mcp;

mod doctor;
mod machine;
mod render;
mod stdio;
mod workspace;
