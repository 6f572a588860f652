//! The folder of one tool: complete or absent, never partial.
//!
//! ```text
//!  absent ──install into a sibling──▶ verified ──stamp, rename──▶ stamped ──the pin changes──▶ absent
//!  unstamped, verifies ───────────────stamp in place───────────────▲
//! ```
//! The stamp is the last thing written into the sibling before the rename, so a crash at any moment leaves
//! either the old tool or a sibling that the next run removes. Does not depend on what a package consists of.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tether_base::error::{ErrorContext, Result};

/// The file with the pin of the folder's content; only a finished install has it.
const STAMP: &str = ".devtether-pin";

/// A package that can be installed into a folder, and verified there.
#[expect(async_fn_in_trait, reason = "its futures stay on one thread")]
pub trait InstallablePackage {
    /// The name of its folder.
    fn name(&self) -> &str;
    /// The name and the exact version, as the package's client wants them.
    fn pin(&self) -> String;
    /// Makes `folder`, which does not exist yet, and fills it.
    async fn install(&self, folder: &Path) -> Result<()>;
    /// Errors: `folder` lacks something, has another version, or does not work.
    async fn verify(&self, folder: &Path) -> Result<()>;
}

/// What the installation has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallOutcome {
    /// Its stamp named the pin already.
    Present,
    /// Installed by hand in the right place, and verified.
    Adopted,
    /// New, or in the place of another version.
    Installed,
}

/// The content of a tool's folder by its stamp, without verifying it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FolderContent {
    Absent,
    /// A finished install of this pin.
    Pin(String),
    /// Something without a stamp: by hand, or half.
    Unproven,
}

/// The content of `<tools>/<name>`.
pub(super) fn read_content(tools: &Path, name: &str) -> FolderContent {
    let folder = tools.join(name);
    match fs::read_to_string(folder.join(STAMP)) {
        Ok(pin) => FolderContent::Pin(pin),
        Err(_) if folder.exists() => FolderContent::Unproven,
        Err(_) => FolderContent::Absent,
    }
}

/// Makes sure that `<tools>/<name>` holds the pinned package. The caller holds the lock of `tools`.
pub(super) async fn install_atomically(tools: &Path, package: &impl InstallablePackage) -> Result<InstallOutcome> {
    let folder = tools.join(package.name());
    match read_content(tools, package.name()) {
        FolderContent::Pin(pin) if pin == package.pin() => return Ok(InstallOutcome::Present),
        FolderContent::Unproven if package.verify(&folder).await.is_ok() => {
            write_stamp(&folder, package)?;
            return Ok(InstallOutcome::Adopted);
        }
        _ => {}
    }
    let fresh = StagingFolder::of(tools, package.name(), "fresh")?;
    package.install(&fresh.path).await?;
    package.verify(&fresh.path).await.doing(|| format!("{} was installed, but does not work", package.pin()))?;
    write_stamp(&fresh.path, package)?;
    let old = StagingFolder::of(tools, package.name(), "old")?;
    let doing = || format!("cannot move {} into place", package.pin());
    match fs::rename(&folder, &old.path) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(cause).doing(doing),
        _ => {}
    }
    fs::rename(&fresh.path, &folder).doing(doing)?;
    Ok(InstallOutcome::Installed)
}

fn write_stamp(folder: &Path, package: &impl InstallablePackage) -> Result<()> {
    let file = folder.join(STAMP);
    fs::write(&file, package.pin()).doing(|| format!("cannot write {}", file.display()))
}

/// A folder beside the tool's, removed on drop; what an interrupted run has left there is removed first.
struct StagingFolder {
    path: PathBuf,
}

impl StagingFolder {
    fn of(tools: &Path, name: &str, role: &str) -> Result<StagingFolder> {
        let path = tools.join(format!(".{name}.{role}"));
        match fs::remove_dir_all(&path) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => {
                Err(cause).doing(|| format!("cannot clear {}", path.display()))
            }
            _ => Ok(StagingFolder { path }),
        }
    }
}

impl Drop for StagingFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use tether_base::error::Error;

    /// A package of one file; can be made to fail halfway.
    struct OneFile {
        version: &'static str,
        fails: bool,
        installs: Cell<u32>,
    }

    impl InstallablePackage for OneFile {
        fn name(&self) -> &str {
            "one"
        }
        fn pin(&self) -> String {
            format!("one=={}", self.version)
        }
        async fn install(&self, folder: &Path) -> Result<()> {
            self.installs.set(self.installs.get() + 1);
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("file"), if self.fails { "hal" } else { self.version }).unwrap();
            if self.fails { Err(Error::other("the registry hung up")) } else { Ok(()) }
        }
        async fn verify(&self, folder: &Path) -> Result<()> {
            let found = fs::read_to_string(folder.join("file")).doing(|| "no file".into())?;
            if found == self.version { Ok(()) } else { Err(Error::other("another version")) }
        }
    }

    fn one(version: &'static str) -> OneFile {
        OneFile { version, fails: false, installs: Cell::new(0) }
    }

    fn names(tools: &Path) -> Vec<String> {
        fs::read_dir(tools).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[tokio::test]
    async fn a_tool_is_installed_once_and_again_only_when_its_pin_changes() {
        let tools = tempfile::tempdir().unwrap();
        let first = one("1");
        assert_eq!(install_atomically(tools.path(), &first).await.unwrap(), InstallOutcome::Installed);
        assert_eq!(install_atomically(tools.path(), &first).await.unwrap(), InstallOutcome::Present);
        assert_eq!(first.installs.get(), 1);
        assert_eq!(install_atomically(tools.path(), &one("2")).await.unwrap(), InstallOutcome::Installed);
        assert_eq!(fs::read_to_string(tools.path().join("one/file")).unwrap(), "2");
        assert_eq!(names(tools.path()), ["one"]);
    }

    #[tokio::test]
    async fn an_interrupted_install_is_installed_again() {
        let tools = tempfile::tempdir().unwrap();
        install_atomically(tools.path(), &OneFile { fails: true, ..one("1") }).await.unwrap_err();
        assert_eq!(names(tools.path()), [""; 0]);
        // The same as a kill: half of it is in the folder itself, or beside it, and there is no stamp.
        for half in ["one", ".one.fresh", ".one.old"] {
            fs::create_dir_all(tools.path().join(half)).unwrap();
            fs::write(tools.path().join(half).join("file"), "hal").unwrap();
        }
        assert_eq!(install_atomically(tools.path(), &one("1")).await.unwrap(), InstallOutcome::Installed);
        assert_eq!(fs::read_to_string(tools.path().join("one/file")).unwrap(), "1");
        assert_eq!(names(tools.path()), ["one"]);
    }

    #[tokio::test]
    async fn a_failed_update_keeps_the_old_tool() {
        let tools = tempfile::tempdir().unwrap();
        install_atomically(tools.path(), &one("1")).await.unwrap();
        install_atomically(tools.path(), &OneFile { fails: true, ..one("2") }).await.unwrap_err();
        assert_eq!(install_atomically(tools.path(), &one("1")).await.unwrap(), InstallOutcome::Present);
    }

    #[tokio::test]
    async fn an_install_by_hand_is_taken_over_only_when_it_verifies() {
        let tools = tempfile::tempdir().unwrap();
        fs::create_dir(tools.path().join("one")).unwrap();
        fs::write(tools.path().join("one/file"), "1").unwrap();
        assert_eq!(install_atomically(tools.path(), &one("1")).await.unwrap(), InstallOutcome::Adopted);
        assert_eq!(install_atomically(tools.path(), &one("1")).await.unwrap(), InstallOutcome::Present);
    }
}
