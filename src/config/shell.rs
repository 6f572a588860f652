//! The line that a task of type `shell` gives to its shell, quoted as VS Code does it; and words that a reader can type.
//!
//! Source: <https://code.visualstudio.com/docs/debugtest/tasks#_custom-tasks>. Must not know what is run, nor what variables
//! stand for: [`place`] knows what can be put in where.

mod place;

pub use place::{LinePosition, LineSource, find_shell_line, substitute_in_shell_line};

use super::jsonc::JsonNode;
use super::jsonc::JsonValue;

/// How a word is to be protected from the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quoting {
    /// As it is, unless it has a space.
    AsNeeded,
    /// Backslashes before spaces and quotes.
    Escape,
    /// `'…'`
    Strong,
    /// `"…"`: variables are expanded.
    Weak,
}

/// A word of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// With its variables replaced, but for those that are put in last.
    pub text: String,
    /// As it stands in its file.
    pub written: String,
    pub quoting: Quoting,
}

impl Word {
    /// From `"text"` or `{value, quoting}`; a list of texts is one word with spaces.
    pub fn of(node: &JsonNode) -> Option<Word> {
        match &node.value {
            JsonValue::Object(_) => {
                let quoting = match node.text_of("quoting") {
                    Some("escape") => Quoting::Escape,
                    Some("weak") => Quoting::Weak,
                    _ => Quoting::Strong,
                };
                Some(Word::written(node_text(node.get("value")?)?, quoting))
            }
            _ => Some(Word::written(node_text(node)?, Quoting::AsNeeded)),
        }
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

/// The line, and what it is made of. A command alone is a line already when it was written with a space in it; else it is
/// a word, which a variable may have given a space. With arguments, each is quoted.
pub fn join_line(command: &Word, arguments: &[Word]) -> (String, LineSource) {
    if arguments.is_empty() && command.quoting == Quoting::AsNeeded && has_bare_space(&command.written) {
        return (command.text.clone(), LineSource::AsWritten);
    }
    (
        std::iter::once(command).chain(arguments).map(apply_quoting).collect::<Vec<_>>().join(" "),
        LineSource::QuotedWords,
    )
}

fn apply_quoting(word: &Word) -> String {
    let text = &word.text;
    match word.quoting {
        Quoting::AsNeeded if !has_bare_space(text) => text.clone(),
        Quoting::AsNeeded | Quoting::Strong => format!("'{text}'"),
        Quoting::Weak => format!("\"{text}\""),
        Quoting::Escape => {
            text.chars().flat_map(|c| [Some('\\').filter(|_| " \"'".contains(c)), Some(c)]).flatten().collect()
        }
    }
}

/// The text as one word of a POSIX shell, as a reader would type it.
pub fn quote_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { text.to_owned() } else { quote_strong(text) }
}

fn quote_strong(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A space outside of quotes that are in the text already; none in what is within a pair of quotes as a whole.
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
    fn a_command_that_a_variable_gives_a_space_is_a_word_and_one_that_is_written_with_one_is_a_line() {
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
    fn a_word_can_be_typed_as_it_is_shown() {
        let check = |text: &str, expect: &str| assert_eq!(quote_word(text), expect);
        check("/home/me/a-b_c.d", "/home/me/a-b_c.d");
        check("/home/me/my app", "'/home/me/my app'");
        check("it's $HOME", r"'it'\''s $HOME'");
        check("", "''");
        check("a;b", "'a;b'");
    }
}
