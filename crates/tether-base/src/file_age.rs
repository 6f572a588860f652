//! Whether one file is older than another: a build than its source. Depends on no other module.

use std::path::Path;

/// Whether a file was written before another one. False where one of them cannot be read. Blocks.
pub fn is_older(file: &Path, than: &Path) -> bool {
    let written = |file: &Path| file.metadata().and_then(|facts| facts.modified()).ok();
    written(file).zip(written(than)).is_some_and(|(file, than)| file < than)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn only_a_file_that_was_written_before_is_older() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, at: SystemTime| {
            let path = folder.path().join(name);
            std::fs::File::create(&path).unwrap().set_modified(at).unwrap();
            path
        };
        let now = SystemTime::now();
        let (old, new) = (write("old", now - Duration::from_secs(1)), write("new", now));
        assert!(is_older(&old, &new) && !is_older(&new, &old) && !is_older(&new, &new));
        assert!(!is_older(&old, Path::new("/not there")) && !is_older(Path::new("/not there"), &old));
    }
}
