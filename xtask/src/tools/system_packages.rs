//! Programs that the distribution provides, installed with apt-get when they are missing: only here, never by the product.
//!
//! Does not depend on the data folder: nothing here is ours to remove or replace.

use std::fs::OpenOptions;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::{FlockOperation, fcntl_lock};
use tether_tools::{SystemPin, check_program_version};
use xshell::{Shell, cmd};

use super::missing::Missing;
use crate::shell::{run_quietly, to_anyhow};

/// How long apt-get waits, in seconds, for another one that holds the lock of dpkg.
const DPKG_LOCK_TIMEOUT: &str = "DPkg::Lock::Timeout=600";
/// What apt-get prints before the path of a lock that another one holds.
const LOCKED: &str = "E: Could not get lock ";

/// Installs the programs whose probe fails. Returns those that are still missing, each with its cause.
pub async fn install_missing(pins: &[&SystemPin]) -> Vec<Missing> {
    let mut requested = Vec::new();
    for pin in pins {
        if check_program_version(pin).await.is_err() {
            requested.push(*pin);
        }
    }
    if requested.is_empty() {
        return Vec::new();
    }
    let failed = match install_packages(&requested) {
        Ok(()) => Vec::new(),
        // One unknown package fails all of them: each by itself.
        Err(_) if requested.len() > 1 => {
            requested.iter().filter_map(|pin| Some((&pin.name, install_packages(&[*pin]).err()?))).collect()
        }
        Err(error) => vec![(&requested[0].name, error)],
    };
    let mut failed: std::collections::HashMap<_, _> = failed.into_iter().collect();
    let mut missing = Vec::new();
    for pin in requested {
        match check_program_version(pin).await {
            Ok(found) => println!("  {:<19} installed {} {}", "system", pin.name, found.version),
            Err(error) => {
                missing.push(Missing::new(&pin.name, failed.remove(&pin.name).unwrap_or_else(|| to_anyhow(error))));
            }
        }
    }
    missing
}

fn install_packages(pins: &[&SystemPin]) -> Result<()> {
    let packages = &pins.iter().flat_map(|pin| &pin.apt).map(String::as_str).collect::<Vec<_>>();
    let sh = Shell::new()?;
    let by_hand = format!("`sudo apt-get update && sudo apt-get install -y {}`", packages.join(" "));
    if cmd!(sh, "apt-get --version").quiet().ignore_stderr().read().is_err() {
        bail!("there is no apt-get\n  hint: install {} with this system's package manager", packages.join(", "));
    }
    if !rustix::process::geteuid().is_root() {
        bail!("apt-get needs root\n  hint: {by_hand}");
    }
    // The text of apt-get's messages is read.
    let _language = sh.push_env("LC_ALL", "C");
    let _noninteractive = sh.push_env("DEBIAN_FRONTEND", "noninteractive");
    // An update may fail for one of several sources, and the package be in another.
    let updated = run_apt(&sh, &["update"]);
    run_apt(&sh, &[&["install", "-y", "--no-install-recommends"], &packages[..]].concat())
        .map_err(|error| updated.err().map_or(anyhow!("{error:#}"), |update| anyhow!("{update:#}\n{error:#}")))
        .with_context(|| format!("cannot install {}\n  hint: {by_hand}", packages.join(" ")))
}

/// Runs apt-get, after every other one. Its option covers the locks of dpkg only: with the one of the package lists
/// (`update`) or of the downloads taken it fails at once (apt 2.6), and is then run again when that lock is free.
fn run_apt(sh: &Shell, arguments: &[&str]) -> Result<()> {
    loop {
        match run_quietly(cmd!(sh, "apt-get -o {DPKG_LOCK_TIMEOUT} {arguments...}")) {
            Err(error) if let Some(lock) = locked_path(&error.to_string()) => {
                println!("  {:<19} waiting for another apt-get ({lock})", "system");
                wait_for_lock(Path::new(lock))?;
            }
            result => return result,
        }
    }
}

/// The lock that another process holds, in the output of a failed apt-get.
fn locked_path(output: &str) -> Option<&str> {
    let (_, rest) = output.split_once(LOCKED)?;
    Some(rest.split_once(". It is held by")?.0)
}

/// Waits until the file's POSIX lock, which apt-get uses, is free.
fn wait_for_lock(path: &Path) -> Result<()> {
    let file = OpenOptions::new().write(true).open(path);
    let file = file.with_context(|| format!("cannot open {}", path.display()))?;
    // Freed when the file is closed.
    fcntl_lock(&file, FlockOperation::LockExclusive).with_context(|| format!("cannot lock {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_lock_that_another_holds_is_read_from_the_output() {
        let held = "`apt-get update` failed: exit status: 100\n    E: Could not get lock /var/lib/apt/lists/lock. \
                    It is held by process 7 (apt-get)\n    E: Unable to lock directory /var/lib/apt/lists/";
        assert_eq!(locked_path(held), Some("/var/lib/apt/lists/lock"));
        assert_eq!(locked_path("E: Unable to locate package x"), None);
        // Without permission: no other process has it.
        assert_eq!(locked_path("E: Could not open lock file /x - open (13: Permission denied)"), None);
    }

    #[test]
    fn a_lock_is_waited_for_until_its_holder_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let hold = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); input()";
        let mut holder = Command::new("python3");
        holder.args(["-c", hold]).arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = holder.spawn().unwrap();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        let (ended, waiting) = mpsc::channel();
        std::thread::spawn({
            let path = path.clone();
            move || ended.send(wait_for_lock(&path).is_ok())
        });
        assert!(waiting.recv_timeout(std::time::Duration::from_millis(50)).is_err(), "it is held");
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert!(waiting.recv().unwrap());
    }
}
