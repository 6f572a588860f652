//! `tether trust`: shows the commands that workspace files run, prompts, and records the consent.
//!
//! The only way to give consent: it needs a user at a terminal, or their `--yes`. Does not decide what the
//! commands are.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use anstream::println;
use tether_base::display_text::{escape_json, escape_line};
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};

use super::config_commands;
use crate::config::trust::{CommandPurpose, WorkspaceCommands};
use crate::config::{
    ActiveConfig, DebugPlan, ExtensionTestSource, WindowConfig, find_test_file, is_test_configuration, launch_names,
};
use crate::supervisor::connect::SupervisorPaths;

/// What is to be trusted besides the programs of the workspace.
#[derive(Clone, Copy)]
pub struct TrustScope<'a> {
    /// The named configuration.
    pub config: Option<&'a str>,
    /// What builds the tests.
    pub tests: bool,
    /// Nothing else.
    pub programs: bool,
}

/// Of a (canonical) workspace: of the named configuration, of what builds its tests, or of its window; and the programs
/// that it brings.
pub fn trust_commands(workspace: &Path, scope: TrustScope<'_>, yes: bool, json: bool) -> Result<()> {
    let mut all = commands_to_trust(workspace, scope)?;
    all.push(WorkspaceCommands::of_programs(workspace));
    all.retain(|commands| !commands.is_empty());
    if !json {
        all.iter().for_each(|commands| print_commands(workspace, commands));
    }
    if all.is_empty() {
        let workspace = escape_line(&workspace.to_string_lossy());
        println!("the files of {workspace} run no commands: there is nothing to trust");
        return Ok(());
    }
    if !yes && !confirm("Trust these commands?")? {
        return Err(Error::new(ErrorKind::NotTrusted, "nothing was trusted")
            .hint("`tether trust --yes` consents without a prompt"));
    }
    let records = all.iter().map(WorkspaceCommands::record_consent).collect::<Result<Vec<_>>>()?;
    if json {
        let trusted: Vec<String> = all.iter().flat_map(WorkspaceCommands::texts).collect();
        let digests: Vec<String> = all.iter().map(WorkspaceCommands::digest).collect();
        let object = serde_json::json!({"trusted": trusted, "sha256": digests, "record": records[0]});
        println!("{}", escape_json(&object.to_string()));
    } else {
        let covered: Vec<String> = all.iter().map(describe_covered).collect();
        println!("trusted, until one of them changes: {}", covered.join(", "));
        print_untrusted(workspace, &all);
    }
    Ok(())
}

/// `3 commands of the window`
fn describe_covered(commands: &WorkspaceCommands) -> String {
    let count = commands.lines.len();
    let lines = |one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
    match commands.purpose {
        CommandPurpose::Window => format!("{} of the window", lines("setting")),
        CommandPurpose::Debugging => format!("{} of the debug session", lines("setting")),
        CommandPurpose::Tests => format!("{} that builds tests", lines("command")),
        CommandPurpose::ExtensionTests => format!("{} of the extension's tests", lines("setting")),
        CommandPurpose::Programs => lines("program"),
    }
}

/// What else the workspace may run, and is not trusted yet.
fn print_untrusted(workspace: &Path, trusted: &[WorkspaceCommands]) {
    let debugging = launch_names(workspace).into_iter().filter_map(|name| DebugPlan::resolve(workspace, &name).ok());
    let debugging = debugging.map(|plan| WorkspaceCommands::of_debug_plan(&plan));
    let window = window_config(workspace, None).ok().map(|config| WorkspaceCommands::of_window(&config));
    let tests = workspace.join("Cargo.toml").exists().then(|| WorkspaceCommands::of_tests(workspace));
    let of_launch = launch_names(workspace).into_iter().filter(|name| is_test_configuration(workspace, name)).map(Some);
    let of_file = find_test_file(workspace).map(|_| None);
    let extension = of_launch.chain(of_file).filter_map(|name| extension_tests(workspace, name.as_deref()).ok());
    let all = window.into_iter().chain(debugging).chain(tests).chain(extension);
    let is_new = |it: &WorkspaceCommands| trusted.iter().all(|other| other.digest() != it.digest());
    let left: Vec<String> = all.filter(|it| is_new(it) && !it.are_trusted()).map(|it| it.trust_command()).collect();
    if !left.is_empty() {
        println!("not covered, and asked for before it runs:");
        left.iter().for_each(|command| println!("  {}", escape_line(command)));
    }
}

/// A configuration can be a window, a debug session, or both: consent by name covers all of it.
fn commands_to_trust(workspace: &Path, scope: TrustScope<'_>) -> Result<Vec<WorkspaceCommands>> {
    let Some(name) = scope.config else {
        return Ok(match scope {
            TrustScope { programs: true, .. } => Vec::new(),
            TrustScope { tests: true, .. } => commands_of_tests(workspace)?,
            TrustScope { .. } => vec![WorkspaceCommands::of_window(&window_config(workspace, None)?)],
        });
    };
    if is_test_configuration(workspace, name) {
        return extension_tests(workspace, Some(name)).map(|commands| vec![commands]);
    }
    let window = WindowConfig::resolve(workspace, Some(name)).map(|it| WorkspaceCommands::of_window(&it));
    let debugging = DebugPlan::resolve(workspace, name).map(|it| WorkspaceCommands::of_debug_plan(&it));
    match (window, debugging) {
        (Err(_), Err(error)) => Err(error),
        (window, debugging) => Ok(window.into_iter().chain(debugging).collect()),
    }
}

fn extension_tests(workspace: &Path, name: Option<&str>) -> Result<WorkspaceCommands> {
    ExtensionTestSource::find(workspace, name).map(|source| WorkspaceCommands::of_extension_tests(&source))
}

/// What builds tests, of Rust or of an extension: both where the workspace has both.
fn commands_of_tests(workspace: &Path) -> Result<Vec<WorkspaceCommands>> {
    let extension = find_test_file(workspace).map(|_| extension_tests(workspace, None)).transpose()?;
    let is_cargo = extension.is_none() || workspace.join("Cargo.toml").exists();
    Ok(extension.into_iter().chain(is_cargo.then(|| WorkspaceCommands::of_tests(workspace))).collect())
}

fn print_commands(workspace: &Path, commands: &WorkspaceCommands) {
    let what = match commands.purpose {
        CommandPurpose::Window => "want to run",
        CommandPurpose::Debugging => "want to debug, and to run around it",
        CommandPurpose::Tests => "have their tests built, before one is debugged, by",
        CommandPurpose::ExtensionTests => "want to run, to build and run the tests of the extension",
        CommandPurpose::Programs => "contain programs that debugging runs",
    };
    println!("The files of {} {what}:\n", escape_line(&workspace.to_string_lossy()));
    for line in &commands.lines {
        println!("  {}", config_commands::line_with_origin(line));
    }
    println!();
}

/// What would run: of the named configuration, else of the one that was chosen, else of the first.
pub fn window_config(workspace: &Path, config: Option<&str>) -> Result<WindowConfig> {
    match config {
        Some(name) => WindowConfig::resolve(workspace, Some(name)),
        None => ActiveConfig::load(&SupervisorPaths::of_workspace(workspace)?.state).resolve(workspace),
    }
}

/// Prompts on the terminal; without a terminal there is no consent.
pub fn confirm(question: &str) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    let mut out = anstream::stdout();
    let _ = write!(out, "{question} [y/N] ").and_then(|()| out.flush());
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).doing(|| "cannot read your answer".into())?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
