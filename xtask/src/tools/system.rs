//! Programs that the distribution provides, installed with apt-get when missing: only here, never by the product.
//!
//! Must not know about the data folder: nothing here is ours to remove or replace.

use anyhow::{Result, bail};
use devtether::tools::{SystemPin, probe_program};
use xshell::{Shell, cmd};

use super::{For, told};

/// Makes sure that every pinned program answers its probe; installs the missing ones in one go.
pub async fn ensure(pins: &[SystemPin], need: For) -> Result<()> {
    let mut missing = Vec::new();
    for pin in pins.iter().filter(|pin| need == For::Tests || !pin.tests_only) {
        if probe_program(pin).await.is_err() {
            missing.push(pin);
        }
    }
    if missing.is_empty() {
        if need == For::Tests {
            println!("  {:<19} {} programs present", "system", pins.len());
        }
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().flat_map(|pin| &pin.apt).map(String::as_str).collect();
    apt_install(&packages)?;
    for pin in missing {
        probe_program(pin).await.map_err(told)?;
    }
    println!("  {:<19} installed {}", "system", packages.join(" "));
    Ok(())
}

fn apt_install(packages: &[&str]) -> Result<()> {
    let sh = Shell::new()?;
    let by_hand = format!("sudo apt-get update && sudo apt-get install -y {}", packages.join(" "));
    if cmd!(sh, "apt-get --version").quiet().ignore_stderr().read().is_err() {
        bail!(
            "{} missing, and there is no apt-get here\n  hint: install them with this system's package manager",
            packages.join(", ")
        );
    }
    if !rustix::process::geteuid().is_root() {
        bail!("{} missing, and apt-get needs root\n  hint: {by_hand}", packages.join(", "));
    }
    let _noninteractive = sh.push_env("DEBIAN_FRONTEND", "noninteractive");
    for arguments in [&["update"][..], &[&["install", "-y", "--no-install-recommends"], packages].concat()] {
        super::quietly(cmd!(sh, "apt-get {arguments...}"))
            .map_err(|error| error.context(format!("cannot install {}\n  hint: {by_hand}", packages.join(" "))))?;
    }
    Ok(())
}
