//! The demo's output: a line per step, the action on the left, its result on the right.
//!
//! Colours only on a terminal; NO_COLOR and pipes get plain text.

use std::time::Duration;

use anstream::println;
use anstyle::{AnsiColor, Style};

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();

/// Prints a step of the preparation.
pub fn print_preparation(what: &str, outcome: &str) {
    println!("{DIM}  {what:<17} {outcome}{DIM:#}");
}

/// Prints the title of a part of the story.
pub fn print_title(text: &str) {
    println!("\n{BOLD}{text}{BOLD:#}\n");
}

/// Prints an action and its result.
pub fn print_step(what: &str, outcome: &str) {
    println!("  {BOLD}{what:<17}{BOLD:#} {outcome}");
}

/// Prints another line of the last step's result.
pub fn print_detail(text: &str) {
    println!("  {:<17} {text}", "");
}

/// The word in green.
pub fn green(word: &str) -> String {
    format!("{GOOD}{word}{GOOD:#}")
}

/// `0.9 ms`, `42 ms`, `3.12 s`.
pub fn format_duration(span: Duration) -> String {
    match span.as_secs_f64() * 1e3 {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.2} s", ms / 1e3),
    }
}
