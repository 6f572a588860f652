//! Folders that a program has elsewhere than this machine, as in a container: what each adapter makes of them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tether_base::error::{Error, Result};

/// A folder here, and the same folder as the program names it; both absolute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathMap {
    pub local: PathBuf,
    pub remote: PathBuf,
}

/// The fields by which a configuration of VS Code maps paths itself.
pub const PATH_MAP_FIELDS: [&str; 10] = [
    "debuggerRoot",
    "localRoot",
    "localfs",
    "localfsMap",
    "pathMappings",
    "remoteRoot",
    "sourceFileMap",
    "sourceMap",
    "sourcePath",
    "substitutePath",
];

/// Whether an adapter finds sources by path maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathMapUse {
    #[default]
    All,
    /// The first only.
    First,
    /// All, with this version or a newer one; which one it is is not known.
    Since(&'static str),
    /// It knows source files by other names than their paths.
    Needless,
    Never,
}

impl PathMap {
    /// `local` may be relative to `folder`. Errors: `remote` is not absolute.
    pub fn new(local: &Path, remote: &Path, folder: &Path) -> Result<PathMap> {
        if !remote.is_absolute() {
            return Err(Error::usage(format!("cannot use the path map to {}", remote.display()))
                .because("the folder where the program runs is not an absolute path")
                .hint("write it as LOCAL=REMOTE, such as src=/app/src"));
        }
        // Without `.`.
        Ok(PathMap { local: folder.join(local).components().collect(), remote: remote.components().collect() })
    }

    /// One that is written as `LOCAL=REMOTE`. Errors: it is not.
    pub fn parse(text: &str, folder: &Path) -> Result<PathMap> {
        match text.split_once('=') {
            Some((local, remote)) => PathMap::new(Path::new(local), Path::new(remote), folder),
            None => Err(Error::usage(format!("cannot use the path map {text:?}"))
                .because("it has no `=`")
                .hint("write it as LOCAL=REMOTE, such as src=/app/src")),
        }
    }

    fn describe(&self, workspace: &Path) -> String {
        let local = match self.local.strip_prefix(workspace) {
            Ok(inner) if inner.as_os_str().is_empty() || inner == Path::new(".") => "the workspace".to_owned(),
            Ok(inner) => inner.display().to_string(),
            Err(_) => self.local.display().to_string(),
        };
        format!("{local} is {} where the program runs", self.remote.display())
    }
}

impl PathMapUse {
    /// What is said of the maps of a target. `None`: nothing.
    pub fn note(self, adapter: &str, maps: &[PathMap], workspace: &Path) -> Option<String> {
        let describe = |maps: &[PathMap]| maps.iter().map(|map| map.describe(workspace)).collect::<Vec<_>>().join(", ");
        let (first, others) = maps.split_at_checked(1)?;
        match self {
            PathMapUse::All => Some(describe(maps)),
            PathMapUse::First if others.is_empty() => Some(describe(first)),
            PathMapUse::First => Some(format!("{}; {adapter} uses no second path map", describe(first))),
            PathMapUse::Since(version) => {
                Some(format!("{}: {adapter} before {version} does not know that", describe(maps)))
            }
            PathMapUse::Needless => None,
            PathMapUse::Never => Some(format!("{adapter} uses no path maps: sources have the paths of this machine")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_read_and_described() {
        let workspace = Path::new("/w");
        let check = |text: &str, expect: &str| {
            let map = PathMap::parse(text, workspace).unwrap();
            assert_eq!(PathMapUse::All.note("dlv", &[map], workspace).as_deref(), Some(expect));
        };
        check("src=/app/src", "src is /app/src where the program runs");
        check(".=/app", "the workspace is /app where the program runs");
        check("/w=/app", "the workspace is /app where the program runs");
        check("/x=/a=b", "/x is /a=b where the program runs");
        for (text, cause) in [("src", "it has no `=`"), ("src=app", "not an absolute path")] {
            let error = PathMap::parse(text, workspace).unwrap_err().to_string();
            assert!(error.contains(cause) && error.contains("LOCAL=REMOTE"), "{error}");
        }
    }

    #[test]
    fn what_an_adapter_does_not_use_is_said() {
        let workspace = Path::new("/w");
        let maps = ["a=/a", "b=/b"].map(|text| PathMap::parse(text, workspace).unwrap());
        let note = |used: PathMapUse, count: usize| used.note("x", &maps[..count], workspace);
        assert_eq!(note(PathMapUse::First, 1).as_deref(), Some("a is /a where the program runs"));
        assert!(note(PathMapUse::First, 2).unwrap().ends_with("; x uses no second path map"));
        assert!(note(PathMapUse::Never, 1).unwrap().starts_with("x uses no path maps"));
        let since = "a is /a where the program runs: x before 1.6 does not know that";
        assert_eq!(note(PathMapUse::Since("1.6"), 1).as_deref(), Some(since));
        assert_eq!((note(PathMapUse::Needless, 2), note(PathMapUse::Never, 0)), (None, None));
    }
}
