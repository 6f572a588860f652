//! The class path of a project that Maven or Gradle builds: what its modules were compiled into, and the archives that its
//! files name, where the user has them.
//!
//! Neither tool is run. Of Gradle's files, which are programs, the lines that name other modules are read, and its lock files.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use tether_base::bounded_file::{self, Links};

use super::maven_pom::{PackageName, Pom, PomDependency, local_repository, read_pom, repository_file};

/// What marks the folder of a module.
const BUILD_FILES: [&str; 5] =
    ["pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"];
/// Where builds put classes and copies of resources, below the folder of a module.
const OUTPUT_FOLDERS: [&str; 6] = [
    "target/classes",
    "build/classes/java/main",
    "build/classes/kotlin/main",
    "build/resources/main",
    "out/production/classes",
    "out/production/resources",
];
/// The same of its tests, and where IDEs put all modules.
const OWN_OUTPUT_FOLDERS: [&str; 6] = [
    "target/test-classes",
    "build/classes/java/test",
    "build/classes/kotlin/test",
    "build/resources/test",
    "out/production",
    "bin/main",
];
/// The largest file of Gradle that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// How many modules and packages of one project are looked at.
const MAX_PARTS: usize = 2000;

/// The class path of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProjectClassPath {
    /// Folders of its own and of the modules that it depends on, then archives.
    pub paths: Vec<PathBuf>,
    /// Packages that it depends on and that the user does not have.
    pub missing: Vec<String>,
}

/// The folder of the module around a folder.
pub(crate) fn module_folder(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| BUILD_FILES.iter().any(|name| folder.join(name).is_file()))
}

/// Folders of compiled classes and resources of the module around a folder, and of those that it depends on.
pub(crate) fn output_folders(folder: &Path) -> Vec<PathBuf> {
    project_class_path(folder).paths.into_iter().filter(|path| path.is_dir()).collect()
}

/// The class path of the module around a folder; empty: there is none.
pub(crate) fn project_class_path(folder: &Path) -> ProjectClassPath {
    let Some(module) = module_folder(folder) else { return ProjectClassPath::default() };
    let home = std::env::home_dir().unwrap_or_default();
    let (others, archives, missing) = match module.join("pom.xml").is_file() {
        true => maven_parts(module, &local_repository(&home)),
        false => gradle_parts(module, &home),
    };
    let own = OUTPUT_FOLDERS.iter().chain(&OWN_OUTPUT_FOLDERS).map(|name| module.join(name));
    let theirs = others.iter().flat_map(|other| OUTPUT_FOLDERS.iter().map(|name| other.join(name)));
    let folders = own.chain(theirs).filter(|folder| folder.is_dir());
    ProjectClassPath { paths: folders.chain(archives).collect(), missing }
}

/// The folders of all modules of the project around a folder, its own first.
pub(crate) fn all_modules(folder: &Path) -> Vec<PathBuf> {
    let Some(module) = module_folder(folder) else { return Vec::new() };
    let others = match module.join("pom.xml").is_file() {
        true => {
            let repository = local_repository(&std::env::home_dir().unwrap_or_default());
            maven_modules(module, &repository).into_iter().map(|(folder, _)| folder).collect()
        }
        false => gradle_modules(module).into_iter().map(|(_, folder)| folder).collect::<Vec<_>>(),
    };
    let others = others.into_iter().filter(|other| other != module);
    std::iter::once(module.to_owned()).chain(others).collect()
}

/// The modules of the project of a Maven module: all below the outermost file around it.
fn maven_modules(module: &Path, repository: &Path) -> Vec<(PathBuf, Pom)> {
    let root = module.ancestors().take_while(|folder| folder.join("pom.xml").is_file()).last().unwrap_or(module);
    let (mut found, mut left): (Vec<(PathBuf, Pom)>, _) = (Vec::new(), VecDeque::from([root.to_owned()]));
    while let Some(folder) = left.pop_front().filter(|_| found.len() < MAX_PARTS) {
        let Some(pom) = read_pom(&folder.join("pom.xml"), repository) else { continue };
        if found.iter().any(|(known, _)| *known == folder) {
            continue;
        }
        left.extend(pom.modules.iter().filter_map(|name| folder.join(name).canonicalize().ok()));
        found.push((folder, pom));
    }
    found
}

/// The other modules that one depends on, its archives, and what the user does not have.
fn maven_parts(module: &Path, repository: &Path) -> (Vec<PathBuf>, Vec<PathBuf>, Vec<String>) {
    let modules = maven_modules(module, repository);
    let Some(own) = read_pom(&module.join("pom.xml"), repository) else { return Default::default() };
    let (mut folders, mut archives, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    let mut seen = BTreeSet::from([own.name.clone()]);
    // The nearest to the module counts.
    let mut left: VecDeque<(PomDependency, Vec<PackageName>, bool)> =
        own.dependencies.iter().map(|it| (it.clone(), Vec::new(), true)).collect();
    while let Some((mut wanted, excluded, is_own)) = left.pop_front().filter(|_| seen.len() < MAX_PARTS) {
        let managed = own.managed.iter().find(|it| it.name == wanted.name && it.classifier == wanted.classifier);
        if let Some(managed) = managed {
            wanted.version = wanted.version.filter(|_| is_own).or_else(|| managed.version.clone());
            wanted.scope = wanted.scope.or_else(|| managed.scope.clone());
            wanted.exclusions.extend(managed.exclusions.iter().cloned());
        }
        let scope = wanted.scope.as_deref().unwrap_or("compile");
        let is_passed_on = matches!(scope, "compile" | "runtime") && !wanted.is_optional;
        let is_excluded = |it: &PackageName| {
            let is = |pattern: &str, text: &str| pattern == "*" || pattern == text;
            is(&it.0, &wanted.name.0) && is(&it.1, &wanted.name.1)
        };
        let is_taken = if is_own { scope != "system" && scope != "import" } else { is_passed_on };
        if !is_taken || excluded.iter().any(is_excluded) || !seen.insert(wanted.name.clone()) {
            continue;
        }
        let pom = match modules.iter().find(|(_, pom)| pom.name == wanted.name) {
            Some((folder, pom)) => {
                folders.push(folder.clone());
                Some(pom.clone())
            }
            None => {
                let version = wanted.version.clone().unwrap_or_default();
                let classifier = wanted.classifier.as_ref().map(|it| format!("-{it}")).unwrap_or_default();
                let is_archive = matches!(wanted.kind.as_deref(), None | Some("jar" | "test-jar" | "bundle"));
                let archive = repository_file(repository, &wanted.name, &version, &format!("{classifier}.jar"));
                match archive.filter(|archive| archive.is_file()) {
                    Some(archive) => archives.push(archive),
                    None if is_archive => missing.push(format!("{}:{}:{version}", wanted.name.0, wanted.name.1)),
                    None => {}
                }
                let file = repository_file(repository, &wanted.name, &version, ".pom");
                file.and_then(|file| read_pom(&file, repository)).map(manage_own)
            }
        };
        let excluded: Vec<PackageName> = excluded.into_iter().chain(wanted.exclusions).collect();
        left.extend(pom.into_iter().flat_map(|it| it.dependencies).map(|it| (it, excluded.clone(), false)));
    }
    (folders, archives, missing)
}

/// A project file whose dependencies have the versions that it manages itself.
fn manage_own(mut pom: Pom) -> Pom {
    for it in &mut pom.dependencies {
        let managed = pom.managed.iter().find(|managed| managed.name == it.name);
        it.version = it.version.take().or_else(|| managed?.version.clone());
        it.scope = it.scope.take().or_else(|| managed?.scope.clone());
    }
    pom
}

/// The modules that a Gradle project includes, with their paths, `core` or `libs:core`.
fn gradle_modules(module: &Path) -> Vec<(String, PathBuf)> {
    let settings = |folder: &Path| {
        let files = ["settings.gradle", "settings.gradle.kts"].map(|name| folder.join(name));
        files.into_iter().find_map(|file| bounded_file::read_text(&file, MAX_BYTES, Links::Follow).ok())
    };
    let Some((root, text)) = module.ancestors().find_map(|folder| Some((folder, settings(folder)?))) else {
        return Vec::new();
    };
    let mut names: BTreeSet<String> = BTreeSet::new();
    for line in joined_lists(&text) {
        let words = line.trim_start();
        if words.starts_with("include") && !words.starts_with("includeBuild") {
            names.extend(quoted_words(words).map(|name| name.trim_start_matches(':').to_owned()));
        }
    }
    let folder = |name: &str| root.join(name.replace(':', "/"));
    names.into_iter().take(MAX_PARTS).map(|name| (name.clone(), folder(&name))).filter(|(_, it)| it.is_dir()).collect()
}

/// As [`maven_parts`].
fn gradle_parts(module: &Path, home: &Path) -> (Vec<PathBuf>, Vec<PathBuf>, Vec<String>) {
    let modules = gradle_modules(module);
    let (mut folders, mut left): (Vec<PathBuf>, _) = (Vec::new(), VecDeque::from([module.to_owned()]));
    while let Some(folder) = left.pop_front() {
        for (_, other) in modules.iter().filter(|(name, _)| is_named_in(&folder, name)) {
            if other != module && !folders.contains(other) {
                folders.push(other.clone());
                left.push_back(other.clone());
            }
        }
    }
    let (mut archives, mut missing) = (Vec::new(), Vec::new());
    let lock = bounded_file::read_text(&module.join("gradle.lockfile"), MAX_BYTES, Links::Follow).unwrap_or_default();
    let caches = std::env::var_os("GRADLE_USER_HOME").map_or_else(|| home.join(".gradle"), PathBuf::from);
    for line in lock.lines().filter(|line| !line.starts_with('#')).take(MAX_PARTS) {
        let Some((package, uses)) = line.split_once('=') else { continue };
        let mut parts = package.split(':');
        let (Some(group), Some(name), Some(version), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        if !uses.split(',').any(|it| it.ends_with("untimeClasspath")) {
            continue;
        }
        let package_name = (group.to_owned(), name.to_owned());
        let of_maven =
            || repository_file(&local_repository(home), &package_name, version, ".jar").filter(|it| it.is_file());
        let cached = cached_archive(&caches.join("caches/modules-2/files-2.1"), (group, name, version));
        match cached.or_else(of_maven) {
            Some(archive) => archives.push(archive),
            None => missing.push(package.to_owned()),
        }
    }
    (folders, archives, missing)
}

/// The archive of a package in Gradle's cache, in a folder named after its checksum.
fn cached_archive(cache: &Path, (group, name, version): (&str, &str, &str)) -> Option<PathBuf> {
    let is_plain = |part: &str| !part.is_empty() && !part.contains('/') && part != "..";
    let folder =
        [group, name, version].into_iter().all(is_plain).then(|| cache.join(group).join(name).join(version))?;
    let file = format!("{name}-{version}.jar");
    let entries = std::fs::read_dir(folder).ok()?.take(MAX_PARTS);
    entries.filter_map(Result::ok).map(|entry| entry.path().join(&file)).find(|archive| archive.is_file())
}

/// Whether the file of a Gradle module depends on the module with that path.
fn is_named_in(folder: &Path, name: &str) -> bool {
    let files = ["build.gradle", "build.gradle.kts"].map(|file| folder.join(file));
    let text = files.iter().find_map(|file| bounded_file::read_text(file, MAX_BYTES, Links::Follow).ok());
    let accessor = format!("projects.{}", accessor_name(name));
    let wanted = format!(":{name}");
    text.unwrap_or_default().lines().any(|line| {
        let after = line.split_once("project(").map_or("", |(_, after)| after);
        let is_accessor = line.split(|c: char| !(c.is_alphanumeric() || c == '.')).any(|word| word == accessor);
        is_accessor || quoted_words(after).next().is_some_and(|path| path == wanted)
    })
}

/// `libs:my-core` as Gradle's typed accessors name it, `libs.myCore`.
fn accessor_name(path: &str) -> String {
    let (mut name, mut is_next_upper) = (String::new(), false);
    for letter in path.chars() {
        match letter {
            ':' => name.push('.'),
            '-' | '_' => is_next_upper = true,
            _ if is_next_upper => {
                name.extend(letter.to_uppercase());
                is_next_upper = false;
            }
            _ => name.push(letter),
        }
    }
    name
}

/// The lines of a text, those that end with `,` or `(` joined with the next.
fn joined_lists(text: &str) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for part in text.lines() {
        line.push_str(part.split("//").next().unwrap_or_default());
        if !line.trim_end().ends_with([',', '(']) {
            lines.push(std::mem::take(&mut line));
        }
    }
    lines.push(line);
    lines
}

/// What is within quotes of either kind.
fn quoted_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\'', '"']).skip(1).step_by(2)
}

#[cfg(test)]
mod tests;
