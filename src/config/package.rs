//! package.json: whether it is a VS Code extension, its scripts, who runs them, and which texts that runs.
//!
//! Must not know tasks or windows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::file::{self, Origin};
use super::jsonc::{Document, Node};
use super::plan::{Ends, Script, Step};
use crate::error::Result;

/// Programs that run scripts of a package.json.
const RUNNERS: &[&str] =
    &["npm", "pnpm", "yarn", "bun", "npm-run-all", "npm-run-all2", "run-s", "run-p", "wireit", "nx"];
/// Words with which those run scripts that nobody names.
const INSTALLS: &[&str] = &["install", "i", "ci", "add", "rebuild", "link"];
const LIFECYCLE: &[&str] = &["preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare"];
/// The settings of npm by which a repository could have its scripts run by something else.
const NPMRC: &[&str] = &["script-shell", "node-options", "shell", "scripts-prepend-node-path"];

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

    fn scripts(&self) -> &[(String, Node)] {
        self.document.root.get("scripts").map(Node::members).unwrap_or_default()
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
            cwd: self.folder.clone(),
            env: BTreeMap::new(),
            ends: Ends::ByExit,
            origin,
        })
    }
}

/// The texts of package.json that a command would run, when it is one of a package manager: a changed script is a
/// changed command. What such a text calls by name is followed.
pub fn scripts_of(workspace: &Path, argv: &[String], cwd: &Path) -> Result<Vec<Script>> {
    let words: Vec<&str> = argv.iter().flat_map(|word| words(word)).collect();
    let is_runner = |word: &&str| RUNNERS.contains(&word.rsplit('/').next().unwrap_or(word));
    if !words.iter().any(is_runner) {
        return Ok(Vec::new());
    }
    let mut found = npm_settings(workspace, cwd)?;
    let Some(package) = Package::read(cwd)? else { return Ok(found) };
    for (name, node) in package.called(&words) {
        let text = node.text().unwrap_or_default().to_owned();
        found.push(Script { name: name.to_owned(), text, origin: package.origin(workspace, node) });
    }
    Ok(found)
}

impl Package {
    /// The scripts that these words call, those that run before and after them, and those that their texts call.
    fn called(&self, words: &[&str]) -> Vec<(&str, &Node)> {
        let mut open: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        if words.iter().any(|word| INSTALLS.contains(word)) {
            open.extend(LIFECYCLE.iter().map(|name| (*name).to_owned()));
        }
        let mut called: Vec<(&str, &Node)> = Vec::new();
        while let Some(word) = open.pop() {
            for (name, node) in self.scripts() {
                // `watch:*` is a pattern of npm-run-all: whichever it fits, any may be meant.
                let meant = name == &word || word.contains('*') || around(name, &word);
                if meant && node.text().is_some() && !called.iter().any(|(known, _)| known == name) {
                    called.push((name, node));
                    open.extend(self::words(node.text().unwrap_or_default()).map(str::to_owned));
                }
            }
        }
        called.sort_by_key(|(_, node)| node.line);
        called
    }
}

fn around(name: &str, script: &str) -> bool {
    name.strip_prefix("pre").or_else(|| name.strip_prefix("post")) == Some(script)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "\"'`;&|()".contains(c)).filter(|word| !word.is_empty())
}

/// The lines of the folder's own .npmrc that decide how scripts are run.
fn npm_settings(workspace: &Path, folder: &Path) -> Result<Vec<Script>> {
    let path = folder.join(".npmrc");
    let Some(text) = file::read(&path)? else { return Ok(Vec::new()) };
    let lines = text.lines().enumerate().filter_map(|(index, line)| {
        let (name, value) = line.split_once('=')?;
        let name = name.trim();
        NPMRC.contains(&name).then(|| Script {
            name: format!(".npmrc {name}"),
            text: value.trim().to_owned(),
            origin: Origin::new(workspace, &path, Some(index + 1)),
        })
    });
    Ok(lines.collect())
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

    #[test]
    fn every_text_that_a_script_may_run_is_found() {
        let json = r#"{"scripts": {
            "compile": "npm run check && node build.js", "precompile": "echo first", "check": "tsc --noEmit",
            "watch": "npm-run-all -p 'watch:*'", "watch:tsc": "tsc -w", "lint": "eslint", "prepare": "husky", "bad": 1 }}"#;
        let folder = folder(&[("package.json", json), (".npmrc", "registry=x\nscript-shell = ./sh\n")]);
        let check = |argv: &[&str], expect: &[&str]| {
            let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
            let found = scripts_of(folder.path(), &argv, folder.path()).unwrap();
            let names: Vec<_> = found.iter().map(|script| script.name.as_str()).collect();
            assert_eq!(names, expect, "{argv:?}");
        };
        check(&["npm", "run", "lint"], &[".npmrc script-shell", "lint"]);
        check(&["npm", "run", "compile"], &[".npmrc script-shell", "compile", "precompile", "check"]);
        check(&["/bin/sh", "-c", "cd . && npm run check;"], &[".npmrc script-shell", "check"]);
        check(&["npm", "ci"], &[".npmrc script-shell", "prepare"]);
        check(&["node", "lint"], &[]);
        let argv = ["npm", "run", "watch"].map(str::to_owned);
        assert_eq!(scripts_of(folder.path(), &argv, folder.path()).unwrap().len(), 8);
    }
}
