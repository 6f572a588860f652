//! What was measured of the supervisor, and whether it grows.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// How much memory may grow from the first third after the warm-up to the last third, in bytes.
const MAX_GROWTH: u64 = 2 << 20;
/// How many descriptors more there may be.
const MAX_MORE_DESCRIPTORS: usize = 3;
/// The part of the samples in which caches and logs fill up.
const WARM_UP: f64 = 0.25;
/// How many busy periods of a million may be longer than 10 ms.
const MAX_LONG_OF_MILLION: u64 = 1_000;

#[derive(Clone, Copy)]
pub struct Sample {
    pub at: Duration,
    /// The proportional set size, in bytes.
    pub memory: u64,
    pub descriptors: usize,
}

/// The busy periods of the supervisor's threads: no poll is longer than the period that it is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusyTotals {
    pub periods: u64,
    /// Of these, longer than 10 ms.
    pub long: u64,
    pub longest: Duration,
}

pub struct Measurements {
    pub samples: Vec<Sample>,
    pub busy: BusyTotals,
}

impl BusyTotals {
    /// Reads the record of a supervisor: `EPOCH_MS,PERIODS,LONG,LONGEST_US` a line.
    pub fn parse(record: &str) -> Result<BusyTotals> {
        let mut totals = BusyTotals::default();
        for line in record.lines() {
            let numbers: Result<Vec<u64>, _> = line.split(',').map(str::parse).collect();
            let numbers = numbers.with_context(|| format!("no line of busy times: {line}"))?;
            let [_at, periods, long, longest] = numbers[..] else { anyhow::bail!("no line of busy times: {line}") };
            totals = BusyTotals { periods, long, longest: totals.longest.max(Duration::from_micros(longest)) };
        }
        Ok(totals)
    }
}

impl Measurements {
    pub fn to_csv(&self) -> String {
        let line =
            |sample: &Sample| format!("{},{},{}\n", sample.at.as_secs(), sample.memory / 1024, sample.descriptors);
        let lines: String = self.samples.iter().map(line).collect();
        format!("seconds,pss_kib,descriptors\n{lines}")
    }

    pub fn summary(&self) -> String {
        let (memory, descriptors) = self.growth();
        format!(
            "memory {} KiB → {} KiB, descriptors {} → {} (medians of thirds), {} busy periods, {} longer than 10 ms, the longest {:?}",
            memory.0 / 1024,
            memory.1 / 1024,
            descriptors.0,
            descriptors.1,
            self.busy.periods,
            self.busy.long,
            self.busy.longest
        )
    }

    /// The medians of the first and of the last third after the warm-up.
    fn growth(&self) -> ((u64, u64), (usize, usize)) {
        let warm = &self.samples[(self.samples.len() as f64 * WARM_UP) as usize..];
        let third = warm.len().div_ceil(3);
        let (first, last) = (&warm[..third], &warm[warm.len() - third..]);
        let memory = |samples: &[Sample]| median(samples.iter().map(|sample| sample.memory).collect());
        let descriptors = |samples: &[Sample]| median(samples.iter().map(|sample| sample.descriptors).collect());
        ((memory(first), memory(last)), (descriptors(first), descriptors(last)))
    }

    /// Errors: memory or descriptors grow, or the supervisor's threads are kept busy.
    pub fn check_growth(&self) -> Result<()> {
        let (memory, descriptors) = self.growth();
        ensure!(memory.1 <= memory.0 + MAX_GROWTH, "memory grows: {}", self.summary());
        ensure!(descriptors.1 <= descriptors.0 + MAX_MORE_DESCRIPTORS, "descriptors grow: {}", self.summary());
        let most = self.busy.periods.saturating_mul(MAX_LONG_OF_MILLION) / 1_000_000;
        ensure!(self.busy.long <= most, "a thread of the supervisor is kept busy: {}", self.summary());
        Ok(())
    }
}

/// Of no numbers it is 0.
fn median<T: Ord + Copy + Default>(mut numbers: Vec<T>) -> T {
    numbers.sort_unstable();
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurements(memory: impl Fn(u64) -> u64, descriptors: impl Fn(u64) -> usize) -> Measurements {
        let sample = |at| Sample { at: Duration::from_secs(5 * at), memory: memory(at), descriptors: descriptors(at) };
        let busy = BusyTotals { periods: 100_000, long: 3, longest: Duration::from_millis(12) };
        Measurements { samples: (0..200).map(sample).collect(), busy }
    }

    #[test]
    fn growth_after_the_warm_up_is_an_error() {
        let flat = measurements(|at| (20 << 20) + at % 7 * 100_000, |at| 30 + at as usize % 5);
        flat.check_growth().unwrap();
        assert_eq!(flat.to_csv().lines().count(), 201);
        measurements(|at| (20 + 10.min(at)) << 20, |_| 30).check_growth().unwrap();
        let growing = measurements(|at| (20 << 20) + at * 50_000, |_| 30).check_growth().unwrap_err();
        assert!(growing.to_string().starts_with("memory grows"), "{growing}");
        let leaking = measurements(|_| 20 << 20, |at| 30 + at as usize / 10).check_growth().unwrap_err();
        assert!(leaking.to_string().starts_with("descriptors grow"), "{leaking}");
        let mut busy = measurements(|_| 20 << 20, |_| 30);
        busy.busy.long = 101;
        assert!(busy.check_growth().is_err());
    }

    #[test]
    fn the_record_of_busy_times_is_summed_up() {
        let totals = BusyTotals::parse("1000,10,1,12000\n2000,30,2,900\n").unwrap();
        assert_eq!(totals, BusyTotals { periods: 30, long: 2, longest: Duration::from_millis(12) });
        assert!(BusyTotals::parse("1000,10\n").is_err());
    }
}
