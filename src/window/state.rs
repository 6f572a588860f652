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
pub enum Phase {
    #[default]
    Absent,
    /// A build runs; `old` tells whether a window lives meanwhile.
    Building {
        old: bool,
    },
    /// A window is being launched, or looked for.
    Starting,
    Up,
    Stopping,
    /// It ended by itself.
    Exited,
}

impl Phase {
    /// Work is under way that ends by itself.
    pub fn is_busy(self) -> bool {
        matches!(self, Phase::Building { .. } | Phase::Starting | Phase::Stopping)
    }
}

/// What happens to the window: wishes, and facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    Start {
        build: bool,
    },
    Restart {
        build: bool,
    },
    Stop,
    /// Nobody wants the work under way any more.
    CalledOff,
    Built {
        ok: bool,
    },
    Launched {
        ok: bool,
    },
    /// No other window could be launched, and the old one was not touched.
    Kept,
    Closed,
    Gone,
}

/// What the actor has to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Nothing,
    /// Run the build.
    Build,
    /// Launch a window; there is none.
    Launch,
    /// Close the window, then launch another.
    Swap,
    /// Close the window, and end the work that is under way.
    Close,
    /// The wish is fulfilled already.
    Answer,
    /// End the build that is under way, and answer all who wait.
    Abandon,
    /// The work under way is what was wished for: its end is the answer.
    Join,
    /// The work under way has to end before the wish can be looked at.
    Wait,
    /// The work has ended: answer all who wait.
    Settle,
    /// The window ended by itself: keep how, and tidy up after it.
    Mourn,
}

/// Decides. `None`: the phase stays.
pub fn step(now: Phase, input: Input) -> (Option<Phase>, Effect) {
    use Effect as E;
    use Input as I;
    use Phase as P;
    match (now, input) {
        (P::Absent | P::Exited, I::Start { build: true } | I::Restart { build: true }) => {
            (Some(P::Building { old: false }), E::Build)
        }
        (P::Absent | P::Exited, I::Start { build: false } | I::Restart { build: false }) => {
            (Some(P::Starting), E::Launch)
        }
        (P::Absent | P::Exited, I::Stop) => (Some(P::Absent), E::Answer),

        (P::Building { .. } | P::Starting, I::Start { .. } | I::Restart { .. }) => (None, E::Join),
        (P::Building { .. } | P::Starting, I::Stop) => (Some(P::Stopping), E::Close),
        (P::Building { old: true }, I::Built { ok: true }) => (Some(P::Starting), E::Swap),
        (P::Building { old: false }, I::Built { ok: true }) => (Some(P::Starting), E::Launch),
        (P::Building { old: true }, I::Built { ok: false }) => (Some(P::Up), E::Settle),
        (P::Building { old: false }, I::Built { ok: false }) => (Some(P::Absent), E::Settle),
        (P::Building { old: true }, I::Gone) => (Some(P::Building { old: false }), E::Mourn),

        (P::Building { old: true }, I::CalledOff) => (Some(P::Up), E::Abandon),
        (P::Building { old: false }, I::CalledOff) => (Some(P::Absent), E::Abandon),
        // A launch or a close is not cut in the middle: it takes seconds, and ends with a window or without.
        (_, I::CalledOff) => (None, E::Nothing),

        (P::Starting, I::Launched { ok: true }) => (Some(P::Up), E::Settle),
        (P::Starting, I::Launched { ok: false }) => (Some(P::Absent), E::Settle),
        (P::Starting, I::Kept) => (Some(P::Up), E::Settle),

        (P::Up, I::Start { .. }) => (None, E::Answer),
        (P::Up, I::Restart { build: true }) => (Some(P::Building { old: true }), E::Build),
        (P::Up, I::Restart { build: false }) => (Some(P::Starting), E::Swap),
        (P::Up, I::Stop) => (Some(P::Stopping), E::Close),
        (P::Up, I::Gone) => (Some(P::Exited), E::Mourn),

        (P::Stopping, I::Stop) => (None, E::Join),
        (P::Stopping, I::Start { .. } | I::Restart { .. }) => (None, E::Wait),
        (P::Stopping, I::Closed) => (Some(P::Absent), E::Settle),

        // Late facts: about work that was ended, or about a window that we closed ourselves.
        (_, I::Built { .. } | I::Launched { .. } | I::Kept | I::Closed | I::Gone) => (None, E::Nothing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Effect as E;
    use Input as I;
    use Phase as P;

    #[test]
    fn the_table_holds() {
        let check = |now, input, next, effect| {
            let (to, does) = step(now, input);
            assert_eq!((to.unwrap_or(now), does), (next, effect), "{now:?} + {input:?}");
        };
        let (old, new) = (P::Building { old: true }, P::Building { old: false });
        check(P::Absent, I::Start { build: true }, new, E::Build);
        check(P::Absent, I::Start { build: false }, P::Starting, E::Launch);
        check(P::Exited, I::Restart { build: true }, new, E::Build);
        check(P::Absent, I::Stop, P::Absent, E::Answer);
        check(P::Up, I::Start { build: true }, P::Up, E::Answer);
        check(P::Up, I::Restart { build: true }, old, E::Build);
        check(old, I::Restart { build: true }, old, E::Join);
        check(old, I::CalledOff, P::Up, E::Abandon);
        check(new, I::CalledOff, P::Absent, E::Abandon);
        check(P::Starting, I::CalledOff, P::Starting, E::Nothing);
        check(P::Up, I::CalledOff, P::Up, E::Nothing);
        check(old, I::Built { ok: false }, P::Up, E::Settle);
        check(old, I::Built { ok: true }, P::Starting, E::Swap);
        check(old, I::Gone, new, E::Mourn);
        check(new, I::Built { ok: true }, P::Starting, E::Launch);
        check(P::Starting, I::Launched { ok: true }, P::Up, E::Settle);
        check(P::Starting, I::Kept, P::Up, E::Settle);
        check(P::Starting, I::Stop, P::Stopping, E::Close);
        check(P::Stopping, I::Start { build: true }, P::Stopping, E::Wait);
        check(P::Stopping, I::Closed, P::Absent, E::Settle);
        check(P::Up, I::Gone, P::Exited, E::Mourn);
        check(P::Stopping, I::Gone, P::Stopping, E::Nothing);
        check(P::Absent, I::Launched { ok: true }, P::Absent, E::Nothing);
    }

    #[test]
    fn whoever_waits_is_answered_and_work_is_never_begun_twice() {
        let phases = [
            P::Absent,
            P::Building { old: true },
            P::Building { old: false },
            P::Starting,
            P::Up,
            P::Stopping,
            P::Exited,
        ];
        let begins = |effect| matches!(effect, E::Build | E::Launch | E::Swap | E::Close);
        for now in phases {
            for wish in [I::Start { build: true }, I::Restart { build: false }, I::Stop] {
                let (to, effect) = step(now, wish);
                let to = to.unwrap_or(now);
                assert!(
                    !matches!(effect, E::Nothing | E::Settle),
                    "{now:?} + {wish:?} leaves the asker without an answer"
                );
                assert_eq!(matches!(effect, E::Join | E::Wait) || begins(effect), to.is_busy(), "{now:?} + {wish:?}");
            }
            for fact in [I::Built { ok: true }, I::Launched { ok: false }, I::Kept, I::Closed, I::Gone] {
                let (to, effect) = step(now, fact);
                let ended = now.is_busy() && !to.unwrap_or(now).is_busy();
                assert_eq!(effect == E::Settle, ended, "{now:?} + {fact:?}");
            }
        }
    }
}
