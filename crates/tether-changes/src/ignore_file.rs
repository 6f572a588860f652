//! Reads ignore files (`.devtoolsignore`, `.gitignore`) and splits them into pattern lines.
//!
//! A workspace may be hostile: the read is bounded, does not block and follows no symlink, and what a stranger has put
//! into a shared folder does not count. Does not depend on what the patterns mean.

use std::io;
use std::path::Path;

use tether_base::bounded_file::{self, Links};
use tether_base::file_owner::stranger_of;

/// A larger file is reported and not read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The content of an ignore file.
///
/// # Errors
/// `None` if there is no such file, else what is wrong with it, a clause without a subject.
pub(super) fn read_ignore_file(file: &Path) -> Result<Vec<u8>, Option<String>> {
    if let Some(what) = foreign_file(file) {
        return Err(Some(what));
    }
    let describe = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => None,
        _ => Some(format!("cannot be read: {error}")),
    };
    bounded_file::read_file(file, MAX_FILE_BYTES, Links::Refuse).map_err(describe)
}

/// Why a file of a stranger does not count, a clause without a subject; `None` for any other file.
pub(super) fn foreign_file(file: &Path) -> Option<String> {
    let owner = stranger_of(file)?;
    Some(format!("is not used: it belongs to user {owner}, and everybody may write in its folder"))
}

/// A pattern of an ignore file in the folder `prefix` (a pattern) below the root, as a pattern of the root.
pub(super) fn nest_pattern(pattern: &str, prefix: &str) -> String {
    let (not, pattern) = pattern.strip_prefix('!').map_or(("", pattern), |pattern| ("!", pattern));
    // A pattern with a slash before its end belongs to its folder; any other one to all folders below, too.
    let is_anchored = pattern.trim_end_matches('/').contains('/');
    let between = if is_anchored { "/" } else { "/**/" };
    format!("{not}/{prefix}{between}{}", pattern.trim_start_matches('/'))
}

/// The lines that contain a pattern, with their 1-based numbers. A byte order mark is skipped.
pub(super) fn pattern_lines(text: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    lines.filter_map(|(index, line)| Some((index as u32 + 1, strip_line(line)?)))
}

/// The part of a line that git uses: nothing of a comment, no CR at the end, nothing after a NUL, no unescaped trailing
/// spaces (tabs stay). `None` if nothing is left.
fn strip_line(line: &[u8]) -> Option<&[u8]> {
    if line.first() == Some(&b'#') {
        return None;
    }
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let spaces = line.iter().rev().take_while(|byte| **byte == b' ').count();
    let kept = line.len() - spaces;
    let backslashes = line[..kept].iter().rev().take_while(|byte| **byte == b'\\').count();
    let escaped = usize::from(backslashes % 2 == 1 && spaces > 0);
    let line = &line[..kept + escaped];
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_a_nested_file_belong_to_its_folder() {
        let check =
            |pattern: &str, expect: &str| assert_eq!(nest_pattern(pattern, "packages/ext"), expect, "{pattern}");
        check("*.log", "/packages/ext/**/*.log");
        check("out/", "/packages/ext/**/out/");
        check("/out", "/packages/ext/out");
        check("src/generated", "/packages/ext/src/generated");
        check("!keep.log", "!/packages/ext/**/keep.log");
    }
}
