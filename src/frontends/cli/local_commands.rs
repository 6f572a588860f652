//! Subcommands that need no supervisor: adapters and tools, the doctor, completions, the manual.
//!
//! Prints what `tools` and `doctor` return.

use std::path::{Path, PathBuf};

use anstream::{eprintln, println};
use clap::Subcommand;
use clap_complete::Shell;
use serde_json::{Value, json};

use super::man;
use crate::doctor::adapter_checks::{AdapterStatus, foreign_install_hint, list_adapters};
use crate::error::{Error, Result};
use crate::frontends::doctor;
use crate::tools::{self, InstallOutcome, ToolState, ToolStatus};

// (No doc comment: clap would use it as the program's.)
#[derive(Subcommand)]
pub enum LocalCommand {
    /// List the debug adapters and the tools that windows need, or install one
    #[command(args_conflicts_with_subcommands = true)]
    Adapters {
        #[command(subcommand)]
        action: Option<AdaptersAction>,
    },
    /// Check this machine, this workspace and this tether, and show what fixes the problems
    Doctor {
        /// Show the processes of launches that no supervisor will reconnect to
        #[arg(long)]
        reap: bool,
        /// End them
        #[arg(long, requires = "reap")]
        yes: bool,
    },
    /// Print the completions of a shell
    #[command(after_help = "bash: tether completions bash > ~/.local/share/bash-completion/completions/tether\n\
                            zsh:  tether completions zsh > a folder of $fpath, as _tether\n\
                            fish: tether completions fish > ~/.config/fish/completions/tether.fish")]
    Completions { shell: Shell },
    /// Print the manual page, or write all of them into a folder
    Man { dir: Option<PathBuf> },
}

/// What is to be done about tools.
#[derive(Subcommand)]
pub enum AdaptersAction {
    /// Install an adapter or a tool, and what it needs, in its pinned version; its install scripts are never run
    Install {
        /// As `tether adapters` lists it
        name: String,
    },
}

/// Runs one of them; returns the exit code.
pub async fn run_local(what: LocalCommand, command: clap::Command, workspace: &Path, json: bool) -> Result<u8> {
    match what {
        LocalCommand::Doctor { reap: true, yes } => return doctor::print_and_reap_orphans(yes, json).await,
        LocalCommand::Doctor { reap: false, .. } => return doctor::print_diagnosis(workspace, json).await,
        LocalCommand::Completions { shell } => man::print_completions(command, shell),
        LocalCommand::Man { dir } => {
            let pages = man::print_or_write_pages(command, dir.as_deref())?;
            print_lines(json, &json!({ "pages": &pages }), pages.iter().map(|page| page.display().to_string()));
        }
        LocalCommand::Adapters { action: None } => print_adapters(workspace, json)?,
        LocalCommand::Adapters { action: Some(AdaptersAction::Install { name }) } => install_tool(&name, json).await?,
    }
    Ok(0)
}

/// Prints nothing without lines.
fn print_lines(json: bool, object: &Value, lines: impl ExactSizeIterator<Item = String>) {
    match (json, lines.len()) {
        (_, 0) => {}
        (true, _) => println!("{object}"),
        (false, _) => lines.for_each(|line| println!("{line}")),
    }
}

fn print_adapters(workspace: &Path, json: bool) -> Result<()> {
    let (rows, adapters) = (tools::list_tools()?, list_adapters(workspace)?);
    if json {
        println!("{}", json!({ "tools": rows.iter().map(tool_json).collect::<Vec<_>>(), "adapters": adapters }));
        return Ok(());
    }
    for row in rows.iter().filter(|row| !row.is_adapter) {
        println!("{:<14} {:<10} {:<12} {}", row.name, row.state.name(), row.version, row.what);
        match &row.state {
            ToolState::Installed => println!("{:14} {}", "", row.path.display()),
            ToolState::Outdated { found } => {
                println!("{:14} it is {found}; `{}` replaces it", "", row.install_command())
            }
            ToolState::Unproven => println!("{:14} `{}` proves or replaces it", "", row.install_command()),
            ToolState::Missing => println!("{:14} `{}`", "", row.install_command()),
        }
    }
    adapters.iter().for_each(print_adapter);
    Ok(())
}

/// The languages of an adapter are in the column of a tool's purpose.
fn print_adapter(adapter: &AdapterStatus) {
    let state = if adapter.found { "found" } else { "missing" };
    println!("{:<14} {state:<10} {:<12} debugs {}", adapter.name, "", adapter.languages.join(", "));
    if let (Some(path), Some(place)) = (&adapter.path, &adapter.place) {
        println!("{:14} {} ({place})", "", path.display());
    }
    if let Some(why) = adapter.because.as_ref().filter(|_| adapter.found) {
        println!("{:14} {why}", "");
    }
    adapter.hints.iter().for_each(|hint| println!("{:14} {hint}", ""));
}

fn tool_json(row: &ToolStatus) -> Value {
    let found = match &row.state {
        ToolState::Outdated { found } => Some(found),
        _ => None,
    };
    json!({
        "name": row.name, "what": row.what, "version": row.version, "state": row.state.name(), "found": found,
        "path": row.path, "install": row.install_command(),
    })
}

async fn install_tool(name: &str, json: bool) -> Result<()> {
    if let Some(how) = foreign_install_hint(name) {
        return Err(Error::usage(format!("cannot install {name}")).because("npm and pip do not have it").hint(how));
    }
    let done = tools::install_tool(name, &|text| eprintln!("{text}")).await?;
    if json {
        let installed = |outcome: &InstallOutcome| *outcome == InstallOutcome::Installed;
        let done: Vec<Value> = done
            .iter()
            .map(|(tool, filled)| json!({ "name": tool.name, "pin": tool.pin(), "installed": installed(filled) }))
            .collect();
        println!("{}", json!({ "tools": done }));
        return Ok(());
    }
    for (tool, filled) in &done {
        let said = match filled {
            InstallOutcome::Present => "is there already",
            InstallOutcome::Adopted => "was there already, installed by hand",
            InstallOutcome::Installed => "is installed",
        };
        println!("{} ({}) {said}", tool.name, tool.pin());
    }
    Ok(())
}
