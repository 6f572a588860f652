//! `tether setup`: adds tether to the MCP servers of a client, or takes it out again.
//!
//! Shows the change first, and writes it when the user agrees. Decides nothing about the files.

use std::env;
use std::path::Path;

use anstream::println;
use serde_json::json;
use tether_base::display_text::{escape_json, escape_line};
use tether_base::error::{Error, ErrorKind, Result};

use super::trust::confirm;
use crate::config::McpClient;

/// What is to be done.
#[derive(Clone, Copy)]
pub struct SetupAction {
    /// Take the entry out again.
    pub remove: bool,
    /// Without a question.
    pub yes: bool,
}

/// Errors: the file cannot be read or written; the user does not agree.
pub fn set_up_client(client: &McpClient, workspace: &Path, action: SetupAction, json: bool) -> Result<()> {
    let home = env::home_dir().ok_or_else(|| Error::other("cannot find your home folder").hint("set HOME"))?;
    let (command, note) = own_command();
    let change = match action.remove {
        true => client.plan_removal(workspace, &home)?,
        false => client.plan_entry(workspace, &home, &command)?,
    };
    let Some(change) = change else {
        let text = match action.remove {
            true => format!("{} does not have tether", client.name),
            false => format!("{} has tether already", client.name),
        };
        let object = json!({"client": client.name, "changed": false});
        println!("{}", if json { escape_json(&object.to_string()) } else { text });
        return Ok(());
    };
    let file = change.file.display().to_string();
    if !json {
        println!("{}:\n", escape_line(&file));
        change.lines().iter().for_each(|line| println!("  {}", escape_line(line)));
        println!();
        note.iter().filter(|_| !action.remove).for_each(|note| println!("{}", escape_line(note)));
    }
    let agrees = action.yes || confirm("Write this?")?;
    if !agrees {
        let error = Error::new(ErrorKind::NotTrusted, "nothing was written");
        return Err(error.hint(format!("`tether setup {} --yes` writes it without a prompt", client.name)));
    }
    change.write()?;
    let object = json!({"client": client.name, "changed": true, "file": file, "command": command});
    let done = format!("wrote {}; start {} again", escape_line(&file), client.name);
    println!("{}", if json { escape_json(&object.to_string()) } else { done });
    Ok(())
}

/// How a client starts this program: by its name, where that finds it.
fn own_command() -> (String, Option<String>) {
    let own = env::current_exe().and_then(|own| own.canonicalize());
    let on_path = tether_tools::find_on_path(&["tether"], env::var_os("PATH").as_deref());
    let on_path = on_path.and_then(|found| found.canonicalize().ok());
    match own {
        Ok(own) if on_path.as_ref() != Some(&own) => {
            let path = own.display().to_string();
            let note = format!("`tether` on PATH is not this program: the entry names {path}");
            (path, Some(note))
        }
        _ => ("tether".to_owned(), None),
    }
}
