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
pub struct CompletedExpression<'a> {
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

/// What a text goes on with. `None`: no name, as in a text, behind a literal, or where one is declared.
pub fn parse_completed(before: &str) -> Option<CompletedExpression<'_>> {
    let tokens = TokenReader::new(before).read_all()?;
    let (begun, tokens) = match tokens.split_last() {
        Some((last, others)) if last.kind == JsTokenKind::Word && last.end == before.len() => {
            (&before[last.start..], others)
        }
        _ => ("", &tokens[..]),
    };
    let names = Some(CompletedExpression { receiver: None, begun });
    let Some((last, others)) = tokens.split_last() else { return names };
    // Statements may end without a semicolon.
    let is_next_line = before[last.end..].contains('\n');
    match last.kind {
        JsTokenKind::Dot => {
            let receiver = before[operand_start(others, before)?..last.start].trim_end();
            Some(CompletedExpression { receiver: Some(receiver), begun })
        }
        JsTokenKind::Word | JsTokenKind::Literal if ends_operand(last, before) && !is_next_line => None,
        _ => names,
    }
}

/// Where the operand begins that the tokens end in. `None`: they end in none.
fn operand_start(tokens: &[JsToken], text: &str) -> Option<usize> {
    let mut start = tokens.len();
    loop {
        let last = tokens[..start].last()?;
        if !ends_operand(last, text) {
            return None;
        }
        start = if last.kind == JsTokenKind::Close { find_open(tokens, start)? } else { start - 1 };
        let Some(previous) = tokens[..start].last() else { break };
        let is_suffix = last.kind == JsTokenKind::Close && ends_operand(previous, text);
        match previous.kind {
            JsTokenKind::Dot => start -= 1,
            // A call or an index.
            _ if is_suffix => {}
            _ => break,
        }
    }
    let is_new = |token: &JsToken| &text[token.start..token.end] == "new";
    start -= tokens[..start].iter().rev().take_while(|token| is_new(token)).count();
    Some(tokens[start].start)
}

/// The place of the bracket that the last of the tokens before `end` closes.
fn find_open(tokens: &[JsToken], end: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens[..end].iter().enumerate().rev() {
        match token.kind {
            JsTokenKind::Close | JsTokenKind::CloseBrace => depth += 1,
            JsTokenKind::Open => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn ends_operand(token: &JsToken, text: &str) -> bool {
    match token.kind {
        JsTokenKind::Word => !KEYWORDS.contains(&&text[token.start..token.end]),
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

    /// `None`: the text ends in a literal or a comment.
    fn read_all(mut self) -> Option<Vec<JsToken>> {
        while let Some(first) = self.text[self.at..].chars().next() {
            self.read_token(first)?;
        }
        Some(self.tokens)
    }

    fn read_token(&mut self, first: char) -> Option<()> {
        let rest = &self.text[self.at..];
        let is_after_operand = self
            .tokens
            .last()
            .is_some_and(|token| ends_operand(token, self.text) || token.kind == JsTokenKind::CloseBrace);
        let starts_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let (kind, length) = match first {
            c if c.is_whitespace() => return self.skip(c.len_utf8()),
            '/' if rest.starts_with("//") => return self.skip(rest.find('\n')?),
            '/' if rest.starts_with("/*") => return self.skip(rest[2..].find("*/")? + 4),
            '/' if !is_after_operand => (JsTokenKind::Literal, regex_length(rest)?),
            '"' | '\'' => (JsTokenKind::Literal, quoted_length(rest, first)?),
            '`' => return self.read_template(self.tokens.len(), self.at, 1),
            c if c.is_ascii_digit() => (JsTokenKind::Literal, number_length(rest)),
            '.' if starts_number(&rest[1..]) => (JsTokenKind::Literal, number_length(rest)),
            c if is_word_part(c) => (JsTokenKind::Word, word_length(rest)),
            '.' if rest.starts_with("...") => (JsTokenKind::Operator, 3),
            '.' => (JsTokenKind::Dot, 1),
            // `a?.5:b` has no dot.
            '?' if rest.starts_with("?.") && !starts_number(&rest[2..]) => (JsTokenKind::Dot, 2),
            '(' | '[' | '{' => {
                self.open.push(None);
                (JsTokenKind::Open, 1)
            }
            ')' | ']' | '}' => match self.open.pop().flatten() {
                Some(template) => return self.read_template(template, self.tokens[template].start, 1),
                None if first == '}' => (JsTokenKind::CloseBrace, 1),
                None => (JsTokenKind::Close, 1),
            },
            other => (JsTokenKind::Operator, other.len_utf8()),
        };
        self.push(kind, self.at, length)
    }

    /// Reads the text of a template to its end, or to its next expression. `first`: its token. What has been read of it
    /// before, is one token.
    fn read_template(&mut self, first: usize, start: usize, skipped: usize) -> Option<()> {
        self.tokens.truncate(first);
        let text = &self.text[self.at + skipped..];
        let mut escaped = false;
        for (at, c) in text.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '`' => {
                    self.at += skipped + at + 1;
                    self.tokens.push(JsToken { kind: JsTokenKind::Literal, start, end: self.at });
                    return Some(());
                }
                '$' if text[at..].starts_with("${") => {
                    self.open.push(Some(first));
                    self.at += skipped + at + 2;
                    self.tokens.push(JsToken { kind: JsTokenKind::Open, start, end: self.at });
                    return Some(());
                }
                _ => {}
            }
        }
        None
    }

    fn push(&mut self, kind: JsTokenKind, start: usize, length: usize) -> Option<()> {
        self.tokens.push(JsToken { kind, start, end: start + length });
        self.skip(length)
    }

    fn skip(&mut self, length: usize) -> Option<()> {
        self.at += length;
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
    match text[whole..].strip_prefix('.') {
        Some(rest) => whole + 1 + word_length(rest),
        None => whole,
    }
}

/// With both quotes. `None`: it does not end.
fn quoted_length(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return None,
            c if c == quote => return Some(at + 1),
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
            '/' if !in_class => return Some(at + 1 + word_length(&text[at + 1..])),
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
