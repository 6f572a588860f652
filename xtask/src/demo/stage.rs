//! What must be in place before the story can be told: tools, the binary, a workspace of the reader's own.
//!
//! Must not know the story.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use super::say;
use crate::place::Place;
use crate::tools;

/// Installs what is missing.
pub fn tools() -> Result<()> {
    let began = Instant::now();
    tools::install(tools::For::Demo)?;
    say::set_up("tools", &format!("all present after {:.1} s", began.elapsed().as_secs_f64()));
    Ok(())
}

/// The development build: `tether` waits for windows and compilers, so that what a release build would save while
/// it runs is far less than what it costs to make.
pub fn binary(sh: &Shell, place: &Place) -> Result<PathBuf> {
    let began = Instant::now();
    cmd!(sh, "cargo build --package devtether --bin tether").quiet().run()?;
    say::set_up("tether", &format!("development build, {:.1} s", began.elapsed().as_secs_f64()));
    Ok(place.target().join("debug/tether"))
}

/// A fresh copy of `examples/hello-extension` below `target/demo`, with its packages.
pub fn workspace(sh: &Shell, place: &Place) -> Result<PathBuf> {
    let began = Instant::now();
    let workspace = place.target().join("demo/hello-extension");
    if workspace.exists() {
        fs::remove_dir_all(&workspace).with_context(|| format!("cannot clear {}", workspace.display()))?;
    }
    copy(&place.checkout.join("examples/hello-extension"), &workspace)?;
    let _in = sh.push_dir(&workspace);
    tools::quietly(cmd!(sh, "npm ci --ignore-scripts --no-audit --no-fund"))?;
    let shown = workspace.strip_prefix(&place.checkout).unwrap_or(&workspace).display().to_string();
    say::set_up("workspace", &format!("{shown}, npm ci {:.1} s", began.elapsed().as_secs_f64()));
    Ok(workspace)
}

/// Copies what is in the repository, and not what a build or an earlier run left there.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let (source, target) = (entry.path(), to.join(&name));
        match entry.file_type()? {
            kind if kind.is_dir() && ["node_modules", "out", ".devtools"].iter().any(|left| name == *left) => {}
            kind if kind.is_dir() => copy(&source, &target)?,
            _ => drop(fs::copy(&source, &target).with_context(|| format!("cannot copy {}", source.display()))?),
        }
    }
    Ok(())
}
