//! From a test run to the program that is debugged for it, with the options that let a debugger follow it.

use std::path::Path;

use serde_json::{Value, json};
use tether_base::error::{Error, ErrorKind, Result};

use crate::config::{CONSOLE_LAUNCHER, JavaTest, PackageRunner, RubyTest, TestRun, TestRunner, java_program};
use crate::debug::program::{DebugTarget, DebugTargetKind};

/// What is debugged for a test.
pub struct TestProgram {
    pub language: &'static str,
    pub debug_target: DebugTarget,
    /// The options that the caller has not given.
    pub added: Vec<String>,
}

impl TestProgram {
    /// Says which options are added, and why. `None`: there are none.
    pub fn note(&self, runner: TestRunner) -> Option<String> {
        let mut reasons: Vec<&str> = Vec::new();
        for reason in self.added.iter().map(|option| added_reason(option)) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        let (command, options, reasons) = (runner.command(), self.added.join(" "), reasons.join(", "));
        (!self.added.is_empty()).then(|| format!("`{command}` runs it with {options} added: {reasons}"))
    }
}

/// Why an option is added, by its name.
fn added_reason(option: &str) -> &'static str {
    match option.split('=').next().unwrap_or_default() {
        "--no-cov" | "--coverage" | "--coverage.enabled" => "no coverage",
        "--timeout" | "--testTimeout" | "--hookTimeout" => "no limit of time",
        "--retries" => "one try",
        "--watchAll" => "one run",
        "--noinput" => "no question about an old database",
        _ => "one process",
    }
}

/// The program of a test run, apart from those of Cargo, which are built first. `given` has what the caller gives for any
/// program, `args` the further arguments. Errors: the runner is not installed, or the test not compiled.
pub fn test_program(
    run: TestRun,
    workspace: &Path,
    given_cwd: Option<&Path>,
    args: Vec<String>,
    given: DebugTarget,
) -> Result<TestProgram> {
    let program = |language, debug_target| TestProgram { language, debug_target, added: Vec::new() };
    Ok(match run {
        TestRun::Pytest { node, folder, added } => {
            // A node id is relative to where pytest runs.
            let node = match given_cwd {
                Some(cwd) if cwd != folder => folder.join(node).to_string_lossy().into_owned(),
                _ => node,
            };
            let added: Vec<String> = added.into_iter().map(str::to_owned).collect();
            let own = std::iter::once(node).chain(added.iter().cloned());
            let (kind, args) = (DebugTargetKind::Module("pytest".to_owned()), own.chain(args).collect());
            TestProgram { added, ..program("python", DebugTarget { kind, args, cwd: folder, ..given }) }
        }
        TestRun::Unittest { arguments, folder } => {
            let (kind, args) = (DebugTargetKind::Module("unittest".to_owned()), [arguments, args].concat());
            program("python", DebugTarget { kind, args, cwd: folder, ..given })
        }
        TestRun::Django { manage, label } => {
            // An earlier run that was ended has left its database.
            let added = vec!["--noinput".to_owned()];
            let args = [vec!["test".to_owned(), label], added.clone(), args].concat();
            let cwd = manage.parent().unwrap_or(Path::new("/")).to_owned();
            let fields = [("django".to_owned(), json!(true))].into_iter().collect();
            let debug_target = DebugTarget { kind: DebugTargetKind::Program(manage), args, cwd, fields, ..given };
            TestProgram { added, ..program("python", debug_target) }
        }
        TestRun::Package { by, file, pattern, .. } => package_program(&by, &file, pattern.as_deref(), args, given)?,
        TestRun::Node { file, pattern, .. } => {
            let cwd = file.parent().unwrap_or(Path::new("/")).to_owned();
            let arguments = pattern.map(|pattern| format!("--test-name-pattern={pattern}"));
            let fields = [("runtimeArgs".to_owned(), json!(Vec::from_iter(arguments)))].into_iter().collect();
            program("javascript", DebugTarget { kind: DebugTargetKind::Program(file), args, cwd, fields, ..given })
        }
        TestRun::Go { package, pattern } => {
            let fields = [("mode".to_owned(), json!("test"))].into_iter().collect();
            let args = [vec!["-test.run".to_owned(), pattern], args].concat();
            let cwd = package.clone();
            program("go", DebugTarget { kind: DebugTargetKind::Program(package), args, cwd, fields, ..given })
        }
        TestRun::Ruby(test) => program("ruby", ruby_target(&test, args, given)?),
        TestRun::Java(test) => program("java", java_target(&test, workspace, args, given)?),
        TestRun::Extension { folder, .. } => {
            return Err(Error::other(format!("the tests in {} run in an extension host", folder.display())));
        }
        TestRun::Cargo { folder, .. } => {
            return Err(Error::other(format!("the tests in {} are not built", folder.display())));
        }
    })
}

/// The runner of a package, whose own limits of time would end a test that is stopped at a breakpoint. Errors: it is not
/// installed.
fn package_program(
    by: &PackageRunner,
    file: &Path,
    pattern: Option<&str>,
    args: Vec<String>,
    given: DebugTarget,
) -> Result<TestProgram> {
    let command = by.runner.command();
    if !by.script.is_file() {
        let error = Error::new(ErrorKind::MissingTool, format!("cannot run `{command}`"));
        let error = error.because(format!("there is no {}", by.script.display()));
        return Err(error.hint(format!("`npm install` in {} installs what the package names", by.package.display())));
    }
    let (own, added) = by.arguments(file, pattern);
    let skipped = json!(["<node_internals>/**", "**/node_modules/**"]);
    let fields = [("skipFiles".to_owned(), skipped), ("smartStep".to_owned(), json!(true))].into_iter().collect();
    let (kind, cwd) = (DebugTargetKind::Program(by.script.clone()), by.package.clone());
    let debug_target = DebugTarget { kind, args: [own, args].concat(), cwd, fields, ..given };
    let added = added.iter().map(|option| (*option).to_owned()).collect();
    Ok(TestProgram { language: "javascript", debug_target, added })
}

/// RSpec, or Ruby with a test file. Errors: RSpec is not installed.
fn ruby_target(test: &RubyTest, args: Vec<String>, given: DebugTarget) -> Result<DebugTarget> {
    let file = test.file.strip_prefix(&test.folder).unwrap_or(&test.file).to_string_lossy().into_owned();
    let (mut fields, own): (serde_json::Map<String, Value>, Vec<String>) = match test.runner {
        TestRunner::Rspec => {
            let path = std::env::var_os("PATH");
            if !test.has_gemfile && tether_tools::find_on_path(&["rspec"], path.as_deref()).is_none() {
                let error = Error::new(ErrorKind::MissingTool, "cannot run `rspec`");
                let error =
                    error.because(format!("it is not on PATH, and there is no Gemfile in {}", test.folder.display()));
                return Err(error.hint("`gem install rspec` installs it, or `apt-get install ruby-rspec`"));
            }
            let location = test.selector.as_ref().map_or_else(String::new, |line| format!(":{line}"));
            ([("command".to_owned(), json!("rspec"))].into_iter().collect(), vec![file + &location])
        }
        _ => {
            let fields = [("command".to_owned(), json!("ruby -Ilib -Itest")), ("script".to_owned(), json!(file))];
            let selection = test.selector.iter().flat_map(|pattern| ["-n".to_owned(), pattern.clone()]);
            (fields.into_iter().collect(), selection.collect())
        }
    };
    if test.has_gemfile {
        fields.insert("useBundler".to_owned(), json!(true));
    }
    let (kind, cwd) = (DebugTargetKind::Configuration, test.folder.clone());
    Ok(DebugTarget { kind, args: [own, args].concat(), cwd, fields, ..given })
}

/// JUnit's console launcher with the classes of the project. Errors: there are none, or no launcher.
fn java_target(test: &JavaTest, workspace: &Path, args: Vec<String>, given: DebugTarget) -> Result<DebugTarget> {
    let program = java_program(test, workspace)?;
    let fields = [("classPaths".to_owned(), json!(program.class_paths))].into_iter().collect();
    let kind = DebugTargetKind::Module(CONSOLE_LAUNCHER.to_owned());
    Ok(DebugTarget { kind, args: [program.arguments, args].concat(), cwd: program.folder, fields, ..given })
}
