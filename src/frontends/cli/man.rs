//! Shell completions and manual pages, generated from the definition of the command line.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::error::{ErrorContext, Result};

/// Prints a shell's completions.
pub fn print_completions(mut command: Command, shell: Shell) {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    print_bytes(&script);
}

/// Prints the page of the program itself; with a folder, writes it and one per subcommand there, and returns their paths.
pub fn print_or_write_pages(command: Command, folder: Option<&Path>) -> Result<Vec<PathBuf>> {
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

fn write_pages(command: Command, folder: &Path) -> Result<Vec<PathBuf>> {
    let doing = || format!("cannot write the manual pages into {}", folder.display());
    std::fs::create_dir_all(folder).doing(doing)?;
    clap_mangen::generate_to(command.clone(), folder).doing(doing)?;
    let mut pages = Vec::new();
    visit_page_names(&command, command.get_name(), &mut |name| pages.push(folder.join(format!("{name}.1"))));
    Ok(pages)
}

/// The name of each page, the program's first.
fn visit_page_names(command: &Command, name: &str, tell: &mut dyn FnMut(&str)) {
    tell(name);
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        visit_page_names(below, &format!("{name}-{}", below.get_name()), tell);
    }
}

/// A closed pipe (`tether man | head -1`) is not an error.
fn print_bytes(bytes: &[u8]) {
    let _ = std::io::stdout().write_all(bytes);
}
