//! What has changed between two states of a session, as a joined editor is told: a pure function.
//!
//! An editor may see fewer states than there were: what began and ended between two of them is left out, but never a stop
//! that is the present one.

use crate::debug::session::resume::LastResume;
use crate::debug::session::snapshot::{SessionSnapshot, TargetSnapshot};
use crate::debug::session::stop::ThreadStop;
use crate::debug::session::target_state::{ProgramExit, TargetPhase};
use crate::vocabulary::StopKind;

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub enum StateChange {
    /// Somebody has resumed the program.
    Resumed(LastResume),
    /// A thread of a target runs; `None`: all of them.
    Continued { target: usize, thread: Option<i64> },
    /// A thread has stopped.
    Stopped { target: usize, stop: ThreadStop },
    /// The program has exited with that code.
    Exited(ProgramExit),
    /// A target has ended.
    TargetEnded(usize),
    /// All targets have ended; why, where that was not the program's end.
    Ended(Option<String>),
}

/// The changes from `before` to `now`, in the order in which they are reported.
pub fn state_changes(before: &SessionSnapshot, now: &SessionSnapshot) -> Vec<StateChange> {
    let mut changes = Vec::new();
    let unknown = TargetSnapshot::default();
    let pairs = now.targets.iter().enumerate().map(|(id, it)| (id, before.targets.get(id).unwrap_or(&unknown), it));
    let pairs: Vec<(usize, &TargetSnapshot, &TargetSnapshot)> = pairs.collect();
    for (target, before, now) in &pairs {
        if let Some(resumed) = now.last_resume.as_ref().filter(|_| now.last_resume != before.last_resume) {
            changes.push(StateChange::Resumed(resumed.clone()));
        }
        changes.extend(
            continued_threads(before, now).into_iter().map(|thread| StateChange::Continued { target: *target, thread }),
        );
    }
    let told = |target: usize, stop: &ThreadStop| {
        let is_told = |(_, before, now): &(usize, &TargetSnapshot, &TargetSnapshot)| {
            before.stopped_in == now.stopped_in && before.state.stops().contains(stop)
        };
        pairs.get(target).is_some_and(is_told)
    };
    // The primary stop first.
    let stops = now.stops().into_iter().filter(|(target, stop)| !told(*target, stop));
    changes.extend(stops.map(|(target, stop)| StateChange::Stopped { target, stop: stop.clone() }));
    if let Some(exit) = now.exit(0).filter(|_| before.exit(0).is_none()) {
        changes.push(StateChange::Exited(exit));
    }
    let has_ended = |it: &TargetSnapshot| matches!(it.state.phase, TargetPhase::Ended(_));
    let ended = pairs.iter().filter(|(_, before, now)| has_ended(now) && !has_ended(before));
    changes.extend(ended.map(|(target, ..)| StateChange::TargetEnded(*target)));
    if now.is_ended() && (before.targets.is_empty() || !before.is_ended()) {
        changes.push(StateChange::Ended(now.disconnect_reason(0).map(str::to_owned)));
    }
    changes
}

/// The threads of a target that run now and were stopped before; `None` for all of them.
fn continued_threads(before: &TargetSnapshot, now: &TargetSnapshot) -> Vec<Option<i64>> {
    let (stopped, stops) = (before.state.stops(), now.state.stops());
    if stopped.is_empty() {
        return Vec::new();
    }
    if stops.is_empty() || before.stopped_in != now.stopped_in {
        return vec![None];
    }
    // One that has stopped anew has run in between.
    let runs = |stop: &&ThreadStop| !stops.contains(stop);
    stopped.iter().filter(runs).filter(|stop| stop.thread_id.is_some()).map(|stop| stop.thread_id).collect()
}

/// The `reason` of a `stopped` event.
pub fn stop_reason_word(kind: StopKind) -> &'static str {
    match kind {
        StopKind::BreakpointHit => "breakpoint",
        StopKind::StepComplete => "step",
        StopKind::Exception => "exception",
        StopKind::WatchpointAccess | StopKind::WatchpointModify => "data breakpoint",
        StopKind::MethodEntry | StopKind::MethodExit => "function breakpoint",
        StopKind::VmStart | StopKind::Entry => "entry",
        StopKind::UserSuspend | StopKind::VmDeath => "pause",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug::session::target_state::{TargetEnd, TargetState};

    fn stop(thread: i64) -> ThreadStop {
        let (breakpoints, hits) = (Vec::new(), Vec::new());
        ThreadStop {
            kind: StopKind::StepComplete,
            thread_id: Some(thread),
            thread_name: None,
            all_threads: true,
            text: None,
            breakpoints,
            data_change: None,
            hits,
            is_panic: false,
            condition_failure: None,
        }
    }

    fn target(phase: TargetPhase, stopped_in: u64) -> TargetSnapshot {
        TargetSnapshot { state: TargetState { phase, exit: None }, stopped_in, ..TargetSnapshot::default() }
    }

    fn session(targets: &[TargetSnapshot]) -> SessionSnapshot {
        SessionSnapshot { targets: targets.to_vec(), ..SessionSnapshot::default() }
    }

    fn running() -> TargetPhase {
        TargetPhase::Running { left: Vec::new() }
    }

    fn stopped(threads: &[i64]) -> TargetPhase {
        TargetPhase::Stopped(threads.iter().map(|thread| stop(*thread)).collect())
    }

    #[test]
    fn each_change_of_a_target_is_told_once() {
        use StateChange as C;
        let check = |before: TargetSnapshot, now: TargetSnapshot, expect: &[StateChange]| {
            assert_eq!(
                state_changes(&session(std::slice::from_ref(&before)), &session(std::slice::from_ref(&now))),
                expect,
                "{before:?} {now:?}"
            );
        };
        let stops = |thread| C::Stopped { target: 0, stop: stop(thread) };
        let goes_on = |thread| C::Continued { target: 0, thread };
        check(target(running(), 1), target(stopped(&[1]), 2), &[stops(1)]);
        check(target(stopped(&[1]), 2), target(stopped(&[1]), 2), &[]);
        check(target(stopped(&[1]), 2), target(running(), 2), &[goes_on(None)]);
        // Resumed and stopped again between two looks.
        check(target(stopped(&[1]), 2), target(stopped(&[1]), 4), &[goes_on(None), stops(1)]);
        check(target(stopped(&[1]), 2), target(stopped(&[1, 2]), 2), &[stops(2)]);
        check(target(stopped(&[1, 2]), 2), target(stopped(&[2]), 2), &[goes_on(Some(1))]);
        let again = ThreadStop { kind: StopKind::Exception, ..stop(1) };
        let now = target(TargetPhase::Stopped(vec![again.clone()]), 2);
        check(target(stopped(&[1]), 2), now, &[goes_on(Some(1)), C::Stopped { target: 0, stop: again }]);
        let resume =
            LastResume { by: "an editor".into(), is_by_editor: true, how: crate::debug::Resume::Over, generation: 3 };
        let resumed = TargetSnapshot { last_resume: Some(resume.clone()), ..target(running(), 2) };
        check(target(stopped(&[1]), 2), resumed.clone(), &[C::Resumed(resume), goes_on(None)]);
        check(resumed.clone(), resumed, &[]);
    }

    #[test]
    fn what_an_editor_finds_and_how_it_ends_is_told() {
        use StateChange as C;
        let found = session(&[target(running(), 1), target(stopped(&[7]), 2)]);
        let first = C::Stopped { target: 1, stop: stop(7) };
        assert_eq!(state_changes(&SessionSnapshot::default(), &found), [first]);
        let mut ended = target(TargetPhase::Ended(TargetEnd::Terminated { exit: Some(ProgramExit::Code(3)) }), 2);
        ended.state.exit = Some(ProgramExit::Code(3));
        let half = session(&[target(running(), 1), ended.clone()]);
        let continued = C::Continued { target: 1, thread: None };
        assert_eq!(state_changes(&found, &half), [continued, C::Exited(ProgramExit::Code(3)), C::TargetEnded(1)]);
        let lost = target(TargetPhase::Ended(TargetEnd::Disconnected("it crashed".to_owned())), 1);
        let all = session(&[lost, ended]);
        assert_eq!(state_changes(&half, &all), [C::TargetEnded(0), C::Ended(Some("it crashed".to_owned()))]);
        assert_eq!(state_changes(&all, &all), []);
    }
}
