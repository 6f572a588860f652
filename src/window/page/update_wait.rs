//! Waits until a page has what its dev server makes of a change: updated in place, or loaded anew.

use std::time::Duration;

use tether_base::error::Result;
use tether_cdp::types::ReloadPage;
use tokio::time::{Instant, timeout};

use super::page_client::{BROWSER_TIMEOUT, PageClient, PageSession};
use super::page_error::PageError;
use super::server_updates::ServerUpdate;
use super::wait_condition::wait_until_settled;

/// How long a server may take to notice a change, and to finish what it has begun.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(2);
const BUILD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a new document may take to connect to its server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the page must be unchanged after an update, and the maximum wait for that.
const QUIET_TIME: Duration = Duration::from_millis(150);
const QUIET_TIMEOUT: Duration = Duration::from_secs(3);

/// What has come of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateOutcome {
    UpdatedInPlace,
    LoadedByServer,
    Failed(String),
    /// The server told nothing, so the page was reloaded.
    Reloaded,
}

/// Waits until the page has what its dev server makes of a change that was noticed at `since`
/// ([`tether_base::clock::monotonic_ms`]), or reloads it if the server says nothing of it.
pub async fn follow_server_update(client: &PageClient, since: u64) -> Result<UpdateOutcome> {
    let page = client.select_page(None, "cannot update the page").await?;
    let navigations = page.navigations().unwrap_or_default();
    let told =
        timeout(NOTICE_TIMEOUT, client.state.wait_for_targets(|targets| targets.server_updates.newest(since))).await;
    let told = match told {
        Ok(ServerUpdate::Building) => {
            let built = client.state.wait_for_targets(|targets| {
                targets.server_updates.newest(since).filter(|update| *update != ServerUpdate::Building)
            });
            timeout(BUILD_TIMEOUT, built).await.ok()
        }
        told => told.ok(),
    };
    if told.is_none() {
        page.call(&ReloadPage { ignore_cache: true }, BROWSER_TIMEOUT)
            .await
            .map_err(|error| client.user_error(error))?;
        let left = client.state.wait_for_targets(|targets| {
            let now = targets.sessions.get(&page.id).map(|session| session.navigations);
            (now != Some(navigations)).then_some(())
        });
        // A document whose server does not respond is left later.
        let _ = timeout(NOTICE_TIMEOUT, left).await;
    }
    wait_until_quiet(&page, navigations).await.map_err(|error| client.user_error(error))?;
    let is_loaded = page.navigations() != Some(navigations);
    if is_loaded && client.has_server_channel() {
        // The new document's connection: over it comes the error of what cannot be built.
        let connected =
            client.state.wait_for_targets(|targets| targets.server_updates.is_connected_anew().then_some(()));
        let _ = timeout(CONNECT_TIMEOUT, connected).await;
    }
    Ok(match find_load_error(client, since).await.or(told) {
        Some(ServerUpdate::Failed(text)) => UpdateOutcome::Failed(text),
        Some(ServerUpdate::Loaded) => UpdateOutcome::LoadedByServer,
        Some(_) if is_loaded => UpdateOutcome::LoadedByServer,
        Some(_) => UpdateOutcome::UpdatedInPlace,
        None => UpdateOutcome::Reloaded,
    })
}

/// An error that the load of a document has found, and that the server had not told of before.
async fn find_load_error(client: &PageClient, since: u64) -> Option<ServerUpdate> {
    let told = client.state.wait_for_targets(|targets| {
        targets.server_updates.newest(since).filter(|update| matches!(update, ServerUpdate::Failed(_)))
    });
    // After the response the server tells why.
    let script = client.history().describe_failed_script();
    let within = if script.is_some() { CONNECT_TIMEOUT } else { Duration::ZERO };
    timeout(within, told).await.ok().or(script.map(ServerUpdate::Failed))
}

/// Waits until the page has loaded what an update asks for, and shows it. One that never rests is used as it is.
async fn wait_until_quiet(page: &PageSession, navigations: u64) -> Result<(), PageError> {
    let until = Instant::now() + QUIET_TIMEOUT;
    loop {
        match wait_until_settled(page, navigations, QUIET_TIME, QUIET_TIMEOUT).await {
            Err(error @ (PageError::Closed | PageError::Crashed)) => return Err(error),
            _ if Instant::now() >= until || !page.client.history().has_requests_in_flight() => return Ok(()),
            _ => {}
        }
    }
}
