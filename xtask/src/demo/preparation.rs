//! Prepares the demo: installs the tools, builds the binary, copies the example workspace.
//!
//! Does not depend on the story.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use super::story_output::print_preparation;
use crate::paths::CheckoutPaths;
use crate::shell::run_quietly;
use crate::tools::{self, ToolSet};

/// Installs what is missing.
pub fn install_tools() -> Result<()> {
    let began = Instant::now();
    tools::install_tools(ToolSet::Demo)?;
    print_preparation("tools", &format!("all present after {:.1} s", began.elapsed().as_secs_f64()));
    Ok(())
}

/// The development build: `tether` waits for windows and compilers, so a release build would cost far more time than
/// it saves. Selecting this package too makes cargo resolve the same features as for `cargo xtask`, so that the
/// library is not compiled a second time.
pub fn build_binary(sh: &Shell, place: &CheckoutPaths) -> Result<PathBuf> {
    let began = Instant::now();
    cmd!(sh, "cargo build --package devtether --package xtask --bin tether").quiet().run()?;
    print_preparation("tether", &format!("development build, {:.1} s", began.elapsed().as_secs_f64()));
    Ok(place.target().join("debug/tether"))
}

/// A fresh copy of `examples/hello-extension` below `target/demo`, with its packages.
pub fn make_workspace(sh: &Shell, place: &CheckoutPaths) -> Result<PathBuf> {
    let began = Instant::now();
    let workspace = place.target().join("demo/hello-extension");
    if workspace.exists() {
        fs::remove_dir_all(&workspace).with_context(|| format!("cannot clear {}", workspace.display()))?;
    }
    copy_sources(&place.checkout.join("examples/hello-extension"), &workspace)?;
    let _in = sh.push_dir(&workspace);
    run_quietly(cmd!(sh, "npm ci --ignore-scripts --no-audit --no-fund"))?;
    let shown = workspace.strip_prefix(&place.checkout).unwrap_or(&workspace).display().to_string();
    print_preparation("workspace", &format!("{shown}, npm ci {:.1} s", began.elapsed().as_secs_f64()));
    Ok(workspace)
}

/// Copies the folder without what builds and earlier runs have made in it.
fn copy_sources(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let (source, target) = (entry.path(), to.join(&name));
        match entry.file_type()? {
            kind if kind.is_dir() && ["node_modules", "out", ".devtools"].iter().any(|left| name == *left) => {}
            kind if kind.is_dir() => copy_sources(&source, &target)?,
            _ => drop(fs::copy(&source, &target).with_context(|| format!("cannot copy {}", source.display()))?),
        }
    }
    Ok(())
}
