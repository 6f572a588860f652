//! Runs clients of others: MCP clients and the conformance suite against `tether mcp` with a real window, a DAP client against our own adapters, and
//! against adapters of others over `debugger/start`.
//!
//! Their requests and the expected results are in `tests/clients/`.

use std::env;
use std::path::Path;

use anyhow::{Result, ensure};
use xshell::{Shell, cmd};

use crate::paths::CheckoutPaths;

/// Runs each client's tests. A client that is not installed is an error under CI, and elsewhere skipped with a warning.
pub fn run_client_tests(sh: &Shell, place: &CheckoutPaths) -> Result<()> {
    // The binary that the Rust tests used: `cargo build` would make another one, without the tests' features.
    cmd!(sh, "cargo test --workspace --no-run --quiet").run()?;
    sh.set_var("TETHER", place.target().join("debug/tether"));
    let clients = place.checkout.join("tests/clients");
    if is_installed(&place.tool("python")?)? {
        run_pypi_client(sh, place, &clients)?;
    }
    if is_installed(&place.tool("inspector")?)? {
        run_inspector(sh, place, &clients)?;
    }
    if is_installed(&place.tool("mcp-conformance")?)? {
        run_conformance_suite(sh, place, &clients)?;
    }
    if is_installed(&place.tool("dap-testsupport")?)? {
        run_dap_client(sh, place, &clients)?;
    }
    Ok(())
}

fn is_installed(tool: &Path) -> Result<bool> {
    let present = tool.exists();
    let missing = || format!("{} is missing\n  hint: `cargo xtask tools` installs it", tool.display());
    ensure!(present || env::var_os("CI").is_none(), missing());
    if !present {
        eprintln!("warning: skipped, because {}", missing());
    }
    Ok(present)
}

fn run_pypi_client(sh: &Shell, place: &CheckoutPaths, clients: &Path) -> Result<()> {
    let python = place.tool("python")?;
    // -B: no byte code in the checkout.
    Ok(cmd!(sh, "{python} -B -m unittest discover --start-directory {clients}").run()?)
}

fn run_inspector(sh: &Shell, place: &CheckoutPaths, clients: &Path) -> Result<()> {
    let node = place.tool("node24")?;
    let tests = clients.join("inspector.test.mjs");
    sh.set_var("INSPECTOR", place.tool("inspector")?);
    Ok(cmd!(sh, "{node} --test {tests}").run()?)
}

fn run_conformance_suite(sh: &Shell, place: &CheckoutPaths, clients: &Path) -> Result<()> {
    let node = place.tool("node24")?;
    let tests = clients.join("conformance.test.mjs");
    // `node_modules/@modelcontextprotocol/conformance/dist/index.js`
    let packages = place.tool("mcp-conformance")?.ancestors().nth(4).map(Path::to_owned).unwrap_or_default();
    sh.set_var("CONFORMANCE", packages);
    Ok(cmd!(sh, "{node} --test {tests}").run()?)
}

fn run_dap_client(sh: &Shell, place: &CheckoutPaths, clients: &Path) -> Result<()> {
    let node = place.tool("node24")?;
    let files = ["java_adapter.test.mjs", "node_adapter.test.mjs", "debugger_start.test.mjs"];
    let tests = files.map(|file| clients.join(file));
    sh.set_var("TESTSUPPORT", place.tool("dap-testsupport")?);
    Ok(cmd!(sh, "{node} --test {tests...}").run()?)
}
