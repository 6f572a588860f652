//! Which file a class was compiled from: by its package and the name of its source file, below the folders of sources. And
//! what the files that were seen held when the program was compiled of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tether_base::bounded_file::{self, Links};
use tether_base::sync::lock;

use super::blocking::run_blocking;
use super::project_modules::all_modules;
use super::signatures::package_path;

/// Folders of sources in a project, relative to it.
const SOURCE_FOLDERS: [&str; 5] = ["src/main/java", "src/test/java", "src", "app/src/main/java", ""];
/// How much of a source is read for its package and imports, in bytes.
const HEADER_BYTES: u64 = 64 << 10;
/// The longest text that is remembered, and all of them, in bytes.
const MAX_TEXT: u64 = 1 << 20;
const MAX_TEXTS: usize = 16 << 20;

/// The folders in which sources are looked for; clones share them.
#[derive(Clone, Default)]
pub(crate) struct SourceFolders(Arc<FolderState>);

#[derive(Default)]
struct FolderState {
    folders: Vec<PathBuf>,
    /// Files that the client has named, by their name.
    named: Mutex<Vec<PathBuf>>,
    found: Mutex<FoundFiles>,
    texts: Mutex<SourceTexts>,
}

/// The files of packages and names that were looked for.
#[derive(Default)]
struct FoundFiles {
    /// How often all were forgotten.
    epoch: u64,
    files: HashMap<(String, String), Arc<Vec<PathBuf>>>,
}

/// The texts of files that were seen.
#[derive(Default)]
struct SourceTexts {
    /// `None`: the text that the program was compiled of is not known.
    known: HashMap<PathBuf, Option<Arc<str>>>,
    bytes: usize,
}

/// The package and the imports of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceHeader {
    /// `com.example`; empty for the unnamed package.
    pub package: String,
    /// `java.util.List`, `java.util.*`
    pub imports: Vec<String>,
}

impl SourceFolders {
    /// The source folders `given`, then those of the project `root` and of other modules.
    pub(crate) fn new(given: Vec<PathBuf>, root: &Path, modules: &[PathBuf]) -> SourceFolders {
        let mut folders = given;
        for folder in std::iter::once(root).chain(modules.iter().map(PathBuf::as_path)).flat_map(module_sources) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        SourceFolders(Arc::new(FolderState { folders, ..FolderState::default() }))
    }

    /// As [`SourceFolders::new`], with all modules of the projects around that folder and that source.
    pub(crate) async fn of_project(given: Vec<PathBuf>, root: &Path, source: Option<&Path>) -> SourceFolders {
        let folders = [Some(root), source.and_then(Path::parent)].into_iter().flatten();
        let folders: Vec<PathBuf> = folders.map(Path::to_owned).collect();
        let modules = run_blocking(move || folders.iter().flat_map(|folder| all_modules(folder)).collect::<Vec<_>>());
        SourceFolders::new(given, root, &modules.await.unwrap_or_default())
    }

    /// The client has breakpoints in that file.
    pub(crate) fn add_named_file(&self, path: &Path) {
        let mut named = lock(&self.0.named);
        if !named.iter().any(|known| known == path) {
            named.push(path.to_owned());
            let found = &mut *lock(&self.0.found);
            found.epoch = found.epoch.wrapping_add(1);
            found.files.clear();
        }
    }

    /// The files that a class with that signature may be from, whose source file has that name; the likeliest first.
    pub(crate) async fn find_files(&self, signature: &str, file_name: &str) -> Arc<Vec<PathBuf>> {
        let package = package_path(signature);
        // The name comes from the program: it must not lead out of the folder.
        if file_name.contains('/') || package.split('/').any(|part| part == "..") {
            return Arc::default();
        }
        let key = (package.to_owned(), file_name.to_owned());
        let epoch = {
            let found = lock(&self.0.found);
            if let Some(known) = found.files.get(&key) {
                return known.clone();
            }
            found.epoch
        };
        let (folders, wanted) = (self.clone(), key.clone());
        let found = run_blocking(move || folders.search_files(&wanted.0, &wanted.1)).await.unwrap_or_default();
        let found = Arc::new(found);
        let known = &mut *lock(&self.0.found);
        // What was found before another file was named may be out of date.
        if known.epoch == epoch {
            known.files.insert(key, Arc::clone(&found));
        }
        found
    }

    /// Remembers the text of a file that is seen for the first time, if it has not changed since `compiled`: then it is what
    /// the program was compiled of.
    pub(crate) async fn remember_text(&self, path: &Path, compiled: SystemTime) {
        if lock(&self.0.texts).known.contains_key(path) {
            return;
        }
        let path = path.to_owned();
        let read = run_blocking(move || (read_unchanged(&path, compiled), path)).await;
        let Ok((text, path)) = read else { return };
        let texts = &mut *lock(&self.0.texts);
        let size = text.as_ref().map_or(0, |text| text.len());
        if texts.bytes.saturating_add(size) <= MAX_TEXTS && texts.known.insert(path, text).is_none() {
            texts.bytes = texts.bytes.saturating_add(size);
        }
    }

    /// The text that was remembered of a file.
    pub(crate) fn remembered_text(&self, path: &Path) -> Option<Arc<str>> {
        lock(&self.0.texts).known.get(path).cloned().flatten()
    }

    /// The program has been compiled anew: what it was compiled of is seen anew.
    pub(crate) fn forget_texts(&self) {
        *lock(&self.0.texts) = SourceTexts::default();
    }

    fn search_files(&self, package: &str, file_name: &str) -> Vec<PathBuf> {
        let is_named = |path: &&PathBuf| {
            path.file_name().is_some_and(|name| name == file_name)
                && read_header(path).package.replace('.', "/") == package
        };
        let mut found: Vec<PathBuf> = lock(&self.0.named).iter().filter(is_named).cloned().collect();
        let paths = self.0.folders.iter().map(|folder| folder.join(package).join(file_name));
        for path in paths.filter(|path| path.is_file()) {
            if !found.contains(&path) {
                found.push(path);
            }
        }
        found
    }
}

/// The folders of sources of a module.
pub(crate) fn module_sources(module: &Path) -> impl Iterator<Item = PathBuf> {
    SOURCE_FOLDERS.iter().map(|folder| module.join(folder))
}

/// The text of a file, if it has not changed since that time.
fn read_unchanged(path: &Path, since: SystemTime) -> Option<Arc<str>> {
    let is_unchanged = || path.metadata().and_then(|it| it.modified()).is_ok_and(|changed| changed <= since);
    let text = bounded_file::read_text(path, MAX_TEXT, Links::Follow).ok()?;
    is_unchanged().then(|| text.into())
}

/// The package of a source with slashes; `None`: there is no such file.
pub(crate) async fn package_of(path: &Path) -> Option<String> {
    let path = path.to_owned();
    let read = move || path.is_file().then(|| read_header(&path).package.replace('.', "/"));
    run_blocking(read).await.ok().flatten()
}

/// The header of a source; of a file that cannot be read, an empty one.
pub(crate) fn read_header(path: &Path) -> SourceHeader {
    let bytes = bounded_file::read_start(path, HEADER_BYTES).unwrap_or_default();
    parse_header(&String::from_utf8_lossy(&bytes))
}

/// The header in the text of a source.
pub(crate) fn parse_header(text: &str) -> SourceHeader {
    let mut header = SourceHeader::default();
    for line in text.lines().map(str::trim) {
        let statement = |word: &str| {
            let rest = line.strip_prefix(word)?.strip_prefix(char::is_whitespace)?;
            Some(rest.split(';').next()?.split_whitespace().collect::<String>())
        };
        if let Some(package) = statement("package").filter(|_| header.package.is_empty()) {
            header.package = package;
        } else if let Some(import) = statement("import").filter(|import| !import.starts_with("static")) {
            header.imports.push(import);
        } else if line.contains('{') {
            break;
        }
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_up_to_the_first_class() {
        let text = "// a\npackage com.example ;\nimport java.util.List;\nimport static java.lang.Math.max;\n\
                    import java.io.*; // all\nclass A {\nimport no;";
        let header = parse_header(text);
        assert_eq!(header.package, "com.example");
        assert_eq!(header.imports, ["java.util.List", "java.io.*"]);
        assert_eq!(parse_header("packages a; class B {}"), SourceHeader::default());
    }

    #[tokio::test]
    async fn the_text_that_was_compiled_is_remembered_and_an_edited_one_is_not_taken_for_it() {
        let root = tempfile::tempdir().unwrap();
        let [seen, edited] = ["A.java", "B.java"].map(|name| root.path().join(name));
        let compiled = SystemTime::now();
        let write = |path: &Path, text: &str, changed: SystemTime| {
            std::fs::write(path, text).unwrap();
            std::fs::File::open(path).unwrap().set_modified(changed).unwrap();
        };
        let second = std::time::Duration::from_secs(1);
        write(&seen, "class A {}", compiled - second);
        write(&edited, "class B { int b; }", compiled + second);
        let sources = SourceFolders::new(Vec::new(), root.path(), &[]);
        for path in [&seen, &edited] {
            sources.remember_text(path, compiled).await;
        }
        write(&seen, "class A { int a; }", compiled + second);
        sources.remember_text(&seen, compiled).await;
        assert_eq!(sources.remembered_text(&seen).as_deref(), Some("class A {}"));
        assert_eq!(sources.remembered_text(&edited), None);
        sources.forget_texts();
        sources.remember_text(&seen, compiled + second).await;
        assert_eq!(sources.remembered_text(&seen).as_deref(), Some("class A { int a; }"));
    }

    #[tokio::test]
    async fn files_are_found_by_package_and_never_outside() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        };
        let own = write("src/main/java/com/example/App.java", "package com.example;");
        let odd = write("odd/place/App.java", "package odd;");
        let sources = SourceFolders::new(Vec::new(), root.path(), &[]);
        let find = async |signature, name| sources.find_files(signature, name).await.as_ref().clone();
        assert_eq!(find("Lcom/example/App$1;", "App.java").await, [own]);
        assert!(find("Lodd/App;", "App.java").await.is_empty());
        sources.add_named_file(&odd);
        assert_eq!(find("Lodd/App;", "App.java").await, [odd]);
        assert!(find("L../x/App;", "App.java").await.is_empty());
        assert!(find("Lx;", "../src/main/java/com/example/App.java").await.is_empty());
    }
}
