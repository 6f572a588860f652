//! From the window's own words to the API's: the window room does not know the API.

use std::time::Duration;

use crate::api::window as api;
use crate::window::{
    BuildSummary, ExpressionResult, FileChange, FileChangeKind, FileChanges, PageResult, PathExplanation,
    PublishedState, RelaunchReport, WindowExit, WindowInspection, WindowPhase, split_evaluated,
};

/// How many changes a status lists, and how many `window/changes` does.
const IN_STATUS: usize = 10;
const IN_CHANGES: usize = 100;

/// The status as far as it is known without looking: for notifications.
pub(super) fn published(published: &PublishedState) -> api::WindowStatus {
    let up = published.window.as_deref();
    api::WindowStatus {
        state: state(published.phase),
        pid: up.map(|up| up.facts.electron_pid),
        cdp_port: up.map(|up| up.facts.cdp_port),
        inspector_port: up.and_then(|up| up.facts.inspector_port),
        launch_id: up.map(|up| up.facts.launch_id.clone()),
        started_at: up.map(|up| up.facts.debug_window_started_at),
        generation: published.generation,
        reconnected: up.is_some_and(|up| up.reconnected),
        last_build: published.last_build.as_ref().map(last_build),
        exit: published.exit.as_ref().map(exit),
        notes: published.doing.iter().chain(&published.notes).cloned().collect(),
        ..api::WindowStatus::default()
    }
}

pub(super) fn look(look: WindowInspection) -> api::WindowStatus {
    let mut status = published(&look.published);
    if let Some(check) = look.check {
        status.stale = check.stale;
        status.changes = check.changed.iter().take(IN_STATUS).map(change).collect();
    }
    status.state = match status.state {
        api::WindowState::Ready if !look.responsive => api::WindowState::Unresponsive,
        api::WindowState::Ready if status.stale => api::WindowState::Stale,
        state => state,
    };
    status.notes.extend(look.notes);
    status
}

fn state(phase: WindowPhase) -> api::WindowState {
    match phase {
        WindowPhase::Absent => api::WindowState::Absent,
        WindowPhase::Building { .. } => api::WindowState::Building,
        WindowPhase::Starting => api::WindowState::Starting,
        WindowPhase::Running => api::WindowState::Ready,
        WindowPhase::Stopping => api::WindowState::Stopping,
        WindowPhase::Exited => api::WindowState::Exited,
    }
}

fn last_build(build: &BuildSummary) -> api::LastBuild {
    api::LastBuild {
        ok: build.ok,
        ended_at: build.ended_at_ms,
        duration_ms: ms(build.duration),
        tail: build.tail.clone(),
    }
}

fn exit(ended: &WindowExit) -> api::Exit {
    api::Exit {
        code: ended.code(),
        signal: ended.signal(),
        at: ended.at_ms,
        doing: ended.doing.clone(),
        console: ended.console.clone(),
        output: ended.output.clone(),
    }
}

pub(super) fn change(change: &FileChange) -> api::Change {
    api::Change {
        path: change.path.to_string_lossy().into_owned(),
        kind: match change.kind {
            FileChangeKind::Modified => api::ChangeKind::Modified,
            FileChangeKind::Added => api::ChangeKind::Added,
            FileChangeKind::Removed => api::ChangeKind::Removed,
        },
        modified_at: change.modified_at_ms,
    }
}

pub(super) fn changes(
    FileChanges { check, problems, generation }: FileChanges,
    explanation: Option<PathExplanation>,
) -> api::WindowChanges {
    let check = check.as_ref();
    let note = explanation.as_ref().and_then(|it| Some(format!("{}: {}", it.path.display(), it.note.as_ref()?)));
    api::WindowChanges {
        stale: check.is_some_and(|check| check.stale),
        newest: check.and_then(|check| check.newest.as_ref()).map(change),
        changed: check.map_or(&[][..], |check| &check.changed).iter().take(IN_CHANGES).map(change).collect(),
        total: check.map_or(0, |check| check.total as u64),
        generation,
        compared_to: check.map(|check| check.compared_to_ms),
        decision: explanation.map(decision),
        problems: note.into_iter().chain(problems).collect(),
    }
}

fn decision(explanation: PathExplanation) -> api::Decision {
    let rule = explanation.decision.rule;
    api::Decision {
        path: explanation.path.to_string_lossy().into_owned(),
        tracked: explanation.decision.tracked,
        rule: rule.as_ref().map(|rule| rule.pattern.clone()),
        file: rule.as_ref().and_then(|rule| rule.file.as_ref()).map(|file| file.to_string_lossy().into_owned()),
        line: rule.as_ref().and_then(|rule| rule.line).map(|line| line as u64),
        change: explanation.change.as_ref().map(change),
    }
}

pub(super) fn relaunched(it: RelaunchReport) -> api::Relaunched {
    api::Relaunched {
        because: it.because,
        build_ms: ms(it.outcome.build),
        launch_ms: ms(it.outcome.launch),
        notes: it.outcome.notes,
    }
}

pub(super) fn evaluated(on_page: PageResult<ExpressionResult>) -> api::Evaluated {
    let (value, exception) = split_evaluated(on_page.value);
    let PageResult { generation, notes, .. } = on_page;
    api::Evaluated { value, exception, generation, relaunched: on_page.relaunched.map(relaunched), notes }
}

fn ms(duration: Duration) -> u64 {
    duration.as_millis() as u64
}
