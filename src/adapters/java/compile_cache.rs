//! The classes of earlier compilations, by the content of what was compiled: `javac` takes ten times as long as the start
//! of a program.
//!
//! ```text
//! <cache>/java-classes/<key>/sources.json   every source that was compiled, with its digest
//!                           /classes/…      what became of them
//! ```
//! An entry is complete or absent: it is written beside and renamed. Programs run from a copy, so that any entry may be
//! removed at any time. Does not depend on how sources are compiled.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tracing::debug;

use super::class_file::read_class_file;
use crate::bounded_file::{self, Links};
use crate::tools;

/// How many compilations are kept.
const MAX_ENTRIES: usize = 32;
/// A larger compilation is not kept, in bytes.
const MAX_ENTRY_BYTES: u64 = 8 << 20;
/// Of more classes it is a project, which has a build of its own.
const MAX_CLASSES: usize = 2000;
/// The largest source that is read, in bytes.
const MAX_SOURCE: u64 = 8 << 20;
const SOURCES: &str = "sources.json";
const CLASSES: &str = "classes";

/// The folder with the entries.
pub struct CompileCache {
    folder: PathBuf,
}

/// A source that was compiled, and what it was.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct CompiledSource {
    path: PathBuf,
    digest: String,
}

impl CompileCache {
    /// `None`: there is no folder for it that is ours.
    pub fn open() -> Option<CompileCache> {
        CompileCache::in_folder(tools::cache_folder().ok()?.join("java-classes"))
    }

    fn in_folder(folder: PathBuf) -> Option<CompileCache> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
        let is_ours = fs::metadata(&folder).is_ok_and(|it| it.uid() == rustix::process::geteuid().as_raw());
        is_ours.then_some(CompileCache { folder })
    }

    /// Copies the classes of an entry into a folder. `false`: there is none, or one of its sources has changed.
    pub fn restore(&self, key: &str, into: &Path) -> bool {
        let entry = self.folder.join(key);
        let Ok(text) = bounded_file::read_file(&entry.join(SOURCES), MAX_SOURCE, Links::Refuse) else { return false };
        let Ok(sources) = serde_json::from_slice::<Vec<CompiledSource>>(&text) else { return false };
        let is_same = |it: &CompiledSource| digest_of_file(&it.path).is_some_and(|now| now == it.digest);
        if sources.is_empty() || !sources.iter().all(is_same) || copy_classes(&entry.join(CLASSES), into).is_err() {
            return false;
        }
        // The oldest is removed first.
        let _ = fs::File::open(entry.join(SOURCES)).and_then(|file| file.set_modified(SystemTime::now()));
        true
    }

    /// Keeps the classes that were compiled from sources below `root`. What cannot be kept is compiled again.
    pub fn store(&self, key: &str, root: &Path, classes: &Path) {
        if let Err(cause) = self.write_entry(key, root, classes) {
            debug!("the compiled classes are not kept: {cause}");
        }
        self.remove_old_entries();
    }

    fn write_entry(&self, key: &str, root: &Path, classes: &Path) -> io::Result<()> {
        let made = tempfile::Builder::new().prefix(".new-").tempdir_in(&self.folder)?;
        let mut sources: Vec<CompiledSource> = Vec::new();
        for file in class_files(classes)? {
            let unknown = || io::Error::other(format!("{} does not say what it was compiled from", file.display()));
            let (_, facts) = read_class_file(&file).ok_or_else(unknown)?;
            let package = facts.name.rsplit_once('/').map_or("", |(package, _)| package);
            let path = root.join(package).join(facts.source_file.ok_or_else(unknown)?);
            if sources.iter().all(|known| known.path != path) {
                let digest = digest_of_file(&path).ok_or_else(unknown)?;
                sources.push(CompiledSource { path, digest });
            }
        }
        copy_classes(classes, &made.path().join(CLASSES))?;
        fs::write(made.path().join(SOURCES), serde_json::to_vec(&sources)?)?;
        let entry = self.folder.join(key);
        if entry.exists() {
            fs::remove_dir_all(&entry)?;
        }
        fs::rename(made.keep(), entry)
    }

    fn remove_old_entries(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let used = |path: &Path| fs::metadata(path.join(SOURCES)).and_then(|it| it.modified());
        let mut known: Vec<(SystemTime, PathBuf)> =
            entries.map(|entry| (used(&entry.path()).unwrap_or(SystemTime::UNIX_EPOCH), entry.path())).collect();
        known.sort();
        for (_, entry) in known.iter().take(known.len().saturating_sub(MAX_ENTRIES)) {
            // What cannot be removed is only left over.
            let _ = fs::remove_dir_all(entry);
        }
    }
}

/// The key of a compilation: its compiler, its arguments, and the text of its source.
pub fn compilation_key(compiler: &Path, source: &Path, class_paths: &[PathBuf]) -> Option<String> {
    let mut digest = Sha256::new();
    let compiler = compiler.canonicalize().ok()?;
    for path in [&compiler, &source.to_owned()].into_iter().chain(class_paths) {
        let changed = if *path == source { None } else { fs::metadata(path).ok().and_then(|it| it.modified().ok()) };
        digest.update(format!("{}\0{changed:?}\0", path.display()));
    }
    digest.update(digest_of_file(source)?);
    Some(hex::encode(digest.finalize()))
}

fn digest_of_file(path: &Path) -> Option<String> {
    let bytes = bounded_file::read_file(path, MAX_SOURCE, Links::Follow).ok()?;
    Some(hex::encode(Sha256::digest(bytes)))
}

/// The class files below a folder. Errors: more than are kept.
fn class_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "class") {
                found.push(path);
            }
        }
        if found.len() + folders.len() > MAX_CLASSES {
            return Err(io::Error::other(format!("there are more than {MAX_CLASSES} classes")));
        }
    }
    Ok(found)
}

/// Copies class files into a folder. Errors: more than are kept, or one of them cannot be copied.
pub fn copy_classes(from: &Path, into: &Path) -> io::Result<()> {
    let mut bytes = 0;
    for file in class_files(from)? {
        let copy = into.join(file.strip_prefix(from).map_err(io::Error::other)?);
        fs::create_dir_all(copy.parent().unwrap_or(into))?;
        bytes += fs::copy(&file, copy)?;
        if bytes > MAX_ENTRY_BYTES {
            return Err(io::Error::other(format!("they have more than {MAX_ENTRY_BYTES} bytes")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_for_its_sources_only_and_the_oldest_go() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let cache = CompileCache::in_folder(place("cache")).unwrap();
        fs::write(place("A.java"), "class A {}").unwrap();
        // A class file that says that it is from A.java cannot be written by hand: one entry is put together.
        let put = |key: &str| {
            let entry = place("cache").join(key);
            fs::create_dir_all(entry.join(CLASSES).join("a")).unwrap();
            fs::write(entry.join(CLASSES).join("a/A.class"), "code").unwrap();
            let source = CompiledSource { path: place("A.java"), digest: digest_of_file(&place("A.java")).unwrap() };
            fs::write(entry.join(SOURCES), serde_json::to_vec(&[source]).unwrap()).unwrap();
        };
        put("k");
        assert!(cache.restore("k", &place("run")));
        assert_eq!(fs::read(place("run/a/A.class")).unwrap(), b"code");
        assert!(!cache.restore("other", &place("run")));
        fs::write(place("A.java"), "class A { int b; }").unwrap();
        assert!(!cache.restore("k", &place("run")), "its source has changed");
        for number in 0..MAX_ENTRIES + 3 {
            put(&format!("n{number}"));
        }
        fs::File::open(place("cache/k").join(SOURCES)).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        cache.remove_old_entries();
        assert_eq!(fs::read_dir(place("cache")).unwrap().count(), MAX_ENTRIES);
        assert!(!place("cache/k").exists());
    }

    #[test]
    fn the_key_is_of_the_text_the_compiler_and_the_class_path() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("A.java");
        fs::write(&source, "class A {}").unwrap();
        let key = |paths: &[PathBuf]| compilation_key(Path::new("/bin/sh"), &source, paths).unwrap();
        let first = key(&[]);
        assert_eq!(first, key(&[]));
        assert_ne!(first, key(&[folder.path().to_owned()]));
        fs::write(&source, "class A { }").unwrap();
        assert_ne!(first, key(&[]));
        assert_eq!(compilation_key(Path::new("/no/such"), &source, &[]), None);
    }
}
