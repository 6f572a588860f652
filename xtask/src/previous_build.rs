//! The `tether` of the commit before, for the test that a supervisor takes over what it has started.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::paths::CheckoutPaths;

/// Builds the commit before, unless that has been done. `None`, said so: the checkout does not have it.
pub fn build_previous(sh: &Shell, place: &CheckoutPaths) -> Result<Option<PathBuf>> {
    let Ok(commit) = cmd!(sh, "git rev-parse --verify --quiet HEAD^").quiet().ignore_stderr().read() else {
        eprintln!("warning: this checkout does not have the commit before: its sessions are not taken over in a test");
        return Ok(None);
    };
    let folder = place.target().join("previous");
    let (program, built) = (folder.join("tether"), folder.join("commit"));
    if fs::read_to_string(&built).is_ok_and(|it| it == commit) && program.is_file() {
        return Ok(Some(program));
    }
    let source = folder.join("source");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&source).with_context(|| format!("cannot create {}", source.display()))?;
    let archive = folder.join("source.tar");
    cmd!(sh, "git archive --format=tar --output {archive} {commit}").run()?;
    cmd!(sh, "tar --extract --file {archive} --directory {source}").run()?;
    let (manifest, target) = (source.join("Cargo.toml"), place.target());
    // With the dependencies that are built already; the next build puts this checkout's program there again.
    cmd!(sh, "cargo build --workspace --bin tether --manifest-path {manifest} --target-dir {target}").run()?;
    fs::copy(target.join("debug/tether"), &program).context("cannot copy the program of the commit before")?;
    fs::remove_dir_all(&source)?;
    fs::write(&built, commit)?;
    Ok(Some(program))
}
