//! The suspensions as a table, and against a virtual machine that counts.

use proptest::prelude::*;

use super::SuspendCommand::{ResumeAll, ResumeThread, SuspendAll, SuspendThread};
use super::*;

const A: ObjectId = ObjectId(1);
const B: ObjectId = ObjectId(2);

fn stopped(suspends: &mut ThreadSuspends, thread: ObjectId) -> Option<u64> {
    assert!(suspends.suspend_by_event(thread));
    assert!(suspends.report(thread, ThreadHalt::default()));
    suspends.halt_number(thread)
}

#[test]
fn a_stopped_thread_is_resumed_once() {
    let mut suspends = ThreadSuspends::default();
    let first = stopped(&mut suspends, A);
    assert!(suspends.is_suspended(A) && !suspends.is_suspended(B));
    assert_eq!(suspends.resume(A), [ResumeThread(A)]);
    assert_eq!(suspends.resume(A), []);
    assert_eq!(suspends.halt_number(A), None);
    assert_ne!(stopped(&mut suspends, A), first, "each suspension has its own number");
}

#[test]
fn a_resume_while_a_call_runs_is_done_when_the_call_has_ended() {
    for is_late in [false, true] {
        let mut suspends = ThreadSuspends::default();
        let halt = stopped(&mut suspends, A);
        assert_eq!(suspends.begin_call(A, halt), Ok(vec![]));
        if is_late {
            suspends.mark_call_late(A);
        }
        assert_eq!(suspends.resume(A), [], "its count is 0: a resume would be lost");
        assert!(!suspends.is_suspended(A), "the client has let it go");
        assert_eq!(suspends.begin_call(A, halt), Err(CallRefusal::CallRuns));
        assert_eq!(suspends.end_call(A), [ResumeThread(A)]);
        assert_eq!(suspends.begin_call(A, halt), Err(CallRefusal::HasRun));
    }
}

#[test]
fn one_call_at_a_time_runs_in_a_thread_and_its_events_stop_nothing() {
    let mut suspends = ThreadSuspends::default();
    let (halt, other) = (stopped(&mut suspends, A), stopped(&mut suspends, B));
    assert_eq!(suspends.begin_call(A, halt), Ok(vec![]));
    assert_eq!(suspends.begin_call(A, halt), Err(CallRefusal::CallRuns));
    assert_eq!(suspends.begin_call(B, other), Ok(vec![]), "another thread has its own");
    assert!(!suspends.suspend_by_event(A), "an event inside the call");
    assert_eq!(suspends.resume_in_call(A), [ResumeThread(A)]);
    assert_eq!(suspends.end_call(A), []);
    assert!(suspends.is_suspended(A) && suspends.begin_call(A, halt).is_ok());
}

#[test]
fn a_call_in_a_thread_that_is_suspended_twice_takes_the_second_suspension_away_meanwhile() {
    let mut suspends = ThreadSuspends::default();
    let halt = stopped(&mut suspends, A);
    assert_eq!(suspends.suspend_all(), [SuspendAll]);
    assert_eq!(suspends.begin_call(B, suspends.halt_number(B)), Err(CallRefusal::NotAtEvent));
    assert_eq!(suspends.begin_call(A, halt), Ok(vec![ResumeThread(A)]));
    assert_eq!(suspends.end_call(A), [SuspendThread(A)]);
    // Resumed while the call runs: given back first, so that it does not matter whether the call has ended by then.
    assert_eq!(suspends.begin_call(A, halt), Ok(vec![ResumeThread(A)]));
    assert_eq!(suspends.resume(A), []);
    assert_eq!(suspends.resume_all(), [SuspendThread(A), ResumeAll]);
    assert_eq!(suspends.end_call(A), [ResumeThread(A)]);
}

#[test]
fn what_the_virtual_machine_refuses_is_still_suspended_and_reported() {
    let mut suspends = ThreadSuspends::default();
    stopped(&mut suspends, A);
    suspends.resume(A);
    assert_eq!(suspends.undo(ResumeThread(A)), Some(StaysSuspended::Thread(A)));
    assert!(suspends.report(A, ThreadHalt::default()));
    assert_eq!(suspends.resume(A), [ResumeThread(A)]);
    suspends.suspend_all();
    assert_eq!(suspends.undo(SuspendAll), None);
    assert!(!suspends.is_all_suspended());
    assert_eq!(suspends.suspend_all(), [SuspendAll], "a later pause pauses");
    suspends.resume_all();
    assert_eq!(suspends.undo(ResumeAll), Some(StaysSuspended::All));
    assert_eq!(suspends.resume_all(), [ResumeAll]);
    // An event inside a call that could not be resumed: it is with the thread.
    let halt = stopped(&mut suspends, A);
    assert!(suspends.begin_call(A, halt).is_ok() && !suspends.suspend_by_event(A));
    suspends.resume_in_call(A);
    assert_eq!(suspends.undo(ResumeThread(A)), None);
    assert_eq!(suspends.resume(A), [ResumeThread(A)]);
    assert_eq!(suspends.end_call(A), [ResumeThread(A)]);
}

/// A virtual machine as its agent counts (OpenJDK: `threadControl.c`, `invoker.c`).
#[derive(Default)]
struct CountingVm {
    counts: HashMap<ObjectId, u32>,
    all: u32,
    calls: Vec<ObjectId>,
}

impl CountingVm {
    fn count(&mut self, thread: ObjectId) -> &mut u32 {
        let all = self.all;
        self.counts.entry(thread).or_insert(all)
    }

    fn carry_out(&mut self, commands: Vec<SuspendCommand>) {
        for command in commands {
            match command {
                SuspendThread(thread) => *self.count(thread) += 1,
                ResumeThread(thread) => *self.count(thread) = self.count(thread).saturating_sub(1),
                SuspendAll => {
                    self.counts.values_mut().for_each(|count| *count += 1);
                    self.all += 1;
                }
                ResumeAll => {
                    self.counts.values_mut().for_each(|count| *count = count.saturating_sub(1));
                    self.all = self.all.saturating_sub(1);
                }
            }
        }
    }

    /// The reply to a call is sent when its thread has run to the end of it.
    fn end_call(&mut self, thread: ObjectId) -> bool {
        let can_run = *self.count(thread) == 0;
        if let Some(at) = self.calls.iter().position(|it| *it == thread).filter(|_| can_run) {
            self.calls.swap_remove(at);
            *self.count(thread) += 1;
            return true;
        }
        false
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever is done in whatever order: in the end, everything that was resumed runs.
    #[test]
    fn every_count_is_zero_once_everything_is_resumed(actions in prop::collection::vec((0..8u8, 0..3u64), 0..60)) {
        let (mut suspends, mut vm) = (ThreadSuspends::default(), CountingVm::default());
        let threads = [ObjectId(0), A, B];
        for thread in threads {
            *vm.count(thread) = 0;
        }
        // Calls that have ended, and whose replies are on their way.
        let mut replies: Vec<ObjectId> = Vec::new();
        for (action, thread) in actions {
            let thread = ObjectId(thread);
            match action {
                0 if *vm.count(thread) == 0 => {
                    *vm.count(thread) += 1;
                    match suspends.suspend_by_event(thread) {
                        true => { suspends.report(thread, ThreadHalt::default()); }
                        false => vm.carry_out(suspends.resume_in_call(thread)),
                    }
                }
                1 => vm.carry_out(suspends.suspend_all()),
                2 => {
                    if let Ok(commands) = suspends.begin_call(thread, suspends.halt_number(thread)) {
                        vm.carry_out(commands);
                        prop_assert_eq!(*vm.count(thread), 1, "suspended by its event only: the call runs");
                        *vm.count(thread) = 0;
                        vm.calls.push(thread);
                    }
                }
                3 if vm.end_call(thread) => replies.push(thread),
                4 => while let Some(thread) = replies.pop() { vm.carry_out(suspends.end_call(thread)) },
                5 => suspends.mark_call_late(thread),
                6 => vm.carry_out(suspends.resume(thread)),
                7 => vm.carry_out(suspends.resume_all()),
                _ => {}
            }
            for thread in threads {
                let (count, is_calling) = (*vm.count(thread), suspends.is_calling(thread));
                prop_assert!(is_calling || (count > 0) == suspends.is_suspended(thread), "{thread:?}: {count}");
            }
        }
        for thread in threads {
            vm.carry_out(suspends.resume(thread));
        }
        vm.carry_out(suspends.resume_all());
        for thread in threads {
            if vm.end_call(thread) {
                replies.push(thread);
            }
        }
        replies.into_iter().for_each(|thread| vm.carry_out(suspends.end_call(thread)));
        prop_assert!(vm.counts.values().all(|count| *count == 0), "{:?}", vm.counts);
        prop_assert!(suspends.held.is_empty() && vm.calls.is_empty());
    }
}
