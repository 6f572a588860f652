//! One package.json: the version of VS Code that it extends, its scripts, and the package manager that runs them.
//!
//! Does not depend on tasks or windows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tether_base::error::Result;

use crate::config::build_plan::BuildStep;
use crate::config::jsonc::{JsonDocument, JsonNode};
use crate::config::source_file::Origin;

/// The package.json of a folder.
#[derive(Debug)]
pub struct PackageJson {
    folder: PathBuf,
    document: JsonDocument,
}

impl PackageJson {
    /// `None` when there is no such file. Errors name file, line and column.
    pub fn read(folder: &Path) -> Result<Option<PackageJson>> {
        let document = JsonDocument::read(&folder.join("package.json"))?;
        Ok(document.map(|document| PackageJson { folder: folder.to_owned(), document }))
    }

    /// `engines.vscode`: the version of VS Code that it is an extension for.
    pub fn vscode_engine(&self) -> Option<&JsonNode> {
        self.document.root.get("engines")?.get("vscode").filter(|node| node.text().is_some())
    }

    /// `main`: the file that is loaded first.
    pub fn main(&self) -> Option<&JsonNode> {
        self.document.root.get("main").filter(|node| node.text().is_some())
    }

    /// The version of a package that it depends on, to run or to develop.
    pub fn dependency(&self, name: &str) -> Option<&JsonNode> {
        ["devDependencies", "dependencies"].iter().find_map(|kind| self.document.root.get(kind)?.get(name))
    }

    /// The file and line of a value.
    pub fn origin(&self, workspace: &Path, node: &JsonNode) -> Origin {
        self.document.origin(workspace, node)
    }

    /// Names and texts in the order of the file; of several scripts of one name, the last.
    pub fn scripts(&self) -> Vec<(&str, &JsonNode)> {
        let members = self.document.root.get("scripts").map(JsonNode::members).unwrap_or_default();
        let last: BTreeMap<&str, usize> =
            members.iter().enumerate().map(|(at, (name, _))| (name.as_str(), at)).collect();
        let kept =
            members.iter().enumerate().filter(|(at, (name, node))| last[name.as_str()] == *at && node.text().is_some());
        kept.map(|(_, (name, node))| (name.as_str(), node)).collect()
    }

    /// The keys with which a package chooses the program and version of its package manager, and their values.
    pub fn declared_managers(&self) -> Vec<(&'static str, &JsonNode)> {
        let root = &self.document.root;
        let engines = root.get("devEngines").and_then(|engines| engines.get("packageManager"));
        let keys = [("packageManager", root.get("packageManager")), ("devEngines.packageManager", engines)];
        keys.into_iter().filter_map(|(name, node)| Some((name, node?))).collect()
    }

    /// The text of a script.
    pub fn script(&self, name: &str) -> Option<&JsonNode> {
        self.document.root.get("scripts")?.get(name).filter(|node| node.text().is_some())
    }

    /// The package manager: `packageManager`, else the one whose lock file exists, else npm.
    fn manager(&self) -> &'static str {
        let declared = self.document.root.text_of("packageManager").unwrap_or_default();
        let named = ["pnpm", "yarn", "bun", "npm"].into_iter().find(|name| declared.split('@').next() == Some(name));
        let locks = [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"), ("bun.lock", "bun")];
        let locked = || locks.iter().find(|(file, _)| self.folder.join(file).exists()).map(|(_, name)| *name);
        named.or_else(locked).unwrap_or("npm")
    }

    /// The step that runs an existing script.
    pub fn script_step(&self, script: &str, origin: Origin) -> BuildStep {
        let argv = vec![self.manager().to_owned(), "run".to_owned(), script.to_owned()];
        BuildStep::of_command(argv, &self.folder, origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn the_package_manager_is_the_one_that_the_project_uses() {
        let check = |json: &str, lock: &str, expect: &str| {
            let folder = folder(&[("package.json", json), (lock, "")]);
            assert_eq!(PackageJson::read(folder.path()).unwrap().unwrap().manager(), expect, "{json} {lock}");
        };
        check("{}", "package-lock.json", "npm");
        check("{}", "yarn.lock", "yarn");
        check("{}", "pnpm-lock.yaml", "pnpm");
        check("{\"packageManager\": \"pnpm@9.1.0\"}", "yarn.lock", "pnpm");
    }
}
