//! `cargo xtask tools`: brings every outside tool to its pinned version; a no-op when all is there.
//!
//! Owns the order and the report. Must not know what the tools are used for.

mod packages;
mod pins;
mod slot;
mod system;

use std::fs::{self, File};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use xshell::{Cmd, Shell};

use crate::place::Place;
use pins::Pins;
use slot::{Filled, Package};

/// Who needs the tools: it decides which, and how much is told about them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// All of them, each with a line.
    Tests,
    /// Without the clients that only tests use, and a line only for what took time.
    Demo,
}

/// Installs what is missing. Two runs at once wait for each other.
pub fn install(place: &Place, need: For) -> Result<()> {
    let pins = Pins::read()?;
    let sh = Shell::new()?;
    let tools = place.tools();
    fs::create_dir_all(&tools).with_context(|| {
        format!("cannot create {}\n  hint: set DEVTETHER_DATA_DIR to a folder that you can write to", tools.display())
    })?;
    let _lock = lock(&tools)?;
    system::ensure(&sh, &pins.system, need)?;
    // The order is that of need: npm packages may be checked with the Node that the wheel brings.
    for pin in &pins.wheel {
        fill(&sh, &tools, pin, need)?;
    }
    for pin in pins.npm.iter().filter(|pin| need == For::Tests || !pin.tests_only) {
        fill(&sh, &tools, pin, need)?;
    }
    for pin in pins.venv.iter().filter(|pin| need == For::Tests || !pin.tests_only) {
        fill(&sh, &tools, pin, need)?;
    }
    Ok(())
}

fn fill(sh: &Shell, tools: &Path, package: &dyn Package, need: For) -> Result<()> {
    let began = Instant::now();
    let filled = slot::fill(sh, tools, package).with_context(|| {
        format!(
            "cannot install {} into {}\n  hint: `cargo xtask tools` tries again",
            package.pin(),
            tools.join(package.name()).display()
        )
    })?;
    let said = match filled {
        Filled::Present => "present".to_owned(),
        Filled::TakenOver => "present, installed by hand".to_owned(),
        Filled::Installed => format!("installed in {:.1} s", began.elapsed().as_secs_f64()),
    };
    if need == For::Tests || filled == Filled::Installed {
        println!("  {:<17} {} {said}", package.name(), package.pin());
    }
    Ok(())
}

/// The kernel frees it when this process ends, however it ends.
fn lock(tools: &Path) -> Result<File> {
    let path = tools.join(".lock");
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    if file.try_lock().is_err() {
        println!("  waiting for another `cargo xtask tools` to finish");
        file.lock()?;
    }
    Ok(file)
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
