//! The lambdas of a line, by its source: which of them a column means.
//!
//! Class files have no columns. javac writes the methods of lambdas in the reverse order of their ends, so that those of one line
//! are matched with the source by their order. Does not depend on a virtual machine.

use std::cmp::Reverse;
use std::ops::Range;

use tree_sitter::{Node, Parser};

/// What a column of a line means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnTarget {
    /// The lambda with that number, in the order of their ends, of `count` whose code begins on the line.
    Lambda { number: usize, count: usize },
    /// The code around the lambdas, which are `count`.
    Around { count: usize },
}

/// What a column means; both are counted from 1, the column in UTF-16 code units.
pub(crate) fn target_of_column(text: &str, line: usize, column: usize) -> Option<ColumnTarget> {
    let row = line.checked_sub(1)?;
    let wanted = byte_column(text.lines().nth(row)?, column.checked_sub(1)?);
    let before: usize = text.split_inclusive('\n').take(row).map(str::len).sum();
    let wanted = before.saturating_add(wanted);
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_java::LANGUAGE.into()).ok()?;
    let tree = parser.parse(text, None)?;
    let (mut found, mut left): (Vec<Range<usize>>, _) = (Vec::new(), vec![tree.root_node()]);
    while let Some(node) = left.pop() {
        if !(node.start_position().row..=node.end_position().row).contains(&row) {
            continue;
        }
        if node.kind() == "lambda_expression" && first_code_row(node) == Some(row) {
            found.push(node.byte_range());
        }
        let mut cursor = node.walk();
        left.extend(node.named_children(&mut cursor));
    }
    found.sort_by_key(|range| (range.end, Reverse(range.start)));
    let count = found.len();
    // The innermost one ends first.
    Some(match found.iter().position(|range| range.contains(&wanted)) {
        Some(number) => ColumnTarget::Lambda { number, count },
        None => ColumnTarget::Around { count },
    })
}

/// The row on which the code of a lambda begins.
fn first_code_row(lambda: Node<'_>) -> Option<usize> {
    let body = lambda.child_by_field_name("body")?;
    let first = if body.kind() == "block" { body.named_child(0).unwrap_or(body) } else { body };
    Some(first.start_position().row)
}

fn byte_column(line: &str, units: usize) -> usize {
    let mut left = units;
    let before = line.chars().take_while(|letter| {
        let is_before = left > 0;
        left = left.saturating_sub(letter.len_utf16());
        is_before
    });
    before.map(char::len_utf8).sum()
}

/// The number in the name that javac gives the method of a lambda, `lambda$main$3`.
pub(crate) fn is_lambda_method(name: &str) -> bool {
    let rest = name.strip_prefix("lambda$").and_then(|rest| rest.rsplit_once('$'));
    rest.is_some_and(|(_, number)| !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_means_the_innermost_lambda_or_the_code_around_all() {
        let text =
            "class A {\n  Object f = ü(a -> b -> a + b, () -> 1);\n  Object g = h(() -> {\n    k(() -> 2);\n  });\n}\n";
        let of = |line: usize, words: &str| {
            let code = text.lines().nth(line - 1).unwrap();
            let column = code[..code.find(words).unwrap()].encode_utf16().count() + 1;
            target_of_column(text, line, column)
        };
        let lambda = |number, count| Some(ColumnTarget::Lambda { number, count });
        assert_eq!(of(2, "a + b"), lambda(0, 3));
        assert_eq!(of(2, "a -> b"), lambda(1, 3));
        assert_eq!(of(2, "() -> 1"), lambda(2, 3));
        assert_eq!(of(2, "f ="), Some(ColumnTarget::Around { count: 3 }));
        assert_eq!(of(3, "() ->"), Some(ColumnTarget::Around { count: 0 }), "its code is on further lines");
        assert_eq!((of(4, "2"), of(4, "k(")), (lambda(0, 2), lambda(1, 2)));
        assert_eq!((target_of_column(text, 0, 1), target_of_column(text, 99, 1)), (None, None));
        assert!(is_lambda_method("lambda$main$0") && is_lambda_method("lambda$a$b$12"));
        assert!(!is_lambda_method("lambda$main$x") && !is_lambda_method("main") && !is_lambda_method("lambda$1"));
    }
}
