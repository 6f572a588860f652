//! Installs tools in their pinned versions: each after those that it needs, and only one installer at a time.
//!
//! Does not depend on how a package is installed.

use std::fs::{File, OpenOptions};
use std::path::PathBuf;

use tether_base::error::{Error, ErrorContext, Result};

use super::atomic_install::{self, InstallOutcome, InstallablePackage};
use super::package_install::ToolPackage;
use super::pins::{Pins, Tool};
use super::tool_status::tools_folder;

/// The lock on the tools' folder; the kernel releases it when this process and those that it has started have exited.
#[derive(Debug)]
pub struct Installer {
    tools: PathBuf,
    lock: File,
}

impl Installer {
    /// Creates the tools' folder and locks it; waits for another installer, which is reported through `progress`.
    pub fn open(progress: &dyn Fn(&str)) -> Result<Installer> {
        let tools = tools_folder()?;
        let cannot = |cause| {
            Error::other(format!("cannot install tools into {}", tools.display()))
                .because(cause)
                .hint("set DEVTETHER_DATA_DIR to a folder that you can write to")
        };
        std::fs::create_dir_all(&tools).map_err(cannot)?;
        // Readable, because it becomes the stdin of what we run.
        let lock = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(tools.join(".lock"));
        let lock = lock.map_err(cannot)?;
        if lock.try_lock().is_err() {
            progress("waiting for another installation to finish");
            lock.lock().doing(|| format!("cannot lock {}", tools.join(".lock").display()))?;
        }
        Ok(Installer { tools, lock })
    }

    /// Installs this tool unless it is present, without the tools that it needs.
    pub async fn ensure_tool(&self, tool: &Tool) -> Result<InstallOutcome> {
        self.ensure_package(&ToolPackage { tool, lock: &self.lock }).await
    }

    /// Installs the package unless it is present.
    pub async fn ensure_package(&self, package: &impl InstallablePackage) -> Result<InstallOutcome> {
        atomic_install::install_atomically(&self.tools, package).await.map_err(|cause| {
            let into = self.tools.join(package.name());
            Error::new(cause.kind, format!("cannot install {} into {}", package.pin(), into.display())).because(cause)
        })
    }
}

/// Installs the tool and those that it needs; returns the outcome of each, in the order of the installs.
pub async fn install_tool(name: &str, progress: &dyn Fn(&str)) -> Result<Vec<(Tool, InstallOutcome)>> {
    let pins = Pins::read()?;
    let tools = pins.with_needs(pins.tool(name)?)?;
    let installer = Installer::open(progress)?;
    let mut done = Vec::new();
    for tool in tools {
        progress(&format!("installing {} ({})", tool.name, tool.pin()));
        done.push((tool.clone(), installer.ensure_tool(tool).await?));
    }
    Ok(done)
}
