//! Renders network requests, and the rules for them.

use tether_base::display_text::{mark_breaks, mark_lines};

use super::ResultText;
use super::page_text::cursor_line;
use super::text_format::{duration_text, notes_text};
use crate::api::page_network::{NetworkDetail, NetworkEntries, NetworkEntry, NetworkTiming, RequestRules};

impl ResultText for NetworkEntries {
    fn text(&self) -> String {
        let requests = self.entries.iter().chain(&self.pending);
        let mut lines: String = requests.map(|request| request_line(request) + "\n").collect();
        if let Some(detail) = &self.detail {
            return lines + &detail_text(detail);
        }
        let is_empty = lines.is_empty();
        lines.extend(self.har.as_ref().map(|file| format!("exported to {file}\n")));
        lines + &cursor_line(&self.place, is_empty)
    }
}

fn request_line(it: &NetworkEntry) -> String {
    let outcome = match (it.status, &it.failure) {
        (_, Some(failure)) => format!(" failed: {failure}"),
        (Some(status), None) => format!(" {status}"),
        (None, None) if it.duration_ms.is_none() && it.kind != "WebSocket" => " (on its way)".to_owned(),
        (None, None) => String::new(),
    };
    let mut facts = vec![it.kind.clone()];
    facts.extend((it.bytes > 0).then(|| format!("{} bytes", it.bytes)));
    facts.extend(it.duration_ms.map(duration_text));
    facts.extend(it.from.as_ref().map(|from| format!("from {from}")));
    facts.retain(|fact| !fact.is_empty());
    format!("{} {} {}{outcome} ({})", it.id, it.method, it.url, facts.join(", "))
}

fn detail_text(it: &NetworkDetail) -> String {
    let mut out = String::new();
    let mut facts = Vec::new();
    facts.extend(it.protocol.clone());
    facts.extend(it.remote.as_ref().map(|remote| format!("from {remote}")));
    facts.extend(it.timing.as_ref().map(timing_text).filter(|text| !text.is_empty()));
    out.extend((!facts.is_empty()).then(|| format!("{}\n", facts.join(", "))));
    out.extend((!it.initiator.is_empty()).then(|| format!("initiator: {}\n", it.initiator.join("\n  "))));
    let mut part = |title: &str, lines: &str| {
        if !lines.is_empty() {
            out += &format!("{title}:\n{}\n", mark_lines(lines));
        }
    };
    part("request headers", &it.request_headers.join("\n"));
    part("request body", it.request_body.as_deref().unwrap_or_default());
    part("response headers", &it.response_headers.join("\n"));
    part("body", it.body.as_deref().unwrap_or_default());
    out.extend(it.body_file.as_ref().map(|file| format!("body of {} bytes in {file}\n", it.body_bytes)));
    out.extend(it.body_note.as_ref().map(|note| format!("body: {note}\n")));
    out.extend((it.dropped_messages > 0).then(|| format!("{} messages before these\n", it.dropped_messages)));
    for message in &it.messages {
        let cut =
            if message.text.len() < message.bytes { format!(" ({} bytes)", message.bytes) } else { String::new() };
        out += &format!("{}{cut}: {}\n", message.kind, mark_breaks(&message.text));
    }
    out.trim_end().to_owned()
}

fn timing_text(it: &NetworkTiming) -> String {
    let phases = [
        ("DNS", it.dns_ms),
        ("connect", it.connect_ms),
        ("TLS", it.tls_ms),
        ("send", it.send_ms),
        ("wait", it.wait_ms),
        ("receive", it.receive_ms),
    ];
    let shown = phases.iter().filter_map(|(name, ms)| Some(format!("{name} {:.1} ms", (*ms)?)));
    shown.collect::<Vec<_>>().join(", ")
}

impl ResultText for RequestRules {
    fn text(&self) -> String {
        let lines: Vec<String> = self.rules.iter().map(ToString::to_string).collect();
        let rules = if lines.is_empty() { "no rules".to_owned() } else { lines.join("\n") };
        rules + &notes_text(&self.notes)
    }
}
