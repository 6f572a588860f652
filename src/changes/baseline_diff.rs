//! How the workspace differs from the baseline, kept up file by file.
//!
//! Owns the baseline and the set of differing files: an edit costs a look at its own file, not at the workspace. Must
//! not know how the present state was found out.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use super::change_report::{ChangeReport, CheckMethod, FileChange, FileChangeKind, MAX_LISTED_CHANGES};
use super::content_hash;
use super::file_snapshot::{FileSnapshot, FolderTree, differing_folders, stamp_of};
use super::folder_files::{FileStamp, FolderFiles};
use super::ignore_rules::IgnoreRules;
use super::path_bytes;
use super::read_dir::{self, FileKind};
use crate::clock::now_ms;

/// The coarsest clock that a kernel stamps files with (100 Hz): a write may carry a time that is this much too early.
const CLOCK_TICK_NS: i64 = 10_000_000;

#[derive(Default)]
pub(super) struct BaselineDiff {
    baseline: Option<Arc<FileSnapshot>>,
    /// By relative path.
    differing: BTreeMap<Vec<u8>, FileDifference>,
}

/// What the baseline is held against.
#[derive(Clone, Copy)]
pub(super) struct CurrentTree<'a> {
    pub root: &'a Path,
    pub rules: &'a IgnoreRules,
    pub tree: &'a FolderTree,
}

#[derive(Clone, Copy)]
struct FileDifference {
    kind: FileChangeKind,
    modified_at_ms: u64,
    /// The file was written after the baseline, though its stamp does not show it.
    unseen: bool,
    /// What comparing contents said, once they have been compared.
    same_content: Option<bool>,
}

impl BaselineDiff {
    pub fn baseline(&self) -> Option<&Arc<FileSnapshot>> {
        self.baseline.as_ref()
    }

    pub fn set_baseline(&mut self, baseline: Arc<FileSnapshot>, present: CurrentTree<'_>) {
        self.baseline = Some(baseline);
        self.differing.clear();
        self.compare_all(present);
    }

    /// Compares everything; folders that both sides share cost nothing.
    pub fn compare_all(&mut self, present: CurrentTree<'_>) {
        let Some(baseline) = self.baseline.clone() else { return };
        let before = std::mem::take(&mut self.differing);
        for folder in differing_folders(&baseline.tree, present.tree) {
            self.compare_listed_files(&folder, present);
        }
        before.iter().filter(|(_, file)| file.unseen).for_each(|(rel, _)| self.compare_file(rel, true, present));
    }

    /// Compares the files right in `folder`, which may be gone.
    pub fn compare_folder(&mut self, folder: &[u8], present: CurrentTree<'_>) {
        let from = (Bound::Included(folder), Bound::Unbounded);
        let inside = self.differing.range::<[u8], _>(from).take_while(|(rel, _)| rel.starts_with(folder));
        let inside = inside.filter(|(rel, _)| path_bytes::split_path(rel).0 == folder).map(|(rel, _)| rel.clone());
        let inside: Vec<_> = inside.collect();
        self.compare_listed_files(folder, present);
        inside.iter().for_each(|rel| self.compare_file(rel, false, present));
    }

    fn compare_listed_files(&mut self, folder: &[u8], present: CurrentTree<'_>) {
        let then = self.baseline.as_ref().and_then(|baseline| baseline.tree.get(folder)).cloned();
        let (then, now) = (then.as_deref(), present.tree.get(folder).map(|now| &**now));
        for (name, before) in then.into_iter().flat_map(FolderFiles::files) {
            let after = now.and_then(|now| now.stamp_of(name));
            if after != Some(before) {
                self.record_difference(path_bytes::join_path(folder, name), Some(before), after, false, present);
            }
        }
        for (name, after) in now.into_iter().flat_map(FolderFiles::files) {
            if then.is_none_or(|then| then.find(name).is_none()) {
                self.record_difference(path_bytes::join_path(folder, name), None, Some(after), false, present);
            }
        }
    }

    /// Compares one file; `written` says that its content was written since it was last looked at.
    pub fn compare_file(&mut self, rel: &[u8], written: bool, present: CurrentTree<'_>) {
        if let Some(baseline) = &self.baseline {
            let before = stamp_of(&baseline.tree, rel);
            self.record_difference(rel.to_vec(), before, stamp_of(present.tree, rel), written, present);
        }
    }

    /// Enters how one file differs, or that it does not.
    fn record_difference(
        &mut self,
        rel: Vec<u8>,
        before: Option<FileStamp>,
        after: Option<FileStamp>,
        written: bool,
        now: CurrentTree<'_>,
    ) {
        let Some(baseline) = &self.baseline else { return };
        let unseen = written || self.differing.get(&rel).is_some_and(|file| file.unseen);
        let at = |stamp: FileStamp| stamp.modified_at_ms();
        let differs = match (before, after) {
            (Some(before), Some(after)) if before == after => {
                (unseen && can_hide_write(baseline, after)).then(|| (FileChangeKind::Modified, at(after)))
            }
            (Some(_), Some(after)) => Some((FileChangeKind::Modified, at(after))),
            (None, Some(after)) => {
                (unseen || is_new_file(baseline, after, now)).then(|| (FileChangeKind::Added, at(after)))
            }
            (Some(_), None) => {
                is_removed_file(baseline, &rel, now).then(|| (FileChangeKind::Removed, removal_time_ms(&rel, now)))
            }
            (None, None) => None,
        };
        match differs {
            Some((kind, modified_at_ms)) => {
                let unseen = before == after || (before.is_none() && unseen);
                self.differing.insert(rel, FileDifference { kind, modified_at_ms, unseen, same_content: None });
            }
            None => drop(self.differing.remove(&rel)),
        }
    }

    /// Whether there are modified files whose contents have not been compared yet.
    pub fn needs_content_check(&self) -> bool {
        self.differing.values().any(|file| file.kind == FileChangeKind::Modified && file.same_content.is_none())
    }

    /// Compares the contents of the files whose metadata moved with what they were at the baseline.
    pub fn compare_contents(&mut self, present: CurrentTree<'_>) {
        let Some(baseline) = self.baseline.as_ref() else { return };
        for (rel, file) in self.differing.iter_mut().filter(|(_, file)| file.kind == FileChangeKind::Modified) {
            if file.same_content.is_none() {
                let (folder, name) = path_bytes::split_path(rel);
                let then = baseline.tree.get(folder).and_then(|files| files.hash(files.find(name)?));
                let now = stamp_of(present.tree, rel).filter(|_| then.is_some());
                let now = now.and_then(|stamp| {
                    content_hash::hash_if_unchanged(&present.root.join(path_bytes::as_path(rel)), stamp)
                });
                file.same_content = Some(then.is_some() && then == now);
            }
        }
    }

    /// The answer; `None` without a baseline to compare with.
    pub fn report(&self, how: CheckMethod) -> Option<ChangeReport> {
        let compared_to_ms = self.baseline.as_ref()?.taken_at_ms;
        let differing = || self.differing.iter().filter(|(_, file)| file.same_content != Some(true));
        let newest = differing().max_by_key(|(_, file)| file.modified_at_ms).map(file_change);
        let changed: Vec<_> = differing().take(MAX_LISTED_CHANGES).map(file_change).collect();
        let total = if changed.len() < MAX_LISTED_CHANGES { changed.len() } else { differing().count() };
        Some(ChangeReport { stale: newest.is_some(), newest, changed, total, compared_to_ms, method: how })
    }

    /// How one file differs, if it does.
    pub fn change_of(&self, rel: &Path) -> Option<FileChange> {
        let found = self.differing.get_key_value(path_bytes::as_bytes(rel))?;
        (found.1.same_content != Some(true)).then(|| file_change(found))
    }
}

/// A write after the baseline can leave a file's stamp as it was if it fell into the same tick of the clock that stamps
/// files, and kept the size: only its event tells.
fn can_hide_write(baseline: &FileSnapshot, stamp: FileStamp) -> bool {
    let taken_at_ns = (baseline.taken_at_ms as i64).saturating_mul(1_000_000);
    stamp.mtime_ns >= taken_at_ns.saturating_sub(CLOCK_TICK_NS)
}

/// Under other rules than the baseline's, a file that is not in it may have been there all along. (One whose writing was
/// seen has not; without that, one that is written within a tick of the baseline passes for an old one.)
fn is_new_file(baseline: &FileSnapshot, stamp: FileStamp, present: CurrentTree<'_>) -> bool {
    baseline.rules == present.rules.digest() || stamp.modified_at_ms() > baseline.taken_at_ms
}

/// A file that the rules ignore by now is not removed, it is merely no longer tracked.
fn is_removed_file(baseline: &FileSnapshot, rel: &[u8], present: CurrentTree<'_>) -> bool {
    baseline.rules == present.rules.digest() || present.rules.decide(path_bytes::as_path(rel), false).tracked
}

/// When a file that is gone left, as far as the folders still tell.
fn removal_time_ms(rel: &[u8], present: CurrentTree<'_>) -> u64 {
    let path = present.root.join(path_bytes::as_path(rel));
    let folders = path.ancestors().skip(1).take_while(|folder| folder.starts_with(present.root));
    let found =
        folders.filter_map(|folder| read_dir::read_metadata(folder).ok()).find(|(kind, _)| *kind == FileKind::Folder);
    found.map_or_else(now_ms, |(_, stamp)| stamp.modified_at_ms())
}

fn file_change((rel, file): (&Vec<u8>, &FileDifference)) -> FileChange {
    FileChange { path: path_bytes::to_path(rel), kind: file.kind, modified_at_ms: file.modified_at_ms }
}
