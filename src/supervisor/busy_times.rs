//! A record of how long the threads of the runtime are busy: with `DEVTETHER_BUSY_RECORD=FILE` in its environment, a
//! supervisor appends a line each second, `EPOCH_MS,PERIODS,LONG,LONGEST_US`: how often a thread has gone to sleep so far,
//! how many of its busy periods before that were longer than [`LONG_PERIOD`], and the longest of this second.
//!
//! A thread polls one task after the other while it is busy, so no poll is longer than the busy period that it is in. Times
//! in which the thread could run, and the kernel ran others, do not count (`/proc/thread-self/schedstat`). Without the
//! variable it costs nothing.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tether_base::clock::now_ms;
use tokio::runtime::Builder;
use tracing::warn;

/// Names the file.
const FILE_VARIABLE: &str = "DEVTETHER_BUSY_RECORD";
/// Between two lines.
const LINE_INTERVAL: Duration = Duration::from_secs(1);
/// A longer period keeps others waiting.
const LONG_PERIOD: Duration = Duration::from_millis(10);

/// The busy periods of the threads of a runtime.
#[derive(Default)]
struct BusyTimes {
    periods: AtomicU64,
    long: AtomicU64,
    longest_us: AtomicU64,
}

/// The busy period that a thread is in.
struct BusyPeriod {
    began: Instant,
    /// How long the thread had waited for the kernel by then.
    waited: Duration,
}

thread_local! {
    static PERIOD: RefCell<Option<BusyPeriod>> = const { RefCell::new(None) };
    /// The kernel's figures of this thread; `None`: it has none, and all times count.
    static SCHEDULING: Option<File> = File::open("/proc/thread-self/schedstat").ok();
}

/// Records the busy times of the runtime that is built, if the variable is set. A failure is only logged.
pub fn record_busy_times(builder: &mut Builder) {
    let Some(file) = std::env::var_os(FILE_VARIABLE).filter(|file| !file.is_empty()) else { return };
    let file = Path::new(&file).to_owned();
    let times = BusyTimes::observe(builder);
    // Ends with the process.
    let recording = move || {
        if let Err(cause) = open_record(&file).and_then(|record| times.record(record)) {
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
    fn observe(builder: &mut Builder) -> Arc<BusyTimes> {
        let times = Arc::<BusyTimes>::default();
        let ended = Arc::clone(&times);
        builder.on_thread_start(|| PERIOD.set(Some(BusyPeriod::begin())));
        builder.on_thread_unpark(|| PERIOD.set(Some(BusyPeriod::begin())));
        builder.on_thread_park(move || {
            if let Some(period) = PERIOD.take() {
                ended.add(period.length());
            }
        });
        times
    }

    fn add(&self, period: Duration) {
        self.longest_us.fetch_max(u64::try_from(period.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.periods.fetch_add(1, Ordering::Relaxed);
        // Last: who sees that there was a long one also sees how long it was.
        self.long.fetch_add(u64::from(period > LONG_PERIOD), Ordering::Release);
    }

    fn record(&self, mut record: File) -> io::Result<()> {
        loop {
            thread::sleep(LINE_INTERVAL);
            record.write_all(self.take_line().as_bytes())?;
        }
    }

    fn take_line(&self) -> String {
        let long = self.long.load(Ordering::Acquire);
        let periods = self.periods.load(Ordering::Relaxed);
        let longest = self.longest_us.swap(0, Ordering::Relaxed);
        format!("{},{periods},{long},{longest}\n", now_ms())
    }
}

impl BusyPeriod {
    fn begin() -> BusyPeriod {
        BusyPeriod { began: Instant::now(), waited: waited_for_kernel() }
    }

    fn length(&self) -> Duration {
        let length = self.began.elapsed();
        length.saturating_sub(waited_for_kernel().saturating_sub(self.waited))
    }
}

/// How long this thread could have run, and has not, since its start: the second number, in nanoseconds.
fn waited_for_kernel() -> Duration {
    let read = SCHEDULING.with(|file| {
        let mut text = [0; 64];
        let length = file.as_ref()?.read_at(&mut text, 0).ok()?;
        std::str::from_utf8(text.get(..length)?).ok()?.split_whitespace().nth(1)?.parse().ok()
    });
    Duration::from_nanos(read.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_blocks_a_thread_is_a_long_period() {
        let mut builder = Builder::new_multi_thread();
        let times = BusyTimes::observe(builder.worker_threads(2).enable_all());
        let runtime = builder.build().unwrap();
        let block = Duration::from_millis(30);
        // Not asynchronously: this is what must not be done.
        runtime.block_on(runtime.spawn(async move { thread::sleep(block) })).unwrap();
        // The thread goes to sleep a moment later.
        let deadline = Instant::now() + Duration::from_secs(30);
        while times.long.load(Ordering::Acquire) == 0 && Instant::now() < deadline {
            thread::yield_now();
        }
        let line = times.take_line();
        let [_at, periods, long, longest]: [u64; 4] =
            line.trim_end().split(',').map(|number| number.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap();
        assert!(periods > 0 && long == 1 && longest >= 30_000, "{line}");
        assert!(times.take_line().ends_with(",0\n"), "the longest is that of its second");
    }
}
