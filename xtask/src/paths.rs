//! Paths: the checkout, cargo's target folder, and the data folder into which tools are installed.
//!
//! Does not depend on what is installed there, nor how.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tether_base::xdg;
use tether_tools::entry_path;

use crate::shell::to_anyhow;

/// The folders that every task works on; all absolute.
pub struct CheckoutPaths {
    /// The top of the checkout.
    pub checkout: PathBuf,
    /// `$DEVTETHER_DATA_DIR`, else `${XDG_DATA_HOME:-~/.local/share}/devtether`.
    pub data: PathBuf,
}

impl CheckoutPaths {
    /// Errors: neither HOME nor the XDG variables are set.
    pub fn find() -> Result<CheckoutPaths> {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask is not in a checkout")?;
        Ok(CheckoutPaths { checkout: checkout.to_owned(), data: xdg::data_dir().map_err(to_anyhow)? })
    }

    /// The program of an installed tool, by the tool's name in the pins. It need not exist.
    pub fn tool(&self, name: &str) -> Result<PathBuf> {
        entry_path(name).map_err(to_anyhow)
    }

    /// Cargo's target folder of this checkout.
    pub fn target(&self) -> PathBuf {
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.checkout.join("target"), |dir| self.checkout.join(dir))
    }
}
