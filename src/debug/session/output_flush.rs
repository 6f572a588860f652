//! What a program has printed before its end, out of an adapter that would forget it.
//!
//! gdb reads what the program prints line by line, in a thread of its own, and its goodbye does not wait for that thread:
//! the last line is lost now and then, one without an end always. A line of ours that is printed after it, through the
//! same pipe, shows when all has come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::dap::types::{EvaluateArguments, OutputEvent};
use crate::dap::{DapClient, RawEvent};

/// Stands in no output by chance.
const FLUSH_MARKER: &str = "\u{2}tether:all-is-printed\u{3}";

/// What is not here by then is given up.
pub(in crate::debug) const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether our line has been asked for, and has come.
#[derive(Default)]
pub(in crate::debug) struct OutputFlush {
    asked: AtomicBool,
    came: Notify,
}

impl OutputFlush {
    /// Has the line printed by that command of the adapter's, and waits for it.
    pub(in crate::debug) async fn flush(&self, client: &DapClient, command: &str) {
        self.asked.store(true, Ordering::Release);
        let expression = format!("{command} '{FLUSH_MARKER}'");
        let print = EvaluateArguments { expression, context: Some("repl".to_owned()), ..EvaluateArguments::default() };
        let printed = async {
            if client.request(&print, FLUSH_TIMEOUT).await.is_ok() {
                self.came.notified().await;
            }
        };
        tokio::select! {_ = tokio::time::timeout(FLUSH_TIMEOUT, printed) => {}
        // Nothing comes any more.
         _ = client.wait_closed() => {}}
    }

    /// When the event brings our line: what stands before it, which is the program's.
    pub(in crate::debug) fn take_marker(&self, event: &RawEvent) -> Option<String> {
        if !self.asked.load(Ordering::Acquire) {
            return None;
        }
        let output = event.read_body::<OutputEvent>()?.output;
        let own = output.trim_end().strip_suffix(FLUSH_MARKER)?.to_owned();
        self.came.notify_one();
        Some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_line_is_taken_once_asked_for_and_what_stands_before_it_is_the_programs() {
        let event = |text: &str| {
            let body = serde_json::json!({"category": "stdout", "output": text}).to_string();
            RawEvent { name: "output".to_owned(), body: Some(serde_json::value::RawValue::from_string(body).unwrap()) }
        };
        let drain = OutputFlush::default();
        assert_eq!(drain.take_marker(&event(FLUSH_MARKER)), None, "nobody has asked");
        drain.asked.store(true, Ordering::Release);
        assert_eq!(drain.take_marker(&event("a line\n")), None);
        assert_eq!(drain.take_marker(&event(&format!("half{FLUSH_MARKER}\n"))), Some("half".to_owned()));
        assert_eq!(drain.take_marker(&event(&format!("{FLUSH_MARKER}\n"))), Some(String::new()));
    }
}
