//! The doors to the supervisor. They translate, and never decide; they hold no state that matters.
//!
//! - `cli`: the command line
//! - `machine`: what of the command line needs no supervisor: tools, the doctor, the manual
//! - `configuration`, `consent`: what would run, and the user's consent to it
//! - `doctor`: what the doctor found, as text or JSON
//! - `manual`: completions and manual pages
//! - `mcp`: MCP on stdio, for agents; `stdio` is its transport
//! - `render`: results as short text, for both
//! - `words`: the operations as subcommands
//! - `workspace`: which workspace is meant

pub mod cli;
pub mod mcp;

mod configuration;
mod consent;
mod doctor;
mod machine;
mod manual;
mod render;
mod stdio;
mod words;
mod workspace;
