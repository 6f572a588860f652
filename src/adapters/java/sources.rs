//! Which file a class was compiled from: by its package and the name of its source file, below the folders of sources.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::signatures::package_path;
use crate::bounded_file;
use crate::sync::lock;

/// Folders of sources in a project, relative to it.
const SOURCE_FOLDERS: [&str; 5] = ["src/main/java", "src/test/java", "src", "app/src/main/java", ""];
/// How much of a source is read for its package and imports, in bytes.
const HEADER_BYTES: u64 = 64 << 10;

/// The folders in which sources are looked for.
#[derive(Default)]
pub struct SourceFolders {
    folders: Vec<PathBuf>,
    /// Files that the client has named, by their name.
    named: Mutex<Vec<PathBuf>>,
    found: Mutex<HashMap<(String, String), Option<PathBuf>>>,
}

/// The package and the imports of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceHeader {
    /// `com.example`; empty for the unnamed package.
    pub package: String,
    /// `java.util.List`, `java.util.*`
    pub imports: Vec<String>,
}

impl SourceFolders {
    /// The source folders `given`, then those of the project `root`.
    pub fn new(given: Vec<PathBuf>, root: &Path) -> SourceFolders {
        let below = SOURCE_FOLDERS.iter().map(|folder| root.join(folder));
        SourceFolders { folders: given.into_iter().chain(below).collect(), ..SourceFolders::default() }
    }

    /// The client has breakpoints in that file.
    pub fn add_named_file(&self, path: &Path) {
        let mut named = lock(&self.named);
        if !named.iter().any(|known| known == path) {
            named.push(path.to_owned());
            lock(&self.found).clear();
        }
    }

    /// The file of a class with that signature, whose source file has that name.
    pub fn find_file(&self, signature: &str, file_name: &str) -> Option<PathBuf> {
        let package = package_path(signature);
        // The name comes from the program: it must not lead out of the folder.
        if file_name.contains('/') || package.split('/').any(|part| part == "..") {
            return None;
        }
        let key = (package.to_owned(), file_name.to_owned());
        if let Some(known) = lock(&self.found).get(&key) {
            return known.clone();
        }
        let found = self.search_file(package, file_name);
        lock(&self.found).insert(key, found.clone());
        found
    }

    fn search_file(&self, package: &str, file_name: &str) -> Option<PathBuf> {
        let is_named = |path: &&PathBuf| {
            path.file_name().is_some_and(|name| name == file_name)
                && read_header(path).package.replace('.', "/") == package
        };
        if let Some(named) = lock(&self.named).iter().find(is_named) {
            return Some(named.clone());
        }
        let paths = self.folders.iter().map(|folder| folder.join(package).join(file_name));
        paths.into_iter().find(|path| path.is_file())
    }
}

/// The header of a source; of a file that cannot be read, an empty one.
pub fn read_header(path: &Path) -> SourceHeader {
    let bytes = bounded_file::read_start(path, HEADER_BYTES).unwrap_or_default();
    parse_header(&String::from_utf8_lossy(&bytes))
}

fn parse_header(text: &str) -> SourceHeader {
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

    #[test]
    fn files_are_found_by_package_and_never_outside() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        };
        let own = write("src/main/java/com/example/App.java", "package com.example;");
        let odd = write("odd/place/App.java", "package odd;");
        let sources = SourceFolders::new(Vec::new(), root.path());
        assert_eq!(sources.find_file("Lcom/example/App$1;", "App.java"), Some(own));
        assert_eq!(sources.find_file("Lodd/App;", "App.java"), None);
        sources.add_named_file(&odd);
        assert_eq!(sources.find_file("Lodd/App;", "App.java"), Some(odd));
        assert_eq!(sources.find_file("L../x/App;", "App.java"), None);
        assert_eq!(sources.find_file("Lx;", "../src/main/java/com/example/App.java"), None);
    }
}
