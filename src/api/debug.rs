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

use self::values::{Seconds, env_object, make_absolute, parse_env_variable};

/// The default timeout of `wait_for_stop`, `debug/run_to` and `debug/probe`.
pub const DEFAULT_STOP_TIMEOUT: Seconds = Seconds::of(30);
/// The default timeout of `debug/step` and `debug/pause`. Other operations do not wait by default.
pub const DEFAULT_STEP_TIMEOUT: Seconds = Seconds::of(5);
/// The default size of a stop's snapshot, in tokens of about four bytes. 0: no snapshot.
pub const DEFAULT_SNAPSHOT_TOKENS: u32 = 1500;

/// Launch a program, launch.json config or test under the debugger; it may run on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugLaunchParams {
    // No docs for the schema where names say it; the command line has its own.
    #[arg(help = "A source file or an executable; with a configuration, the current file; with a test, its file")]
    pub program: Option<String>,
    /// Several, as one session.
    #[arg(long, value_name = "PROGRAM", num_args = 1..)]
    pub programs: Option<Vec<String>>,
    #[arg(long, value_name = "NAME", help = "A configuration of launch.json")]
    pub config: Option<String>,
    /// Pytest node id, or a cargo, go, node, vitest, jest test.
    #[arg(long, value_name = "NAME")]
    pub test: Option<String>,
    /// A session to launch anew.
    #[arg(long, value_name = "SESSION")]
    pub restart: Option<String>,
    /// Swap changed Java code into it instead.
    #[arg(long, num_args = 0, default_missing_value = "true", requires = "restart")]
    pub swap: Option<bool>,
    #[arg(long, help = "When the program's name does not show it: python, javascript, ruby, go, rust, c, …")]
    pub language: Option<String>,
    #[arg(long, value_name = "NAME", help = "One of `tether adapters`, when several fit")]
    pub adapter: Option<String>,
    #[arg(last = true, help = "Arguments of the program")]
    pub args: Option<Vec<String>>,
    #[arg(
        long,
        value_name = "DIR",
        help = "Where it runs [default: the current folder; a test where its runner would]"
    )]
    pub cwd: Option<String>,
    // The caller's current folder, in which a test is looked for: the command line's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    #[arg(skip)]
    pub folder: Option<String>,
    // As in launch.json: `{"NAME": "value", "OTHER": null}`, where null removes the variable.
    #[serde(default, with = "env_object", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "env_object::schema")]
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_env_variable, help = "Added to its environment")]
    pub env: Vec<(String, Option<String>)>,
    #[arg(long, num_args = 0, default_missing_value = "true", help = "Stop before its first line")]
    pub stop_on_entry: Option<bool>,
    /// ["app.py:22"]
    #[arg(long = "break", short, value_name = "FILE:LINE", help = "Set a breakpoint first")]
    pub breakpoints: Option<Vec<String>>,
    /// Seconds to wait for a stop.
    #[arg(long, value_name = "SECONDS")]
    pub wait: Option<Seconds>,
    #[arg(long, value_name = "TOKENS", help = "How long a stop's snapshot may be [default: 1500]")]
    pub budget: Option<u32>,
}

impl DebugLaunchParams {
    pub(crate) fn make_paths_absolute(&mut self, folder: &Path) {
        let programs = self.program.iter_mut().chain(self.programs.iter_mut().flatten());
        make_absolute(programs.chain(&mut self.cwd).chain(self.breakpoints.iter_mut().flatten()), folder);
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

/// Attach to a debugger's port, a process, a page's url, the window, or by a launch.json config.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugAttachParams {
    #[arg(help = "Where the program listens for debuggers")]
    pub port: Option<u16>,
    #[arg(long, help = "Default: this machine, and a listener of your own user only")]
    pub host: Option<String>,
    #[arg(long, help = "A running process; with a configuration, the one that it picks")]
    pub pid: Option<u32>,
    #[arg(long, help = "A page of the browser that listens on the port")]
    pub url: Option<String>,
    #[arg(long, value_enum, help = "A part of the tethered window; the session follows it over relaunches")]
    pub window: Option<WindowPart>,
    #[arg(long, help = "As for launch")]
    pub language: Option<String>,
    #[arg(long, value_name = "NAME", help = "As for launch")]
    pub adapter: Option<String>,
    #[arg(long, value_name = "NAME", help = "A configuration of launch.json")]
    pub config: Option<String>,
    #[arg(long, value_name = "SECONDS", help = "Wait for a stop")]
    pub wait: Option<Seconds>,
    #[arg(long, value_name = "TOKENS", help = "As for launch")]
    pub budget: Option<u32>,
}

// The part of the window to attach to. (No docs, here and on the variants: they would make the schema longer.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum WindowPart {
    Page,
    #[value(alias = "extensionHost")]
    ExtensionHost,
}

/// Show a session's state, stop reason, threads, exception; without an id, all sessions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugStatusParams {
    #[arg(value_name = "SESSION", help = "Only this session")]
    pub session_id: Option<String>,
}

/// Wait until the program stops or ends (without an id: any session); returns at once if it has. A timeout is no error.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WaitForStopParams {
    #[arg(long = "session", value_name = "ID", help = "Only this session [default: whichever stops first]")]
    pub session_id: Option<String>,
    /// Seconds (default 30).
    #[arg(value_name = "SECONDS")]
    pub timeout: Option<Seconds>,
    #[arg(long, value_name = "TOKENS", help = "As for launch")]
    pub budget: Option<u32>,
}

/// End a session and the program that it launched; one that was attached to runs on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugStopParams {
    #[arg(value_name = "SESSION", help = "Which session, when there are several")]
    pub session_id: Option<String>,
    /// Let the program run on.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub detach: Option<bool>,
}

/// Run a program to a line, show frames, locals, source and output there, and end it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebugProbeParams {
    /// "app.py:22"
    #[arg(value_name = "FILE:LINE")]
    pub at: String,
    /// Default: the file.
    pub program: Option<String>,
    #[arg(last = true, help = "Arguments of the program")]
    pub args: Option<Vec<String>>,
    #[arg(long, value_name = "DIR", help = "Where it runs [default: the current folder]")]
    pub cwd: Option<String>,
    #[arg(long = "expr", short, value_name = "EXPR", help = "Evaluated there")]
    pub expressions: Option<Vec<String>>,
    /// Seconds (default 30).
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<Seconds>,
    #[arg(long, value_name = "TOKENS", help = "As for launch")]
    pub budget: Option<u32>,
}

impl DebugProbeParams {
    pub(crate) fn make_paths_absolute(&mut self, folder: &Path) {
        make_absolute([&mut self.at].into_iter().chain(&mut self.program).chain(&mut self.cwd), folder);
        self.cwd.get_or_insert_with(|| folder.to_string_lossy().into_owned());
    }
}
