//! Programs that the distribution provides: probed first, installed with apt-get when missing.
//!
//! Must not know about the data folder: nothing here is ours to remove or replace.

use anyhow::{Result, bail};
use xshell::{Shell, cmd};

use super::For;
use super::pins::SystemPin;

/// Makes sure that every pinned program answers its probe; installs the missing ones in one go.
pub fn ensure(sh: &Shell, pins: &[SystemPin], need: For) -> Result<()> {
    let missing: Vec<&SystemPin> = pins.iter().filter(|pin| probe(sh, pin).is_err()).collect();
    if missing.is_empty() {
        if need == For::Tests {
            println!("  {:<17} {} programs present", "system", pins.len());
        }
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().flat_map(|pin| &pin.apt).map(String::as_str).collect();
    apt_install(sh, &packages)?;
    for pin in missing {
        probe(sh, pin)?;
    }
    println!("  {:<17} installed {}", "system", packages.join(" "));
    Ok(())
}

/// Runs the probe and holds the first version number in its output against the least one that works.
fn probe(sh: &Shell, pin: &SystemPin) -> Result<()> {
    let (program, arguments) = pin.probe.split_first().expect("a probe names a program");
    let said = cmd!(sh, "{program} {arguments...}").quiet().ignore_stderr().read()?;
    match major(&said) {
        Some(found) if found >= pin.least => Ok(()),
        _ => bail!(
            "`{}` says `{}`, but version {} or newer is needed\n  hint: install a newer {} and put it on PATH",
            pin.probe.join(" "),
            said.trim(),
            pin.least,
            pin.apt.join(" ")
        ),
    }
}

/// The first number in a text such as `v20.20.2` or `Chromium 156.0.8078.79 built on …`.
fn major(text: &str) -> Option<u32> {
    let digits = text.find(|c: char| c.is_ascii_digit()).map(|at| &text[at..])?;
    digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn apt_install(sh: &Shell, packages: &[&str]) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::major;

    #[test]
    fn the_major_version_is_the_first_number() {
        for (text, expected) in [
            ("v20.20.2", Some(20)),
            ("Chromium 156.0.8078.79 built on Debian", Some(156)),
            ("git version 2.47.3", Some(2)),
            ("pip 23.2.1 from somewhere/3.11", Some(23)),
            ("command not found", None),
            ("", None),
        ] {
            assert_eq!(major(text), expected, "{text:?}");
        }
    }
}
