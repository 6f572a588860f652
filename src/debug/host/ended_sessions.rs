//! How long an ended session stays readable: for an hour, or until ten newer ones have ended; one that follows a window until it
//! is stopped.

use super::managed_session::ManagedSession;

/// How long an ended session stays readable, and how many of them.
const ENDED_KEPT_MS: u64 = 60 * 60 * 1000;
const ENDED_KEPT: usize = 10;

/// The ids of ended sessions that are no longer readable.
pub(super) fn expired_ids(sessions: &[ManagedSession], now: u64) -> Vec<String> {
    let may_expire = sessions.iter().filter(|it| !it.is_following());
    expired_sessions(may_expire.filter_map(|it| Some((it.ended_at()?, it.id.as_str()))).collect(), now)
}

/// The ids of those that are no longer readable. `ended` is when each has ended, in epoch ms, and its id.
pub fn expired_sessions(mut ended: Vec<(u64, &str)>, now: u64) -> Vec<String> {
    ended.sort_unstable();
    let surplus = ended.len().saturating_sub(ENDED_KEPT);
    let is_expired =
        |(index, (at, _)): &(usize, &(u64, &str))| *index < surplus || now.saturating_sub(*at) > ENDED_KEPT_MS;
    ended.iter().enumerate().filter(is_expired).map(|(_, (_, id))| (*id).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tether_base::clock::now_ms;

    use super::*;
    use crate::adapters::ADAPTERS;
    use crate::debug::breakpoints::BreakpointStore;
    use crate::debug::host::managed_session::lost_session;
    use crate::debug::host::session_request::SessionRequest;
    use crate::debug::session::debug_session::DebugSession;

    fn ended_session(id: &str, follows: Option<&str>) -> ManagedSession {
        let request = SessionRequest { follows: follows.map(str::to_owned), ..SessionRequest::default() };
        let lost = DebugSession::open_lost(id.into(), "lost".into(), BreakpointStore::in_memory(), Arc::default());
        lost_session(id.to_owned(), request, &ADAPTERS[0], lost, (0, format!("launch-{id}")))
    }

    #[tokio::test]
    async fn an_ended_session_does_not_expire_while_it_follows_the_window() {
        let mut sessions = vec![ended_session("tied", Some("page"))];
        sessions.extend((0..=ENDED_KEPT).map(|number| ended_session(&format!("free {number:02}"), None)));
        assert_eq!(expired_ids(&sessions, now_ms()), ["free 00"]);
        let later = now_ms() + ENDED_KEPT_MS + 1000;
        assert!(!expired_ids(&sessions, later).contains(&"tied".to_owned()));
        // Stopped by request, it no longer follows.
        sessions[0].stop(Some(true)).await;
        assert!(expired_ids(&sessions, later).contains(&"tied".to_owned()));
    }
}
