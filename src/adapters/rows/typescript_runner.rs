//! What runs a TypeScript file of a project that is named without a configuration: the project's own runner, else Node itself.
//!
//! Reads folders, and runs nothing.

use std::path::{Path, PathBuf};

use tether_node::find_local_program;

use crate::adapters::{DebugTarget, DebugTargetKind};

/// The runners of `node_modules/.bin`, in the order of preference.
const RUNNERS: [&str; 2] = ["tsx", "ts-node"];
const EXTENSIONS: [&str; 4] = ["ts", "mts", "cts", "tsx"];

/// What runs a TypeScript file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TypescriptRunner {
    /// None: Node itself, which strips the types.
    pub program: Option<PathBuf>,
    /// What runs it, for readers.
    pub note: String,
}

/// The runner of a target. `None`: it is no TypeScript file, or its configuration says what runs it.
pub(super) fn find_typescript_runner(target: &DebugTarget) -> Option<TypescriptRunner> {
    let DebugTargetKind::Program(file) = &target.kind else { return None };
    let extension = file.extension()?.to_str()?;
    let is_configured = ["runtimeExecutable", "runtimeArgs"].iter().any(|key| target.fields.contains_key(*key));
    if is_configured || !EXTENSIONS.contains(&extension) {
        return None;
    }
    let folder = file.parent()?;
    let installed = |name: &&'static str| Some((*name, find_local_program(name, folder, &target.cwd)?));
    Some(match RUNNERS.iter().find_map(installed) {
        Some((name, program)) => {
            let note = format!("{name} runs it: {}", shown(&program, &target.cwd));
            TypescriptRunner { program: Some(program), note }
        }
        None => {
            let note =
                "Node itself runs it, and strips its types (from 22.18 on): the project has neither tsx nor ts-node";
            TypescriptRunner { program: None, note: note.to_owned() }
        }
    })
}

/// Relative to the folder that the program runs in, where it is below that.
fn shown(program: &Path, cwd: &Path) -> String {
    program.strip_prefix(cwd).unwrap_or(program).display().to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_installed_runner_is_taken_in_the_order_of_preference() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let target = |file: &str| DebugTarget {
            kind: DebugTargetKind::Program(root.join(file)),
            cwd: root.clone(),
            ..DebugTarget::default()
        };
        let find = |file: &str| find_typescript_runner(&target(file)).map(|it| (it.program, it.note));
        let (program, note) = find("src/server.ts").unwrap();
        assert!(program.is_none() && note.contains("strips its types"), "{note}");
        std::fs::create_dir_all(root.join("node_modules/.bin")).unwrap();
        for name in ["ts-node", "tsx"] {
            let program = root.join("node_modules/.bin").join(name);
            std::fs::write(&program, "").unwrap();
            let expect = format!("{name} runs it: node_modules/.bin/{name}");
            assert_eq!(find("src/server.ts"), Some((Some(program), expect)));
        }
        assert_eq!(find("server.js"), None);
        let fields = json!({"runtimeArgs": ["--import", "x"]}).as_object().unwrap().clone();
        assert_eq!(find_typescript_runner(&DebugTarget { fields, ..target("server.ts") }), None);
        let configured = DebugTarget { kind: DebugTargetKind::Configuration, ..target("server.ts") };
        assert_eq!(find_typescript_runner(&configured), None);
    }
}
