//! Sets watches on folders before it reads them, so that no write between the two is missed.
//!
//! Owns the set-up of a whole watch and the reading of folders that are added later. Does not depend on when either is
//! needed.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::file_snapshot::FolderTree;
use super::ignore_rules::{IgnoreRules, RulesDigest};
use super::index::{PendingReads, WorkspaceIndex};
use super::path_bytes;
use super::read_dir::WorkspaceRoot;
use super::scan::{self, KnownTree, ScanResult};
use super::tracker_options::TrackerOptions;
use super::watcher::{WatchError, WorkspaceWatcher, refuse_network_drive};
use super::workspace_problem::WorkspaceProblem;

/// A complete watch, and what was read while it was set up.
pub(super) struct WatchSetup {
    pub watch: WorkspaceWatcher,
    pub rules: (IgnoreRules, Vec<WorkspaceProblem>),
    pub scanned: ScanResult,
}

/// Sets up watches on every tracked folder, on the blocking pool. `tree`, read under `tree_rules`, makes the scan
/// cheaper.
pub(super) fn start_watch_setup(
    options: &TrackerOptions,
    hints: &watch::Sender<u64>,
    tree: Arc<FolderTree>,
    tree_rules: Option<RulesDigest>,
) -> JoinHandle<Result<WatchSetup, WatchError>> {
    let (options, hints) = (options.clone(), hints.clone());
    tokio::task::spawn_blocking(move || {
        let root = &options.root;
        refuse_network_drive(root)?;
        let mut watch = WorkspaceWatcher::new(root, &options.cookie_dir, hints)?;
        let handle = WorkspaceRoot::open(root).map_err(|_| WatchError::RootGone)?;
        // Before the rules are read, so that a later edit of them causes an event.
        watch.watch_folder(root)?;
        let rules = IgnoreRules::load(root, &options.derived);
        let known = KnownTree { tree: &tree, same_rules: tree_rules == Some(rules.0.digest()) };
        let scanned = scan::scan_below(&handle, &rules.0, known, b"", |folder| {
            watch.watch_folder(&root.join(path_bytes::as_path(folder)))
        })?;
        Ok(WatchSetup { watch, rules, scanned })
    })
}

/// Watches and reads what is pending; returns the folders that are newly watched.
pub(super) fn read_and_watch(
    index: &mut WorkspaceIndex,
    watch: &mut WorkspaceWatcher,
    pending: &PendingReads,
) -> Result<Vec<Vec<u8>>, WatchError> {
    let root = index.root.clone();
    let handle = WorkspaceRoot::open(&root).map_err(|_| WatchError::RootGone)?;
    let mut add = |folder: &[u8]| watch.watch_folder(&root.join(path_bytes::as_path(folder)));
    if pending.rules_changed {
        index.reload_rules();
        let before = Arc::clone(&index.tree);
        let scanned = scan::scan_below(&handle, &index.rules, index.known_tree(), b"", &mut add)?;
        let dropped = before.keys().filter(|folder| !scanned.tree.contains_key(*folder));
        dropped.for_each(|folder| watch.unwatch_folder(&root.join(path_bytes::as_path(folder))));
        let added = scanned.tree.keys().filter(|folder| !before.contains_key(*folder)).map(|folder| folder.to_vec());
        let added = added.collect();
        index.replace_tree(scanned);
        return Ok(added);
    }
    for folder in &pending.folders {
        let scanned = scan::scan_below(&handle, &index.rules, index.known_tree(), folder, &mut add)?;
        index.replace_below(folder, scanned);
    }
    Ok(pending.folders.iter().cloned().collect())
}
