//! Packages in `node_modules` that the user debugs, since their files have breakpoints: their source maps are read, and their
//! modules announced, as if they were the user's own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tether_cdp::debugger::EvaluateInGlobalScope;

use super::isolate::Isolate;
use super::isolate_host::IsolateHost;
use super::package_manifest::package_folder;
use super::session::NodeSession;

impl NodeSession {
    /// Whether the source map of a script is read: it is the user's own, or of a package that is debugged.
    pub(crate) fn reads_map(&self, script: &Path) -> bool {
        self.maps.covers(script)
            || package_folder(script).is_some_and(|folder| self.debugged_packages().contains(&folder))
    }

    fn debugged_packages(&self) -> BTreeSet<PathBuf> {
        self.with_breakpoints(|all| all.entries.values().filter_map(|entry| package_folder(entry.file()?)).collect())
    }
}

/// The key of the global object at which a thread finds the folders of these packages.
pub(crate) fn packages_key(binding: &str) -> String {
    format!("Symbol.for({:?})", format!("{binding}.packages"))
}

/// Tells a thread which packages are debugged, if any is: it announces their modules before they are compiled.
pub(crate) async fn announce_packages(session: &NodeSession, isolate: &Isolate) {
    let packages = session.debugged_packages();
    if packages.is_empty() || isolate.host != IsolateHost::Node {
        return;
    }
    let folders: Vec<String> = packages.iter().map(|folder| format!("{}/", folder.display())).collect();
    let (key, value) = (packages_key(&session.binding), serde_json::json!(folders));
    let expression = format!("Object.defineProperty(globalThis, {key}, {{configurable: true, value: {value}}});");
    // Fails when it has ended.
    let _ = isolate.send(&EvaluateInGlobalScope { expression, ..EvaluateInGlobalScope::default() }).await;
}
