//! The page of a window that is brought up to date first, for the operations of [`super::page`]; its history.
//!
//! Reading the console and the network history never relaunches.

use std::sync::Arc;

use tether_base::error::{Error, Result};
use tether_base::ring::{RingExtract, RingQuery};
use tokio::sync::watch;

use super::caller::Caller;
use super::page::{ConsoleMessage, PageConnection, RecordedRequest};
use super::window_handle::{FreshWindow, StaleRefresh, Window};

/// The result of a page operation.
pub struct PageResult<T> {
    pub value: T,
    pub generation: u64,
    pub refreshed: Option<StaleRefresh>,
    /// Why the window is stale, and dialogs, downloads and crashes since the last result.
    pub notes: Vec<String>,
}

/// The connected page of a window that is up to date, or must not be replaced.
pub struct FreshPage {
    pub page: Arc<PageConnection>,
    window: FreshWindow,
    /// The checks of its build that have failed.
    failed_checks: Vec<String>,
}

impl FreshPage {
    /// Adds what happened to the window: to the value of an operation on the page, or to its error.
    pub fn finish<T>(self, value: Result<T>) -> Result<PageResult<T>> {
        let FreshWindow { window, generation, refreshed, stale_note } = self.window;
        let value = value.map_err(|error| {
            let error = window.explain_error(error);
            Error { doing: format!("{} (window generation {generation})", error.doing), ..error }
        })?;
        let unloaded = window.describe_unloaded_extensions();
        let failed = self.failed_checks.into_iter();
        let notes = stale_note.into_iter().chain(unloaded).chain(failed).chain(self.page.take_notices()).collect();
        Ok(PageResult { value, generation, refreshed, notes })
    }
}

impl Window {
    /// Waits until the extensions under development of a running window are loaded: see
    /// [`super::LiveWindow::wait_for_extensions`].
    pub async fn wait_for_extensions(&self, caller: &dyn Caller) {
        let window = self.context.published.borrow().window.clone();
        if let Some(window) = window {
            window.wait_for_extensions(caller).await;
        }
    }

    /// Brings a stale window up to date, and connects to its page.
    pub async fn open_fresh_page(&self, caller: &dyn Caller) -> Result<FreshPage> {
        let window = self.refresh_if_stale(caller).await?;
        let check = self.context.published.borrow().check.clone();
        let failed_checks = check.map(|check| check.failures).unwrap_or_default();
        let page = window.window.page().await?;
        page.notice_loads();
        Ok(FreshPage { page, window, failed_checks })
    }

    /// Console messages, also of a window that has exited; and the current generation.
    pub async fn console(&self, query: &RingQuery) -> (RingExtract<ConsoleMessage>, u64) {
        let generation = self.ensure_connected().await;
        (self.context.history.console(query), generation)
    }

    /// As [`Window::console`], as far as it has been received: nothing is connected to.
    pub fn received_console(&self, query: &RingQuery) -> RingExtract<ConsoleMessage> {
        self.context.history.console(query)
    }

    /// A count that rises with each console entry.
    pub fn console_count(&self) -> watch::Receiver<u64> {
        self.context.history.watch_console()
    }

    /// Network requests, finished and pending, also of a window that has exited; and the current generation.
    pub async fn network(&self, query: &RingQuery) -> (RingExtract<RecordedRequest>, Vec<RecordedRequest>, u64) {
        let generation = self.ensure_connected().await;
        let (extract, pending) = self.context.history.network(query);
        (extract, pending, generation)
    }

    /// The page of a running window, if it can be connected to.
    pub(super) async fn connected_page(&self) -> Option<Arc<PageConnection>> {
        let window = self.wait_for_search().await.window?;
        window.page().await.ok()
    }

    /// Connects to the page of a running window, so that its events are recorded; returns the generation.
    pub(super) async fn ensure_connected(&self) -> u64 {
        let published = self.wait_for_search().await;
        if let Some(window) = &published.window {
            // Without a connection, what was recorded so far is returned.
            let _ = window.page().await;
        }
        published.generation
    }
}
