//! Breakpoints as a caller asks for them: on a line of a file, by its number or by its text; on a function; on a line of a class.

use std::path::PathBuf;

use tether_base::clipped_text::clip_bytes;
use tether_base::error::{Error, Result};

use super::spec::{BreakpointConditions, BreakpointKind, LinePosition};

/// The longest text that an error quotes, in bytes.
const MAX_QUOTED: usize = 120;
/// How many lines an error names.
const MAX_NAMED_LINES: usize = 5;

/// A breakpoint to set.
#[derive(Clone, Debug)]
pub struct RequestedBreakpoint {
    pub place: RequestedPlace,
    pub conditions: BreakpointConditions,
}

/// Where a breakpoint is to be.
#[derive(Clone, Debug)]
pub enum RequestedPlace {
    Line(RequestedLine),
    /// On a function, or on a line of a class.
    Named(BreakpointKind),
}

/// A line of a file.
#[derive(Clone, Debug)]
pub struct RequestedLine {
    pub file: PathBuf,
    /// From 1. `None`: the only line with `text`.
    pub line: Option<u32>,
    /// From 1, in UTF-16 code units.
    pub column: Option<u32>,
    /// What is on the line, or a part of it.
    pub text: Option<String>,
}

impl RequestedLine {
    /// Finds it in the text of its file. Errors: the text is on no line, on several, or not on the line.
    pub(super) fn find(&self, source: &str) -> Result<LinePosition> {
        let (file, column) = (self.file.display(), self.column);
        let Some(text) = self.text.as_deref().map(str::trim) else {
            let error = || Error::usage(format!("no line of {file} was named"));
            return self.line.map(|line| LinePosition { line, column }).ok_or_else(error);
        };
        if text.is_empty() || text.contains('\n') {
            let error = Error::usage(format!("cannot find a line of {file} by its text"));
            return Err(error.because("the text must be one line, or a part of one"));
        }
        let quoted = clip_bytes(text, MAX_QUOTED);
        let found: Vec<u32> = (1..).zip(source.lines()).filter(|(_, it)| it.contains(text)).map(|(at, _)| at).collect();
        let whole = (1..).zip(source.lines()).filter(|(_, it)| it.trim() == text).map(|(at, _)| at);
        let whole: Vec<u32> = whole.take(2).collect();
        match (self.line, found.as_slice(), whole.as_slice()) {
            (Some(line), ..) if found.contains(&line) => Ok(LinePosition { line, column }),
            (Some(line), ..) => {
                let is = source.lines().nth(line.saturating_sub(1) as usize).map(str::trim);
                let is =
                    is.map_or("there is no such line".into(), |it| format!("it is `{}`", clip_bytes(it, MAX_QUOTED)));
                let error = Error::usage(format!("line {line} of {file} does not contain `{quoted}`")).because(is);
                Err(match found.as_slice() {
                    [] => error.hint("no other line does; read the file again"),
                    others => error.hint(format!("{} does", name_lines(others))),
                })
            }
            (None, [line], _) | (None, _, [line]) => Ok(LinePosition { line: *line, column }),
            (None, [], _) => Err(Error::usage(format!("no line of {file} contains `{quoted}`"))),
            (None, several, _) => {
                let error = Error::usage(format!("`{quoted}` is on {} lines of {file}", several.len()));
                Err(error.hint(format!("give the line, too: {}", name_lines(several))))
            }
        }
    }
}

fn name_lines(lines: &[u32]) -> String {
    let named: Vec<String> = lines.iter().take(MAX_NAMED_LINES).map(u32::to_string).collect();
    let more = if lines.len() > MAX_NAMED_LINES { ", …" } else { "" };
    format!("line {}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "def f(x):\n    y = x + 1\n    print(y)\n    y = x + 10\n    return y\n";

    #[test]
    fn a_line_is_found_by_its_text_and_refused_where_it_is_another() {
        let find = |line: Option<u32>, text: &str| {
            let it = RequestedLine { file: "a.py".into(), line, column: None, text: Some(text.to_owned()) };
            it.find(SOURCE).map(|at| at.line).map_err(|error| error.to_string())
        };
        assert_eq!(find(None, "return y"), Ok(5));
        assert_eq!(find(None, "  print(y)  "), Ok(3));
        assert_eq!(find(None, "y = x + 1"), Ok(2), "one line is just that, another begins so");
        assert_eq!(find(Some(4), "y = x"), Ok(4));
        let refused = |line, text, words: &[&str]| {
            let error = find(line, text).unwrap_err();
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        };
        refused(None, "y = x", &["2 lines", "line 2, 4"]);
        refused(None, "z", &["no line of a.py contains `z`"]);
        refused(Some(3), "return y", &["line 3 of a.py does not contain `return y`", "`print(y)`", "line 5 does"]);
        refused(Some(9), "z", &["there is no such line"]);
        refused(None, " ", &["one line"]);
        refused(None, "print(y)\n    y", &["one line"]);
    }

    #[test]
    fn a_line_without_a_text_is_its_number() {
        let at = RequestedLine { file: "a.py".into(), line: Some(7), column: Some(2), text: None };
        assert_eq!(at.find(SOURCE).unwrap(), LinePosition { line: 7, column: Some(2) });
    }
}
