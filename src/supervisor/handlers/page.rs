//! The operations on the window's page: parameters into `window`'s requests, its results into the API's.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;
use tether_base::clipped_text::first_bytes;
use tether_base::clock::now_ms;
use tether_base::error::{Error, Result};
use tether_base::ring::{RingExtract, RingQuery};
use tether_base::sync::lock;

use super::page_actions::input_actions;
use super::window::refresh_report;
use super::window_stops::{PageWork, open_loaded_page, resume_hint, stopped_session, until_stopped};
use crate::api::page::{
    ConsoleEntries, ConsoleEntry, PageConsoleParams, PageEvaluateParams, PageEvaluateResult, PageImage, PageLogCursor,
    PageScreenshotParams, PageSnapshotParams, PageSnapshotResult,
};
use crate::api::page_input::{InputActionReport, PageInputParams, PageInputResult};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};
use crate::window::{PageResult, page, save_output_file};

/// How long an expression may take when the caller does not say.
const DEFAULT_EVALUATE_TIMEOUT: Duration = Duration::from_secs(30);
/// How much a snapshot takes when the caller does not say.
const DEFAULT_SNAPSHOT_BYTES: usize = 40_000;
const MIN_SNAPSHOT_BYTES: usize = 200;
/// How much of a value is in a result.
const MAX_VALUE_BYTES: usize = 40_000;
const DEFAULT_ENTRIES: usize = 50;
const MAX_ENTRIES: usize = 1000;

impl OperationHandler for PageEvaluateParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<PageEvaluateResult> {
        let timeout = self.timeout_ms.map_or(DEFAULT_EVALUATE_TIMEOUT, Duration::from_millis);
        let fresh = open_loaded_page(context, call).await?;
        let place = page::PlaceRequest { page: self.page, frame: self.frame, element: self.element };
        let evaluating = page::evaluate_at(&fresh.page, &self.expression, timeout, &place);
        let (evaluated, stopped) = match until_stopped(context, evaluating).await {
            PageWork::Done(evaluated) => (evaluated.map(Some), stopped_session(context).await),
            PageWork::Stopped(stopped) => (Ok(None), Some(stopped)),
        };
        let PageResult { value, generation, refreshed, mut notes } = fresh.finish(evaluated)?;
        notes.extend(stopped.as_ref().map(resume_hint));
        let (value, exception) = match value {
            Some(page::ExpressionResult::Value(value)) => (Some(cut_value(context, value, &mut notes).await?), None),
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
        let clip = self.clip.as_deref().map(parse_clip).transpose()?;
        if self.scale.is_some_and(|scale| !(0.05..=4.0).contains(&scale)) {
            return Err(Error::usage("`scale` is from 0.05 to 4"));
        }
        if self.quality.is_some_and(|quality| !(1..=100).contains(&quality)) {
            return Err(Error::usage("`quality` is from 1 to 100"));
        }
        let (element, scale, quality, page) = (self.element, self.scale, self.quality, self.page);
        let request = page::ScreenshotRequest { element, full_page, clip, format, scale, quality, page };
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

/// The value; one that is too long as the beginning of its text, and the whole as a file.
async fn cut_value(context: &SupervisorContext, value: Value, notes: &mut Vec<String>) -> Result<Value> {
    let text = match &value {
        Value::String(text) if text.len() > MAX_VALUE_BYTES => text.clone(),
        Value::Array(_) | Value::Object(_) => value.to_string(),
        _ => return Ok(value),
    };
    if text.len() <= MAX_VALUE_BYTES {
        return Ok(value);
    }
    let ending = if value.is_string() { "txt" } else { "json" };
    let file =
        save_output_file(&context.window, format!("value-{}.{ending}", now_ms()), text.clone().into_bytes()).await?;
    let first = first_bytes(&text, MAX_VALUE_BYTES);
    notes.push(format!("cut: the first {} of {} bytes; all of it is in {file}", first.len(), text.len()));
    Ok(Value::String(first.to_owned()))
}

/// `x,y,width,height`, in CSS pixels.
fn parse_clip(text: &str) -> Result<[f64; 4]> {
    let numbers: Vec<f64> = text.split(',').filter_map(|it| it.trim().parse().ok()).collect();
    let clip = <[f64; 4]>::try_from(numbers)
        .ok()
        .filter(|it| it[2] >= 1.0 && it[3] >= 1.0 && it.iter().all(|it| it.abs() < 1e6));
    clip.ok_or_else(|| Error::usage(format!("{text:?} is no rectangle")).hint("write it as x,y,width,height"))
}

/// A query of console or network entries, with the default limit.
pub(super) fn log_query(since: Option<u64>, limit: Option<usize>, filter: Option<String>) -> RingQuery {
    let limit = limit.unwrap_or(DEFAULT_ENTRIES).clamp(1, MAX_ENTRIES);
    RingQuery { since, limit, filter, ..RingQuery::default() }
}

pub(super) fn log_cursor<T>(extract: &RingExtract<T>, generation: u64) -> PageLogCursor {
    let note = extract.foreign.then(|| "the cursor is from another supervisor: entries may repeat".to_owned());
    PageLogCursor { cursor: extract.cursor, dropped: extract.dropped, more: extract.more, generation, note }
}
