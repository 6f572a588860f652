//! Running commands whose output is printed only when they fail; the product's errors as those of this crate.

use anyhow::{Result, anyhow, bail};
use xshell::Cmd;

/// How much of a failed command's output an error has.
const TAIL_LINES: usize = 20;

/// Runs a command to its end. Errors: the exit status, with the last lines of both streams.
pub fn run_quietly(command: Cmd<'_>) -> Result<()> {
    let shown = command.to_string();
    let output = command.quiet().ignore_status().output()?;
    if output.status.success() {
        return Ok(());
    }
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    let lines: Vec<&str> = printed.lines().collect();
    let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n    ");
    bail!("`{shown}` failed: {}\n    {tail}", output.status)
}

/// The product's error with its causes and hints, which its text has already.
pub fn to_anyhow(error: tether_base::error::Error) -> anyhow::Error {
    anyhow!("{error}")
}
