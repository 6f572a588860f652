//! What the scripts of a package give its test runner, and a test that is debugged by its name does not have: options, and variables
//! of the environment. Named, not taken: a script is a line of a shell.

use std::path::Path;

use crate::config::named_test::test_files::nearest_folder_with;
use crate::config::named_test::test_run::TestRun;
use crate::config::npm::package_json::PackageJson;

/// Options that do not matter for one test that is debugged.
const HARMLESS: [&str; 9] =
    ["--watch", "--watchAll", "--coverage", "--run", "--passWithNoTests", "--silent", "--verbose", "--test", "-w"];
/// A longer script is cut, in characters.
const MAX_SHOWN: usize = 200;

/// Names the first script of the package whose options its runner lacks, with how they are given. `None`: there is none.
pub fn describe_script_options(run: &TestRun, workspace: &Path) -> Option<String> {
    let (folder, word) = match run {
        TestRun::Package { by, .. } => (by.package.clone(), run.runner().command().split(' ').next()?),
        TestRun::Node { file, .. } => (nearest_folder_with(file, workspace, "package.json")?, "node"),
        _ => return None,
    };
    let manifest = PackageJson::read(&folder).ok().flatten()?;
    let tests = manifest.scripts().into_iter().filter(|(name, _)| *name == "test" || name.starts_with("test:"));
    let mut scripts = tests.filter_map(|(name, node)| Some((name, node.text()?)));
    let (name, text) = scripts.find(|(_, text)| has_options(text, word))?;
    let shown: String = text.chars().take(MAX_SHOWN).collect();
    Some(format!(
        "the script `{name}` runs `{shown}`: its options and variables are not taken; behind `--` and with `--env` they are"
    ))
}

/// Whether the first command of a script that calls the runner gives it more than files and words.
fn has_options(script: &str, runner: &str) -> bool {
    let calls = |command: &&str| command.split_whitespace().any(|word| word.rsplit('/').next() == Some(runner));
    let Some(command) = script.split(['&', '|', ';']).find(calls) else { return false };
    // `node --test` is the runner, `node build.js` is not.
    if runner == "node" && !command.contains("--test") {
        return false;
    }
    command.split_whitespace().any(|word| {
        let option = word.split('=').next().unwrap_or(word);
        let is_variable = !word.starts_with('-') && word.contains('=');
        is_variable || (option.starts_with('-') && !HARMLESS.contains(&option))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_with_options_or_variables_is_told_from_one_without() {
        let check =
            |script: &str, runner: &str, expect: bool| assert_eq!(has_options(script, runner), expect, "{script}");
        check("mocha --require ./test/setup.js", "mocha", true);
        check("NODE_ENV=test mocha test/", "mocha", true);
        check("tsc && jest --config ./test/jest-e2e.json", "jest", true);
        check("vitest run --coverage", "vitest", false);
        check("vitest", "vitest", false);
        check("node --import tsx --test", "node", true);
        check("node --test test/", "node", false);
        check("node build.js --minify", "node", false);
        check("eslint --fix .", "mocha", false);
    }
}
