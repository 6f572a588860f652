//! The operations on the window's page: each first brings a stale window up to date.
//!
//! Reading the console and the network history never relaunches.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::caller::Caller;
use super::live_window::LiveWindow;
use super::page::{
    BatchOutcome, CapturedImage, ConsoleMessage, ExpressionResult, InputAction, PageConnection, PageSnapshot,
    RecordedRequest, ScreenshotRequest, SnapshotRequest, capture_screenshot, evaluate_on_page, run_actions,
    take_snapshot,
};
use super::window_handle::{FreshWindow, StaleRelaunch, Window};
use crate::error::{Error, Result};
use crate::ring::{RingExtract, RingQuery};

/// The result of a page operation.
pub struct PageResult<T> {
    pub value: T,
    pub generation: u64,
    pub relaunched: Option<StaleRelaunch>,
    /// Why the window is stale, and dialogs, downloads and crashes since the last result.
    pub notes: Vec<String>,
}

/// The connected page of a window that is up to date, or must not be replaced.
struct FreshPage {
    window: Arc<LiveWindow>,
    page: Arc<PageConnection>,
    generation: u64,
    relaunched: Option<StaleRelaunch>,
    stale_note: Option<String>,
}

impl FreshPage {
    fn finish<T>(self, value: Result<T>) -> Result<PageResult<T>> {
        let generation = self.generation;
        let value = value.map_err(|error| {
            let error = self.window.explain_error(error);
            Error { doing: format!("{} (window generation {generation})", error.doing), ..error }
        })?;
        let notes = self.stale_note.into_iter().chain(self.page.take_notices()).collect();
        Ok(PageResult { value, generation, relaunched: self.relaunched, notes })
    }
}

impl Window {
    async fn open_fresh_page(&self, caller: &dyn Caller) -> Result<FreshPage> {
        let FreshWindow { window, generation, relaunched, stale_note } = self.refresh_if_stale(caller).await?;
        let page = window.page().await?;
        Ok(FreshPage { window, page, generation, relaunched, stale_note })
    }

    /// Evaluates an expression in the window's page, or in the page whose address or title contains `page`.
    pub async fn evaluate(
        &self,
        expression: &str,
        timeout: Duration,
        page: Option<&str>,
        caller: &dyn Caller,
    ) -> Result<PageResult<ExpressionResult>> {
        let fresh = self.open_fresh_page(caller).await?;
        let value = evaluate_on_page(&fresh.page, expression, timeout, page).await;
        fresh.finish(value)
    }

    /// Takes a screenshot of the window's page.
    pub async fn screenshot(
        &self,
        request: &ScreenshotRequest,
        caller: &dyn Caller,
    ) -> Result<PageResult<CapturedImage>> {
        let fresh = self.open_fresh_page(caller).await?;
        let value = capture_screenshot(&fresh.page, request).await;
        fresh.finish(value)
    }

    /// The window's page as text, with refs.
    pub async fn snapshot(&self, request: &SnapshotRequest, caller: &dyn Caller) -> Result<PageResult<PageSnapshot>> {
        let fresh = self.open_fresh_page(caller).await?;
        let value = take_snapshot(&fresh.page, request).await;
        fresh.finish(value)
    }

    /// Runs input actions on the window's page; `snapshot`: the size in bytes of a snapshot to take afterwards.
    pub async fn act(
        &self,
        actions: &[InputAction],
        page: Option<&str>,
        snapshot: Option<usize>,
        caller: &dyn Caller,
    ) -> Result<PageResult<BatchOutcome>> {
        let fresh = self.open_fresh_page(caller).await?;
        let value = run_actions(&fresh.page, actions, page, snapshot).await;
        fresh.finish(value)
    }

    /// Console messages, also of a window that has exited; and the current generation.
    pub async fn console(&self, query: &RingQuery) -> (RingExtract<ConsoleMessage>, u64) {
        let generation = self.ensure_connected().await;
        (self.context.history.console(query), generation)
    }

    /// Network requests, finished and pending, also of a window that has exited; and the current generation.
    pub async fn network(&self, query: &RingQuery) -> (RingExtract<RecordedRequest>, Vec<RecordedRequest>, u64) {
        let generation = self.ensure_connected().await;
        let (extract, pending) = self.context.history.network(query);
        (extract, pending, generation)
    }

    /// Connects to the page of a running window, so that its events are recorded; returns the generation.
    async fn ensure_connected(&self) -> u64 {
        let published = self.wait_for_search().await;
        if let Some(window) = &published.window {
            // Without a connection, what was recorded so far is returned.
            let _ = window.page().await;
        }
        published.generation
    }
}

/// The value and the exception of an expression, one of which is set.
pub fn split_evaluated(evaluated: ExpressionResult) -> (Option<Value>, Option<String>) {
    match evaluated {
        ExpressionResult::Value(value) => (Some(value), None),
        ExpressionResult::Exception(text) => (None, Some(text)),
    }
}
