//! How often each thread is suspended and why: decides what is resumed, and in which thread a method may be called.
//!
//! A virtual machine counts: a thread runs while its count is 0. Its count is one for an event of its own that has not been
//! resumed, and one for each suspension of all threads.
//!
//! ```text
//!                  event                report
//!     running ─────────────▶ deciding ─────────▶ stopped
//!        ▲ ▲                    │ resume            │ resume
//!        │ └────────────────────┴───────────────────┤
//!        │                                          │ while a call runs in it
//!        │                 the call ends            ▼
//!        └──────────────────────────────────── released
//! ```
//! A call takes the suspension of the event away while it runs, and the virtual machine suspends the thread again when the call
//! ends. Therefore:
//! - one call at a time runs in a thread, until its reply has come, which may be after the time limit of its evaluation;
//! - a resume of a thread with a call is remembered (`released`), and done when the call has ended;
//! - an event inside a call is resumed at once;
//! - the suspensions of all threads are taken from a thread before a call (`lowered`), and given back after it. They are given
//!   back before all are resumed, too: so it does not matter whether the call has ended by then.
//!
//! Plain data: the commands are sent by the caller, in their order and under the same lock.

use std::collections::HashMap;

use tether_jdwp::values::{ObjectId, TaggedObject};

/// Why a thread is stopped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadHalt {
    /// What was thrown, and whether it will be caught.
    pub exception: Option<(TaggedObject, bool)>,
}

/// What the virtual machine is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SuspendCommand {
    SuspendThread(ObjectId),
    ResumeThread(ObjectId),
    SuspendAll,
    ResumeAll,
}

/// What stays suspended, although it was to be resumed, and has to be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StaysSuspended {
    Thread(ObjectId),
    All,
}

/// Why no method can be called in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallRefusal {
    /// It has not stopped at an event of its own.
    NotAtEvent,
    /// It has run since the evaluation began.
    HasRun,
    /// An earlier call has not ended.
    CallRuns,
}

/// The suspensions of all threads.
#[derive(Debug, Default)]
pub(crate) struct ThreadSuspends {
    /// How often all threads are suspended.
    all: u32,
    /// The number of the suspension of all threads.
    halt_of_all: u64,
    last_halt: u64,
    /// The threads that an event of their own has suspended.
    held: HashMap<ObjectId, HeldThread>,
}

#[derive(Debug)]
struct HeldThread {
    hold: ThreadHold,
    /// The number of this suspension.
    halt: u64,
    call: CallState,
    /// An event inside the call has suspended it, and it could not be resumed.
    is_stuck: bool,
    /// How many of the suspensions of all threads it does not have.
    lowered: u32,
}

#[derive(Clone, Copy, Debug)]
enum ThreadHold {
    /// Whether its event is a stop is being decided.
    Deciding,
    /// The client knows.
    Stopped(ThreadHalt),
    /// It is resumed as soon as its call has ended.
    Released,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    None,
    Running,
    /// Its evaluation has given up.
    Late,
}

impl ThreadSuspends {
    /// An event has suspended its thread. `false`: it was inside a call, and the thread is to be resumed by
    /// [`ThreadSuspends::resume_in_call`].
    pub(crate) fn suspend_by_event(&mut self, thread: ObjectId) -> bool {
        if self.is_calling(thread) {
            return false;
        }
        self.hold(thread, ThreadHold::Deciding);
        true
    }

    /// An event has suspended all threads.
    pub(crate) fn suspend_all_by_event(&mut self) {
        self.all = self.all.saturating_add(1);
        if self.all == 1 {
            self.halt_of_all = self.next_halt();
        }
    }

    /// The thread is reported as stopped. `false`: nothing holds it, so it is not.
    pub(crate) fn report(&mut self, thread: ObjectId, halt: ThreadHalt) -> bool {
        let held = self.held.get_mut(&thread).filter(|held| !matches!(held.hold, ThreadHold::Released));
        held.map(|held| held.hold = ThreadHold::Stopped(halt)).is_some()
    }

    /// The event of a thread is over: it runs, at once or when its call has ended.
    pub(crate) fn resume(&mut self, thread: ObjectId) -> Vec<SuspendCommand> {
        let Some(held) = self.held.get_mut(&thread) else { return Vec::new() };
        if held.call == CallState::None {
            self.held.remove(&thread);
            return vec![SuspendCommand::ResumeThread(thread)];
        }
        held.hold = ThreadHold::Released;
        std::mem::take(&mut held.is_stuck).then_some(SuspendCommand::ResumeThread(thread)).into_iter().collect()
    }

    /// An event inside a call is over.
    pub(crate) fn resume_in_call(&mut self, thread: ObjectId) -> Vec<SuspendCommand> {
        vec![SuspendCommand::ResumeThread(thread)]
    }

    /// Suspends all threads once more.
    pub(crate) fn suspend_all(&mut self) -> Vec<SuspendCommand> {
        self.suspend_all_by_event();
        vec![SuspendCommand::SuspendAll]
    }

    /// Undoes the suspensions of all threads.
    pub(crate) fn resume_all(&mut self) -> Vec<SuspendCommand> {
        let mut commands = Vec::new();
        while self.all > 0 {
            commands.extend(self.resume_all_once());
        }
        commands
    }

    /// Undoes one suspension of all threads.
    pub(crate) fn resume_all_once(&mut self) -> Vec<SuspendCommand> {
        let Some(fewer) = self.all.checked_sub(1) else { return Vec::new() };
        let mut commands: Vec<SuspendCommand> = self.held.iter_mut().flat_map(|(id, held)| held.raise(*id)).collect();
        self.all = fewer;
        commands.push(SuspendCommand::ResumeAll);
        commands
    }

    /// A method is about to be called in a thread, by an evaluation that began at that halt: the commands come before it.
    pub(crate) fn begin_call(
        &mut self,
        thread: ObjectId,
        halt: Option<u64>,
    ) -> Result<Vec<SuspendCommand>, CallRefusal> {
        let all = self.all;
        let held =
            self.held.get_mut(&thread).ok_or(if all > 0 { CallRefusal::NotAtEvent } else { CallRefusal::HasRun })?;
        if held.call != CallState::None {
            return Err(CallRefusal::CallRuns);
        }
        if halt != Some(held.halt) {
            return Err(CallRefusal::HasRun);
        }
        let above = all.saturating_sub(held.lowered);
        (held.call, held.lowered) = (CallState::Running, all);
        Ok(vec![SuspendCommand::ResumeThread(thread); above as usize])
    }

    /// The evaluation of a call has given up: its reply is still to come.
    pub(crate) fn mark_call_late(&mut self, thread: ObjectId) {
        if let Some(held) = self.held.get_mut(&thread).filter(|held| held.call == CallState::Running) {
            held.call = CallState::Late;
        }
    }

    /// The reply to a call has come, whatever it is: its thread is suspended once more.
    pub(crate) fn end_call(&mut self, thread: ObjectId) -> Vec<SuspendCommand> {
        let Some(held) = self.held.get_mut(&thread) else { return Vec::new() };
        (held.call, held.is_stuck) = (CallState::None, false);
        let mut commands = held.raise(thread);
        if matches!(held.hold, ThreadHold::Released) {
            commands.extend(self.resume(thread));
        }
        commands
    }

    /// The virtual machine has refused a command: what it has not done. Returns what is suspended and has to be reported.
    pub(crate) fn undo(&mut self, command: SuspendCommand) -> Option<StaysSuspended> {
        match command {
            SuspendCommand::ResumeThread(thread) if self.is_calling(thread) => {
                self.held.entry(thread).and_modify(|held| held.is_stuck = true);
                None
            }
            SuspendCommand::ResumeThread(thread) => {
                self.hold(thread, ThreadHold::Deciding);
                Some(StaysSuspended::Thread(thread))
            }
            SuspendCommand::ResumeAll => {
                self.suspend_all_by_event();
                Some(StaysSuspended::All)
            }
            SuspendCommand::SuspendAll => {
                self.all = self.all.saturating_sub(1);
                self.held.values_mut().for_each(|held| held.lowered = held.lowered.min(self.all));
                None
            }
            SuspendCommand::SuspendThread(thread) => {
                let all = self.all;
                self.held.entry(thread).and_modify(|held| held.lowered = held.lowered.saturating_add(1).min(all));
                None
            }
        }
    }

    /// A thread has ended.
    pub(crate) fn forget_thread(&mut self, thread: ObjectId) {
        self.held.remove(&thread);
    }

    /// The connection has ended: the virtual machine has resumed everything.
    pub(crate) fn forget_all(&mut self) {
        self.all = 0;
        self.held.clear();
    }

    /// Whether the client knows a thread as suspended.
    pub(crate) fn is_suspended(&self, thread: ObjectId) -> bool {
        self.all > 0 || self.halt(thread).is_some()
    }

    /// Whether all threads are suspended.
    pub(crate) fn is_all_suspended(&self) -> bool {
        self.all > 0
    }

    /// The number of the suspension of all threads.
    pub(crate) fn halt_of_all(&self) -> Option<u64> {
        (self.all > 0).then_some(self.halt_of_all)
    }

    /// Whether the client knows any thread as suspended.
    pub(crate) fn is_any_suspended(&self) -> bool {
        self.all > 0 || self.stopped().next().is_some()
    }

    /// The threads that have stopped at events of their own, as the client knows them.
    pub(crate) fn stopped(&self) -> impl Iterator<Item = ObjectId> {
        let is_stopped = |held: &HeldThread| matches!(held.hold, ThreadHold::Stopped(_));
        self.held.iter().filter(move |(_, held)| is_stopped(held)).map(|(thread, _)| *thread)
    }

    /// Why a thread has stopped at an event of its own.
    pub(crate) fn halt(&self, thread: ObjectId) -> Option<ThreadHalt> {
        match self.held.get(&thread)?.hold {
            ThreadHold::Stopped(halt) => Some(halt),
            ThreadHold::Deciding | ThreadHold::Released => None,
        }
    }

    /// The number of the suspension of a thread: another one, or none, once it has been resumed.
    pub(crate) fn halt_number(&self, thread: ObjectId) -> Option<u64> {
        let held = self.held.get(&thread).filter(|held| !matches!(held.hold, ThreadHold::Released));
        held.map(|held| held.halt).or_else(|| self.halt_of_all())
    }

    /// The numbers of the suspensions of a thread, and of all threads.
    pub(crate) fn halts(&self, thread: ObjectId) -> (Option<u64>, Option<u64>) {
        (self.halt_number(thread), self.halt_of_all())
    }

    /// Whether a call runs in a thread, or its reply has not come.
    pub(crate) fn is_calling(&self, thread: ObjectId) -> bool {
        self.held.get(&thread).is_some_and(|held| held.call != CallState::None)
    }

    /// Whether a thread runs a call, and is not suspended in the middle of it.
    pub(crate) fn is_running_call(&self, thread: ObjectId) -> bool {
        self.held.get(&thread).is_some_and(|held| held.call != CallState::None && held.lowered >= self.all)
    }

    fn hold(&mut self, thread: ObjectId, hold: ThreadHold) {
        let held = HeldThread { hold, halt: self.next_halt(), call: CallState::None, is_stuck: false, lowered: 0 };
        self.held.insert(thread, held);
    }

    fn next_halt(&mut self) -> u64 {
        self.last_halt = self.last_halt.saturating_add(1);
        self.last_halt
    }
}

impl HeldThread {
    /// Gives back the suspensions that were taken for a call.
    fn raise(&mut self, thread: ObjectId) -> Vec<SuspendCommand> {
        vec![SuspendCommand::SuspendThread(thread); std::mem::take(&mut self.lowered) as usize]
    }
}

#[cfg(test)]
mod tests;
