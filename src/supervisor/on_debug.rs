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

pub(super) use control::known_status;
pub(super) use desk::LaunchMemory;

use serde_json::Value;

use super::dispatch::{OperationCall, read_params, write_result};
use super::server::SupervisorContext;
use crate::api::OperationParams;
use crate::api::debug::breakpoints::{
    BreakpointExceptionsParams, BreakpointListParams, BreakpointRemoveParams, BreakpointSetParams, WatchpointSetParams,
};
use crate::api::debug::control::{DebugContinueParams, DebugPauseParams, DebugRunToParams, DebugStepParams};
use crate::api::debug::inspect::{
    DebugEvaluateParams, DebugEventsParams, DebugOutputParams, DebugSetVariableParams, DebugSourceParams,
    DebugStackParams, DebugVariablesParams,
};
use crate::api::debug::{
    DebugAttachParams, DebugLaunchParams, DebugProbeParams, DebugStatusParams, DebugStopParams, WaitForStopParams,
};
use crate::error::Result;

/// Waits until the sessions are what they will be: those of an earlier supervisor are taken over, and those that follow the
/// window are attached to the one that lives now.
async fn wait_until_settled(supervisor: &SupervisorContext) {
    supervisor.sessions.wait_until_recovered().await;
    supervisor.followers.wait_until_current(&supervisor.window).await;
}

/// Carries out a call if it is one of these; `None`: it is none.
pub(super) async fn dispatch(supervisor: &SupervisorContext, call: &OperationCall<'_>) -> Option<Result<Value>> {
    let sessions = &supervisor.sessions;
    macro_rules! arms {
        ($($params:ty => $carry_out:expr,)*) => {
            match call.method {
                $(<$params>::METHOD => Some(async {
                    wait_until_settled(supervisor).await;
                    write_result::<$params>($carry_out(read_params::<$params>(call)?).await?)
                }.await),)*
                _ => None,
            }
        };
    }
    arms! {
        DebugLaunchParams => |it| begin::launch(supervisor, it, call),
        DebugAttachParams => |it| begin::attach(supervisor, it, call),
        DebugProbeParams => |it| begin::probe(supervisor, it),
        DebugStatusParams => |it| control::status(sessions, it),
        WaitForStopParams => |it| control::wait_for_stop(sessions, it),
        DebugStopParams => |it| control::stop(supervisor, it),
        DebugContinueParams => |it| control::go_on(sessions, it),
        DebugPauseParams => |it| control::pause(sessions, it),
        DebugStepParams => |it| control::step(sessions, it),
        DebugRunToParams => |it| control::run_to(sessions, it),
        DebugStackParams => |it| inspect::stack(sessions, it),
        DebugVariablesParams => |it| inspect::variables(sessions, it),
        DebugEvaluateParams => |it| inspect::evaluate(sessions, it),
        DebugSetVariableParams => |it| inspect::set_variable(sessions, it),
        DebugSourceParams => |it| inspect::source(sessions, it),
        DebugOutputParams => |it| inspect::output(sessions, it),
        DebugEventsParams => |it| inspect::events(sessions, it),
        BreakpointSetParams => |it| breakpoints::set(sessions, it),
        BreakpointListParams => |it| breakpoints::list(sessions, it),
        BreakpointRemoveParams => |it| breakpoints::remove(sessions, it),
        BreakpointExceptionsParams => |it| breakpoints::exceptions(sessions, it),
        WatchpointSetParams => |it| breakpoints::watch(sessions, it),
    }
}
