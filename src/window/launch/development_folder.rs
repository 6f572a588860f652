//! One folder for all extensions under development: the workbench in a browser takes a single path, and of several it would
//! load only the last. A path without package.json stands for the extensions in its folders.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tether_base::error::{ErrorContext, Result};

use super::attempt::create_private_dir;

/// The folder with links, in that of the launch.
const FOLDER: &str = "extensions";

/// The path for the workbench: that of the only extension, else a new folder below `scratch` with a link to each.
pub fn development_path(extensions: &[PathBuf], scratch: &Path) -> Result<PathBuf> {
    if let [only] = extensions {
        return Ok(only.clone());
    }
    let folder = scratch.join(FOLDER);
    create_private_dir(&folder)?;
    for (at, extension) in extensions.iter().enumerate() {
        let link = folder.join(at.to_string());
        symlink(extension, &link).doing(|| format!("cannot link {} in {}", extension.display(), folder.display()))?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_extensions_are_the_folders_of_one() {
        let scratch = tempfile::tempdir().unwrap();
        let one = scratch.path().join("one");
        std::fs::create_dir(&one).unwrap();
        assert_eq!(development_path(std::slice::from_ref(&one), scratch.path()).unwrap(), one);
        let folder = development_path(&[one.clone(), scratch.path().to_owned()], scratch.path()).unwrap();
        assert_eq!(folder.join("0").canonicalize().unwrap(), one.canonicalize().unwrap());
        assert!(folder.join("1").is_dir() && !folder.join("package.json").exists());
    }
}
