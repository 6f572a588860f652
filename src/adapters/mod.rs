//! The table of adapters: which there are, what each debugs, how it is found, started and asked.
//!
//! | file | owns |
//! |---|---|
//! | `wanted` | what a user wants to be debugged, in words that no adapter has |
//! | `begin` | how a conversation begins: the process, the connections, the first request |
//!
//! A row is plain data and two pure functions. Must not know sessions.

mod begin;
mod wanted;

pub use begin::{Begin, Program, Reach};
pub use wanted::{Address, Wanted, What};

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::dap;
use crate::error::Result;

/// Opens another connection to the same adapter, within a deadline of its own.
pub type Dial = Arc<dyn Fn() -> BoxFuture<'static, Result<dap::Connection, dap::Error>> + Send + Sync>;

/// One row of the table.
pub struct Adapter {
    /// As `tether adapters` lists it, and as a caller names it.
    pub name: &'static str,
    /// What `initialize` calls it.
    pub id: &'static str,
    /// The languages that a caller may name, lower case.
    pub languages: &'static [&'static str],
    /// Extensions of the programs and sources that it debugs, without the dot.
    pub extensions: &'static [&'static str],
    /// The `type`s of launch.json that it serves.
    pub types: &'static [&'static str],
    pub quirks: Quirks,
    /// Where it lies. The error names every place that was looked at, and the command that installs it.
    pub find: fn(&Search) -> Result<Found>,
    /// How a conversation with it begins.
    pub begin: fn(&Found, &Wanted) -> Result<Begin>,
}

/// Where adapters are looked for.
#[derive(Clone, Debug)]
pub struct Search {
    /// The environment's `PATH`, `VIRTUAL_ENV`, `HOME`, …
    pub env: std::collections::BTreeMap<std::ffi::OsString, std::ffi::OsString>,
    /// Its virtual environment and its `node_modules` come before the machine's.
    pub workspace: PathBuf,
    /// The user's own choice, which nothing comes before.
    pub set: Option<PathBuf>,
}

/// An adapter that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What is started, or loaded by an interpreter.
    pub path: PathBuf,
    /// The interpreter, where it needs one.
    pub interpreter: Option<PathBuf>,
    /// In a few words: `PATH`, `the workspace's .venv`, `tether adapters install`, `mason`, …
    pub place: String,
}

/// Where an adapter differs from the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// A first stop that nobody asked for comes before everything else, and is gone on from (rdbg).
    pub opens_with_a_pause: bool,
    /// Its connection ends when the program does, without `terminated` (rdbg).
    pub closing_is_the_end: bool,
}
