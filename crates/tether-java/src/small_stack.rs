//! Runs tests on a stack of the size that the threads of the supervisor have.

/// The size of a runtime thread's stack, in bytes.
const STACK_BYTES: usize = 2 << 20;

/// Runs `check` on a thread of its own; its panic is that of the test.
pub(crate) fn run_on_small_stack(check: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, check).unwrap();
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}
