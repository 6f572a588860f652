//! What can be put into the line of a shell, and how: a value stays the text that it is, whatever is in it.
//!
//! A file may be called `a;cmd;.c`, and must not become a command. Where nobody can tell what the shell would make of such a
//! value it is not put in. Must not know where values come from.

use super::quote_word;
use crate::config::variables::substitute_variables;

/// Shells that read quotes as POSIX has them.
const POSIX: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash"];
const OTHERS: &[&str] = &["fish", "csh", "tcsh"];
/// What has its words read a second time.
const RESPLITTING: &[&str] = &["eval", "trap", "ssh", "su", "watch", "parallel"];

/// What a line is source of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineSource {
    /// A command and its arguments, quoted by us: each stays one word.
    QuotedWords,
    /// Written as it is.
    AsWritten,
}

/// The line of a shell among the words of a command, when it is a shell's.
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
        let takes_one = is_flag(word, &['o', 'O']) || ["--rcfile", "--init-file"].contains(&word.as_str());
        match takes_one {
            true => drop(words.next()),
            // The rest is a script's own.
            false if !word.starts_with(['-', '+']) => return None,
            false => {}
        }
    }
    None
}

/// The line with the variables replaced that have a value; `value` is told the name, and where it goes.
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

/// Where in a line something is put in.
#[derive(Clone, Debug)]
pub struct LinePosition {
    source: LineSource,
    /// The quote that is open.
    open_quote: Option<char>,
    /// Behind a backslash.
    escaped: bool,
    /// The line hands a text to another program as its code.
    passes_code: bool,
    /// In what is not followed here: `$(…)` in quotes, backquotes, arithmetic, a here-document, a comment, another shell.
    is_untracked: bool,
    last: char,
}

impl LinePosition {
    /// Where the line begins.
    pub fn line_start(shell: &str, line: &str, source: LineSource) -> LinePosition {
        let mut words = line.split(|c: char| c.is_whitespace() || "\"'`;&|()".contains(c));
        let passes_code = words.clone().any(|word| is_flag(word, &['c', 'e']) || word == "--eval");
        let is_untracked =
            !POSIX.contains(&program_name(shell)) || words.any(|word| RESPLITTING.contains(&program_name(word)));
        LinePosition { source, open_quote: None, escaped: false, passes_code, is_untracked, last: ' ' }
    }

    /// The value as the text that it is; `None` when nobody can tell what the shell would make of it.
    pub fn quote_value(&self, value: &str) -> Option<String> {
        match self.open_quote {
            _ if self.is_unpredictable() => is_plain_text(value).then(|| value.to_owned()),
            Some('\'') => Some(value.replace('\'', r"'\''")),
            Some(_) => Some(
                value.chars().flat_map(|c| [Some('\\').filter(|_| "\"$`\\".contains(c)), Some(c)]).flatten().collect(),
            ),
            None if value.is_empty() => Some(String::new()),
            None => Some(quote_word(value)),
        }
    }

    /// A value of the environment, which is the user's own. In a line that is written by hand it may be several words, as it
    /// would be to VS Code, and to the shell itself.
    pub fn quote_environment_value(&self, value: &str) -> String {
        if self.source == LineSource::AsWritten && self.open_quote.is_none() && !self.is_unpredictable() {
            let words = value.split(char::is_whitespace);
            let words = words.map(|it| if it.is_empty() { String::new() } else { quote_word(it) });
            return words.collect::<Vec<_>>().join(" ");
        }
        self.quote_value(value).unwrap_or_else(|| value.to_owned())
    }

    fn is_unpredictable(&self) -> bool {
        self.is_untracked || self.escaped || self.last == '$' || (self.passes_code && self.open_quote.is_some())
    }

    fn pass_value(&mut self) {
        self.is_untracked |= self.escaped || self.last == '$';
        (self.escaped, self.last) = (false, 'x');
    }

    /// A variable that is the shell's.
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

/// No shell makes anything of such a value, but for its spaces.
fn is_plain_text(value: &str) -> bool {
    value.chars().all(|c| c.is_alphanumeric() || " /._-+=:,@%".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each `${file}` is an odd name of a file, each `${env:X}` a value of two words.
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
    fn what_is_put_in_reaches_the_program_as_it_is_whatever_stands_around_it() {
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
    fn words_of_ours_stay_words() {
        let check =
            |line: &str, expect: &str| assert_eq!(put(line, LineSource::QuotedWords, "/a b/c.c").unwrap(), expect);
        check("gcc -g ${file} -o ${file}.o", "gcc -g '/a b/c.c' -o '/a b/c.c'.o");
        check("make ${env:X}", "make '-j 4;touch ran'");
        check("ls '${file}' \"${file}\"", "ls '/a b/c.c' \"/a b/c.c\"");
        assert_eq!(put("gcc ${file}", LineSource::QuotedWords, "/a/c.c").unwrap(), "gcc /a/c.c");
        assert_eq!(put("gcc ${file}", LineSource::QuotedWords, "").unwrap(), "gcc ");
    }

    #[test]
    fn where_nobody_can_tell_only_what_no_shell_reads_is_put_in() {
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
    fn the_line_of_a_shell_is_found_in_its_command() {
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
