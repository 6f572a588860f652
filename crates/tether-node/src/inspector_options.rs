//! The options of a program that are about its inspector: those by which it opens one by itself, and those that deny it one.

use std::path::Path;

use super::package_manifest::read_manifest;

/// Open an inspector; the second also has the program stop at its first line, the third has it wait for its debugger.
const INSPECT_OPTIONS: [&str; 3] = ["--inspect", INSPECT_BREAK, "--inspect-wait"];
const INSPECT_BREAK: &str = "--inspect-brk";
/// The port of an option that names none.
const DEFAULT_PORT: u16 = 9229;
/// What runs the scripts of a package.
const PACKAGE_MANAGERS: [&str; 3] = ["npm", "pnpm", "yarn"];
const PERMISSION_OPTIONS: [&str; 2] = ["--permission", "--experimental-permission"];
const ALLOWS_INSPECTOR: &str = "--allow-inspector";

/// The words without those that have Node open an inspector, since each process opens one for us; and whether one of them has
/// the program stop at its first line.
pub(crate) fn without_inspect_options(mut words: Vec<String>) -> (Vec<String>, bool) {
    let stops = words.iter().any(|word| option_name(word) == INSPECT_BREAK);
    words.retain(|word| !INSPECT_OPTIONS.contains(&option_name(word)));
    (words, stops)
}

/// The port at which a script of a package waits for a debugger (`node --inspect-brk`), before anything of ours is loaded. `None`:
/// the words run no such script. Blocks.
pub(crate) fn script_port(runtime: &Path, words: &[String], cwd: &Path) -> Option<u16> {
    let manager = runtime.file_name()?.to_str()?;
    if !PACKAGE_MANAGERS.contains(&manager) {
        return None;
    }
    let is_script = |word: &&String| !word.starts_with('-') && !matches!(word.as_str(), "run" | "run-script");
    let manifest = read_manifest(cwd)?;
    let script = manifest.get("scripts")?.get(words.iter().find(is_script)?)?.as_str()?;
    let option =
        script.split_whitespace().find(|word| matches!(option_name(word), INSPECT_BREAK | "--inspect-wait"))?;
    option_port(option).filter(|port| *port > 0)
}

/// Why a program has no inspector, if its options deny it one. `words` are the options of Node, `environment` is its
/// `NODE_OPTIONS`.
pub fn denied_inspector<'a>(words: impl Iterator<Item = &'a str>, environment: &'a str) -> Option<&'static str> {
    let words: Vec<&str> = words.chain(environment.split_whitespace()).collect();
    let denies = words.iter().any(|word| PERMISSION_OPTIONS.contains(word)) && !words.contains(&ALLOWS_INSPECTOR);
    denies.then_some(
        "`--permission` denies a program its inspector, and Node then drops `--inspect` without a word; `--allow-inspector` \
         permits it",
    )
}

fn option_name(word: &str) -> &str {
    word.split_once('=').map_or(word, |(name, _)| name)
}

/// `--inspect-brk`, `--inspect-brk=9230`, `--inspect-brk=127.0.0.1:9230`; `None`: it names no port, but a host.
fn option_port(word: &str) -> Option<u16> {
    match word.split_once('=') {
        Some((_, address)) => address.rsplit(':').next()?.parse().ok().or(Some(DEFAULT_PORT)),
        None => Some(DEFAULT_PORT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn options_that_open_an_inspector_are_taken_out() {
        let check = |line: &str, rest: &str, stops: bool| {
            assert_eq!(without_inspect_options(words(line)), (words(rest), stops), "{line}");
        };
        check("--inspect-brk jest.js --runInBand", "jest.js --runInBand", true);
        check("--inspect=0.0.0.0:9230 --import tsx", "--import tsx", false);
        check("--inspect-wait --inspect-port=1 a", "--inspect-port=1 a", false);
    }

    #[test]
    fn a_script_that_waits_for_a_debugger_is_known_by_its_manifest() {
        let folder = tempfile::tempdir().unwrap();
        let scripts = r#"{"scripts": {"debug": "node --inspect-brk=127.0.0.1:9230 a.js", "brk": "tsc && node --inspect-brk a.js",
            "start": "node --inspect a.js", "any": "node --inspect-brk=0 a.js"}}"#;
        std::fs::write(folder.path().join("package.json"), scripts).unwrap();
        let check = |runtime: &str, line: &str, expect: Option<u16>| {
            assert_eq!(script_port(Path::new(runtime), &words(line), folder.path()), expect, "{runtime} {line}");
        };
        check("npm", "run debug", Some(9230));
        check("/usr/bin/pnpm", "brk", Some(9229));
        check("yarn", "run --silent brk", Some(9229));
        check("npm", "run start", None);
        check("npm", "run any", None);
        check("npm", "run none", None);
        check("node", "run debug", None);
    }

    #[test]
    fn permissions_deny_an_inspector_unless_they_allow_it() {
        let denied = |line: &str, environment: &str| denied_inspector(line.split(' '), environment).is_some();
        assert!(denied("node --permission a.js", "") && denied("node a.js", "--experimental-permission"));
        assert!(!denied("node --permission --allow-inspector a.js", "") && !denied("node a.js", ""));
    }
}
