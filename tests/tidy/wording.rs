//! Words that this project does not use: old names of modules, types and functions, and metaphors in comments and messages.
//!
//! The reader's words are those of the field: requests are sent, processes exit, connections are closed.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};

use crate::crate_items::Items;
use crate::paths::module_of;
use crate::sources::File;

/// Words of renamed identifiers, whatever their case: no type, function, module or variable has one of them.
const OLD_WORDS: &[&str] = &[
    "house",
    "seat",
    "judge",
    "verdict",
    "ledger",
    "desk",
    "tie",
    "ties",
    "mourn",
    "bear",
    "birth",
    "goodbye",
    "greeted",
    "heed",
    "asker",
    "wish",
    "deeds",
    "ears",
    "truth",
    "keeper",
    "trouble",
    "standing",
    "standings",
    "hosted",
];

/// Modules that were renamed, below their folder of `src`.
const OLD_MODULES: &[(&str, &[&str])] = &[
    (
        "debug",
        &[
            "begin",
            "record",
            "drain",
            "terminal",
            "published",
            "look",
            "shown",
            "pages",
            "book",
            "applied",
            "wanted",
            "configure",
            "sessions",
        ],
    ),
    ("adapters", &["wanted", "places", "begin", "run", "dial", "said", "last", "choose"]),
    ("changes", &["rise", "extent", "comparison"]),
    (
        "window",
        &["up", "work", "news", "launches", "crashes", "shared", "inside", "obstacle", "records", "view", "observe"],
    ),
    ("supervisor", &["place", "claim", "conversation", "journal", "on_page", "on_debug", "words", "answers"]),
    ("frontends", &["words", "machine", "consent", "configuration", "manual", "stdio"]),
    ("config", &["given", "recipe", "plan", "choice", "generated", "matchers", "merge", "folders"]),
    ("keep", &[]),
    ("steps", &[]),
    ("wire", &["prompt"]),
];

/// Types and functions that were renamed.
const OLD_ITEMS: &[&str] = &[
    "Asked",
    "At",
    "Begin",
    "Book",
    "CallOff",
    "Choice",
    "Claim",
    "Connection",
    "Dial",
    "Does",
    "Doubt",
    "Generated",
    "Given",
    "GoOn",
    "Journal",
    "Line",
    "Look",
    "Obstacle",
    "Place",
    "Recipe",
    "Request",
    "Said",
    "Seen",
    "Session",
    "Shared",
    "Shot",
    "Snapshot",
    "Step",
    "Told",
    "Up",
    "Wanted",
    "carry_out",
    "is_being_told",
    "is_pausing",
    "is_reached_by",
];

/// Words that stand in no comment, message or document.
const METAPHORS: &[&str] = &[
    "goodbye", "mourn", "mourns", "house", "ledger", "judged", "verdict", "greeted", "greets", "asker", "wishes",
    "birth", "obeyed", "heeds",
];

/// Complains of each identifier that contains an old word.
pub fn old_words(file: &File) -> Vec<String> {
    let stream: TokenStream = match file.text.parse() {
        Ok(stream) => stream,
        Err(error) => return vec![format!("{}: {error}", file.path)],
    };
    let mut found = BTreeSet::new();
    collect_identifiers(stream, &mut |line, name| {
        if words_of(name).iter().any(|word| OLD_WORDS.contains(&word.as_str())) {
            found.insert((line, name.to_owned()));
        }
    });
    found.into_iter().map(|(line, name)| format!("{}:{line}: `{name}` has an old word", file.path)).collect()
}

/// Complains of each type and function that has its old name.
pub fn old_items(all: &[Items]) -> Vec<String> {
    let functions = all.iter().flat_map(|items| &items.functions).map(|function| &function.item);
    let named = all.iter().flat_map(|items| &items.types).chain(functions);
    let old = named.filter(|item| OLD_ITEMS.contains(&&*item.name));
    old.map(|item| format!("{}:{}: `{}` is an old name", item.path, item.line, item.name)).collect()
}

/// Complains of a file of `src` that has the old name of a module.
pub fn old_modules(file: &File) -> Vec<String> {
    let module = module_of(&file.path);
    let Some((folder, inner)) = module.split_first() else { return Vec::new() };
    let Some((_, old)) = OLD_MODULES.iter().find(|(name, _)| name == folder) else { return Vec::new() };
    let is_old = old.is_empty() || inner.iter().any(|segment| old.contains(&segment.as_str()));
    if is_old { vec![format!("{}: a module has its old name", file.path)] } else { Vec::new() }
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
    fn old_words_are_found_in_every_case_and_only_as_words() {
        check(old_words, "struct SessionLedger;", false);
        check(old_words, "fn say_goodbye() {}", false);
        check(old_words, "fn f() { a!(desk.open()) }", false);
        check(old_words, "struct Desktop; fn seating() {} // a ledger", true);
    }

    #[test]
    fn old_modules_are_found_below_their_folder_only() {
        let complaints = |path: &str| old_modules(&File::of(path, ""));
        assert_eq!(complaints("src/debug/host/begin.rs").len(), 1);
        assert_eq!(complaints("src/keep.rs").len(), 1);
        assert_eq!(complaints("src/debug/host/registry.rs").len() + complaints("src/window/begin.rs").len(), 0);
    }

    #[test]
    fn old_types_and_functions_are_found_by_their_whole_name() {
        let items = |text: &str| [crate::crate_items::items_of(&File::of("src/wire/frames.rs", text)).unwrap()];
        assert_eq!(old_items(&items("struct Wanted; fn carry_out() {}")).len(), 2);
        assert!(old_items(&items("struct WantedBreakpoint; fn carry() {}")).is_empty());
    }

    #[test]
    fn metaphors_are_found_in_comments_and_messages() {
        check(metaphors, "// Say goodbye first.", false);
        check(metaphors, "let text = \"the Ledger is full\";", false);
        check(metaphors, "// Sends `disconnect`.", true);
    }
}
