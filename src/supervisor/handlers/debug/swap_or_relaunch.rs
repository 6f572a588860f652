//! A launch that swaps changed code into its session instead, where that is wanted and can be.

use tether_base::error::{Error, Result};

use super::started_programs::StartedSession;
use crate::api::debug::DebugLaunchParams;
use crate::debug::{self, CodeSwap};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::hosted_sessions::ListedSession;

/// What became of a wish to swap code instead of a launch.
pub enum SwapAttempt {
    /// The session, which runs on.
    Swapped(Box<StartedSession>),
    /// Launched anew; with what is to be said of the swap, if one was wanted.
    LaunchAnew(Option<String>),
}

/// Swaps changed code into the session of a restart, where that is wanted. Errors: the changed code does not compile.
pub async fn swap_code(context: &SupervisorContext, params: &DebugLaunchParams) -> Result<SwapAttempt> {
    if !params.swap.unwrap_or_default() {
        return Ok(SwapAttempt::LaunchAnew(None));
    }
    let Some(id) = &params.restart else {
        let error = Error::usage("no session to swap code into was named");
        return Err(error.hint("name `restart`: `tether debug launch --restart SESSION --swap`"));
    };
    let first = context.find_session(Some(id))?;
    let swapped = match &first {
        ListedSession::Here(managed) => debug::swap_code(&context.sessions, managed).await?,
        ListedSession::Hosted(hosted) => hosted.swap_code().await?,
    };
    let note = match swapped {
        CodeSwap::Swapped(names) => format!("swapped into the running program: {}", names.join(", ")),
        CodeSwap::Unchanged => "none of the loaded classes has changed: the program continues unchanged".to_owned(),
        // Who attaches to a program does not launch it.
        CodeSwap::Refused(reason) if first.request().debug_target.is_attach() => {
            let error = Error::other(format!("cannot swap the changed code into {id}")).because(reason);
            return Err(
                error.hint("what did not take the change continues unchanged: start it again, and attach to it again")
            );
        }
        CodeSwap::Refused(reason) => {
            let note = format!("the changed code cannot be swapped into {id}: {reason}; it was launched again");
            return Ok(SwapAttempt::LaunchAnew(Some(note)));
        }
    };
    Ok(SwapAttempt::Swapped(Box::new(StartedSession { first, notes: vec![note] })))
}
