//! `.devtoolsignore` compared with `git check-ignore`, on random pattern files and a tree of unusual names.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tether_changes::{BUILT_IN_IGNORES, IgnoreRules};

use crate::change_detection::random::SeededRandom;

const NAMES: [&str; 22] = [
    "a",
    "b",
    "ab",
    "abc",
    "foo",
    "bar",
    "foobar",
    ".x",
    "x.log",
    "a.log",
    "A",
    "a b",
    "b ",
    "{a,b}",
    "[a]",
    "!a",
    "#a",
    "a-b",
    "é",
    "a\\b",
    "^",
    "node_modules",
];
const FOLDERS: [&str; 8] = ["a", "b", "foo", "ab", "dist", "a b", "x.d", "é"];
const PIECES: [&str; 58] = [
    "a",
    "b",
    "c",
    "foo",
    "bar",
    "x",
    ".",
    ".log",
    "ab",
    "A",
    "*",
    "*",
    "*",
    "**",
    "**",
    "***",
    "?",
    "?",
    "/",
    "/",
    "/",
    "/",
    "/**/",
    "/**",
    "**/",
    "[ab]",
    "[!a]",
    "[^b]",
    "[a-c]",
    "[]a]",
    "[!]a]",
    "[a-]",
    "[\\]]",
    "[[:alpha:]]",
    "[[:space:]]",
    "[![:digit:]]",
    "[[:bad:]]",
    "[[:alpha]",
    "[a",
    "[",
    "]",
    "\\",
    "\\a",
    "\\*",
    "\\/",
    "{a,b}",
    "{",
    "}",
    ",",
    " ",
    "\\ ",
    "!",
    "#",
    "\\!",
    "é",
    "[é]",
    "-",
    "[!-^]",
];

/// Every name in the root, in every folder, and in every folder of every folder.
fn plant(root: &Path) -> Vec<(String, bool)> {
    let mut folders = vec![String::new()];
    for first in FOLDERS {
        folders.push(format!("{first}/"));
        folders.extend(["a", "foo", "b"].map(|second| format!("{first}/{second}/")));
    }
    let mut paths: BTreeMap<String, bool> = BTreeMap::new();
    for folder in &folders {
        fs::create_dir_all(root.join(folder)).unwrap();
        paths.insert(folder.clone(), true);
    }
    for (folder, name) in folders.iter().flat_map(|folder| NAMES.iter().map(move |name| (folder, name))) {
        let path = format!("{folder}{name}");
        if !root.join(&path).exists() {
            fs::write(root.join(&path), "").unwrap();
            paths.insert(path, false);
        }
    }
    paths.into_iter().filter(|(path, _)| !path.is_empty()).collect()
}

fn pattern(dice: &mut SeededRandom) -> String {
    let lead = dice.pick(&["", "", "", "", "/", "!", "!/", "**/"]).to_owned();
    let body: String = (0..=dice.below(5)).map(|_| dice.pick(&PIECES)).collect();
    lead + &body + dice.pick(&["", "", "", "/", "/*", "/**"])
}

/// Git's result: ignored or not, and the line of the deciding pattern (ours, below the built-in ones).
fn git_says(root: &Path, paths: &[(String, bool)]) -> Vec<(bool, Option<usize>)> {
    let mut git = Command::new("git")
        .args(["check-ignore", "--no-index", "--stdin", "-z", "-v", "-n"])
        .current_dir(root)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git is installed");
    let question: Vec<u8> =
        paths.iter().flat_map(|(path, _)| [path.trim_end_matches('/').as_bytes(), b"\0"].concat()).collect();
    let mut stdin = git.stdin.take().unwrap();
    let asking = std::thread::spawn(move || stdin.write_all(&question).unwrap());
    let answer = git.wait_with_output().unwrap();
    asking.join().unwrap();
    let fields: Vec<&[u8]> = answer.stdout.split(|byte| *byte == 0).collect();
    let answers = fields.chunks_exact(4).map(|record| {
        let line: Option<usize> = std::str::from_utf8(record[1]).unwrap().parse().ok();
        (line.is_some() && !record[2].starts_with(b"!"), line.and_then(|line| line.checked_sub(BUILT_IN_IGNORES.len())))
    });
    answers.collect()
}

#[test]
fn the_ignore_file_means_what_git_would_make_of_it() {
    let mut dice = SeededRandom::new("git");
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path();
    assert!(Command::new("git").args(["init", "-q", "."]).current_dir(root).status().unwrap().success());
    let tree = plant(root);
    let (mut pairs, mut wrong, mut other_line) = (0, Vec::new(), Vec::new());
    for _ in 0..700 {
        let text: String = (0..=dice.below(4)).map(|_| pattern(&mut dice) + dice.pick(&["\n", "\n", "\r\n"])).collect();
        fs::write(root.join(".git/info/exclude"), format!("{}\n{text}", BUILT_IN_IGNORES.join("\n"))).unwrap();
        let (rules, _) = IgnoreRules::parse(&Default::default(), &root.join(".devtoolsignore"), text.as_bytes());
        let requested: Vec<_> = (0..100).map(|_| tree[dice.below(tree.len())].clone()).collect();
        for ((path, is_dir), (ignored, line)) in requested.iter().zip(git_says(root, &requested)) {
            let decision = rules.decide_tracking(Path::new(path.as_str()), *is_dir);
            pairs += 1;
            if decision.tracked == ignored {
                wrong.push(format!("{text:?} × {path}: git {ignored} by {line:?}, we {:?}", decision.rule));
            } else if ignored && line.filter(|line| *line > 0) != decision.rule.as_ref().and_then(|rule| rule.line) {
                other_line.push(format!(
                    "{text:?} × {path}: git by {line:?}, we {:?}",
                    rules.decide_tracking(Path::new(path.as_str()), *is_dir).rule
                ));
            }
        }
    }
    let agree = 100.0 - 100.0 * wrong.len() as f64 / pairs as f64;
    println!("{pairs} pairs: {agree:.3} % agree; {} by another line", other_line.len());
    wrong.iter().chain(&other_line).take(40).for_each(|pair| println!("  {pair}"));
    assert!(pairs >= 50_000);
    assert!(agree >= 99.5);
    assert!(other_line.is_empty(), "where both ignore a path, both name the same line");
}
