//! A record of how long the threads of the runtime are busy: with `DEVTETHER_BUSY_RECORD=FILE` in its environment, a
//! supervisor appends a line each second, `EPOCH_MS,PERIODS,LONG,LONGEST_US`: how often a thread has gone to sleep so far,
//! how many of its busy periods before that were longer than [`LONG_PERIOD`], and the longest of this second.
//!
//! A thread polls one task after the other while it is busy, so no poll is longer than the busy period that it is in.
//! Times in which the thread is not scheduled count. Without the variable it costs nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::RuntimeMetrics;
use tracing::warn;

use crate::clock::now_ms;

/// Names the file.
const FILE_VARIABLE: &str = "DEVTETHER_BUSY_RECORD";
/// Between two readings of the runtime's counters.
const READING_INTERVAL: Duration = Duration::from_millis(1);
/// Between two lines.
const LINE_INTERVAL: Duration = Duration::from_secs(1);
/// A longer period keeps others waiting.
const LONG_PERIOD: Duration = Duration::from_millis(10);

/// The busy periods of the threads of a runtime.
struct BusyTimes {
    metrics: RuntimeMetrics,
    /// Of each thread: how long it has been busy, as of the last time that it went to sleep.
    busy: Vec<Duration>,
    long: u64,
    longest: Duration,
}

/// Starts the record of this runtime, if the variable is set. A failure is only logged.
pub fn record_busy_times(metrics: RuntimeMetrics) {
    let Some(file) = std::env::var_os(FILE_VARIABLE).filter(|file| !file.is_empty()) else { return };
    let file = Path::new(&file).to_owned();
    // Ends with the process.
    let recording = move || {
        if let Err(cause) = open_record(&file).and_then(|record| BusyTimes::new(metrics).record(record)) {
            warn!("the record of busy times ends here, {} cannot be written: {cause}", file.display());
        }
    };
    if let Err(cause) = thread::Builder::new().name("busy-times".to_owned()).spawn(recording) {
        warn!("busy times are not recorded: {cause}");
    }
}

fn open_record(file: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(file)
}

impl BusyTimes {
    fn new(metrics: RuntimeMetrics) -> BusyTimes {
        let busy = (0..metrics.num_workers()).map(|worker| metrics.worker_total_busy_duration(worker)).collect();
        BusyTimes { metrics, busy, long: 0, longest: Duration::ZERO }
    }

    fn record(mut self, mut record: File) -> io::Result<()> {
        loop {
            let began = Instant::now();
            while began.elapsed() < LINE_INTERVAL {
                thread::sleep(READING_INTERVAL);
                self.read_counters();
            }
            record.write_all(self.take_line().as_bytes())?;
        }
    }

    /// A period counts when it has ended. Several that end between two readings count as one.
    fn read_counters(&mut self) {
        for (worker, before) in self.busy.iter_mut().enumerate() {
            let now = self.metrics.worker_total_busy_duration(worker);
            let period = now.saturating_sub(*before);
            *before = now;
            self.long += u64::from(period > LONG_PERIOD);
            self.longest = self.longest.max(period);
        }
    }

    fn take_line(&mut self) -> String {
        let periods: u64 = (0..self.busy.len()).map(|worker| self.metrics.worker_park_count(worker)).sum();
        let longest = std::mem::take(&mut self.longest);
        format!("{},{periods},{},{}\n", now_ms(), self.long, longest.as_micros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_blocks_a_thread_is_a_long_period() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let mut times = BusyTimes::new(runtime.metrics());
        let block = Duration::from_millis(30);
        // Not asynchronously: this is what must not be done.
        runtime.block_on(runtime.spawn(async move { thread::sleep(block) })).unwrap();
        while times.longest < block {
            times.read_counters();
        }
        assert!(times.long > 0);
        let line = times.take_line();
        let [_at, periods, long, longest]: [u64; 4] =
            line.trim_end().split(',').map(|number| number.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap();
        assert!(periods > 0 && long == times.long && longest >= 30_000, "{line}");
        assert!(times.take_line().ends_with(",0\n"), "the longest is that of its second");
    }
}
