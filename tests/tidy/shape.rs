//! The shape of the crate: how many public items are documented, how long functions are.

use crate::crate_items::{Function, Items, Named};

/// The share of public items, in percent, that must have a doc comment.
const LEAST_DOCUMENTED: usize = 97;
/// The lines of code that 99 of 100 functions keep to.
const P99_FUNCTION_LINES: usize = 40;

/// Complains when too many public items have no doc comment; lists them.
pub fn undocumented_items(all: &[Items]) -> Vec<String> {
    let public: Vec<&(Named, bool)> = all.iter().flat_map(|items| &items.public).collect();
    let missing: Vec<&Named> = public.iter().filter(|(_, documented)| !documented).map(|(item, _)| item).collect();
    let documented = public.len() - missing.len();
    println!("public items: {}, documented: {documented}", public.len());
    if documented * 100 >= public.len() * LEAST_DOCUMENTED {
        return Vec::new();
    }
    missing.into_iter().map(|it| format!("{}:{}: `{}` has no doc comment", it.path, it.line, it.name)).collect()
}

/// Complains when more than one function in a hundred is too long; lists those.
pub fn long_functions(all: &[Items]) -> Vec<String> {
    let functions: Vec<&Function> = all.iter().flat_map(|items| &items.functions).collect();
    let long: Vec<&&Function> = functions.iter().filter(|it| it.code_lines > P99_FUNCTION_LINES).collect();
    println!("functions: {}, longer than {P99_FUNCTION_LINES} lines: {}", functions.len(), long.len());
    if long.len() * 100 <= functions.len() {
        return Vec::new();
    }
    let line =
        |it: &&Function| format!("{}:{}: {} lines in `{}`", it.item.path, it.item.line, it.code_lines, it.item.name);
    long.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crate_items::items_of;
    use crate::sources::File;

    fn check(rule: fn(&[Items]) -> Vec<String>, code: &str, holds: bool) {
        let items = items_of(&File::of("src/wire/frames.rs", code)).unwrap();
        let found = rule(&[items]);
        assert_eq!(found.is_empty(), holds, "{code}: {found:?}");
    }

    #[test]
    fn public_items_have_doc_comments() {
        check(undocumented_items, "/// A frame.\npub struct Frame; struct Inner;", true);
        check(undocumented_items, "pub struct Frame;", false);
        check(undocumented_items, "impl Frame { pub fn read() {} }", false);
    }

    #[test]
    fn a_long_function_is_found() {
        check(long_functions, &format!("fn f() {{\n{}}}", "a();\n".repeat(38)), true);
        check(long_functions, &format!("fn f() {{\n{}}}", "a();\n".repeat(40)), false);
        check(long_functions, &format!("fn f() {{\n{}}}", "// why\n".repeat(90)), true);
    }
}
