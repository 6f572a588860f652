//! What is believed of the sessions, by what was answered and what was done to them.
//!
//! ```text
//!            an answer says STOPPED
//!   Open ───────────────────────────▶ Stopped ── must be found again, the same, until
//!    ▲                                   │
//!    └── resumed, or harmed: a kill ─────┘        an answer says that it has ended ──▶ forgotten
//! ```

use serde_json::Value;

use crate::programs::Program;

/// A stop, which nothing that was done since can have ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stop {
    pub pid: Option<u64>,
    pub line: Option<u64>,
    /// What the program's counter has been evaluated to.
    pub turns: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Belief {
    Stopped(Stop),
    /// It may run, stop, or have ended.
    Open,
}

#[derive(Debug)]
pub struct Session {
    pub id: String,
    pub program: &'static Program,
    pub belief: Belief,
    /// Its program, adapter, host or connection was ended, or it was told to end: it may be over.
    pub is_harmed: bool,
    pub is_attached: bool,
    pub pid: Option<u64>,
}

impl Session {
    pub fn stop(&self) -> Option<&Stop> {
        match &self.belief {
            Belief::Stopped(stop) => Some(stop),
            Belief::Open => None,
        }
    }

    /// It may be anywhere, or over.
    pub fn harm(&mut self) {
        self.belief = Belief::Open;
        self.is_harmed = true;
    }

    /// Takes over what an answer says of it. Returns whether it has ended. Errors: that cannot be.
    pub fn learn(&mut self, answer: &Value) -> Result<bool, String> {
        let state = answer["state"].as_str().unwrap_or_default();
        let reason = &answer["stopReason"]["location"]["lineNumber"];
        let seen = Stop { pid: answer["pid"].as_u64(), line: reason.as_u64(), turns: None };
        self.pid = self.pid.or(seen.pid);
        if is_silent(answer) {
            return Ok(false);
        }
        match (state, &mut self.belief) {
            ("STOPPED", Belief::Stopped(stop)) => {
                let agree = |a: Option<u64>, b: Option<u64>| a.is_none() || b.is_none() || a == b;
                if !agree(stop.pid, seen.pid) || !agree(stop.line, seen.line) {
                    return Err(format!("{} was at {stop:?}, and is at {seen:?}: {answer}", self.id));
                }
                stop.pid = stop.pid.or(seen.pid);
                stop.line = stop.line.or(seen.line);
            }
            // The end may not have been noticed yet.
            ("STOPPED", Belief::Open) if self.is_harmed => {}
            ("STOPPED", Belief::Open) => self.belief = Belief::Stopped(seen),
            ("STARTING" | "RUNNING", Belief::Open) => {}
            ("TERMINATED" | "DISCONNECTED", Belief::Open) if self.is_harmed => {
                // It is attached to again once its connection is there again.
                return Ok(!(self.is_attached && state == "DISCONNECTED" && is_reconnecting(answer)));
            }
            ("TERMINATED" | "DISCONNECTED", Belief::Open) => {
                return Err(format!("{} has ended, and nobody has ended it: {answer}", self.id));
            }
            (_, Belief::Stopped(stop)) => {
                return Err(format!("the stop of {} is lost, {stop:?}: {answer}", self.id));
            }
            _ => return Err(format!("{} has no state: {answer}", self.id)),
        }
        Ok(false)
    }

    /// Takes over the program's counter at a stop. Errors: it has run on.
    pub fn learn_turns(&mut self, value: &Value) -> Result<(), String> {
        let Belief::Stopped(stop) = &mut self.belief else { return Ok(()) };
        let Some(turns) = value["result"].as_str().map(|it| it.trim().to_owned()) else { return Ok(()) };
        match &stop.turns {
            Some(known) if *known != turns => {
                Err(format!("{} has run on: its counter was {known}, and is {turns}", self.id))
            }
            _ => {
                stop.turns = Some(turns);
                Ok(())
            }
        }
    }
}

/// Its host does not answer: nothing is known of it.
pub fn is_silent(answer: &Value) -> bool {
    answer["message"].as_str().is_some_and(|message| message.contains("has answered nothing"))
}

fn is_reconnecting(answer: &Value) -> bool {
    answer["message"].as_str().is_some_and(|message| message.contains("attached to again"))
}
