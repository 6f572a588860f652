//! The server's stops in its debugger: its callers hear of them, and nothing is late meanwhile.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::proxy::Proxy;

/// Which debug sessions are stopped, and which of them is the server's.
#[derive(Default)]
pub(super) struct DebugStops {
    session: Option<String>,
    /// What is to be said of each session that is stopped: it may stop before its id is known.
    stopped: BTreeMap<String, String>,
}

impl DebugStops {
    /// What is to be said of the server's stop.
    pub fn current(&self) -> Option<&str> {
        self.stopped.get(self.session.as_ref()?).map(String::as_str)
    }

    /// The server's session.
    pub fn set_session(&mut self, session: String) {
        self.session = Some(session);
    }

    pub fn record(&mut self, session: String, stop: Option<String>) {
        match stop {
            Some(stop) => self.stopped.insert(session, stop),
            None => self.stopped.remove(&session),
        };
    }
}

impl Proxy {
    /// Takes over what has become known of stops.
    pub fn handle_stop(&mut self, record: impl FnOnce(&mut DebugStops)) {
        let before = self.stops.current().map(str::to_owned);
        record(&mut self.stops);
        let now = Instant::now();
        match (before, self.stops.current().map(str::to_owned)) {
            (None, Some(stop)) => {
                // Those without a progress token hear of it as well.
                if !self.calls.pending.is_empty() {
                    self.log("warning", &stop);
                }
                self.report_waiting(now);
            }
            (Some(_), None) => self.extend_deadlines(now),
            _ => {}
        }
    }
}
