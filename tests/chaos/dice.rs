//! Choices of a random sequence that its seed decides.

use crate::support::split_mix::SplitMix;

/// The choices of one seed.
pub struct Dice(SplitMix);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(SplitMix::new(seed))
    }

    pub fn roll(&mut self) -> u64 {
        self.0.next()
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    /// One of these, by their weights.
    pub fn choose<T: Copy>(&mut self, weighted: &[(T, u64)]) -> T {
        let mut left = self.below(weighted.iter().map(|(_, weight)| weight).sum());
        for (it, weight) in weighted {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return *it,
            }
        }
        unreachable!("the sum of all weights is above it")
    }

    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}
