//! The URLs by which Node names the scripts of files: `file:` URLs, of modules with a query (`m.mjs?v=2`), and for some compilers
//! plain paths.

use std::path::{Path, PathBuf};

use url::Url;

/// The local path of a `file:` URL, or of a plain path.
pub(crate) fn file_path(url: &str) -> Option<PathBuf> {
    if url.starts_with('/') {
        return Some(PathBuf::from(url));
    }
    Url::parse(url).ok().filter(|url| url.scheme() == "file")?.to_file_path().ok()
}

/// A pattern (of JavaScript) for the URLs of files: each character as it is, or encoded, since encoders differ.
pub(crate) fn file_url_pattern(paths: &[&Path]) -> String {
    let mut forms: Vec<String> = paths.iter().map(|path| path_pattern(&path.to_string_lossy())).collect();
    forms.dedup();
    format!("^(?:file:\\/\\/)?(?:{})(?:[?#].*)?$", forms.join("|"))
}

fn path_pattern(path: &str) -> String {
    let mut pattern = String::new();
    for c in path.chars() {
        match c {
            '0'..='9' | 'A'..='Z' | 'a'..='z' | '_' => pattern.push(c),
            '/' => pattern.push_str("\\/"),
            _ => {
                let raw = if c.is_ascii_punctuation() { format!("\\{c}") } else { c.to_string() };
                let mut bytes = [0; 4];
                let encode = |byte: &u8| format!("%{}", hex_digits(*byte));
                let encoded: String = c.encode_utf8(&mut bytes).as_bytes().iter().map(encode).collect();
                pattern.push_str(&format!("(?:{raw}|{encoded})"));
            }
        }
    }
    pattern
}

/// In either case.
fn hex_digits(byte: u8) -> String {
    let digit = |digit: char| match digit.is_ascii_alphabetic() {
        true => format!("[{}{digit}]", digit.to_ascii_uppercase()),
        false => digit.to_string(),
    };
    format!("{byte:02x}").chars().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_each_form_of_their_urls() {
        let check =
            |url: &str, expect: Option<&str>| assert_eq!(file_path(url).as_deref(), expect.map(Path::new), "{url}");
        check("file:///w/a%20b.mjs?v=1#x", Some("/w/a b.mjs"));
        check("/w/a b.ts", Some("/w/a b.ts"));
        check("node:fs", None);
        check("http://localhost/a.js", None);
    }

    #[test]
    fn the_pattern_of_a_file_takes_encoded_and_plain_characters() {
        let pattern = file_url_pattern(&[Path::new("/w/[id]/ä b.js"), Path::new("/w/[id]/ä b.js")]);
        assert_eq!(
            pattern,
            "^(?:file:\\/\\/)?(?:\\/w\\/(?:\\[|%5[Bb])id(?:\\]|%5[Dd])\\/(?:ä|%[Cc]3%[Aa]4)(?: |%20)b(?:\\.|%2[Ee])js)(?:[?#].*)?$"
        );
    }
}
