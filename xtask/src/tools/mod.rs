//! `cargo xtask tools`: brings every outside tool to its pinned version; a no-op when all is there.
//!
//! Owns the order and the report; how a tool is installed is the product's own `tools` room, so that there is one
//! installer and one file of pins. Must not know what the tools are used for.

mod system;
mod templates;

use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use devtether::tools::{InstallOutcome, InstallablePackage, Installer, Pins};
use xshell::Cmd;

type Filling = devtether::error::Result<InstallOutcome>;

/// Who needs the tools: it decides which, and how much is told about them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// All of them, each with a line.
    Tests,
    /// Without the clients and adapters that only tests use, and a line only for what took time.
    Demo,
}

/// Installs what is missing. Two runs at once wait for each other.
pub fn install(need: For) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(install_all(need))
}

async fn install_all(need: For) -> Result<()> {
    let pins = Pins::read().map_err(told)?;
    let installer = Installer::open(&|text| println!("  {text}")).map_err(told)?;
    system::ensure(&pins.systems, need).await?;
    for tool in pins.tools.iter().filter(|tool| need == For::Tests || !(tool.tests_only || tool.is_adapter())) {
        report(&tool.name, &tool.pin(), need, installer.ensure_tool(tool)).await?;
    }
    // After what generates them.
    for template in pins.templates.iter().filter(|_| need == For::Tests) {
        let package = templates::Generated::of(template, &pins);
        report(package.name(), &package.pin(), need, installer.ensure_package(&package)).await?;
    }
    Ok(())
}

async fn report(name: &str, pin: &str, need: For, filling: impl Future<Output = Filling>) -> Result<()> {
    let began = Instant::now();
    let filled = filling.await.map_err(|error| told(error.hint("`cargo xtask tools` tries again")))?;
    let said = match filled {
        InstallOutcome::Present => "present".to_owned(),
        InstallOutcome::Adopted => "present, installed by hand".to_owned(),
        InstallOutcome::Installed => format!("installed in {:.1} s", began.elapsed().as_secs_f64()),
    };
    if need == For::Tests || filled == InstallOutcome::Installed {
        println!("  {name:<19} {pin} {said}");
    }
    Ok(())
}

/// The product's errors tell their causes and hints themselves.
pub fn told(error: devtether::error::Error) -> anyhow::Error {
    anyhow!("{error}")
}

/// Runs a command whose output is worth reading only when it fails.
pub fn quietly(command: Cmd<'_>) -> Result<()> {
    let shown = command.to_string();
    let output = command.quiet().ignore_status().output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().collect();
    let tail = lines[lines.len().saturating_sub(20)..].join("\n    ");
    bail!("`{shown}` ended with {}\n    {tail}", output.status)
}
