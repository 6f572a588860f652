//! A page that a browser lists on its debugging port.

use std::time::{Duration, Instant};

use tether_cdp::{TargetListEntry, list_targets};

use crate::support::TEST_TIMEOUT;

/// Waits until the browser lists such a page, and returns it.
pub async fn listed_page(port: u16, is_wanted: impl Fn(&TargetListEntry) -> bool) -> TargetListEntry {
    let since = Instant::now();
    loop {
        // A browser that is busy with its start may not answer in time.
        let targets = list_targets(port).await.unwrap_or_default();
        let found = targets.into_iter().find(|target| target.kind == "page" && is_wanted(target));
        if let Some(page) = found {
            return page;
        }
        assert!(since.elapsed() < TEST_TIMEOUT, "the page is never listed on port {port}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
