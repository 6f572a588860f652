//! The package.json of an extension under development, as far as a launch depends on it.
//!
//! Of a file that cannot be read, nothing is known: VS Code says why. Does not depend on the kind of the host.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tether_base::bounded_file::{self, Links};

/// In bytes.
const MAX_MANIFEST: u64 = 4 << 20;
/// The longest path that a note shows; no file system has longer ones.
const MAX_SHOWN: usize = 4096;

fn read_manifest(folder: &Path) -> Value {
    let text = bounded_file::read_text(&folder.join("package.json"), MAX_MANIFEST, Links::Follow).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Whether VS Code runs an extension in a web worker by itself: it has a `browser` script, and no `main` one.
pub fn runs_in_web_worker(folder: &Path) -> bool {
    let manifest = read_manifest(folder);
    manifest["browser"].is_string() && !manifest["main"].is_string()
}

/// A note for each extension whose `main` file does not exist: VS Code registers it, and cannot activate it.
pub fn describe_missing_mains(extensions: &[PathBuf]) -> Vec<String> {
    let missing = extensions.iter().filter_map(|folder| {
        let manifest = read_manifest(folder);
        let main = manifest["main"].as_str().filter(|main| main.len() <= MAX_SHOWN && !is_module(&folder.join(main)))?;
        Some(format!(
            "VS Code cannot activate the extension {:?}: its `main`, {main:?}, does not exist; build it, or correct `main` in \
             its package.json",
            folder.display().to_string()
        ))
    });
    missing.collect()
}

/// Whether Node's `require` finds a module at a path.
fn is_module(path: &Path) -> bool {
    let with_suffix = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        Path::new(&name).is_file()
    };
    let has_entry =
        || ["index.js", "index.json", "index.node", "package.json"].iter().any(|name| path.join(name).is_file());
    path.is_file() || [".js", ".json", ".node"].iter().any(|suffix| with_suffix(suffix)) || has_entry()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_main_that_node_does_not_find_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let notes = |manifest: &str| {
            fs::write(path.join("package.json"), manifest).unwrap();
            describe_missing_mains(std::slice::from_ref(&path))
        };
        fs::create_dir_all(path.join("dist/whole")).unwrap();
        fs::write(path.join("dist/extension.js"), "").unwrap();
        fs::write(path.join("dist/whole/index.js"), "").unwrap();
        for found in ["./dist/extension.js", "dist/extension", "./dist/whole", "dist/whole/"] {
            assert_eq!(notes(&format!(r#"{{"main": "{found}"}}"#)), [""; 0], "{found}");
        }
        for unknown in [r#"{"main": 1}"#, r#"{"browser": "./no.js"}"#, "{", "[]", ""] {
            assert_eq!(notes(unknown), [""; 0], "{unknown}");
        }
        for missing in ["./dist/main.js", "dist", "out/extension"] {
            let notes = notes(&format!(r#"{{"main": "{missing}"}}"#));
            assert!(notes.len() == 1 && notes[0].contains(&format!("{missing:?}, does not exist")), "{notes:?}");
        }
    }

    #[test]
    fn an_extension_with_browser_code_alone_runs_in_a_web_worker() {
        let folder = tempfile::tempdir().unwrap();
        for (manifest, in_web_worker) in
            [(r#"{"browser": "w.js"}"#, true), (r#"{"browser": "w.js", "main": "m.js"}"#, false), ("{}", false)]
        {
            fs::write(folder.path().join("package.json"), manifest).unwrap();
            assert_eq!(runs_in_web_worker(folder.path()), in_web_worker, "{manifest}");
        }
    }
}
