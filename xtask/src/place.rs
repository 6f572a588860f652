//! Where things lie: the checkout, and the data folder into which tools are installed.
//!
//! Must not know what is installed there, nor how.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use devtether::config::folders;
use devtether::tools::entry_path;

use crate::tools::told;

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
        Ok(Place { checkout: checkout.to_owned(), data: folders::data_dir().map_err(told)? })
    }

    /// What is started of an installed tool, by its name in the pins.
    pub fn tool(&self, name: &str) -> Result<PathBuf> {
        entry_path(name).map_err(told)
    }

    /// Cargo's target folder of this checkout.
    pub fn target(&self) -> PathBuf {
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.checkout.join("target"), |dir| self.checkout.join(dir))
    }
}
