//! Loads the page anew, without its caches, and proves that it did: the document's own time origin is later.

use std::time::Duration;

use serde_json::Value;
use tether_base::error::{Error, ErrorKind, Result};
use tether_cdp::types::ReloadPage;
use tokio::time::{Instant, timeout_at};

use super::expression::{ExpressionResult, await_expression};
use super::page_client::{BROWSER_TIMEOUT, PageClient};

/// How long the old document may take to say whether it has a service worker.
const WORKER_TIMEOUT: Duration = Duration::from_secs(5);

/// Also where the old document bypassed it.
const HAS_SERVICE_WORKER: &str =
    "Promise.resolve(navigator.serviceWorker?.getRegistration()).then(it => !!it?.active, () => false)";

/// Makes the workers look for their new scripts.
const UPDATE_WORKERS: &str = "navigator.serviceWorker.getRegistrations().then(all => all.forEach(one => {
    one.update().catch(() => {});
}), () => {}), true";

/// What a reload has found.
pub struct PageReload {
    /// Whether a service worker is there for this page, which the new document bypasses.
    pub had_service_worker: bool,
}

/// Reloads the best page; returns when the new document has been parsed. `began_ms` (epoch milliseconds) is a time before
/// the call. Errors: the document is not there by `deadline`, or the browser shows an error page instead.
pub async fn reload_page(client: &PageClient, began_ms: u64, deadline: Instant) -> Result<PageReload> {
    let doing = "cannot reload the page";
    let remaining = || deadline.saturating_duration_since(Instant::now());
    let registered = await_expression(client, HAS_SERVICE_WORKER, WORKER_TIMEOUT.min(remaining())).await?;
    let had_service_worker = registered == ExpressionResult::Value(true.into());
    let page = client.select_page(None, doing).await?;
    page.call(&ReloadPage { ignore_cache: true }, BROWSER_TIMEOUT).await.map_err(|error| client.user_error(error))?;
    let timed_out = || Error::new(ErrorKind::TimedOut, doing).because("no new document was loaded in time");
    timeout_at(deadline, wait_for_new_document(client, began_ms, deadline)).await.map_err(|_| timed_out())??;
    if had_service_worker {
        // The next load is served by the worker again: let it look for its new script now. That is not waited for: Chromium
        // may take seconds.
        let _ = await_expression(client, UPDATE_WORKERS, BROWSER_TIMEOUT.min(remaining())).await;
    }
    Ok(PageReload { had_service_worker })
}

/// Resolves when a document that was begun after `began_ms` has been parsed. A navigation destroys the waiting script, which
/// is then evaluated again in the new document.
async fn wait_for_new_document(client: &PageClient, began_ms: u64, deadline: Instant) -> Result<()> {
    let parsed = format!(
        "new Promise(done => {{
            if (performance.timeOrigin < {began_ms}) return; // the old document, which is about to be left
            const report = () => done(location.protocol === 'chrome-error:' ? 'the browser shows an error page' : true);
            if (document.readyState !== 'loading') return report();
            document.addEventListener('DOMContentLoaded', report);
        }})"
    );
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        match await_expression(client, &parsed, remaining).await? {
            ExpressionResult::Value(Value::Bool(true)) => return Ok(()),
            ExpressionResult::Value(Value::String(reason)) => {
                return Err(Error::other("cannot reload the page").because(reason));
            }
            _ => {}
        }
    }
}
