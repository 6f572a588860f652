//! Which scripts a command would run, as tables.

use super::*;

const SETTING: &str = ".npmrc script-shell";

/// A workspace with these files.
fn workspace(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn scripts(workspace: &Path, line: &str, cwd: &str) -> Vec<NpmScript> {
    let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
    scripts_of(workspace, &argv, Path::new(cwd)).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn check(workspace: &Path, line: &str, cwd: &str, expect: &[&str]) {
    let found = scripts(workspace, line, cwd);
    let names: Vec<_> = found.iter().map(|script| script.name.as_str()).collect();
    assert_eq!(names, expect, "{line} in {cwd:?}");
}

#[test]
fn every_text_that_a_script_may_run_is_found() {
    let json = r#"{"scripts": {
        "compile": "npm run check && node build.js", "precompile": "echo first", "check": "tsc --noEmit",
        "watch": "npm-run-all -p 'watch:*'", "watch:tsc": "tsc -w", "prewatch:tsc": "echo", "lint": "eslint",
        "prepare": "husky", "setup": "npm ci", "bad": 1, "twice": "echo one", "twice": "echo two" }}"#;
    let folder = workspace(&[("package.json", json), (".npmrc", "registry=x\n\"script-shell\" = ./sh\n")]);
    let check = |line: &str, expect: &[&str]| check(folder.path(), line, "", &[&[SETTING], expect].concat());
    check("npm run lint", &["lint"]);
    check("npm run compile", &["compile", "precompile", "check"]);
    check("npm ci", &["prepare"]);
    check("npm run setup", &["prepare", "setup"]);
    check("npm run watch", &["watch", "watch:tsc", "prewatch:tsc"]);
    check("concurrently npm:watch:* yarn:lint", &["watch:tsc", "prewatch:tsc", "lint"]);
    check("conc npm:compile", &["compile", "precompile", "check"]);
    check("node --run lint", &["lint"]);
    assert_eq!(scripts(folder.path(), "node lint", ""), []);
    let shell = ["/bin/sh", "-c", "cd . && npm run check;"].map(str::to_owned);
    assert_eq!(scripts_of(folder.path(), &shell, folder.path()).unwrap().len(), 2);
    assert_eq!(scripts(folder.path(), "npm run twice", "")[1].text, "echo two", "the last one is run");
}

#[test]
fn the_nearest_package_above_is_meant_and_none_above_the_workspace() {
    let folder = workspace(&[
        ("package.json", r#"{"scripts": {"x": "above"}}"#),
        ("ws/package.json", r#"{"scripts": {"x": "root", "y": "npm run z -C a/b"}}"#),
        ("ws/.npmrc", "script-shell=./sh"),
        ("ws/a/package.json", r#"{"scripts": {"x": "own"}}"#),
        ("ws/a/b/c.txt", ""),
        ("bare/src/c.txt", ""),
    ]);
    let ws = folder.path().join("ws");
    let text = |line: &str, cwd: &str| scripts(&ws, line, cwd).pop().unwrap().text;
    assert_eq!((text("npm run x", ""), text("npm run x", "a/b")), ("root".to_owned(), "own".to_owned()));
    check(&ws, "npm run x", "a/b", &[".: .npmrc script-shell", "x"]);
    check(&ws, "npm run x", "none/there", &[SETTING, "x"]);
    check(&folder.path().join("bare"), "npm run x", "src", &[]);
}

#[test]
fn scripts_of_other_folders_are_told_with_their_folder() {
    let folder = workspace(&[
        (
            "package.json",
            r#"{"scripts": {
                "compile": "tsc && cd webview-ui && npm run build", "enter": "sh -c 'cd \"web view\" && npm run build'",
                "prefix": "npm --prefix ./webview-ui run build", "dir": "pnpm -C webview-ui build",
                "cwd": "yarn --cwd=webview-ui build", "chain": "cd webview-ui && cd inner && npm run build",
                "variable": "cd $WHERE && npm run build", "out": "cd link && npm run build" }}"#,
        ),
        (
            "webview-ui/package.json",
            "{\"scripts\": {\n\"build\": \"npm run css\",\n\"prebuild\": \"x\", \"css\": \"sass\"}}",
        ),
        ("webview-ui/inner/package.json", r#"{"scripts": {"build": "y"}}"#),
        ("web view/package.json", r#"{"scripts": {"build": "z"}}"#),
        ("far/a/b/c/package.json", r#"{"scripts": {"build": "far"}}"#),
    ]);
    let outside = workspace(&[("package.json", r#"{"scripts": {"build": "outside"}}"#)]);
    std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
    let ui = ["webview-ui: build", "webview-ui: prebuild", "webview-ui: css"];
    let check = |name: &str, expect: &[&str]| {
        check(folder.path(), &format!("npm run {name}"), "", &[&[name], expect].concat());
    };
    check("compile", &ui);
    check("enter", &["web view: build"]);
    check("prefix", &ui);
    check("dir", &ui);
    check("cwd", &ui);
    check("chain", &[&ui[..], &["webview-ui/inner: build"]].concat());
    check("variable", &[&["web view: build"], &ui[..], &["webview-ui/inner: build"]].concat());
    check("out", &[]);
    let origin = scripts(folder.path(), "npm run compile", "").remove(1).origin;
    assert_eq!(origin.to_string(), "webview-ui/package.json:2");
    let shell = ["sh", "-c", "cd webview-ui && npm run css"].map(str::to_owned);
    assert_eq!(scripts_of(folder.path(), &shell, Path::new("")).unwrap()[0].name, "webview-ui: css");
}

#[test]
fn what_is_sent_to_the_members_of_a_workspace_is_found_in_each() {
    let member = r#"{"scripts": {"build": "x", "prepare": "p"}}"#;
    let check_with = |files: &[(&str, &str)], line: &str, expect: &[&str]| {
        let members = ["packages/a", "packages/deep/b", "other", "packages/node_modules/c"];
        let members: Vec<String> = members.iter().map(|folder| format!("{folder}/package.json")).collect();
        let all: Vec<_> = files.iter().copied().chain(members.iter().map(|it| (it.as_str(), member))).collect();
        check(workspace(&all).path(), line, "", expect);
    };
    let listed =
        [("package.json", r#"{"workspaces": ["./packages/*/", "!x"], "scripts": {"all": "npm run build -ws"}}"#)];
    check_with(&listed, "npm run build --workspace=a", &["packages/a: build"]);
    check_with(&listed, "npm run all", &["all", "packages/a: build"]);
    check_with(&listed, "npm run build -w a", &["packages/a: build"]);
    check_with(&listed, "npm ci", &["packages/a: prepare"]);
    check_with(&listed, "npm run build", &[]);
    let object = [("package.json", r#"{"workspaces": {"packages": ["packages/**", "other"]}}"#)];
    check_with(&object, "yarn workspace a build", &["other: build", "packages/a: build", "packages/deep/b: build"]);
    let pnpm = [("package.json", "{}"), ("pnpm-workspace.yaml", "scriptShell: ./sh\npackages:\n- 'packages/*'\n")];
    let all = ["pnpm-workspace.yaml scriptShell", "other: build", "packages/a: build", "packages/deep/b: build"];
    check_with(&pnpm, "pnpm -r build", &all);
    check_with(&pnpm, "pnpm --filter a build", &all);
    let none = [("package.json", "{}")];
    check_with(&none, "npx lerna run build", &all[1..]);
    check_with(&none, "pnpm -r build", &all[1..]);
    check_with(&none, "npm run build -- -w", &[]);
}

#[test]
fn what_is_not_looked_at_is_told() {
    let many: Vec<String> = (0..MOST_PACKAGES + 20).map(|number| format!("p/{number}/package.json")).collect();
    let mut files = vec![("package.json", r#"{"workspaces": ["p/*"]}"#), ("p/broken/package.json", "{")];
    files.extend(many.iter().map(|path| (path.as_str(), r#"{"scripts": {"build": "x"}}"#)));
    let folder = workspace(&files);
    let found = scripts(folder.path(), "npm run build -ws", "");
    assert!(found.len() > 100 && found.len() <= MOST_PACKAGES + 1, "{}", found.len());
    assert_eq!(found.last().unwrap().name, "…");
    let few = workspace(&files[..2]);
    let found = scripts(few.path(), "npm run build -ws", "");
    assert_eq!(found[0].name, "p/broken: package.json");
    assert!(found[0].text.contains("package.json:1:"), "{}", found[0].text);
    // The command's own package is another matter.
    let broken = workspace(&files[1..2]);
    let argv = ["npm", "run", "build"].map(str::to_owned);
    assert!(scripts_of(broken.path(), &argv, Path::new("p/broken")).is_err());
}
