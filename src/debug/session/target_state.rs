//! The phases of a target: a pure table, without I/O.
//!
//! ```text
//!             Started              Stopped
//!  Starting ──────────▶ Running ◀────────────▶ Stopped (first stop is primary, others are listed)
//!      │  └──Stopped──────│──────────▶ ▲ │  Resume, Continued, ThreadExited
//!      │                  │            └─┘  another thread stops; one of several goes on
//!      └──────────────── Ended ◀── Terminated, Closed, from everywhere
//! ```
//! A resume counts from its request on: the old stop is gone for every waiting caller, and the next stop is a new one.
//! The old stop is restored only if the adapter refuses the resume and nothing has happened since.

use std::fmt;

use super::stop::ThreadStop;

/// The stops of a target that are kept: an adapter may name any number of threads.
const MAX_STOPS: usize = 4096;

/// The phase of a target.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TargetPhase {
    #[default]
    Starting,
    Running {
        /// The stops that a resume has left and that its refusal brings back.
        left: Vec<ThreadStop>,
    },
    /// At least one; the first is primary.
    Stopped(Vec<ThreadStop>),
    Ended(TargetEnd),
}

/// How a target ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetEnd {
    /// The program has ended, or has been detached from.
    Terminated { exit: Option<ProgramExit> },
    /// The connection to the adapter has, and nothing is known of the program.
    Disconnected(String),
}

/// What happens to a target.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetInput {
    /// The adapter has answered `launch` or `attach`.
    Started,
    Stopped(ThreadStop),
    /// One thread has continued; `None`: all threads.
    Continued(Option<i64>),
    /// A caller requests to resume it.
    Resume(Option<i64>),
    /// A caller requests to resume one thread of an adapter that leaves the others stopped.
    ResumeOne(i64),
    /// The adapter has refused the resume.
    Refused,
    /// The adapter has refused to resume a thread that is gone.
    RefusedWithoutThread(i64),
    /// A thread is gone, and its stop with it.
    ThreadExited(i64),
    Exited(ProgramExit),
    Terminated,
    Closed(String),
}

/// What the caller has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetEffect {
    Nothing,
    /// Send the request: the target can go on.
    Send,
    /// Refuse the request: the target is not stopped.
    Decline,
    /// Disconnect from the adapter, and close the connection.
    Disconnect,
}

/// How a program has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramExit {
    /// By itself, with this code.
    Code(i64),
    /// By this signal.
    Signal(i32),
}

impl fmt::Display for ProgramExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramExit::Code(code) => write!(f, "ended with code {code}"),
            ProgramExit::Signal(signal) => write!(f, "was ended by signal {signal}"),
        }
    }
}

/// A target's phase, and how its program has ended as soon as that is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetState {
    pub phase: TargetPhase,
    pub exit: Option<ProgramExit>,
}

impl TargetState {
    /// The stops that it is in; the first is primary.
    pub fn stops(&self) -> &[ThreadStop] {
        match &self.phase {
            TargetPhase::Stopped(stops) => stops,
            _ => &[],
        }
    }
}

/// The next state (`None`: unchanged), and what the caller has to do.
pub fn next_state(now: &TargetState, input: TargetInput) -> (Option<TargetState>, TargetEffect) {
    use TargetEffect as E;
    use TargetInput as I;
    use TargetPhase as P;
    let to = |phase| Some(TargetState { phase, exit: now.exit });
    let terminated = || to(P::Ended(TargetEnd::Terminated { exit: now.exit }));
    match (&now.phase, input) {
        (P::Ended(_), I::Resume(_) | I::ResumeOne(_)) => (None, E::Decline),
        (P::Ended(_), _) => (None, E::Nothing),

        (_, I::Terminated) => (terminated(), E::Disconnect),
        (_, I::Closed(_)) if now.exit.is_some() => (terminated(), E::Nothing),
        (_, I::Closed(reason)) => (to(P::Ended(TargetEnd::Disconnected(reason))), E::Nothing),
        (phase, I::Exited(exit)) => (Some(TargetState { exit: Some(exit), phase: phase.clone() }), E::Nothing),

        (P::Starting, I::Started) => (to(P::Running { left: Vec::new() }), E::Nothing),
        (P::Starting | P::Running { .. }, I::Stopped(stop)) => (to(P::Stopped(vec![stop])), E::Nothing),
        (P::Stopped(stops), I::Stopped(stop)) => (to(P::Stopped(with_stop(stops, stop))), E::Nothing),

        (P::Stopped(stops), I::ThreadExited(thread) | I::RefusedWithoutThread(thread)) if has_thread(stops, thread) => {
            (to(without_thread(stops, Some(thread))), E::Nothing)
        }
        (P::Running { left }, I::RefusedWithoutThread(thread)) if !left.is_empty() => {
            (to(without_thread(left, Some(thread))), E::Nothing)
        }
        (P::Running { left }, I::ThreadExited(thread)) if has_thread(left, thread) => {
            let left = left.iter().filter(|stop| stop.thread_id != Some(thread)).cloned().collect();
            (to(P::Running { left }), E::Nothing)
        }
        (P::Stopped(stops), I::Continued(thread)) => (to(without_thread(stops, thread)), E::Nothing),
        (P::Stopped(stops), I::ResumeOne(thread)) if stops.iter().any(|stop| stop.thread_id != Some(thread)) => {
            (to(without_thread(stops, Some(thread))), E::Send)
        }
        (P::Stopped(stops), I::Resume(_) | I::ResumeOne(_)) => (to(P::Running { left: stops.clone() }), E::Send),
        (P::Running { left }, I::Refused) if !left.is_empty() => (to(P::Stopped(left.clone())), E::Nothing),
        // It has continued: a refusal that comes later is of another request.
        (P::Running { left }, I::Continued(_)) if !left.is_empty() => (to(P::Running { left: Vec::new() }), E::Nothing),
        (P::Starting | P::Running { .. }, I::Resume(_) | I::ResumeOne(_)) => (None, E::Decline),
        (_, I::Started | I::Continued(_) | I::Refused | I::RefusedWithoutThread(_) | I::ThreadExited(_)) => {
            (None, E::Nothing)
        }
    }
}

/// A thread that stops again has one stop, its newest, in its old place.
fn with_stop(stops: &[ThreadStop], stop: ThreadStop) -> Vec<ThreadStop> {
    let mut stops = stops.to_vec();
    let is_full = stops.len() >= MAX_STOPS;
    match stops.iter_mut().find(|other| other.thread_id == stop.thread_id) {
        Some(same) => *same = stop,
        None if is_full => {}
        None => stops.push(stop),
    }
    stops
}

fn has_thread(stops: &[ThreadStop], thread: i64) -> bool {
    stops.iter().any(|stop| stop.thread_id == Some(thread))
}

fn without_thread(stops: &[ThreadStop], thread: Option<i64>) -> TargetPhase {
    let others = stops.iter().filter(|stop| thread.is_some() && stop.thread_id != thread);
    let others: Vec<ThreadStop> = others.cloned().collect();
    if others.is_empty() { TargetPhase::Running { left: Vec::new() } } else { TargetPhase::Stopped(others) }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::vocabulary::StopKind;
    use TargetInput as I;
    use TargetPhase as P;

    fn stop(thread: i64, kind: StopKind) -> ThreadStop {
        ThreadStop {
            kind,
            thread_id: Some(thread),
            thread_name: None,
            all_threads: true,
            text: None,
            breakpoints: Vec::new(),
            data_change: None,
            hits: Vec::new(),
            is_panic: false,
            condition_failure: None,
        }
    }

    fn running() -> TargetPhase {
        P::Running { left: Vec::new() }
    }

    #[test]
    fn each_input_leads_to_its_phase() {
        let check = |phase: TargetPhase, input: TargetInput, next: TargetPhase, effect: TargetEffect| {
            let now = TargetState { phase, exit: None };
            let (to, does) = next_state(&now, input.clone());
            let to = to.unwrap_or_else(|| now.clone());
            assert_eq!((to.phase, does), (next, effect), "{:?} + {input:?}", now.phase);
        };
        let (one, two) = (stop(1, StopKind::BreakpointHit), stop(2, StopKind::StepComplete));
        let again = stop(1, StopKind::Exception);
        let stopped = |stops: &[&ThreadStop]| P::Stopped(stops.iter().map(|stop| (*stop).clone()).collect());
        let left = |stops: &[&ThreadStop]| P::Running { left: stops.iter().map(|stop| (*stop).clone()).collect() };
        check(P::Starting, I::Started, running(), TargetEffect::Nothing);
        check(P::Starting, I::Stopped(one.clone()), stopped(&[&one]), TargetEffect::Nothing);
        // js-debug and rdbg answer `launch` after the first stop.
        check(stopped(&[&one]), I::Started, stopped(&[&one]), TargetEffect::Nothing);
        check(running(), I::Stopped(one.clone()), stopped(&[&one]), TargetEffect::Nothing);
        check(stopped(&[&one]), I::Stopped(two.clone()), stopped(&[&one, &two]), TargetEffect::Nothing);
        check(stopped(&[&one, &two]), I::Stopped(again.clone()), stopped(&[&again, &two]), TargetEffect::Nothing);
        check(stopped(&[&one, &two]), I::Continued(Some(1)), stopped(&[&two]), TargetEffect::Nothing);
        check(stopped(&[&one, &two]), I::Continued(None), running(), TargetEffect::Nothing);
        check(stopped(&[&one]), I::Continued(Some(1)), running(), TargetEffect::Nothing);
        check(running(), I::Continued(Some(1)), running(), TargetEffect::Nothing);
        check(stopped(&[&one, &two]), I::ThreadExited(1), stopped(&[&two]), TargetEffect::Nothing);
        check(stopped(&[&one]), I::ThreadExited(1), running(), TargetEffect::Nothing);
        check(stopped(&[&one]), I::ThreadExited(2), stopped(&[&one]), TargetEffect::Nothing);
        check(left(&[&one, &two]), I::ThreadExited(1), left(&[&two]), TargetEffect::Nothing);
        check(left(&[&one]), I::ThreadExited(1), running(), TargetEffect::Nothing);
        check(left(&[&one, &two]), I::RefusedWithoutThread(1), stopped(&[&two]), TargetEffect::Nothing);
        check(left(&[&one]), I::RefusedWithoutThread(1), running(), TargetEffect::Nothing);
        check(stopped(&[&one, &two]), I::RefusedWithoutThread(1), stopped(&[&two]), TargetEffect::Nothing);
        check(running(), I::RefusedWithoutThread(1), running(), TargetEffect::Nothing);
        check(P::Starting, I::ThreadExited(1), P::Starting, TargetEffect::Nothing);

        check(stopped(&[&one, &two]), I::Resume(Some(1)), left(&[&one, &two]), TargetEffect::Send);
        check(left(&[&one]), I::Refused, stopped(&[&one]), TargetEffect::Nothing);
        check(left(&[&one]), I::Continued(Some(1)), running(), TargetEffect::Nothing);
        check(running(), I::Refused, running(), TargetEffect::Nothing);
        check(left(&[&one]), I::Stopped(two.clone()), stopped(&[&two]), TargetEffect::Nothing);
        check(stopped(&[&two]), I::Refused, stopped(&[&two]), TargetEffect::Nothing);
        check(running(), I::Resume(None), running(), TargetEffect::Decline);
        check(P::Starting, I::Resume(None), P::Starting, TargetEffect::Decline);

        let ended = |exit| P::Ended(TargetEnd::Terminated { exit });
        check(running(), I::Terminated, ended(None), TargetEffect::Disconnect);
        check(stopped(&[&one]), I::Terminated, ended(None), TargetEffect::Disconnect);
        check(P::Starting, I::Closed("x".into()), P::Ended(TargetEnd::Disconnected("x".into())), TargetEffect::Nothing);
        check(ended(None), I::Closed("x".into()), ended(None), TargetEffect::Nothing);
        check(ended(None), I::Stopped(one), ended(None), TargetEffect::Nothing);
        check(ended(None), I::Resume(None), ended(None), TargetEffect::Decline);
    }

    #[test]
    fn the_stops_of_a_target_are_bounded() {
        let mut state = TargetState::default();
        for thread in 0..MAX_STOPS as i64 + 100 {
            let (next, _) = next_state(&state, I::Stopped(stop(thread, StopKind::BreakpointHit)));
            state = next.unwrap();
        }
        assert_eq!(state.stops().len(), MAX_STOPS);
        let (next, _) = next_state(&state, I::Stopped(stop(0, StopKind::StepComplete)));
        assert_eq!(next.unwrap().stops()[0].kind, StopKind::StepComplete, "one of those is renewed");
    }

    #[test]
    fn how_the_program_exited_is_kept_for_its_end() {
        for end in [I::Terminated, I::Closed("the peer closed it".into())] {
            let (exited, _) =
                next_state(&TargetState { phase: running(), exit: None }, I::Exited(ProgramExit::Code(3)));
            let (ended, _) = next_state(&exited.unwrap(), end);
            assert_eq!(ended.unwrap().phase, P::Ended(TargetEnd::Terminated { exit: Some(ProgramExit::Code(3)) }));
        }
    }
}
