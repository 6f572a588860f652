//! Finds a line's code again when its file has changed: by its text, by the lines around it where the text occurs several
//! times, and by those lines alone where the line itself was edited. Lines that cannot be distinguished are ambiguous.
//!
//! Does not depend on breakpoints.

use serde::{Deserialize, Serialize};

/// Where a line's code is now, compared with where the breakpoint was set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "is")]
pub enum AnchorStatus {
    #[default]
    /// On its line.
    Kept,
    /// On another line.
    Moved { from: u32 },
    /// In several places: none is taken.
    Ambiguous { from: u32, lines: Vec<u32> },
    /// Not in the file any more.
    Lost { from: u32 },
}

impl AnchorStatus {
    /// Whether the code is on the line where it was set.
    pub fn is_kept(&self) -> bool {
        *self == AnchorStatus::Kept
    }

    /// Whether its line is known, so that the breakpoint can be sent.
    pub fn has_line(&self) -> bool {
        matches!(self, AnchorStatus::Kept | AnchorStatus::Moved { .. })
    }
}

/// How many lines around it are kept, on each side.
const NEIGHBOURS: usize = 3;
/// How many lines around it must be kept for it to be found by them alone.
const ENOUGH: usize = 2;
/// How much of a line is kept, in characters.
const WIDTH: usize = 200;

/// A line and the lines around it, without indentation: re-indented code is the same code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineAnchor {
    text: String,
    /// The nearest first; blank lines are skipped.
    before: Vec<String>,
    after: Vec<String>,
}

impl LineAnchor {
    /// The anchor of a line (from 1); `None` if the text has no such line.
    pub fn from_text(text: &str, line: u32) -> Option<LineAnchor> {
        let lines: Vec<&str> = text.lines().collect();
        let index = (line as usize).checked_sub(1).filter(|index| *index < lines.len())?;
        Some(LineAnchor::from_lines(&lines, index))
    }

    fn from_lines(lines: &[&str], index: usize) -> LineAnchor {
        LineAnchor {
            text: normalize_line(lines[index]),
            before: nearest_lines(lines[..index].iter().rev()),
            after: nearest_lines(lines[index + 1..].iter()),
        }
    }

    /// Where the code of `line` is now.
    pub fn find_line(&self, text: &str, line: u32) -> (u32, AnchorStatus) {
        let lines: Vec<&str> = text.lines().collect();
        let same = |index: &usize| normalize_line(lines[*index]) == self.text;
        let mut found: Vec<usize> = (0..lines.len()).filter(same).collect();
        if found.is_empty() && self.before.len() + self.after.len() >= ENOUGH {
            let edited = |index: &usize| self.has_same_neighbours(&LineAnchor::from_lines(&lines, *index));
            found = (0..lines.len()).filter(edited).collect();
        }
        let scored: Vec<(usize, usize)> =
            found.iter().map(|index| (self.similarity(&LineAnchor::from_lines(&lines, *index)), *index)).collect();
        let best = scored.iter().map(|(likeness, _)| *likeness).max();
        let best: Vec<u32> =
            scored.iter().filter(|(likeness, _)| Some(*likeness) == best).map(|(_, index)| *index as u32 + 1).collect();
        match best.as_slice() {
            _ if self.text.is_empty() => (line, AnchorStatus::Kept), // a blank line has no code to follow
            [] => (line, AnchorStatus::Lost { from: line }),
            [same] if *same == line => (line, AnchorStatus::Kept),
            [moved] => (*moved, AnchorStatus::Moved { from: line }),
            // Its own line is one of them, and nothing around it has changed.
            several if several.contains(&line) && self.matches_exactly(&lines, line) => (line, AnchorStatus::Kept),
            several => (line, AnchorStatus::Ambiguous { from: line, lines: several.to_vec() }),
        }
    }

    /// Whether the lines around both are the same, all that are kept.
    fn has_same_neighbours(&self, other: &LineAnchor) -> bool {
        !other.text.is_empty() && other.before.starts_with(&self.before) && other.after.starts_with(&self.after)
    }

    fn matches_exactly(&self, lines: &[&str], line: u32) -> bool {
        LineAnchor::from_lines(lines, line as usize - 1) == *self
    }

    /// How many lines around both are the same, from the nearest on.
    fn similarity(&self, other: &LineAnchor) -> usize {
        let same = |one: &[String], other: &[String]| -> usize {
            one.iter().zip(other).take_while(|(one, other)| one == other).count()
        };
        same(&self.before, &other.before) + same(&self.after, &other.after)
    }
}

fn normalize_line(line: &str) -> String {
    line.trim().chars().take(WIDTH).collect()
}

fn nearest_lines<'a>(lines: impl Iterator<Item = &'a &'a str>) -> Vec<String> {
    lines.map(|line| normalize_line(line)).filter(|line| !line.is_empty()).take(NEIGHBOURS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "def f(x):\n    y = x + 1\n    return y\n\ndef g(x):\n    y = x + 1\n    return -y\n";

    #[test]
    fn a_line_is_found_by_its_text_and_the_lines_around_it() {
        let check = |line: u32, now: &str, expect: (u32, AnchorStatus)| {
            let anchor = LineAnchor::from_text(CODE, line).unwrap();
            assert_eq!(anchor.find_line(now, line), expect, "{line} in {now:?}");
        };
        check(2, CODE, (2, AnchorStatus::Kept));
        check(6, CODE, (6, AnchorStatus::Kept));
        let below = format!("import os\n\n{CODE}");
        check(3, &below, (5, AnchorStatus::Moved { from: 3 }));
        // The same text occurs twice: the lines around it decide.
        check(2, &below, (4, AnchorStatus::Moved { from: 2 }));
        check(6, &below, (8, AnchorStatus::Moved { from: 6 }));
        let indented: String = CODE.lines().map(|line| format!("    {line}\n")).collect();
        check(3, &format!("class A:\n{indented}"), (4, AnchorStatus::Moved { from: 3 }));
        // Edited in its place, also where that has moved.
        let edited = CODE.replace("return y", "return y * 2");
        check(3, &edited, (3, AnchorStatus::Kept));
        check(3, &format!("import os\n\n{edited}"), (5, AnchorStatus::Moved { from: 3 }));
        // Deleted, or edited together with what stood around it.
        check(3, &CODE.replace("    return y\n", ""), (3, AnchorStatus::Lost { from: 3 }));
        check(3, &edited.replace("def g", "def h"), (3, AnchorStatus::Lost { from: 3 }));
        check(3, "", (3, AnchorStatus::Lost { from: 3 }));
        let twins = "a()\nb()\n";
        let twice = format!("{twins}\nx()\n{twins}\nx()\n{twins}");
        let (line, whereabouts) = LineAnchor::from_text(&format!("{twins}q()\n"), 2).unwrap().find_line(&twice, 2);
        assert_eq!((line, whereabouts), (2, AnchorStatus::Ambiguous { from: 2, lines: vec![2, 6, 10] }));
    }

    #[test]
    fn lines_that_do_not_exist_have_no_anchor() {
        assert_eq!(LineAnchor::from_text(CODE, 0), None);
        assert_eq!(LineAnchor::from_text(CODE, 8), None);
        assert_eq!(LineAnchor::from_text("", 1), None);
        assert!(LineAnchor::from_text(CODE, 4).is_some());
    }
}
