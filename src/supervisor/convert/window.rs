//! Conversion of the window's state and changes into the API's types.

use std::time::Duration;

use crate::api::window as api;
use crate::process::ResourceUsage;
use crate::window::{
    BuildSummary, FileChange, FileChangeKind, FileChanges, PathExplanation, PublishedState, StaleRelaunch, WindowExit,
    WindowInspection, WindowPhase,
};

/// How many changes a status lists, and how many `window/changes` does.
const MAX_STATUS_CHANGES: usize = 10;
const MAX_LISTED_CHANGES: usize = 100;

/// The status as far as it is known without looking: for notifications.
pub fn known_window_status(published: &PublishedState) -> api::WindowStatus {
    let up = published.window.as_deref();
    api::WindowStatus {
        state: window_state(published.phase),
        pid: up.map(|up| up.session.electron_pid),
        cdp_port: up.map(|up| up.session.cdp_port),
        inspector_port: up.and_then(|up| up.session.inspector_port),
        launch_id: up.map(|up| up.session.launch_id.clone()),
        started_at: up.map(|up| up.session.debug_window_started_at),
        generation: published.generation,
        reconnected: up.is_some_and(|up| up.reconnected),
        last_build: published.last_build.as_ref().map(build_report),
        exit: published.exit.as_ref().map(exit_report),
        notes: published.progress.iter().chain(&published.notes).cloned().collect(),
        ..api::WindowStatus::default()
    }
}

/// The status after an inspection: with changes, and whether the page responds.
pub fn inspected_window_status(look: WindowInspection) -> api::WindowStatus {
    let mut status = known_window_status(&look.published);
    if let Some(check) = look.check {
        status.stale = check.stale;
        status.changes = check.changed.iter().take(MAX_STATUS_CHANGES).map(changed_file).collect();
    }
    status.state = match status.state {
        api::ReportedWindowState::Ready if !look.responsive => api::ReportedWindowState::Unresponsive,
        api::ReportedWindowState::Ready if status.stale => api::ReportedWindowState::Stale,
        state => state,
    };
    status.notes.extend(look.notes);
    status
}

/// What the window's processes use.
pub fn window_resources(usage: ResourceUsage) -> api::WindowResources {
    let ResourceUsage { processes, memory_bytes, cpu_percent } = usage;
    api::WindowResources { processes, memory_bytes, cpu_percent }
}

fn window_state(phase: WindowPhase) -> api::ReportedWindowState {
    match phase {
        WindowPhase::Absent => api::ReportedWindowState::Absent,
        WindowPhase::Building { .. } => api::ReportedWindowState::Building,
        WindowPhase::Starting => api::ReportedWindowState::Starting,
        WindowPhase::Running => api::ReportedWindowState::Ready,
        WindowPhase::Stopping => api::ReportedWindowState::Stopping,
        WindowPhase::Exited => api::ReportedWindowState::Exited,
    }
}

fn build_report(build: &BuildSummary) -> api::BuildReport {
    api::BuildReport {
        ok: build.ok,
        ended_at: build.ended_at_ms,
        duration_ms: to_millis(build.duration),
        tail: build.tail.clone(),
    }
}

fn exit_report(ended: &WindowExit) -> api::WindowExitReport {
    api::WindowExitReport {
        code: ended.code(),
        signal: ended.signal(),
        at: ended.at_ms,
        doing: ended.in_flight.clone(),
        console: ended.console.clone(),
        output: ended.output.clone(),
    }
}

/// One changed file.
pub fn changed_file(change: &FileChange) -> api::ChangedFile {
    api::ChangedFile {
        path: change.path.to_string_lossy().into_owned(),
        kind: match change.kind {
            FileChangeKind::Modified => api::ChangedFileKind::Modified,
            FileChangeKind::Added => api::ChangedFileKind::Added,
            FileChangeKind::Removed => api::ChangedFileKind::Removed,
        },
        modified_at: change.modified_at_ms,
    }
}

/// The changed files, and the decision about one path when it was requested.
pub fn window_changes(
    FileChanges { check, problems, generation }: FileChanges,
    explanation: Option<PathExplanation>,
) -> api::WindowChanges {
    let check = check.as_ref();
    let note = explanation.as_ref().and_then(|it| Some(format!("{}: {}", it.path.display(), it.note.as_ref()?)));
    api::WindowChanges {
        stale: check.is_some_and(|check| check.stale),
        newest: check.and_then(|check| check.newest.as_ref()).map(changed_file),
        changed: check
            .map_or(&[][..], |check| &check.changed)
            .iter()
            .take(MAX_LISTED_CHANGES)
            .map(changed_file)
            .collect(),
        total: check.map_or(0, |check| check.total as u64),
        generation,
        compared_to: check.map(|check| check.compared_to_ms),
        decision: explanation.map(tracking_decision),
        problems: note.into_iter().chain(problems).collect(),
    }
}

fn tracking_decision(explanation: PathExplanation) -> api::TrackingDecision {
    let rule = explanation.decision.rule;
    api::TrackingDecision {
        path: explanation.path.to_string_lossy().into_owned(),
        tracked: explanation.decision.tracked,
        rule: rule.as_ref().map(|rule| rule.pattern.clone()),
        file: rule.as_ref().and_then(|rule| rule.file.as_ref()).map(|file| file.to_string_lossy().into_owned()),
        line: rule.as_ref().and_then(|rule| rule.line).map(|line| line as u64),
        change: explanation.change.as_ref().map(changed_file),
    }
}

/// Why and how long a relaunch took.
pub fn relaunch_report(it: StaleRelaunch) -> api::RelaunchNotice {
    api::RelaunchNotice {
        because: it.because,
        build_ms: to_millis(it.outcome.build),
        launch_ms: to_millis(it.outcome.launch),
        notes: it.outcome.notes,
    }
}

fn to_millis(duration: Duration) -> u64 {
    duration.as_millis() as u64
}
