//! The end of a managed session as a pure step: which step follows which, and under which conditions.
//!
//! ```text
//!  AwaitEnd ─▶ (AwaitDriver) ─▶ AwaitExit ─▶ ReadExitReason ─▶ ReadExitCode ─┬▶ EndAdapter ─▶ DrainOutput ─┬▶ Done
//!                               connection lost: both          program ended └▶ ReleaseProgram (detached) ─┘
//! ```
//! Does no I/O: `managed_session` performs each step and reports its event.

use std::time::Duration;

use crate::vocabulary::RunState;

/// How long a process that has closed its connection may take to exit.
const EXIT_AFTER_CLOSE: Duration = Duration::from_secs(1);
/// How long a program may take to exit after its adapter has reported its end.
const EXIT_AFTER_END: Duration = Duration::from_secs(2);
/// How long the rest of the output may take once all processes have exited.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// How a session is stopped on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// The program is ended with it.
    Terminate,
    /// The program runs on.
    Detach,
}

/// What is under way; each step is performed until it yields one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndStep {
    /// The session runs: wait until all its targets or its driver have ended.
    AwaitEnd,
    /// All targets have ended: wait until the driver has closed the connections.
    AwaitDriver,
    /// Wait at most that long until the started process has exited.
    AwaitExit(Duration),
    /// Read why the adapter exited, if it has.
    ReadExitReason,
    /// Wait at most that long for the exit code of the started process.
    ReadExitCode(Duration),
    /// End only the adapter; the program runs on.
    ReleaseProgram,
    /// End the started process and everything that it left.
    EndAdapter,
    /// Copy the rest of the output, at most that long.
    DrainOutput(Duration),
    /// Nothing of the session is left.
    Done,
}

/// What ended a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndEvent {
    /// All targets have ended; the driver still closes their connections.
    TargetsEnded,
    /// The driver of the session has ended.
    DriverEnded,
    /// Any other step is complete, or its time is up.
    Completed,
}

/// What is known when a step has ended.
#[derive(Clone, Copy, Debug)]
pub struct EndFacts {
    pub run_state: RunState,
    /// The newest stop request, if there was one.
    pub stop: Option<StopMode>,
    /// Whether the started process is the program itself, not only an adapter.
    pub is_program: bool,
    /// Whether its exit can be known: it is our child, or its adapter reports that.
    pub can_know_exit: bool,
    /// Whether a process was started at all.
    pub has_process: bool,
}

/// The step that follows.
pub fn next_step(now: EndStep, event: EndEvent, facts: &EndFacts) -> EndStep {
    use EndStep as S;
    let EndFacts { run_state, stop, is_program, can_know_exit, has_process } = *facts;
    let is_disconnected = run_state == RunState::Disconnected;
    let is_ended_by_request = is_program && stop == Some(StopMode::Terminate);
    // The exit code is the program's own only if nothing was requested.
    let has_ended_by_itself = can_know_exit && stop.is_none() && run_state == RunState::Terminated;
    match now {
        // A program that is ended on request does not get the time that its debugger takes to disconnect (debugpy: 0.5 s).
        S::AwaitEnd if event == EndEvent::TargetsEnded && !is_ended_by_request => S::AwaitDriver,
        S::AwaitEnd | S::AwaitDriver if is_disconnected && has_process => S::AwaitExit(EXIT_AFTER_CLOSE),
        S::AwaitEnd | S::AwaitDriver | S::AwaitExit(_) if is_disconnected => S::ReadExitReason,
        S::AwaitEnd | S::AwaitDriver | S::AwaitExit(_) | S::ReadExitReason if has_ended_by_itself => {
            S::ReadExitCode(EXIT_AFTER_END)
        }
        S::AwaitEnd | S::AwaitDriver | S::AwaitExit(_) | S::ReadExitReason | S::ReadExitCode(_) => match stop {
            Some(StopMode::Detach) => S::ReleaseProgram,
            Some(StopMode::Terminate) | None => S::EndAdapter,
        },
        S::EndAdapter => S::DrainOutput(DRAIN_TIMEOUT),
        S::ReleaseProgram | S::DrainOutput(_) | S::Done => S::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EndEvent::{Completed, DriverEnded, TargetsEnded};
    use EndStep as S;
    use RunState::{Disconnected, Terminated};

    /// All steps from the first event on.
    fn steps(first: EndEvent, facts: EndFacts) -> Vec<EndStep> {
        let mut steps = vec![next_step(S::AwaitEnd, first, &facts)];
        while let Some(last) = steps.last().copied().filter(|it| *it != S::Done) {
            let event = if last == S::AwaitDriver { DriverEnded } else { Completed };
            steps.push(next_step(last, event, &facts));
        }
        steps
    }

    #[test]
    fn each_kind_of_end_has_its_steps() {
        let check = |first, run_state, stop, is_program, has_process, expect: &[EndStep]| {
            let facts = EndFacts { run_state, stop, is_program, can_know_exit: is_program, has_process };
            assert_eq!(steps(first, facts), expect, "{first:?} {facts:?}");
        };
        let (close, code, drain) =
            (S::AwaitExit(EXIT_AFTER_CLOSE), S::ReadExitCode(EXIT_AFTER_END), S::DrainOutput(DRAIN_TIMEOUT));
        let (terminate, detach) = (Some(StopMode::Terminate), Some(StopMode::Detach));
        // A program that ends by itself: its exit code is read.
        check(TargetsEnded, Terminated, None, true, true, &[S::AwaitDriver, code, S::EndAdapter, drain, S::Done]);
        check(DriverEnded, Terminated, None, true, true, &[code, S::EndAdapter, drain, S::Done]);
        // An adapter may report how its program exits.
        let facts =
            EndFacts { run_state: Terminated, stop: None, is_program: false, can_know_exit: true, has_process: true };
        assert_eq!(steps(TargetsEnded, facts), [S::AwaitDriver, code, S::EndAdapter, drain, S::Done]);
        // The exit code of an adapter is not the program's.
        check(DriverEnded, Terminated, None, false, true, &[S::EndAdapter, drain, S::Done]);
        // Ended on request: only a program is not waited for.
        check(TargetsEnded, Terminated, terminate, true, true, &[S::EndAdapter, drain, S::Done]);
        check(TargetsEnded, Terminated, terminate, false, true, &[S::AwaitDriver, S::EndAdapter, drain, S::Done]);
        check(TargetsEnded, Terminated, detach, true, true, &[S::AwaitDriver, S::ReleaseProgram, S::Done]);
        check(DriverEnded, Terminated, detach, false, false, &[S::ReleaseProgram, S::Done]);
        // A lost connection: the process may exit, and why is read.
        let lost = [close, S::ReadExitReason, S::EndAdapter, drain, S::Done];
        check(DriverEnded, Disconnected, None, false, true, &lost);
        check(DriverEnded, Disconnected, None, true, true, &lost);
        check(DriverEnded, Disconnected, None, false, false, &lost[1..]);
        check(DriverEnded, Disconnected, detach, true, true, &[close, S::ReadExitReason, S::ReleaseProgram, S::Done]);
        check(TargetsEnded, Disconnected, terminate, true, true, &lost);
    }

    #[test]
    fn a_stop_request_during_the_end_counts_from_the_next_step_on() {
        let facts =
            |stop| EndFacts { run_state: Terminated, stop, is_program: true, can_know_exit: true, has_process: true };
        let waiting = next_step(S::AwaitDriver, DriverEnded, &facts(None));
        assert_eq!(waiting, S::ReadExitCode(EXIT_AFTER_END));
        assert_eq!(next_step(waiting, Completed, &facts(Some(StopMode::Detach))), S::ReleaseProgram);
    }
}
