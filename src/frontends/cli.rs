//! The command line: each operation of the API is a subcommand, besides those that are not operations.
//!
//! Human text by default, one object with `--json`. Exit codes are those of [`tether_base::error::ErrorKind`].

mod config_commands;
mod dap_adapters;
mod local_commands;
mod operation_options;
mod setup;
mod subcommands;
mod supervisor_commands;
mod trust;
mod watch;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anstream::eprintln;
use clap::builder::PossibleValuesParser;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use tether_base::clock::now_ms;
use tether_base::display_text::{escape_json, escape_line, escape_text};
use tether_base::error::{Error, ErrorContext, ErrorData, ErrorKind, Result};
use tether_base::sync::lock;
use tokio::sync::mpsc;

use self::dap_adapters::{OwnAdapter, serve_adapter};
use self::local_commands::LocalCommand;
use self::operation_options::{PRINT_CONFIG, TRACE, meant_operation, operation_command};
use self::setup::SetupAction;
use self::trust::TrustScope;
use super::chrome_trace::chrome_trace;
use super::mcp::ToolChoice;
use super::wrap::WrapArgs;
use super::{dap, editor, mcp, render, repeated_call, workspace, wrap};
use crate::api::debug::DebugStatusParams;
use crate::api::extension_tests::TestRunParams;
use crate::api::page::{PageEvaluateParams, PageImage};
use crate::api::protocol::{ClientCapabilities, InitializeParams, ProgressParams};
use crate::api::timeline::TimelineEvents;
use crate::api::{Operation, OperationEffect, OperationParams};
use crate::config::{MCP_CLIENTS, McpClient};
use crate::supervisor::connect::{IfNotRunning, SupervisorConnection, SupervisorPaths, connect};

/// How long a supervisor may take to read that a call is cancelled.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Keeps the window under development alive and fresh while everything around it restarts.
#[derive(Parser)]
#[command(name = "tether", version, propagate_version = true, disable_help_flag = true, disable_version_flag = true)]
struct GlobalArgs {
    /// Workspace folder [default: the nearest one upwards from the current folder]
    #[arg(long, global = true, value_name = "DIR", help_heading = GLOBAL_OPTIONS)]
    workspace: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS)]
    json: bool,
    // clap's own flags, under the same heading.
    /// Print help
    #[arg(long, short, global = true, action = clap::ArgAction::Help, help_heading = GLOBAL_OPTIONS)]
    help: Option<bool>,
    /// Print the version
    #[arg(long, short = 'V', global = true, action = clap::ArgAction::Version, help_heading = GLOBAL_OPTIONS)]
    version: Option<bool>,
}

/// The heading of the options that every command has.
const GLOBAL_OPTIONS: &str = "Global options";

// Subcommands that are not operations of the API. (No doc comment: clap would use it as the program's.)
#[derive(Subcommand)]
enum CliCommand {
    /// Serve MCP on stdin and stdout, for agents
    Mcp {
        /// Offer only some of the tools
        #[arg(long, value_enum)]
        tools: Option<ToolChoice>,
        /// Serve over HTTP instead, to several clients that have the token which it prints [default port: a free one]
        #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "0")]
        http: Option<u16>,
    },
    /// Serve JSON-RPC on stdin and stdout, for editor extensions
    Rpc,
    /// Serve DAP on stdin and stdout, for editors: launch debug sessions, or join running ones
    Dap {
        /// Serve one of tether's own debug adapters instead, without a supervisor; sessions end with the editor
        adapter: Option<OwnAdapter>,
        /// Accept connections on this port of 127.0.0.1, one after the other; 0 picks a free port and prints it
        #[arg(long, value_name = "PORT", requires = "adapter")]
        listen: Option<u16>,
        /// Ignored; for editors that start this program instead of gdb
        #[arg(short, value_name = "NAME", hide = true)]
        interpreter: Option<String>,
    },
    /// Show the commands that the workspace's files run, and record your consent
    Trust {
        /// Trust the commands of this launch.json configuration
        #[arg(long, value_name = "NAME")]
        config: Option<String>,
        /// Trust the commands that build tests before a debug session, or run the tests of an extension
        #[arg(long, conflicts_with = "config")]
        tests: bool,
        /// Trust only the interpreters and debug adapters in the workspace that debugging would run
        #[arg(long, conflicts_with_all = ["config", "tests"])]
        programs: bool,
        /// Consent without a prompt
        #[arg(long)]
        yes: bool,
    },
    /// Write a commented devtools.toml for this workspace
    Init,
    /// Print the JSON schema of devtools.toml
    Schema,
    /// Add tether to the MCP servers of a client; shows the change first
    Setup {
        /// Client to add it to
        #[arg(value_parser = PossibleValuesParser::new(MCP_CLIENTS.iter().map(|client| client.name)))]
        client: String,
        /// Take it out again
        #[arg(long)]
        remove: bool,
        /// Write the change without a prompt
        #[arg(long)]
        yes: bool,
    },
    /// End the supervisor; the window and the debug sessions stay
    Shutdown {
        /// End the debug sessions, too
        #[arg(long)]
        all: bool,
    },
    /// Replace the supervisor by one of this program; the window and the debug sessions stay
    Upgrade {
        /// Also when something is interrupted by that, such as a build
        #[arg(long)]
        now: bool,
    },
    /// Serve an MCP server on stdin and stdout, and build and restart it behind its client when its sources change
    Wrap(WrapArgs),
    /// Start the window, build and refresh it after each save, and show what happens
    Watch {
        /// Print a line for each event, also in a terminal
        #[arg(long)]
        lines: bool,
    },
    /// Print the supervisor's log
    ///
    /// Two environment variables make a supervisor record more. With DEVTETHER_LOG=debug, it logs more. With
    /// DEVTETHER_DAP_RECORD=FOLDER, it writes all messages to and from debug adapters into that folder, one file per
    /// connection. To use them, run `tether shutdown`: the next command starts a new supervisor.
    Logs {
        /// Number of lines to print, from the end
        #[arg(long, short = 'n', default_value_t = 100)]
        lines: usize,
    },
    /// Run the supervisor of a workspace (other commands start it when they need it)
    Supervise {
        /// Exit after this time without a connection, a window or a session
        #[arg(long, default_value = "10m", value_parser = humantime::parse_duration)]
        idle: Duration,
    },
    /// Host one debug session (the supervisor starts it)
    #[command(hide = true)]
    SessionHost {
        /// The supervisor's state folder
        #[arg(long, value_name = "DIR")]
        state: PathBuf,
        /// Where to listen
        #[arg(long, value_name = "FILE")]
        socket: PathBuf,
        /// The launch id of the session
        #[arg(long, value_name = "ID")]
        launch_id: String,
    },
    #[command(flatten)]
    Machine(LocalCommand),
}

/// The whole command line as clap sees it.
pub fn tether_command() -> clap::Command {
    CliCommand::augment_subcommands(subcommands::add_operations(command_without_words(), operation_command))
}

fn command_without_words() -> clap::Command {
    GlobalArgs::command().subcommand_required(true).arg_required_else_help(true)
}

/// As much of the command line as these arguments need: making the rest takes half a millisecond of each start.
fn command_for(arguments: &[OsString]) -> clap::Command {
    match arguments.get(1).and_then(|word| word.to_str()) {
        Some(word) if CliCommand::has_subcommand(word) => CliCommand::augment_subcommands(command_without_words()),
        Some(word) if subcommands::is_operation_word(word) => {
            subcommands::add_operations_of(word, command_without_words(), operation_command)
        }
        // A global option, help, or an error, which may suggest any of them.
        _ => tether_command(),
    }
}

/// The processes that stay: front ends do not depend on them, so `main` passes them in.
pub struct Daemons {
    /// Runs the supervisor of a workspace with its idle time.
    pub supervise: fn(&Path, Duration) -> Result<()>,
    /// Hosts a debug session: its workspace, the supervisor's state folder, where to listen, its launch id.
    pub host_session: fn(&Path, &Path, &Path, &str) -> Result<()>,
}

/// Runs one command line; returns the exit code.
pub fn run_command_line(arguments: impl IntoIterator<Item = OsString>, daemons: &Daemons) -> u8 {
    let arguments = Vec::from_iter(arguments);
    let matches = match command_for(&arguments).try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) => {
            print_usage(&arguments, &error);
            return if error.use_stderr() { ErrorKind::Usage.exit_code() } else { 0 };
        }
    };
    let Ok(common) = GlobalArgs::from_arg_matches(&matches) else { return ErrorKind::Usage.exit_code() };
    match run_command(&common, &matches, daemons) {
        Ok(code) => code,
        Err(error) => {
            print_error(&error, common.json);
            error.kind.exit_code()
        }
    }
}

/// Help, a version, or an error. An error quotes the arguments, which may be names of files: it is made of escaped ones.
fn print_usage(arguments: &[OsString], error: &clap::Error) {
    let escaped = arguments.iter().map(|argument| escape_line(&argument.to_string_lossy()));
    let _ = match tether_command().try_get_matches_from(escaped) {
        Err(escaped) => escaped.print(),
        Ok(_) => writeln!(anstream::stderr(), "{}", escape_text(&error.render().to_string())),
    };
}

fn print_error(error: &Error, json: bool) {
    if json {
        let object = serde_json::json!({ "error": ErrorData::from(error) });
        let _ = writeln!(std::io::stdout(), "{}", escape_json(&object.to_string()));
        return;
    }
    let red = anstyle::AnsiColor::Red.on_default().effects(anstyle::Effects::BOLD);
    eprintln!("{red}error{red:#}: {}", error);
}

fn run_command(common: &GlobalArgs, matches: &ArgMatches, daemons: &Daemons) -> Result<u8> {
    let workspace = workspace::find_workspace_here(common.workspace.as_deref())?;
    if let Some((operation, below)) = subcommands::find_selected(matches)? {
        return block_on(run_operation(common, &workspace, operation, below));
    }
    let done = match CliCommand::from_arg_matches(matches) {
        Ok(CliCommand::Machine(what)) => {
            return block_on(local_commands::run_local(what, tether_command(), &workspace, common.json));
        }
        Ok(CliCommand::Mcp { tools, http: None }) => block_on(mcp::serve_mcp(workspace, tools.into())),
        Ok(CliCommand::Mcp { tools, http: Some(port) }) => {
            block_on(mcp::serve_http(workspace, tools.into(), port, common.json))
        }
        Ok(CliCommand::Rpc) => block_on(editor::serve_editor(workspace)),
        Ok(CliCommand::Dap { adapter: Some(adapter), listen, .. }) => return block_on(serve_adapter(adapter, listen)),
        Ok(CliCommand::Dap { adapter: None, .. }) => block_on(dap::serve_dap(workspace)),
        Ok(CliCommand::Trust { config, tests, programs, yes }) => {
            let scope = TrustScope { config: config.as_deref(), tests, programs };
            trust::trust_commands(&canonical_workspace(&workspace)?, scope, yes, common.json)
        }
        Ok(CliCommand::Init) => {
            print_text(config_commands::write_settings(&canonical_workspace(&workspace)?, common.json))
        }
        Ok(CliCommand::Schema) => print_text(config_commands::settings_schema()),
        Ok(CliCommand::Setup { client, remove, yes }) => {
            let client =
                McpClient::find(&client).ok_or_else(|| Error::usage(format!("there is no client {client}")))?;
            setup::set_up_client(client, &canonical_workspace(&workspace)?, SetupAction { remove, yes }, common.json)
        }
        Ok(CliCommand::Shutdown { all }) => {
            block_on(supervisor_commands::shut_down_supervisor(common, &workspace, all))
        }
        Ok(CliCommand::Upgrade { now }) => block_on(supervisor_commands::upgrade_supervisor(common, &workspace, now)),
        Ok(CliCommand::Wrap(args)) => block_on(wrap::serve_wrap(workspace, args)),
        Ok(CliCommand::Watch { lines }) => block_on(watch::watch_workspace(common, &workspace, lines)),
        Ok(CliCommand::Logs { lines }) => supervisor_commands::print_log(common, &workspace, lines),
        Ok(CliCommand::Supervise { idle }) => (daemons.supervise)(&workspace, idle),
        Ok(CliCommand::SessionHost { state, socket, launch_id }) => {
            (daemons.host_session)(&canonical_workspace(&workspace)?, &state, &socket, &launch_id)
        }
        Err(error) => Err(Error::usage("the command line cannot be read").because(error.to_string())),
    };
    done.map(|()| 0)
}

/// One thread is enough for a front end.
fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .doing(|| "cannot start the async runtime".into())?;
    let outcome = runtime.block_on(work);
    // Does not wait for a read of stdin on a blocking thread, which cannot be cancelled.
    runtime.shutdown_background();
    outcome
}

fn initialize_params(missing: IfNotRunning) -> InitializeParams {
    let keeps_supervisor = missing == IfNotRunning::Skip;
    let capabilities = ClientCapabilities { keeps_supervisor, ..ClientCapabilities::default() };
    let version = env!("CARGO_PKG_VERSION").into();
    let (name, environment) = ("tether".into(), tether_process::caller_environment());
    InitializeParams { name, version, capabilities, environment, ..InitializeParams::default() }
}

async fn run_operation(
    common: &GlobalArgs,
    workspace: &Path,
    operation: &'static Operation,
    matches: &ArgMatches,
) -> Result<u8> {
    let folder = std::env::current_dir().doing(|| "cannot find the current folder".into())?;
    let params = (operation.from_matches)(matches, &folder).map_err(|error| {
        Error::usage(format!("cannot read the arguments of `{}`", operation.words.join(" "))).because(error)
    })?;
    if matches.try_get_one::<bool>(PRINT_CONFIG).ok().flatten() == Some(&true) {
        let config = matches.try_get_one::<String>("config").ok().flatten().map(String::as_str);
        let config = trust::window_config(&canonical_workspace(workspace)?, config)?;
        return print_text(config_commands::effective_config(&config, common.json)).map(|()| 0);
    }
    let (operation, params) = meant_operation(operation, params, matches, &folder);
    let trace = matches.try_get_one::<PathBuf>(TRACE).ok().flatten();
    let params = if trace.is_some() { serde_json::json!({"limit": usize::MAX}) } else { params };
    let answer = call_with_spinner(common, workspace, operation, &params).await?;
    if let Some(file) = trace {
        return save_trace(common, answer, file).map(|()| 0);
    }
    if let Some(file) = matches.try_get_one::<PathBuf>("output").ok().flatten() {
        let chosen = matches.value_source("output") == Some(clap::parser::ValueSource::CommandLine);
        return save_image(common, operation.method, &answer, file, chosen).map(|()| 0);
    }
    print_result(common, &answer, || render::render_text(operation.method, &answer))?;
    // The call succeeded, what was asked for did not: an expression that has thrown, a test that has failed.
    let has_failed = match operation.method {
        PageEvaluateParams::METHOD => answer.get("exception").is_some(),
        TestRunParams::METHOD => answer.get("ok") != Some(&Value::Bool(true)),
        _ => false,
    };
    Ok(if has_failed { ErrorKind::Other.exit_code() } else { 0 })
}

/// Connects to the supervisor of the workspace; to that of a deleted one only if it still runs.
async fn connect_to_supervisor(workspace: &Path) -> Result<SupervisorConnection> {
    connect_to_supervisor_as(workspace, &initialize_params(IfNotRunning::Start)).await
}

async fn connect_to_supervisor_as(workspace: &Path, client: &InitializeParams) -> Result<SupervisorConnection> {
    match SupervisorPaths::of_workspace(workspace) {
        Ok(paths) => connect(&paths, client, IfNotRunning::Start).await?.ok_or_else(|| Error::other("no supervisor")),
        Err(error) => match SupervisorPaths::of_deleted_workspace(workspace) {
            Ok(paths) => {
                connect(&paths, &initialize_params(IfNotRunning::Skip), IfNotRunning::Skip).await?.ok_or(error)
            }
            Err(_) => Err(error),
        },
    }
}

fn print_text(text: Result<String>) -> Result<()> {
    // A closed pipe is not an error.
    let _ = writeln!(anstream::stdout(), "{}", escape_text(&text?));
    Ok(())
}

fn print_result(common: &GlobalArgs, answer: &Value, text: impl FnOnce() -> String) -> Result<()> {
    let printed = if common.json { escape_json(&answer.to_string()) } else { escape_text(&text()) };
    // A closed pipe (`tether status | head -0`) is not an error.
    let _ = writeln!(anstream::stdout(), "{printed}");
    Ok(())
}

/// Waits for the result; on a terminal a spinner shows the progress.
async fn call_with_spinner(
    common: &GlobalArgs,
    workspace: &Path,
    operation: &Operation,
    params: &Value,
) -> Result<Value> {
    let method = operation.method;
    let is_read = |effect| effect == OperationEffect::ReadOnly;
    // The one that the call goes over now.
    let connected: Mutex<Option<Arc<SupervisorConnection>>> = Mutex::default();
    let connect = || async {
        let connection = Arc::new(connect_to_supervisor(workspace).await?);
        *lock(&connected) = Some(Arc::clone(&connection));
        Ok(connection)
    };
    let spinner = if std::io::stderr().is_terminal() && !common.json { new_spinner() } else { ProgressBar::hidden() };
    let (sender, mut progress) = mpsc::unbounded_channel();
    let mut call = Box::pin(repeated_call::call_operation(operation, params, &sender, is_read, connect));
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    let outcome = loop {
        tokio::select! {
            outcome = &mut call => break outcome,
            Ok(()) = &mut interrupt => {
                // Dropping a call cancels it; the supervisor reads that before the next call.
                let connection = lock(&connected).clone();
                if let Some(connection) = &connection {
                    connection.peer.interrupt_calls();
                }
                drop(call);
                if let Some(connection) = connection {
                    spinner.set_message("cancelling");
                    wait_until_read(&connection).await;
                }
                break Err(Error::new(ErrorKind::Cancelled, format!("{method} was cancelled")));
            }
            Some(value) = progress.recv() => {
                if let Ok(progress) = serde_json::from_value::<ProgressParams>(value) {
                    spinner.set_message(escape_line(&progress.message));
                }
            }
        }
    };
    spinner.finish_and_clear();
    outcome
}

/// Waits until the supervisor has read what was sent so far, or another Ctrl-C.
async fn wait_until_read(connection: &SupervisorConnection) {
    let status = connection.call(DebugStatusParams::METHOD, &Value::Null, mpsc::unbounded_channel().0);
    tokio::select! {
        _ = tokio::time::timeout(CANCEL_TIMEOUT, status) => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

fn new_spinner() -> ProgressBar {
    let spinner = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        spinner.set_style(style);
    }
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

fn save_image(common: &GlobalArgs, method: &str, answer: &Value, file: &Path, chosen: bool) -> Result<()> {
    use base64::Engine;
    let picture = render::read_picture(method, answer);
    let picture = picture.ok_or_else(|| Error::other("cannot save the picture").because("there is none"))?;
    // The default file name gets the format's extension; a name from the user stays.
    let kind = picture.mime_type.trim_start_matches("image/");
    let file = if chosen { file.to_owned() } else { file.with_extension(kind) };
    let doing = || format!("cannot save the picture as {}", file.display());
    let bytes = base64::engine::general_purpose::STANDARD.decode(&picture.data).doing(doing)?;
    std::fs::write(&file, &bytes).doing(doing)?;
    let PageImage { generation, refreshed, notes, .. } = &picture;
    let result = serde_json::json!({
        "file": file, "bytes": bytes.len(), "generation": generation, "refreshed": refreshed, "notes": notes,
    });
    print_result(common, &result, || {
        let (refreshed, notes) = (render::refresh_text(refreshed.as_ref()), render::notes_text(notes));
        let file = escape_line(&file.to_string_lossy());
        format!("{refreshed}{file} ({} KB){notes}", bytes.len() / 1024)
    })
}

fn save_trace(common: &GlobalArgs, answer: Value, file: &Path) -> Result<()> {
    let doing = || format!("cannot write the trace {}", file.display());
    let TimelineEvents { events, .. } = serde_json::from_value(answer).doing(doing)?;
    let trace = chrome_trace(&events, now_ms());
    std::fs::write(file, trace.to_string()).doing(doing)?;
    let result = serde_json::json!({"file": file, "events": events.len()});
    print_result(common, &result, || {
        let file = escape_line(&file.to_string_lossy());
        format!("{file} ({} events); https://ui.perfetto.dev opens it", events.len())
    })
}

fn canonical_workspace(workspace: &Path) -> Result<PathBuf> {
    workspace
        .canonicalize()
        .map_err(|cause| Error::usage(format!("{} cannot be a workspace", workspace.display())).because(cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        tether_command().debug_assert();
    }
}
