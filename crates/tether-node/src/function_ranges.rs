//! In which function a place of a script is, by its braces alone.
//!
//! V8 has no code for a function that nothing in its scope names: a breakpoint in one is bound at the next statement behind it
//! (V8 11 to 13, of Node 20 and 24).

use std::ops::Range;

use super::js_tokens::{JsToken, JsTokenKind, TokenReader};

/// What stands before the parentheses of a block that is no function.
const CONTROL_WORDS: [&str; 7] = ["if", "for", "while", "switch", "catch", "with", "await"];

/// A line and a column, 0-based; the column in UTF-16 code units.
pub(crate) type ScriptPlace = (i64, i64);

/// Whether a place is outside of the function that the wanted one is in, or that begins on its line. `false` where the text is not
/// understood.
pub(crate) fn leaves_function(text: &str, wanted: ScriptPlace, found: ScriptPlace) -> bool {
    let (Some(start), Some(found)) = (byte_offset(text, wanted), byte_offset(text, found)) else { return false };
    let line = text.get(start..).unwrap_or_default();
    let blank = line.len().saturating_sub(line.trim_start_matches([' ', '\t']).len());
    let line_end = start.saturating_add(line.find('\n').unwrap_or(line.len()));
    let start = start.saturating_add(blank);
    let Some(functions) = function_bodies(text) else { return false };
    let around = functions.iter().filter(|body| body.contains(&start)).min_by_key(|body| body.len());
    let begun =
        || functions.iter().filter(|body| (start..line_end).contains(&body.start)).min_by_key(|body| body.start);
    begun().or(around).is_some_and(|body| found >= body.end)
}

/// Where a place is in the text. `None`: it has no such line.
pub(crate) fn byte_offset(text: &str, (line, column): ScriptPlace) -> Option<usize> {
    let mut start = 0_usize;
    let mut lines = text.split_inclusive('\n');
    for _ in 0..line {
        start = start.saturating_add(lines.next()?.len());
    }
    let mut units = 0_i64;
    for (at, c) in lines.next().unwrap_or_default().char_indices() {
        if units >= column {
            return Some(start.saturating_add(at));
        }
        units = units.saturating_add(i64::try_from(c.len_utf16()).unwrap_or(1));
    }
    (start <= text.len()).then_some(start)
}

/// The place at an offset of the text. `None`: it is behind the text, or inside of a character.
pub(crate) fn script_place(text: &str, offset: usize) -> Option<ScriptPlace> {
    let before = text.get(..offset)?;
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default().encode_utf16().count();
    Some((i64::try_from(line).ok()?, i64::try_from(column).ok()?))
}

/// The bodies of all functions, with their braces. `None`: the braces do not match.
fn function_bodies(text: &str) -> Option<Vec<Range<usize>>> {
    // Its first line may be for the shell.
    let script = if text.starts_with("#!") { text.split_once('\n').map_or("", |(_, rest)| rest) } else { text };
    let code = format!("{script}\n");
    let dropped = text.len().saturating_add(1).saturating_sub(code.len());
    let tokens = TokenReader::new(&code).read_all()?;
    let (mut open, mut bodies) = (Vec::new(), Vec::new());
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            JsTokenKind::Open => open.push(index),
            JsTokenKind::Close | JsTokenKind::CloseBrace => {
                let begun = open.pop()?;
                let opening = tokens.get(begun)?;
                if token.kind == JsTokenKind::CloseBrace && is_function_body(tokens.get(..begun)?, &code) {
                    bodies.push(opening.start.saturating_add(dropped)..token.end.saturating_add(dropped));
                }
            }
            _ => {}
        }
    }
    open.is_empty().then_some(bodies)
}

/// Whether a brace behind these tokens begins the body of a function.
fn is_function_body(before: &[JsToken], text: &str) -> bool {
    let Some((last, others)) = before.split_last() else { return false };
    if last.kind == JsTokenKind::Operator && last.text(text) == ">" {
        return others.last().is_some_and(|token| token.text(text) == "=" && token.end == last.start);
    }
    if last.kind != JsTokenKind::Close || last.text(text) != ")" {
        return false;
    }
    let mut depth = 0_usize;
    let head = before.iter().rposition(|token| {
        match token.kind {
            JsTokenKind::Close | JsTokenKind::CloseBrace => depth = depth.saturating_add(1),
            JsTokenKind::Open => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    let word = head.and_then(|head| before.get(head.checked_sub(1)?));
    word.is_some_and(|word| !CONTROL_WORDS.contains(&word.text(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
#!/usr/bin/env node
function never(total) {
  if (total > 1) {
    total++;
  }
  // nothing
  return total;
}
console.log('one', {
  a: 1,
});
const f = (x) => {
  return `${x}}`;
};
class C {
  get m() { return /[}]/.test('}'); }
  n(a = ')') {
    for (const b of a) {
      b();
    }
  }
}
f();
//# sourceMappingURL=x";

    #[test]
    fn a_place_behind_the_function_leaves_it() {
        let check = |wanted: i64, found: ScriptPlace, expect: bool| {
            assert_eq!(leaves_function(TEXT, (wanted, 0), found), expect, "{wanted} {found:?}");
        };
        // Inside, also at its end.
        for (wanted, found) in [(3, (4, 2)), (5, (6, 2)), (6, (7, 0)), (7, (7, 0)), (18, (19, 0)), (16, (17, 4))] {
            check(wanted, found, false);
        }
        for wanted in 1..=7 {
            check(wanted, (8, 0), true);
        }
        check(12, (22, 0), true);
        check(18, (22, 0), true);
        // No function is left.
        check(9, (11, 10), false);
        check(10, (22, 0), false);
        check(14, (22, 0), false);
        check(3, (99, 0), false);
        assert!(!leaves_function("function f() { '", (0, 0), (1, 0)));
        assert!(leaves_function("function f() {\n  ä('ß'); }\ng()", (1, 0), (2, 0)));
    }
}
