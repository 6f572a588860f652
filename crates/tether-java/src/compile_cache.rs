//! The classes of earlier compilations, by the content of what was compiled: `javac` takes ten times as long as the start
//! of a program.
//!
//! ```text
//! <cache>/java-classes/<key>/sources.json   every source that was compiled, with its digest
//!                           /classes/…      what became of them
//! ```
//! The key is of all other inputs: see `compile_inputs`. An entry is complete or absent: it is written beside and renamed.
//! What was written while the compiler ran may or may not have been read by it: then nothing is kept. Programs run from a
//! copy, so that any entry may be removed at any time. Does not depend on how sources are compiled.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use tether_base::bounded_file::{self, Links};
use tether_base::xdg;
use tracing::debug;

use super::class_file::read_class_file;
use super::compile_inputs::{CompileInputs, FileStamp, MAX_SOURCE, SeenSource, digest_of_file};

/// How many compilations are kept.
const MAX_ENTRIES: usize = 32;
/// A larger compilation is not kept, in bytes.
const MAX_ENTRY_BYTES: u64 = 8 << 20;
/// Of more classes it is a project, which has a build of its own.
const MAX_CLASSES: usize = 2000;
const SOURCES: &str = "sources.json";
const CLASSES: &str = "classes";

/// The folder with the entries.
pub(crate) struct CompileCache {
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
    pub(crate) fn open() -> Option<CompileCache> {
        CompileCache::in_folder(xdg::cache_dir().ok()?.join("java-classes"))
    }

    fn in_folder(folder: PathBuf) -> Option<CompileCache> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
        let is_ours = fs::metadata(&folder).is_ok_and(|it| it.uid() == rustix::process::geteuid().as_raw());
        is_ours.then_some(CompileCache { folder })
    }

    /// Copies the classes of an entry into a folder. `false`: there is none, or one of its sources has changed.
    pub(crate) fn restore(&self, key: &str, into: &Path) -> bool {
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

    /// Keeps the classes that were compiled. `key` and `seen` are of before the compilation. What cannot be kept is compiled
    /// again.
    pub(crate) fn store(
        &self,
        key: &str,
        inputs: &CompileInputs,
        seen: &BTreeMap<PathBuf, SeenSource>,
        classes: &Path,
    ) {
        if let Err(cause) = self.write_entry(key, inputs, seen, classes) {
            debug!("the compiled classes are not kept: {cause}");
        }
        self.remove_old_entries();
    }

    fn write_entry(
        &self,
        key: &str,
        inputs: &CompileInputs,
        seen: &BTreeMap<PathBuf, SeenSource>,
        classes: &Path,
    ) -> io::Result<()> {
        let made = tempfile::Builder::new().prefix(".new-").tempdir_in(&self.folder)?;
        let mut sources: Vec<CompiledSource> = Vec::new();
        for file in class_files(classes)? {
            let unknown = || io::Error::other(format!("{} does not say what it was compiled from", file.display()));
            let (_, facts) = read_class_file(&file).ok_or_else(unknown)?;
            let package = facts.name.rsplit_once('/').map_or("", |(package, _)| package);
            let path = inputs.root.join(package).join(facts.source_file.ok_or_else(unknown)?);
            if sources.iter().all(|known| known.path != path) {
                let before = seen.get(&path).filter(|it| FileStamp::of(&path).as_ref() == Some(&it.stamp));
                let changed = || io::Error::other(format!("{} was written meanwhile", path.display()));
                let digest = before.ok_or_else(changed)?.digest.clone();
                sources.push(CompiledSource { path, digest });
            }
        }
        copy_classes(classes, &made.path().join(CLASSES))?;
        if inputs.key().as_deref() != Some(key) {
            return Err(io::Error::other("its inputs have changed meanwhile"));
        }
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

/// The class files below a folder. Errors: more than are kept.
fn class_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    class_files_up_to(folder, MAX_CLASSES)
}

fn class_files_up_to(folder: &Path, most: usize) -> io::Result<Vec<PathBuf>> {
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
        if found.len().saturating_add(folders.len()) > most {
            return Err(io::Error::other(format!("there are more than {most} classes")));
        }
    }
    Ok(found)
}

/// Copies class files into a folder. Errors: more than are kept, or one of them cannot be copied.
fn copy_classes(from: &Path, into: &Path) -> io::Result<()> {
    copy_files(from, into, &class_files(from)?, MAX_ENTRY_BYTES)
}

/// Copies all class files into a folder. Errors: one of them cannot be copied.
pub(crate) fn copy_all_classes(from: &Path, into: &Path) -> io::Result<()> {
    copy_files(from, into, &class_files_up_to(from, usize::MAX)?, u64::MAX)
}

fn copy_files(from: &Path, into: &Path, files: &[PathBuf], most: u64) -> io::Result<()> {
    let mut bytes = 0u64;
    for file in files {
        let copy = into.join(file.strip_prefix(from).map_err(io::Error::other)?);
        fs::create_dir_all(copy.parent().unwrap_or(into))?;
        bytes = bytes.saturating_add(fs::copy(file, copy)?);
        if bytes > most {
            return Err(io::Error::other(format!("they have more than {most} bytes")));
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
    fn classes_of_sources_that_were_written_during_the_compilation_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let cache = CompileCache::in_folder(place("cache")).unwrap();
        for (name, text) in [("javac", ""), ("src/A.java", "class A {}"), ("classes/A.class", "")] {
            fs::create_dir_all(place(name).parent().unwrap()).unwrap();
            fs::write(place(name), text).unwrap();
        }
        fs::write(place("classes/A.class"), super::super::class_file::sample_class("A", "A.java")).unwrap();
        let (compiler, source, root) = (place("javac"), place("src/A.java"), place("src"));
        let (options, class_paths) = (Vec::new(), Vec::new());
        let inputs = CompileInputs { compiler, options, source: source.clone(), root, class_paths };
        let store = |meanwhile: &dyn Fn()| {
            let (key, seen) = (inputs.key().unwrap(), inputs.see_sources().unwrap());
            meanwhile();
            cache.store(&key, &inputs, &seen, &place("classes"));
            cache.restore(&inputs.key().unwrap(), &place("run"))
        };
        assert!(!store(&|| fs::write(&source, "class A { int a; }").unwrap()), "the source");
        assert!(!store(&|| fs::write(place("src/B.java"), "class B {}").unwrap()), "a source beside it");
        assert!(store(&|| {}));
    }

    #[test]
    fn all_classes_of_a_swap_are_copied_however_many_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let (from, into) = (folder.path().join("from"), folder.path().join("into"));
        fs::create_dir_all(from.join("a")).unwrap();
        for number in 0..=MAX_CLASSES {
            fs::write(from.join(format!("a/A{number}.class")), "").unwrap();
        }
        assert!(copy_classes(&from, &into).is_err(), "more than are kept");
        copy_all_classes(&from, &into).unwrap();
        assert_eq!(fs::read_dir(into.join("a")).unwrap().count(), MAX_CLASSES + 1);
    }
}
