//! JDKs that this Debian does not have, from the packages of a newer one, each in a slot beside the tools; for tests only.
//!
//! Nothing is installed into the system: the packages are unpacked into a folder, and run with the C library that they bring.
//! Does not depend on what is tested with them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tether_base::error::{Error, ErrorContext};
use tether_tools::{DebianJdk, InstallablePackage};
use xshell::{Shell, cmd};

use crate::shell::run_quietly;

/// The programs of a JDK that tests run.
const PROGRAMS: [&str; 4] = ["java", "javac", "javap", "jar"];
/// Which of apt's sources the newer packages are taken from: where those of this Debian are.
const SOURCES: [&str; 3] = ["--format", "$(REPO_URI)", "Created-By: Packages"];

/// One of them.
pub struct JdkPackage<'a>(pub &'a DebianJdk);

impl JdkPackage<'_> {
    fn unpack(&self, folder: &Path) -> Result<()> {
        let sh = Shell::new()?;
        fs::create_dir_all(folder)?;
        let work = tempfile::tempdir()?;
        let options = &apt_options(&sh, work.path(), &self.0.suite)?;
        run_quietly(cmd!(sh, "apt-get {options...} update"))?;
        let packages = self.0.packages.iter().map(|name| format!("{name}/{}", self.0.suite));
        let _in = sh.push_dir(work.path());
        run_quietly(cmd!(sh, "apt-get {options...} download {packages...}"))?;
        for entry in fs::read_dir(work.path())? {
            let archive = entry?.path();
            if archive.extension().is_some_and(|it| it == "deb") {
                run_quietly(cmd!(sh, "dpkg -x {archive} {folder}"))?;
            }
        }
        let home = only_match(folder, "usr/lib/jvm/java-*-openjdk-*")?;
        // Half of its size, and only `jlink` needs it.
        fs::remove_dir_all(home.join("jmods")).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        copy_settings(&sh, folder, &home)?;
        // By this file its version is known; the starters are not beside the one of the JDK.
        fs::copy(home.join("release"), folder.join("release"))?;
        self.write_starters(folder, &home)
    }

    /// Programs that start those of the JDK with their own C library, wherever the folder is.
    fn write_starters(&self, folder: &Path, home: &Path) -> Result<()> {
        let loader = only_match(folder, "usr/lib/*-linux-gnu*/ld-linux-*")?;
        let libraries =
            loader.parent().context("a loader without a folder")?.strip_prefix(folder)?.display().to_string();
        let (loader, home) = (loader.strip_prefix(folder)?.display(), home.strip_prefix(folder)?.display());
        fs::create_dir_all(folder.join("bin"))?;
        for program in PROGRAMS {
            let text = format!(
                "#!/bin/sh\nroot=$(dirname \"$(dirname \"$(readlink -f \"$0\")\")\")\n\
                 exec \"$root/{loader}\" --library-path \"$root/{libraries}\" \"$root/{home}/bin/{program}\" \"$@\"\n"
            );
            let path = folder.join("bin").join(program);
            fs::write(&path, text)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    }
}

/// Options of apt-get with which it knows the packages of that suite only, and keeps what it writes in a folder of ours.
fn apt_options(sh: &Shell, work: &Path, suite: &str) -> Result<Vec<String>> {
    let targets = cmd!(sh, "apt-get indextargets {SOURCES...}").quiet().read()?;
    let is_main = |site: &&str| site.trim_end_matches('/').ends_with("/debian");
    let site = targets.lines().find(is_main).context("apt has no source of Debian's packages")?;
    let list = work.join("sources.list");
    fs::write(&list, format!("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {site} {suite} main\n"))?;
    for folder in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(work.join(folder))?;
    }
    let work = work.display();
    let settings = [
        format!("Dir::Etc::sourcelist={work}/sources.list"),
        "Dir::Etc::sourceparts=/dev/null".to_owned(),
        format!("Dir::State={work}"),
        "Dir::State::status=/dev/null".to_owned(),
        format!("Dir::Cache={work}/cache"),
        "APT::Sandbox::User=root".to_owned(),
    ];
    Ok(settings.into_iter().flat_map(|setting| ["-o".to_owned(), setting]).collect())
}

/// The settings of a JDK are links into `/etc`: they become files.
fn copy_settings(sh: &Shell, folder: &Path, home: &Path) -> Result<()> {
    let links = cmd!(sh, "find {home} -type l -lname /etc/*").quiet().read()?;
    for link in links.lines().map(Path::new) {
        let target = fs::read_link(link)?;
        let own = folder.join(target.strip_prefix("/")?);
        fs::remove_file(link)?;
        if own.is_file() {
            fs::copy(own, link)?;
        }
    }
    Ok(())
}

fn only_match(folder: &Path, pattern: &str) -> Result<PathBuf> {
    let sh = Shell::new()?;
    let whole = folder.join(pattern);
    let mut found = cmd!(sh, "find {folder} -path {whole} -prune").quiet().read()?;
    found.truncate(found.lines().next().unwrap_or_default().len());
    ensure!(!found.is_empty(), "the packages have no {pattern}");
    Ok(found.into())
}

impl InstallablePackage for JdkPackage<'_> {
    fn name(&self) -> &str {
        &self.0.name
    }

    /// Debian withdraws a version with every security update: the newest of the suite is taken.
    fn pin(&self) -> String {
        format!("{} of {}", self.0.packages.join(" "), self.0.suite)
    }

    async fn install(&self, folder: &Path) -> tether_base::error::Result<()> {
        self.unpack(folder).map_err(|cause| Error::other("cannot unpack a JDK").because(format!("{cause:#}")))
    }

    async fn verify(&self, folder: &Path) -> tether_base::error::Result<()> {
        let (sh, javac) = (Shell::new().map_err(|error| Error::other(error.to_string()))?, folder.join("bin/javac"));
        fs::metadata(&javac).doing(|| format!("the install never finished: no {}", javac.display()))?;
        run_quietly(cmd!(sh, "{javac} --version")).map_err(|error| Error::other(error.to_string()))
    }
}
