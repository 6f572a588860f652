//! Joins the words of a task of type `shell` to a line, quoted as VS Code does; and quotes words for a user to type.
//!
//! Source: <https://code.visualstudio.com/docs/debugtest/tasks#_custom-tasks>. Does not depend on the values of
//! variables: `shell_line` substitutes them.

use crate::config::jsonc::{JsonNode, JsonValue};

/// How a word is quoted for the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quoting {
    /// `'…'` when it has a space, else not at all.
    AsNeeded,
    /// Backslashes before spaces and quotes.
    Escape,
    /// `'…'`
    Strong,
    /// `"…"`: variables are expanded.
    Weak,
}

/// How the line of a shell came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineSource {
    /// From a command and its arguments, each quoted as one word.
    QuotedWords,
    /// Written as a line in the file.
    AsWritten,
}

/// A word of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// With variables substituted, except those that are substituted last.
    pub text: String,
    /// As in the file.
    pub written: String,
    /// How it is quoted.
    pub quoting: Quoting,
}

impl Word {
    /// From `"text"` or `{value, quoting}`; a list of texts is one word with spaces. `None`: neither of these.
    pub fn of(node: &JsonNode) -> Option<Word> {
        if !matches!(node.value, JsonValue::Object(_)) {
            return Some(Word::written(node_text(node)?, Quoting::AsNeeded));
        }
        let quoting = match node.text_of("quoting") {
            Some("escape") => Quoting::Escape,
            Some("weak") => Quoting::Weak,
            _ => Quoting::Strong,
        };
        Some(Word::written(node_text(node.get("value")?)?, quoting))
    }

    fn written(written: String, quoting: Quoting) -> Word {
        Word { text: written.clone(), written, quoting }
    }
}

fn node_text(node: &JsonNode) -> Option<String> {
    match &node.value {
        JsonValue::String(text) => Some(text.clone()),
        JsonValue::Array(items) => {
            items.iter().map(JsonNode::text).collect::<Option<Vec<_>>>().map(|words| words.join(" "))
        }
        _ => None,
    }
}

/// Joins a command and its arguments, each quoted. A command without arguments that is written with a space is a line
/// already; a space that only a variable brings is part of a word.
pub fn join_line(command: &Word, arguments: &[Word]) -> (String, LineSource) {
    if arguments.is_empty() && command.quoting == Quoting::AsNeeded && has_bare_space(&command.written) {
        return (command.text.clone(), LineSource::AsWritten);
    }
    let words: Vec<String> = std::iter::once(command).chain(arguments).map(apply_quoting).collect();
    (words.join(" "), LineSource::QuotedWords)
}

fn apply_quoting(word: &Word) -> String {
    let text = &word.text;
    match word.quoting {
        Quoting::AsNeeded if !has_bare_space(text) => text.clone(),
        Quoting::AsNeeded | Quoting::Strong => format!("'{text}'"),
        Quoting::Weak => format!("\"{text}\""),
        Quoting::Escape => escape_characters(text, " \"'"),
    }
}

/// The text as one word of a POSIX shell, for a user to type.
pub fn quote_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// The same for a word that has `${env:NAME}` in the place of values: each becomes the shell's own `"${NAME}"`.
pub fn quote_shown_word(word: &str) -> String {
    let (mut quoted, mut rest) = (String::new(), word);
    while let Some((before, name, after)) = split_at_reference(rest) {
        if !before.is_empty() {
            quoted += &quote_word(before);
        }
        quoted += &format!("\"${{{name}}}\"");
        rest = after;
    }
    if rest.is_empty() && !quoted.is_empty() { quoted } else { quoted + &quote_word(rest) }
}

/// The text before the first `${env:NAME}` whose name a shell accepts, the name, and the text after it.
fn split_at_reference(text: &str) -> Option<(&str, &str, &str)> {
    text.match_indices("${env:").find_map(|(at, start)| {
        let (name, after) = text[at + start.len()..].split_once('}')?;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then_some((&text[..at], name, after))
    })
}

/// The text with a backslash before each character of `special`.
pub fn escape_characters(text: &str, special: &str) -> String {
    text.chars().flat_map(|c| special.contains(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Whether the text has a space outside of its own quotes.
fn has_bare_space(text: &str) -> bool {
    if ['\'', '"'].iter().any(|quote| text.len() > 1 && text.starts_with(*quote) && text.ends_with(*quote)) {
        return false;
    }
    let mut open = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (c, open) {
            (c, Some(quote)) => open = Some(quote).filter(|quote| *quote != c),
            ('\\', None) => drop(characters.next()),
            ('\'' | '"', None) => open = Some(c),
            (' ', None) => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use Quoting::*;

    #[test]
    fn words_are_quoted_as_vs_code_does() {
        let check = |words: &[(&str, Quoting)], expect: &str| {
            let words: Vec<Word> =
                words.iter().map(|(text, quoting)| Word::written((*text).to_owned(), *quoting)).collect();
            assert_eq!(join_line(&words[0], &words[1..]).0, expect);
        };
        check(&[("echo a b && true", AsNeeded)], "echo a b && true");
        check(&[("tsc", AsNeeded), ("-p", AsNeeded), ("my app", AsNeeded)], "tsc -p 'my app'");
        check(&[("echo", AsNeeded), ("'my app'", AsNeeded), ("a\\ b", AsNeeded)], "echo 'my app' a\\ b");
        check(&[("my tool", AsNeeded), ("$HOME", AsNeeded), ("$HOME", Strong)], "'my tool' $HOME '$HOME'");
        check(&[("echo", AsNeeded), ("$A b", Weak), ("it's \"so\"", Escape)], "echo \"$A b\" it\\'s\\ \\\"so\\\"");
        check(&[("run me", Strong)], "'run me'");
        check(&[("echo", AsNeeded), ("'a' 'b'", AsNeeded)], "echo 'a' 'b'");
    }

    #[test]
    fn a_command_written_with_a_space_is_a_line_and_one_with_a_space_from_a_variable_a_word() {
        let check = |written: &str, text: &str, expect: &str, made: LineSource| {
            let command = Word { text: text.to_owned(), written: written.to_owned(), quoting: AsNeeded };
            assert_eq!(join_line(&command, &[]), (expect.to_owned(), made), "{written}");
        };
        check("${workspaceFolder}/run", "/my app/run", "'/my app/run'", LineSource::QuotedWords);
        check("${workspaceFolder}/run", "/app/run", "/app/run", LineSource::QuotedWords);
        check("${workspaceFolder}/run --x", "/my app/run --x", "/my app/run --x", LineSource::AsWritten);
        check("'${workspaceFolder}/run' --x", "'/my app/run' --x", "'/my app/run' --x", LineSource::AsWritten);
        check("'${workspaceFolder}/run'", "'/my app/run'", "'/my app/run'", LineSource::QuotedWords);
        check("make", "make", "make", LineSource::QuotedWords);
    }

    #[test]
    fn a_word_is_quoted_for_typing() {
        let check = |text: &str, expect: &str| assert_eq!(quote_word(text), expect);
        check("/home/me/a-b_c.d", "/home/me/a-b_c.d");
        check("/home/me/my app", "'/home/me/my app'");
        check("it's $HOME", r"'it'\''s $HOME'");
        check("", "''");
        check("a;b", "'a;b'");
    }
}
