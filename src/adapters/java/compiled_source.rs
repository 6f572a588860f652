//! From a source to a class that can be run: the one of a Maven or Gradle build, one that lies beside the source and is newer,
//! or one that `javac` makes now, or has made of the same text before.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::class_file::read_class_file;
use super::compile_cache::{CompileCache, compilation_key};
use super::signatures::is_jdk_class;
use super::sources::read_header;
use crate::error::{Error, ErrorContext, ErrorKind, Result};
use crate::process::{self, CapturedCommand};

/// Where builds put classes, below the folder of a project.
const OUTPUT_FOLDERS: [&str; 5] =
    ["target/classes", "target/test-classes", "build/classes/java/main", "build/classes/java/test", "out/production"];
/// What marks the folder of a project.
const BUILD_FILES: [&str; 4] = ["pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle"];
/// How long `javac` may run.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(60);
/// Of more classes that refer to each other, none is used without a compilation.
const MAX_CHECKED: usize = 1000;

/// A class that can be run.
#[derive(Debug)]
pub struct RunnableClass {
    pub class: String,
    pub class_paths: Vec<PathBuf>,
    /// The folder with the classes that were compiled for this run.
    pub folder: Option<TempDir>,
}

/// The class of a source. `scratch`: the beginning of the name of a temporary folder. Errors: `javac` has found errors.
pub async fn prepare_source(
    source: &Path,
    java: &Path,
    class_paths: &[PathBuf],
    scratch: &str,
) -> Result<RunnableClass> {
    let doing = || format!("cannot debug {}", source.display());
    if !source.is_file() {
        return Err(Error::new(ErrorKind::NotFound, doing()).because("there is no such file"));
    }
    let package = read_header(source).package;
    let root = source_root(source, &package);
    let outputs = output_folders(source.parent().unwrap_or(Path::new("/")));
    let mut class_paths: Vec<PathBuf> = class_paths.iter().cloned().chain(outputs).collect();
    let by_file = qualified_name(&package, &source.file_stem().unwrap_or_default().to_string_lossy());
    let declared = first_class(source).map(|class| qualified_name(&package, &class)).unwrap_or_else(|| by_file.clone());
    for class in [&by_file, &declared] {
        if class_paths.iter().any(|folder| is_usable(&folder.join(class_file(class)), source)) {
            return Ok(RunnableClass { class: class.clone(), class_paths, folder: None });
        }
        if are_current(&root, class, source) {
            class_paths.insert(0, root);
            return Ok(RunnableClass { class: class.clone(), class_paths, folder: None });
        }
    }
    let folder = tempfile::Builder::new().prefix(scratch).tempdir().doing(doing)?;
    // What lies beside the sources as a class file only.
    class_paths.push(root.clone());
    compile_source(source, &root, java, &class_paths, folder.path()).await?;
    let class = if folder.path().join(class_file(&by_file)).is_file() { by_file } else { declared };
    if !folder.path().join(class_file(&class)).is_file() {
        return Err(Error::usage(doing()).because("it has no class"));
    }
    class_paths.insert(0, folder.path().to_owned());
    Ok(RunnableClass { class, class_paths, folder: Some(folder) })
}

/// The folder of the unnamed package of a source.
fn source_root(source: &Path, package: &str) -> PathBuf {
    let folder = source.parent().unwrap_or(Path::new("/"));
    let depth = if package.is_empty() { 0 } else { package.split('.').count() };
    folder.ancestors().nth(depth).unwrap_or(folder).to_owned()
}

/// Compiles a source, and the sources below `root` that it needs, or takes what was compiled of the same texts before.
async fn compile_source(source: &Path, root: &Path, java: &Path, class_paths: &[PathBuf], into: &Path) -> Result<()> {
    let compiler = compiler_of(java);
    // The root changes with whatever is written beside the source: its sources are compared one by one.
    let given: Vec<PathBuf> = class_paths.iter().filter(|path| *path != root).cloned().collect();
    let key = compilation_key(&compiler, source, &given);
    let cache = key.zip(CompileCache::open());
    if cache.as_ref().is_some_and(|(key, cache)| cache.restore(key, into)) {
        return Ok(());
    }
    let command = compiler_command(compiler, source, root, class_paths, into);
    let finished = process::run_command(&command, std::future::pending()).await?;
    if !finished.is_success() {
        let error = Error::new(ErrorKind::BuildFailed, format!("cannot compile {}", source.display()));
        return Err(error.because(finished.tail.trim_end().to_owned()));
    }
    if let Some((key, cache)) = cache {
        cache.store(&key, root, into);
    }
    Ok(())
}

fn compiler_command(
    compiler: PathBuf,
    source: &Path,
    root: &Path,
    class_paths: &[PathBuf],
    into: &Path,
) -> CapturedCommand {
    let cwd = source.parent().unwrap_or(Path::new("/")).to_owned();
    let mut argv = vec![compiler.into_os_string()];
    // A class file beside a source may be older, or lack what a debugger needs.
    argv.extend(["-g", "-encoding", "UTF-8", "-Xprefer:source", "-d"].map(OsString::from));
    argv.extend([into.into(), "-sourcepath".into(), root.into(), "-classpath".into(), join_paths(class_paths)]);
    argv.push(source.into());
    // In the C locale, Java cannot open a file whose name is not ASCII.
    let env = process::clean_environment([("LC_ALL", "C.UTF-8")]);
    CapturedCommand { argv, cwd, env, timeout: COMPILE_TIMEOUT }
}

/// The `javac` that is beside a `java`, or the one on PATH.
fn compiler_of(java: &Path) -> PathBuf {
    let beside = |java: &Path| java.parent().map(|bin| bin.join("javac")).filter(|javac| javac.is_file());
    let real = java.canonicalize().ok();
    beside(java).or_else(|| beside(&real?)).unwrap_or_else(|| "javac".into())
}

/// Folders of compiled classes of the project around a folder.
pub fn output_folders(folder: &Path) -> Vec<PathBuf> {
    let is_project = |folder: &&Path| BUILD_FILES.iter().any(|name| folder.join(name).is_file());
    let Some(project) = folder.ancestors().find(is_project) else { return Vec::new() };
    OUTPUT_FOLDERS.iter().map(|name| project.join(name)).filter(|folder| folder.is_dir()).collect()
}

/// Paths as one argument.
pub fn join_paths(paths: &[PathBuf]) -> OsString {
    std::env::join_paths(paths).unwrap_or_else(|_| paths.first().map(OsString::from).unwrap_or_default())
}

fn qualified_name(package: &str, class: &str) -> String {
    if package.is_empty() { class.to_owned() } else { format!("{package}.{class}") }
}

fn class_file(class: &str) -> String {
    class.replace('.', "/") + ".class"
}

fn is_newer(class: &Path, source: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|it| it.modified()).ok();
    matches!((changed(class), changed(source)), (Some(class), Some(source)) if class >= source)
}

/// Whether a class file of a build was compiled from that source as it is, with what a debugger needs.
fn is_usable(class: &Path, source: &Path) -> bool {
    let is_of = |name: &str| source.file_name().is_some_and(|own| own == name);
    is_newer(class, source)
        && read_class_file(class)
            .is_some_and(|(_, facts)| facts.has_debug_tables && facts.source_file.as_deref().is_some_and(is_of))
}

/// Whether the class files beside sources are newer than these: of a class, and of all that it needs below `root`.
fn are_current(root: &Path, class: &str, source: &Path) -> bool {
    let main = class.replace('.', "/");
    if !is_usable(&root.join(class_file(class)), source) {
        return false;
    }
    let (mut names, mut at) = (vec![main], 0);
    while let Some(name) = names.get(at).cloned() {
        at += 1;
        let outer = name.split('$').next().unwrap_or(&name);
        let file = root.join(format!("{name}.class"));
        let Some((_, facts)) = read_class_file(&file).filter(|_| names.len() < MAX_CHECKED) else {
            // Another folder's, unless its source is here.
            match root.join(format!("{outer}.java")).is_file() || names.len() >= MAX_CHECKED {
                true => return false,
                false => continue,
            }
        };
        let package = name.rsplit_once('/').map_or("", |(package, _)| package);
        let from = facts.source_file.map(|source| root.join(package).join(source));
        if from.is_some_and(|from| from.is_file() && !(facts.has_debug_tables && is_newer(&file, &from))) {
            return false;
        }
        for it in facts.references {
            if is_plain(&it) && !names.contains(&it) {
                names.push(it);
            }
        }
    }
    true
}

/// Whether the name of a class leads nowhere else, and to none of the JDK.
fn is_plain(name: &str) -> bool {
    !is_jdk_class(name) && !name.starts_with('/') && name.split('/').all(|part| part != "..")
}

/// The first class that a source declares.
fn first_class(source: &Path) -> Option<String> {
    let text = crate::bounded_file::read_start(source, 1 << 20).ok()?;
    let text = String::from_utf8_lossy(&text);
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').collect();
    let keywords = ["class", "record", "enum", "interface"];
    let at = words.windows(2).find(|pair| keywords.contains(&pair[0]) && !pair[1].is_empty())?;
    Some(at[1].to_owned())
}
