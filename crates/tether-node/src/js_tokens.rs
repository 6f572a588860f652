//! Splits JavaScript into tokens, as far as completions and the ranges of functions need them. Runs nothing.

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

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsTokenKind {
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

/// A token, by its place in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsToken {
    pub kind: JsTokenKind,
    /// Bytes of the text.
    pub start: usize,
    pub end: usize,
}

impl JsToken {
    /// Its part of the text.
    pub(crate) fn text<'a>(&self, text: &'a str) -> &'a str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

/// Whether an operand may end in a token.
pub(crate) fn ends_operand(token: &JsToken, text: &str) -> bool {
    match token.kind {
        JsTokenKind::Word => !KEYWORDS.contains(&token.text(text)),
        JsTokenKind::Literal | JsTokenKind::Close => true,
        _ => false,
    }
}

/// Splits a text into tokens.
pub(crate) struct TokenReader<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<JsToken>,
    /// For each bracket that is open: the token at which a template begins, if it is one of its expressions.
    open: Vec<Option<usize>>,
}

impl<'a> TokenReader<'a> {
    /// Reads that text.
    pub(crate) fn new(text: &'a str) -> TokenReader<'a> {
        TokenReader { text, at: 0, tokens: Vec::new(), open: Vec::new() }
    }

    /// What has not been read yet.
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// All tokens. `None`: the text ends in a literal or a comment.
    pub(crate) fn read_all(mut self) -> Option<Vec<JsToken>> {
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
