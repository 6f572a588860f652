//! The operations on debug sessions: launch, attach, probe, status, waiting for a stop, stop.
//!
//! | file | owns |
//! |---|---|
//! | `breakpoints` | breakpoints on lines and functions, exceptions, watchpoints |
//! | `control` | continue, pause, step, run to a line |
//! | `inspect` | threads' frames, variables, sources, output |
//! | `results` | results that several operations share: a stop, its snapshot, the state of a session |
//! | `values` | values that every front end reads alike: `app.py:22`, seconds, `NAME=VALUE` |
//!
//! Fields are camelCase; times are epoch ms; durations in results end in `Ms`, those in parameters are seconds;
//! lines and columns are 1-based. `sessionId` may be left out while exactly one session is active. Paths are relative
//! to the workspace, or absolute; in results they are relative where they are in it. None of these operations
//! relaunches the window.

pub mod breakpoints;
pub mod control;
pub mod inspect;
pub mod results;
pub mod values;

use std::path::Path;

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::breakpoints::LaunchBreakpoint;
use self::values::{Seconds, env_variables, make_absolute, parse_env_variable};

/// The default timeout of `wait_for_stop`, `debug/run_to` and `debug/probe`.
pub const DEFAULT_STOP_TIMEOUT: Seconds = Seconds::of(30);
/// The default timeout of `debug/step` and `debug/pause`. Other operations do not wait by default.
pub const DEFAULT_STEP_TIMEOUT: Seconds = Seconds::of(5);
/// The default size of a stop's snapshot, in tokens of about four bytes. 0: no snapshot.
pub const DEFAULT_SNAPSHOT_TOKENS: u32 = 1500;

/// Start a program, test or launch.json configuration under the debugger.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugLaunchParams {
    /// Source file or executable. With `config`: the current file. With `test`: the file of the test.
    pub program: Option<String>,
    /// Several programs to debug as one session, each without arguments.
    #[arg(long, value_name = "PROGRAM", num_args = 1..)]
    pub programs: Option<Vec<String>>,
    /// Name of a launch.json configuration or compound, or label of an extension's tests.
    #[arg(long, value_name = "NAME")]
    pub config: Option<String>,
    /// Test to run, by the name that its runner prints, such as a pytest node id; or a file with tests.
    #[arg(long, value_name = "NAME")]
    pub test: Option<String>,
    /// Id of a session to launch again, with its earlier parameters.
    #[arg(long, value_name = "SESSION")]
    pub restart: Option<String>,
    /// With `restart`: swap changed Java code into the running program instead.
    #[arg(long, num_args = 0, default_missing_value = "true", requires = "restart")]
    pub swap: Option<bool>,
    /// Language, if the program's name does not show it: python, javascript, ruby, go, rust, c, …
    #[arg(long)]
    pub language: Option<String>,
    /// Debug adapter to use when several fit: a name that `tether adapters` lists.
    #[arg(long, value_name = "NAME")]
    pub adapter: Option<String>,
    /// Arguments of the program.
    #[arg(last = true)]
    pub args: Option<Vec<String>>,
    /// Working directory (default: the workspace; for a test, that of its runner).
    #[arg(
        long,
        value_name = "DIR",
        help = "Working directory [default: the current folder; for a test, that of its runner]"
    )]
    pub cwd: Option<String>,
    // The caller's current folder, in which a test is looked for: the command line's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    #[arg(skip)]
    pub folder: Option<String>,
    // The tests of an extension are meant, also without a name: the command line's `tether test --debug`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    #[arg(skip)]
    pub extension_tests: Option<bool>,
    /// Environment variables to set, as NAME=VALUE. NAME alone removes one.
    #[serde(default, with = "env_variables", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "env_variables::schema")]
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_env_variable, help = "Environment variable to set; may be repeated")]
    pub env: Vec<(String, Option<String>)>,
    /// Stop before the first line.
    #[arg(long, num_args = 0, default_missing_value = "true")]
    pub stop_on_entry: Option<bool>,
    /// Stop at uncaught exceptions (default true, unless `breakpoint_exceptions` was used).
    #[arg(
        long,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        help = "Stop at exceptions that nothing catches, unless `tether break exceptions` has chosen otherwise"
    )]
    pub stop_on_uncaught: Option<bool>,
    /// Of an extension's tests: stop where one fails.
    #[arg(
        long,
        num_args = 0,
        default_missing_value = "true",
        help = "With the tests of an extension: stop where one fails"
    )]
    pub stop_on_failure: Option<bool>,
    /// Breakpoints to set first, such as ["app.py:22"], or objects as for `breakpoint_set`.
    #[arg(
        long = "break",
        short,
        value_name = "FILE:LINE",
        help = "Breakpoint to set first, such as app.py:22; may be repeated"
    )]
    pub breakpoints: Option<Vec<LaunchBreakpoint>>,
    /// Seconds to wait for a stop. Without it, the call returns at once.
    #[arg(long, value_name = "SECONDS")]
    pub wait: Option<Seconds>,
    /// Size limit of the snapshot, in tokens (default 1500; 0: none).
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u32>,
}

impl DebugLaunchParams {
    pub(crate) fn make_paths_absolute(&mut self, folder: &Path) {
        let programs = self.program.iter_mut().chain(self.programs.iter_mut().flatten());
        let files = self.breakpoints.iter_mut().flatten().filter_map(|breakpoint| breakpoint.0.file.as_mut());
        make_absolute(programs.chain(&mut self.cwd).chain(files), folder);
        let current = Some(folder.to_string_lossy().into_owned());
        let is_project = self.program.as_ref().is_some_and(|program| program.ends_with("proj"));
        // A configuration has a folder of its own, and so have a test, a session that is restarted and a .NET project.
        match (&self.test, &self.config, &self.restart) {
            (Some(_), ..) => self.folder = current,
            (None, None, None) if self.cwd.is_none() && !is_project => self.cwd = current,
            _ => {}
        }
    }
}

/// Attach to a running program: by port, process id, page URL, window part, server or launch.json configuration.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugAttachParams {
    /// Port on which the program listens for debuggers.
    pub port: Option<u16>,
    /// Host of the port (default: this machine, your own listeners only).
    #[arg(long)]
    pub host: Option<String>,
    /// Process id. With `config`: the answer to its process picker.
    #[arg(long)]
    pub pid: Option<u32>,
    /// Core dump to read, of a C, C++, Rust or Go program.
    #[arg(long, value_name = "FILE")]
    pub core: Option<String>,
    /// With `core`: its executable, if that has moved.
    #[arg(long, value_name = "FILE", requires = "core")]
    pub program: Option<String>,
    /// URL of a page in the browser that listens on `port`.
    #[arg(long)]
    pub url: Option<String>,
    /// Part of the tethered window. The session follows it when the window is replaced.
    #[arg(long, value_enum)]
    pub window: Option<WindowPart>,
    /// Name of an MCP server that `tether wrap --debug` runs.
    #[arg(long, value_name = "NAME")]
    pub server: Option<String>,
    /// Folders that the program has elsewhere, such as [".=/app"] in a container.
    #[arg(
        long = "path",
        value_name = "LOCAL=REMOTE",
        help = "Folder that the program has elsewhere, such as .=/app; may be repeated (default, with a port: [[paths]] of devtools.toml)"
    )]
    pub paths: Option<Vec<String>>,
    /// Language of the program, if it is not clear: python, javascript, ruby, go, rust, c, …
    #[arg(long)]
    pub language: Option<String>,
    /// Debug adapter to use when several fit: a name that `tether adapters` lists.
    #[arg(long, value_name = "NAME")]
    pub adapter: Option<String>,
    /// Name of a launch.json configuration.
    #[arg(long, value_name = "NAME")]
    pub config: Option<String>,
    /// Seconds to wait for a stop. Without it, the call returns at once.
    #[arg(long, value_name = "SECONDS")]
    pub wait: Option<Seconds>,
    /// Size limit of the snapshot, in tokens (default 1500; 0: none).
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u32>,
}

impl DebugAttachParams {
    pub(crate) fn make_paths_absolute(&mut self, folder: &Path) {
        make_absolute(self.core.iter_mut().chain(&mut self.program), folder);
        for map in self.paths.iter_mut().flatten() {
            if let Some((local, remote)) = map.split_once('=') {
                *map = format!("{}={remote}", folder.join(local).display());
            }
        }
    }
}

// The part of the window to attach to. (No docs, here and on the variants: they would make the schema longer.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum WindowPart {
    Page,
    #[value(alias = "extensionHost")]
    ExtensionHost,
}

/// Show the state, stop reason, threads and exception of a session, or list all sessions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugStatusParams {
    /// Session id (default: the only active session, or all sessions).
    #[arg(value_name = "SESSION")]
    pub session_id: Option<String>,
}

/// Wait until a program stops or ends. Returns at once if it already has. A timeout is not an error.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WaitForStopParams {
    /// Wait for this session only (default: any session).
    #[arg(long = "session", value_name = "ID")]
    pub session_id: Option<String>,
    /// Seconds to wait (default 30).
    #[arg(value_name = "SECONDS")]
    pub timeout: Option<Seconds>,
    // The same on the command line, as an option that other commands have, too.
    #[serde(skip)]
    #[schemars(skip)]
    #[arg(
        long = "timeout",
        value_name = "SECONDS",
        hide = true,
        conflicts_with = "timeout",
        help = "Seconds to wait [default: 30]"
    )]
    pub timeout_option: Option<Seconds>,
    /// Size limit of the snapshot, in tokens (default 1500; 0: none).
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u32>,
}

/// End a session and the program that it launched. A program that it attached to keeps running.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugStopParams {
    /// Session id. Needed only when several are active.
    #[arg(value_name = "SESSION")]
    pub session_id: Option<String>,
    /// Let the launched program continue.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub detach: Option<bool>,
}

/// Run a program to a line, show the frames, locals, source and output there, and end it. With `max`, a table of each hit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugProbeParams {
    /// Line to run to, such as "app.py:22".
    #[arg(value_name = "FILE:LINE")]
    pub at: String,
    /// Program to run (default: the file in `at`).
    pub program: Option<String>,
    /// Arguments of the program.
    #[arg(last = true)]
    pub args: Option<Vec<String>>,
    /// Working directory (default: the workspace).
    #[arg(long, value_name = "DIR", help = "Working directory [default: the current folder]")]
    pub cwd: Option<String>,
    /// Further lines whose hits to collect.
    #[arg(long, value_name = "FILE:LINE", help = "Further line whose hits to collect; may be repeated")]
    pub also: Option<Vec<String>>,
    /// Hits to collect, at most (default 1; with `also` 20), as a table of the expressions or locals.
    #[arg(long, value_name = "HITS")]
    pub max: Option<u32>,
    /// Expressions to evaluate at the line.
    #[arg(long = "expr", short, value_name = "EXPR", help = "Expression to evaluate at the line; may be repeated")]
    pub expressions: Option<Vec<String>>,
    /// Seconds to wait for the line, or for all hits (default 30).
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<Seconds>,
    /// Size limit of the snapshot, in tokens (default 1500).
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u32>,
}

impl DebugProbeParams {
    pub(crate) fn make_paths_absolute(&mut self, folder: &Path) {
        let lines = [&mut self.at].into_iter().chain(self.also.iter_mut().flatten());
        make_absolute(lines.chain(&mut self.program).chain(&mut self.cwd), folder);
        self.cwd.get_or_insert_with(|| folder.to_string_lossy().into_owned());
    }
}
