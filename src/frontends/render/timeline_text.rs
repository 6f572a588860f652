//! Renders the timeline: a line for each event.

use tether_base::display_text::escape_line;

use super::ResultText;
use super::text_format::{age_text, duration_text};
use crate::api::timeline::{AwaitedEvents, TimelineEvents};
use crate::vocabulary::{TimelineEvent, TimelineKind};

impl ResultText for TimelineEvents {
    fn text(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        lines.extend((self.dropped > 0).then(|| format!("{} events are no longer kept", self.dropped)));
        lines.extend(self.events.iter().map(event_line));
        lines.extend(self.events.is_empty().then(|| "nothing has happened".to_owned()));
        lines.extend((self.more > 0).then(|| format!("{} more: `--limit` shows them", self.more)));
        lines.push(format!("cursor {}", self.cursor));
        lines.join("\n")
    }
}

impl ResultText for AwaitedEvents {
    fn text(&self) -> String {
        let mut lines: Vec<String> = self.events.iter().map(event_line).collect();
        lines.extend(self.message.as_deref().map(escape_line));
        lines.push(format!("waited {}, cursor {}", duration_text(self.waited_ms), self.cursor));
        lines.join("\n")
    }
}

fn event_line(event: &TimelineEvent) -> String {
    format!("{} ago  {}", age_text(event.at), event_text(event))
}

/// What has happened, without when.
pub fn event_text(event: &TimelineEvent) -> String {
    let text = escape_line(&event.text);
    let words = [event.session_id.as_deref().unwrap_or_default(), kind_text(event), &text];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let mut line = words.join(" ");
    line.extend(event.place.iter().map(|place| format!(" at {}", escape_line(place))));
    line.extend(event.took_ms.map(|ms| format!(", in {}", duration_text(ms))));
    line.extend(event.by.iter().map(|by| format!(", by {}", escape_line(by))));
    line
}

fn kind_text(event: &TimelineEvent) -> &'static str {
    match (event.kind, event.failed) {
        (TimelineKind::SupervisorStarted, _) => "supervisor started:",
        (TimelineKind::SupervisorEnded, _) => "supervisor ended:",
        (TimelineKind::Edited, _) => "edit:",
        (TimelineKind::Built, Some(true)) => "build failed",
        (TimelineKind::Built, _) => "build succeeded",
        (TimelineKind::Checked, Some(true)) => "check failed:",
        (TimelineKind::Checked, _) => "checks succeeded",
        (TimelineKind::WindowLaunched | TimelineKind::WindowFound | TimelineKind::WindowRefreshed, _) => "",
        (TimelineKind::RefreshHeld, _) => "not refreshed:",
        (TimelineKind::WindowEnded, _) => "window ended:",
        (TimelineKind::ConsoleError, _) => "console error:",
        (TimelineKind::SessionStarted, _) => "begins:",
        (TimelineKind::Stopped, _) => "stopped:",
        (TimelineKind::Resumed, _) => "resumed:",
        (TimelineKind::SessionEnded, _) => "ended:",
        (TimelineKind::Called, Some(true)) => "failed call:",
        (TimelineKind::Called, _) => "call:",
    }
}

#[cfg(test)]
mod tests {
    use super::super::render_text;
    use serde_json::json;

    #[test]
    fn an_event_is_one_line_with_what_is_known_of_it() {
        let check = |event: serde_json::Value, expect: &str| {
            let text = render_text("timeline/read", &json!({"events": [event], "cursor": 7}));
            let (line, cursor) = text.split_once('\n').unwrap();
            assert_eq!((line.split_once(" ago  ").unwrap().1, cursor), (expect, "cursor 7"));
        };
        let stop = json!({"number": 7, "at": 1, "kind": "stopped", "sessionId": "d1", "text": "breakpoint", "place": "a.py:3"});
        check(stop, "d1 stopped: breakpoint at a.py:3");
        let build = json!({"number": 7, "at": 1, "kind": "built", "text": "", "tookMs": 1500, "failed": false});
        check(build, "build succeeded, in 1.5 s");
        let call =
            json!({"number": 7, "at": 1, "kind": "called", "text": "debug/evaluate a\nb", "by": "x", "failed": true});
        check(call, "failed call: debug/evaluate a\\nb, by x");
    }
}
