//! Shared workers of a browser: they belong to no page, and the session of a page does not debug them. A session of their own does,
//! by the URL of their script.

use std::path::Path;
use std::time::Duration;

use tether_cdp::{TargetListEntry, list_targets};
use tokio::time::timeout;

use super::isolate::Isolate;
use super::session::NodeSession;
use super::web_files::plain_url;

/// What `/json/list` calls them.
pub(crate) const SHARED_WORKER: &str = "shared_worker";
/// How long the browser may take to list its targets.
const LIST_TIMEOUT: Duration = Duration::from_millis(500);

/// Why a breakpoint in a file is not bound in a page: a shared worker of the same browser runs the file, and how that is debugged.
pub(crate) async fn describe_shared_worker(session: &NodeSession, isolate: &Isolate, file: &Path) -> Option<String> {
    let (port, _) = isolate.inspector.as_ref().filter(|_| isolate.is_web())?;
    let targets = timeout(LIST_TIMEOUT, list_targets(*port)).await.ok()?.ok()?;
    let is_of_file = |target: &&TargetListEntry| {
        target.kind == SHARED_WORKER && session.maps.script_file(&target.url).as_deref() == Some(file)
    };
    let worker = targets.iter().find(is_of_file)?;
    let url = plain_url(&worker.url);
    Some(format!(
        "a shared worker runs it, {url}, which belongs to no page: `tether debug attach {port} --url {url}` debugs it"
    ))
}
