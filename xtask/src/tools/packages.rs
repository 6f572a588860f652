//! How each kind of package is put into a folder, and how a folder proves that it holds it whole.
//!
//! Only ever runs the registries' ordinary clients, never an install script of a package.
//! Must not know where the folder finally lies: see [`super::slot`].

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use xshell::{Shell, cmd};

use super::pins::{NpmPin, VenvPin, WheelPin};
use super::quietly;
use super::slot::Package;

impl Package for WheelPin {
    fn name(&self) -> &str {
        &self.name
    }

    fn pin(&self) -> String {
        format!("{}=={}", self.package, self.version)
    }

    fn install(&self, sh: &Shell, folder: &Path) -> Result<()> {
        let pin = self.pin();
        quietly(cmd!(sh, "python3 -m pip install --no-deps --only-binary :all: --target {folder} {pin}"))
    }

    fn verify(&self, sh: &Shell, folder: &Path) -> Result<()> {
        let unpacked = format!("{}-{}.dist-info", self.package.replace('-', "_"), self.version);
        ensure!(folder.join(&unpacked).join("RECORD").is_file(), "{unpacked} is missing or of another version");
        let (program, arguments) = self.proof.split_first().context("the proof names no program")?;
        let program = folder.join(program);
        quietly(cmd!(sh, "{program} {arguments...}"))
    }
}

impl Package for NpmPin {
    fn name(&self) -> &str {
        &self.name
    }

    fn pin(&self) -> String {
        format!("{}@{}", self.package, self.version)
    }

    fn install(&self, sh: &Shell, folder: &Path) -> Result<()> {
        let pin = self.pin();
        quietly(cmd!(sh, "npm install --prefix {folder} --ignore-scripts --no-audit --no-fund {pin}"))?;
        for inner in self.inner_folders(folder) {
            let _in = sh.push_dir(&inner);
            quietly(cmd!(sh, "npm install --omit=dev --ignore-scripts --no-audit --no-fund"))?;
        }
        Ok(())
    }

    fn verify(&self, _: &Shell, folder: &Path) -> Result<()> {
        let manifest = folder.join("node_modules").join(&self.package).join("package.json");
        let text = fs::read_to_string(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
        let found: Manifest = serde_json::from_str(&text).with_context(|| format!("in {}", manifest.display()))?;
        ensure!(found.version == self.version, "{} is {}, not {}", self.package, found.version, self.version);
        for root in [vec![folder.to_owned()], self.inner_folders(folder)].concat() {
            // npm writes this file as the last act of an install.
            let finished = root.join("node_modules/.package-lock.json");
            ensure!(finished.is_file(), "the install in {} never finished", root.display());
        }
        Ok(())
    }
}

impl NpmPin {
    fn inner_folders(&self, folder: &Path) -> Vec<PathBuf> {
        self.inner.iter().map(|inner| folder.join("node_modules").join(&self.package).join(inner)).collect()
    }
}

#[derive(Deserialize)]
struct Manifest {
    version: String,
}

impl Package for VenvPin {
    fn name(&self) -> &str {
        &self.name
    }

    fn pin(&self) -> String {
        self.packages.join(" ")
    }

    fn install(&self, sh: &Shell, folder: &Path) -> Result<()> {
        let packages = &self.packages;
        quietly(cmd!(sh, "python3 -m venv {folder}"))?;
        let python = folder.join("bin/python");
        quietly(cmd!(sh, "{python} -m pip install --only-binary :all: {packages...}"))
    }

    fn verify(&self, sh: &Shell, folder: &Path) -> Result<()> {
        let python = folder.join("bin/python");
        let proof = &self.proof;
        quietly(cmd!(sh, "{python} -c {proof}"))?;
        let installed = cmd!(sh, "{python} -m pip freeze").quiet().ignore_stderr().read()?;
        for package in &self.packages {
            ensure!(installed.lines().any(|line| line == package), "{package} is not in the environment");
        }
        Ok(())
    }
}
