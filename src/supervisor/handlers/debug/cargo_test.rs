//! Builds the test programs of a Cargo package, and finds the one that contains a test.
//!
//! Building runs code of the workspace (build scripts, macros): only when the user has trusted it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use tether_base::error::{Error, ErrorKind, Result};
use tether_process::{CapturedCommand, LAUNCH_ID, clean_environment};

use super::cargo_environment::read_environments;
use crate::config::CARGO_TEST_BUILD;
use crate::config::trust::WorkspaceCommands;
use crate::supervisor::context::SupervisorContext;
use crate::window::Caller;

/// Enough for a cold build of all dependencies.
const BUILD_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Bounds a test program with a harness that does not support `--list`.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// How many similar names an error lists.
const MAX_SIMILAR_NAMES: usize = 5;

/// A test, and the program that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltTest {
    pub program: PathBuf,
    /// Of its package.
    pub folder: PathBuf,
    /// As the program lists it; `None`: all of them.
    pub name: Option<String>,
    /// What cargo adds to the environment of its program.
    pub env: BTreeMap<OsString, OsString>,
}

/// Which tests are to be found.
#[derive(Clone, Copy, Debug)]
pub enum WantedTest<'a> {
    /// The one of this name; of several programs, that whose source is `source`.
    Named { name: &'a str, source: Option<&'a Path> },
    /// All tests of the program with this source.
    WholeProgram { source: &'a Path },
}

/// A line of cargo's JSON output: a built program.
#[derive(Clone, Debug, Deserialize)]
struct TestArtifact {
    manifest_path: PathBuf,
    target: CargoTarget,
    executable: Option<PathBuf>,
    /// What cargo adds to its environment.
    #[serde(skip)]
    env: BTreeMap<OsString, OsString>,
}

#[derive(Clone, Debug, Deserialize)]
struct CargoTarget {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
    test: bool,
}

/// A program, and the names of its tests.
type ListedTests = (TestArtifact, Vec<String>);

/// Builds the tests in `folder`, and finds the wanted one. Errors: [`ErrorKind::NotTrusted`], [`ErrorKind::BuildFailed`] with the compiler's last lines; there is no such test,
/// or several.
pub async fn build_and_find_test(
    supervisor: &SupervisorContext,
    folder: &Path,
    wanted: WantedTest<'_>,
    caller: &dyn Caller,
) -> Result<BuiltTest> {
    WorkspaceCommands::of_tests(supervisor.sessions.workspace()).require_consent()?;
    let queue = supervisor.task_queue().await;
    let (mut programs, environments) = {
        let _turn = queue.wait_for_turn(&|doing| caller.report_progress(doing)).await;
        let programs = build_tests(folder, &queue.launch_id, caller).await?;
        caller.report_progress("reading the environment in which cargo runs them");
        (programs, read_environments(folder, &queue.launch_id).await?)
    };
    for program in &mut programs {
        program.env = program.executable.as_ref().and_then(|it| environments.get(it)).cloned().unwrap_or_default();
    }
    let (name, source) = match wanted {
        WantedTest::Named { name, source } => (name, source),
        WantedTest::WholeProgram { source } => return whole_program(&programs, source),
    };
    if programs.iter().any(|it| Some(it.target.src_path.as_path()) == source) {
        programs.retain(|it| Some(it.target.src_path.as_path()) == source);
    }
    let mut listed = Vec::new();
    for program in programs {
        caller.report_progress(&format!("looking for {name} in {}", program.target.name));
        listed.push((program.clone(), list_tests(&program, &queue.launch_id).await));
    }
    choose_test(&listed, name, folder)
}

async fn build_tests(folder: &Path, mark: &str, caller: &dyn Caller) -> Result<Vec<TestArtifact>> {
    caller.report_progress("building the tests");
    let argv = CARGO_TEST_BUILD.iter().map(OsString::from).collect();
    let env = clean_environment([(LAUNCH_ID, mark)]);
    let what = CapturedCommand { argv, cwd: folder.to_owned(), env, timeout: BUILD_TIMEOUT };
    let mut programs = Vec::new();
    let finished = tether_process::run_until_line(&what, |line| {
        match serde_json::from_str::<TestArtifact>(line) {
            Ok(artifact) if artifact.executable.is_some() && artifact.target.test => programs.push(artifact),
            Err(_) if !line.starts_with('{') => caller.report_progress(line.trim()),
            _ => {}
        }
        false
    });
    let finished = finished.await?;
    if finished.is_success() {
        return Ok(programs);
    }
    let messages: Vec<&str> = finished.tail.lines().filter(|line| !line.starts_with('{')).collect();
    Err(Error::new(ErrorKind::BuildFailed, format!("cannot build the tests in {}", folder.display()))
        .because(format!("its last output:\n{}", messages.join("\n")))
        .hint(format!("`cd {} && cargo test --no-run` runs it by hand", folder.display())))
}

/// The names of its tests; none when its own harness does not support `--list`.
async fn list_tests(program: &TestArtifact, mark: &str) -> Vec<String> {
    let executable = program.executable.clone().unwrap_or_default();
    let argv = [executable.into_os_string(), "--list".into(), "--format".into(), "terse".into()].to_vec();
    let cwd = program.package_folder();
    let mut env = clean_environment([(LAUNCH_ID, mark)]);
    env.extend(program.env.clone());
    let what = CapturedCommand { argv, cwd, env, timeout: LIST_TIMEOUT };
    let mut names = Vec::new();
    let finished = tether_process::run_until_line(&what, |line| {
        names.extend(line.strip_suffix(": test").map(str::to_owned));
        false
    });
    match finished.await {
        Ok(finished) if finished.is_success() => names,
        _ => Vec::new(),
    }
}

impl TestArtifact {
    fn package_folder(&self) -> PathBuf {
        self.manifest_path.parent().unwrap_or(Path::new("/")).to_owned()
    }

    fn built_test(&self, name: &str) -> BuiltTest {
        let program = self.executable.clone().unwrap_or_default();
        let (folder, name) = (self.package_folder(), Some(name.to_owned()));
        BuiltTest { program, folder, name, env: self.env.clone() }
    }

    /// "lib orders"
    fn label(&self) -> String {
        format!("{} {}", self.target.kind.first().map_or("", String::as_str), self.target.name)
    }
}

/// The program whose tests begin in a source file. Errors: none does.
fn whole_program(programs: &[TestArtifact], source: &Path) -> Result<BuiltTest> {
    let found = programs.iter().find(|it| it.target.src_path == source);
    let whole = found.map(|program| BuiltTest { name: None, ..program.built_test("") });
    whole.ok_or_else(|| {
        let sources: Vec<String> = programs.iter().map(|it| it.target.src_path.display().to_string()).collect();
        Error::new(ErrorKind::NotFound, format!("cannot debug the tests of {}", source.display()))
            .because(format!("cargo builds no program of it; the sources of its programs are:\n{}", sources.join("\n")))
            .hint("name one of those, or a test in the file")
    })
}

/// By its whole name; else by the end of it; else with the name of its program before it.
fn choose_test(listed: &[ListedTests], name: &str, folder: &Path) -> Result<BuiltTest> {
    let all = || listed.iter().flat_map(|(program, names)| names.iter().map(move |known| (program, known.as_str())));
    let end = format!("::{name}");
    let of_target = |program: &TestArtifact, known: &str| {
        let (target, own) = (&program.target.name, name.split_once("::"));
        own.is_some_and(|(first, rest)| rest == known && (first == target || first == target.replace('-', "_")))
    };
    let mut found: Vec<(&TestArtifact, &str)> = all().filter(|(_, known)| *known == name).collect();
    if found.is_empty() {
        found = all().filter(|(_, known)| known.ends_with(&end)).collect();
    }
    if found.is_empty() {
        found = all().filter(|(program, known)| of_target(program, known)).collect();
    }
    match &found[..] {
        [(program, known)] => Ok(program.built_test(known)),
        [] => Err(no_such_test(listed, name, folder)),
        several => {
            let several: Vec<String> = several
                .iter()
                .map(|(program, known)| format!("{known} ({}, {})", program.label(), program.target.src_path.display()))
                .collect();
            Err(Error::usage(format!("the test name {name:?} is ambiguous"))
                .because(format!("there are several:\n{}", several.join("\n")))
                .hint("name more of it, its program before it (`orders::tests::adds`), or that source as `program`"))
        }
    }
}

fn no_such_test(listed: &[ListedTests], name: &str, folder: &Path) -> Error {
    let programs: Vec<String> = listed.iter().map(|(program, _)| program.label()).collect();
    let programs = if programs.is_empty() { "no programs".to_owned() } else { programs.join(", ") };
    let error = Error::new(ErrorKind::NotFound, format!("cannot debug the test {name:?}"))
        .because(format!("none of the tests in {} has that name ({programs})", folder.display()));
    let last = name.rsplit("::").next().unwrap_or(name);
    let all = listed.iter().flat_map(|(_, names)| names);
    let similar: Vec<&str> = all.map(String::as_str).filter(|it| it.contains(last)).take(MAX_SIMILAR_NAMES).collect();
    match similar.is_empty() {
        true => error.hint(format!("`cd {} && cargo test -- --list` lists them", folder.display())),
        false => error.hint(format!("there are: {}", similar.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(kind: &str, target: &str, names: &[&str]) -> ListedTests {
        let line = serde_json::json!({
            "reason": "compiler-artifact", "manifest_path": "/w s/a/Cargo.toml", "executable": format!("/t/{kind}-{target}"),
            "target": {"name": target, "kind": [kind], "src_path": format!("/w s/a/{kind}.rs"), "test": true},
        });
        let artifact = serde_json::from_str(&line.to_string()).unwrap();
        (artifact, names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn a_test_is_found_by_its_whole_name_its_end_or_with_its_program() {
        let all = [
            listed("lib", "orders", &["tests::adds", "tests::deep::adds", "both"]),
            listed("bin", "orders-cli", &["both", "only"]),
            listed("test", "whole", &["over_all"]),
        ];
        let check = |name: &str, expect: &str| {
            let found = match choose_test(&all, name, Path::new("/w s/a")) {
                Ok(it) => {
                    format!("{} {} in {}", it.program.display(), it.name.unwrap_or_default(), it.folder.display())
                }
                Err(error) => error.to_string(),
            };
            assert!(found.contains(expect), "{name}: {expect:?} is not in {found}");
        };
        check("tests::adds", "/t/lib-orders tests::adds in /w s/a");
        check("deep::adds", "/t/lib-orders tests::deep::adds in");
        check("over_all", "/t/test-whole over_all in");
        check("orders-cli::both", "/t/bin-orders-cli both in");
        check("adds", "tests::adds (lib orders, /w s/a/lib.rs)\n    | tests::deep::adds");
        check("both", "both (bin orders-cli");
        check("x::adds", "hint: there are: tests::adds, tests::deep::adds");
        check("nope", "(lib orders, bin orders-cli, test whole)\n  hint: `cd /w s/a && cargo test -- --list`");
    }
}
