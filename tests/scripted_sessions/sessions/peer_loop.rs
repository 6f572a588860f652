//! The loop of every scripted peer: answers requests at once, late, twice, wrong or not at all, and sends events meanwhile.
//!
//! Does not depend on the protocol.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::choices::Choices;
use super::reply_mode::{Reliability, ReplyMode};

/// The shortest pause before an event without a cause.
const MIN_QUIET: Duration = Duration::from_millis(25);

/// How a peer answers: well at first, then as its choices say.
pub struct PeerManner {
    pub choices: Choices,
    reliability: Reliability,
    /// Requests that are answered well, whatever the choices say.
    calm: Mutex<usize>,
}

/// One side of a protocol, as its requests and events are written.
pub trait ScriptedPeer: Send + Sync + 'static {
    type Request: Send + 'static;

    fn manner(&self) -> &PeerManner;
    fn send_reply(&self, request: &Self::Request);
    fn send_wrong(&self, request: &Self::Request);
    fn send_event(&self);
    fn close(&self);

    /// Whether a message is to be answered.
    fn is_answered(&self, _request: &Self::Request) -> bool {
        true
    }

    /// Nothing has come for a while.
    fn send_event_when_quiet(&self) {
        self.send_event();
    }
}

impl PeerManner {
    /// `calm`: how many requests are answered well at first; see [`choose_calm`].
    pub fn choose(choices: Choices, calm: usize) -> PeerManner {
        let reliability = Reliability::choose(&choices);
        PeerManner { choices, reliability, calm: Mutex::new(calm) }
    }

    /// Whether the next request is answered well, whatever the choices say.
    pub fn take_calm(&self) -> bool {
        let mut calm = self.calm.lock().unwrap();
        let is_calm = *calm > 0;
        *calm = calm.saturating_sub(1);
        is_calm
    }

    fn choose_reply(&self) -> ReplyMode {
        if self.take_calm() { ReplyMode::AtOnce } else { ReplyMode::choose(self.reliability, &self.choices) }
    }

    fn choose_pause(&self) -> Duration {
        match self.choices.is_at_end() {
            true => Duration::MAX,
            false => MIN_QUIET * (1 + u32::from(self.choices.byte())),
        }
    }
}

/// Mostly, so many requests are answered well at first.
pub fn choose_calm(choices: &Choices, most: usize) -> usize {
    if choices.is_one_in(8) { 0 } else { most }
}

/// Answers requests until there are no more.
pub async fn serve_requests<P: ScriptedPeer>(peer: P, mut requests: mpsc::UnboundedReceiver<P::Request>) {
    let peer = Arc::new(peer);
    let mut late = JoinSet::new();
    loop {
        let request = tokio::select! {
            request = requests.recv() => request,
            () = sleep(peer.manner().choose_pause()) => {
                peer.send_event_when_quiet();
                continue;
            }
        };
        let Some(request) = request else { return };
        if !peer.is_answered(&request) {
            continue;
        }
        if let Some(delay) = answer(&*peer, &request) {
            let peer = Arc::clone(&peer);
            late.spawn(async move {
                sleep(delay).await;
                peer.send_reply(&request);
            });
        }
        while late.try_join_next().is_some() {}
    }
}

/// Returns after which time the request is to be answered, unless it was.
fn answer<P: ScriptedPeer>(peer: &P, request: &P::Request) -> Option<Duration> {
    match peer.manner().choose_reply() {
        ReplyMode::AtOnce => peer.send_reply(request),
        ReplyMode::Late(delay) => return Some(delay),
        ReplyMode::Twice => {
            peer.send_reply(request);
            peer.send_reply(request);
        }
        ReplyMode::Wrong => peer.send_wrong(request),
        ReplyMode::Never => {}
        ReplyMode::AfterEvent => {
            peer.send_event();
            peer.send_reply(request);
        }
        ReplyMode::Close => peer.close(),
    }
    None
}
