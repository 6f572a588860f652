//! package.json: whether it is a VS Code extension, its scripts, and who runs them.
//!
//! Must not know tasks or windows, nor which other scripts a script runs (`scripts` does).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::file::Origin;
use super::jsonc::{Document, Node};
use super::plan::{Ends, Step};
use super::scripts::scripts_of;
use crate::error::Result;

/// A folder's package.json.
#[derive(Debug)]
pub struct Package {
    folder: PathBuf,
    document: Document,
}

impl Package {
    /// `None` when there is none.
    pub fn read(folder: &Path) -> Result<Option<Package>> {
        let document = Document::read(&folder.join("package.json"))?;
        Ok(document.map(|document| Package { folder: folder.to_owned(), document }))
    }

    /// The version of VS Code that it is an extension for.
    pub fn vscode(&self) -> Option<&Node> {
        self.document.root.get("engines")?.get("vscode").filter(|node| node.text().is_some())
    }

    pub fn main(&self) -> Option<&Node> {
        self.document.root.get("main").filter(|node| node.text().is_some())
    }

    pub fn origin(&self, workspace: &Path, node: &Node) -> Origin {
        self.document.origin(workspace, node)
    }

    /// With their names, in their order; of several of one name, the last is run.
    pub fn scripts(&self) -> Vec<(&str, &Node)> {
        let members = self.document.root.get("scripts").map(Node::members).unwrap_or_default();
        let last: BTreeMap<&str, usize> =
            members.iter().enumerate().map(|(at, (name, _))| (name.as_str(), at)).collect();
        let kept =
            members.iter().enumerate().filter(|(at, (name, node))| last[name.as_str()] == *at && node.text().is_some());
        kept.map(|(_, (name, node))| (name.as_str(), node)).collect()
    }

    pub fn script(&self, name: &str) -> Option<&Node> {
        self.document.root.get("scripts")?.get(name).filter(|node| node.text().is_some())
    }

    /// Who runs its scripts: what it says itself, else whose lock file lies there, else npm.
    fn manager(&self) -> &'static str {
        let said = self.document.root.text_of("packageManager").unwrap_or_default();
        let named = ["pnpm", "yarn", "bun", "npm"].into_iter().find(|name| said.split('@').next() == Some(name));
        let locks = [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"), ("bun.lock", "bun")];
        let locked = || locks.iter().find(|(file, _)| self.folder.join(file).exists()).map(|(_, name)| *name);
        named.or_else(locked).unwrap_or("npm")
    }

    /// The step that runs a script; the caller knows that it is there.
    pub fn step(&self, workspace: &Path, script: &str, origin: Origin) -> Result<Step> {
        let argv = vec![self.manager().to_owned(), "run".to_owned(), script.to_owned()];
        Ok(Step {
            label: argv.join(" "),
            scripts: scripts_of(workspace, &argv, &self.folder)?,
            argv,
            line: None,
            cwd: self.folder.clone(),
            env: BTreeMap::new(),
            ends: Ends::ByExit,
            origin,
        })
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
            assert_eq!(Package::read(folder.path()).unwrap().unwrap().manager(), expect, "{json} {lock}");
        };
        check("{}", "package-lock.json", "npm");
        check("{}", "yarn.lock", "yarn");
        check("{}", "pnpm-lock.yaml", "pnpm");
        check("{\"packageManager\": \"pnpm@9.1.0\"}", "yarn.lock", "pnpm");
    }
}
