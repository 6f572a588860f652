//! Bringing tools to their pinned versions: the order, and that only one at a time does it.
//!
//! Must not know how a package is installed.

use std::fs::{File, OpenOptions};
use std::path::PathBuf;

use super::package_install::ToolPackage;
use super::pins::{Pins, Tool};
use super::tool_folder::{self, InstallOutcome, InstallablePackage};
use super::tool_status::tools_folder;
use crate::error::{Error, ErrorContext, Result};

/// The right to install; the kernel frees it when this process, and what it has started, has ended.
#[derive(Debug)]
pub struct Installer {
    tools: PathBuf,
    lock: File,
}

impl Installer {
    /// Makes the folder of the tools; waits while another one installs, and says so through `progress`.
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

    /// Makes sure that this one tool is there, without what it needs.
    pub async fn ensure_tool(&self, tool: &Tool) -> Result<InstallOutcome> {
        self.ensure_package(&ToolPackage { tool, lock: &self.lock }).await
    }

    /// Makes sure that a package of the caller's own kind is there.
    pub async fn ensure_package(&self, package: &impl InstallablePackage) -> Result<InstallOutcome> {
        tool_folder::ensure_installed(&self.tools, package).await.map_err(|cause| {
            let into = self.tools.join(package.name());
            Error::new(cause.kind, format!("cannot install {} into {}", package.pin(), into.display())).because(cause)
        })
    }
}

/// Installs the tool and what it needs; answers with what had to be done for each, in that order.
pub async fn install_tool(name: &str, progress: &dyn Fn(&str)) -> Result<Vec<(Tool, InstallOutcome)>> {
    let pins = Pins::read()?;
    let wanted = pins.with_needs(pins.tool(name)?)?;
    let installer = Installer::open(progress)?;
    let mut done = Vec::new();
    for tool in wanted {
        progress(&format!("installing {} ({})", tool.name, tool.pin()));
        done.push((tool.clone(), installer.ensure_tool(tool).await?));
    }
    Ok(done)
}
