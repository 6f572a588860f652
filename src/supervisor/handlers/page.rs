//! The operations on the window's page: parameters into `window`'s requests, its results into the API's.

use std::sync::Mutex;
use std::time::Duration;

use tether_base::error::Result;
use tether_base::ring::{RingExtract, RingQuery};
use tether_base::sync::lock;

use super::page_actions::input_actions;
use super::window::refresh_report;
use super::window_stops::{PageWork, open_loaded_page, resume_hint, stopped_session, until_stopped};
use crate::api::page::{
    ConsoleEntries, ConsoleEntry, NetworkEntries, NetworkEntry, PageConsoleParams, PageEvaluateParams,
    PageEvaluateResult, PageImage, PageLogCursor, PageNetworkParams, PageScreenshotParams, PageSnapshotParams,
    PageSnapshotResult,
};
use crate::api::page_input::{InputActionReport, PageInputParams, PageInputResult};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};
use crate::window::{PageResult, page};

/// How long an expression may take when the caller does not say.
const DEFAULT_EVALUATE_TIMEOUT: Duration = Duration::from_secs(30);
/// How much a snapshot takes when the caller does not say.
const DEFAULT_SNAPSHOT_BYTES: usize = 40_000;
const MIN_SNAPSHOT_BYTES: usize = 200;
const DEFAULT_ENTRIES: usize = 50;
const MAX_ENTRIES: usize = 1000;
const MAX_PENDING: usize = 20;

impl OperationHandler for PageEvaluateParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<PageEvaluateResult> {
        let timeout = self.timeout_ms.map_or(DEFAULT_EVALUATE_TIMEOUT, Duration::from_millis);
        let fresh = open_loaded_page(context, call).await?;
        let evaluating = page::evaluate_on_page(&fresh.page, &self.expression, timeout, self.page.as_deref());
        let (evaluated, stopped) = match until_stopped(context, evaluating).await {
            PageWork::Done(evaluated) => (evaluated.map(Some), stopped_session(context).await),
            PageWork::Stopped(stopped) => (Ok(None), Some(stopped)),
        };
        let PageResult { value, generation, refreshed, mut notes } = fresh.finish(evaluated)?;
        notes.extend(stopped.as_ref().map(resume_hint));
        let (value, exception) = match value {
            Some(page::ExpressionResult::Value(value)) => (Some(value), None),
            Some(page::ExpressionResult::Exception(text)) => (None, Some(text)),
            None => (None, None),
        };
        let refreshed = refreshed.map(refresh_report);
        Ok(PageEvaluateResult { value, exception, stopped, generation, refreshed, notes })
    }
}

impl OperationHandler for PageScreenshotParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<PageImage> {
        let format = self.format.unwrap_or_default();
        let full_page = self.full_page.unwrap_or_default();
        let request = page::ScreenshotRequest { element: self.element, full_page, format, page: self.page };
        let fresh = open_loaded_page(context, call).await?;
        let captured = until_stopped(context, page::capture_screenshot(&fresh.page, &request)).await.done();
        let PageResult { value, generation, refreshed, mut notes } = fresh.finish(captured)?;
        notes.extend(value.note);
        let mime_type = format!("image/{}", value.format.name());
        Ok(PageImage { mime_type, data: value.data, generation, refreshed: refreshed.map(refresh_report), notes })
    }
}

impl OperationHandler for PageSnapshotParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<PageSnapshotResult> {
        let max_bytes = self.max.unwrap_or(DEFAULT_SNAPSHOT_BYTES).max(MIN_SNAPSHOT_BYTES);
        let request = page::SnapshotRequest { max_bytes, root: self.from, page: self.page };
        let fresh = open_loaded_page(context, call).await?;
        let snapshot = until_stopped(context, page::take_snapshot(&fresh.page, &request)).await.done();
        let PageResult { value, generation, refreshed, notes } = fresh.finish(snapshot)?;
        let refreshed = refreshed.map(refresh_report);
        Ok(PageSnapshotResult { text: value.text, cut: value.cut, generation, refreshed, notes })
    }
}

impl OperationHandler for PageInputParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<PageInputResult> {
        let actions = input_actions(self.actions)?;
        let snapshot_bytes = self.snapshot.unwrap_or_default().then_some(DEFAULT_SNAPSHOT_BYTES);
        let fresh = open_loaded_page(context, call).await?;
        let done = Mutex::new(Vec::new());
        let report = |step: &page::ActionOutcome| lock(&done).push(step.clone());
        let acting = page::run_actions(&fresh.page, &actions, self.page.as_deref(), snapshot_bytes, report);
        let (outcome, stopped) = match until_stopped(context, acting).await {
            PageWork::Done(outcome) => (outcome, stopped_session(context).await),
            PageWork::Stopped(stopped) => {
                (Ok(page::BatchOutcome { steps: std::mem::take(&mut lock(&done)), snapshot: None }), Some(stopped))
            }
        };
        let PageResult { value, generation, refreshed, mut notes } = fresh.finish(outcome)?;
        notes.extend(stopped.as_ref().map(resume_hint));
        let report = |step: page::ActionOutcome| InputActionReport { did: step.did, notes: step.notes };
        let actions = value.steps.into_iter().map(report).collect();
        let snapshot = value.snapshot.map(|it| it.text);
        let refreshed = refreshed.map(refresh_report);
        Ok(PageInputResult { actions, stopped, snapshot, generation, refreshed, notes })
    }
}

impl OperationHandler for PageConsoleParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<ConsoleEntries> {
        let query = log_query(self.since, self.limit, self.filter);
        let (extract, generation) = context.window.console(&query).await;
        let place = log_cursor(&extract, generation);
        let entry = |it: page::ConsoleMessage| ConsoleEntry {
            at: it.at,
            source: it.source.name().into(),
            level: it.level,
            text: it.text,
            place: it.location,
        };
        Ok(ConsoleEntries { entries: extract.entries.into_iter().map(entry).collect(), place })
    }
}

impl OperationHandler for PageNetworkParams {
    /// With the newest of the pending requests.
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<NetworkEntries> {
        let query = log_query(self.since, self.limit, self.filter);
        let (extract, pending, generation) = context.window.network(&query).await;
        let mut place = log_cursor(&extract, generation);
        if pending.len() > MAX_PENDING {
            place.note.get_or_insert_with(|| format!("{} requests are on their way", pending.len()));
        }
        let newest = pending.len().saturating_sub(MAX_PENDING);
        let pending = pending.into_iter().skip(newest).map(network_entry).collect();
        Ok(NetworkEntries { entries: extract.entries.into_iter().map(network_entry).collect(), pending, place })
    }
}

/// A query of console or network entries, with the default limit.
fn log_query(since: Option<u64>, limit: Option<usize>, filter: Option<String>) -> RingQuery {
    let limit = limit.unwrap_or(DEFAULT_ENTRIES).clamp(1, MAX_ENTRIES);
    RingQuery { since, limit, filter, ..RingQuery::default() }
}

fn log_cursor<T>(extract: &RingExtract<T>, generation: u64) -> PageLogCursor {
    let note = extract.foreign.then(|| "the cursor is from another supervisor: entries may repeat".to_owned());
    PageLogCursor { cursor: extract.cursor, dropped: extract.dropped, more: extract.more, generation, note }
}

fn network_entry(it: page::RecordedRequest) -> NetworkEntry {
    NetworkEntry {
        at: it.at,
        method: it.method,
        url: it.url,
        status: it.status,
        kind: it.kind,
        mime_type: it.mime,
        bytes: it.bytes,
        duration_ms: it.duration_ms,
        failure: it.failure,
        from: it.from.map(str::to_owned),
    }
}
