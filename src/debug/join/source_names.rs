//! The paths of source files as one joined editor is told them: the path that it has sent itself, else the user's name.
//!
//! An editor that is told another path of a file opens the file a second time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::debug::breakpoints::BreakpointSpec;
use crate::debug::file_names::FileNames;
use crate::debug::source_file::canonical_path;

/// The paths that an editor has sent.
#[derive(Debug, Default)]
pub struct EditorPaths {
    /// By the canonical path.
    sent: HashMap<PathBuf, PathBuf>,
}

impl EditorPaths {
    /// Records by which path an editor has named a file.
    pub fn record(&mut self, canonical: &Path, sent: &Path) {
        self.sent.insert(canonical.to_owned(), sent.to_owned());
    }

    /// The path for the editor of the file of a breakpoint.
    pub fn of_breakpoint(&self, spec: &BreakpointSpec, names: &FileNames) -> Option<PathBuf> {
        spec.file().and_then(|file| self.sent.get(file).cloned()).or_else(|| names.breakpoint_file(spec))
    }

    /// Gives each `source` in a message the path for the editor.
    pub fn rename_sources(&self, message: &mut Value, names: &FileNames) {
        match message {
            Value::Array(items) => items.iter_mut().for_each(|item| self.rename_sources(item, names)),
            Value::Object(fields) => {
                if let Some(path) = fields.get_mut("source").and_then(|source| source.get_mut("path")) {
                    self.rename(path, names);
                }
                fields.values_mut().for_each(|value| self.rename_sources(value, names));
            }
            _ => {}
        }
    }

    fn rename(&self, path: &mut Value, names: &FileNames) {
        let Some(given) = path.as_str() else { return };
        let sent = self.sent.get(&canonical_path(Path::new(given))).cloned();
        let name = sent.unwrap_or_else(|| names.absolute_name(given));
        *path = name.to_string_lossy().into();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;
    use crate::debug::breakpoints::{BreakpointConditions, BreakpointStore};

    #[tokio::test]
    async fn an_editor_gets_the_path_that_it_has_sent() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        std::fs::create_dir(folder.join("real")).unwrap();
        symlink("real", folder.join("linked")).unwrap();
        symlink("real", folder.join("editors")).unwrap();
        let real = folder.join("real/app.py");
        std::fs::write(&real, "a\n").unwrap();
        let store = BreakpointStore::in_memory();
        let names = FileNames::of_workspace(&folder, store.clone());
        let mut paths = EditorPaths::default();
        let told = |paths: &EditorPaths| {
            let mut stack = json!({"stackFrames": [{"id": 1, "source": {"name": "app.py", "path": real}}, {"id": 2}]});
            paths.rename_sources(&mut stack, &names);
            PathBuf::from(stack["stackFrames"][0]["source"]["path"].as_str().unwrap())
        };
        assert_eq!(told(&paths), real);
        let by_link = folder.join("linked/app.py");
        let spec = store.set_line(&by_link, 1, BreakpointConditions::default()).await.unwrap();
        assert_eq!((told(&paths), paths.of_breakpoint(&spec, &names)), (by_link.clone(), Some(by_link)));
        let editors = folder.join("editors/app.py");
        paths.record(&real, &editors);
        assert_eq!((told(&paths), paths.of_breakpoint(&spec, &names)), (editors.clone(), Some(editors)));
    }
}
