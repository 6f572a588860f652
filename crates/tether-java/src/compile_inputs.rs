//! Everything that decides what `javac` makes of a source: what a compilation is found again by.
//!
//! | input | how it is known |
//! |---|---|
//! | the source | its text |
//! | the compiler, its options | path and stamp; the text of the options |
//! | class path: archives, folders with all that is below them | path and stamp of each file |
//! | class files beside the sources | path and stamp of each |
//! | sources beside the source | which there are; the text of each that was compiled is in the entry of the cache |
//!
//! A stamp has the size and the times of a file, also that of its last change by whatever means, which no copy keeps. What
//! cannot be known, such as a folder that is too large, is not guessed: then nothing is taken from the cache.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use tether_base::bounded_file::{self, Links};

/// How many files and folders are looked at below one folder.
const MAX_ENTRIES: usize = 20_000;
/// The largest source that is read, and all of them, in bytes.
pub(crate) const MAX_SOURCE: u64 = 8 << 20;
const MAX_SOURCES: u64 = 64 << 20;
/// The folder of a class path with what is no class, such as the names of annotation processors.
const META_FOLDER: &str = "META-INF";

/// What a compilation is made from.
#[derive(Clone, Debug)]
pub(crate) struct CompileInputs {
    pub compiler: PathBuf,
    /// The options on its command line, and those that it takes from its environment.
    pub options: Vec<String>,
    pub source: PathBuf,
    /// The folder of the unnamed package of the source.
    pub root: PathBuf,
    pub class_paths: Vec<PathBuf>,
}

/// By which a changed file is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    bytes: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// A source, as it was before a compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenSource {
    pub stamp: FileStamp,
    pub digest: String,
}

impl FileStamp {
    /// The stamp of a file. `None`: there is none.
    pub(crate) fn of(path: &Path) -> Option<FileStamp> {
        fs::metadata(path).ok().map(|metadata| FileStamp::of_metadata(&metadata))
    }

    fn of_metadata(metadata: &Metadata) -> FileStamp {
        FileStamp {
            bytes: metadata.len(),
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl CompileInputs {
    /// The key of the compilation. `None`: one of its inputs cannot be known.
    pub(crate) fn key(&self) -> Option<String> {
        let mut digest = Sha256::new();
        let mut add = |kind: &str, path: &Path, value: &str| {
            // Lengths first: no two lists of inputs have the same bytes.
            for part in [kind.as_bytes(), path.as_os_str().as_encoded_bytes(), value.as_bytes()] {
                digest.update((part.len() as u64).to_be_bytes());
                digest.update(part);
            }
        };
        let compiler = self.compiler.canonicalize().ok()?;
        add("compiler", &compiler, &stamp_text(&compiler));
        for option in &self.options {
            // The options in a file of arguments are not seen here.
            if option.split_whitespace().any(|word| word.starts_with('@')) {
                return None;
            }
            add("option", Path::new(""), option);
        }
        add("source", &self.source, &digest_of_file(&self.source)?);
        for path in &self.class_paths {
            add("class path", path, &stamp_text(path));
            // `lib/*` stands for all archives in `lib`.
            let folder = if path.file_name() == Some(OsStr::new("*")) { path.parent().unwrap_or(path) } else { path };
            if folder.is_dir() {
                for file in files_below(folder, |_| true)? {
                    add("class path file", &file, &stamp_text(&file));
                }
            }
        }
        for file in files_below(&self.root, is_package_folder)? {
            match file.extension().and_then(OsStr::to_str) {
                Some("java") => add("sibling", &file, ""),
                Some("class") => add("sibling class", &file, &stamp_text(&file)),
                _ if file.iter().any(|part| part == META_FOLDER) => add("resource", &file, &stamp_text(&file)),
                _ => {}
            }
        }
        Some(hex::encode(digest.finalize()))
    }

    /// The sources that may be compiled, as they are now. `None`: there are too many.
    pub(crate) fn see_sources(&self) -> Option<BTreeMap<PathBuf, SeenSource>> {
        let (mut seen, mut bytes) = (BTreeMap::new(), 0u64);
        for path in sources_below(&self.root)? {
            let Some(stamp) = FileStamp::of(&path) else { continue };
            bytes = bytes.saturating_add(stamp.bytes);
            if bytes > MAX_SOURCES {
                return None;
            }
            // What is no regular file, or too large, is not known: a compilation of it is not kept.
            if let Some(digest) = digest_of_file(&path) {
                seen.insert(path, SeenSource { stamp, digest });
            }
        }
        Some(seen)
    }
}

/// The digest of a file's bytes. `None`: it is no regular file, or too large.
pub(crate) fn digest_of_file(path: &Path) -> Option<String> {
    let bytes = bounded_file::read_file(path, MAX_SOURCE, Links::Follow).ok()?;
    Some(hex::encode(Sha256::digest(bytes)))
}

/// When the newest source below a folder was written. `None`: there are too many files to tell.
pub(crate) fn newest_source(root: &Path) -> Option<SystemTime> {
    let written = |path: PathBuf| fs::metadata(path).and_then(|it| it.modified()).ok();
    Some(sources_below(root)?.into_iter().filter_map(written).max().unwrap_or(SystemTime::UNIX_EPOCH))
}

fn sources_below(root: &Path) -> Option<Vec<PathBuf>> {
    let mut files = files_below(root, is_package_folder)?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "java"));
    Some(files)
}

fn stamp_text(path: &Path) -> String {
    format!("{:?}", FileStamp::of(path))
}

/// The files below a folder, sorted; of the folders below it those with such names. `None`: there are too many, or one of
/// the folders cannot be read.
fn files_below(folder: &Path, is_followed: fn(&str) -> bool) -> Option<Vec<PathBuf>> {
    let (mut found, mut folders, mut seen) = (Vec::new(), vec![folder.to_owned()], 0usize);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).ok()? {
            seen = seen.saturating_add(1);
            if seen > MAX_ENTRIES {
                return None;
            }
            let path = entry.ok()?.path();
            if !path.is_dir() {
                found.push(path);
            } else if path.file_name().is_some_and(|name| is_followed(&name.to_string_lossy())) {
                folders.push(path);
            }
        }
    }
    found.sort();
    Some(found)
}

/// Whether a folder may be a package: its name is an identifier. `node_modules` would be one, and is large.
fn is_package_folder(name: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    name == META_FOLDER
        || (name != "node_modules" && name.chars().all(is_letter) && !name.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        folder: tempfile::TempDir,
        options: Vec<String>,
        class_paths: Vec<PathBuf>,
    }

    impl Place {
        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        /// Writes another text of the same length, and gives the file its old time back.
        fn replace(&self, name: &str, text: &str) {
            let modified = fs::metadata(self.path(name)).unwrap().modified().unwrap();
            let len = fs::metadata(self.path(name)).unwrap().len();
            self.write(name, text);
            fs::File::open(self.path(name)).unwrap().set_modified(modified).unwrap();
            assert_eq!(fs::metadata(self.path(name)).unwrap().len(), len);
        }

        fn key(&self) -> Option<String> {
            let (compiler, source, root) = (self.path("jdk/javac"), self.path("src/a/A.java"), self.path("src"));
            let (options, class_paths) = (self.options.clone(), self.class_paths.clone());
            CompileInputs { compiler, options, source, root, class_paths }.key()
        }
    }

    fn place() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let class_paths = ["classes", "one.jar", "lib/*"].map(|name| folder.path().join(name)).to_vec();
        let place = Place { folder, options: vec!["-g".to_owned()], class_paths };
        for name in ["jdk/javac", "src/a/A.java", "src/a/B.java", "src/a/Old.class", "src/META-INF/services/p"] {
            place.write(name, "text");
        }
        for name in ["classes/deep/er/C.class", "classes/META-INF/services/p", "one.jar", "lib/two.jar"] {
            place.write(name, "text");
        }
        place
    }

    #[test]
    fn each_input_that_changes_alone_changes_the_key() {
        type Change = (&'static str, fn(&mut Place));
        let changes: Vec<Change> = vec![
            ("the source", |it| it.replace("src/a/A.java", "next")),
            ("the compiler", |it| it.replace("jdk/javac", "next")),
            ("an option", |it| it.options.push("-parameters".to_owned())),
            ("a class deep below a folder of the class path", |it| it.replace("classes/deep/er/C.class", "next")),
            ("a new class there", |it| it.write("classes/deep/D.class", "")),
            ("a class there that is gone", |it| fs::remove_file(it.path("classes/deep/er/C.class")).unwrap()),
            ("a resource there", |it| it.replace("classes/META-INF/services/p", "next")),
            ("an archive", |it| it.replace("one.jar", "next")),
            ("an archive of a wildcard", |it| it.replace("lib/two.jar", "next")),
            ("a new archive of a wildcard", |it| it.write("lib/three.jar", "")),
            ("a further path", |it| it.class_paths.push(PathBuf::from("/no/such"))),
            ("the order of the paths", |it| it.class_paths.reverse()),
            ("a class file beside the sources", |it| it.replace("src/a/Old.class", "next")),
            ("a new class file beside the sources", |it| it.write("src/b/New.class", "")),
            ("a new source beside", |it| it.write("src/a/C.java", "")),
            ("a source beside that is gone", |it| fs::remove_file(it.path("src/a/B.java")).unwrap()),
            ("an annotation processor", |it| it.replace("src/META-INF/services/p", "next")),
        ];
        for (what, change) in changes {
            let mut place = place();
            let before = place.key().unwrap();
            assert_eq!(place.key(), Some(before.clone()), "nothing has changed");
            change(&mut place);
            let after = place.key().unwrap();
            assert_ne!(after, before, "{what}");
        }
    }

    #[test]
    fn what_is_not_compiled_changes_nothing() {
        let place = place();
        let before = place.key().unwrap();
        place.replace("src/a/B.java", "next");
        for name in ["src/notes.txt", "src/.git/x.class", "src/node_modules/x/Y.java", "src/a-b/Z.java"] {
            place.write(name, "");
        }
        assert_eq!(place.key(), Some(before));
    }

    #[test]
    fn inputs_that_cannot_be_known_have_no_key() {
        let mut place = place();
        place.options.push("-g @more".to_owned());
        assert_eq!(place.key(), None, "options in a file");
        place.options.pop();
        assert!(place.key().is_some());
        fs::remove_file(place.path("jdk/javac")).unwrap();
        assert_eq!(place.key(), None, "no compiler");
    }
}
