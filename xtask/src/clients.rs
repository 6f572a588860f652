//! MCP clients that others wrote, run against `tether mcp` with a real window behind it.
//!
//! Owns how the clients are started. What they ask and what must be answered is in `tests/clients/`.

use std::env;
use std::path::Path;

use anyhow::{Result, ensure};
use xshell::{Shell, cmd};

use crate::place::Place;

/// Runs each client's tests. Under CI a client that is not installed is a failure, on a laptop a loud skip.
pub fn run(sh: &Shell, place: &Place) -> Result<()> {
    // The binary that the Rust tests used: `cargo build` would make another one, without the tests' features.
    cmd!(sh, "cargo test --workspace --no-run --quiet").run()?;
    sh.set_var("TETHER", place.target().join("debug/tether"));
    let clients = place.checkout.join("tests/clients");
    if present(&place.tool("python")?)? {
        pypi(sh, place, &clients)?;
    }
    if present(&place.tool("inspector")?)? {
        inspector(sh, place, &clients)?;
    }
    Ok(())
}

fn present(tool: &Path) -> Result<bool> {
    let present = tool.exists();
    let missing = || format!("{} is missing\n  hint: `cargo xtask tools` installs it", tool.display());
    ensure!(present || env::var_os("CI").is_none(), missing());
    if !present {
        eprintln!("warning: skipped, because {}", missing());
    }
    Ok(present)
}

fn pypi(sh: &Shell, place: &Place, clients: &Path) -> Result<()> {
    let python = place.tool("python")?;
    // -B: no byte code in the checkout.
    Ok(cmd!(sh, "{python} -B -m unittest discover --start-directory {clients}").run()?)
}

fn inspector(sh: &Shell, place: &Place, clients: &Path) -> Result<()> {
    let node = place.tool("node24")?;
    let tests = clients.join("inspector.test.mjs");
    sh.set_var("INSPECTOR", place.tool("inspector")?);
    Ok(cmd!(sh, "{node} --test {tests}").run()?)
}
