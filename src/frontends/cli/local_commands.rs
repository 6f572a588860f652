//! Subcommands that need no supervisor: adapters and tools, the doctor, completions, the manual.
//!
//! Prints what `tools` and `doctor` return.

use std::io::Write;
use std::path::{Path, PathBuf};

use anstream::{eprintln, println};
use clap::Subcommand;
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::{Value, json};
use tether_base::display_text::{escape_json, escape_line, escape_text};
use tether_base::error::{Error, ErrorContext, Result};
use tether_tools::{InstallOutcome, ToolState, ToolStatus};

use crate::doctor::adapter_checks::{AdapterStatus, foreign_install_hint, list_adapters};
use crate::frontends::doctor;

// (No doc comment: clap would use it as the program's.)
#[derive(Subcommand)]
pub enum LocalCommand {
    /// List the debug adapters and the tools that windows need, or install one
    #[command(args_conflicts_with_subcommands = true)]
    Adapters {
        #[command(subcommand)]
        action: Option<AdaptersAction>,
    },
    /// Check this machine, this workspace and this tether, and show how to fix problems
    Doctor {
        /// Show leftover processes: those of launches that no supervisor will reconnect to
        #[arg(long)]
        reap: bool,
        /// End these processes
        #[arg(long, requires = "reap")]
        yes: bool,
    },
    /// Print the completion script of a shell
    #[command(after_help = "bash: tether completions bash > ~/.local/share/bash-completion/completions/tether\n\
                            zsh:  tether completions zsh > a folder of $fpath, as _tether\n\
                            fish: tether completions fish > ~/.config/fish/completions/tether.fish")]
    Completions {
        /// Shell to print the script for
        shell: Shell,
    },
    /// Print the manual page, or write the pages of all commands into a folder
    Man {
        /// Folder to write the pages into
        dir: Option<PathBuf>,
    },
}

/// What is to be done about tools.
#[derive(Subcommand)]
pub enum AdaptersAction {
    /// Install the pinned version of an adapter or a tool, and what it needs, without running install scripts
    Install {
        /// Name of the adapter or tool, as `tether adapters` lists it
        name: String,
    },
}

/// Runs one of them; returns the exit code.
pub async fn run_local(what: LocalCommand, command: clap::Command, workspace: &Path, json: bool) -> Result<u8> {
    match what {
        LocalCommand::Doctor { reap: true, yes } => return doctor::print_and_reap_orphans(yes, json).await,
        LocalCommand::Doctor { reap: false, .. } => return doctor::print_diagnosis(workspace, json).await,
        LocalCommand::Completions { shell } => print_completions(command, shell),
        LocalCommand::Man { dir } => {
            let pages = print_or_write_pages(command, dir.as_deref())?;
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
        (true, _) => println!("{}", escape_json(&object.to_string())),
        (false, _) => lines.for_each(|line| println!("{}", escape_line(&line))),
    }
}

fn print_adapters(workspace: &Path, json: bool) -> Result<()> {
    let (rows, adapters) = (tether_tools::list_tools()?, list_adapters(workspace)?);
    if json {
        let object = json!({ "tools": rows.iter().map(tool_json).collect::<Vec<_>>(), "adapters": adapters });
        println!("{}", escape_json(&object.to_string()));
        return Ok(());
    }
    for row in rows.iter().filter(|row| !row.is_adapter) {
        println!("{:<14} {:<10} {:<12} {}", row.name, row.state.name(), row.version, row.what);
        match &row.state {
            ToolState::Installed => println!("{:14} {}", "", escape_line(&row.path.to_string_lossy())),
            ToolState::Outdated { found } => {
                println!("{:14} it is {}; `{}` replaces it", "", escape_line(found), row.install_command())
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
        println!("{:14} {} ({place})", "", escape_line(&path.to_string_lossy()));
    }
    if let Some(why) = adapter.because.as_ref().filter(|_| adapter.found) {
        println!("{:14} {}", "", escape_line(why));
    }
    adapter.hints.iter().for_each(|hint| println!("{:14} {}", "", escape_line(hint)));
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
    let done = tether_tools::install_tool(name, &|text| eprintln!("{}", escape_text(text))).await?;
    if json {
        let installed = |outcome: &InstallOutcome| *outcome == InstallOutcome::Installed;
        let done: Vec<Value> = done
            .iter()
            .map(|(tool, filled)| json!({ "name": tool.name, "pin": tool.pin(), "installed": installed(filled) }))
            .collect();
        println!("{}", escape_json(&json!({ "tools": done }).to_string()));
        return Ok(());
    }
    for (tool, filled) in &done {
        let outcome = match filled {
            InstallOutcome::Present => "is there already",
            InstallOutcome::Adopted => "was there already, installed by hand",
            InstallOutcome::Installed => "is installed",
        };
        println!("{} ({}) {outcome}", tool.name, tool.pin());
    }
    Ok(())
}

/// Prints a shell's completions.
fn print_completions(mut command: clap::Command, shell: Shell) {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    print_bytes(&script);
}

/// Prints the page of the program itself; with a folder, writes it and one per subcommand there, and returns their paths.
fn print_or_write_pages(command: clap::Command, folder: Option<&Path>) -> Result<Vec<PathBuf>> {
    match folder {
        Some(folder) => write_pages(command, folder),
        None => {
            let mut page = Vec::new();
            Man::new(command).render(&mut page).doing(|| "cannot make the manual page".into())?;
            print_bytes(&page);
            Ok(Vec::new())
        }
    }
}

fn write_pages(command: clap::Command, folder: &Path) -> Result<Vec<PathBuf>> {
    let doing = || format!("cannot write the manual pages into {}", folder.display());
    std::fs::create_dir_all(folder).doing(doing)?;
    clap_mangen::generate_to(command.clone(), folder).doing(doing)?;
    let mut pages = Vec::new();
    visit_page_names(&command, command.get_name(), &mut |name| pages.push(folder.join(format!("{name}.1"))));
    Ok(pages)
}

/// The name of each page, the program's first.
fn visit_page_names(command: &clap::Command, name: &str, tell: &mut dyn FnMut(&str)) {
    tell(name);
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        visit_page_names(below, &format!("{name}-{}", below.get_name()), tell);
    }
}

/// A closed pipe (`tether man | head -1`) is not an error.
fn print_bytes(bytes: &[u8]) {
    let _ = std::io::stdout().write_all(bytes);
}
