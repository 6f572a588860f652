//! Escapes text for display: what a page, a program, a file name or a task says cannot steer a terminal, hide, or
//! reorder what is read.
//!
//! Escaped are control characters (with DEL and C1), bidirectional marks, zero-width and other invisible characters.
//! In text they are shown as `\u{202e}`; a name or path is one line, a line break in it is `\n`. JSON output keeps its
//! values: the same characters are JSON's own escapes there (`\u202e`), so a parser returns them as they are, and a
//! terminal that shows the JSON is not steered either. Over MCP, where a model reads what a parser has returned, the values
//! of structured results are escaped as text. Does not depend on any other module.

use std::fmt::Write;

/// Characters that print nothing although Unicode counts them as letters, marks or symbols.
const INVISIBLE: &[std::ops::RangeInclusive<char>] = &[
    '\u{34f}'..='\u{34f}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{2800}'..='\u{2800}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{e0000}'..='\u{e0fff}',
];

/// Text of several lines: line breaks and tabs stay. A CR before a line break is dropped.
pub fn escape_text(text: &str) -> String {
    let plain = |c: char| matches!(c, '\n' | '\t');
    escape(&text.replace("\r\n", "\n"), |c| is_unsafe(c) && !plain(c), write_escaped)
}

/// A path, a name, one line of a list: line breaks and tabs are escaped, too.
pub fn escape_line(text: &str) -> String {
    escape(text, is_unsafe, write_escaped)
}

/// Marks every line after the first: what somebody else says on it cannot be taken for a line of ours.
pub fn mark_breaks(text: &str) -> String {
    text.replace('\n', "\n    | ")
}

/// Marks every line; those at the end that are empty are left out.
pub fn mark_lines(text: &str) -> String {
    mark_breaks(&format!("\n{}", text.trim_end()))[1..].to_owned()
}

/// Text that an editor may show as a notification, where VS Code makes links of `[label](command:…)`: it has none.
pub fn break_links(text: &str) -> String {
    text.replace("](", "] (")
}

/// As Rust and JavaScript write it: `\n`, `\u{202e}`.
fn write_escaped(c: char, out: &mut String) {
    match c {
        '\0' | '\n' | '\r' | '\t' => out.extend(c.escape_debug()),
        _ => out.extend(c.escape_unicode()),
    }
}

/// JSON text, without a change of its value: outside of ASCII, JSON has characters in strings only.
pub fn escape_json(json: &str) -> String {
    let layout = |c: char| matches!(c, '\n' | '\t' | '\r');
    escape(
        json,
        |c| is_unsafe(c) && !layout(c),
        |c, out| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        },
    )
}

fn escape(text: &str, wants: impl Fn(char) -> bool, write_escaped: impl Fn(char, &mut String)) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if wants(c) { write_escaped(c, &mut out) } else { out.push(c) }
    }
    out
}

fn is_unsafe(c: char) -> bool {
    match c {
        ' '..='~' | '\u{3000}' => false,
        c if c.is_control() || INVISIBLE.iter().any(|range| range.contains(&c)) => true,
        // The standard library escapes what Unicode does not print: format characters (bidirectional, zero-width),
        // separators, what is private or unassigned. A combining mark is escaped only where no letter precedes it.
        c => format!("a{c}").escape_debug().nth(2).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_for_a_notification_has_no_links() {
        assert_eq!(
            break_links("see [a](https://example.org) [b]((c), d[0] (e)"),
            "see [a] (https://example.org) [b] ((c), d[0] (e)"
        );
    }

    #[test]
    fn what_steers_hides_or_reorders_is_escaped_and_what_is_read_stays() {
        for hostile in [
            '\u{1b}',
            '\u{7}',
            '\u{8}',
            '\r',
            '\u{7f}',
            '\u{80}',
            '\u{85}',
            '\u{9b}',
            '\u{9f}',
            '\u{ad}',
            '\u{61c}',
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{200e}',
            '\u{200f}',
            '\u{2028}',
            '\u{2029}',
            '\u{202a}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{2069}',
            '\u{206f}',
            '\u{feff}',
            '\u{fff9}',
            '\u{fe0f}',
            '\u{3164}',
            '\u{e0041}',
            '\u{e0100}',
            '\u{0}',
        ] {
            for escaped in [escape_text(&format!("a{hostile}b")), escape_line(&format!("a{hostile}b"))] {
                assert!(!escaped.contains(hostile) && escaped.starts_with("a\\"), "{escaped}");
            }
            let json = escape_json(&serde_json::json!({ "a": hostile.to_string() }).to_string());
            assert!(!json.contains(hostile), "{json}");
            let value: serde_json::Value = serde_json::from_str(&json).unwrap();
            assert_eq!(value["a"], hostile.to_string());
        }
        let readable = "Grüße, e\u{301}té, 日本語\u{3000}、한글, עברית, हिन्दी, 🎉 ~\\\"'";
        assert_eq!((escape_text(readable), escape_line(readable)), (readable.to_owned(), readable.to_owned()));
        assert_eq!(escape_text("a\r\n\tb\rc"), "a\n\tb\\rc");
        assert_eq!(escape_line("a\n\tb"), "a\\n\\tb");
        assert_eq!(
            (mark_breaks("a\nb").as_str(), mark_lines("a\n\nb\n").as_str()),
            ("a\n    | b", "    | a\n    | \n    | b")
        );
    }
}
