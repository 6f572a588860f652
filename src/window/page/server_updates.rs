//! What a page's dev server has told it over a WebSocket about changed files (hot module replacement), and when it was loaded.
//!
//! Frames are recognised by the names that Vite, webpack-dev-server, Next and Parcel give them; others are ignored. What
//! they say is bounded. Does not depend on pages.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;
use tether_base::clipped_text::first_chars;

/// How many updates are kept.
const MAX_UPDATES: usize = 100;
/// The longest frame that is read, in bytes.
const MAX_FRAME: usize = 256 << 10;
const MAX_ERROR_CHARS: usize = 300;

/// What a server has told the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerUpdate {
    /// It builds; another update follows.
    Building,
    /// The page takes the change.
    Updated,
    /// The change cannot be built.
    Failed(String),
    /// The page was loaded, on request of the server or not.
    Loaded,
}

/// The updates of a page.
#[derive(Default)]
pub struct ServerUpdates {
    /// With the time of each: [`tether_base::clock::monotonic_ms`].
    updates: VecDeque<(u64, ServerUpdate)>,
    /// Whether a server has ever told this page something.
    pub has_channel: bool,
    /// When it last did.
    told_at: u64,
}

#[derive(Deserialize)]
struct UpdateFrame {
    #[serde(rename = "type")]
    kind: Option<Value>,
    /// Next's name for `type`.
    action: Option<Value>,
    err: Option<FrameError>,
    errors: Option<Value>,
    data: Option<Value>,
}

#[derive(Deserialize)]
struct FrameError {
    message: Option<String>,
}

impl ServerUpdates {
    /// Records a frame of a WebSocket that was received at `at`; returns whether it is an update.
    pub fn record_frame(&mut self, at: u64, payload: &str) -> bool {
        if payload.len() > MAX_FRAME || !payload.starts_with('{') {
            return false;
        }
        let Ok(frame) = serde_json::from_str::<UpdateFrame>(payload) else { return false };
        let name = [&frame.kind, &frame.action].into_iter().flatten().find_map(Value::as_str);
        let Some(name) = name else { return false };
        let update = match name {
            "connected" | "hot" | "liveReload" | "hash" | "turbopack-connected" | "isrManifest" => None,
            "invalid" | "building" => Some(ServerUpdate::Building),
            "update"
            | "full-reload"
            | "prune"
            | "ok"
            | "still-ok"
            | "warnings"
            | "static-changed"
            | "content-changed"
            | "built"
            | "reloadPage"
            | "serverComponentChanges"
            | "turbopack-message"
            | "reload" => Some(ServerUpdate::Updated),
            "sync" if frame.errors.as_ref().and_then(Value::as_array).is_none_or(Vec::is_empty) => {
                Some(ServerUpdate::Updated)
            }
            "error" | "errors" | "sync" => Some(ServerUpdate::Failed(frame.error_text())),
            _ => return false,
        };
        (self.has_channel, self.told_at) = (true, at);
        let is_update = update.is_some();
        update.into_iter().for_each(|update| self.record(at, update));
        is_update
    }

    /// Records an update.
    pub fn record(&mut self, at: u64, update: ServerUpdate) {
        if self.updates.len() == MAX_UPDATES {
            self.updates.pop_front();
        }
        self.updates.push_back((at, update));
    }

    /// Whether a server has told something since the last load.
    pub fn is_connected_anew(&self) -> bool {
        let loads = self.updates.iter().rev().find(|(_, update)| *update == ServerUpdate::Loaded);
        loads.is_none_or(|(at, _)| self.told_at >= *at)
    }

    /// The error of the newest build, if that failed: no update, build or load has followed.
    pub fn latest_error(&self) -> Option<&str> {
        match self.updates.back() {
            Some((_, ServerUpdate::Failed(text))) => Some(text),
            _ => None,
        }
    }

    /// The newest update at or after `since`; a load counts for the updates before it.
    pub fn newest(&self, since: u64) -> Option<ServerUpdate> {
        let after: Vec<&ServerUpdate> = self.updates.iter().filter(|(at, _)| *at >= since).map(|(_, it)| it).collect();
        let last = *after.last()?;
        let is_loaded = after.contains(&&ServerUpdate::Loaded) && *last == ServerUpdate::Updated;
        Some(if is_loaded { ServerUpdate::Loaded } else { last.clone() })
    }
}

impl UpdateFrame {
    fn error_text(&self) -> String {
        let first = |value: &Option<Value>| match value.as_ref()?.as_array()?.first()? {
            Value::String(text) => Some(text.clone()),
            other => other.get("message")?.as_str().map(str::to_owned),
        };
        let text = self.err.as_ref().and_then(|err| err.message.clone());
        let text = text.or_else(|| first(&self.errors)).or_else(|| first(&self.data)).unwrap_or_default();
        first_chars(&anstream::adapter::strip_str(&text).to_string(), MAX_ERROR_CHARS).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frames_of_dev_servers_are_recognised() {
        let check = |frame: &str, expect: (bool, Option<ServerUpdate>)| {
            let mut updates = ServerUpdates::default();
            updates.record_frame(10, frame);
            assert_eq!((updates.has_channel, updates.newest(10)), expect, "{frame}");
            assert_eq!(updates.newest(11), None);
        };
        let updated = || (true, Some(ServerUpdate::Updated));
        check(r#"{"type":"connected"}"#, (true, None));
        check(r#"{"type":"update","updates":[{"path":"/src/App.jsx"}]}"#, updated());
        check(r#"{"type":"full-reload","path":"/index.html"}"#, updated());
        check(r#"{"type":"invalid"}"#, (true, Some(ServerUpdate::Building)));
        check(r#"{"type":"ok"}"#, updated());
        check(r#"{"action":"building"}"#, (true, Some(ServerUpdate::Building)));
        check(r#"{"action":"sync","hash":"1","errors":[],"warnings":[]}"#, updated());
        let failed = |text: &str| (true, Some(ServerUpdate::Failed(text.to_owned())));
        check(r#"{"action":"sync","errors":["no x"]}"#, failed("no x"));
        check(r#"{"type":"error","err":{"message":"\u001b[31mno x\u001b[39m"}}"#, failed("no x"));
        check(r#"{"type":"errors","data":[{"message":"no y"}]}"#, failed("no y"));
        for other in [r#"{"type":"chat","text":"hi"}"#, r#"{"type":1}"#, "[1]", "hello", "{", r#"{"event":"pong"}"#] {
            check(other, (false, None));
        }
    }

    #[test]
    fn an_error_stands_until_an_update_a_build_or_a_load_follows() {
        let failed = || ServerUpdate::Failed("no x".to_owned());
        let mut updates = ServerUpdates::default();
        assert_eq!(updates.latest_error(), None);
        for after in [ServerUpdate::Updated, ServerUpdate::Building, ServerUpdate::Loaded] {
            updates.record(1, failed());
            assert_eq!(updates.latest_error(), Some("no x"));
            updates.record(2, after);
            assert_eq!(updates.latest_error(), None);
        }
    }

    #[test]
    fn an_update_after_a_load_is_part_of_it_and_old_ones_are_dropped() {
        let mut updates = ServerUpdates::default();
        updates.record(5, ServerUpdate::Updated);
        updates.record(7, ServerUpdate::Loaded);
        updates.record(8, ServerUpdate::Updated);
        assert_eq!(updates.newest(5), Some(ServerUpdate::Loaded));
        assert_eq!(updates.newest(8), Some(ServerUpdate::Updated));
        (0..MAX_UPDATES as u64).for_each(|at| updates.record(at, ServerUpdate::Building));
        assert_eq!((updates.updates.len(), updates.newest(0)), (MAX_UPDATES, Some(ServerUpdate::Building)));
    }
}
