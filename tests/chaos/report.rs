//! What was done, how often, and the end of the story.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

use crate::script::{FAULTS, Fault};

/// How much of the story is printed when something breaks, in operations.
const SHOWN: usize = 50;

#[derive(Default)]
pub struct Report {
    pub operations: usize,
    pub failed: usize,
    pub sessions: usize,
    /// How often a stop was found again as it was.
    pub stops_checked: usize,
    /// How often debugpy has ended a session as it began, while its program went on.
    pub ended_attaches: usize,
    pub injected: BTreeMap<Fault, usize>,
    story: VecDeque<String>,
}

impl Report {
    pub fn tell(&mut self, line: String) {
        if self.story.len() == SHOWN {
            self.story.pop_front();
        }
        self.story.push_back(line);
    }

    /// Adds to the last line.
    pub fn add(&mut self, text: &str) {
        if let Some(last) = self.story.back_mut() {
            last.push_str(text);
        }
    }

    pub fn last(&self) -> &str {
        self.story.back().map_or("", |it| it.as_str())
    }

    pub fn story(&self) -> String {
        self.story.iter().map(|line| format!("  {line}\n")).collect()
    }

    /// The faults that have never been played.
    pub fn never_injected(&self) -> Vec<Fault> {
        FAULTS.iter().map(|(fault, _)| *fault).filter(|it| !self.injected.contains_key(it)).collect()
    }

    pub fn to_json(&self, seed: u64, took: Duration, readings: u64) -> Value {
        let injected: BTreeMap<String, usize> =
            self.injected.iter().map(|(fault, count)| (format!("{fault:?}"), *count)).collect();
        json!({
            "seed": seed, "operations": self.operations, "failed": self.failed, "sessions": self.sessions,
            "stopsChecked": self.stops_checked, "endedAttaches": self.ended_attaches, "fileReadings": readings, "injected": injected,
            "seconds": took.as_secs_f64(),
        })
    }
}
