//! Conversion of page operations: parameters into `window`'s requests, its results into the API's.

use super::window::relaunch_report;
use crate::api::page::{PageImage, PageImageFormat, PageScreenshotParams};
use crate::api::{page as api, page_input};
use crate::ring::{RingExtract, RingQuery};
use crate::window::{ExpressionResult, PageResult, page, split_evaluated};

/// How much a snapshot takes when the caller does not say.
pub const DEFAULT_SNAPSHOT_BYTES: usize = 40_000;
const MIN_SNAPSHOT_BYTES: usize = 200;
const DEFAULT_ENTRIES: usize = 50;
const MAX_ENTRIES: usize = 1000;
const MAX_PENDING: usize = 20;

/// The window's request for a screenshot.
pub fn screenshot_options(it: PageScreenshotParams) -> page::ScreenshotRequest {
    let format = match it.format.unwrap_or_default() {
        PageImageFormat::Png => page::ImageFormat::Png,
        PageImageFormat::Jpeg => page::ImageFormat::Jpeg,
        PageImageFormat::Webp => page::ImageFormat::Webp,
    };
    page::ScreenshotRequest { element: it.element, full_page: it.full_page.unwrap_or_default(), format, page: it.page }
}

/// The result of a screenshot.
pub fn page_image(on_page: PageResult<page::CapturedImage>) -> PageImage {
    let PageResult { value, generation, relaunched: again, mut notes } = on_page;
    notes.extend(value.note);
    let mime_type = format!("image/{}", value.format.name());
    PageImage { mime_type, data: value.data, generation, relaunched: again.map(relaunch_report), notes }
}

/// The window's request for a snapshot, with the default size.
pub fn snapshot_options(it: api::PageSnapshotParams) -> page::SnapshotRequest {
    page::SnapshotRequest {
        max_bytes: it.max.unwrap_or(DEFAULT_SNAPSHOT_BYTES).max(MIN_SNAPSHOT_BYTES),
        root: it.from,
        page: it.page,
    }
}

/// The result of a snapshot.
pub fn snapshot_result(on_page: PageResult<page::PageSnapshot>) -> api::PageSnapshotResult {
    let PageResult { value, generation, relaunched: again, notes } = on_page;
    api::PageSnapshotResult {
        text: value.text,
        cut: value.cut,
        generation,
        relaunched: again.map(relaunch_report),
        notes,
    }
}

/// The result of a list of actions.
pub fn input_result(on_page: PageResult<page::BatchOutcome>) -> page_input::PageInputResult {
    let PageResult { value, generation, relaunched: again, notes } = on_page;
    let actions = value
        .steps
        .into_iter()
        .map(|step| page_input::InputActionReport { did: step.did, notes: step.notes })
        .collect();
    let snapshot = value.snapshot.map(|it| it.text);
    page_input::PageInputResult { actions, snapshot, generation, relaunched: again.map(relaunch_report), notes }
}

/// A query of console or network entries, with the default limit.
pub fn log_query(since: Option<u64>, limit: Option<usize>, filter: Option<String>) -> RingQuery {
    RingQuery { since, limit: limit.unwrap_or(DEFAULT_ENTRIES).clamp(1, MAX_ENTRIES), filter }
}

/// The result of a console query.
pub fn console_entries((extract, generation): (RingExtract<page::ConsoleMessage>, u64)) -> api::ConsoleEntries {
    let place = log_cursor(&extract, generation);
    let entry = |it: page::ConsoleMessage| api::ConsoleEntry {
        at: it.at,
        source: it.source.name().into(),
        level: it.level,
        text: it.text,
        place: it.location,
    };
    api::ConsoleEntries { entries: extract.entries.into_iter().map(entry).collect(), place }
}

/// The result of a network query, with the newest pending requests.
pub fn network_entries(
    (extract, pending, generation): (RingExtract<page::RecordedRequest>, Vec<page::RecordedRequest>, u64),
) -> api::NetworkEntries {
    let mut place = log_cursor(&extract, generation);
    if pending.len() > MAX_PENDING {
        place.note.get_or_insert_with(|| format!("{} requests are on their way", pending.len()));
    }
    let newest = pending.len().saturating_sub(MAX_PENDING);
    let pending = pending.into_iter().skip(newest).map(network_entry).collect();
    api::NetworkEntries { entries: extract.entries.into_iter().map(network_entry).collect(), pending, place }
}

fn network_entry(it: page::RecordedRequest) -> api::NetworkEntry {
    api::NetworkEntry {
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

fn log_cursor<T>(extract: &RingExtract<T>, generation: u64) -> api::PageLogCursor {
    let note = extract.foreign.then(|| "the cursor is from another supervisor: entries may repeat".to_owned());
    api::PageLogCursor { cursor: extract.cursor, dropped: extract.dropped, more: extract.more, generation, note }
}

/// The result of an evaluation.
pub fn evaluate_result(on_page: PageResult<ExpressionResult>) -> api::PageEvaluateResult {
    let (value, exception) = split_evaluated(on_page.value);
    let PageResult { generation, notes, .. } = on_page;
    api::PageEvaluateResult { value, exception, generation, relaunched: on_page.relaunched.map(relaunch_report), notes }
}
