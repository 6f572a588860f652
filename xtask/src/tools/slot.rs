//! A slot: the folder of one tool. Whole or absent, never half.
//!
//! ```text
//!  absent ──install into a sibling──▶ verified ──stamp, rename──▶ stamped ──the pin changes──▶ absent
//!  unstamped, verifies ───────────────stamp in place───────────────▲
//! ```
//! The stamp is the last thing written into the sibling before the rename, so a crash at any moment leaves
//! either the old tool or a sibling that the next run removes. Must not know what a package is made of.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xshell::Shell;

/// Holds the pin of what lies in the folder; only a finished install has it.
const STAMP: &str = ".devtether-pin";

/// Something that can be put into a folder and can prove that it is whole.
pub trait Package {
    fn name(&self) -> &str;
    /// The name and the exact version, as the package's client wants them.
    fn pin(&self) -> String;
    fn install(&self, sh: &Shell, folder: &Path) -> Result<()>;
    fn verify(&self, sh: &Shell, folder: &Path) -> Result<()>;
}

/// What [`fill`] had to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Filled {
    Present,
    /// An install by hand in the right place, which proved to be whole.
    TakenOver,
    Installed,
}

/// Makes sure that `<tools>/<name>` holds the pinned package. The caller holds the lock of `tools`.
pub fn fill(sh: &Shell, tools: &Path, package: &dyn Package) -> Result<Filled> {
    let folder = tools.join(package.name());
    match fs::read_to_string(folder.join(STAMP)) {
        Ok(stamp) if stamp == package.pin() => return Ok(Filled::Present),
        Err(_) if package.verify(sh, &folder).is_ok() => {
            fs::write(folder.join(STAMP), package.pin())?;
            return Ok(Filled::TakenOver);
        }
        _ => {}
    }
    let fresh = Sibling::of(tools, package.name(), "fresh")?;
    package.install(sh, &fresh.path)?;
    package.verify(sh, &fresh.path).with_context(|| format!("{} installed, but does not work", package.pin()))?;
    fs::write(fresh.path.join(STAMP), package.pin())?;
    let old = Sibling::of(tools, package.name(), "old")?;
    if folder.exists() {
        fs::rename(&folder, &old.path)?;
    }
    fs::rename(&fresh.path, &folder).with_context(|| format!("cannot move {} into place", package.pin()))?;
    Ok(Filled::Installed)
}

/// A folder beside the tool's, gone when it is dropped; what an interrupted run left there goes first.
struct Sibling {
    path: PathBuf,
}

impl Sibling {
    fn of(tools: &Path, name: &str, role: &str) -> Result<Sibling> {
        let path = tools.join(format!(".{name}.{role}"));
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| format!("cannot clear {}", path.display()))?;
        }
        Ok(Sibling { path })
    }
}

impl Drop for Sibling {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A package of one file; can be told to die halfway.
    struct OneFile {
        version: &'static str,
        dies: bool,
        installs: Cell<u32>,
    }

    impl Package for OneFile {
        fn name(&self) -> &str {
            "one"
        }
        fn pin(&self) -> String {
            format!("one=={}", self.version)
        }
        fn install(&self, _: &Shell, folder: &Path) -> Result<()> {
            self.installs.set(self.installs.get() + 1);
            fs::create_dir_all(folder)?;
            anyhow::ensure!(!self.dies, "the registry hung up");
            Ok(fs::write(folder.join("file"), self.version)?)
        }
        fn verify(&self, _: &Shell, folder: &Path) -> Result<()> {
            anyhow::ensure!(fs::read_to_string(folder.join("file"))? == self.version, "another version");
            Ok(())
        }
    }

    fn one(version: &'static str) -> OneFile {
        OneFile { version, dies: false, installs: Cell::new(0) }
    }

    fn names(tools: &Path) -> Vec<String> {
        fs::read_dir(tools).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_tool_is_installed_once_and_again_only_when_its_pin_changes() {
        let (tools, sh) = (tempfile::tempdir().unwrap(), Shell::new().unwrap());
        let first = one("1");
        assert_eq!(fill(&sh, tools.path(), &first).unwrap(), Filled::Installed);
        assert_eq!(fill(&sh, tools.path(), &first).unwrap(), Filled::Present);
        assert_eq!(first.installs.get(), 1);
        assert_eq!(fill(&sh, tools.path(), &one("2")).unwrap(), Filled::Installed);
        assert_eq!(fs::read_to_string(tools.path().join("one/file")).unwrap(), "2");
        assert_eq!(names(tools.path()), ["one"]);
    }

    #[test]
    fn an_interrupted_install_is_never_taken_for_a_finished_one() {
        let (tools, sh) = (tempfile::tempdir().unwrap(), Shell::new().unwrap());
        fill(&sh, tools.path(), &OneFile { dies: true, ..one("1") }).unwrap_err();
        assert_eq!(names(tools.path()), [""; 0]);
        // The same as a kill: half of it lies in the folder itself, or in the sibling, and there is no stamp.
        for half in ["one", ".one.fresh", ".one.old"] {
            fs::create_dir_all(tools.path().join(half)).unwrap();
            fs::write(tools.path().join(half).join("file"), "hal").unwrap();
        }
        assert_eq!(fill(&sh, tools.path(), &one("1")).unwrap(), Filled::Installed);
        assert_eq!(fs::read_to_string(tools.path().join("one/file")).unwrap(), "1");
        assert_eq!(names(tools.path()), ["one"]);
    }

    #[test]
    fn a_failed_update_keeps_the_old_tool() {
        let (tools, sh) = (tempfile::tempdir().unwrap(), Shell::new().unwrap());
        fill(&sh, tools.path(), &one("1")).unwrap();
        fill(&sh, tools.path(), &OneFile { dies: true, ..one("2") }).unwrap_err();
        assert_eq!(fill(&sh, tools.path(), &one("1")).unwrap(), Filled::Present);
    }

    #[test]
    fn an_install_by_hand_is_taken_over_only_when_it_verifies() {
        let (tools, sh) = (tempfile::tempdir().unwrap(), Shell::new().unwrap());
        fs::create_dir(tools.path().join("one")).unwrap();
        fs::write(tools.path().join("one/file"), "1").unwrap();
        assert_eq!(fill(&sh, tools.path(), &one("1")).unwrap(), Filled::TakenOver);
        assert_eq!(fill(&sh, tools.path(), &one("1")).unwrap(), Filled::Present);
    }
}
