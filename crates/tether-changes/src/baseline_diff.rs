//! Maintains the difference between the workspace and its baseline, file by file.
//!
//! Owns the baseline and the set of files that differ: an edit costs one comparison, not one per file of the workspace.
//! Does not depend on how the current state was found.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use tether_base::clock::now_ms;

use super::change_report::{ChangeReport, CheckMethod, FileChange, FileChangeKind, MAX_LISTED_CHANGES};
use super::content_hash;
use super::file_snapshot::{FileSnapshot, FolderTree, differing_folders, stamp_of};
use super::folder_files::{FileStamp, FolderFiles};
use super::ignore_rules::IgnoreRules;
use super::path_bytes;
use super::read_dir::{self, FileKind};

/// The period of the coarsest kernel clock for file times (100 Hz): an mtime may be this much too early.
const CLOCK_TICK_NS: i64 = 10_000_000;

/// The baseline and the files that differ from it.
#[derive(Default)]
pub(super) struct BaselineDiff {
    /// What the workspace is compared with.
    pub baseline: Option<Arc<FileSnapshot>>,
    /// By relative path.
    differences: BTreeMap<Vec<u8>, FileDifference>,
}

/// The state that the baseline is compared with.
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
    /// The file was written after the baseline, but its stamp does not prove it.
    hidden_write: bool,
    /// Whether the content is as it was; `None` until it has been compared.
    same_content: Option<bool>,
}

impl BaselineDiff {
    /// Replaces the baseline and compares everything with it.
    pub(crate) fn set_baseline(&mut self, baseline: Arc<FileSnapshot>, current: CurrentTree<'_>) {
        self.baseline = Some(baseline);
        self.differences.clear();
        self.compare_all(current);
    }

    /// Compares everything; folders that both sides share are skipped.
    pub(crate) fn compare_all(&mut self, current: CurrentTree<'_>) {
        let Some(baseline) = self.baseline.clone() else { return };
        let before = std::mem::take(&mut self.differences);
        for folder in differing_folders(&baseline.tree, current.tree) {
            self.compare_listed_files(&folder, current);
        }
        before.iter().filter(|(_, file)| file.hidden_write).for_each(|(rel, _)| self.compare_file(rel, true, current));
    }

    /// Compares the files directly in `folder`, which may be gone.
    pub(crate) fn compare_folder(&mut self, folder: &[u8], current: CurrentTree<'_>) {
        let from = (Bound::Included(folder), Bound::Unbounded);
        let inside = self.differences.range::<[u8], _>(from).take_while(|(rel, _)| rel.starts_with(folder));
        let inside = inside.filter(|(rel, _)| path_bytes::split_path(rel).0 == folder).map(|(rel, _)| rel.clone());
        let inside: Vec<_> = inside.collect();
        self.compare_listed_files(folder, current);
        inside.iter().for_each(|rel| self.compare_file(rel, false, current));
    }

    fn compare_listed_files(&mut self, folder: &[u8], current: CurrentTree<'_>) {
        let then = self.baseline.as_ref().and_then(|baseline| baseline.tree.get(folder)).cloned();
        let (then, now) = (then.as_deref(), current.tree.get(folder).map(|now| &**now));
        for (name, before) in then.into_iter().flat_map(FolderFiles::files) {
            let after = now.and_then(|now| now.stamp_of(name));
            if after != Some(before) {
                self.record_difference(path_bytes::join_path(folder, name), Some(before), after, false, current);
            }
        }
        for (name, after) in now.into_iter().flat_map(FolderFiles::files) {
            if then.is_none_or(|then| then.find(name).is_none()) {
                self.record_difference(path_bytes::join_path(folder, name), None, Some(after), false, current);
            }
        }
    }

    /// Compares one file; `written`: an event reported a write since the last comparison.
    pub(crate) fn compare_file(&mut self, rel: &[u8], written: bool, current: CurrentTree<'_>) {
        if let Some(baseline) = &self.baseline {
            let before = stamp_of(&baseline.tree, rel);
            self.record_difference(rel.to_vec(), before, stamp_of(current.tree, rel), written, current);
        }
    }

    /// Records how one file differs, or that it does not.
    fn record_difference(
        &mut self,
        rel: Vec<u8>,
        before: Option<FileStamp>,
        after: Option<FileStamp>,
        written: bool,
        now: CurrentTree<'_>,
    ) {
        let Some(baseline) = &self.baseline else { return };
        let hidden_write = written || self.differences.get(&rel).is_some_and(|file| file.hidden_write);
        let at = |stamp: FileStamp| stamp.modified_at_ms();
        let differs = match (before, after) {
            (Some(before), Some(after)) if before == after && hidden_write && !can_hide_write(baseline, after) => {
                time_of_write_put_back(baseline, &rel, now).map(|time| (FileChangeKind::Modified, time))
            }
            (Some(before), Some(after)) if before == after => {
                hidden_write.then(|| (FileChangeKind::Modified, at(after)))
            }
            (Some(_), Some(after)) => Some((FileChangeKind::Modified, at(after))),
            (None, Some(after)) => {
                (hidden_write || is_new_file(baseline, after, now)).then(|| (FileChangeKind::Added, at(after)))
            }
            (Some(_), None) => {
                is_removed_file(baseline, &rel, now).then(|| (FileChangeKind::Removed, removal_time_ms(&rel, now)))
            }
            (None, None) => None,
        };
        match differs {
            Some((kind, modified_at_ms)) => {
                let hidden_write = before == after || (before.is_none() && hidden_write);
                self.differences.insert(rel, FileDifference { kind, modified_at_ms, hidden_write, same_content: None });
            }
            None => drop(self.differences.remove(&rel)),
        }
    }

    /// Whether there are modified files whose contents have not been compared yet.
    pub(crate) fn needs_content_check(&self) -> bool {
        self.differences.values().any(|file| file.kind == FileChangeKind::Modified && file.same_content.is_none())
    }

    /// Compares the contents of the files whose metadata changed with those of the baseline.
    pub(crate) fn compare_contents(&mut self, current: CurrentTree<'_>) {
        let Some(baseline) = self.baseline.as_ref() else { return };
        for (rel, file) in self.differences.iter_mut().filter(|(_, file)| file.kind == FileChangeKind::Modified) {
            if file.same_content.is_none() {
                let (folder, name) = path_bytes::split_path(rel);
                let then = baseline.tree.get(folder).and_then(|files| files.hash(files.find(name)?));
                let now = stamp_of(current.tree, rel).filter(|_| then.is_some());
                let now = now.and_then(|stamp| {
                    content_hash::hash_if_unchanged(&current.root.join(path_bytes::as_path(rel)), stamp)
                });
                file.same_content = Some(then.is_some() && then == now);
            }
        }
    }

    /// The report; `None` without a baseline.
    pub(crate) fn report(&self, method: CheckMethod) -> Option<ChangeReport> {
        let compared_to_ms = self.baseline.as_ref()?.taken_at_ms;
        let differences = || self.differences.iter().filter(|(_, file)| file.same_content != Some(true));
        let newest = differences().max_by_key(|(_, file)| file.modified_at_ms).map(file_change);
        let changed: Vec<_> = differences().take(MAX_LISTED_CHANGES).map(file_change).collect();
        let total = if changed.len() < MAX_LISTED_CHANGES { changed.len() } else { differences().count() };
        Some(ChangeReport { stale: newest.is_some(), newest, changed, total, compared_to_ms, method })
    }

    /// The files that differ, relative to the root.
    pub(crate) fn changed_paths(&self) -> impl Iterator<Item = &[u8]> {
        self.differences.iter().filter(|(_, file)| file.same_content != Some(true)).map(|(path, _)| path.as_ref())
    }

    /// How one file differs, if it does.
    pub(crate) fn change_of(&self, rel: &Path) -> Option<FileChange> {
        let found = self.differences.get_key_value(path_bytes::as_bytes(rel))?;
        (found.1.same_content != Some(true)).then(|| file_change(found))
    }
}

/// Whether a write after the baseline can have left the stamp unchanged: in the same clock tick, with the same size,
/// only its event shows it.
fn can_hide_write(baseline: &FileSnapshot, stamp: FileStamp) -> bool {
    let taken_at_ns = (baseline.taken_at_ms as i64).saturating_mul(1_000_000);
    stamp.mtime_ns >= taken_at_ns.saturating_sub(CLOCK_TICK_NS)
}

/// When a file was written after the baseline whose mtime was put back (`touch -r`), epoch ms: nothing puts back its change time.
/// `None`: it was not.
fn time_of_write_put_back(baseline: &FileSnapshot, rel: &[u8], current: CurrentTree<'_>) -> Option<u64> {
    let about = fs::symlink_metadata(current.root.join(path_bytes::as_path(rel))).ok()?;
    let changed_at_ns = about.ctime().saturating_mul(1_000_000_000).saturating_add(about.ctime_nsec());
    let changed_at_ms = u64::try_from(changed_at_ns / 1_000_000).ok()?;
    (changed_at_ms > baseline.taken_at_ms).then_some(changed_at_ms)
}

/// A file that is not in the baseline is new. If the baseline was taken under other rules, the mtime decides, as the
/// file may have been ignored then; without an event, a file created within a clock tick of the baseline counts as old.
fn is_new_file(baseline: &FileSnapshot, stamp: FileStamp, current: CurrentTree<'_>) -> bool {
    baseline.rules == current.rules.digest() || stamp.modified_at_ms() > baseline.taken_at_ms
}

/// A file that the current rules ignore is not removed, only no longer tracked.
fn is_removed_file(baseline: &FileSnapshot, rel: &[u8], current: CurrentTree<'_>) -> bool {
    baseline.rules == current.rules.digest() || current.rules.decide_tracking(path_bytes::as_path(rel), false).tracked
}

/// When a file was removed, epoch ms: the mtime of the nearest folder that is left.
fn removal_time_ms(rel: &[u8], current: CurrentTree<'_>) -> u64 {
    let path = current.root.join(path_bytes::as_path(rel));
    let folders = path.ancestors().skip(1).take_while(|folder| folder.starts_with(current.root));
    let found =
        folders.filter_map(|folder| read_dir::read_metadata(folder).ok()).find(|(kind, _)| *kind == FileKind::Folder);
    found.map_or_else(now_ms, |(_, stamp)| stamp.modified_at_ms())
}

fn file_change((rel, file): (&Vec<u8>, &FileDifference)) -> FileChange {
    FileChange { path: path_bytes::as_path(rel).to_owned(), kind: file.kind, modified_at_ms: file.modified_at_ms }
}
