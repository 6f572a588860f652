//! How the demo looks: one line a step, what was done on the left, what came of it on the right.
//!
//! Colours go where the terminal shows them; NO_COLOR and pipes get plain text.

use std::time::Duration;

use anstream::println;
use anstyle::{AnsiColor, Style};

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();

/// A step of the preparations.
pub fn set_up(what: &str, outcome: &str) {
    println!("{DIM}  {what:<17} {outcome}{DIM:#}");
}

pub fn title(text: &str) {
    println!("\n{BOLD}{text}{BOLD:#}\n");
}

/// What the agent, or fate, did; and what the tether answered.
pub fn step(what: &str, outcome: &str) {
    println!("  {BOLD}{what:<17}{BOLD:#} {outcome}");
}

/// More about the last step.
pub fn more(text: &str) {
    println!("  {:<17} {text}", "");
}

/// The word that a step is about.
pub fn good(word: &str) -> String {
    format!("{GOOD}{word}{GOOD:#}")
}

/// `0.9 ms`, `42 ms`, `3.12 s`.
pub fn span(span: Duration) -> String {
    match span.as_secs_f64() * 1e3 {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.2} s", ms / 1e3),
    }
}
