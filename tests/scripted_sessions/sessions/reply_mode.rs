//! How a scripted peer answers one request: at once, late, twice, wrong, or not at all.

use std::time::Duration;

use super::choices::Choices;

/// Below, at and above the deadlines of requests.
const DELAYS_MS: [u64; 7] = [1, 30, 300, 2_000, 9_999, 10_001, 40_000];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyMode {
    AtOnce,
    Late(Duration),
    Twice,
    /// Refused, cut off, or of another form.
    Wrong,
    Never,
    /// An event comes before it.
    AfterEvent,
    /// The peer closes its connection.
    Close,
}

/// How often a peer answers otherwise than at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliability {
    /// One answer of so many may be another.
    Mostly(usize),
    Seldom,
}

impl Reliability {
    pub fn choose(choices: &Choices) -> Reliability {
        match choices.below(4) {
            0 | 1 => Reliability::Mostly(40),
            2 => Reliability::Mostly(8),
            _ => Reliability::Seldom,
        }
    }
}

impl ReplyMode {
    pub fn choose(reliability: Reliability, choices: &Choices) -> ReplyMode {
        if let Reliability::Mostly(count) = reliability
            && !choices.is_one_in(count)
        {
            return ReplyMode::AtOnce;
        }
        match choices.byte() {
            0..=169 => ReplyMode::AtOnce,
            170..=184 => ReplyMode::Late(Duration::from_millis(choices.pick(&DELAYS_MS))),
            185..=194 => ReplyMode::Twice,
            195..=214 => ReplyMode::Wrong,
            215..=220 => ReplyMode::Never,
            221..=254 => ReplyMode::AfterEvent,
            255 => ReplyMode::Close,
        }
    }
}
