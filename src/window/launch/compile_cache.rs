//! The folder in which Node keeps the compiled code of the VS Code server, of its extension hosts and of the language servers
//! of its own extensions from launch to launch.
//!
//! Node compares each entry with the source that it was compiled from, so code is never older than its file. An extension
//! host that finds its code compiled answers in two thirds of the time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tether_base::error::{ErrorContext, Result};

use super::attempt::create_private_dir;

/// Above this size, it is begun anew: bundles whose names change with each build would fill it.
const MAX_BYTES: u64 = 256 << 20;

/// Creates the folder below a state folder, and empties one that has become too large.
pub fn prepare_compile_cache(state: &Path) -> Result<PathBuf> {
    let folder = state.join("compile-cache");
    if measure_folder(&folder) > MAX_BYTES {
        fs::remove_dir_all(&folder).doing(|| format!("cannot remove {}", folder.display()))?;
    }
    create_private_dir(&folder)?;
    Ok(folder)
}

/// The bytes of the files in a folder and those below. What cannot be read counts nothing.
fn measure_folder(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>).unwrap_or_default();
    let measure = |entry: &fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => measure_folder(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.iter().map(measure).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_kept_until_it_is_too_large() {
        let state = tempfile::tempdir().unwrap();
        let folder = prepare_compile_cache(state.path()).unwrap();
        fs::create_dir(folder.join("v24")).unwrap();
        let grow = |bytes| fs::File::create(folder.join("v24/entry")).unwrap().set_len(bytes).unwrap();
        grow(MAX_BYTES);
        assert_eq!(prepare_compile_cache(state.path()).unwrap(), folder);
        assert!(folder.join("v24/entry").exists());
        grow(MAX_BYTES + 1);
        prepare_compile_cache(state.path()).unwrap();
        assert!(folder.is_dir() && !folder.join("v24").exists());
    }
}
