//! The line that a task of type `shell` gives to its shell, quoted as VS Code does it.
//!
//! Source: <https://code.visualstudio.com/docs/debugtest/tasks#_custom-tasks>. Must not know what is run.

use super::jsonc::Node;
use super::jsonc::Value;

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

/// A word of a command line, before variables are replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub quoting: Quoting,
}

impl Word {
    /// From `"text"` or `{value, quoting}`; a list of texts is one word with spaces.
    pub fn of(node: &Node) -> Option<Word> {
        match &node.value {
            Value::Object(_) => {
                let quoting = match node.text_of("quoting") {
                    Some("escape") => Quoting::Escape,
                    Some("weak") => Quoting::Weak,
                    _ => Quoting::Strong,
                };
                Some(Word { text: text(node.get("value")?)?, quoting })
            }
            _ => Some(Word { text: text(node)?, quoting: Quoting::AsNeeded }),
        }
    }
}

fn text(node: &Node) -> Option<String> {
    match &node.value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => items.iter().map(Node::text).collect::<Option<Vec<_>>>().map(|words| words.join(" ")),
        _ => None,
    }
}

/// The line: a command alone is a line already; with arguments, each is quoted.
pub fn line(command: &Word, arguments: &[Word]) -> String {
    if arguments.is_empty() && command.quoting == Quoting::AsNeeded {
        return command.text.clone();
    }
    std::iter::once(command).chain(arguments).map(quoted).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &Word) -> String {
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

/// A space outside of quotes that are in the text already.
fn has_bare_space(text: &str) -> bool {
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
                words.iter().map(|(text, quoting)| Word { text: (*text).to_owned(), quoting: *quoting }).collect();
            assert_eq!(line(&words[0], &words[1..]), expect);
        };
        check(&[("echo a b && true", AsNeeded)], "echo a b && true");
        check(&[("tsc", AsNeeded), ("-p", AsNeeded), ("my app", AsNeeded)], "tsc -p 'my app'");
        check(&[("echo", AsNeeded), ("'my app'", AsNeeded), ("a\\ b", AsNeeded)], "echo 'my app' a\\ b");
        check(&[("my tool", AsNeeded), ("$HOME", AsNeeded), ("$HOME", Strong)], "'my tool' $HOME '$HOME'");
        check(&[("echo", AsNeeded), ("$A b", Weak), ("it's \"so\"", Escape)], "echo \"$A b\" it\\'s\\ \\\"so\\\"");
        check(&[("run me", Strong)], "'run me'");
    }
}
