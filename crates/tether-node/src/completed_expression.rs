//! The expression that a text of JavaScript ends in, as far as completions need it: what stands before the last dot, and the
//! name that has been begun.
//!
//! A dot in a string, a comment or a regular expression is none. Runs nothing.

use super::js_tokens::{JsToken, JsTokenKind, TokenReader, ends_operand};

/// What is completed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CompletedExpression<'a> {
    /// The expression before the dot, if there is one.
    pub receiver: Option<&'a str>,
    /// The name that has been begun; it may be empty.
    pub begun: &'a str,
}

/// What a text goes on with. `None`: no name, as in a text, behind a literal, or where one is declared.
pub(crate) fn parse_completed(before: &str) -> Option<CompletedExpression<'_>> {
    let tokens = TokenReader::new(before).read_all()?;
    let (begun, tokens) = match tokens.split_last() {
        Some((last, others)) if last.kind == JsTokenKind::Word && last.end == before.len() => {
            (last.text(before), others)
        }
        _ => ("", tokens.as_slice()),
    };
    let names = Some(CompletedExpression { receiver: None, begun });
    let Some((last, others)) = tokens.split_last() else { return names };
    // Statements may end without a semicolon.
    let is_next_line = before.get(last.end..).is_some_and(|rest| rest.contains('\n'));
    match last.kind {
        JsTokenKind::Dot => {
            let receiver = before.get(operand_start(others, before)?..last.start)?.trim_end();
            Some(CompletedExpression { receiver: Some(receiver), begun })
        }
        JsTokenKind::Word | JsTokenKind::Literal if ends_operand(last, before) && !is_next_line => None,
        _ => names,
    }
}

/// Where the operand begins that the tokens end in. `None`: they end in none.
fn operand_start(tokens: &[JsToken], text: &str) -> Option<usize> {
    let mut tokens = tokens;
    let first = loop {
        let (last, others) = tokens.split_last()?;
        if !ends_operand(last, text) {
            return None;
        }
        let is_closed = last.kind == JsTokenKind::Close;
        let (first, before) = if is_closed { find_open(tokens)? } else { (last, others) };
        tokens = before;
        let Some((previous, before)) = tokens.split_last() else { break first };
        match previous.kind {
            JsTokenKind::Dot => tokens = before,
            // A call or an index.
            _ if is_closed && ends_operand(previous, text) => {}
            _ => break first,
        }
    };
    let news = tokens.iter().rev().take_while(|token| token.text(text) == "new");
    Some(news.last().unwrap_or(first).start)
}

/// The bracket that the last of the tokens closes, and the tokens before it.
fn find_open(tokens: &[JsToken]) -> Option<(&JsToken, &[JsToken])> {
    let (mut tokens, mut depth) = (tokens, 0_usize);
    while let Some((last, others)) = tokens.split_last() {
        match last.kind {
            JsTokenKind::Close | JsTokenKind::CloseBrace => depth = depth.saturating_add(1),
            JsTokenKind::Open => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some((last, others));
        }
        tokens = others;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &str, receiver: Option<&str>, begun: &str) {
        assert_eq!(parse_completed(before), Some(CompletedExpression { receiver, begun }), "{before}");
    }

    #[test]
    fn names_are_completed() {
        for (before, begun) in [
            ("", ""),
            ("tot", "tot"),
            ("1 + $a_1", "$a_1"),
            ("f(", ""),
            ("[...ord", "ord"),
            ("return ", ""),
            ("typeof x", "x"),
            ("a = 1\nfo", "fo"),
            ("// note\nx", "x"),
            ("a / b / c", "c"),
            ("`${tot", "tot"),
            ("`${a} ${ {b: `${c}`} } ${d", "d"),
            ("{ größe", "größe"),
        ] {
            check(before, None, begun);
        }
    }

    #[test]
    fn the_receiver_is_the_whole_operand_before_the_dot() {
        for (before, receiver, begun) in [
            ("a.", "a", ""),
            ("1 + order.it", "order", "it"),
            ("f(this.lines[0].", "this.lines[0]", ""),
            ("a.b.c", "a.b", "c"),
            ("a?.b?.c", "a?.b", "c"),
            ("a?.[0]?.(1).x", "a?.[0]?.(1)", "x"),
            ("call(1, 'a.b)').n", "call(1, 'a.b)')", "n"),
            ("list\n  .map(x => x.y)\n  .fil", "list\n  .map(x => x.y)", "fil"),
            ("(a + b).", "(a + b)", ""),
            ("x = [1, 2].", "[1, 2]", ""),
            ("return [1].", "[1]", ""),
            ("'te.xt'.", "'te.xt'", ""),
            ("`a${b.c}d`.len", "`a${b.c}d`", "len"),
            ("`${order.", "order", ""),
            ("/[/.]\\/x/gi.te", "/[/.]\\/x/gi", "te"),
            ("a / b.c", "b", "c"),
            ("1..to", "1.", "to"),
            ("new Map().", "new Map()", ""),
            ("await job.re", "job", "re"),
            ("!done.x", "done", "x"),
            ("a ? b.c : d.e", "d", "e"),
            ("a /* x. */ .b", "a /* x. */", "b"),
            ("map.get('k').", "map.get('k')", ""),
        ] {
            check(before, Some(receiver), begun);
        }
    }

    #[test]
    fn nothing_is_completed_in_literals_and_comments_or_behind_values() {
        for before in [
            "'a.b", "\"a", "`a.b", "// a.b", "/* a.", "/a.b", "1", "1.5", "'a'", "let x", "a b", "{}.", ".", "a..",
            "+.", ").x", "'open\n", "1.to",
        ] {
            assert_eq!(parse_completed(before), None, "{before}");
        }
    }
}
