//! The operations on the window, and its state and changes as the API's types.

use std::path::Path;
use std::time::Duration;

use tether_base::error::Result;

use super::window_stops::wait_for_extensions;
use crate::api::window::{
    BuildReport, ChangedFile, ChangedFileKind, RefreshNotice, RefreshReport, ReportedWindowState, TrackingDecision,
    WindowChanges, WindowChangesParams, WindowExitReport, WindowResources, WindowRestartParams, WindowStartParams,
    WindowStatus, WindowStatusParams, WindowStopParams,
};
use crate::debug::SessionEntry;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};
use crate::window::{
    CheckSummary, FileChange, FileChangeKind, FileChanges, PathExplanation, PublishedState, StaleRefresh,
    WindowInspection, WindowPhase,
};

/// How many changes a status lists, and how many `window/changes` does.
const MAX_STATUS_CHANGES: usize = 10;
const MAX_LISTED_CHANGES: usize = 100;

/// Inspects the window, and lists the active sessions beside it.
pub async fn window_status(context: &SupervisorContext) -> WindowStatus {
    let WindowInspection { published, check, responsive, notes } = context.window.inspect().await;
    let stale = check.as_ref().is_some_and(|check| check.stale);
    let known = known_window_status(&published);
    let state = match known.state {
        ReportedWindowState::Ready if !responsive => ReportedWindowState::Unresponsive,
        ReportedWindowState::Ready if stale => ReportedWindowState::Stale,
        state => state,
    };
    WindowStatus {
        state,
        stale,
        changes: check.iter().flat_map(|check| &check.changed).take(MAX_STATUS_CHANGES).map(changed_file).collect(),
        sessions: context.active_sessions().iter().map(|it| it.id().to_owned()).collect(),
        notes: known
            .notes
            .into_iter()
            .chain(context.queue.describe_unattended())
            .chain(notes)
            .chain(context.replacement_note())
            .collect(),
        ..known
    }
}

/// The status as far as it is known without an inspection.
fn known_window_status(published: &PublishedState) -> WindowStatus {
    let session = published.window.as_deref().map(|window| &window.session);
    WindowStatus {
        state: match published.phase {
            WindowPhase::Absent => ReportedWindowState::Absent,
            WindowPhase::Building { .. } => ReportedWindowState::Building,
            WindowPhase::Starting => ReportedWindowState::Starting,
            WindowPhase::Unverified => ReportedWindowState::Unverified,
            WindowPhase::Running => ReportedWindowState::Ready,
            WindowPhase::Stopping => ReportedWindowState::Stopping,
            WindowPhase::Exited => ReportedWindowState::Exited,
        },
        pid: session.map(|it| it.electron_pid),
        cdp_port: session.map(|it| it.cdp_port),
        inspector_port: session.and_then(|it| it.inspector_port),
        launch_id: session.map(|it| it.launch_id.clone()),
        started_at: session.map(|it| it.debug_window_started_at),
        generation: published.generation,
        reconnected: published.window.as_ref().is_some_and(|window| window.reconnected),
        refreshed: published
            .window
            .as_ref()
            .and_then(|window| window.refreshed)
            .map(|refresh| RefreshReport { by: refresh.by, took_ms: to_millis(refresh.took) }),
        last_build: published.last_build.as_ref().map(|build| BuildReport {
            ok: build.ok,
            ended_at: build.ended_at_ms,
            duration_ms: to_millis(build.duration),
            tail: build.tail.clone(),
        }),
        exit: published.exit.as_ref().map(|exit| WindowExitReport {
            code: exit.code(),
            signal: exit.signal(),
            at: exit.at_ms,
            doing: exit.interrupted_calls.clone(),
            console: exit.console.clone(),
            output: exit.output.clone(),
        }),
        notes: published
            .progress
            .iter()
            .cloned()
            .chain(published.describe_unattended())
            .chain(published.check.iter().flat_map(CheckSummary::describe))
            .chain(published.notes.iter().cloned())
            .collect(),
        ..WindowStatus::default()
    }
}

impl OperationHandler for WindowStatusParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<WindowStatus> {
        let (status, usage) = tokio::join!(window_status(context), context.window.measure_resources());
        let resources = usage.map(|it| WindowResources {
            processes: it.processes,
            memory_bytes: it.memory_bytes,
            cpu_percent: it.cpu_percent,
        });
        Ok(WindowStatus { resources, ..status })
    }
}

impl OperationHandler for WindowStartParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<WindowStatus> {
        let (config, rebuild) = (self.config.as_deref(), self.rebuild.unwrap_or_default());
        let generation = context.window.watch().borrow().generation;
        context.window.start(config, rebuild, call).await?;
        wait_for_extensions(context, call).await;
        let status = window_status(context).await;
        if status.state != ReportedWindowState::Exited || status.generation != generation {
            return Ok(status);
        }
        // The window that seemed to run was just ending.
        context.window.start(config, rebuild, call).await?;
        wait_for_extensions(context, call).await;
        Ok(window_status(context).await)
    }
}

impl OperationHandler for WindowStopParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<WindowStatus> {
        context.window.stop(call).await?;
        Ok(window_status(context).await)
    }
}

impl OperationHandler for WindowRestartParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<WindowStatus> {
        context.window.restart(self.rebuild.unwrap_or_default(), call).await?;
        wait_for_extensions(context, call).await;
        Ok(window_status(context).await)
    }
}

/// The changed files, and the decision about one path when it is requested.
impl OperationHandler for WindowChangesParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<WindowChanges> {
        let explanation = match &self.path {
            Some(path) => Some(context.window.explain_path(Path::new(path)).await?),
            None => None,
        };
        let FileChanges { check, problems, generation } = context.window.inspect_changes().await?;
        let check = check.as_ref();
        let note = explanation.as_ref().and_then(|it| Some(format!("{}: {}", it.path.display(), it.note.as_ref()?)));
        let changed = check.into_iter().flat_map(|check| &check.changed);
        Ok(WindowChanges {
            stale: check.is_some_and(|check| check.stale),
            newest: check.and_then(|check| check.newest.as_ref()).map(changed_file),
            changed: changed.take(MAX_LISTED_CHANGES).map(changed_file).collect(),
            total: check.map_or(0, |check| check.total as u64),
            generation,
            compared_to: check.map(|check| check.compared_to_ms),
            decision: explanation.map(tracking_decision),
            problems: note.into_iter().chain(problems).collect(),
        })
    }
}

/// One changed file.
fn changed_file(change: &FileChange) -> ChangedFile {
    ChangedFile {
        path: change.path.to_string_lossy().into_owned(),
        kind: match change.kind {
            FileChangeKind::Modified => ChangedFileKind::Modified,
            FileChangeKind::Added => ChangedFileKind::Added,
            FileChangeKind::Removed => ChangedFileKind::Removed,
        },
        modified_at: change.modified_at_ms,
    }
}

fn tracking_decision(explanation: PathExplanation) -> TrackingDecision {
    let rule = explanation.decision.rule;
    TrackingDecision {
        path: explanation.path.to_string_lossy().into_owned(),
        tracked: explanation.decision.tracked,
        rule: rule.as_ref().map(|rule| rule.pattern.clone()),
        file: rule.as_ref().and_then(|rule| rule.file.as_ref()).map(|file| file.to_string_lossy().into_owned()),
        line: rule.as_ref().and_then(|rule| rule.line).map(|line| line as u64),
        change: explanation.change.as_ref().map(changed_file),
    }
}

/// Why and how long a relaunch took.
pub fn refresh_report(it: StaleRefresh) -> RefreshNotice {
    RefreshNotice {
        because: it.because,
        build_ms: to_millis(it.outcome.build),
        launch_ms: to_millis(it.outcome.launch),
        by: it.outcome.refreshed.map(|refresh| refresh.by).unwrap_or_default(),
        notes: it.outcome.notes,
    }
}

fn to_millis(duration: Duration) -> u64 {
    duration.as_millis() as u64
}
