//! Renders the results of window operations: status, changes, evaluation.

use std::fmt::Write;

use serde_json::Value;

use super::result_text::ResultText;
use super::text_format::{age_text, duration_text, indent_lines, notes_text};
use crate::api::page::{PageEvaluateResult, PageImage};
use crate::api::window::{
    ChangedFile, ChangedFileKind, RelaunchNotice, ReportedWindowState, WindowChanges, WindowStatus,
};

impl ResultText for WindowStatus {
    fn text(&self) -> Option<String> {
        Some(status_text(self))
    }
}

impl ResultText for WindowChanges {
    fn text(&self) -> Option<String> {
        Some(changes_text(self))
    }
}

impl ResultText for PageEvaluateResult {
    fn text(&self) -> Option<String> {
        Some(evaluation_text(self))
    }
}

impl ResultText for PageImage {
    fn text(&self) -> Option<String> {
        Some(relaunch_text(self.relaunched.as_ref()) + "a picture" + &notes_text(&self.notes))
    }
}

fn status_text(it: &WindowStatus) -> String {
    let mut out = state_word(it.state).to_owned();
    let mut facts = Vec::new();
    facts.extend(it.pid.map(|_| format!("generation {}", it.generation)));
    facts.extend(it.pid.map(|pid| format!("pid {pid}")));
    facts.extend(it.cdp_port.map(|port| format!("CDP port {port}")));
    facts.extend(it.inspector_port.map(|port| format!("inspector port {port}")));
    facts.extend(it.started_at.map(|at| format!("up {}", age_text(at))));
    if it.reconnected {
        facts.push("reconnected".into());
    }
    if !facts.is_empty() {
        let _ = write!(out, ": {}", facts.join(", "));
    }
    if let Some(resources) = &it.resources {
        let _ = write!(out, "\n  uses {resources}");
    }
    for change in &it.changes {
        let _ = write!(out, "\n  {}", change_line(change));
    }
    if let Some(build) = &it.last_build {
        let word = if build.ok { "succeeded" } else { "failed" };
        let _ = write!(out, "\n  last build {word} in {}", duration_text(build.duration_ms));
        if !build.ok && !build.tail.is_empty() {
            let _ = write!(out, "\n{}", indent_lines(&build.tail));
        }
    }
    if let Some(exit) = &it.exit {
        let how = match (exit.code, exit.signal) {
            (Some(code), _) => format!("with code {code}"),
            (None, Some(signal)) => format!("by signal {signal}"),
            (None, None) => "by itself (its code is unknown: it was not our child)".into(),
        };
        let _ = write!(out, "\n  it ended {how}, {} ago", age_text(exit.at));
        for doing in &exit.doing {
            let _ = write!(out, "\n    while {doing}");
        }
        for line in exit.console.iter().map(String::as_str).chain(exit.output.lines()) {
            let _ = write!(out, "\n    {line}");
        }
    }
    for note in &it.notes {
        let _ = write!(out, "\n  note: {}", note.replace('\n', "\n    "));
    }
    out
}

fn state_word(state: ReportedWindowState) -> &'static str {
    match state {
        ReportedWindowState::Absent => "no window",
        ReportedWindowState::Starting => "the window is starting",
        ReportedWindowState::Ready => "the window is ready",
        ReportedWindowState::Stale => "the window is stale",
        ReportedWindowState::Building => "a build runs",
        ReportedWindowState::Stopping => "the window is stopping",
        ReportedWindowState::Exited => "the window has exited",
        ReportedWindowState::Unresponsive => "the window is unresponsive: its port answers, its page does not",
    }
}

fn changes_text(it: &WindowChanges) -> String {
    let mut out = String::new();
    if let Some(decision) = &it.decision {
        let word = if decision.tracked { "is tracked" } else { "is ignored" };
        let _ = write!(out, "{} {word}", decision.path);
        match (&decision.rule, &decision.file, decision.line) {
            (Some(rule), Some(file), Some(line)) => {
                let _ = write!(out, ": rule `{rule}` on line {line} of {file}");
            }
            (Some(rule), ..) => {
                let _ = write!(out, ": built-in rule `{rule}`");
            }
            _ => out.push_str(": no rule speaks of it"),
        }
        if let Some(change) = &decision.change {
            let _ = write!(out, "\n  {}", change_line(change));
        }
        out.push('\n');
    }
    let compared = it.compared_to.map(|at| format!(" (compared to the build of {} ago)", age_text(at)));
    match (it.compared_to, it.stale) {
        (None, _) => out.push_str("there is no window to compare with"),
        (_, false) => out.push_str("nothing has changed"),
        (_, true) => {
            let _ = write!(out, "{} changed", count_files_text(it.total, "file"));
        }
    }
    out.push_str(&compared.unwrap_or_default());
    for change in &it.changed {
        let _ = write!(out, "\n  {}", change_line(change));
    }
    if it.total > it.changed.len() as u64 {
        let _ = write!(out, "\n  … and {} more", it.total - it.changed.len() as u64);
    }
    for problem in &it.problems {
        let _ = write!(out, "\n  note: {problem}");
    }
    out
}

fn evaluation_text(it: &PageEvaluateResult) -> String {
    let result = match (&it.exception, &it.value) {
        (Some(exception), _) => format!("exception: {exception}"),
        (None, Some(Value::String(text))) => text.clone(),
        (None, value) => value.clone().unwrap_or(Value::Null).to_string(),
    };
    relaunch_text(it.relaunched.as_ref()) + &result + &notes_text(&it.notes)
}

/// The line that an operation's result begins with when the window was relaunched for it.
pub fn relaunch_text(it: Option<&RelaunchNotice>) -> String {
    let Some(it) = it else { return String::new() };
    let mut out = format!(
        "relaunched because {} (build {}, launch {})\n",
        it.because,
        duration_text(it.build_ms),
        duration_text(it.launch_ms)
    );
    for note in &it.notes {
        let _ = writeln!(out, "  note: {}", note.replace('\n', "\n    "));
    }
    out
}

fn change_line(change: &ChangedFile) -> String {
    let word = match change.kind {
        ChangedFileKind::Modified => "modified",
        ChangedFileKind::Added => "added",
        ChangedFileKind::Removed => "removed",
    };
    format!("{word} {}", change.path)
}

fn count_files_text(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what} has") } else { format!("{n} {what}s have") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn results_read_as_sentences() {
        let check = |method: &str, answer: Value, expect: &str| {
            assert_eq!(crate::frontends::render::render_text(method, &answer), expect, "{answer}")
        };
        check(
            "window/status",
            json!({"state": "ready", "pid": 7, "generation": 1, "reconnected": false, "stale": false,
                "resources": {"processes": 3, "memoryBytes": 356_515_840, "cpuPercent": 4}}),
            "the window is ready: generation 1, pid 7\n  uses 340 MiB and 4 % CPU in 3 processes",
        );
        check(
            "window/status",
            json!({"state": "absent", "generation": 0, "reconnected": false, "stale": false}),
            "no window",
        );
        check(
            "window/status",
            json!({"state": "stale", "pid": 7, "cdpPort": 9222, "generation": 1, "reconnected": true, "stale": true,
                   "changes": [{"path": "src/a.ts", "kind": "modified", "modifiedAt": 1}]}),
            "the window is stale: generation 1, pid 7, CDP port 9222, reconnected\n  modified src/a.ts",
        );
        check(
            "window/changes",
            json!({"stale": false, "changed": [], "total": 0, "path": "out/a.js", "tracked": false, "rule": "out/", "file": ".devtoolsignore", "line": 3}),
            "out/a.js is ignored: rule `out/` on line 3 of .devtoolsignore\nthere is no window to compare with",
        );
        check(
            "window/evaluate",
            json!({"value": 42, "generation": 2, "relaunched": {"because": "src/a.ts was modified", "buildMs": 1500, "launchMs": 300}}),
            "relaunched because src/a.ts was modified (build 1.5 s, launch 300 ms)\n42",
        );
        check(
            "window/evaluate",
            json!({"exception": "ReferenceError: x", "generation": 2}),
            "exception: ReferenceError: x",
        );
    }
}
