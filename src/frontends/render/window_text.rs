//! Renders the results of window operations: status, changes, evaluation.

use serde_json::Value;
use tether_base::display_text::{mark_breaks, mark_lines};

use super::ResultText;
use super::stop_text::location_text;
use super::text_format::{age_text, duration_text, notes_text};
use crate::api::debug::results::StoppedSession;
use crate::api::page::{PageEvaluateResult, PageImage};
use crate::api::window::{
    BuildReport, ChangedFile, ChangedFileKind, RefreshNotice, ReportedWindowState, TrackingDecision, WindowChanges,
    WindowExitReport, WindowStatus,
};
use crate::vocabulary::RefreshRung;

impl ResultText for PageImage {
    fn text(&self) -> String {
        refresh_text(self.refreshed.as_ref()) + "a picture" + &notes_text(&self.notes)
    }
}

impl ResultText for WindowStatus {
    fn text(&self) -> String {
        let mut out = window_line(self);
        out.extend(self.resources.iter().map(|resources| format!("\n  uses {resources}")));
        out.extend(self.changes.iter().map(|change| format!("\n  {}", change_line(change))));
        out.extend(self.last_build.iter().map(build_text));
        out.extend(self.exit.iter().map(exit_text));
        out.extend(self.notes.iter().map(|note| format!("\n  note: {}", mark_breaks(note))));
        out
    }
}

/// The state of the window, in one line.
pub fn window_line(window: &WindowStatus) -> String {
    let mut facts = Vec::new();
    facts.extend(window.pid.map(|_| format!("generation {}", window.generation)));
    facts.extend(window.pid.map(|pid| format!("pid {pid}")));
    facts.extend(window.cdp_port.map(|port| format!("CDP port {port}")));
    facts.extend(window.inspector_port.map(|port| format!("inspector port {port}")));
    facts.extend(window.started_at.map(|at| format!("up {}", age_text(at))));
    facts.extend(window.reconnected.then(|| "reconnected".to_owned()));
    let mut out = state_text(window.state).to_owned();
    out.extend((!facts.is_empty()).then(|| format!(": {}", facts.join(", "))));
    out
}

fn state_text(state: ReportedWindowState) -> &'static str {
    match state {
        ReportedWindowState::Absent => "no window",
        ReportedWindowState::Starting => "the window is starting",
        ReportedWindowState::Ready => "the window is ready",
        ReportedWindowState::Stale => "the window is stale",
        ReportedWindowState::Building => "a build runs",
        ReportedWindowState::Stopping => "the window is stopping",
        ReportedWindowState::Exited => "the window has exited",
        ReportedWindowState::Unresponsive => "the window is unresponsive: its port answers, its page does not",
        ReportedWindowState::Unverified => "a window may run, but it cannot be verified",
    }
}

fn build_text(build: &BuildReport) -> String {
    let outcome = if build.ok { "succeeded" } else { "failed" };
    let mut out = format!("\n  last build {outcome} in {}", duration_text(build.duration_ms));
    out.extend((!build.ok && !build.tail.is_empty()).then(|| format!("\n{}", mark_lines(&build.tail))));
    out
}

fn exit_text(exit: &WindowExitReport) -> String {
    let how = match (exit.code, exit.signal) {
        (Some(code), _) => format!("with code {code}"),
        (None, Some(signal)) => format!("by signal {signal}"),
        (None, None) => "by itself (its code is unknown: it was not our child)".into(),
    };
    let mut out = format!("\n  it ended {how}, {} ago", age_text(exit.at));
    out.extend(exit.doing.iter().map(|doing| format!("\n    while {doing}")));
    let texts = exit.console.iter().chain([&exit.output]).filter(|text| !text.trim_end().is_empty());
    out.extend(texts.map(|text| format!("\n{}", mark_lines(text))));
    out
}

impl ResultText for WindowChanges {
    fn text(&self) -> String {
        let mut out: String = self.decision.iter().map(decision_text).collect();
        out += &match (self.compared_to, self.stale) {
            (None, _) => "there is no window to compare with".to_owned(),
            (_, false) => "nothing has changed".to_owned(),
            (_, true) if self.total == 1 => "1 file has changed".to_owned(),
            (_, true) => format!("{} files have changed", self.total),
        };
        out.extend(self.compared_to.map(|at| format!(" (compared to the build of {} ago)", age_text(at))));
        out.extend(self.changed.iter().map(|change| format!("\n  {}", change_line(change))));
        let left_out = self.total.saturating_sub(self.changed.len() as u64);
        out.extend((left_out > 0).then(|| format!("\n  … and {left_out} more")));
        out.extend(self.problems.iter().map(|problem| format!("\n  note: {problem}")));
        out
    }
}

fn decision_text(decision: &TrackingDecision) -> String {
    let outcome = if decision.tracked { "is tracked" } else { "is ignored" };
    let rule = match (&decision.rule, &decision.file, decision.line) {
        (Some(rule), Some(file), Some(line)) => format!("rule `{rule}` on line {line} of {file}"),
        (Some(rule), ..) => format!("built-in rule `{rule}`"),
        _ => "no rule speaks of it".to_owned(),
    };
    let change = decision.change.as_ref().map(|change| format!("\n  {}", change_line(change)));
    format!("{} {outcome}: {rule}{}\n", decision.path, change.unwrap_or_default())
}

impl ResultText for PageEvaluateResult {
    fn text(&self) -> String {
        let result = match (&self.exception, &self.value) {
            (Some(exception), _) => format!("exception: {}", mark_breaks(exception)),
            (None, Some(Value::String(text))) => mark_breaks(text),
            (None, None) if self.stopped.is_some() => "it continues when the program does".to_owned(),
            (None, value) => value.clone().unwrap_or(Value::Null).to_string(),
        };
        let stopped = stopped_text(self.stopped.as_ref());
        refresh_text(self.refreshed.as_ref()) + &stopped + &result + &notes_text(&self.notes)
    }
}

/// The line that says that a program of the window is stopped.
pub fn stopped_text(stopped: Option<&StoppedSession>) -> String {
    let Some(StoppedSession { session_id, location }) = stopped else { return String::new() };
    let place = location.as_ref().map(|location| format!(" {}", location_text(location))).unwrap_or_default();
    format!("stopped: {session_id}{place}\n")
}

/// The line that an operation's result begins with when the window was relaunched for it.
pub fn refresh_text(notice: Option<&RefreshNotice>) -> String {
    let Some(RefreshNotice { because, build_ms, launch_ms, by, notes }) = notice else { return String::new() };
    let (build, launch) = (duration_text(*build_ms), duration_text(*launch_ms));
    let (done, step) = match by {
        RefreshRung::Relaunch => ("relaunched", "launch"),
        RefreshRung::Reload => ("reloaded the page", "reload"),
        RefreshRung::RestartExtensionHost => ("restarted the extension host", "restart"),
    };
    let mut out = format!("{done} because {because} (build {build}, {step} {launch})\n");
    out.extend(notes.iter().map(|note| format!("  note: {}\n", mark_breaks(note))));
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
            json!({"value": 42, "generation": 2, "refreshed": {"because": "src/a.ts was modified", "buildMs": 1500, "launchMs": 300}}),
            "relaunched because src/a.ts was modified (build 1.5 s, launch 300 ms)\n42",
        );
        check(
            "window/evaluate",
            json!({"exception": "ReferenceError: x", "generation": 2}),
            "exception: ReferenceError: x",
        );
    }
}
