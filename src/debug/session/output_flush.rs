//! Flushes the last output of a program out of an adapter that would lose it.
//!
//! gdb reads what the program prints line by line, in a thread of its own, and its response to `disconnect` does not wait
//! for that thread: the last line is lost now and then, one without an end always. A line of ours that is printed after
//! it, through the same pipe, shows when all has come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tether_dap::types::{EvaluateArguments, OutputEvent};
use tether_dap::{DapClient, RawEvent};
use tokio::sync::Notify;

/// Does not occur in any output.
const FLUSH_MARKER: &str = "\u{2}tether:all-is-printed\u{3}";

/// Output that has not come by then is lost.
pub(in crate::debug) const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether the marker line has been requested, and has come.
#[derive(Default)]
pub(in crate::debug) struct OutputFlush {
    requested: AtomicBool,
    received: Notify,
}

impl OutputFlush {
    /// Has the adapter print the marker line by that command, and waits for it.
    pub(in crate::debug) async fn flush(&self, client: &DapClient, command: &str) {
        self.requested.store(true, Ordering::Release);
        let expression = format!("{command} '{FLUSH_MARKER}'");
        let print = EvaluateArguments { expression, context: Some("repl".to_owned()), ..EvaluateArguments::default() };
        let printed = async {
            if client.request(&print, FLUSH_TIMEOUT).await.is_ok() {
                self.received.notified().await;
            }
        };
        tokio::select! {_ = tokio::time::timeout(FLUSH_TIMEOUT, printed) => {}
        // No output can come any more.
         _ = client.wait_closed() => {}}
    }

    /// The program's output before the marker line, if the event has that line.
    pub(in crate::debug) fn take_marker(&self, event: &RawEvent) -> Option<String> {
        if !self.requested.load(Ordering::Acquire) {
            return None;
        }
        let output = event.read_body::<OutputEvent>()?.output;
        let own = output.trim_end().strip_suffix(FLUSH_MARKER)?.to_owned();
        self.received.notify_one();
        Some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_is_taken_once_requested_and_the_text_before_it_is_output() {
        let event = |text: &str| {
            let body = serde_json::json!({"category": "stdout", "output": text}).to_string();
            RawEvent { name: "output".to_owned(), body: Some(serde_json::value::RawValue::from_string(body).unwrap()) }
        };
        let drain = OutputFlush::default();
        assert_eq!(drain.take_marker(&event(FLUSH_MARKER)), None, "not requested");
        drain.requested.store(true, Ordering::Release);
        assert_eq!(drain.take_marker(&event("a line\n")), None);
        assert_eq!(drain.take_marker(&event(&format!("half{FLUSH_MARKER}\n"))), Some("half".to_owned()));
        assert_eq!(drain.take_marker(&event(&format!("{FLUSH_MARKER}\n"))), Some(String::new()));
    }
}
