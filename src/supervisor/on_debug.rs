//! The debug operations: reads what is asked for, asks the sessions, and answers in the API's words.
//!
//! | file | owns |
//! |---|---|
//! | `begin` | launching, attaching, probing: from what was asked for to what is to be debugged |
//! | `configured` | the same, as a configuration of launch.json says, with its tasks and its parts |
//! | `named_test`, `cargo` | the same, by the name of a test; building the programs that Rust's tests are |
//! | `desk` | what these have to remember from one call to the next |
//! | `control` | going on, stepping, pausing, waiting, ending |
//! | `inspect` | frames, variables, expressions, sources, output, events |
//! | `breakpoints` | what stops a program |
//! | `words` | from the session's own words to the API's |
//!
//! Must not decide anything about sessions.

mod begin;
mod breakpoints;
mod cargo;
mod configured;
mod control;
mod desk;
mod inspect;
mod named_test;
mod words;

pub(super) use control::known;
pub(super) use desk::Desk;

use serde_json::Value;

use super::dispatch::{Call, read, write};
use super::server::Supervisor;
use crate::api::Params;
use crate::api::debug::breakpoints::{Exceptions, List, Remove, Set, Watch};
use crate::api::debug::control::{Continue, Pause, RunTo, Step};
use crate::api::debug::inspect::{Evaluate, Events, Output, SetVariable, Source, Stack, Variables};
use crate::api::debug::{Attach, Launch, Probe, Status, Stop, WaitForStop};
use crate::error::Result;

/// Waits until the sessions are what they will be: those of an earlier supervisor are taken over, and those that follow the
/// window are attached to the one that lives now.
async fn settled(supervisor: &Supervisor) {
    supervisor.sessions.recovered().await;
    supervisor.ties.caught_up(&supervisor.window).await;
}

/// Carries out a call if it is one of these; `None`: it is none.
pub(super) async fn dispatch(supervisor: &Supervisor, call: &Call<'_>) -> Option<Result<Value>> {
    let sessions = &supervisor.sessions;
    macro_rules! arms {
        ($($params:ty => $carry_out:expr,)*) => {
            match call.method {
                $(<$params>::METHOD => Some(async {
                    settled(supervisor).await;
                    write::<$params>($carry_out(read::<$params>(call)?).await?)
                }.await),)*
                _ => None,
            }
        };
    }
    arms! {
        Launch => |it| begin::launch(supervisor, it, call),
        Attach => |it| begin::attach(supervisor, it, call),
        Probe => |it| begin::probe(supervisor, it),
        Status => |it| control::status(sessions, it),
        WaitForStop => |it| control::wait_for_stop(sessions, it),
        Stop => |it| control::stop(supervisor, it),
        Continue => |it| control::go_on(sessions, it),
        Pause => |it| control::pause(sessions, it),
        Step => |it| control::step(sessions, it),
        RunTo => |it| control::run_to(sessions, it),
        Stack => |it| inspect::stack(sessions, it),
        Variables => |it| inspect::variables(sessions, it),
        Evaluate => |it| inspect::evaluate(sessions, it),
        SetVariable => |it| inspect::set_variable(sessions, it),
        Source => |it| inspect::source(sessions, it),
        Output => |it| inspect::output(sessions, it),
        Events => |it| inspect::events(sessions, it),
        Set => |it| breakpoints::set(sessions, it),
        List => |it| breakpoints::list(sessions, it),
        Remove => |it| breakpoints::remove(sessions, it),
        Exceptions => |it| breakpoints::exceptions(sessions, it),
        Watch => |it| breakpoints::watch(sessions, it),
    }
}
