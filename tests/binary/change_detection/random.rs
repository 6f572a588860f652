//! Reproducible random choices: `TETHER_SEED` sets the seed, and every test prints its own.

use crate::support::split_mix::SplitMix;

/// The choices of one test.
pub struct SeededRandom(SplitMix);

impl SeededRandom {
    pub fn new(name: &str) -> SeededRandom {
        let seed = std::env::var("TETHER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_121);
        println!("{name}: TETHER_SEED={seed}");
        SeededRandom(SplitMix::new(seed))
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}
