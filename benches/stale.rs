//! The stale check, warm and cold, against the seed method (Node) and against the raw limit, interleaved in one run.
//!
//! `cargo bench --bench stale [-- 1000 10000]` (numbers of files; default 1k, 10k and 100k). A plain harness, not
//! criterion: what counts are ratios between processes and threads that must see the same moment of the machine.

use std::io::{BufRead, BufReader, Write};
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, StatxFlags, openat, statx};
use tether_changes::{ChangeCriterion, ChangeTracker, CheckMethod, TrackerOptions};

const WARM_CHECKS: usize = 3_000;
const IGNORED_FILES: usize = 50_000;

fn main() {
    let sizes: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1_000, 10_000, 100_000] } else { sizes };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    println!("µs: median of the wall time / best of it / median of the CPU time of all threads");
    println!(
        "{:>7} {:>20} {:>20} {:>26} {:>26} {:>26}",
        "files", "warm", "warm, one edit", "cold", "raw limit", "seed"
    );
    let mut warm = Vec::new();
    for files in &sizes {
        let row = runtime.block_on(async { tokio::spawn(measure_row(*files)).await.unwrap() });
        println!("{files:>7} {:>20} {:>20} {:>26} {:>26} {:>26}", row.warm, row.edited, row.cold, row.raw, row.seed);
        println!("        cold/raw {}; cold/seed {}", row.cold.over(&row.raw), row.cold.over(&row.seed));
        println!("        warm/seed 1/{:.0}", row.seed.median / row.warm.median);
        warm.push(row.warm.median);
    }
    println!("warm at {} / warm at {} files: {:.2}", sizes[sizes.len() - 1], sizes[0], warm[warm.len() - 1] / warm[0]);
}

struct Row {
    warm: Times,
    edited: Times,
    cold: Times,
    raw: Times,
    seed: Times,
}

/// In µs.
struct Times {
    median: f64,
    best: f64,
    cpu: f64,
}

impl Times {
    fn of(mut samples: Vec<(f64, f64)>) -> Times {
        samples.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (median, best) = (samples[samples.len() / 2].0, samples[0].0);
        samples.sort_by(|one, other| one.1.total_cmp(&other.1));
        Times { median, best, cpu: samples[samples.len() / 2].1 }
    }

    fn over(&self, other: &Times) -> String {
        let (median, best, cpu) = (self.median / other.median, self.best / other.best, self.cpu / other.cpu);
        format!("{median:.2} / {best:.2} / {cpu:.2}")
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = usize::from(self.median < 1e3);
        f.pad(&format!("{:.digits$} / {:.digits$} / {:.digits$}", self.median, self.best, self.cpu))
    }
}

/// Wall time, and CPU time of this process.
struct Stopwatch(Instant, f64);

impl Stopwatch {
    fn start() -> Stopwatch {
        Stopwatch(Instant::now(), cpu_time_us())
    }

    fn stop(&self) -> (f64, f64) {
        (self.0.elapsed().as_secs_f64() * 1e6, cpu_time_us() - self.1)
    }
}

fn cpu_time_us() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

async fn measure_row(files: usize) -> Row {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    create_files(&root, files);
    let cookies = tempfile::tempdir().unwrap();
    let start = |cookie_dir: PathBuf| {
        ChangeTracker::start(TrackerOptions {
            root: root.clone(),
            cookie_dir,
            criterion: ChangeCriterion::Metadata,
            derived: Default::default(),
        })
    };
    // Without a folder for its fence file a tracker can only scan.
    let walking = start(cookies.path().join("missing"));
    walking.set_baseline(walking.take_snapshot().await.unwrap()).await;
    let mut seed = Seed::start(&root);
    let rounds = (600_000 / files).clamp(15, 100);
    let (mut cold, mut raw, mut node) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds + 2 {
        let watch = Stopwatch::start();
        let check = walking.compare_with_baseline().await.unwrap();
        let walked = watch.stop();
        assert!(!check.stale && matches!(check.method, CheckMethod::Cold { .. }));
        let watch = Stopwatch::start();
        assert_eq!(raw_walk(&root), files + 1);
        let limit = watch.stop();
        let seeded = seed.walk();
        // The first rounds fill the caches.
        if round > 1 {
            cold.push(walked);
            raw.push(limit);
            node.push(seeded);
        }
    }
    // Only now: watches make opening a folder slower for every process.
    let watching = start(cookies.path().to_path_buf());
    watching.subscribe_hints().wait_for(|count| *count > 0).await.unwrap();
    watching.set_baseline(watching.take_snapshot().await.unwrap()).await;
    let mut warm = Vec::new();
    for _ in 0..WARM_CHECKS {
        let watch = Stopwatch::start();
        let check = watching.compare_with_baseline().await.unwrap();
        warm.push(watch.stop());
        assert!(!check.stale && check.method == CheckMethod::Warm, "{check:?}");
    }
    let mut edited = Vec::new();
    for number in 0..300 {
        std::fs::write(root.join("d0/e0/f0.ts"), format!("{number}")).unwrap();
        let watch = Stopwatch::start();
        let check = watching.compare_with_baseline().await.unwrap();
        edited.push(watch.stop());
        assert!(check.total == 1 && check.method == CheckMethod::Warm, "{check:?}");
    }
    let [warm, edited, cold, raw, seed] = [warm, edited, cold, raw, node].map(Times::of);
    Row { warm, edited, cold, raw, seed }
}

/// Ten files a folder, and 50,000 ignored files in `node_modules`.
fn create_files(root: &Path, files: usize) {
    let ten = |folder: PathBuf| {
        std::fs::create_dir_all(&folder).unwrap();
        (0..10).for_each(|file| std::fs::write(folder.join(format!("f{file}.ts")), "let x = 1;\n").unwrap());
    };
    (0..files / 10).for_each(|folder| ten(root.join(format!("d{}/e{folder}", folder / 32))));
    (0..IGNORED_FILES / 10).for_each(|folder| ten(root.join(format!("node_modules/m{}/n{folder}", folder / 32))));
    std::fs::write(root.join(".devtoolsignore"), "*.log\n").unwrap();
}

/// A Node process that scans the workspace once per line on its stdin.
struct Seed {
    node: Child,
    requests: ChildStdin,
    responses: BufReader<ChildStdout>,
}

impl Seed {
    fn start(root: &Path) -> Seed {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/seed/stale.js");
        let mut node = Command::new("node")
            .arg(script)
            .arg(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node is installed");
        let (requests, responses) = (node.stdin.take().unwrap(), BufReader::new(node.stdout.take().unwrap()));
        Seed { node, requests, responses }
    }

    /// Wall and CPU time of one walk, as the process itself measures them.
    fn walk(&mut self) -> (f64, f64) {
        self.requests.write_all(b"\n").unwrap();
        let mut line = String::new();
        self.responses.read_line(&mut line).unwrap();
        let mut times = line.split_whitespace().map(|time| time.parse::<f64>().unwrap());
        (times.next().unwrap(), times.next().unwrap())
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        let _ = self.node.kill();
        let _ = self.node.wait();
    }
}

/// The raw limit: two threads that getdents64 and statx what is not ignored, and keep nothing.
fn raw_walk(root: &Path) -> usize {
    let root = openat(CWD, root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let (queue, pending, files) = (Mutex::new(vec![b".".to_vec()]), AtomicUsize::new(1), AtomicUsize::new(0));
    let work = || {
        let mut buffer = [MaybeUninit::uninit(); 32 << 10];
        let mut mine: Vec<Vec<u8>> = Vec::new();
        let mut count = 0;
        while pending.load(Ordering::Acquire) > 0 {
            let Some(path) = mine.pop().or_else(|| queue.lock().unwrap().pop()) else {
                std::hint::spin_loop();
                continue;
            };
            let found = raw_read(&root, &path, &mut buffer, &mut mine);
            count += found.0;
            pending.fetch_add(found.1, Ordering::AcqRel);
            pending.fetch_sub(1, Ordering::AcqRel);
            if mine.len() > 1 {
                let mut shared = queue.lock().unwrap();
                if shared.is_empty() {
                    shared.extend(mine.drain(..mine.len() / 2));
                }
            }
        }
        files.fetch_add(count, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    files.into_inner()
}

fn raw_read(
    root: &rustix::fd::OwnedFd,
    path: &[u8],
    buffer: &mut [MaybeUninit<u8>],
    folders: &mut Vec<Vec<u8>>,
) -> (usize, usize) {
    let folder = openat(root, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let mut entries = RawDir::new(&folder, buffer);
    let (mut files, before) = (0, folders.len());
    while let Some(entry) = entries.next() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        match (entry.file_type(), name.to_bytes()) {
            (FileType::Directory, b"." | b".." | b"node_modules") => {}
            (FileType::Directory, name) => folders.push([path, b"/", name].concat()),
            _ => {
                let mask = StatxFlags::MTIME | StatxFlags::SIZE | StatxFlags::INO;
                std::hint::black_box(statx(&folder, name, AtFlags::SYMLINK_NOFOLLOW, mask).unwrap());
                files += 1;
            }
        }
    }
    (files, folders.len() - before)
}
