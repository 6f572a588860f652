//! From a source to a class that can be run: the one of a Maven or Gradle build, or one that `javac` makes now.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

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
    let outputs = output_folders(source.parent().unwrap_or(Path::new("/")));
    let class_paths: Vec<PathBuf> = class_paths.iter().cloned().chain(outputs).collect();
    let class = qualified_name(&package, &source.file_stem().unwrap_or_default().to_string_lossy());
    if class_paths.iter().any(|folder| is_newer(&folder.join(class_file(&class)), source)) {
        return Ok(RunnableClass { class, class_paths, folder: None });
    }
    let folder = tempfile::Builder::new().prefix(scratch).tempdir().doing(doing)?;
    let command = compiler_command(source, &package, java, &class_paths, folder.path());
    let finished = process::run_command(&command, std::future::pending()).await?;
    if !finished.is_success() {
        let error = Error::new(ErrorKind::BuildFailed, format!("cannot compile {}", source.display()));
        return Err(error.because(finished.tail.trim_end().to_owned()));
    }
    let class = if folder.path().join(class_file(&class)).is_file() {
        class
    } else {
        qualified_name(&package, &first_class(source).ok_or_else(|| Error::usage(doing()).because("it has no class"))?)
    };
    let class_paths = std::iter::once(folder.path().to_owned()).chain(class_paths).collect();
    Ok(RunnableClass { class, class_paths, folder: Some(folder) })
}

fn compiler_command(
    source: &Path,
    package: &str,
    java: &Path,
    class_paths: &[PathBuf],
    into: &Path,
) -> CapturedCommand {
    let cwd = source.parent().unwrap_or(Path::new("/")).to_owned();
    let depth = if package.is_empty() { 0 } else { package.split('.').count() };
    let root = cwd.ancestors().nth(depth).unwrap_or(&cwd).to_owned();
    let words = ["-g", "-encoding", "UTF-8", "-d"].map(OsString::from);
    let mut argv = vec![compiler_of(java).into_os_string()];
    argv.extend(words);
    argv.extend([into.into(), "-sourcepath".into(), root.into_os_string()]);
    if !class_paths.is_empty() {
        argv.extend(["-classpath".into(), join_paths(class_paths)]);
    }
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

/// The first class that a source declares.
fn first_class(source: &Path) -> Option<String> {
    let text = crate::bounded_file::read_start(source, 1 << 20).ok()?;
    let text = String::from_utf8_lossy(&text);
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').collect();
    let keywords = ["class", "record", "enum", "interface"];
    let at = words.windows(2).find(|pair| keywords.contains(&pair[0]) && !pair[1].is_empty())?;
    Some(at[1].to_owned())
}
