//! From a source to a class that can be run: the one of a Maven or Gradle build, one that lies beside the source and is newer,
//! or one that `javac` makes now, or has made of the same text before.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tether_base::error::{Error, ErrorContext, ErrorKind, Result};
use tether_process::CapturedCommand;

use super::blocking::run_blocking;
use super::class_file::read_class_file;
use super::compile_cache::CompileCache;
use super::compile_inputs::{CompileInputs, SeenSource, newest_source};
use super::project_modules::{ProjectClassPath, project_class_path};
use super::signatures::is_jdk_class;
use super::sources::read_header;

/// The options of `javac`. A class file beside a source may be older, or lack what a debugger needs. The virtual machine that
/// compiles does not run for long enough that its second compiler and its collector's threads repay their start: without them
/// javac 17.0.15 takes 0.6 of the processor time for one file, 0.4 for 60, and 0.46 for 600 (of 9,000 methods).
const COMPILER_OPTIONS: [&str; 7] = [
    "-J-XX:+IgnoreUnrecognizedVMOptions",
    "-J-XX:TieredStopAtLevel=1",
    "-J-XX:+UseSerialGC",
    "-g",
    "-encoding",
    "UTF-8",
    "-Xprefer:source",
];
/// The environment variable with further ones.
const OPTIONS_VARIABLE: &str = "JDK_JAVAC_OPTIONS";
/// How long `javac` may run.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(60);
/// Of more classes that refer to each other, none is used without a compilation.
const MAX_CHECKED: usize = 1000;

/// A class that can be run.
#[derive(Debug)]
pub(crate) struct RunnableClass {
    pub class: String,
    pub class_paths: Vec<PathBuf>,
    /// Packages that its project names and that are not on the class path, since the user does not have them.
    pub missing: Vec<String>,
    /// The folder with the classes that were compiled for this run.
    pub folder: Option<TempDir>,
}

/// The class of a source. `scratch`: the beginning of the name of a temporary folder. Errors: `javac` has found errors.
pub(crate) async fn prepare_source(
    source: &Path,
    java: &Path,
    class_paths: &[PathBuf],
    scratch: &str,
) -> Result<RunnableClass> {
    let (owned, given) = (source.to_owned(), class_paths.to_vec());
    let mut plan = match off_runtime(source, move || find_classes(&owned, given)).await?? {
        FoundClasses::Ready(runnable) => return Ok(runnable),
        FoundClasses::ToCompile(plan) => plan,
    };
    let folder = tempfile::Builder::new().prefix(scratch).tempdir().doing(|| cannot_debug(source))?;
    // What lies beside the sources as a class file only.
    plan.class_paths.push(plan.root.clone());
    compile_source(java, &plan, folder.path()).await?;
    off_runtime(source, move || plan.runnable(folder)).await?
}

/// Work on files, off the runtime's threads.
async fn off_runtime<T: Send + 'static>(source: &Path, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    run_blocking(work).await.map_err(|failure| Error::other(cannot_debug(source)).because(failure.0))
}

fn cannot_debug(source: &Path) -> String {
    format!("cannot debug {}", source.display())
}

/// Where the class of a source comes from.
enum FoundClasses {
    Ready(RunnableClass),
    ToCompile(CompilePlan),
}

/// What is compiled.
#[derive(Clone)]
struct CompilePlan {
    source: PathBuf,
    /// The class that the file is named after, and the first one that it declares.
    classes: [String; 2],
    /// The folder of the unnamed package.
    root: PathBuf,
    class_paths: Vec<PathBuf>,
    missing: Vec<String>,
}

fn find_classes(source: &Path, mut class_paths: Vec<PathBuf>) -> Result<FoundClasses> {
    if !source.is_file() {
        return Err(Error::new(ErrorKind::NotFound, cannot_debug(source)).because("there is no such file"));
    }
    let package = read_header(source).package;
    let root = source_root(source, &package);
    let ProjectClassPath { paths, missing } = project_class_path(source.parent().unwrap_or(Path::new("/")));
    class_paths.extend(paths);
    let by_file = qualified_name(&package, &source.file_stem().unwrap_or_default().to_string_lossy());
    let declared = first_class(source).map(|class| qualified_name(&package, &class)).unwrap_or_else(|| by_file.clone());
    for class in [&by_file, &declared] {
        if class_paths.iter().any(|folder| is_usable(&folder.join(class_file(class)), source)) {
            return Ok(FoundClasses::Ready(RunnableClass { class: class.clone(), class_paths, missing, folder: None }));
        }
        if are_current(&root, class, source) {
            class_paths.insert(0, root);
            return Ok(FoundClasses::Ready(RunnableClass { class: class.clone(), class_paths, missing, folder: None }));
        }
    }
    let (source, classes) = (source.to_owned(), [by_file, declared]);
    Ok(FoundClasses::ToCompile(CompilePlan { source, classes, root, class_paths, missing }))
}

impl CompilePlan {
    /// The class that was compiled into a folder. Errors: the source has none.
    fn runnable(mut self, folder: TempDir) -> Result<RunnableClass> {
        let is_there = |class: &&String| folder.path().join(class_file(class)).is_file();
        let class = self.classes.iter().find(is_there).cloned();
        let class = class.ok_or_else(|| Error::usage(cannot_debug(&self.source)).because("it has no class"))?;
        self.class_paths.insert(0, folder.path().to_owned());
        Ok(RunnableClass { class, class_paths: self.class_paths, missing: self.missing, folder: Some(folder) })
    }
}

/// The folder of the unnamed package of a source.
fn source_root(source: &Path, package: &str) -> PathBuf {
    let folder = source.parent().unwrap_or(Path::new("/"));
    let depth = if package.is_empty() { 0 } else { package.split('.').count() };
    folder.ancestors().nth(depth).unwrap_or(folder).to_owned()
}

/// What became of a look into the cache.
enum CacheLookup {
    Restored,
    /// Where the compilation is kept; none: its inputs cannot be known.
    Missed(Option<CacheSlot>),
}

/// What a compilation is kept under, and the sources as they were before it.
struct CacheSlot {
    cache: CompileCache,
    key: String,
    seen: BTreeMap<PathBuf, SeenSource>,
}

/// Compiles a source, and the sources below its root that it needs, or takes what was compiled of the same before.
async fn compile_source(java: &Path, plan: &CompilePlan, into: &Path) -> Result<()> {
    let source = plan.source.as_path();
    let compiler = compiler_of(java);
    let command = compiler_command(compiler.clone(), plan, into);
    let mut options: Vec<String> = COMPILER_OPTIONS.iter().map(|option| (*option).to_owned()).collect();
    options.extend(command.env.get(OsStr::new(OPTIONS_VARIABLE)).map(|it| it.to_string_lossy().into_owned()));
    // What lies below the root has rules of its own: it changes with whatever is written beside the source.
    let class_paths = plan.class_paths.iter().filter(|path| **path != plan.root).cloned().collect();
    let (source_file, root) = (plan.source.clone(), plan.root.clone());
    let inputs = CompileInputs { compiler, options, source: source_file, root, class_paths };
    let (looked_up, folder) = (inputs.clone(), into.to_owned());
    let slot = match off_runtime(source, move || look_into_cache(&looked_up, &folder)).await? {
        CacheLookup::Restored => return Ok(()),
        CacheLookup::Missed(slot) => slot,
    };
    let finished = tether_process::run_command(&command, std::future::pending()).await?;
    if !finished.is_success() {
        let error = Error::new(ErrorKind::BuildFailed, format!("cannot compile {}", source.display()));
        return Err(error.because(finished.tail.trim_end().to_owned()));
    }
    if let Some(CacheSlot { cache, key, seen }) = slot {
        let classes = into.to_owned();
        off_runtime(source, move || cache.store(&key, &inputs, &seen, &classes)).await?;
    }
    Ok(())
}

fn look_into_cache(inputs: &CompileInputs, into: &Path) -> CacheLookup {
    let Some((cache, key)) = CompileCache::open().zip(inputs.key()) else { return CacheLookup::Missed(None) };
    if cache.restore(&key, into) {
        return CacheLookup::Restored;
    }
    CacheLookup::Missed(inputs.see_sources().map(|seen| CacheSlot { cache, key, seen }))
}

fn compiler_command(compiler: PathBuf, plan: &CompilePlan, into: &Path) -> CapturedCommand {
    let cwd = plan.source.parent().unwrap_or(Path::new("/")).to_owned();
    let mut argv = vec![compiler.into_os_string()];
    argv.extend(COMPILER_OPTIONS.map(OsString::from));
    let class_path = join_paths(&plan.class_paths);
    argv.extend(["-d".into(), into.into(), "-sourcepath".into(), plan.root.clone().into()]);
    argv.extend(["-classpath".into(), class_path, plan.source.clone().into()]);
    // In the C locale, Java cannot open a file whose name is not ASCII.
    let env = tether_process::clean_environment([("LC_ALL", "C.UTF-8")]);
    CapturedCommand { argv, cwd, env, timeout: COMPILE_TIMEOUT }
}

/// The `javac` that is beside a `java`, or the one on PATH.
fn compiler_of(java: &Path) -> PathBuf {
    let beside = |java: &Path| java.parent().map(|bin| bin.join("javac")).filter(|javac| javac.is_file());
    let real = java.canonicalize().ok();
    beside(java).or_else(|| beside(&real?)).unwrap_or_else(|| "javac".into())
}

/// Paths as one argument.
pub(crate) fn join_paths(paths: &[PathBuf]) -> OsString {
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

/// Whether the class files beside sources are newer than these: of a class, and of all that it needs below `root`. The main
/// class must be newer than all sources: a constant of another class is in its code, and nothing says where it is from.
fn are_current(root: &Path, class: &str, source: &Path) -> bool {
    let main = class.replace('.', "/");
    let main_file = root.join(class_file(class));
    let written = || main_file.metadata().and_then(|it| it.modified()).ok();
    if !is_usable(&main_file, source) || newest_source(root).is_none_or(|newest| Some(newest) > written()) {
        return false;
    }
    let (mut names, mut at) = (vec![main], 0usize);
    while let Some(name) = names.get(at).cloned() {
        at = at.saturating_add(1);
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
    let text = tether_base::bounded_file::read_start(source, 1 << 20).ok()?;
    let text = String::from_utf8_lossy(&text);
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').collect();
    let keywords = ["class", "record", "enum", "interface"];
    let mut pairs = words.array_windows();
    pairs.find(|[keyword, name]| keywords.contains(keyword) && !name.is_empty()).map(|[_, name]| (*name).to_owned())
}
