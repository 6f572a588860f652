//! Lists every npm script of a workspace, so that the user's consent covers each text that a package manager may run.
//!
//! A command is not searched for the scripts that it calls: a tool, a shell line or another script may call any of
//! them. Skipped are `node_modules`, and the folders that the workspace's .gitignore files exclude (a build's output),
//! except those in which a command of the plan runs. Does not depend on the commands themselves.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::json;
use sha2::{Digest, Sha256};
use tether_base::error::Result;
use tether_base::file_owner::has_own;

use crate::config::consent_line::ConsentLine;
use crate::config::npm::package_json::PackageJson;
use crate::config::npm::package_search::{PACKAGE_JSON, PackageSearch};
use crate::config::source_file::{Origin, normalize_path, read_text};

/// Files whose settings choose the shell of scripts or the packages from which they come: name, separator of key and
/// value, keys.
const SETTINGS: &[(&str, char, &[&str])] = &[
    (
        ".npmrc",
        '=',
        &["script-shell", "node-options", "shell", "scripts-prepend-node-path", "prefix", "workspace", "workspaces"],
    ),
    ("pnpm-workspace.yaml", ':', &["scriptShell", "nodeOptions", "shellEmulator"]),
];
/// Files that choose the package manager's own program, or code that it loads first, in more forms than a line shows:
/// consent covers the whole text, by its digest.
const DIGESTED_SETTINGS: &[&str] = &[".yarnrc.yml", ".yarnrc", "bunfig.toml"];
/// A script of a package.json, or a setting that decides how scripts are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpmScript {
    /// `build`; of a package below the workspace's root: `packages/a: build`.
    pub name: String,
    /// The command line, or the setting's value.
    pub text: String,
    /// The file and line of the script.
    pub origin: Origin,
}

impl NpmScript {
    /// The line to which the user consents.
    pub fn consent_line(&self) -> ConsentLine {
        let text = format!("script {}: {}", json!(self.name), json!(self.text));
        ConsentLine { text, origin: Some(self.origin.clone()) }
    }
}

/// Every script and setting of the workspace's packages, package by package, the root first; empty without a
/// package.json. `working_folders`: where commands of the plan run; their packages count wherever they are.
/// Errors: a package.json or a settings file that cannot be read.
pub fn consented_scripts<'p>(
    workspace: &Path,
    working_folders: impl IntoIterator<Item = &'p Path>,
) -> Result<Vec<NpmScript>> {
    let mut search = PackageSearch::run(workspace, |name| name == PACKAGE_JSON || is_settings_file(name));
    for folder in working_folders {
        search.add_parents(workspace, &normalize_path(&workspace.join(folder)));
    }
    let (mut scripts, mut has_package) = (Vec::new(), false);
    for folder in &search.folders {
        scripts.extend(folder_settings(workspace, folder)?);
        let hint = "consent covers its scripts: correct it, or exclude its folder in .gitignore";
        if let Some(package) = PackageJson::read(folder).map_err(|error| error.hint(hint))? {
            has_package = true;
            scripts.extend(package.declared_managers().into_iter().map(|(name, node)| NpmScript {
                name: qualified_name(workspace, folder, name),
                text: node.as_written().to_string(),
                origin: package.origin(workspace, node),
            }));
            scripts.extend(package.scripts().into_iter().map(|(name, node)| NpmScript {
                name: qualified_name(workspace, folder, name),
                text: node.text().unwrap_or_default().to_owned(),
                origin: package.origin(workspace, node),
            }));
        }
    }
    // Yarn and Corepack read these in all folders above, too, whoever may write there.
    for folder in workspace.ancestors().skip(1) {
        let all = DIGESTED_SETTINGS.iter().chain([&PACKAGE_JSON]);
        let foreign = all.filter(|file| folder.join(file).exists() && !has_own(folder, file));
        for file in foreign {
            scripts.extend(digested_setting(workspace, folder, file)?);
        }
    }
    if !has_package {
        scripts.clear();
    }
    let not_searched = |text| NpmScript {
        name: "not searched".to_owned(),
        text,
        origin: Origin::new(workspace, &workspace.join(PACKAGE_JSON), None),
    };
    Ok(scripts.into_iter().chain(search.gaps.into_iter().map(not_searched)).collect())
}

fn folder_settings(workspace: &Path, folder: &Path) -> Result<Vec<NpmScript>> {
    let mut settings = Vec::new();
    for (file, separator, keys) in SETTINGS {
        let path = folder.join(file);
        let text = read_text(&path)?.unwrap_or_default();
        settings.extend(text.lines().enumerate().filter_map(|(index, line)| {
            let (key, value) = line.split_once(*separator)?;
            let key = key.trim().trim_matches(['"', '\'']);
            keys.contains(&key).then(|| NpmScript {
                name: qualified_name(workspace, folder, &format!("{file} {key}")),
                text: value.trim().to_owned(),
                origin: Origin::new(workspace, &path, Some(index + 1)),
            })
        }));
    }
    for file in DIGESTED_SETTINGS {
        settings.extend(digested_setting(workspace, folder, file)?);
    }
    Ok(settings)
}

fn is_settings_file(name: &OsStr) -> bool {
    SETTINGS.iter().map(|(file, ..)| file).chain(DIGESTED_SETTINGS).any(|file| name == *file)
}

/// The lines of a file that name programs, and the SHA-256 of the whole.
fn digested_setting(workspace: &Path, folder: &Path, file: &str) -> Result<Option<NpmScript>> {
    let path = folder.join(file);
    let Some(text) = read_text(&path)? else { return Ok(None) };
    let names_program = |line: &&str| ["yarnPath", "yarn-path", "preload"].iter().any(|key| line.contains(key));
    let named: Vec<&str> = text.lines().map(str::trim).filter(names_program).collect();
    let digest = format!("sha256 {}", hex::encode(Sha256::digest(&text)));
    Ok(Some(NpmScript {
        name: qualified_name(workspace, folder, file),
        text: named.into_iter().chain([digest.as_str()]).collect::<Vec<_>>().join("; "),
        origin: Origin::new(workspace, &path, None),
    }))
}

fn qualified_name(workspace: &Path, folder: &Path, name: &str) -> String {
    match folder.strip_prefix(workspace) {
        Ok(inside) if inside.as_os_str().is_empty() => name.to_owned(),
        inside => format!("{}: {name}", inside.unwrap_or(folder).display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::npm::package_search::{MAX_DEPTH, MAX_PACKAGES};

    fn workspace(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    /// The scripts of these files as `name=text`, for a command that runs in `cwd`.
    #[track_caller]
    fn check(files: &[(&str, &str)], cwd: &str, expect: &[&str]) {
        let folder = workspace(files);
        let scripts = consented_scripts(folder.path(), [Path::new(cwd)]).unwrap_or_else(|error| panic!("{error}"));
        let found: Vec<_> = scripts.iter().map(|it| format!("{}={}", it.name, it.text)).collect();
        assert_eq!(found, expect);
    }

    const BUILD: &str = r#"{"scripts": {"build": "x"}}"#;

    #[test]
    fn every_script_of_every_package_is_listed() {
        let root = r#"{"scripts": {"compile": "cd $WHERE && npm run build", "lint": "l", "bad": 1, "lint": "last"}}"#;
        let files = [
            ("package.json", root),
            ("web view/package.json", BUILD),
            ("packages/deep/a/package.json", BUILD),
            (".github/action/package.json", BUILD),
            ("packages/deep/package.json", "{}"),
            ("node_modules/b/package.json", BUILD),
            ("packages/deep/a/node_modules/b/package.json", BUILD),
        ];
        let own = ["compile=cd $WHERE && npm run build", "lint=last"];
        let others = [".github/action: build=x", "packages/deep/a: build=x", "web view: build=x"];
        check(&files, "", &[&own[..], &others].concat());
        check(&files, "packages/deep", &[&own[..], &others].concat());
        check(&[("src/main.rs", "")], "", &[]);
    }

    #[test]
    fn settings_that_decide_how_scripts_run_are_listed() {
        let npmrc = (".npmrc", "registry=x\n\"script-shell\" = ./sh\n");
        let pnpm = ("pnpm-workspace.yaml", "scriptShell: ./sh\npackages:\n- 'packages/*'\n");
        let expect = [".npmrc script-shell=./sh", "pnpm-workspace.yaml scriptShell=./sh", "build=x"];
        check(&[("package.json", BUILD), npmrc, pnpm], "", &expect);
        check(&[("a/package.json", BUILD), npmrc], "a", &[expect[0], "a: build=x"]);
        check(&[npmrc, pnpm], "", &[]);
    }

    #[test]
    fn what_chooses_a_package_managers_own_program_is_listed() {
        let digest = |text: &str| format!("sha256 {}", hex::encode(Sha256::digest(text)));
        let (yarn, bun) = ("{ enableX: 1,\n yarnPath: ./y.cjs }\n", "[run]\npreload = [\n'./first.ts']\n");
        let declared = r#"{"packageManager": "yarn@9.9.9", "devEngines": {"packageManager": {"name": "bun"}}}"#;
        let files = [("package.json", declared), (".yarnrc.yml", yarn), ("bunfig.toml", bun), (".yarnrc", "x y")];
        let expect = [
            &format!(".yarnrc.yml=yarnPath: ./y.cjs }}; {}", digest(yarn)),
            &format!(".yarnrc={}", digest("x y")),
            &format!("bunfig.toml=preload = [; {}", digest(bun)),
            "packageManager=\"yarn@9.9.9\"",
            "devEngines.packageManager={\"name\":\"bun\"}",
        ];
        check(&files, "", &expect.map(|it: &str| it));
    }

    #[test]
    fn an_ignored_folder_is_skipped_unless_a_command_runs_in_it() {
        let files = [(".gitignore", "out\n"), ("package.json", BUILD), ("out/a/package.json", BUILD)];
        check(&files, "", &["build=x"]);
        check(&files, "out/a", &["build=x", "out/a: build=x"]);
        check(&files, "out/a/none/there", &["build=x", "out/a: build=x"]);
        check(&files, "src/../out/a", &["build=x", "out/a: build=x"]);
    }

    #[test]
    fn the_package_of_a_command_outside_of_the_workspace_is_listed() {
        let folder = workspace(&[("package.json", BUILD), ("ws/main.py", ""), ("above/sub/x", "")]);
        let (ws, cwd) = (folder.path().join("ws"), Path::new("../above/sub"));
        assert_eq!(consented_scripts(&ws, [Path::new("")]).unwrap(), []);
        let scripts = consented_scripts(&ws, [cwd]).unwrap();
        assert_eq!(scripts[0].name, format!("{}: build", folder.path().display()));
    }

    #[test]
    fn each_script_has_its_file_and_line() {
        let folder = workspace(&[("a/package.json", "{\"scripts\": {\n\"b\": \"x\",\n\"c\": \"y\"}}")]);
        let lines: Vec<_> = consented_scripts(folder.path(), []).unwrap().iter().map(NpmScript::consent_line).collect();
        assert_eq!(lines[1].text, r#"script "a: c": "y""#);
        assert_eq!(lines[1].origin.as_ref().unwrap().to_string(), "a/package.json:3");
    }

    #[test]
    fn a_package_that_cannot_be_read_is_an_error_that_names_it() {
        for text in ["{", &" ".repeat((1 << 20) + 1)] {
            let folder = workspace(&[("package.json", BUILD), ("p/broken/package.json", text)]);
            let error = consented_scripts(folder.path(), []).unwrap_err().to_string();
            assert!(error.contains("p/broken/package.json") && error.contains(".gitignore"), "{error}");
        }
    }

    #[test]
    fn a_bound_that_is_reached_is_listed() {
        let deep = format!("{}package.json", "d/".repeat(MAX_DEPTH + 1));
        let expect = format!("not searched=more than {MAX_DEPTH} folders deep");
        check(&[("package.json", BUILD), (&deep, BUILD)], "", &["build=x", &expect]);
        let many: Vec<String> = (0..MAX_PACKAGES + 2).map(|number| format!("p/{number}/package.json")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|path| (path.as_str(), BUILD)).collect();
        let folder = workspace(&many);
        let scripts = consented_scripts(folder.path(), []).unwrap();
        assert_eq!(scripts.last().unwrap().text, format!("more than {MAX_PACKAGES} packages"));
        assert!(scripts.len() > MAX_PACKAGES, "{}", scripts.len());
    }
}
