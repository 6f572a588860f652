//! A command of somebody else's, as it is started so that the program waits for its debugger: it keeps stdin and stdout, and prints
//! the port on which it listens to stderr.

use std::path::Path;

use tether_base::error::{Error, Result};

use crate::adapters::discovery::AdapterSearch;
use crate::adapters::select::{AdapterQuery, locate_adapter};

/// Waits for a debugger on a free port, and prints it.
const NODE_OPTION: &str = "--inspect-wait=127.0.0.1:0";
const PYTHON_SCRIPT: &str = include_str!("listen_for_debugger.py");

/// A command that waits for its debugger, and the language by which that is found.
#[derive(Debug, PartialEq)]
pub struct WaitingCommand {
    pub argv: Vec<String>,
    pub language: &'static str,
}

/// The command with what has it wait. Errors: it is neither Node nor Python; debugpy is not installed.
pub fn waiting_command(argv: &[String], search: &AdapterSearch) -> Result<WaitingCommand> {
    let debugpy = || {
        let query = AdapterQuery { adapter: Some("debugpy"), is_attach: true, ..AdapterQuery::default() };
        let path = locate_adapter(query, search)?.1.path;
        Ok(path.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned())
    };
    plan(argv, debugpy)
}

fn plan(argv: &[String], debugpy: impl Fn() -> Result<String>) -> Result<WaitingCommand> {
    let refused = |why: &str| {
        let error =
            Error::usage(format!("cannot start `{}` under its debugger", argv.join(" "))).because(why.to_owned());
        error.hint("name the program itself: `node server.js`, `python server.py`, `python -m server`")
    };
    let Some((program, arguments)) = argv.split_first() else { return Err(refused("there is no command")) };
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let words =
        |more: &[&str]| std::iter::once(program.as_str()).chain(more.iter().copied()).map(str::to_owned).collect();
    if ["node", "nodejs"].contains(&name.as_str()) {
        let mut argv: Vec<String> = words(&[NODE_OPTION]);
        argv.extend_from_slice(arguments);
        return Ok(WaitingCommand { argv, language: "javascript" });
    }
    if !is_python(&name) {
        return Err(refused("it is neither Node nor Python"));
    }
    let target = target_at(arguments).ok_or_else(|| refused("it names no program"))?;
    let (options, target) = arguments.split_at_checked(target).unwrap_or((arguments, &[]));
    let mut argv: Vec<String> = words(&[]);
    argv.extend_from_slice(options);
    argv.extend(["-c".to_owned(), PYTHON_SCRIPT.to_owned(), debugpy()?]);
    argv.extend_from_slice(target);
    Ok(WaitingCommand { argv, language: "python" })
}

/// `python`, `python3`, `python3.12`
fn is_python(name: &str) -> bool {
    name.strip_prefix("python").is_some_and(|version| version.chars().all(|it| it.is_ascii_digit() || it == '.'))
}

/// Where Python's own options end.
fn target_at(arguments: &[String]) -> Option<usize> {
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        at = match argument.as_str() {
            "-m" | "-c" => return Some(at),
            // Their values are arguments of their own.
            "-X" | "-W" | "--check-hash-based-pycs" => at.checked_add(2)?,
            "-" => return None,
            option if option.starts_with('-') => at.checked_add(1)?,
            _ => return Some(at),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, expect: Option<&str>) {
        let argv: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let planned = plan(&argv, || Ok("FOLDER".to_owned()));
        let text = planned.ok().map(|planned| planned.argv.join(" ").replace(PYTHON_SCRIPT, "SCRIPT"));
        assert_eq!(text.as_deref(), expect, "{command}");
    }

    #[test]
    fn the_program_and_its_arguments_stay_as_they_are() {
        check("node server.js --port 1", Some("node --inspect-wait=127.0.0.1:0 server.js --port 1"));
        check("/opt/bin/node -r x a.js", Some("/opt/bin/node --inspect-wait=127.0.0.1:0 -r x a.js"));
        check("python3.12 -B -X dev server.py -c x", Some("python3.12 -B -X dev -c SCRIPT FOLDER server.py -c x"));
        check(".venv/bin/python -m server -v", Some(".venv/bin/python -c SCRIPT FOLDER -m server -v"));
        check("python -c 1", Some("python -c SCRIPT FOLDER -c 1"));
        for refused in ["npx server", "python", "python -B", "python -", "pythonista a.py", "./server"] {
            check(refused, None);
        }
    }
}
