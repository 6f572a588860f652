//! Translates one pattern line of an ignore file from git's syntax to globset's.
//!
//! Owns git's interpretation of a pattern (`dir.c: parse_path_pattern`, `wildmatch.c: dowild`): wildcards, escapes, the
//! meaning of `**`, and patterns that can never match. globset does the matching. Does not depend on files or line
//! numbers.
//!
//! A pattern may need two globs: git removes the literal prefix before the first wildcard, so that in `lib/ab**/x` the
//! `**` is at the start of the rest and matches across folders, which globset supports only after a slash.

use thiserror::Error;

/// A pattern as globs that globset can compile.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GlobPattern {
    /// A match of any of them is a match; relative to the root, without a leading slash.
    pub globs: Vec<String>,
    pub negated: bool,
    pub dirs_only: bool,
}

/// Why a pattern can never match: git skips it silently, here it is reported.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum PatternError {
    #[error("the character class is not closed: write `\\[` for a literal bracket")]
    UnclosedClass,
    #[error("`[:{0}:]` is not a character class")]
    UnknownClass(String),
    #[error("the character class contains nothing that a file name can contain")]
    EmptyClass,
    #[error("a backslash at the end escapes nothing")]
    TrailingBackslash,
    #[error("it ends in two slashes")]
    TrailingSlashes,
}

/// Translates one pattern line without comments, line end and trailing spaces. `None` for a pattern without a body
/// (`!`, `/`, ``), which git skips, too.
pub(super) fn parse_pattern(line: &str) -> Result<Option<GlobPattern>, PatternError> {
    let (negated, body) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
    let (dirs_only, body) = body.strip_suffix('/').map_or((false, body), |rest| (true, rest));
    if body.is_empty() {
        return Ok(None);
    }
    let mut globs = if body.contains('/') { translate_path(body)? } else { vec![translate_name(body)?] };
    // No path ends in a slash, but globset matches everything with a single `**/`.
    globs.retain(|glob| !glob.ends_with('/'));
    if globs.is_empty() {
        return Err(PatternError::TrailingSlashes);
    }
    Ok(Some(GlobPattern { globs, negated, dirs_only }))
}

/// Translates a pattern without a slash: it is matched against the last component of any path; `**` means `*`.
fn translate_name(body: &str) -> Result<String, PatternError> {
    let body: Vec<char> = body.chars().collect();
    let mut glob = String::from("**/");
    let mut at = 0;
    while at < body.len() {
        at = match count_stars(&body[at..]) {
            0 => push_element(&body, at, &mut glob)?,
            run => {
                glob.push('*');
                at + run
            }
        };
    }
    Ok(glob)
}

/// Translates a pattern with a slash: it is matched against the whole path.
fn translate_path(body: &str) -> Result<Vec<String>, PatternError> {
    let body: Vec<char> = body.strip_prefix('/').unwrap_or(body).chars().collect();
    let first_wildcard = body.iter().position(|c| matches!(c, '*' | '?' | '[' | '\\')).unwrap_or(body.len());
    let mut globs = vec![String::new()];
    // Where git's matcher starts anew, and so does not check the character before a `**`.
    let mut restart = first_wildcard;
    let mut at = 0;
    while at < body.len() {
        at = match count_stars(&body[at..]) {
            0 => {
                let mut next = at;
                for glob in &mut globs {
                    next = push_element(&body, at, glob)?;
                }
                next
            }
            run => {
                let is_first = at == restart || body[at - 1] == '/';
                let next = push_double_star(&body, at, run, is_first, &mut globs);
                restart = next;
                next
            }
        };
    }
    Ok(globs)
}

/// Appends a run of stars, and the slash after it if that belongs to it; returns the next position.
fn push_double_star(body: &[char], at: usize, run: usize, is_first: bool, globs: &mut Vec<String>) -> usize {
    let next = at + run;
    let crosses = run > 1 && is_first;
    let after_slash = globs[0].is_empty() || globs[0].ends_with('/');
    match &body[next..] {
        [] if crosses && after_slash => push_to_all(globs, "**"),
        [] if crosses => push_alternatives(globs, "*", "*/**"),
        ['/', rest @ ..] if crosses => {
            if after_slash {
                push_to_all(globs, "**/")
            } else {
                push_alternatives(globs, "", "*/**/")
            }
            return next + 1 + skip_repeated(rest);
        }
        ['\\', '/', ..] if crosses => {
            // An escaped slash cannot match "no folder at all".
            push_to_all(globs, "*/**/");
            return next + 2;
        }
        _ => push_to_all(globs, "*"),
    }
    next
}

/// The length of further `**/` after one: they have no effect, and dropping them limits the number of globs.
fn skip_repeated(rest: &[char]) -> usize {
    let mut at = 0;
    loop {
        match count_stars(&rest[at..]) {
            run if run > 1 && rest.get(at + run) == Some(&'/') => at += run + 1,
            _ => return at,
        }
    }
}

fn push_to_all(globs: &mut [String], text: &str) {
    globs.iter_mut().for_each(|glob| glob.push_str(text));
}

fn push_alternatives(globs: &mut Vec<String>, here: &str, there: &str) {
    let other: Vec<String> = globs.iter().map(|glob| format!("{glob}{there}")).collect();
    push_to_all(globs, here);
    globs.extend(other);
}

fn count_stars(body: &[char]) -> usize {
    body.iter().take_while(|c| **c == '*').count()
}

/// Appends the element at `at`, which is not a star; returns the next position.
fn push_element(body: &[char], at: usize, glob: &mut String) -> Result<usize, PatternError> {
    match body[at] {
        '?' => glob.push('?'),
        '[' => return push_class(body, at, glob),
        '\\' => {
            push_literal(*body.get(at + 1).ok_or(PatternError::TrailingBackslash)?, glob);
            return Ok(at + 2);
        }
        c => push_literal(c, glob),
    }
    Ok(at + 1)
}

fn push_literal(c: char, glob: &mut String) {
    if matches!(c, '?' | '*' | '[' | ']' | '{' | '}' | ',' | '\\' | '!' | '^') {
        glob.push('\\');
    }
    glob.push(c);
}

/// The members of a bracket expression. Git compares bytes; here a character beyond ASCII is one member, which is
/// equivalent for names in valid UTF-8, except as described in `ignore_rules`.
struct CharacterClass {
    ascii: [bool; 128],
    wide: Vec<(char, char)>,
}

/// Appends the bracket expression at `at`, parsed as `dowild` does; returns the next position.
fn push_class(body: &[char], at: usize, glob: &mut String) -> Result<usize, PatternError> {
    let char_at = |at: usize| body.get(at).copied().ok_or(PatternError::UnclosedClass);
    let mut members = CharacterClass { ascii: [false; 128], wide: Vec::new() };
    let negated = matches!(char_at(at + 1)?, '!' | '^');
    let mut at = at + 1 + usize::from(negated);
    let mut before = None;
    loop {
        let c = char_at(at)?;
        before = match (c, before) {
            ('\\', _) => {
                at += 1;
                members.add(char_at(at)?)
            }
            ('-', Some(low)) if body.get(at + 1).is_some_and(|c| *c != ']') => {
                at += 1 + usize::from(body[at + 1] == '\\');
                members.add_range(low, char_at(at)?)
            }
            ('[', _) if body.get(at + 1) == Some(&':') => match parse_named_class(body, at)? {
                Some((name, end)) => {
                    at = end;
                    members.add_named(&name)?
                }
                None => members.add(c),
            },
            _ => members.add(c),
        };
        at += 1;
        if char_at(at)? == ']' {
            members.push_to(negated, glob)?;
            return Ok(at + 1);
        }
    }
}

/// The name in `[:name:]` and the position of its `]`; `None` if it does not have that form.
fn parse_named_class(body: &[char], at: usize) -> Result<Option<(String, usize)>, PatternError> {
    let start = at + 2;
    let end = body[start..].iter().position(|c| *c == ']').ok_or(PatternError::UnclosedClass)? + start;
    let well_formed = end > start && body[end - 1] == ':';
    Ok(well_formed.then(|| (body[start..end - 1].iter().collect(), end)))
}

impl CharacterClass {
    /// Adds one member; returns it as the start of a range, should `-` follow.
    fn add(&mut self, c: char) -> Option<char> {
        match self.ascii.get_mut(c as usize) {
            Some(member) => *member = true,
            None => self.wide.push((c, c)),
        }
        Some(c)
    }

    fn add_range(&mut self, low: char, high: char) -> Option<char> {
        if high.is_ascii() {
            (low as usize..=high as usize).for_each(|c| self.ascii[c] = true);
        } else if low <= high {
            self.wide.push((low, high));
        }
        None
    }

    fn add_named(&mut self, name: &str) -> Result<Option<char>, PatternError> {
        let holds: fn(char) -> bool = match name {
            "alnum" => |c| c.is_ascii_alphanumeric(),
            "alpha" => |c| c.is_ascii_alphabetic(),
            "blank" => |c| matches!(c, ' ' | '\t'),
            "cntrl" => |c| c.is_ascii_control(),
            "digit" => |c| c.is_ascii_digit(),
            "graph" => |c| c.is_ascii_graphic(),
            "lower" => |c| c.is_ascii_lowercase(),
            "print" => |c| c.is_ascii_graphic() || c == ' ',
            "punct" => |c| c.is_ascii_punctuation(),
            // Git's own table: without vertical tab and form feed.
            "space" => |c| matches!(c, ' ' | '\t' | '\n' | '\r'),
            "upper" => |c| c.is_ascii_uppercase(),
            "xdigit" => |c| c.is_ascii_hexdigit(),
            other => return Err(PatternError::UnknownClass(other.to_owned())),
        };
        (0..128u8).filter(|c| holds(char::from(*c))).for_each(|c| self.ascii[c as usize] = true);
        Ok(None)
    }

    /// Appends the class in globset's syntax, which has no escapes: `]` must be first, `-` first or last, `!` and `^`
    /// not first. No class matches a slash.
    fn push_to(mut self, negated: bool, glob: &mut String) -> Result<(), PatternError> {
        self.ascii['/' as usize] = negated;
        let mut has = |c: char| std::mem::take(&mut self.ascii[c as usize]);
        let (bracket, dash, bang, caret) = (has(']'), has('-'), has('!'), has('^'));
        let mut plain: String = (0..128u8).filter(|c| self.ascii[*c as usize]).map(char::from).collect();
        for (low, high) in self.wide {
            plain.push(low);
            if low < high {
                plain.extend(['-', high]);
            }
        }
        match (bracket || dash || negated || !plain.is_empty(), bang, caret) {
            (false, false, false) => return Err(PatternError::EmptyClass),
            (false, true, true) => glob.push_str("{\\!,\\^}"),
            (false, true, false) => glob.push_str("\\!"),
            (false, false, true) => glob.push_str("\\^"),
            (true, ..) => {
                let when = |yes: bool, text: &'static str| if yes { text } else { "" };
                let open = if negated { "[!" } else { "[" };
                let first = if bracket { "]" } else { when(dash, "-") };
                let last = when(bracket && dash, "-");
                *glob += &[open, first, &plain, when(bang, "!"), when(caret, "^"), last, "]"].concat();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expect: Result<&[&str], PatternError>) {
        let globs = parse_pattern(line).map(|pattern| pattern.map_or(Vec::new(), |p| p.globs));
        let expect = expect.map(|globs| globs.iter().map(|g| (*g).to_string()).collect::<Vec<_>>());
        assert_eq!(globs, expect, "{line}");
    }

    #[test]
    fn a_pattern_is_translated_as_git_interprets_it() {
        check("foo", Ok(&["**/foo"]));
        check("*.log", Ok(&["**/*.log"]));
        check("**.log", Ok(&["**/*.log"]));
        check("/foo", Ok(&["foo"]));
        check("/foo/", Ok(&["foo"]));
        check("a/b", Ok(&["a/b"]));
        check("a/**", Ok(&["a/**"]));
        check("a/**/**/***/b", Ok(&["a/**/b"]));
        check("a/x**y/b", Ok(&["a/x*y/b"]));
        check("a/?**/b", Ok(&["a/?*/b"]));
    }

    #[test]
    fn a_double_star_that_is_the_first_wildcard_crosses_folders_even_without_a_slash_before_it() {
        check("lib/ab**/x", Ok(&["lib/abx", "lib/ab*/**/x"]));
        check("lib/ab**", Ok(&["lib/ab*", "lib/ab*/**"]));
        check("lib**//", Ok(&["lib"]));
        check("lib/**\\/x", Ok(&["lib/*/**/x"]));
    }

    #[test]
    fn braces_are_literal() {
        check("{a,b}", Ok(&["**/\\{a\\,b\\}"]));
    }

    #[test]
    fn a_pattern_without_a_body_is_skipped() {
        check("!", Ok(&[]));
        check("/", Ok(&[]));
        check("!/", Ok(&[]));
    }

    #[test]
    fn a_pattern_that_can_never_match_is_an_error() {
        check("a\\", Err(PatternError::TrailingBackslash));
        check("a\\/", Err(PatternError::TrailingBackslash));
        check("[abc", Err(PatternError::UnclosedClass));
        check("[[:nope:]]", Err(PatternError::UnknownClass("nope".into())));
        check("x[/]y", Err(PatternError::EmptyClass));
        check("a/**//", Err(PatternError::TrailingSlashes));
    }

    #[test]
    fn classes_keep_their_members_in_globsets_syntax() {
        check("[a-c]", Ok(&["**/[abc]"]));
        check("[]a]", Ok(&["**/[]a]"]));
        check("[!a]", Ok(&["**/[!/a]"]));
        check("[a!^-]", Ok(&["**/[-a!^]"]));
        check("[]-]", Ok(&["**/[]-]"]));
        check("[\\!]", Ok(&["**/\\!"]));
        check("[\\!^]", Ok(&["**/{\\!,\\^}"]));
        check("[[:digit:]_]", Ok(&["**/[0123456789_]"]));
        check("[é]", Ok(&["**/[é]"]));
    }
}
