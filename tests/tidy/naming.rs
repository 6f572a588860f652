//! How types and functions are named: one concept, one name; functions that act are verb + object; predicates are pure.
//!
//! The limits are shares of the whole crate, so that one more name is a choice and many are a complaint.

use std::collections::BTreeMap;

use crate::crate_items::{Function, Items, Named};

/// The share of types, in percent, that may have their bare name in common with another type.
const MOST_SHARED_TYPES: usize = 12;
/// The share of free functions, in percent, that may have a name of one word.
const MOST_ONE_WORD_FUNCTIONS: usize = 30;

/// Complains when too many types share their bare name; lists them.
pub fn shared_type_names(all: &[Items]) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<&Named>> = BTreeMap::new();
    for item in all.iter().flat_map(|items| &items.types) {
        by_name.entry(&item.name).or_default().push(item);
    }
    let total: usize = by_name.values().map(Vec::len).sum();
    let shared: Vec<&Named> = by_name.into_values().filter(|those| those.len() > 1).flatten().collect();
    println!("types: {total}, sharing a bare name: {}", share(shared.len(), total));
    list_when(exceeds(shared.len(), total, MOST_SHARED_TYPES), "shares its bare name with another type", shared)
}

/// Complains when too many free functions are named by one word; lists them.
pub fn one_word_functions(all: &[Items]) -> Vec<String> {
    let free: Vec<&Function> = all.iter().flat_map(|items| &items.functions).filter(|it| it.is_free).collect();
    let short: Vec<&Named> = free.iter().map(|it| &it.item).filter(|it| !it.name.contains('_')).collect();
    println!("free functions: {}, of one word: {}", free.len(), share(short.len(), free.len()));
    let too_many = exceeds(short.len(), free.len(), MOST_ONE_WORD_FUNCTIONS);
    list_when(too_many, "is one word: say verb and object", short)
}

/// `is_`, `has_` and `can_` return a bool and change nothing.
pub fn impure_predicates(all: &[Items]) -> Vec<String> {
    let functions = all.iter().flat_map(|items| &items.functions);
    let predicates = functions.filter(|it| ["is_", "has_", "can_"].iter().any(|word| it.item.name.starts_with(word)));
    let bad = predicates.filter(|it| !it.returns_bool || it.changes_self).map(|it| &it.item);
    list_when(true, "is a predicate, so it must return `bool` and take `&self`", bad)
}

fn exceeds(part: usize, whole: usize, percent: usize) -> bool {
    part * 100 > whole * percent
}

fn share(part: usize, whole: usize) -> String {
    format!("{part} ({:.1} %)", part as f64 * 100.0 / whole.max(1) as f64)
}

fn list_when<'a>(complain: bool, what: &str, those: impl IntoIterator<Item = &'a Named>) -> Vec<String> {
    let line = |it: &Named| format!("{}:{}: `{}` {what}", it.path, it.line, it.name);
    if complain { those.into_iter().map(line).collect() } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crate_items::items_of;
    use crate::sources::File;

    fn check(rule: fn(&[Items]) -> Vec<String>, code: &str, complaints: usize) {
        let items = items_of(&File::of("src/wire/frames.rs", code)).unwrap();
        let found = rule(&[items]);
        assert_eq!(found.len(), complaints, "{code}: {found:?}");
    }

    #[test]
    fn types_that_share_a_name_are_listed_when_they_are_too_many() {
        check(shared_type_names, "struct A; struct B; mod inner { struct A; }", 2);
        check(shared_type_names, "struct A; struct B; struct C;", 0);
    }

    #[test]
    fn one_word_functions_are_listed_when_they_are_too_many() {
        check(one_word_functions, "fn send() {} fn read_frame() {}", 1);
        check(one_word_functions, "impl A { fn send() {} } fn read_frame() {}", 0);
    }

    #[test]
    fn a_predicate_returns_bool_and_changes_nothing() {
        check(
            impure_predicates,
            "impl A { fn is_whole(&self) -> bool { true } async fn has_room(&self) -> bool {} }",
            0,
        );
        check(impure_predicates, "impl A { fn is_whole(&mut self) -> bool { true } }", 1);
        check(impure_predicates, "fn is_listening(port: u16) -> io::Result<bool> { Ok(true) }", 0);
        check(impure_predicates, "impl A { fn has_ended(&self) -> Option<u8> { None } }", 1);
        check(impure_predicates, "fn can_stop() {}", 1);
    }
}
