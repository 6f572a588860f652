//! Substitutes values in a shell's line, quoted so that the shell reads each as plain text.
//!
//! A file may be called `a;cmd;.c`, and must not become a command. Where the shell's reading cannot be predicted, such
//! a value is refused. Does not depend on the source of values.

use crate::config::vscode::shell_quoting::{LineSource, escape_characters, quote_word};
use crate::config::vscode::variables::substitute_variables;

/// Shells with POSIX quoting.
const POSIX: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash"];
/// Shells with other quoting.
const OTHERS: &[&str] = &["fish", "csh", "tcsh"];
/// Commands that read their words again as a line.
const RESPLITTING: &[&str] = &["eval", "trap", "ssh", "su", "watch", "parallel"];

/// The index of the line in `SHELL … -c LINE`; `None` when the command is not a shell with a line.
pub fn find_shell_line(argv: &[String]) -> Option<(usize, LineSource)> {
    let name = program_name(argv.first()?);
    if !POSIX.contains(&name) && !OTHERS.contains(&name) {
        return None;
    }
    let mut words = argv.iter().enumerate().skip(1);
    while let Some((at, word)) = words.next() {
        if is_flag(word, &['c']) {
            return (at + 1 < argv.len()).then_some((at + 1, LineSource::AsWritten));
        }
        if is_flag(word, &['o', 'O']) || ["--rcfile", "--init-file"].contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with(['-', '+']) {
            // A script file: the rest are its arguments.
            return None;
        }
    }
    None
}

/// Substitutes the variables for which `value` returns one; `value` receives the name and the position in the line.
pub fn substitute_in_shell_line<E>(
    line: &str,
    mut place: LinePosition,
    value: impl Fn(&str, &LinePosition) -> Result<Option<String>, E>,
) -> Result<String, E> {
    substitute_variables(line, |before, name| {
        place.pass_text(before);
        let value = value(name, &place)?;
        match value {
            Some(_) => place.pass_value(),
            None => place.pass_variable(name),
        }
        Ok(value)
    })
}

/// A position in a line, with the quoting that is in effect there.
#[derive(Clone, Debug)]
pub struct LinePosition {
    source: LineSource,
    /// The quote that is open.
    open_quote: Option<char>,
    /// After a backslash.
    escaped: bool,
    /// The line passes a text to a program as code (`-c`, `-e`, `--eval`).
    passes_code: bool,
    /// After syntax that is not tracked: `$(…)` in quotes, backquotes, arithmetic, a here-document, a comment, another
    /// shell.
    is_untracked: bool,
    last: char,
}

impl LinePosition {
    /// The start of a line.
    pub fn line_start(shell: &str, line: &str, source: LineSource) -> LinePosition {
        let mut words = line.split(|c: char| c.is_whitespace() || "\"'`;&|()".contains(c));
        let passes_code = words.clone().any(|word| is_flag(word, &['c', 'e']) || word == "--eval");
        let is_untracked =
            !POSIX.contains(&program_name(shell)) || words.any(|word| RESPLITTING.contains(&program_name(word)));
        LinePosition { source, open_quote: None, escaped: false, passes_code, is_untracked, last: ' ' }
    }

    /// The value, quoted for this position; `None` when the shell's reading of it cannot be predicted.
    pub fn quote_value(&self, value: &str) -> Option<String> {
        match self.open_quote {
            _ if self.is_unpredictable() => is_plain_text(value).then(|| value.to_owned()),
            Some('\'') => Some(value.replace('\'', r"'\''")),
            Some(_) => Some(escape_characters(value, "\"$`\\")),
            None if value.is_empty() => Some(String::new()),
            None => Some(quote_word(value)),
        }
    }

    /// A value of the user's own environment. In a line as written it may be several words, as in VS Code and in the
    /// shell.
    pub fn quote_environment_value(&self, value: &str) -> String {
        if self.source == LineSource::AsWritten && self.open_quote.is_none() && !self.is_unpredictable() {
            let words = value.split(char::is_whitespace);
            let words = words.map(|it| if it.is_empty() { String::new() } else { quote_word(it) });
            return words.collect::<Vec<_>>().join(" ");
        }
        self.quote_value(value).unwrap_or_else(|| value.to_owned())
    }

    /// The variable as the shell itself reads it at this place: what is shown instead of the value.
    pub fn environment_reference(&self, variable: &str) -> String {
        match self.open_quote {
            _ if self.is_unpredictable() => format!("${{{variable}}}"),
            Some('\'') => format!("'\"${{{variable}}}\"'"),
            None if self.source == LineSource::QuotedWords => format!("\"${{{variable}}}\""),
            _ => format!("${{{variable}}}"),
        }
    }

    fn is_unpredictable(&self) -> bool {
        self.is_untracked || self.escaped || self.last == '$' || (self.passes_code && self.open_quote.is_some())
    }

    fn pass_value(&mut self) {
        self.is_untracked |= self.escaped || self.last == '$';
        (self.escaped, self.last) = (false, 'x');
    }

    /// Advances over a variable that the shell expands.
    fn pass_variable(&mut self, name: &str) {
        if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            self.pass_text("$");
            self.last = '}';
        } else {
            self.pass_text(&format!("${{{name}}}"));
        }
    }

    fn pass_text(&mut self, text: &str) {
        text.chars().for_each(|c| self.pass_char(c));
    }

    fn pass_char(&mut self, c: char) {
        let before = std::mem::replace(&mut self.last, c);
        if std::mem::take(&mut self.escaped) {
            self.last = 'x';
            return;
        }
        match (self.open_quote, c) {
            (Some('\''), _) => self.open_quote = self.open_quote.filter(|quote| *quote != c),
            (_, '\\') => self.escaped = true,
            (_, '`') => self.is_untracked = true,
            (Some(_), '(' | '{' | '[') if before == '$' => self.is_untracked = true,
            (Some(_), _) => self.open_quote = self.open_quote.filter(|quote| *quote != c),
            (None, '\'' | '"') if before == '$' => self.is_untracked = true,
            (None, '\'' | '"') => self.open_quote = Some(c),
            (None, '(' | '<') if before == c => self.is_untracked = true,
            (None, '[') if !is_boundary(before) => self.is_untracked = true,
            (None, '#') if is_boundary(before) => self.is_untracked = true,
            _ => {}
        }
    }
}

fn program_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// `-c`, `-lc`
fn is_flag(word: &str, ends: &[char]) -> bool {
    let letters = word.strip_prefix('-').filter(|letters| letters.chars().all(|c| c.is_ascii_alphabetic()));
    letters.is_some_and(|letters| letters.ends_with(ends))
}

fn is_boundary(c: char) -> bool {
    c.is_whitespace() || ";&|()".contains(c)
}

/// Whether a shell reads the value as text in every position, except for its spaces.
fn is_plain_text(value: &str) -> bool {
    value.chars().all(|c| c.is_alphanumeric() || " /._-+=:,@%".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file name with the syntax of shells.
    const ODD: &str = "/a b/it's;touch ran;$(touch ran)`touch ran`\"x\\.c";

    fn put(line: &str, source: LineSource, file: &str) -> Option<String> {
        let place = LinePosition::line_start("/bin/sh", line, source);
        let value = |name: &str, place: &LinePosition| match name {
            "file" => place.quote_value(file).map(Some).ok_or(()),
            "env:X" => Ok(Some(place.quote_environment_value("-j 4;touch ran"))),
            _ => Ok(None),
        };
        substitute_in_shell_line(line, place, value).ok()
    }

    #[test]
    fn a_program_receives_each_value_unchanged() {
        let check = |line: &str, expect: &[&str]| {
            let folder = tempfile::tempdir().unwrap();
            let line = put(line, LineSource::AsWritten, ODD).unwrap_or_else(|| panic!("{line}: refused"));
            let ran = std::process::Command::new("/bin/sh").args(["-c", &line]).current_dir(folder.path()).output();
            let ran = ran.unwrap();
            let expect = expect.iter().map(|word| format!("{word}\n")).collect::<String>();
            assert_eq!(String::from_utf8_lossy(&ran.stdout), expect, "{line}");
            assert!(!folder.path().join("ran").exists(), "{line}");
        };
        check("printf '%s\\n' ${file}", &[ODD]);
        check("printf '%s\\n' x${file}/y ${file}.o", &[&format!("x{ODD}/y"), &format!("{ODD}.o")]);
        check("printf '%s\\n' '<${file}>' \"<${file}>\"", &[&format!("<{ODD}>"), &format!("<{ODD}>")]);
        check("printf '%s\\n' ${PATH:+set} it\\'s ${file}", &["set", "it's", ODD]);
        check("X='a b'; printf '%s\\n' \"${X}\" ${file}; (printf '%s\\n' ${file})", &["a b", ODD, ODD]);
        check("printf '%s\\n' $(echo one) ${file}", &["one", ODD]);
        check(
            "printf '%s\\n' a${env:X}b '${env:X}' \"${env:X}\"",
            &["a-j", "4;touch", "ranb", "-j 4;touch ran", "-j 4;touch ran"],
        );
    }

    #[test]
    fn values_in_quoted_words_stay_one_word() {
        let check =
            |line: &str, expect: &str| assert_eq!(put(line, LineSource::QuotedWords, "/a b/c.c").unwrap(), expect);
        check("gcc -g ${file} -o ${file}.o", "gcc -g '/a b/c.c' -o '/a b/c.c'.o");
        check("make ${env:X}", "make '-j 4;touch ran'");
        check("ls '${file}' \"${file}\"", "ls '/a b/c.c' \"/a b/c.c\"");
        assert_eq!(put("gcc ${file}", LineSource::QuotedWords, "/a/c.c").unwrap(), "gcc /a/c.c");
        assert_eq!(put("gcc ${file}", LineSource::QuotedWords, "").unwrap(), "gcc ");
    }

    #[test]
    fn in_untracked_syntax_only_plain_text_is_substituted() {
        let check = |line: &str| {
            assert_eq!(put(line, LineSource::AsWritten, "/a;cmd;.c"), None, "{line}");
            assert_eq!(
                put(line, LineSource::AsWritten, "/a b/ä.c"),
                Some(line.replace("${file}", "/a b/ä.c")),
                "{line}"
            );
        };
        check("cd \"$(dirname ${file})\"");
        check("cd `dirname ${file}`");
        check("eval cat ${file}");
        check("bash -c \"cat ${file}\"");
        check("python3 -c 'print(\"${file}\")'");
        check("cat <<END\n${file}\nEND");
        check("make # don't look at ${file}");
        check("echo $'${file}' \\${file} $${file}");
        check("echo \"${X:-${HOME}'${file}'}\"");
        check("echo $((1 + ${file}))");
        check("a[${file}]=1");
        check("[[ ${file} -eq 1 ]]");
        assert_eq!(put("bash -c ${file}", LineSource::AsWritten, "/a;b"), Some("bash -c '/a;b'".to_owned()));
        let fish = LinePosition::line_start("/usr/bin/fish", "ls ${file}", LineSource::QuotedWords);
        assert_eq!((fish.quote_value("it's"), fish.quote_value("a b").as_deref()), (None, Some("a b")));
    }

    #[test]
    fn a_shell_line_is_found_among_the_words_of_its_command() {
        let check = |argv: &[&str], expect: Option<usize>| {
            let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(find_shell_line(&argv).map(|(at, _)| at), expect, "{argv:?}");
        };
        check(&["/bin/bash", "-c", "x"], Some(2));
        check(&["sh", "-e", "-lc", "x", "name", "y"], Some(3));
        check(&["bash", "-eo", "pipefail", "-c", "x"], Some(4));
        check(&["gcc", "-c", "x"], None);
        check(&["bash", "run.sh", "-c", "x"], None);
        check(&["sh", "x"], None);
        check(&["sh", "-c"], None);
    }
}
