//! The bytes of an input, read as choices: after their end every choice is the plainest one.
//!
//! Does not depend on what is chosen.

use std::sync::{Arc, Mutex};

/// Numbers at which arithmetic, lengths and ids go wrong.
const EDGES: [i64; 14] = [
    0,
    1,
    -1,
    2,
    i64::MAX,
    i64::MIN,
    i32::MAX as i64,
    i32::MIN as i64,
    u32::MAX as i64,
    1 << 32,
    255,
    65_536,
    100_000,
    -2,
];

/// Texts at which slices and parsers go wrong.
const TEXTS: [&str; 16] = [
    "",
    "value",
    "ä😀",
    "\u{0}",
    "%",
    "[",
    "L;",
    "a.b",
    "{",
    "\\",
    "(((",
    "-1",
    "1e999",
    "x[0]",
    "é\u{301}x",
    "\u{202e}",
];

/// Clones read on from one place, so that all sides of a session share an input.
#[derive(Clone)]
pub struct Choices(Arc<Mutex<Bytes>>);

enum Bytes {
    /// What is left of an input, the next byte last.
    Finite(Vec<u8>),
    Endless(u64),
}

impl Choices {
    pub fn of_input(input: &[u8]) -> Choices {
        Choices(Arc::new(Mutex::new(Bytes::Finite(input.iter().rev().copied().collect()))))
    }

    /// The same choices for the same seed, without end.
    pub fn of_seed(seed: u64) -> Choices {
        Choices(Arc::new(Mutex::new(Bytes::Endless(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1))))
    }

    /// A seed that is the same for the same bytes.
    pub fn of_bytes(salt: u64, bytes: &[u8]) -> Choices {
        let hash = bytes
            .iter()
            .fold(salt ^ 0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        Choices::of_seed(hash)
    }

    pub fn is_at_end(&self) -> bool {
        matches!(&*self.0.lock().unwrap(), Bytes::Finite(left) if left.is_empty())
    }

    pub fn byte(&self) -> u8 {
        match &mut *self.0.lock().unwrap() {
            Bytes::Finite(left) => left.pop().unwrap_or(0),
            Bytes::Endless(state) => {
                // xorshift64
                *state ^= *state << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
                (*state >> 32) as u8
            }
        }
    }

    /// A number below `count`, which is at most 256 and at least 1.
    pub fn below(&self, count: usize) -> usize {
        usize::from(self.byte()) % count
    }

    /// Whether one of so many cases has come.
    pub fn is_one_in(&self, count: usize) -> bool {
        self.below(count) == count - 1
    }

    pub fn pick<T: Copy>(&self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Mostly small, at times an edge.
    pub fn number(&self) -> i64 {
        match self.byte() {
            0..=199 => i64::from(self.byte() % 12),
            200..=229 => i64::from(self.byte()),
            _ => self.pick(&EDGES),
        }
    }

    pub fn text(&self) -> String {
        match self.below(24) {
            23 => "[".repeat(1 + 700 * self.below(256)),
            22 => "ä".repeat(4 * self.below(256)),
            _ => self.pick(&TEXTS).to_owned(),
        }
    }
}
