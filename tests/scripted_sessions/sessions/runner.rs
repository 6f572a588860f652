//! Runs one session on a thread with the stack of the supervisor's threads, with virtual time, and collects its panics.
//!
//! Does not depend on the protocol.

use std::cell::RefCell;
use std::future::Future;
use std::panic;
use std::sync::{Arc, Mutex, Once};
use std::thread;

/// The stack of a thread of the supervisor's runtime, in bytes.
const STACK: usize = 2 << 20;

type Panics = Arc<Mutex<Vec<String>>>;

thread_local! {
    /// Where the panics of this thread are collected.
    static PANICS: RefCell<Option<Panics>> = const { RefCell::new(None) };
}

/// Runs a session, and returns its result. Deadlines pass at once: time goes on when everything waits for it.
///
/// Errors: the text of what has panicked first, the session itself or anything in it.
pub fn run_session<T, F>(session: impl FnOnce() -> F + Send + 'static) -> Result<T, String>
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    collect_panics();
    let panics = Panics::default();
    let collected = Arc::clone(&panics);
    let run = move || {
        register_thread(&collected);
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let collected = Arc::clone(&collected);
        // Of work that runs beside: files, source maps.
        builder.on_thread_start(move || register_thread(&collected));
        let runtime = builder.enable_all().start_paused(true).thread_stack_size(STACK).build().unwrap();
        runtime.block_on(session())
    };
    let result = thread::Builder::new().stack_size(STACK).spawn(run).unwrap().join();
    match std::mem::take(&mut *panics.lock().unwrap()).into_iter().next() {
        Some(panicked) => Err(panicked),
        None => Ok(result.expect("its panic was collected")),
    }
}

fn register_thread(panics: &Panics) {
    PANICS.with(|slot| *slot.borrow_mut() = Some(Arc::clone(panics)));
}

/// A panic of a task ends only the task, and its `JoinError` may be dropped: the hook sees every one.
fn collect_panics() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            before(info);
            let text = info.to_string();
            // Fails when the thread is ending, which runs no session any more.
            let _ = PANICS.try_with(|slot| {
                if let Some(panics) = &*slot.borrow() {
                    panics.lock().unwrap().push(text);
                }
            });
        }));
    });
}
