//! Which texts of package.json a command would run: the scripts that it calls, what those call, and so on, also in other
//! packages of the workspace. A changed script is a changed command.
//!
//! Sees too many scripts rather than too few: `commands` reads no shell's grammar, only words. Must not know what a command is
//! for.

mod commands;
mod packages;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use self::commands::{Call, Command};
use self::packages::Found;
use super::file::{self, Origin, normalize_path};
use super::package::PackageJson;
use super::plan::NpmScript;
use crate::error::Result;

/// The files in which a repository could say that its scripts are run by something else, or elsewhere; how they write it,
/// and the names of such settings.
const SETTINGS: &[(&str, char, &[&str])] = &[
    (
        ".npmrc",
        '=',
        &["script-shell", "node-options", "shell", "scripts-prepend-node-path", "prefix", "workspace", "workspaces"],
    ),
    ("pnpm-workspace.yaml", ':', &["scriptShell", "nodeOptions", "shellEmulator"]),
];
/// More packages, and more folders that one text goes to, are not looked at.
const MOST_PACKAGES: usize = 200;
const MOST_FOLDERS: usize = 50;
/// How often a word is compared, of all texts together and in each package anew.
const MOST_WORK: usize = 2_000_000;

/// The texts of package.json that a command would run, when it is one of a package manager. Those of the package in which
/// it runs have their own names, those of others are told as `folder: name`.
pub fn scripts_of(workspace: &Path, argv: &[String], cwd: &Path) -> Result<Vec<NpmScript>> {
    let commands = commands::of_words(argv);
    if !commands.iter().any(Command::runs_scripts) {
        return Ok(Vec::new());
    }
    let folder = normalize_path(&workspace.join(cwd));
    let mut search = Search::new(workspace, &folder);
    search.follow(&commands, &folder)?;
    while let Some((folder, text)) = search.open.pop() {
        search.follow(&commands::of_text(&text), &folder)?;
    }
    Ok(search.told())
}

struct Search<'a> {
    workspace: &'a Path,
    /// The package in which the command runs.
    home: PathBuf,
    packages: BTreeMap<PathBuf, Visited>,
    settings: BTreeMap<PathBuf, Vec<NpmScript>>,
    /// Of the folders that were asked for them.
    members: BTreeMap<PathBuf, Option<Found>>,
    near: Option<Found>,
    /// Texts to be followed, and where they run.
    open: Vec<(PathBuf, String)>,
    work: usize,
    /// There is more than was looked at.
    more: bool,
}

/// A package that may be meant.
struct Visited {
    package: Result<Option<PackageJson>>,
    /// Its scripts by their names.
    texts: BTreeMap<String, String>,
    called: BTreeSet<String>,
}

impl Visited {
    fn of(folder: &Path) -> Visited {
        let package = PackageJson::read(folder);
        let scripts = package.iter().flatten().flat_map(PackageJson::scripts);
        let texts = scripts.map(|(name, node)| (name.to_owned(), node.text().unwrap_or_default().to_owned())).collect();
        Visited { package, texts, called: BTreeSet::new() }
    }
}

impl<'a> Search<'a> {
    fn new(workspace: &'a Path, folder: &Path) -> Search<'a> {
        let home = packages::nearest(workspace, folder).unwrap_or_else(|| folder.to_owned());
        Search {
            workspace,
            home,
            packages: BTreeMap::new(),
            settings: BTreeMap::new(),
            members: BTreeMap::new(),
            near: None,
            open: Vec::new(),
            work: 0,
            more: false,
        }
    }

    /// What these commands call when they run in a folder.
    fn follow(&mut self, commands: &[Command], folder: &Path) -> Result<()> {
        let calls: Vec<Call<'_>> = commands.iter().flat_map(Command::calls).collect();
        for place in self.places(commands, folder)? {
            match self.packages.contains_key(&place) || self.packages.len() < MOST_PACKAGES {
                true => self.call(&place, &calls)?,
                false => self.more = true,
            }
        }
        Ok(())
    }

    /// The packages whose scripts the commands may mean.
    fn places(&mut self, commands: &[Command], folder: &Path) -> Result<BTreeSet<PathBuf>> {
        let mut folders = vec![folder.to_owned()];
        // Where a variable decides, it may be anywhere.
        let mut anywhere = folder.to_string_lossy().contains("${");
        for target in commands.iter().flat_map(Command::folders) {
            anywhere |= target.contains(['$', '*']);
            self.enter(target, &mut folders);
        }
        let mut places: BTreeSet<PathBuf> =
            folders.iter().filter_map(|folder| packages::nearest(self.workspace, folder)).collect();
        if commands.iter().any(|command| command.is_for_members() || command.installs()) {
            let listed = self.members(&folders, &mut places);
            anywhere |= !listed && commands.iter().any(Command::finds_members);
        }
        if anywhere {
            let near = self.near.get_or_insert_with(|| packages::near(self.workspace));
            self.more |= near.more;
            places.extend(near.folders.iter().cloned());
        }
        for folder in folders.iter().chain(&places) {
            self.read_settings(folder)?;
        }
        Ok(places)
    }

    /// Adds the members of the packages in which these folders lie; whether one of those lists any.
    fn members(&mut self, folders: &[PathBuf], places: &mut BTreeSet<PathBuf>) -> bool {
        let roots = folders.iter().flat_map(|folder| packages::upwards(self.workspace, folder));
        let mut listed = false;
        for root in roots.collect::<BTreeSet<_>>() {
            let members =
                self.members.entry(root.to_owned()).or_insert_with(|| packages::members(self.workspace, root));
            let Some(members) = members else { continue };
            (listed, self.more) = (true, self.more || members.more);
            places.extend(members.folders.iter().cloned());
        }
        listed
    }

    /// The folders to which this leads from those where one may be already.
    fn enter(&mut self, target: &str, folders: &mut Vec<PathBuf>) {
        for base in folders.clone() {
            let folder = normalize_path(&base.join(target));
            if folders.contains(&folder) || !packages::is_inside(self.workspace, &folder) {
                continue;
            }
            match folders.len() < MOST_FOLDERS {
                true => folders.push(folder),
                false => self.more = true,
            }
        }
    }

    fn call(&mut self, place: &Path, calls: &[Call<'_>]) -> Result<()> {
        let visited = self.packages.entry(place.to_owned()).or_insert_with(|| Visited::of(place));
        // What is wrong with the command's own package is wrong with the command.
        if visited.package.is_err() && place == self.home {
            return PackageJson::read(place).map(drop);
        }
        for call in calls {
            self.work += if let Call::Beginning(_) = call { visited.texts.len() } else { 1 };
            if self.work > MOST_WORK {
                self.more = true;
                break;
            }
            for (name, text) in meant(call, &visited.texts) {
                if visited.called.insert(name.to_owned()) {
                    self.open.push((place.to_owned(), text.to_owned()));
                }
            }
        }
        Ok(())
    }

    /// The settings of the folder, and of those above it.
    fn read_settings(&mut self, folder: &Path) -> Result<()> {
        for folder in packages::upwards(self.workspace, folder) {
            for (name, separator, keys) in SETTINGS {
                let path = folder.join(name);
                if self.settings.contains_key(&path) {
                    continue;
                }
                let text = file::read_text(&path)?.unwrap_or_default();
                let lines = text.lines().enumerate().filter_map(|(index, line)| {
                    let (key, value) = line.split_once(*separator)?;
                    let key = key.trim().trim_matches(['"', '\'']);
                    keys.contains(&key).then(|| NpmScript {
                        name: self.named(folder, &format!("{name} {key}")),
                        text: value.trim().to_owned(),
                        origin: Origin::new(self.workspace, &path, Some(index + 1)),
                    })
                });
                let lines = lines.collect();
                self.settings.insert(path, lines);
            }
        }
        Ok(())
    }

    fn named(&self, folder: &Path, name: &str) -> String {
        if folder == self.home {
            return name.to_owned();
        }
        match folder.strip_prefix(self.workspace) {
            Ok(inside) if inside.as_os_str().is_empty() => format!(".: {name}"),
            inside => format!("{}: {name}", inside.unwrap_or(folder).display()),
        }
    }

    /// Everything that was found, the command's own package first.
    fn told(self) -> Vec<NpmScript> {
        let own = self.packages.iter().filter(|(folder, _)| **folder == self.home);
        let others = self.packages.iter().filter(|(folder, _)| **folder != self.home);
        let scripts = own.chain(others).flat_map(|(folder, visited)| self.of_package(folder, visited));
        let more = self.more.then(|| NpmScript {
            name: "…".to_owned(),
            text: "there is more than was looked at".to_owned(),
            origin: Origin::new(self.workspace, &self.home.join("package.json"), None),
        });
        self.settings.values().flatten().cloned().chain(scripts).chain(more).collect()
    }

    fn of_package(&self, folder: &Path, visited: &Visited) -> Vec<NpmScript> {
        match &visited.package {
            Ok(None) => Vec::new(),
            Ok(Some(package)) => {
                let called = package.scripts().into_iter().filter(|(name, _)| visited.called.contains(*name));
                let told = called.map(|(name, node)| NpmScript {
                    name: self.named(folder, name),
                    text: node.text().unwrap_or_default().to_owned(),
                    origin: package.origin(self.workspace, node),
                });
                told.collect()
            }
            Err(error) => vec![NpmScript {
                name: self.named(folder, "package.json"),
                text: error.to_string(),
                origin: Origin::new(self.workspace, &folder.join("package.json"), None),
            }],
        }
    }
}

/// The scripts that a call means, with those that run before and after them.
fn meant<'s>(call: &Call<'_>, scripts: &'s BTreeMap<String, String>) -> Vec<(&'s str, &'s str)> {
    let names: Vec<&str> = match call {
        Call::Named(name) => vec![*name],
        Call::Beginning(start) => scripts.keys().map(String::as_str).filter(|name| name.starts_with(start)).collect(),
    };
    let around = |name: &&str| [(*name).to_owned(), format!("pre{name}"), format!("post{name}")];
    let known = |name: String| scripts.get_key_value(&name).map(|(name, text)| (name.as_str(), text.as_str()));
    names.iter().flat_map(around).filter_map(known).collect()
}

#[cfg(test)]
mod tests;
