//! Mutations of valid messages, for the tests of codecs: seeded, so that every run is the same.
//!
//! They stand for the short runs of a fuzzer. The targets in `fuzz/` are guided by coverage: `cargo xtask fuzz`.

#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

/// How many mutations are made one after the other before the next begins with a valid message again.
const MAX_DEPTH: u64 = 4;
/// The longest message that is made, in bytes.
const MAX_BYTES: usize = 4096;
/// Bytes at which readers have their limits.
const LIMITS: [u8; 6] = [0, 1, 0x7f, 0x80, 0xff, b'"'];

/// Pseudo-random numbers: SplitMix64, <https://prng.di.unimi.it/splitmix64.c>.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit.max(1) as u64) as usize
    }
}

/// Calls `check` with `count` mutations of the samples.
pub fn check_mutations(samples: &[&[u8]], count: usize, mut check: impl FnMut(&[u8])) {
    let mut numbers = Numbers(samples.len() as u64);
    for _ in 0..count {
        let mut bytes = samples[numbers.below(samples.len())].to_vec();
        for _ in 0..=numbers.below(MAX_DEPTH as usize) {
            mutate(&mut bytes, samples, &mut numbers);
        }
        bytes.truncate(MAX_BYTES);
        check(&bytes);
    }
}

fn mutate(bytes: &mut Vec<u8>, samples: &[&[u8]], numbers: &mut Numbers) {
    let at = numbers.below(bytes.len());
    let end = (at + numbers.below(8) + 1).min(bytes.len());
    match numbers.below(7) {
        0 if at < bytes.len() => bytes[at] ^= 1 << numbers.below(8),
        1 if at < bytes.len() => bytes[at] = LIMITS[numbers.below(LIMITS.len())],
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at.min(end)..end)),
        4 => {
            let repeated = bytes[at.min(end)..end].to_vec();
            bytes.splice(at..at, repeated);
        }
        5 => {
            let other = samples[numbers.below(samples.len())];
            let from = numbers.below(other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        _ => bytes.insert(at, LIMITS[numbers.below(LIMITS.len())]),
    }
}

#[test]
fn mutations_are_the_same_in_every_run_and_differ_from_each_other() {
    let all = || {
        let mut made = Vec::new();
        check_mutations(&[b"a valid message", b"another"], 500, |bytes| made.push(bytes.to_vec()));
        made
    };
    let (first, second) = (all(), all());
    assert_eq!(first, second);
    let different: std::collections::BTreeSet<&Vec<u8>> = first.iter().collect();
    assert!(different.len() > 300, "{}", different.len());
}
