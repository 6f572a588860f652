//! The lifecycle of the window as a pure transition table, without I/O.
//!
//! ```text
//!            Start        BuildFinished    LaunchFinished
//!  Absent ──────────▶ Building ──────▶ Starting ──────▶ Running ──WindowExited──▶ Exited
//!    ▲                  ▲   │ failed      │ failed          │                        │
//!    │                  │   ▼             ▼                 │                      Start
//!    │                  │ Running or    Absent              │                        │
//!    │                  │ Absent                            │                        ▼
//!    │                  └────────────── Restart ────────────┤                    Building
//!    └─CloseFinished─ Stopping ◀─────────── Stop ───────────┘
//! ```
//!
//! A new supervisor begins in `Starting`, while it searches for the window of the previous one. A window that may run, but
//! cannot be verified, is `Unverified`: it is searched for again, or stopped when that is requested, and nothing is launched
//! beside it.
//!
//! The old window keeps running during `Building`; it is closed only when there is a build to replace it.

/// Where the window is in its lifecycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowPhase {
    /// There is no window.
    #[default]
    Absent,
    /// A build runs; `old`: and a window meanwhile.
    Building { old: bool },
    /// A window is being launched, or the one of an earlier supervisor is being searched for.
    Starting,
    /// A window of an earlier supervisor may run, but cannot be verified.
    Unverified,
    /// A window runs.
    Running,
    /// The window is being closed.
    Stopping,
    /// The window exited without being stopped.
    Exited,
}

impl WindowPhase {
    /// Whether an operation runs, which ends by itself.
    pub fn is_busy(self) -> bool {
        matches!(self, WindowPhase::Building { .. } | WindowPhase::Starting | WindowPhase::Stopping)
    }
}

/// What happens to the window: commands of callers, and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowInput {
    /// Launch a window, unless one runs.
    Start { build: bool },
    /// Replace the window.
    Restart { build: bool },
    /// Search again for the window of an earlier supervisor.
    Search,
    /// Close the window.
    Stop,
    /// All callers of the running operation have cancelled.
    Cancelled,
    /// The build has ended.
    BuildFinished { ok: bool },
    /// The build has succeeded, but the old window must not be replaced now.
    ReplacementHeld,
    /// The launch, or the search for an earlier window, has ended.
    LaunchFinished { ok: bool },
    /// The search found a window that cannot be verified.
    SearchUndecided,
    /// The replacement failed, and a window runs: the old one, or one like it that was started again.
    WindowKept,
    /// The window is closed.
    CloseFinished,
    /// The window's process has exited without being stopped.
    WindowExited,
}

/// What the actor has to do after a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowEffect {
    Nothing,
    /// Run the build.
    Build,
    /// Launch a window; none runs.
    Launch,
    /// Close the window, then launch another.
    Replace,
    /// Search for the window of an earlier supervisor.
    Search,
    /// Abort the running operation, and close the window.
    Close,
    /// Respond at once: nothing is to be done.
    Respond,
    /// Abort the running build.
    AbortBuild,
    /// Respond when the running operation ends: it does what the command requires.
    JoinOperation,
    /// Handle the command after the running operation has ended.
    Defer,
    /// The operation has ended: respond to all waiting callers.
    RespondToWaiters,
    /// The window exited by itself: publish its exit, and clean up.
    ReapAfterExit,
}

/// Returns the next phase (`None`: unchanged) and what is to be done.
pub fn decide_transition(now: WindowPhase, input: WindowInput) -> (Option<WindowPhase>, WindowEffect) {
    use WindowEffect as E;
    use WindowInput as I;
    use WindowPhase as P;
    match (now, input) {
        (P::Absent | P::Exited, I::Start { build: true } | I::Restart { build: true }) => {
            (Some(P::Building { old: false }), E::Build)
        }
        (P::Absent | P::Exited, I::Start { build: false } | I::Restart { build: false }) => {
            (Some(P::Starting), E::Launch)
        }
        (P::Absent | P::Exited, I::Stop) => (Some(P::Absent), E::Respond),

        (P::Unverified, I::Start { .. } | I::Restart { .. } | I::Search) => (Some(P::Starting), E::Search),
        (P::Unverified, I::Stop) => (Some(P::Stopping), E::Close),
        (P::Starting, I::SearchUndecided) => (Some(P::Unverified), E::RespondToWaiters),
        (P::Absent | P::Exited | P::Running, I::Search) => (None, E::Respond),

        (P::Building { .. } | P::Starting, I::Start { .. } | I::Restart { .. } | I::Search) => (None, E::JoinOperation),
        (P::Building { .. } | P::Starting, I::Stop) => (Some(P::Stopping), E::Close),
        (P::Building { old: true }, I::BuildFinished { ok: true }) => (Some(P::Starting), E::Replace),
        (P::Building { old: false }, I::BuildFinished { ok: true }) => (Some(P::Starting), E::Launch),
        (P::Building { old }, I::BuildFinished { ok: false }) => (Some(without_build(old)), E::RespondToWaiters),
        (P::Building { old: true }, I::ReplacementHeld) => (Some(P::Running), E::RespondToWaiters),
        (P::Building { old: true }, I::WindowExited) => (Some(P::Building { old: false }), E::ReapAfterExit),

        (P::Building { old }, I::Cancelled) => (Some(without_build(old)), E::AbortBuild),
        // A launch or a close is not aborted: it takes only seconds.
        (_, I::Cancelled) => (None, E::Nothing),

        (P::Starting, I::LaunchFinished { ok: true } | I::WindowKept) => (Some(P::Running), E::RespondToWaiters),
        (P::Starting, I::LaunchFinished { ok: false }) => (Some(P::Absent), E::RespondToWaiters),

        (P::Running, I::Start { .. }) => (None, E::Respond),
        (P::Running, I::Restart { build: true }) => (Some(P::Building { old: true }), E::Build),
        (P::Running, I::Restart { build: false }) => (Some(P::Starting), E::Replace),
        (P::Running, I::Stop) => (Some(P::Stopping), E::Close),
        (P::Running, I::WindowExited) => (Some(P::Exited), E::ReapAfterExit),

        (P::Stopping, I::Stop) => (None, E::JoinOperation),
        (P::Stopping, I::Start { .. } | I::Restart { .. } | I::Search) => (None, E::Defer),
        (P::Stopping, I::CloseFinished) => (Some(P::Absent), E::RespondToWaiters),

        // Late events: of an aborted operation, or the exit of a window that was closed on purpose.
        (
            _,
            I::BuildFinished { .. }
            | I::LaunchFinished { .. }
            | I::SearchUndecided
            | I::ReplacementHeld
            | I::WindowKept
            | I::CloseFinished
            | I::WindowExited,
        ) => (None, E::Nothing),
    }
}

/// The phase after a build that leads to no launch.
fn without_build(old: bool) -> WindowPhase {
    if old { WindowPhase::Running } else { WindowPhase::Absent }
}

#[cfg(test)]
mod tests {
    use super::*;
    use WindowEffect as E;
    use WindowInput as I;
    use WindowPhase as P;

    #[test]
    fn each_transition_has_its_next_phase_and_effect() {
        let check = |now, input, next, effect| {
            let (to, actual) = decide_transition(now, input);
            assert_eq!((to.unwrap_or(now), actual), (next, effect), "{now:?} + {input:?}");
        };
        let (old, new) = (P::Building { old: true }, P::Building { old: false });
        check(P::Absent, I::Start { build: true }, new, E::Build);
        check(P::Absent, I::Start { build: false }, P::Starting, E::Launch);
        check(P::Exited, I::Restart { build: true }, new, E::Build);
        check(P::Absent, I::Stop, P::Absent, E::Respond);
        check(P::Running, I::Start { build: true }, P::Running, E::Respond);
        check(P::Running, I::Restart { build: true }, old, E::Build);
        check(old, I::Restart { build: true }, old, E::JoinOperation);
        check(old, I::Cancelled, P::Running, E::AbortBuild);
        check(new, I::Cancelled, P::Absent, E::AbortBuild);
        check(P::Starting, I::Cancelled, P::Starting, E::Nothing);
        check(P::Running, I::Cancelled, P::Running, E::Nothing);
        check(old, I::BuildFinished { ok: false }, P::Running, E::RespondToWaiters);
        check(old, I::BuildFinished { ok: true }, P::Starting, E::Replace);
        check(old, I::ReplacementHeld, P::Running, E::RespondToWaiters);
        check(old, I::WindowExited, new, E::ReapAfterExit);
        check(new, I::BuildFinished { ok: true }, P::Starting, E::Launch);
        check(P::Starting, I::LaunchFinished { ok: true }, P::Running, E::RespondToWaiters);
        check(P::Starting, I::WindowKept, P::Running, E::RespondToWaiters);
        check(P::Starting, I::Stop, P::Stopping, E::Close);
        check(P::Stopping, I::Start { build: true }, P::Stopping, E::Defer);
        check(P::Stopping, I::CloseFinished, P::Absent, E::RespondToWaiters);
        check(P::Running, I::WindowExited, P::Exited, E::ReapAfterExit);
        check(P::Stopping, I::WindowExited, P::Stopping, E::Nothing);
        check(P::Absent, I::LaunchFinished { ok: true }, P::Absent, E::Nothing);
        check(P::Starting, I::SearchUndecided, P::Unverified, E::RespondToWaiters);
        check(P::Unverified, I::Start { build: true }, P::Starting, E::Search);
        check(P::Unverified, I::Stop, P::Stopping, E::Close);
        check(P::Running, I::Search, P::Running, E::Respond);
    }

    #[test]
    fn every_command_gets_a_response_and_no_operation_is_started_twice() {
        let phases = [
            P::Absent,
            P::Building { old: true },
            P::Building { old: false },
            P::Starting,
            P::Running,
            P::Stopping,
            P::Exited,
            P::Unverified,
        ];
        let starts_operation = |effect| matches!(effect, E::Build | E::Launch | E::Replace | E::Search | E::Close);
        for now in phases {
            for command in [I::Start { build: true }, I::Restart { build: false }, I::Search, I::Stop] {
                let (to, effect) = decide_transition(now, command);
                let to = to.unwrap_or(now);
                assert!(
                    !matches!(effect, E::Nothing | E::RespondToWaiters),
                    "{now:?} + {command:?} leaves the caller without a response"
                );
                assert_eq!(
                    matches!(effect, E::JoinOperation | E::Defer) || starts_operation(effect),
                    to.is_busy(),
                    "{now:?} + {command:?}"
                );
            }
            for event in [
                I::BuildFinished { ok: true },
                I::LaunchFinished { ok: false },
                I::SearchUndecided,
                I::ReplacementHeld,
                I::WindowKept,
                I::CloseFinished,
                I::WindowExited,
            ] {
                let (to, effect) = decide_transition(now, event);
                let ended = now.is_busy() && !to.unwrap_or(now).is_busy();
                assert_eq!(effect == E::RespondToWaiters, ended, "{now:?} + {event:?}");
            }
        }
    }
}
