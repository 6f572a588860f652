//! The timeline in Chrome's trace event format, which Perfetto and chrome://tracing open.
//!
//! A row for each session, the window, builds, edits, the supervisor, and each caller. What goes on is drawn until now.
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::vocabulary::{TimelineEvent, TimelineKind};

const PROCESS: u32 = 1;

/// Draws events, which are in the order of their numbers, until `now` (epoch ms).
pub fn chrome_trace(events: &[TimelineEvent], now: u64) -> Value {
    let mut drawing = Drawing::default();
    for event in events {
        drawing.draw_event(event);
    }
    let open: Vec<String> = drawing.open.keys().cloned().collect();
    open.iter().for_each(|lane| drawing.close_span(lane, now));
    let names = drawing.lanes.iter().enumerate().map(
        |(at, lane)| json!({"name": "thread_name", "ph": "M", "pid": PROCESS, "tid": at + 1, "args": {"name": lane}}),
    );
    let events: Vec<Value> = names.chain(std::mem::take(&mut drawing.events)).collect();
    json!({"traceEvents": events, "displayTimeUnit": "ms"})
}

#[derive(Default)]
struct Drawing {
    /// The rows, in the order in which they began.
    lanes: Vec<String>,
    /// Of a row what goes on: since when, its name, its details.
    open: BTreeMap<String, (u64, String, Value)>,
    events: Vec<Value>,
}

impl Drawing {
    fn draw_event(&mut self, event: &TimelineEvent) {
        let details = json!({"text": event.text, "place": event.place, "by": event.by, "failed": event.failed});
        let session = event.session_id.clone().unwrap_or_default();
        let place = event.place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
        match event.kind {
            TimelineKind::SupervisorStarted => self.open_span("supervisor".into(), event, event.text.clone(), details),
            TimelineKind::SupervisorEnded => self.close_span("supervisor", event.at),
            TimelineKind::WindowLaunched | TimelineKind::WindowFound | TimelineKind::WindowRefreshed => {
                self.open_span("window".into(), event, event.text.clone(), details);
            }
            TimelineKind::WindowEnded => {
                self.close_span("window", event.at);
                self.mark("window".into(), event, format!("ended {}", event.text), details);
            }
            TimelineKind::SessionStarted => self.open_span(session, event, event.text.clone(), details),
            TimelineKind::Stopped => self.open_span(session, event, format!("stopped: {}{place}", event.text), details),
            TimelineKind::Resumed => self.open_span(session, event, event.text.clone(), details),
            TimelineKind::SessionEnded => {
                self.close_span(&session, event.at);
                self.mark(session, event, format!("ended {}", event.text), details);
            }
            TimelineKind::Built => {
                let name = if event.failed == Some(true) { "build failed" } else { "build" };
                self.span("builds".into(), event, name.to_owned(), details);
            }
            TimelineKind::Checked => {
                let name = if event.failed == Some(true) { "check failed" } else { "checked" };
                self.mark("builds".into(), event, name.to_owned(), details);
            }
            TimelineKind::RefreshHeld => {
                self.mark("window".into(), event, format!("not refreshed: {}", event.text), details);
            }
            TimelineKind::Edited => self.mark("edits".into(), event, event.text.clone(), details),
            TimelineKind::ConsoleError => self.mark("console".into(), event, event.text.clone(), details),
            TimelineKind::Called => {
                let by = event.by.clone().unwrap_or_default();
                self.span(format!("calls of {by}"), event, event.text.clone(), details);
            }
        }
    }

    fn lane(&mut self, name: &str) -> usize {
        let known = self.lanes.iter().position(|it| it == name);
        let at = known.unwrap_or_else(|| {
            self.lanes.push(name.to_owned());
            self.lanes.len() - 1
        });
        at + 1
    }

    fn open_span(&mut self, lane: String, event: &TimelineEvent, name: String, details: Value) {
        self.close_span(&lane, event.at);
        self.lane(&lane);
        self.open.insert(lane, (event.at, name, details));
    }

    fn close_span(&mut self, lane: &str, end: u64) {
        if let Some((start, name, details)) = self.open.remove(lane) {
            self.push_span(lane, (start, end.saturating_sub(start)), name, details);
        }
    }

    /// What took its time, and ended with the event.
    fn span(&mut self, lane: String, event: &TimelineEvent, name: String, details: Value) {
        let took = event.took_ms.unwrap_or(0);
        self.push_span(&lane, (event.at.saturating_sub(took), took), name, details);
    }

    fn push_span(&mut self, lane: &str, (start, took): (u64, u64), name: String, details: Value) {
        let lane = self.lane(lane);
        let (ts, dur) = (start.saturating_mul(1000), took.saturating_mul(1000));
        let span = json!({"name": name, "ph": "X", "pid": PROCESS, "tid": lane, "ts": ts, "dur": dur, "args": details});
        self.events.push(span);
    }

    fn mark(&mut self, lane: String, event: &TimelineEvent, name: String, details: Value) {
        let (lane, ts) = (self.lane(&lane), event.at.saturating_mul(1000));
        let mark = json!({"name": name, "ph": "i", "s": "t", "pid": PROCESS, "tid": lane, "ts": ts, "args": details});
        self.events.push(mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_a_span_until_its_resume_and_what_goes_on_until_now() {
        let event = |number: u64, kind: &str, more: Value| {
            let mut event =
                json!({"number": number, "at": 1000 * number, "kind": kind, "text": kind, "sessionId": "d1"});
            event.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
            serde_json::from_value::<TimelineEvent>(event).unwrap()
        };
        let events = [
            event(1, "sessionStarted", Value::Null),
            event(2, "stopped", json!({"place": "a.py:3"})),
            event(4, "resumed", Value::Null),
            event(5, "built", json!({"tookMs": 500, "failed": true, "sessionId": null})),
        ];
        let trace = chrome_trace(&events, 9000);
        let spans: Vec<_> = trace["traceEvents"].as_array().unwrap().iter().filter(|it| it["ph"] == "X").collect();
        let spans: Vec<_> =
            spans.iter().map(|it| (it["name"].as_str().unwrap(), it["ts"].as_u64(), it["dur"].as_u64())).collect();
        let ms = |ms: u64| Some(1000 * ms);
        assert_eq!(
            spans,
            [
                ("sessionStarted", ms(1000), ms(1000)),
                ("stopped: stopped at a.py:3", ms(2000), ms(2000)),
                ("build failed", ms(4500), ms(500)),
                ("resumed", ms(4000), ms(5000)),
            ]
        );
    }
}
