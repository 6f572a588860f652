//! Regular expressions of runners that match a text exactly.

use crate::config::vscode::shell_quoting::escape_characters;

/// A regular expression of Go, Ruby and JavaScript that matches exactly this text.
pub fn exact_pattern(text: &str) -> String {
    format!("^{}$", escape_pattern(text))
}

/// A regular expression of Go, Ruby and JavaScript that matches this text, also as a part.
pub fn escape_pattern(text: &str) -> String {
    escape_characters(text, r"\.+*?()|[]{}^$/")
}
