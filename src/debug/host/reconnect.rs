//! Attaches a session again whose connection was lost while its program may run on.
//!
//! ```text
//!  lost ─▶ waits (0.5 s, then twice as long each time, up to 8 s) ─▶ attaches ─▶ attached: same id, log, breakpoints
//!             ▲                                                        │
//!             └───────────────────────── failed ───────────────────────┴─▶ given up: after 60 s, when the program
//!                                                                           exits, when the session is stopped
//! ```
//! Does not depend on how an adapter attaches. A session that follows the window is attached to the next one instead.

use std::sync::Arc;
use std::time::Duration;

use tether_base::error::{Error, Result};
use tokio::time::{Instant, sleep, timeout};
use tracing::info;

use super::managed_session::ManagedSession;
use super::recover::{join_causes, stored_as};
use super::registry::SessionRegistry;
use super::start::SessionListing;
use crate::vocabulary::RunState;

/// The pauses before the tries.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// For each try.
const TRY_TIMEOUT: Duration = Duration::from_secs(10);
/// For all tries together.
const GIVE_UP_AFTER: Duration = Duration::from_secs(60);

/// What becomes of a session once its connection has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Reconnection {
    /// The connection has not ended, or its end is still being looked at.
    #[default]
    Undecided,
    /// It is tried; what the last try failed with.
    Trying { tries: u32, failure: Option<String> },
    /// Another session has taken its place in the registry.
    Attached,
    /// Nothing is tried any more. Why, where it was tried.
    GivenUp(Option<String>),
}

impl Reconnection {
    fn is_decided(&self) -> bool {
        matches!(self, Reconnection::Attached | Reconnection::GivenUp(_))
    }

    /// It follows why the connection has ended.
    pub(super) fn describe(&self) -> Option<String> {
        match self {
            Reconnection::Trying { tries: 0, .. } => Some("it is attached to again in a moment".to_owned()),
            Reconnection::Trying { tries, failure } => {
                let failure = failure.as_ref().map(|failure| format!(": {failure}")).unwrap_or_default();
                Some(format!("it could not be attached to again yet ({tries} tried){failure}"))
            }
            Reconnection::GivenUp(why) => why.clone(),
            Reconnection::Undecided | Reconnection::Attached => None,
        }
    }
}

impl ManagedSession {
    /// Whether the connection to a program that was attached to has ended, and nobody has asked for that.
    fn has_lost_connection(&self) -> bool {
        let is_eligible = self.is_attached() && self.request.follows.is_none() && self.programs().len() == 1;
        is_eligible && !self.is_stop_requested() && self.run_state() == RunState::Disconnected
    }

    /// Whether it is only listed, with the reason of its loss.
    pub fn is_lost(&self) -> bool {
        self.session.is_lost()
    }

    /// Whether it is being attached to again.
    pub fn is_reconnecting(&self) -> bool {
        matches!(*self.ending.reconnection.borrow(), Reconnection::Trying { .. })
    }
}

impl SessionRegistry {
    /// The session that has taken the place of one whose connection was lost. `None`: it is not attached to again. Waits until
    /// that is decided, a little more than a minute at most.
    pub async fn wait_for_reconnection(&self, lost: &ManagedSession) -> Option<ManagedSession> {
        if !lost.has_lost_connection() {
            return None;
        }
        let mut reconnection = lost.ending.reconnection.subscribe();
        // The sender exists as long as `lost`.
        let decided = reconnection.wait_for(Reconnection::is_decided).await.ok()?.clone();
        (decided == Reconnection::Attached).then(|| self.find_session(Some(&lost.id)).ok()).flatten()
    }

    /// Decides what becomes of a session whose connection has ended; `is_kept`: it had started, and is in the list. Returns what
    /// attaches it again, to be spawned.
    pub(super) fn decide_reconnection(
        &self,
        ended: &ManagedSession,
        is_kept: bool,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        if !is_kept || !ended.has_lost_connection() {
            ended.ending.reconnection.send_replace(Reconnection::GivenUp(None));
            return None;
        }
        ended.ending.reconnection.send_replace(Reconnection::Trying { tries: 0, failure: None });
        Some(reconnect(self.clone(), ended.clone()))
    }
}

async fn reconnect(sessions: SessionRegistry, lost: ManagedSession) {
    let reason = lost.connection_problem().unwrap_or_default();
    lost.session.event_log().push_event("connectionLost", reason.clone());
    info!("{}: the connection was lost, and it is attached to again: {reason}", lost.id);
    let mut seen = lost.ending.reconnection.subscribe();
    let exited = async {
        match &lost.attached_process {
            Some(process) => drop(process.wait_for_exit().await),
            None => std::future::pending().await,
        }
    };
    let given_up = tokio::select! {
        outcome = try_to_attach(&sessions, &lost, &reason) => outcome.err(),
        () = exited => {
            lost.session.end_lost_program();
            Some(None)
        }
        // The session was stopped.
        _ = seen.wait_for(Reconnection::is_decided) => Some(None),
    };
    let decided = match given_up {
        None => Reconnection::Attached,
        Some(why) => {
            sessions.0.store.remove_session(&lost.launch_id);
            Reconnection::GivenUp(why.map(|failure| {
                let within = humantime::format_duration(GIVE_UP_AFTER);
                format!(
                    "it could not be attached to again within {within}: {failure}; `tether debug attach` tries again"
                )
            }))
        }
    };
    lost.ending.reconnection.send_replace(decided);
    sessions.0.changed.send_modify(|count| *count = count.wrapping_add(1));
}

/// Errors: what the last try has failed with.
async fn try_to_attach(sessions: &SessionRegistry, lost: &ManagedSession, reason: &str) -> Result<(), Option<String>> {
    let began = Instant::now();
    let (mut pause, mut tries) = (FIRST_PAUSE, 0_u32);
    loop {
        // The next supervisor attaches to it, if this one ends meanwhile.
        let loss = "the connection had been lost before".to_owned();
        sessions.0.store.keep_session(stored_as(lost, lost.request.without_environment(), loss));
        sleep(pause).await;
        pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        tries = tries.saturating_add(1);
        let failure = match timeout(TRY_TIMEOUT, attach_again(sessions, lost)).await {
            Ok(Ok(managed)) => {
                let text = format!("{} was attached to again, with its breakpoints: {reason}", managed.id);
                managed.session.event_log().push_notice("reattached", text);
                return Ok(());
            }
            Ok(Err(error)) => join_causes(&error),
            Err(_) => format!("nothing answered within {}", humantime::format_duration(TRY_TIMEOUT)),
        };
        info!("{}: try {tries} to attach again: {failure}", lost.id);
        if began.elapsed() >= GIVE_UP_AFTER {
            return Err(Some(failure));
        }
        let failure = Some(failure);
        lost.ending.reconnection.send_if_modified(|now| match now {
            Reconnection::Trying { .. } => {
                *now = Reconnection::Trying { tries, failure };
                true
            }
            _ => false,
        });
    }
}

async fn attach_again(sessions: &SessionRegistry, lost: &ManagedSession) -> Result<ManagedSession, Error> {
    let (request, log) = (lost.request.as_ref().clone(), Arc::clone(lost.session.event_log()));
    let prepared = sessions.prepare_session(lost.id.clone(), request, sessions.0.breakpoints.clone(), log)?;
    sessions.start_prepared(prepared, SessionListing::OnceStarted, TRY_TIMEOUT).await
}
