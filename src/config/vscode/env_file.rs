//! Reads a file of environment variables (`envFile`) as VS Code does.
//!
//! Does not depend on what uses the variables.

use std::path::Path;

use crate::config::source_file::read_own_text;
use crate::error::Result;

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

fn is_comment(rest: &str) -> bool {
    rest.trim_start().is_empty() || rest.trim_start().starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

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
