//! Memory and CPU usage of a group of processes, measured with `sysinfo`.
//!
//! Only the given processes are read, never all of `/proc`. Does not decide which processes belong to the group.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sysinfo::{MINIMUM_CPU_UPDATE_INTERVAL, Pid, ProcessRefreshKind, ProcessesToUpdate, System};
use tokio::sync::Mutex;

use super::process_handle::Process;

/// What a group of processes uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceUsage {
    /// How many of them still ran when they were measured.
    pub processes: usize,
    /// The sum of the resident set sizes; memory that processes share is counted for each of them.
    pub memory_bytes: u64,
    /// Of one core: two busy cores are 200.
    pub cpu_percent: u64,
}

/// Measures the same group of processes repeatedly. CPU usage is the average since the previous measurement; in the
/// first one, since the start of each process. Clones share their measurements.
#[derive(Clone, Default)]
pub struct ResourceMonitor(Arc<Mutex<Option<Measurement>>>);

struct Measurement {
    at: Instant,
    usage: ResourceUsage,
    /// CPU milliseconds since the start of each process, which is known by PID and start ticks.
    cpu_ms: HashMap<(u32, u64), u64>,
}

impl ResourceMonitor {
    /// Measures the processes that `list` returns; `None` if it returns an error or none.
    ///
    /// `list` and all reads run on a blocking thread. Within 200 ms of a measurement that one is returned again.
    pub async fn measure(&self, list: impl Fn() -> io::Result<Vec<Process>> + Send + 'static) -> Option<ResourceUsage> {
        let mut last = Arc::clone(&self.0).lock_owned().await;
        if let Some(last) = last.as_ref().filter(|last| last.at.elapsed() < MINIMUM_CPU_UPDATE_INTERVAL) {
            return Some(last.usage);
        }
        let measured = tokio::task::spawn_blocking(move || {
            *last = list().ok().and_then(|processes| measure_processes(&processes, last.as_ref()));
            last.as_ref().map(|last| last.usage)
        });
        measured.await.ok().flatten()
    }
}

fn measure_processes(processes: &[Process], last: Option<&Measurement>) -> Option<Measurement> {
    let mut system = System::new().ok()?;
    let pids: Vec<Pid> = processes.iter().map(|process| Pid::from_u32(process.pid())).collect();
    let kind = ProcessRefreshKind::nothing().with_memory().with_cpu().without_tasks();
    let at = Instant::now();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&pids), true, kind);
    // A process that still runs after the read had its PID during the read.
    let running = processes.iter().filter(|process| process.is_alive());
    let read: Vec<_> = running
        .filter_map(|process| {
            let read = system.process(Pid::from_u32(process.pid()))?;
            let age = Duration::from_secs(read.run_time().max(1));
            Some(((process.pid(), process.start_ticks()), read.accumulated_cpu_time(), read.memory(), age))
        })
        .collect();
    let cpu_ms: HashMap<_, _> = read.iter().map(|(id, cpu_ms, ..)| (*id, *cpu_ms)).collect();
    let cpu_percent = match last {
        Some(last) => {
            let before = |id| last.cpu_ms.get(id).copied().unwrap_or_default();
            percent_of(cpu_ms.iter().map(|(id, ms)| ms.saturating_sub(before(id))).sum(), at - last.at)
        }
        None => read.iter().map(|(_, cpu_ms, _, age)| percent_of(*cpu_ms, *age)).sum(),
    };
    let memory_bytes = read.iter().map(|(_, _, bytes, _)| bytes).sum();
    let usage = ResourceUsage { processes: read.len(), memory_bytes, cpu_percent };
    (usage.processes > 0).then_some(Measurement { at, usage, cpu_ms })
}

fn percent_of(cpu_ms: u64, elapsed: Duration) -> u64 {
    (cpu_ms as f64 * 100.0 / (elapsed.as_secs_f64() * 1000.0).max(1.0)).round() as u64
}

#[cfg(test)]
mod tests {
    use super::super::{DetachedCommand, clean_environment, spawn_detached};
    use super::*;

    #[test]
    fn cpu_usage_is_relative_to_one_core() {
        let check = |cpu_ms: u64, elapsed_ms: u64, expect: u64| {
            assert_eq!(percent_of(cpu_ms, Duration::from_millis(elapsed_ms)), expect, "{cpu_ms} in {elapsed_ms} ms");
        };
        check(0, 200, 0);
        check(100, 200, 50);
        check(400, 200, 200);
        check(10, 0, 1000);
    }

    #[tokio::test]
    async fn a_busy_process_uses_more_cpu_than_an_idle_one() {
        let folder = tempfile::tempdir().unwrap();
        let start = |script: &str| {
            spawn_detached(&DetachedCommand {
                argv: ["sh", "-c", script].map(Into::into).to_vec(),
                cwd: folder.path().into(),
                env: clean_environment::<&str, &str>([]),
                output: folder.path().join("log"),
            })
            .unwrap()
        };
        let (busy, idle) = (start("while :; do :; done"), start("exec sleep 60"));
        let monitor = ResourceMonitor::default();
        let usage_of = async |process: &Process| {
            let processes = vec![process.clone()];
            monitor.measure(move || Ok(processes.clone())).await
        };
        // The first measurement counts from the start of the process.
        let idle_usage = usage_of(&idle).await.unwrap();
        let busy_usage = tokio::time::timeout(Duration::from_secs(60), async {
            loop {
                let usage = usage_of(&busy).await.unwrap();
                if usage.cpu_percent > 30 {
                    return usage;
                }
                tokio::task::yield_now().await;
            }
        });
        let busy_usage = busy_usage.await;
        for process in [&busy, &idle] {
            process.signal_group(rustix::process::Signal::KILL);
            process.wait_for_exit().await;
        }
        let busy_usage = busy_usage.expect("a busy process uses CPU time");
        assert_eq!((busy_usage.processes, idle_usage.processes), (1, 1));
        assert!(busy_usage.memory_bytes > 100_000, "{busy_usage:?}");
        assert!(idle_usage.cpu_percent < 10, "{idle_usage:?}");
        assert_eq!(ResourceMonitor::default().measure(move || Ok(vec![busy.clone()])).await, None, "it has exited");
    }
}
