//! Where the window is in its life: a pure table, without I/O.
//!
//! ```text
//!            Start            Built             Launched
//!  Absent ──────────▶ Building ──────▶ Starting ─────────▶ Up ──Gone──▶ Exited
//!    ▲                  ▲   │ failed      │ failed          │              │
//!    │                  │   ▼             ▼                 │            Start
//!    │                  │ what was      Absent              │              │
//!    │                  └────────────── Restart ────────────┤              ▼
//!    └───Closed─── Stopping ◀─────────────── Stop ──────────┘          Building
//! ```
//!
//! The old window lives through `Building`; it is closed only when there is something to put in its place.
//! `Starting` is also the phase of a new supervisor that looks for the window of the last one.

/// Where the window is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowPhase {
    #[default]
    Absent,
    /// A build runs; `old` tells whether a window lives meanwhile.
    Building {
        old: bool,
    },
    /// A window is being launched, or looked for.
    Starting,
    Running,
    Stopping,
    /// It ended by itself.
    Exited,
}

impl WindowPhase {
    /// Work is under way that ends by itself.
    pub fn is_busy(self) -> bool {
        matches!(self, WindowPhase::Building { .. } | WindowPhase::Starting | WindowPhase::Stopping)
    }
}

/// What happens to the window: wishes, and facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowInput {
    Start {
        build: bool,
    },
    Restart {
        build: bool,
    },
    Stop,
    /// Nobody wants the work under way any more.
    Cancelled,
    BuildFinished {
        ok: bool,
    },
    LaunchFinished {
        ok: bool,
    },
    /// No other window could be launched, and the old one was not touched.
    OldWindowKept,
    CloseFinished,
    WindowExited,
}

/// What the actor has to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowEffect {
    Nothing,
    /// Run the build.
    Build,
    /// Launch a window; there is none.
    Launch,
    /// Close the window, then launch another.
    Replace,
    /// Close the window, and end the work that is under way.
    Close,
    /// The wish is fulfilled already.
    Respond,
    /// End the build that is under way, and answer all who wait.
    AbortBuild,
    /// The work under way is what was wished for: its end is the answer.
    JoinOperation,
    /// The work under way has to end before the wish can be looked at.
    Defer,
    /// The work has ended: answer all who wait.
    RespondToWaiters,
    /// The window ended by itself: keep how, and tidy up after it.
    ReapAfterExit,
}

/// Decides. `None`: the phase stays.
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

        (P::Building { .. } | P::Starting, I::Start { .. } | I::Restart { .. }) => (None, E::JoinOperation),
        (P::Building { .. } | P::Starting, I::Stop) => (Some(P::Stopping), E::Close),
        (P::Building { old: true }, I::BuildFinished { ok: true }) => (Some(P::Starting), E::Replace),
        (P::Building { old: false }, I::BuildFinished { ok: true }) => (Some(P::Starting), E::Launch),
        (P::Building { old: true }, I::BuildFinished { ok: false }) => (Some(P::Running), E::RespondToWaiters),
        (P::Building { old: false }, I::BuildFinished { ok: false }) => (Some(P::Absent), E::RespondToWaiters),
        (P::Building { old: true }, I::WindowExited) => (Some(P::Building { old: false }), E::ReapAfterExit),

        (P::Building { old: true }, I::Cancelled) => (Some(P::Running), E::AbortBuild),
        (P::Building { old: false }, I::Cancelled) => (Some(P::Absent), E::AbortBuild),
        // A launch or a close is not cut in the middle: it takes seconds, and ends with a window or without.
        (_, I::Cancelled) => (None, E::Nothing),

        (P::Starting, I::LaunchFinished { ok: true }) => (Some(P::Running), E::RespondToWaiters),
        (P::Starting, I::LaunchFinished { ok: false }) => (Some(P::Absent), E::RespondToWaiters),
        (P::Starting, I::OldWindowKept) => (Some(P::Running), E::RespondToWaiters),

        (P::Running, I::Start { .. }) => (None, E::Respond),
        (P::Running, I::Restart { build: true }) => (Some(P::Building { old: true }), E::Build),
        (P::Running, I::Restart { build: false }) => (Some(P::Starting), E::Replace),
        (P::Running, I::Stop) => (Some(P::Stopping), E::Close),
        (P::Running, I::WindowExited) => (Some(P::Exited), E::ReapAfterExit),

        (P::Stopping, I::Stop) => (None, E::JoinOperation),
        (P::Stopping, I::Start { .. } | I::Restart { .. }) => (None, E::Defer),
        (P::Stopping, I::CloseFinished) => (Some(P::Absent), E::RespondToWaiters),

        // Late facts: about work that was ended, or about a window that we closed ourselves.
        (
            _,
            I::BuildFinished { .. } | I::LaunchFinished { .. } | I::OldWindowKept | I::CloseFinished | I::WindowExited,
        ) => (None, E::Nothing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use WindowEffect as E;
    use WindowInput as I;
    use WindowPhase as P;

    #[test]
    fn the_table_holds() {
        let check = |now, input, next, effect| {
            let (to, does) = decide_transition(now, input);
            assert_eq!((to.unwrap_or(now), does), (next, effect), "{now:?} + {input:?}");
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
        check(old, I::WindowExited, new, E::ReapAfterExit);
        check(new, I::BuildFinished { ok: true }, P::Starting, E::Launch);
        check(P::Starting, I::LaunchFinished { ok: true }, P::Running, E::RespondToWaiters);
        check(P::Starting, I::OldWindowKept, P::Running, E::RespondToWaiters);
        check(P::Starting, I::Stop, P::Stopping, E::Close);
        check(P::Stopping, I::Start { build: true }, P::Stopping, E::Defer);
        check(P::Stopping, I::CloseFinished, P::Absent, E::RespondToWaiters);
        check(P::Running, I::WindowExited, P::Exited, E::ReapAfterExit);
        check(P::Stopping, I::WindowExited, P::Stopping, E::Nothing);
        check(P::Absent, I::LaunchFinished { ok: true }, P::Absent, E::Nothing);
    }

    #[test]
    fn whoever_waits_is_answered_and_work_is_never_begun_twice() {
        let phases = [
            P::Absent,
            P::Building { old: true },
            P::Building { old: false },
            P::Starting,
            P::Running,
            P::Stopping,
            P::Exited,
        ];
        let begins = |effect| matches!(effect, E::Build | E::Launch | E::Replace | E::Close);
        for now in phases {
            for wish in [I::Start { build: true }, I::Restart { build: false }, I::Stop] {
                let (to, effect) = decide_transition(now, wish);
                let to = to.unwrap_or(now);
                assert!(
                    !matches!(effect, E::Nothing | E::RespondToWaiters),
                    "{now:?} + {wish:?} leaves the asker without an answer"
                );
                assert_eq!(
                    matches!(effect, E::JoinOperation | E::Defer) || begins(effect),
                    to.is_busy(),
                    "{now:?} + {wish:?}"
                );
            }
            for fact in [
                I::BuildFinished { ok: true },
                I::LaunchFinished { ok: false },
                I::OldWindowKept,
                I::CloseFinished,
                I::WindowExited,
            ] {
                let (to, effect) = decide_transition(now, fact);
                let ended = now.is_busy() && !to.unwrap_or(now).is_busy();
                assert_eq!(effect == E::RespondToWaiters, ended, "{now:?} + {fact:?}");
            }
        }
    }
}
