//! Runs many sessions of each adapter, by their seeds, and compares the memory before and after.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::future::Future;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::Duration;

use crate::sessions::adapters::{java_session, node_session};
use crate::sessions::choices::Choices;
use crate::sessions::debug_session::adapter_session;
use crate::sessions::editor::SessionOutcome;
use crate::sessions::runner::run_session;

/// How many requests each adapter is sent, unless the environment says otherwise.
const REQUESTS: usize = 2_000;
/// How many requests a session has.
const SESSION_REQUESTS: usize = 50;
/// Sessions after which what is allocated once has been.
const WARM_UP: u64 = 12;
/// Of so many failures no more are looked for.
const MAX_FAILURES: usize = 20;
/// What may be left of all sessions, in bytes.
const MAX_LEFT: isize = 256 << 10;

/// Counts the bytes that are allocated and not freed.
struct CountingAllocator;

static ALLOCATED: AtomicIsize = AtomicIsize::new(0);

// SAFETY: all calls are passed on to the system's allocator as they are.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// One test at a time: the allocated bytes are those of all threads.
static ALONE: Mutex<()> = Mutex::new(());

/// What an adapter of ours answers within [`QUICK_LIMIT`] in every state.
const QUICK: [&str; 3] = ["threads", "pause", "disconnect"];
/// Of virtual time.
const QUICK_LIMIT: Duration = Duration::from_secs(1);

/// Sends random requests to an adapter, in sessions of which each has a seed; returns what has come of them.
fn check_adapter<F>(session: fn(Choices, usize) -> F) -> SessionOutcome
where
    F: Future<Output = SessionOutcome> + Send + 'static,
{
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let run = |seed: u64| {
        // The last line of a test whose process dies, with `--nocapture`.
        println!("seed {seed}");
        run_session(move || session(Choices::of_seed(seed), SESSION_REQUESTS))
    };
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    if let Some(seed) = number("DEVTETHER_SCRIPTED_SEED") {
        let outcome = run(seed).unwrap();
        println!("{outcome:#?}");
        return outcome;
    }
    let wanted = number("DEVTETHER_SCRIPTED_REQUESTS").map_or(REQUESTS, |wanted| wanted as usize);
    let (mut total, mut failures) = (SessionOutcome::default(), BTreeMap::<String, u64>::new());
    let mut before = 0;
    for seed in 0.. {
        match run(seed) {
            Ok(outcome) => total.add(outcome),
            Err(failure) => {
                failures.entry(failure).or_insert(seed);
                total.requests += SESSION_REQUESTS;
            }
        }
        if seed == WARM_UP {
            before = ALLOCATED.load(Ordering::Relaxed);
        }
        if total.requests >= wanted || failures.len() > MAX_FAILURES {
            break;
        }
    }
    let left = ALLOCATED.load(Ordering::Relaxed) - before;
    println!("{left} bytes are left\n{total:#?}");
    assert!(failures.is_empty(), "failures by what they say, each with its first seed: {failures:#?}");
    assert!(total.succeeded * 5 > total.requests, "few requests succeed: the peer says too little: {total:?}");
    assert!(total.stops > 0, "nothing has stopped: {total:?}");
    assert!(left < MAX_LEFT, "{left} bytes are left of {} requests", total.requests);
    total
}

fn assert_quick(total: &SessionOutcome) {
    // One session need not have all of them.
    let is_one_session = env::var_os("DEVTETHER_SCRIPTED_SEED").is_some();
    for command in QUICK {
        let outcome = total.commands.get(command).copied().unwrap_or_default();
        let is_checked = is_one_session || outcome.requests > 0;
        assert!(is_checked && outcome.slowest <= QUICK_LIMIT, "{command}: {outcome:?}");
    }
}

#[test]
fn the_java_adapter_answers_every_request_whatever_the_virtual_machine_does() {
    assert_quick(&check_adapter(java_session));
}

#[test]
fn the_node_adapter_answers_every_request_whatever_the_inspector_does() {
    assert_quick(&check_adapter(node_session));
}

#[test]
fn the_supervisor_ends_every_operation_whatever_an_adapter_does() {
    check_adapter(adapter_session);
}

/// The inputs that each fuzz target begins with.
#[test]
fn the_sessions_of_the_fuzz_targets_seeds_end() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for input in seeds("java_session") {
        run_session(move || java_session(Choices::of_input(&input), usize::MAX)).unwrap();
    }
    for input in seeds("node_session") {
        run_session(move || node_session(Choices::of_input(&input), usize::MAX)).unwrap();
    }
    for input in seeds("adapter_session") {
        run_session(move || adapter_session(Choices::of_input(&input), usize::MAX)).unwrap();
    }
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|file| fs::read(file).unwrap()).collect()
}
