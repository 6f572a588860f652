//! What is set for the pages of a window, and stays set: rules for their requests, and what is emulated.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// A rule for the requests of pages. Of several that match, the newest counts.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestRule {
    pub id: u32,
    /// The URLs: `*` is any text, `?` any character. Without `*`: a part of the URL.
    pub url: String,
    /// Requests fail.
    #[serde(default)]
    pub block: bool,
    /// Requests get this file of the workspace.
    pub file: Option<String>,
    /// The status of the answer; without a file, it has no body.
    pub status: Option<u16>,
    /// The type of the answer; without it, by the file's name.
    pub content_type: Option<String>,
    /// How long requests wait.
    pub delay_ms: Option<u64>,
    /// It stays when the window is launched anew.
    #[serde(default)]
    pub keep: bool,
    /// Requests that it was applied to.
    #[serde(default)]
    pub hits: u64,
}

impl RequestRule {
    /// The pattern, in the form of the browser.
    pub fn pattern(&self) -> String {
        if self.url.contains('*') { self.url.clone() } else { format!("*{}*", self.url) }
    }

    /// Whether it is for this URL.
    pub fn matches(&self, url: &str) -> bool {
        matches_wildcards(&self.pattern(), url)
    }

    /// Whether requests are answered here.
    pub fn is_mock(&self) -> bool {
        self.file.is_some() || self.status.is_some()
    }
}

/// `rule 2: "*/api/*" gets mocks/a.json, after 200 ms`
impl fmt::Display for RequestRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}: {:?}", self.id, self.url)?;
        match (&self.file, self.status) {
            _ if self.block => f.write_str(" is blocked")?,
            (Some(file), None) => write!(f, " gets {file:?}")?,
            (Some(file), Some(status)) => write!(f, " gets {status} and {file:?}")?,
            (None, Some(status)) => write!(f, " gets {status}")?,
            (None, None) => f.write_str(" is delayed")?,
        }
        if let Some(delay) = self.delay_ms {
            write!(f, " after {delay} ms")?;
        }
        write!(f, " ({} request{}", self.hits, if self.hits == 1 { "" } else { "s" })?;
        f.write_str(if self.keep { ", kept)" } else { ")" })
    }
}

/// `*` is any text, `?` any character.
fn matches_wildcards(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut read) = (0, 0);
    // Where the last `*` was, and what it has taken so far.
    let mut star: Option<(usize, usize)> = None;
    while read < text.len() {
        if pattern.get(at) == Some(&'*') {
            star = Some((at, read));
            at += 1;
        } else if pattern.get(at).is_some_and(|it| *it == '?' || *it == text[read]) {
            (at, read) = (at + 1, read + 1);
        } else if let Some((before, taken)) = star {
            star = Some((before, taken + 1));
            (at, read) = (before + 1, taken + 1);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|it| *it == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_matched_by_wildcards() {
        for (url, text, expect) in [
            ("/api/", "http://x/api/a", true),
            ("*/api/*", "http://x/api/a", true),
            ("*/api/?", "http://x/api/ab", false),
            ("http://x/*.js", "http://x/a/b.js", true),
            ("http://x/*.js", "http://x/a/b.json", false),
            ("a?c", "http://x/?q=abc", true),
            ("*", "", true),
            ("**b*", "aab", true),
        ] {
            let rule = RequestRule { url: url.into(), ..RequestRule::default() };
            assert_eq!(rule.matches(text), expect, "{url} {text}");
        }
    }
}
