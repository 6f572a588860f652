//! The compiled tests of a Java project and JUnit's console launcher, by the layouts of Maven, Gradle and plain folders.
//!
//! Reads files only: it compiles nothing, and installs nothing.

use std::path::{Path, PathBuf};

use tether_base::error::{Error, ErrorKind, Result};

use crate::config::named_test::test_run::JavaTest;

/// The class that runs tests.
pub const CONSOLE_LAUNCHER: &str = "org.junit.platform.console.ConsoleLauncher";
/// The jar with everything that it needs.
const LAUNCHER_JAR: &str = "junit-platform-console-standalone";
/// Where Debian's package `junit5` has it.
const SYSTEM_JARS: &str = "/usr/share/java";

/// How a project lays out its files, and what compiles its tests.
struct ProjectLayout {
    /// A file at its top.
    marks: &'static [&'static str],
    tests: &'static [&'static str],
    /// What else is on the class path.
    others: &'static [&'static str],
    compile: &'static str,
}

static LAYOUTS: [ProjectLayout; 3] = [
    ProjectLayout {
        marks: &["pom.xml"],
        tests: &["target/test-classes"],
        others: &["target/classes"],
        compile: "mvn -q test-compile",
    },
    ProjectLayout {
        marks: &["build.gradle", "build.gradle.kts"],
        tests: &["build/classes/java/test"],
        others: &["build/resources/test", "build/classes/java/main", "build/resources/main"],
        compile: "gradle testClasses",
    },
    ProjectLayout {
        marks: &[],
        tests: &["target/test-classes", "out/test", "out", "bin", "build", "classes", "."],
        others: &["target/classes", "out/main", "bin/main"],
        compile: "javac",
    },
];

/// How a Java test is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JavaTestProgram {
    pub class_paths: Vec<PathBuf>,
    /// Of [`CONSOLE_LAUNCHER`].
    pub arguments: Vec<String>,
    /// Where it runs: the top of the project.
    pub folder: PathBuf,
}

/// The run of a test. Errors: it is not compiled, or its class is older than its source; there is no console launcher.
pub fn java_program(test: &JavaTest, workspace: &Path) -> Result<JavaTestProgram> {
    let (layout, folder) = find_layout(&test.file, workspace);
    let class_file = format!("{}.class", test.class.replace('.', "/"));
    let classes = layout.tests.iter().map(|tests| folder.join(tests)).find(|tests| tests.join(&class_file).is_file());
    let failure = || Error::new(ErrorKind::NotFound, format!("cannot run the test {}", test.selector()));
    let compile = format!("`cd {} && {}` compiles it", folder.display(), layout.compile);
    let Some(classes) = classes else {
        let expected = folder.join(layout.tests[0]).join(&class_file);
        return Err(failure().because(format!("it is not compiled: there is no {}", expected.display())).hint(compile));
    };
    let modified = |path: &Path| path.metadata().and_then(|it| it.modified()).ok();
    if modified(&classes.join(&class_file)) < modified(&test.file) {
        let because = format!("{} is older than its source", classes.join(&class_file).display());
        return Err(failure().because(because).hint(compile));
    }
    let launcher = find_launcher(&folder, workspace).ok_or_else(|| missing_launcher(&folder))?;
    let others = layout.others.iter().map(|other| folder.join(other)).filter(|path| path.is_dir());
    let mut class_paths: Vec<PathBuf> = std::iter::once(classes).chain(others).collect();
    class_paths.extend(jars_of(&folder));
    class_paths.push(launcher.clone());
    let selection = match &test.method {
        Some(_) => format!("--select-method={}", test.selector()),
        None => format!("--select-class={}", test.class),
    };
    let arguments = [selection, "--disable-banner".to_owned(), "--disable-ansi-colors".to_owned()];
    let command = has_commands(&launcher).then(|| "execute".to_owned());
    Ok(JavaTestProgram { class_paths, arguments: command.into_iter().chain(arguments).collect(), folder })
}

/// The layout of the nearest project around a file, and its top.
fn find_layout(file: &Path, workspace: &Path) -> (&'static ProjectLayout, PathBuf) {
    let folders = file.ancestors().skip(1).take_while(|folder| folder.starts_with(workspace));
    let mut marked = folders.flat_map(|folder| LAYOUTS.iter().map(move |layout| (layout, folder)));
    let found = marked.find(|(layout, folder)| layout.marks.iter().any(|mark| folder.join(mark).is_file()));
    match found {
        Some((layout, folder)) => (layout, folder.to_owned()),
        None => (&LAYOUTS[LAYOUTS.len() - 1], workspace.to_owned()),
    }
}

/// The jars that lie in the project: in `lib`, and where Maven copies dependencies.
fn jars_of(folder: &Path) -> Vec<PathBuf> {
    let folders = ["lib", "libs", "target/dependency", "build/dependency"].map(|name| folder.join(name));
    let mut jars: Vec<PathBuf> = folders.iter().flat_map(|folder| jars_in(folder)).collect();
    jars.retain(|jar| !is_launcher(jar));
    jars
}

fn jars_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut jars: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|it| it == "jar")).collect();
    jars.sort();
    jars
}

fn is_launcher(jar: &Path) -> bool {
    jar.file_name().is_some_and(|name| name.to_string_lossy().starts_with(LAUNCHER_JAR))
}

/// The launcher: of the project, of the local repositories of Maven and Gradle, or of the system.
fn find_launcher(folder: &Path, workspace: &Path) -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let maven = home.iter().map(|home| home.join(".m2/repository/org/junit/platform").join(LAUNCHER_JAR));
    let gradle =
        home.iter().map(|home| home.join(".gradle/caches/modules-2/files-2.1/org.junit.platform").join(LAUNCHER_JAR));
    let own =
        [folder, workspace].into_iter().flat_map(|it| ["lib", "libs", "target/dependency"].map(|name| it.join(name)));
    let nested = maven.chain(gradle).flat_map(|versions| folders_below(&versions, 2));
    let system = std::iter::once(PathBuf::from(SYSTEM_JARS));
    own.chain(nested).chain(system).find_map(|folder| jars_in(&folder).into_iter().rfind(|jar| is_launcher(jar)))
}

/// The folders below one, newest names first: `VERSION` of Maven, `VERSION/HASH` of Gradle.
fn folders_below(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort_by(|a, b| b.cmp(a));
    let below = |folder: PathBuf| {
        let deeper = if depth > 1 { folders_below(&folder, depth - 1) } else { Vec::new() };
        std::iter::once(folder).chain(deeper).collect::<Vec<_>>()
    };
    folders.into_iter().flat_map(below).collect()
}

/// Whether the launcher has the command `execute`, without which newer ones do not run: since 1.10, by the name of its file.
fn has_commands(launcher: &Path) -> bool {
    let real = launcher.canonicalize().unwrap_or_else(|_| launcher.to_owned());
    let stem = real.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let version = stem.trim_start_matches(LAUNCHER_JAR).trim_start_matches('-');
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= (1, 10),
        _ => false,
    }
}

fn missing_launcher(folder: &Path) -> Error {
    let error = Error::new(ErrorKind::MissingTool, "cannot run tests of JUnit");
    let because = format!(
        "there is no {LAUNCHER_JAR}-*.jar in {}, in ~/.m2, ~/.gradle or {SYSTEM_JARS}",
        folder.join("lib").display()
    );
    let artifact = format!("org.junit.platform:{LAUNCHER_JAR}:1.13.4");
    error.because(because).hint(format!(
        "`apt-get install junit5` installs it for all projects, `mvn dependency:get -Dartifact={artifact}` into ~/.m2"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn each_layout_has_its_classes_or_the_command_that_compiles_them() {
        let place = tempfile::tempdir().unwrap();
        let check = |project: &str, mark: &str, classes: &str, compile: &str| {
            let folder = place.path().join(project);
            let file = folder.join("src/test/java/com/example/OrdersTest.java");
            write(&folder.join(mark), "");
            write(&file, "");
            write(&folder.join("lib").join(format!("{LAUNCHER_JAR}-1.10.2.jar")), "");
            let test = JavaTest { file: file.clone(), class: "com.example.OrdersTest".to_owned(), method: None };
            let missing = java_program(&test, place.path()).unwrap_err().to_string();
            assert!(missing.contains("not compiled") && missing.contains(compile), "{missing}");
            let class = folder.join(classes).join("com/example/OrdersTest.class");
            write(&class, "");
            let program = java_program(&test, place.path()).unwrap();
            assert_eq!((program.class_paths[0].clone(), program.folder), (folder.join(classes), folder));
            assert_eq!(program.arguments[..2], ["execute", "--select-class=com.example.OrdersTest"]);
            let old = std::fs::File::options().write(true).open(&class).unwrap();
            old.set_modified(std::time::UNIX_EPOCH).unwrap();
            assert!(java_program(&test, place.path()).unwrap_err().to_string().contains("older than its source"));
        };
        check("maven", "pom.xml", "target/test-classes", "mvn -q test-compile");
        check("gradle", "build.gradle.kts", "build/classes/java/test", "gradle testClasses");
    }

    #[test]
    fn only_newer_launchers_have_commands() {
        let check = |name: &str, expect: bool| assert_eq!(has_commands(Path::new(name)), expect, "{name}");
        check("/x/junit-platform-console-standalone-1.9.1.jar", false);
        check("/x/junit-platform-console-standalone-1.10.0.jar", true);
        check("/x/junit-platform-console-standalone-6.0.0.jar", true);
        check("/x/junit-platform-console-standalone.jar", false);
    }
}
