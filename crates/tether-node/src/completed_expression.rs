//! The expression that a text of JavaScript ends in, as far as completions need it: what stands before the last dot, and the
//! name that has been begun.
//!
//! Reads tokens: a dot in a string, a comment or a regular expression is none. Runs nothing.

/// Words that no operand ends in.
const KEYWORDS: [&str; 14] = [
    "return",
    "typeof",
    "case",
    "in",
    "of",
    "instanceof",
    "new",
    "delete",
    "void",
    "throw",
    "await",
    "yield",
    "else",
    "do",
];

/// What is completed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CompletedExpression<'a> {
    /// The expression before the dot, if there is one.
    pub receiver: Option<&'a str>,
    /// The name that has been begun; it may be empty.
    pub begun: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsTokenKind {
    /// A name or a keyword.
    Word,
    /// A number, a text, a regular expression, a template.
    Literal,
    /// `.` or `?.`
    Dot,
    Open,
    /// `)` or `]`
    Close,
    /// `}`
    CloseBrace,
    Operator,
}

#[derive(Clone, Copy, Debug)]
struct JsToken {
    kind: JsTokenKind,
    /// Bytes of the text.
    start: usize,
    end: usize,
}

impl JsToken {
    /// Its part of the text.
    fn text<'a>(&self, text: &'a str) -> &'a str {
        text.get(self.start..self.end).unwrap_or_default()
    }
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

fn ends_operand(token: &JsToken, text: &str) -> bool {
    match token.kind {
        JsTokenKind::Word => !KEYWORDS.contains(&token.text(text)),
        JsTokenKind::Literal | JsTokenKind::Close => true,
        _ => false,
    }
}

/// Splits a text into tokens.
struct TokenReader<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<JsToken>,
    /// For each bracket that is open: the token at which a template begins, if it is one of its expressions.
    open: Vec<Option<usize>>,
}

impl<'a> TokenReader<'a> {
    fn new(text: &'a str) -> TokenReader<'a> {
        TokenReader { text, at: 0, tokens: Vec::new(), open: Vec::new() }
    }

    /// What has not been read yet.
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// `None`: the text ends in a literal or a comment.
    fn read_all(mut self) -> Option<Vec<JsToken>> {
        while let Some(first) = self.rest().chars().next() {
            self.read_token(first)?;
        }
        Some(self.tokens)
    }

    fn read_token(&mut self, first: char) -> Option<()> {
        let rest = self.rest();
        let behind = rest.strip_prefix(first).unwrap_or_default();
        let is_after_operand = self
            .tokens
            .last()
            .is_some_and(|token| ends_operand(token, self.text) || token.kind == JsTokenKind::CloseBrace);
        let starts_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let (kind, length) = match first {
            c if c.is_whitespace() => return self.skip(c.len_utf8()),
            '/' if rest.starts_with("//") => return self.skip(rest.find('\n')?),
            '/' if rest.starts_with("/*") => return self.skip(comment_length(rest)?),
            '/' if !is_after_operand => (JsTokenKind::Literal, regex_length(rest)?),
            '"' | '\'' => (JsTokenKind::Literal, quoted_length(rest, first)?),
            '`' => return self.read_template(self.tokens.len(), self.at),
            c if c.is_ascii_digit() => (JsTokenKind::Literal, number_length(rest)),
            '.' if starts_number(behind) => (JsTokenKind::Literal, number_length(rest)),
            c if is_word_part(c) => (JsTokenKind::Word, word_length(rest)),
            '.' if rest.starts_with("...") => (JsTokenKind::Operator, 3),
            '.' => (JsTokenKind::Dot, 1),
            // `a?.5:b` has no dot.
            '?' if behind.strip_prefix('.').is_some_and(|rest| !starts_number(rest)) => (JsTokenKind::Dot, 2),
            '(' | '[' | '{' => {
                self.open.push(None);
                (JsTokenKind::Open, 1)
            }
            ')' | ']' | '}' => match self.open.pop().flatten() {
                Some(template) => return self.read_template(template, self.tokens.get(template)?.start),
                None if first == '}' => (JsTokenKind::CloseBrace, 1),
                None => (JsTokenKind::Close, 1),
            },
            other => (JsTokenKind::Operator, other.len_utf8()),
        };
        self.push(kind, self.at, length)
    }

    /// Reads the text of a template to its end, or to its next expression. `first`: its token. What has been read of it
    /// before, is one token.
    fn read_template(&mut self, first: usize, start: usize) -> Option<()> {
        self.tokens.truncate(first);
        let mut escaped = false;
        let mut text = self.rest().char_indices().skip(1).peekable();
        while let Some((at, c)) = text.next() {
            let (kind, length) = match c {
                _ if escaped => {
                    escaped = false;
                    continue;
                }
                '`' => (JsTokenKind::Literal, 1),
                '$' if text.next_if(|(_, next)| *next == '{').is_some() => {
                    self.open.push(Some(first));
                    (JsTokenKind::Open, 2)
                }
                other => {
                    escaped = other == '\\';
                    continue;
                }
            };
            self.at = self.at.saturating_add(at).saturating_add(length);
            self.tokens.push(JsToken { kind, start, end: self.at });
            return Some(());
        }
        None
    }

    fn push(&mut self, kind: JsTokenKind, start: usize, length: usize) -> Option<()> {
        self.tokens.push(JsToken { kind, start, end: start.saturating_add(length) });
        self.skip(length)
    }

    fn skip(&mut self, length: usize) -> Option<()> {
        self.at = self.at.saturating_add(length);
        Some(())
    }
}

fn is_word_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '#')
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !is_word_part(c)).unwrap_or(text.len())
}

/// `1`, `1.5`, `0xff`, `1_000n`; in `1..toFixed()` the first dot is the number's.
fn number_length(text: &str) -> usize {
    let whole = word_length(text);
    let fraction = text.get(whole..).and_then(|rest| rest.strip_prefix('.'));
    fraction.map_or(whole, |fraction| whole.saturating_add(1).saturating_add(word_length(fraction)))
}

/// With its stars and slashes. `None`: it does not end.
fn comment_length(text: &str) -> Option<usize> {
    let (content, _) = text.strip_prefix("/*")?.split_once("*/")?;
    Some(content.len().saturating_add("/**/".len()))
}

/// With both quotes. `None`: it does not end.
fn quoted_length(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return None,
            c if c == quote => return Some(at.saturating_add(1)),
            _ => {}
        }
    }
    None
}

/// With both slashes; its flags are a word behind it, and belong to it. `None`: it does not end.
fn regex_length(text: &str) -> Option<usize> {
    let (mut escaped, mut in_class) = (false, false);
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return None,
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => {
                let end = at.saturating_add(1);
                return Some(end.saturating_add(word_length(text.get(end..)?)));
            }
            _ => {}
        }
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
