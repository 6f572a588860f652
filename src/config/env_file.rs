//! A file of environment variables, as VS Code reads it.
//!
//! Must not know for whom they are.

use std::path::Path;

use super::file;
use crate::error::Result;

/// Its variables in their order; `None` when there is no such file.
pub fn read(path: &Path) -> Result<Option<Vec<(String, String)>>> {
    Ok(file::read(path)?.map(|content| content.lines().filter_map(variable).collect()))
}

/// `NAME=value`; quotes around the value are taken off.
fn variable(line: &str) -> Option<(String, String)> {
    let (name, value) = line.trim().strip_prefix("export ").unwrap_or(line.trim()).split_once('=')?;
    let name = name.trim();
    let known = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if name.is_empty() || !name.chars().all(known) {
        return None;
    }
    let value = value.trim();
    let quoted = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    Some((name.to_owned(), quoted.unwrap_or(value).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_and_everything_else_is_passed_over() {
        let check = |line: &str, expect: Option<(&str, &str)>| {
            let expect = expect.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(variable(line), expect, "{line:?}");
        };
        check("A=1", Some(("A", "1")));
        check(" export B = \"two words\" ", Some(("B", "two words")));
        check("C='$x'", Some(("C", "$x")));
        check("D=", Some(("D", "")));
        check("# E=1", None);
        check("no variable", None);
        check("=1", None);
    }
}
