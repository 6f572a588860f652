//! How the workspace differs from the baseline, kept up file by file.
//!
//! Owns the baseline and the set of differing files: an edit costs a look at its own file, not at the workspace. Must
//! not know how the present state was found out.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use super::change::{Change, ChangeKind, Check, How, MOST_LISTED};
use super::content;
use super::folder::{Folder, Stamp};
use super::ignore::Rules;
use super::list::{self, Kind};
use super::name;
use super::snapshot::{Snapshot, Tree, differing_folders, stamp_of};
use super::truth::now_ms;

/// The coarsest clock that a kernel stamps files with (100 Hz): a write may carry a time that is this much too early.
const CLOCK_TICK_NS: i64 = 10_000_000;

#[derive(Default)]
pub(super) struct Comparison {
    baseline: Option<Arc<Snapshot>>,
    /// By relative path.
    differing: BTreeMap<Vec<u8>, Differing>,
}

/// What the baseline is held against.
#[derive(Clone, Copy)]
pub(super) struct Present<'a> {
    pub root: &'a Path,
    pub rules: &'a Rules,
    pub tree: &'a Tree,
}

#[derive(Clone, Copy)]
struct Differing {
    kind: ChangeKind,
    modified_at_ms: u64,
    /// The file was written after the baseline, though its stamp does not show it.
    unseen: bool,
    /// What comparing contents said, once they have been compared.
    same_content: Option<bool>,
}

impl Comparison {
    pub fn baseline(&self) -> Option<&Arc<Snapshot>> {
        self.baseline.as_ref()
    }

    pub fn set_baseline(&mut self, baseline: Arc<Snapshot>, present: Present<'_>) {
        self.baseline = Some(baseline);
        self.differing.clear();
        self.all(present);
    }

    /// Compares everything; folders that both sides share cost nothing.
    pub fn all(&mut self, present: Present<'_>) {
        let Some(baseline) = self.baseline.clone() else { return };
        let before = std::mem::take(&mut self.differing);
        for folder in differing_folders(&baseline.tree, present.tree) {
            self.names(&folder, present);
        }
        before.iter().filter(|(_, file)| file.unseen).for_each(|(rel, _)| self.file(rel, true, present));
    }

    /// Compares the files right in `folder`, which may be gone.
    pub fn folder(&mut self, folder: &[u8], present: Present<'_>) {
        let from = (Bound::Included(folder), Bound::Unbounded);
        let inside = self.differing.range::<[u8], _>(from).take_while(|(rel, _)| rel.starts_with(folder));
        let inside = inside.filter(|(rel, _)| name::split(rel).0 == folder).map(|(rel, _)| rel.clone());
        let inside: Vec<_> = inside.collect();
        self.names(folder, present);
        inside.iter().for_each(|rel| self.file(rel, false, present));
    }

    fn names(&mut self, folder: &[u8], present: Present<'_>) {
        let then = self.baseline.as_ref().and_then(|baseline| baseline.tree.get(folder)).cloned();
        let (then, now) = (then.as_deref(), present.tree.get(folder).map(|now| &**now));
        for (name, before) in then.into_iter().flat_map(Folder::files) {
            let after = now.and_then(|now| now.stamp_of(name));
            if after != Some(before) {
                self.settle(name::join(folder, name), Some(before), after, false, present);
            }
        }
        for (name, after) in now.into_iter().flat_map(Folder::files) {
            if then.is_none_or(|then| then.find(name).is_none()) {
                self.settle(name::join(folder, name), None, Some(after), false, present);
            }
        }
    }

    /// Compares one file; `written` says that its content was written since it was last looked at.
    pub fn file(&mut self, rel: &[u8], written: bool, present: Present<'_>) {
        if let Some(baseline) = &self.baseline {
            let before = stamp_of(&baseline.tree, rel);
            self.settle(rel.to_vec(), before, stamp_of(present.tree, rel), written, present);
        }
    }

    /// Enters how one file differs, or that it does not.
    fn settle(&mut self, rel: Vec<u8>, before: Option<Stamp>, after: Option<Stamp>, written: bool, now: Present<'_>) {
        let Some(baseline) = &self.baseline else { return };
        let unseen = written || self.differing.get(&rel).is_some_and(|file| file.unseen);
        let at = |stamp: Stamp| stamp.modified_at_ms();
        let differs = match (before, after) {
            (Some(before), Some(after)) if before == after => {
                (unseen && may_hide_a_write(baseline, after)).then(|| (ChangeKind::Modified, at(after)))
            }
            (Some(_), Some(after)) => Some((ChangeKind::Modified, at(after))),
            (None, Some(after)) => {
                (unseen || counts_as_new(baseline, after, now)).then(|| (ChangeKind::Added, at(after)))
            }
            (Some(_), None) => {
                counts_as_removed(baseline, &rel, now).then(|| (ChangeKind::Removed, left_at_ms(&rel, now)))
            }
            (None, None) => None,
        };
        match differs {
            Some((kind, modified_at_ms)) => {
                let unseen = before == after || (before.is_none() && unseen);
                self.differing.insert(rel, Differing { kind, modified_at_ms, unseen, same_content: None });
            }
            None => drop(self.differing.remove(&rel)),
        }
    }

    /// Whether there are modified files whose contents have not been compared yet.
    pub fn wants_contents(&self) -> bool {
        self.differing.values().any(|file| file.kind == ChangeKind::Modified && file.same_content.is_none())
    }

    /// Compares the contents of the files whose metadata moved with what they were at the baseline.
    pub fn contents(&mut self, present: Present<'_>) {
        let Some(baseline) = self.baseline.as_ref() else { return };
        for (rel, file) in self.differing.iter_mut().filter(|(_, file)| file.kind == ChangeKind::Modified) {
            if file.same_content.is_none() {
                let (folder, name) = name::split(rel);
                let then = baseline.tree.get(folder).and_then(|files| files.print(files.find(name)?));
                let now = stamp_of(present.tree, rel).filter(|_| then.is_some());
                let now = now.and_then(|stamp| content::print(&present.root.join(name::path(rel)), stamp));
                file.same_content = Some(then.is_some() && then == now);
            }
        }
    }

    /// The answer; `None` without a baseline to compare with.
    pub fn check(&self, how: How) -> Option<Check> {
        let compared_to_ms = self.baseline.as_ref()?.taken_at_ms;
        let differing = || self.differing.iter().filter(|(_, file)| file.same_content != Some(true));
        let newest = differing().max_by_key(|(_, file)| file.modified_at_ms).map(change);
        let changed: Vec<_> = differing().take(MOST_LISTED).map(change).collect();
        let total = if changed.len() < MOST_LISTED { changed.len() } else { differing().count() };
        Some(Check { stale: newest.is_some(), newest, changed, total, compared_to_ms, how })
    }

    /// How one file differs, if it does.
    pub fn change_of(&self, rel: &Path) -> Option<Change> {
        let found = self.differing.get_key_value(name::bytes(rel))?;
        (found.1.same_content != Some(true)).then(|| change(found))
    }
}

/// A write after the baseline can leave a file's stamp as it was if it fell into the same tick of the clock that stamps
/// files, and kept the size: only its event tells.
fn may_hide_a_write(baseline: &Snapshot, stamp: Stamp) -> bool {
    let taken_at_ns = (baseline.taken_at_ms as i64).saturating_mul(1_000_000);
    stamp.mtime_ns >= taken_at_ns.saturating_sub(CLOCK_TICK_NS)
}

/// Under other rules than the baseline's, a file that is not in it may have been there all along. (One whose writing was
/// seen has not; without that, one that is written within a tick of the baseline passes for an old one.)
fn counts_as_new(baseline: &Snapshot, stamp: Stamp, present: Present<'_>) -> bool {
    baseline.rules == present.rules.digest() || stamp.modified_at_ms() > baseline.taken_at_ms
}

/// A file that the rules ignore by now is not removed, it is merely no longer tracked.
fn counts_as_removed(baseline: &Snapshot, rel: &[u8], present: Present<'_>) -> bool {
    baseline.rules == present.rules.digest() || present.rules.decide(name::path(rel), false).tracked
}

/// When a file that is gone left, as far as the folders still tell.
fn left_at_ms(rel: &[u8], present: Present<'_>) -> u64 {
    let path = present.root.join(name::path(rel));
    let folders = path.ancestors().skip(1).take_while(|folder| folder.starts_with(present.root));
    let found = folders.filter_map(|folder| list::look(folder).ok()).find(|(kind, _)| *kind == Kind::Folder);
    found.map_or_else(now_ms, |(_, stamp)| stamp.modified_at_ms())
}

fn change((rel, file): (&Vec<u8>, &Differing)) -> Change {
    Change { path: name::to_path(rel), kind: file.kind, modified_at_ms: file.modified_at_ms }
}
