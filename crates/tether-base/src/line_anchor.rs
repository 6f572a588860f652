//! Finds a line's code again when its file has changed: by its text, by the lines around it where the text occurs several
//! times, and by those lines alone where the line itself was edited. Lines that cannot be distinguished are ambiguous.
//!
//! Does not depend on breakpoints.

use std::collections::HashMap;

use crate::clipped_text::first_chars;
use serde::{Deserialize, Serialize};

/// Where a line's code is now, compared with where the breakpoint was set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "is")]
pub enum AnchorStatus {
    #[default]
    /// On its line.
    Kept,
    /// On another line.
    Moved {
        /// Where it was set, from 1.
        from: u32,
    },
    /// In several places: none is taken.
    Ambiguous {
        /// Where it was set, from 1.
        from: u32,
        /// Where its text is now, from 1.
        lines: Vec<u32>,
    },
    /// Not in the file any more.
    Lost {
        /// Where it was set, from 1.
        from: u32,
    },
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
/// How many lines of the same text are compared by what is around them.
const MAX_CANDIDATES: usize = 100;

/// A line and the lines around it, without indentation: re-indented code is the same code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineAnchor {
    text: String,
    /// The nearest first; blank lines are skipped.
    before: Vec<String>,
    after: Vec<String>,
}

/// A text, prepared for the search of many anchors.
pub struct SourceLines<'a> {
    /// The number of its lines.
    count: usize,
    /// The lines with code, normalized, with their numbers (from 1).
    code: Vec<(u32, &'a str)>,
    /// Where in `code` each text is.
    places: HashMap<&'a str, Vec<usize>>,
}

impl<'a> SourceLines<'a> {
    /// Of a text.
    pub fn of(text: &'a str) -> SourceLines<'a> {
        let (mut count, mut code) = (0usize, Vec::new());
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for line in text.lines() {
            count = count.saturating_add(1);
            let line = normalize_line(line);
            if !line.is_empty() {
                places.entry(line).or_default().push(code.len());
                code.push((count as u32, line));
            }
        }
        SourceLines { count, code, places }
    }

    /// The number of lines.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The places of a text that are nearest to a line, in their order.
    fn places_near(&self, text: &str, line: u32) -> &[usize] {
        let all = self.places.get(text).map(Vec::as_slice).unwrap_or_default();
        let middle = all.partition_point(|place| self.code.get(*place).is_some_and(|(number, _)| *number < line));
        let near = all.get(middle.saturating_sub(MAX_CANDIDATES / 2)..).unwrap_or_default();
        near.get(..MAX_CANDIDATES).unwrap_or(near)
    }

    fn before(&self, place: usize) -> impl Iterator<Item = &'a str> {
        self.code.get(..place).unwrap_or_default().iter().rev().map(|(_, text)| *text).take(NEIGHBOURS)
    }

    fn after(&self, end: usize) -> impl Iterator<Item = &'a str> {
        self.code.get(end..).unwrap_or_default().iter().map(|(_, text)| *text).take(NEIGHBOURS)
    }
}

impl LineAnchor {
    /// The line itself, without indentation, and cut.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The anchor of a line (from 1); `None` if the text has no such line.
    pub fn of_line(source: &SourceLines<'_>, line: u32) -> Option<LineAnchor> {
        (1..=source.count).contains(&(line as usize)).then(|| {
            let place = source.code.partition_point(|(number, _)| *number < line);
            let own = source.code.get(place).filter(|(number, _)| *number == line).map(|(_, text)| *text);
            LineAnchor {
                text: own.unwrap_or_default().to_owned(),
                before: source.before(place).map(str::to_owned).collect(),
                after: source.after(place.saturating_add(usize::from(own.is_some()))).map(str::to_owned).collect(),
            }
        })
    }

    /// Where the code of `line` is now. Of a text that occurs more than [`MAX_CANDIDATES`] times, only the nearest are
    /// considered.
    pub fn find_line(&self, source: &SourceLines<'_>, line: u32) -> (u32, AnchorStatus) {
        if self.text.is_empty() {
            return (line, AnchorStatus::Kept); // a blank line has no code to follow
        }
        let mut found = source.places_near(&self.text, line).to_vec();
        if found.is_empty() && self.neighbour_count() >= ENOUGH {
            found = self.places_between_neighbours(source, line);
        }
        let score = |place: &usize| Some((self.similarity(source, *place), source.code.get(*place)?.0));
        let scored: Vec<(usize, u32)> = found.iter().filter_map(score).collect();
        let best = scored.iter().map(|(likeness, _)| *likeness).max();
        let best: Vec<u32> =
            scored.iter().filter(|(likeness, _)| Some(*likeness) == best).map(|(_, number)| *number).collect();
        match best.as_slice() {
            [] => (line, AnchorStatus::Lost { from: line }),
            [same] if *same == line => (line, AnchorStatus::Kept),
            [moved] => (*moved, AnchorStatus::Moved { from: line }),
            // Its own line is one of them, and nothing around it has changed.
            several if several.contains(&line) && LineAnchor::of_line(source, line).as_ref() == Some(self) => {
                (line, AnchorStatus::Kept)
            }
            several => (line, AnchorStatus::Ambiguous { from: line, lines: several.to_vec() }),
        }
    }

    /// The places around which all lines that are kept are the same.
    fn places_between_neighbours(&self, source: &SourceLines<'_>, line: u32) -> Vec<usize> {
        let nearest = match (self.before.first(), self.after.first()) {
            (Some(before), _) => source.places_near(before, line).iter().filter_map(|it| it.checked_add(1)).collect(),
            (None, Some(after)) => source.places_near(after, line).iter().filter_map(|it| it.checked_sub(1)).collect(),
            (None, None) => Vec::new(),
        };
        let all = self.neighbour_count();
        let between = |place: &usize| *place < source.code.len() && self.similarity(source, *place) == all;
        nearest.into_iter().filter(between).collect()
    }

    /// How many lines around both are the same, from the nearest on.
    fn similarity(&self, source: &SourceLines<'_>, place: usize) -> usize {
        let same = |one: &[String], other: &mut dyn Iterator<Item = &str>| -> usize {
            one.iter().zip(other).take_while(|(one, other)| one == other).count()
        };
        let before = same(&self.before, &mut source.before(place));
        before.saturating_add(same(&self.after, &mut source.after(place.saturating_add(1))))
    }

    /// How many lines around it are kept.
    fn neighbour_count(&self) -> usize {
        self.before.len().saturating_add(self.after.len())
    }
}

/// Without indentation, and at most [`WIDTH`] characters.
fn normalize_line(line: &str) -> &str {
    first_chars(line.trim(), WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "def f(x):\n    y = x + 1\n    return y\n\ndef g(x):\n    y = x + 1\n    return -y\n";

    fn anchor_of(text: &str, line: u32) -> Option<LineAnchor> {
        LineAnchor::of_line(&SourceLines::of(text), line)
    }

    #[test]
    fn thousands_of_anchors_are_found_in_millions_of_lines() {
        let started = std::time::Instant::now();
        let text = "x\n".repeat(2_000_000);
        let source = SourceLines::of(&text);
        let anchor = LineAnchor::of_line(&source, 1_000_000).unwrap();
        let lost = LineAnchor { text: "gone".into(), ..anchor.clone() };
        for line in (1..=10_000).map(|line| line * 100) {
            assert_eq!(anchor.find_line(&source, line), (line, AnchorStatus::Kept));
            assert!(matches!(lost.find_line(&source, line).1, AnchorStatus::Ambiguous { .. }));
        }
        // Each alone took as long before.
        assert!(started.elapsed() < std::time::Duration::from_secs(60), "{:?}", started.elapsed());
    }

    #[test]
    fn a_line_is_found_by_its_text_and_the_lines_around_it() {
        let check = |line: u32, now: &str, expect: (u32, AnchorStatus)| {
            let anchor = anchor_of(CODE, line).unwrap();
            assert_eq!(anchor.find_line(&SourceLines::of(now), line), expect, "{line} in {now:?}");
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
        let (line, whereabouts) =
            anchor_of(&format!("{twins}q()\n"), 2).unwrap().find_line(&SourceLines::of(&twice), 2);
        assert_eq!((line, whereabouts), (2, AnchorStatus::Ambiguous { from: 2, lines: vec![2, 6, 10] }));
    }

    #[test]
    fn lines_that_do_not_exist_have_no_anchor() {
        assert_eq!(anchor_of(CODE, 0), None);
        assert_eq!(anchor_of(CODE, 8), None);
        assert_eq!(anchor_of("", 1), None);
        assert!(anchor_of(CODE, 4).is_some());
    }
}
