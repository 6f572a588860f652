//! What a user wants to be debugged, in words that no adapter has.
//!
//! Must not know any adapter.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::dap::types::Fields;

/// One program to be launched or attached to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    pub what: What,
    pub args: Vec<String>,
    /// Absolute.
    pub cwd: PathBuf,
    /// On top of our own environment; `None` takes a variable away.
    pub env: BTreeMap<String, Option<String>>,
    pub stop_on_entry: bool,
    /// The keys of a configuration of launch.json, variables resolved, as they are: they win over what we would say.
    pub fields: Fields,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum What {
    /// Nothing but what the fields say.
    #[default]
    Fields,
    /// A source or an executable; absolute.
    Program(PathBuf),
    /// A module that the interpreter finds by itself (`python -m`).
    Module(String),
    /// Something that listens for debuggers.
    Listening(Address),
    /// A running process.
    Pid(u32),
    /// A page whose address begins so, in a browser that listens on the port.
    Page { url: String, port: u16 },
}

/// Where something listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub host: String,
    pub port: u16,
}
