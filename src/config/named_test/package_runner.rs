//! The test runner of a JavaScript package, and the options with which a debugger can follow it.
//!
//! Does not depend on how tests are found.

use std::path::{Path, PathBuf};

use crate::config::named_test::outcome::TestRunner;
use crate::config::named_test::patterns::escape_pattern;
use crate::config::named_test::test_files::nearest_folder_with;
use crate::config::npm::package_json::PackageJson;

/// A test runner of a package, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageRunner {
    /// vitest, jest, mocha or Playwright's.
    pub runner: TestRunner,
    /// The script that runs it.
    pub script: PathBuf,
    /// The folder of the package whose tests it runs.
    pub package: PathBuf,
}

/// A runner, the packages by which it is known, and its script below `node_modules`.
struct KnownRunner {
    runner: TestRunner,
    /// Which the package depends on.
    package: &'static str,
    /// Which test files import.
    imports: &'static str,
    script: &'static str,
}

const KNOWN_RUNNERS: [KnownRunner; 4] = [
    // First: a package with these depends on a runner for its other tests, too.
    KnownRunner {
        runner: TestRunner::Playwright,
        package: "@playwright/test",
        imports: "@playwright/test",
        script: "@playwright/test/cli.js",
    },
    KnownRunner { runner: TestRunner::Vitest, package: "vitest", imports: "vitest", script: "vitest/vitest.mjs" },
    KnownRunner { runner: TestRunner::Jest, package: "jest", imports: "@jest/globals", script: "jest/bin/jest.js" },
    KnownRunner { runner: TestRunner::Mocha, package: "mocha", imports: "mocha", script: "mocha/bin/mocha.js" },
];

/// The runner of a test file: what it imports, or else vitest, jest or mocha if the nearest package.json depends on that.
/// `None`: Node itself, also for a file that names `node:test`.
pub fn package_runner(file: &Path, text: &str, workspace: &Path) -> Option<PackageRunner> {
    if text.contains("node:test") {
        return None;
    }
    let nearest = nearest_folder_with(file, workspace, "package.json")?;
    let imported = KNOWN_RUNNERS.iter().find(|known| imports(text, known.imports));
    // In a monorepo, the package at its root may name the runner of all, and have its configuration.
    let folders = || file.ancestors().skip(1).take_while(|folder| folder.starts_with(workspace));
    let named = folders().find_map(|folder| {
        let manifest = PackageJson::read(folder).ok().flatten()?;
        // A test of Playwright's imports it.
        let mut known = KNOWN_RUNNERS[1..].iter().filter(|known| manifest.dependency(known.package).is_some());
        let known = match imported {
            Some(imported) => Some(imported).filter(|imported| manifest.dependency(imported.package).is_some()),
            None => known.next(),
        };
        Some((known?, folder.to_owned()))
    });
    let (known, package) = named.or_else(|| Some((imported?, nearest)))?;
    let script = format!("node_modules/{}", known.script);
    // In a monorepo, the packages of a package may lie in a folder above it.
    let holder = nearest_folder_with(file, workspace, &script).unwrap_or_else(|| package.clone());
    Some(PackageRunner { runner: known.runner, script: holder.join(script), package })
}

fn imports(text: &str, package: &str) -> bool {
    ["'", "\""].iter().any(|quote| {
        let name = format!("{quote}{package}{quote}");
        [format!("from {name}"), format!("require({name})")].iter().any(|form| text.contains(form))
    })
}

impl PackageRunner {
    /// The arguments that choose the test, and those that let a debugger follow it: one process, no limit of time, no coverage,
    /// one run.
    pub fn arguments(&self, file: &Path, pattern: Option<&str>) -> (Vec<String>, &'static [&'static str]) {
        let file = file.to_string_lossy();
        let (first, filter, added): (Vec<&str>, &str, &[&str]) = match self.runner {
            TestRunner::Jest => (
                vec!["--runTestsByPath", &file],
                "-t",
                &["--runInBand", "--testTimeout=86400000", "--coverage=false", "--watchAll=false"],
            ),
            TestRunner::Mocha => (vec![&file], "--grep", &["--no-parallel", "--timeout=0"]),
            TestRunner::Playwright => (vec!["test"], "--grep", &["--workers=1", "--timeout=0", "--retries=0"]),
            _ => (
                vec!["run", &file],
                "-t",
                &["--no-file-parallelism", "--testTimeout=0", "--hookTimeout=0", "--coverage.enabled=false"],
            ),
        };
        let mut arguments: Vec<String> = first.into_iter().map(str::to_owned).collect();
        if self.runner == TestRunner::Playwright {
            // It takes a regular expression.
            arguments.push(escape_pattern(&file));
        }
        arguments.extend(pattern.into_iter().flat_map(|pattern| [filter.to_owned(), pattern.to_owned()]));
        arguments.extend(added.iter().map(|option| (*option).to_owned()));
        (arguments, added)
    }
}
