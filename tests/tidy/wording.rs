//! Words that this project does not use: old names of modules, types and functions, and metaphors in comments and messages.
//!
//! The reader's words are those of the field: requests are sent, processes exit, connections are closed.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};

use crate::sources::File;

/// Identifiers that were renamed, whatever their case: no type, function, module or variable has one of these words.
const OLD_NAMES: &[&str] = &[
    "house",
    "seat",
    "judge",
    "verdict",
    "ledger",
    "desk",
    "mourn",
    "birth",
    "goodbye",
    "greeted",
    "asker",
    "wish",
    "deeds",
    "callofff",
    "standings",
];

/// Words that stand in no comment, message or document.
const METAPHORS: &[&str] =
    &["goodbye", "mourn", "mourns", "house", "ledger", "judged", "verdict", "greeted", "asker", "wishes", "birth"];

/// Complains of each identifier that contains an old name as a word.
pub fn old_names(file: &File) -> Vec<String> {
    let stream: TokenStream = match file.text.parse() {
        Ok(stream) => stream,
        Err(error) => return vec![format!("{}: {error}", file.path)],
    };
    let mut found = BTreeSet::new();
    collect_identifiers(stream, &mut |line, name| {
        if words_of(name).iter().any(|word| OLD_NAMES.contains(&word.as_str())) {
            found.insert((line, name.to_owned()));
        }
    });
    found.into_iter().map(|(line, name)| format!("{}:{line}: `{name}` is an old name", file.path)).collect()
}

fn collect_identifiers(stream: TokenStream, take: &mut impl FnMut(usize, &str)) {
    for token in stream {
        match token {
            TokenTree::Ident(ident) => take(ident.span().start().line, &ident.to_string()),
            TokenTree::Group(group) => collect_identifiers(group.stream(), take),
            _ => {}
        }
    }
}

/// `SessionLedger` and `session_ledger` → `session`, `ledger`.
fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    for letter in name.chars() {
        if letter == '_' || letter.is_uppercase() {
            words.push(String::new());
        }
        if letter != '_' {
            words.last_mut().expect("there is one").extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Complains of each line of a comment, string or document with a metaphor.
pub fn metaphors(file: &File) -> Vec<String> {
    let lines = file.text.lines().enumerate();
    let bad = lines.filter_map(|(at, line)| {
        let line = line.to_lowercase();
        let mut words = line.split(|letter: char| !letter.is_alphanumeric());
        let word = words.find(|word| METAPHORS.contains(word))?;
        Some(format!("{}:{}: {word:?} is no word of the field", file.path, at + 1))
    });
    bad.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: fn(&File) -> Vec<String>, text: &str, holds: bool) {
        let found = rule(&File::of("src/wire/frames.rs", text));
        assert_eq!(found.is_empty(), holds, "{text}: {found:?}");
    }

    #[test]
    fn old_names_are_found_in_every_case_and_only_as_words() {
        check(old_names, "struct SessionLedger;", false);
        check(old_names, "fn say_goodbye() {}", false);
        check(old_names, "fn f() { a!(desk.open()) }", false);
        check(old_names, "struct Desktop; fn seating() {} // a ledger", true);
    }

    #[test]
    fn metaphors_are_found_in_comments_and_messages() {
        check(metaphors, "// Say goodbye first.", false);
        check(metaphors, "let text = \"the Ledger is full\";", false);
        check(metaphors, "// Sends `disconnect`.", true);
    }
}
