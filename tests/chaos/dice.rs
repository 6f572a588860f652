//! A random sequence that its seed decides.

/// SplitMix64, of which each seed is a good one.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.roll() % n
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
