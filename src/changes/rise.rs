//! Watch before read: the one way in which folders come under watch, so that no write falls between the two.
//!
//! Owns the setting up of a whole watch, and the reading of folders that came later. Must not know when that is needed.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::ignore::{Rules, RulesDigest};
use super::list::Root;
use super::name;
use super::problem::Problem;
use super::scan::{self, Known, Scanned};
use super::snapshot::Tree;
use super::tracker::Options;
use super::truth::{Open, Truth};
use super::watch::{Lost, Watch, refuse_network_drive};

/// A watch that stands, and what was read while it was set up.
pub(super) struct Risen {
    pub watch: Watch,
    pub rules: (Rules, Vec<Problem>),
    pub scanned: Scanned,
}

/// Sets up watches on every tracked folder, on the blocking pool.
pub(super) fn rise(
    options: &Options,
    hints: &watch::Sender<u64>,
    tree: Arc<Tree>,
    tree_rules: Option<RulesDigest>,
) -> JoinHandle<Result<Risen, Lost>> {
    let (options, hints) = (options.clone(), hints.clone());
    tokio::task::spawn_blocking(move || {
        let root = &options.root;
        refuse_network_drive(root)?;
        let mut watch = Watch::new(root, &options.cookie_dir, hints)?;
        let handle = Root::open(root).map_err(|_| Lost::RootGone)?;
        // Before the rules are read, so that an edit of them after that is heard.
        watch.add(root)?;
        let rules = Rules::load(root, &options.derived);
        let known = Known { tree: &tree, same_rules: tree_rules == Some(rules.0.digest()) };
        let scanned =
            scan::scan_below(&handle, &rules.0, known, b"", |folder| watch.add(&root.join(name::path(folder))))?;
        Ok(Risen { watch, rules, scanned })
    })
}

/// Watches and reads what is open; gives the folders that are new.
pub(super) fn read_watched(truth: &mut Truth, watch: &mut Watch, open: &Open) -> Result<Vec<Vec<u8>>, Lost> {
    let root = truth.root().to_path_buf();
    let handle = Root::open(&root).map_err(|_| Lost::RootGone)?;
    let mut add = |folder: &[u8]| watch.add(&root.join(name::path(folder)));
    if open.rules {
        truth.load_rules();
        let before = Arc::clone(truth.tree());
        let scanned = scan::scan_below(&handle, truth.rules(), truth.known(), b"", &mut add)?;
        let dropped = before.keys().filter(|folder| !scanned.tree.contains_key(*folder));
        dropped.for_each(|folder| watch.remove(&root.join(name::path(folder))));
        let added = scanned.tree.keys().filter(|folder| !before.contains_key(*folder)).map(|folder| folder.to_vec());
        let added = added.collect();
        truth.adopt(scanned);
        return Ok(added);
    }
    for folder in &open.folders {
        let scanned = scan::scan_below(&handle, truth.rules(), truth.known(), folder, &mut add)?;
        truth.adopt_below(folder, scanned);
    }
    Ok(open.folders.iter().cloned().collect())
}
