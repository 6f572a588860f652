//! Reads a file of environment variables (`envFile`) as VS Code does, and hides its values where such a file is shown.
//!
//! Does not depend on what uses the variables.

use std::path::Path;

use tether_base::error::Result;

use crate::config::source_file::read_own_text;
use crate::config::vscode::launch_json::environment_files;

/// What is shown instead of a value.
const HIDDEN: &str = "***";

/// The variables (name, value) in file order; `None` where the file does not exist.
pub fn read_env_file(path: &Path) -> Result<Option<Vec<(String, String)>>> {
    Ok(read_own_text(path)?.map(|content| content.lines().filter_map(parse_variable).collect()))
}

/// Parses `NAME=value`, and removes quotes around the value and a comment after it. `None` for any other line.
fn parse_variable(line: &str) -> Option<(String, String)> {
    let (name, value) = line.trim().strip_prefix("export ").unwrap_or(line.trim()).split_once('=')?;
    let name = name.trim();
    let known = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if name.is_empty() || !name.chars().all(known) {
        return None;
    }
    let value = value.trim();
    let quoted = ['"', '\''].into_iter().find_map(|quote| {
        let inside = value.strip_prefix(quote)?;
        let ends = [inside.split_once(quote), inside.rsplit_once(quote)];
        ends.into_iter().flatten().find(|(_, rest)| is_comment(rest)).map(|(text, _)| (quote, text))
    });
    let value = match quoted {
        Some(('"', text)) => text.replace("\\n", "\n"),
        Some((_, text)) => text.to_owned(),
        None => value.split_once(" #").map_or(value, |(value, _)| value).trim_end().to_owned(),
    };
    Some((name.to_owned(), value))
}

/// Whether a file has variables of an environment, whose values may be secrets: by its name, as `.env`, `.env.local` and
/// `prod.env`, or because the workspace's launch.json reads it as one.
pub fn is_environment_file(workspace: &Path, path: &Path) -> bool {
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let is_named = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        name == ".env" || name == ".envrc" || name.starts_with(".env.") || name.ends_with(".env")
    };
    let is_target = |file: &Path| std::fs::canonicalize(file).is_ok_and(|file| file == target);
    is_named(path) || is_named(&target) || environment_files(workspace).iter().any(|file| is_target(file))
}

/// The text of such a file without its values: the names of the variables, and comments that set none.
pub fn hide_values(text: &str) -> String {
    // Within a value of several lines: its quote.
    let mut open: Option<char> = None;
    let hide = |line: &str| {
        if let Some(quote) = open {
            open = open.filter(|_| !line.contains(quote));
            return HIDDEN.to_owned();
        }
        let is_comment = line.trim_start().starts_with('#');
        match line.split_once('=') {
            Some((name, value)) => {
                let value = value.trim_start();
                let quote = value.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
                open = quote.filter(|quote| !is_comment && !value[1..].contains(*quote));
                format!("{name}={HIDDEN}")
            }
            None if is_comment || line.trim().is_empty() => line.to_owned(),
            None => HIDDEN.to_owned(),
        }
    };
    text.lines().map(hide).collect::<Vec<_>>().join("\n")
}

fn is_comment(rest: &str) -> bool {
    rest.trim_start().is_empty() || rest.trim_start().starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_hidden_in_every_form_and_names_stay() {
        let text = "# ours\nA=one\nexport B='two'\n#C=three\n\nD=\"four\nfive=\nsix\" # seven\nE=8\nnine\nF=`ten";
        let expect = "# ours\nA=***\nexport B=***\n#C=***\n\nD=***\n***\n***\nE=***\n***\nF=***";
        assert_eq!(hide_values(text), expect);
    }

    #[test]
    fn a_file_of_variables_is_known_by_its_name_or_by_launch_json() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at(".vscode")).unwrap();
        let launch =
            r#"{"configurations": [{"name": "a", "envFile": ["${workspaceFolder}/secrets.txt", "x/../more.txt"]}]}"#;
        std::fs::write(at(".vscode/launch.json"), launch).unwrap();
        for name in ["secrets.txt", "more.txt", ".env", "app.py"] {
            std::fs::write(at(name), "").unwrap();
        }
        std::os::unix::fs::symlink(".env", at("link.py")).unwrap();
        let check = |name: &str, expect: bool| {
            assert_eq!(is_environment_file(folder.path(), &at(name)), expect, "{name}");
        };
        for name in [".env", ".env.local", "prod.env", ".envrc", "link.py", "secrets.txt", "more.txt"] {
            check(name, true);
        }
        for name in ["app.py", "environment.py", ".vscode/launch.json"] {
            check(name, false);
        }
    }

    #[test]
    fn variables_are_parsed_and_other_lines_are_skipped() {
        let check = |line: &str, expect: Option<(&str, &str)>| {
            let expect = expect.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(parse_variable(line), expect, "{line:?}");
        };
        check("A=1", Some(("A", "1")));
        check(" export B = \"two words\" ", Some(("B", "two words")));
        check("C='$x'", Some(("C", "$x")));
        check("D=", Some(("D", "")));
        check("PORT=3000 # the web's", Some(("PORT", "3000")));
        check("COLOR=#fff", Some(("COLOR", "#fff")));
        check("F=\"a # b\" # c", Some(("F", "a # b")));
        check("H=\"a\" # not \"b\"", Some(("H", "a")));
        check("KEY=\"one\\ntwo\"", Some(("KEY", "one\ntwo")));
        check("G='a\\nb'", Some(("G", "a\\nb")));
        check("# E=1", None);
        check("no variable", None);
        check("=1", None);
    }
}
