//! Memory and CPU usage of a group of processes, measured with `sysinfo`.
//!
//! Only the given processes are read, never all of `/proc`. Does not decide which processes belong to the group.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sysinfo::{MINIMUM_CPU_UPDATE_INTERVAL, Pid, ProcessRefreshKind, ProcessesToUpdate, System};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::process_handle::Process;

/// An older measurement is no base for the CPU usage of now.
const MAX_INTERVAL: Duration = Duration::from_secs(60);

/// What a group of processes uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceUsage {
    pub processes: usize,
    /// The sum of the resident set sizes; memory that processes share is counted for each of them.
    pub memory_bytes: u64,
    /// Of one core: two busy cores are 200. `None` before the second measurement.
    pub cpu_percent: Option<u64>,
}

/// Measures the same group of processes repeatedly. CPU usage is the average since the previous measurement, or over
/// 200 ms if that was more than 60 s ago. Clones share their measurements.
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
    /// `list` and all reads run on a blocking thread. Waits up to 200 ms only without a measurement of the last 60 s;
    /// within 200 ms of a measurement, that one is returned again.
    pub async fn measure(
        &self,
        list: impl Fn() -> io::Result<Vec<Process>> + Clone + Send + 'static,
    ) -> Option<ResourceUsage> {
        let mut last = Arc::clone(&self.0).lock_owned().await;
        if let Some(last) = last.as_ref().filter(|last| last.at.elapsed() < MINIMUM_CPU_UPDATE_INTERVAL) {
            return Some(last.usage);
        }
        if last.as_ref().is_none_or(|last| last.at.elapsed() > MAX_INTERVAL) {
            *last = None;
            last = update(last, list.clone()).await?;
            tokio::time::sleep(MINIMUM_CPU_UPDATE_INTERVAL).await;
        }
        update(last, list).await?.as_ref().map(|last| last.usage)
    }
}

type LastMeasurement = OwnedMutexGuard<Option<Measurement>>;

async fn update(
    mut last: LastMeasurement,
    list: impl Fn() -> io::Result<Vec<Process>> + Send + 'static,
) -> Option<LastMeasurement> {
    let updated = tokio::task::spawn_blocking(move || {
        *last = list().ok().and_then(|processes| measure_processes(&processes, last.as_ref()));
        last
    });
    updated.await.ok()
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
            Some(((process.pid(), process.start_ticks()), read.accumulated_cpu_time(), read.memory()))
        })
        .collect();
    let cpu_ms: HashMap<_, _> = read.iter().map(|(id, cpu_ms, _)| (*id, *cpu_ms)).collect();
    let cpu_percent = last.map(|last| {
        let used = cpu_ms.iter().map(|(id, ms)| ms.saturating_sub(last.cpu_ms.get(id).copied().unwrap_or_default()));
        percent_of(used.sum(), at - last.at)
    });
    let memory_bytes = read.iter().map(|(.., bytes)| bytes).sum();
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
        let usage_of = |process: &Process| {
            let (monitor, processes) = (ResourceMonitor::default(), vec![process.clone()]);
            async move { monitor.measure(move || Ok(processes.clone())).await }
        };
        let (of_busy, of_idle) = (usage_of(&busy).await.unwrap(), usage_of(&idle).await.unwrap());
        for process in [&busy, &idle] {
            process.signal_group(rustix::process::Signal::KILL);
            process.wait_for_exit().await;
        }
        assert_eq!((of_busy.processes, of_idle.processes), (1, 1));
        assert!(of_busy.memory_bytes > 100_000, "{of_busy:?}");
        let (of_busy, of_idle) = (of_busy.cpu_percent.unwrap(), of_idle.cpu_percent.unwrap());
        assert!(of_busy > of_idle && of_idle < 10, "busy {of_busy} %, idle {of_idle} %");
        assert_eq!(usage_of(&busy).await, None, "it has exited");
    }
}
