//! Reproducible random choices: `TETHER_SEED` sets the seed, and every test prints its own.

/// SplitMix64 (Steele, Lea, Flood 2014): the same sequence on every machine.
pub struct SeededRandom(u64);

impl SeededRandom {
    pub fn new(name: &str) -> SeededRandom {
        let seed = std::env::var("TETHER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_121);
        println!("{name}: TETHER_SEED={seed}");
        SeededRandom(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}
