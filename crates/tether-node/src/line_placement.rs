//! Where the code of a breakpoint's line is in the text that a script was made of, which may be an earlier or a later version
//! of the file than the one that the breakpoint was set in.
//!
//! Lines are 0-based. Sends nothing.

use std::collections::HashMap;
use std::sync::Mutex;

use tether_base::line_anchor::{AnchorStatus, LineAnchor, SourceLines};
use tether_base::sync::lock;

/// The line of a breakpoint that has no code in a script.
pub(crate) const NOWHERE: i64 = -1;

/// The line of a breakpoint in a text. Where its code is not found, or in several places, the line itself: a compiler may have
/// changed it.
pub(crate) fn find_placed_line(anchor: &LineAnchor, source: &SourceLines<'_>, line: i64) -> i64 {
    let Ok(number) = u32::try_from(line.saturating_add(1)) else { return line };
    match anchor.find_line(source, number) {
        (found, AnchorStatus::Moved { .. }) => i64::from(found).saturating_sub(1),
        _ => line,
    }
}

/// Where the lines of breakpoints are in one script, as far as that was looked for.
#[derive(Default)]
pub(crate) struct LinePlacements(Mutex<HashMap<i64, LinePlacement>>);

#[derive(Clone, Copy)]
struct LinePlacement {
    wanted: i64,
    placed: i64,
}

impl LinePlacements {
    /// Records where the line of a breakpoint is.
    pub(crate) fn record(&self, breakpoint: i64, wanted: i64, placed: i64) {
        lock(&self.0).insert(breakpoint, LinePlacement { wanted, placed });
    }

    /// The line of a breakpoint: the wanted one, unless another is known.
    pub(crate) fn line_of(&self, breakpoint: i64, wanted: i64) -> i64 {
        let known = lock(&self.0).get(&breakpoint).copied();
        known.filter(|it| it.wanted == wanted).map_or(wanted, |it| it.placed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_placed_by_its_code_and_else_by_its_number() {
        let file = "a();\nlet x: number = 1;\nb(x);\nc(x);\n";
        let check = |line: i64, text: &str, expect: i64| {
            let anchor = LineAnchor::of_line(&SourceLines::of(file), line as u32 + 1).unwrap();
            assert_eq!(find_placed_line(&anchor, &SourceLines::of(text), line), expect, "{line} {text:?}");
        };
        check(2, file, 2);
        check(2, &format!("new();\nnewer();\n{file}"), 4);
        // Its types were stripped.
        check(1, "a();\nlet x         = 1;\nb(x);\nc(x);\n", 1);
        check(3, "a();\n", 3);
    }

    #[test]
    fn a_placement_is_of_one_wanted_line() {
        let placements = LinePlacements::default();
        assert_eq!(placements.line_of(1, 10), 10);
        placements.record(1, 10, 12);
        assert_eq!((placements.line_of(1, 10), placements.line_of(1, 11), placements.line_of(2, 10)), (12, 11, 10));
    }
}
