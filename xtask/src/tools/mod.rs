//! `cargo xtask tools`: installs every outside tool in its pinned version; does nothing for those that are present.
//!
//! A failed install stops none of the others: what is missing is listed at the end, with its cause and what to run.
//! How a tool is installed is the product's `tools` module, so that there is one installer and one file of pins.
//! Does not depend on what the tools are used for.

mod debian_jdk;
mod extension_templates;
mod missing;
mod system_packages;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use tether_tools::{InstallOutcome, InstallablePackage, Installer, Pins, Tool, tools_folder};

use self::debian_jdk::JdkPackage;
use self::extension_templates::TemplatePackage;
use self::missing::{Missing, report_missing};
use crate::shell::to_anyhow;

/// Which tools are needed, and how much is printed about them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ToolSet {
    /// All of them, each with a line.
    Tests,
    /// Without the clients and adapters that only tests use, and with a line only for what was installed.
    Demo,
}

/// Installs what is missing. A second run waits until the first has ended.
/// Errors: all that is still missing at the end, in one text.
pub fn install_tools(set: ToolSet) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    report_missing(&runtime.block_on(install_each(set))?, "cargo xtask tools")
}

async fn install_each(set: ToolSet) -> Result<Vec<Missing>> {
    let pins = Pins::read().map_err(to_anyhow)?;
    let installer = Installer::open(&|text| println!("  {text}")).map_err(to_anyhow)?;
    let programs: Vec<_> = pins.systems.iter().filter(|pin| set == ToolSet::Tests || !pin.tests_only).collect();
    let mut missing = system_packages::install_missing(&programs).await;
    if set == ToolSet::Tests && missing.is_empty() {
        println!("  {:<19} {} programs present", "system", programs.len());
    }
    for tool in pins.tools.iter().filter(|tool| set == ToolSet::Tests || !(tool.tests_only || tool.is_adapter())) {
        missing.extend(install_one(&tool.name, &tool.pin(), set, installer.ensure_tool(tool)).await);
    }
    // After the tools that generate them.
    for template in pins.templates.iter().filter(|_| set == ToolSet::Tests) {
        let package = TemplatePackage::new(template, &pins);
        missing.extend(install_one(package.name(), &package.pin(), set, installer.ensure_package(&package)).await);
    }
    for jdk in pins.jdks.iter().filter(|_| set == ToolSet::Tests) {
        let package = JdkPackage(jdk);
        let failed = install_one(package.name(), &package.pin(), set, installer.ensure_package(&package)).await;
        // Their tests go on without them: another distribution may not have them.
        if let Some(missing) = failed {
            println!("  {:<19} {missing}", "left out");
        }
    }
    Ok(missing)
}

/// Installs what only packages need. Errors: all that is still missing.
pub fn install_packagers() -> Result<()> {
    let pins = Pins::read().map_err(to_anyhow)?;
    pins.packagers.iter().try_for_each(|tool| install_packager(&tool.name))
}

/// Installs one of [`install_packagers`].
pub fn install_packager(name: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let pins = Pins::read().map_err(to_anyhow)?;
    let tool = find_packager(&pins, name)?;
    let installer = Installer::open(&|text| println!("  {text}")).map_err(to_anyhow)?;
    let install = installer.ensure_tool(tool);
    let missing = runtime.block_on(install_one(&tool.name, &tool.pin(), ToolSet::Tests, install));
    report_missing(&Vec::from_iter(missing), "cargo xtask dist")
}

/// The program of one of [`install_packagers`].
pub fn packager_path(name: &str) -> Result<PathBuf> {
    let pins = Pins::read().map_err(to_anyhow)?;
    let tool = find_packager(&pins, name)?;
    Ok(tools_folder().map_err(to_anyhow)?.join(&tool.name).join(&tool.entry))
}

fn find_packager<'a>(pins: &'a Pins, name: &str) -> Result<&'a Tool> {
    pins.packagers.iter().find(|tool| tool.name == name).with_context(|| format!("no packager is called {name}"))
}

/// Awaits the install and prints its line; returns it as missing when it failed.
async fn install_one(
    name: &str,
    pin: &str,
    set: ToolSet,
    install: impl Future<Output = tether_base::error::Result<InstallOutcome>>,
) -> Option<Missing> {
    let started = Instant::now();
    let outcome = match install.await {
        Ok(outcome) => outcome,
        Err(error) => {
            println!("  {name:<19} {pin} failed after {:.1} s", started.elapsed().as_secs_f64());
            return Some(Missing::new(name, to_anyhow(error)));
        }
    };
    let result = match outcome {
        InstallOutcome::Present => "present".to_owned(),
        InstallOutcome::Adopted => "present, installed by hand".to_owned(),
        InstallOutcome::Installed => format!("installed in {:.1} s", started.elapsed().as_secs_f64()),
    };
    if set == ToolSet::Tests || outcome == InstallOutcome::Installed {
        println!("  {name:<19} {pin} {result}");
    }
    None
}
