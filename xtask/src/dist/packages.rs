//! What each package looks like: an archive, two for npm, a wheel, one for Debian, the VS Code extension.
//!
//! Each is packed by the tool of its own world, from a folder that is made here. Does not know how they are installed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use xshell::{Shell, cmd};

use super::program::{GLIBC, Program};
use crate::paths::CheckoutPaths;
use crate::shell::run_quietly;
use crate::tools;

/// As the crate is called; the program is `tether`.
const NAME: &str = "devtether";
const SUMMARY: &str =
    "Keeps the window that you develop, and its debug sessions, running while the tools around it restart";
const LICENSE: &str = "MIT OR Apache-2.0";
/// What each package has beside the program.
const DOCUMENTS: [&str; 3] = ["README.md", "LICENSE-APACHE", "LICENSE-MIT"];
/// npm's package with the program of this platform.
const NPM_PROGRAM: &str = "@devtether/linux-x64";
const LAUNCHER: &str = include_str!("tether.js");

/// How a package is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageKind {
    Archive,
    Npm,
    Wheel,
    Debian,
    Vsix,
}

impl PackageKind {
    pub fn name(self) -> &'static str {
        match self {
            PackageKind::Archive => "archive",
            PackageKind::Npm => "npm",
            PackageKind::Wheel => "wheel",
            PackageKind::Debian => "Debian",
            PackageKind::Vsix => "VS Code",
        }
    }
}

/// A package that has been made.
#[derive(Debug)]
pub struct Package {
    pub kind: PackageKind,
    /// All that are installed together.
    pub files: Vec<PathBuf>,
    /// Of the program that is in it.
    pub version: String,
}

/// Makes packages.
pub struct Packer<'a> {
    sh: &'a Shell,
    place: &'a CheckoutPaths,
    program: &'a Program,
    out: &'a Path,
    /// The folders that become packages.
    stage: TempDir,
}

impl Packer<'_> {
    pub fn new<'a>(sh: &'a Shell, place: &'a CheckoutPaths, program: &'a Program, out: &'a Path) -> Result<Packer<'a>> {
        fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
        Ok(Packer { sh, place, program, out, stage: tempfile::Builder::new().prefix("dist-").tempdir()? })
    }

    /// Every package.
    pub fn pack_all(&self) -> Result<Vec<Package>> {
        let package = |kind: PackageKind, files: Vec<PathBuf>| -> Result<Package> {
            for file in &files {
                ensure!(file.is_file(), "{} was not made", file.display());
            }
            Ok(Package { kind, files, version: self.program.version.clone() })
        };
        Ok(vec![
            package(PackageKind::Archive, vec![self.pack_archive()?])?,
            package(PackageKind::Npm, self.pack_npm()?.into())?,
            package(PackageKind::Wheel, vec![self.pack_wheel()?])?,
            package(PackageKind::Debian, vec![self.pack_debian()?])?,
            package(PackageKind::Vsix, vec![self.pack_vsix()?])?,
        ])
    }

    /// The list of the packages that the program is made of, as CycloneDX has it.
    pub fn write_materials(&self, target: &str) -> Result<()> {
        // It writes beside each manifest.
        let source = self.folder("source")?;
        let archive = self.stage.path().join("source.tar");
        let sh = self.sh;
        cmd!(sh, "git archive --format=tar --output {archive} HEAD").run()?;
        cmd!(sh, "tar --extract --file {archive} --directory {source}").run()?;
        let _in = sh.push_dir(&source);
        let program = tools::packager_path("cyclonedx")?;
        run_quietly(cmd!(sh, "{program} cyclonedx --format json --target {target} --override-filename sbom"))?;
        let into = self.out.join(format!("{NAME}-{}.cdx.json", self.program.version));
        fs::copy(source.join("sbom.json"), &into).context("cyclonedx has written no list")?;
        Ok(())
    }

    fn pack_archive(&self) -> Result<PathBuf> {
        let name = format!("{NAME}-{}-linux-x64", self.program.version);
        let folder = self.folder(&name)?;
        self.add_program(&folder.join("tether"))?;
        self.add_documents(&folder)?;
        let file = self.out.join(format!("{name}.tar.gz"));
        let (sh, stage) = (self.sh, self.stage.path());
        let time = format!("@{}", self.commit_time()?);
        let owner = ["--owner=0", "--group=0", "--numeric-owner", "--sort=name"];
        run_quietly(cmd!(
            sh,
            "tar --create --file {file} --use-compress-program {GZIP} {owner...} --mtime {time} --directory {stage} {name}"
        ))?;
        Ok(file)
    }

    /// A package with a script for all platforms, and one with the program of this platform, which the first asks for.
    fn pack_npm(&self) -> Result<[PathBuf; 2]> {
        let version = &self.program.version;
        let about = json!({"version": version, "license": LICENSE, "description": SUMMARY});
        let with = |about: &Value, more: Value| -> Value {
            let mut manifest = about.as_object().cloned().unwrap_or_default();
            manifest.extend(more.as_object().cloned().unwrap_or_default());
            manifest.into()
        };
        let main = self.folder("npm/main")?;
        let manifest = json!({
            "name": NAME, "bin": {"tether": "bin/tether.js"}, "files": ["bin"], "engines": {"node": ">=18"},
            "optionalDependencies": {NPM_PROGRAM: version},
        });
        self.write(&main.join("package.json"), &with(&about, manifest).to_string())?;
        self.write(&main.join("bin/tether.js"), LAUNCHER)?;
        self.add_documents(&main)?;
        let program = self.folder("npm/program")?;
        let manifest = json!({
            "name": NPM_PROGRAM, "files": ["bin"], "os": ["linux"], "cpu": ["x64"], "libc": ["glibc"],
            "preferUnplugged": true,
        });
        self.write(&program.join("package.json"), &with(&about, manifest).to_string())?;
        self.add_program(&program.join("bin/tether"))?;
        self.add_documents(&program)?;
        for folder in [&main, &program] {
            let (_in, sh, out) = (self.sh.push_dir(folder), self.sh, self.out);
            run_quietly(cmd!(sh, "npm pack --pack-destination {out}"))?;
        }
        Ok([format!("{NAME}-{version}.tgz"), format!("devtether-linux-x64-{version}.tgz")].map(|it| self.out.join(it)))
    }

    fn pack_wheel(&self) -> Result<PathBuf> {
        let version = &self.program.version;
        let folder = self.folder("wheel")?;
        self.add_program(&folder.join(format!("{NAME}-{version}.data/scripts/tether")))?;
        let info = folder.join(format!("{NAME}-{version}.dist-info"));
        let tag = format!("py3-none-manylinux_2_{GLIBC}_x86_64");
        self.write(
            &info.join("WHEEL"),
            &format!("Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: false\nTag: {tag}\n"),
        )?;
        let licenses: String = DOCUMENTS[1..].iter().map(|file| format!("License-File: {file}\n")).collect();
        let readme = self.read("README.md")?;
        self.write(
            &info.join("METADATA"),
            &format!(
                "Metadata-Version: 2.4\nName: {NAME}\nVersion: {version}\nSummary: {SUMMARY}\nLicense-Expression: {LICENSE}\n\
                 {licenses}Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{readme}"
            ),
        )?;
        for file in &DOCUMENTS[1..] {
            self.write(&info.join("licenses").join(file), &self.read(file)?)?;
        }
        let (sh, out, python) = (self.sh, self.out, tools::packager_path("wheel")?);
        let time = self.commit_time()?;
        run_quietly(cmd!(sh, "{python} -m wheel pack {folder} --dest-dir {out}").env("SOURCE_DATE_EPOCH", time))?;
        Ok(out.join(format!("{NAME}-{version}-{tag}.whl")))
    }

    fn pack_debian(&self) -> Result<PathBuf> {
        let version = &self.program.version;
        let folder = self.folder("debian")?;
        self.add_program(&folder.join("usr/bin/tether"))?;
        let share = folder.join("usr/share");
        let program = &self.program.path;
        for (shell, file) in [
            ("bash", "bash-completion/completions/tether"),
            ("zsh", "zsh/vendor-completions/_tether"),
            ("fish", "fish/vendor_completions.d/tether.fish"),
        ] {
            let sh = self.sh;
            self.write(&share.join(file), &(cmd!(sh, "{program} completions {shell}").read()? + "\n"))?;
        }
        let manual = share.join("man/man1");
        fs::create_dir_all(&manual)?;
        let sh = self.sh;
        run_quietly(cmd!(sh, "{program} man {manual}"))?;
        let pages: Vec<PathBuf> = fs::read_dir(&manual)?.map(|page| Ok(page?.path())).collect::<Result<_>>()?;
        ensure!(!pages.is_empty(), "`tether man` has written no page");
        run_quietly(cmd!(sh, "gzip -9n {pages...}"))?;
        let licenses = DOCUMENTS[1..].iter().map(|file| self.read(file)).collect::<Result<Vec<_>>>()?.join("\n");
        self.write(&share.join("doc/devtether/copyright"), &format!("License: {LICENSE}\n\n{licenses}"))?;
        let libgcc = if self.program.needs_libgcc { ", libgcc-s1" } else { "" };
        let glibc = self.program.glibc;
        self.write(
            &folder.join("DEBIAN/control"),
            &format!(
                "Package: {NAME}\nVersion: {version}\nArchitecture: amd64\nSection: devel\nPriority: optional\n\
                 Maintainer: the authors of devtether <devtether@devtether.invalid>\nDepends: libc6 (>= 2.{glibc}){libgcc}\n\
                 Description: {SUMMARY}\n"
            ),
        )?;
        let file = self.out.join(format!("{NAME}_{version}_amd64.deb"));
        let command = cmd!(sh, "dpkg-deb --root-owner-group -Zxz --build {folder} {file}");
        run_quietly(command.env("SOURCE_DATE_EPOCH", self.commit_time()?))?;
        Ok(file)
    }

    /// The extension with the program in it, which it prefers to that on PATH.
    fn pack_vsix(&self) -> Result<PathBuf> {
        let from = self.place.checkout.join("extension");
        let folder = self.folder("extension")?;
        let (sh, version) = (self.sh, &self.program.version);
        for name in ["media", "out"] {
            let source = from.join(name);
            ensure!(source.is_dir(), "{} is missing: the extension is not built", source.display());
            run_quietly(cmd!(sh, "cp --recursive {source} {folder}"))?;
        }
        for name in ["README.md", "CHANGELOG.md", "LICENSE", ".vscodeignore"] {
            fs::copy(from.join(name), folder.join(name)).with_context(|| format!("cannot copy {name}"))?;
        }
        let mut manifest: Value = serde_json::from_str(&fs::read_to_string(from.join("package.json"))?)?;
        ensure!(manifest["version"] == json!(version), "the extension has another version than the program, {version}");
        // It is built already.
        manifest.as_object_mut().context("package.json is no object")?.remove("scripts");
        self.write(&folder.join("package.json"), &manifest.to_string())?;
        self.add_program(&folder.join("bin/tether"))?;
        let file = self.out.join(format!("{NAME}-linux-x64-{version}.vsix"));
        let (vsce, _in) = (from.join("node_modules/.bin/vsce"), sh.push_dir(&folder));
        let options = ["--no-dependencies", "--allow-missing-repository", "--no-rewrite-relative-links"];
        run_quietly(cmd!(sh, "{vsce} package --target linux-x64 {options...} --out {file}"))?;
        Ok(file)
    }

    /// A new folder of that name.
    fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.stage.path().join(name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }

    fn read(&self, document: &str) -> Result<String> {
        fs::read_to_string(self.place.checkout.join(document)).with_context(|| format!("cannot read {document}"))
    }

    fn write(&self, file: &Path, text: &str) -> Result<()> {
        let folder = file.parent().context("a file is in a folder")?;
        fs::create_dir_all(folder)?;
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
    }

    fn add_program(&self, file: &Path) -> Result<()> {
        fs::create_dir_all(file.parent().context("a file is in a folder")?)?;
        fs::copy(&self.program.path, file).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(fs::set_permissions(file, fs::Permissions::from_mode(0o755))?)
    }

    fn add_documents(&self, folder: &Path) -> Result<()> {
        DOCUMENTS.iter().try_for_each(|name| self.write(&folder.join(name), &self.read(name)?))
    }

    /// In seconds since 1970. The time of the commit, so that the same commit gives the same packages.
    fn commit_time(&self) -> Result<String> {
        let sh = self.sh;
        Ok(cmd!(sh, "git log -1 --format=%ct").read()?)
    }
}

/// The smallest files, without the time at which they were made.
const GZIP: &str = "gzip -9n";
