//! Which processes of a program run what an adapter of the table debugs, and which of its children an adapter debugs.
//!
//! Plain data. Does not depend on how processes are found.

use std::ffi::OsString;
use std::path::{Component, Path};

use tether_node::denied_inspector;
use tether_process::is_runtime;

use super::adapter::Adapter;
use super::rows::ADAPTERS;

/// Which children of a program its adapter debugs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebuggedChildren {
    /// Those with its runtime that have inherited its environment.
    WithEnvironment,
    /// Those with its runtime that the program starts itself, and not through another program.
    StartedByProgram,
    /// Those that it forks, until they run another program. Of the others: why not, for readers.
    ForkedOnly(&'static str),
    /// None: why, for readers.
    None(&'static str),
}

/// The folders of installed packages: the programs in them are not the user's.
const PACKAGE_FOLDERS: [&str; 3] = ["node_modules", "site-packages", "dist-packages"];

/// What a process runs.
#[derive(Clone, Copy)]
pub enum ProcessRuntime {
    /// The runtime of an adapter, such as an interpreter: the first adapter that debugs it.
    Runtime(&'static Adapter),
    /// A compiled program of the workspace.
    Compiled,
}

impl ProcessRuntime {
    /// Of an executable file. `None`: no adapter debugs it, or it is not the user's own.
    pub fn of_program(program: &Path, workspace: &Path) -> Option<ProcessRuntime> {
        if let Some(found) = ProcessRuntime::of_interpreter(program) {
            return Some(found);
        }
        let inside = program.strip_prefix(workspace).ok()?;
        let is_package = |part: Component<'_>| {
            let name = part.as_os_str().to_string_lossy();
            name.starts_with('.') || PACKAGE_FOLDERS.contains(&&*name)
        };
        (!inside.components().any(is_package)).then_some(ProcessRuntime::Compiled)
    }

    /// Of an executable file that runs programs of others.
    pub fn of_interpreter(program: &Path) -> Option<ProcessRuntime> {
        ADAPTERS.iter().find(|row| is_runtime(program, row.runtimes)).map(ProcessRuntime::Runtime)
    }

    /// Whether this adapter debugs programs with that runtime.
    pub fn is_of(self, adapter: &Adapter) -> bool {
        match self {
            ProcessRuntime::Runtime(row) => row.runtimes == adapter.runtimes,
            ProcessRuntime::Compiled => adapter.runtimes.is_empty(),
        }
    }

    /// Why the options of a process deny it a debugger, for readers: `words` is its command line.
    pub fn denied_debugger(self, words: &[OsString]) -> Option<&'static str> {
        let ProcessRuntime::Runtime(row) = self else { return None };
        let words = words.iter().filter_map(|word| word.to_str());
        row.runtimes.contains(&"node").then(|| denied_inspector(words, "")).flatten()
    }

    /// Its language, for readers.
    pub fn language(self) -> &'static str {
        match self {
            ProcessRuntime::Runtime(row) => row.languages.first().copied().unwrap_or_default(),
            ProcessRuntime::Compiled => "compiled programs",
        }
    }

    /// Whether a file with this extension, in lower case, may be of such a program. One that is of no adapter may be of any.
    pub fn may_run(self, extension: &str) -> bool {
        let has = |row: &&Adapter| row.extensions.contains(&extension);
        ADAPTERS.iter().any(|row| has(&row) && self.is_of(row)) || !ADAPTERS.iter().any(|row| has(&row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_known_by_its_name_and_a_compiled_program_by_its_place() {
        let check = |program: &str, expect: Option<&str>| {
            let found = ProcessRuntime::of_program(Path::new(program), Path::new("/w"));
            assert_eq!(found.map(ProcessRuntime::language), expect, "{program}");
        };
        check("/usr/bin/python3.11", Some("python"));
        check("/w/.venv/bin/python", Some("python"));
        check("/usr/bin/node", Some("javascript"));
        check("/usr/lib/jvm/java-17/bin/java", Some("java"));
        check("/usr/bin/ruby3.1", Some("ruby"));
        check("/w/target/debug/app", Some("compiled programs"));
        check("/w/node_modules/esbuild/bin/esbuild", None);
        check("/w/.cache/tool", None);
        check("/usr/bin/git", None);
    }

    #[test]
    fn a_file_may_be_of_a_process_with_its_runtime() {
        let of = |program: &str| ProcessRuntime::of_program(Path::new(program), Path::new("/w")).unwrap();
        assert!(of("/usr/bin/node").may_run("ts") && of("/usr/bin/node").may_run("svelte"));
        assert!(!of("/usr/bin/node").may_run("py") && of("/w/app").may_run("go") && of("/w/app").may_run("rs"));
    }
}
