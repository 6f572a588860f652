//! The current state of a workspace: the rules in force, the tree of tracked files, unreadable folders.
//!
//! Owns all updates of that state (a scan, the scan of one folder, single events) and with each updates the difference
//! from the baseline. Does not depend on when updates are requested, nor on where events come from.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tether_base::clock::monotonic_ms;

use super::baseline_diff::{BaselineDiff, CurrentTree};
use super::change_report::{ChangeReport, CheckMethod, PathExplanation};
use super::content_hash;
use super::file_snapshot::{self, FileSnapshot, FolderTree, folders_below, stamp_of};
use super::folder_files::{ContentHash, FileStamp, FolderFiles};
use super::gitignore::{GITIGNORE, foreign_gitignores};
use super::ignore_rules::{DerivedRule, IgnoreDecision, IgnoreRules, RulesDigest};
use super::noticed_times::NoticedTimes;
use super::path_bytes;
use super::read_dir::{self, FileKind, WorkspaceRoot};
use super::scan::{self, KnownTree, ScanResult};
use super::tracker_options::ChangeCriterion;
use super::watcher::PathEvent;
use super::workspace_problem::WorkspaceProblem;

/// What is known of a workspace; see the module.
pub(super) struct WorkspaceIndex {
    /// The folder that is tracked.
    pub root: PathBuf,
    criterion: ChangeCriterion,
    /// The rules in force.
    pub rules: IgnoreRules,
    rule_problems: Vec<WorkspaceProblem>,
    /// The tracked files as of the last update.
    pub tree: Arc<FolderTree>,
    /// The rules that `tree` was read under; `None` before the first scan.
    pub tree_rules: Option<RulesDigest>,
    unreadable: BTreeMap<Arc<[u8]>, WorkspaceProblem>,
    /// The `.gitignore` files of strangers; `None` when such a file may have changed since they were looked for.
    foreign_gitignores: Option<Vec<WorkspaceProblem>>,
    diff: BaselineDiff,
    noticed: NoticedTimes,
}

/// What cannot be updated from the metadata of single paths.
#[derive(Debug, Default)]
pub(super) struct PendingReads {
    /// The ignore file may have changed.
    pub rules_changed: bool,
    /// Folders that are new or may have been replaced: to be watched and read.
    pub folders: BTreeSet<Vec<u8>>,
}

impl WorkspaceIndex {
    /// An empty index, under the built-in and the derived rules.
    pub(crate) fn new(root: PathBuf, criterion: ChangeCriterion, derived: &Arc<[DerivedRule]>) -> WorkspaceIndex {
        let (rules, rule_problems) = IgnoreRules::parse(derived, &root, b"");
        WorkspaceIndex {
            root,
            criterion,
            rules,
            rule_problems,
            tree: Arc::default(),
            tree_rules: None,
            unreadable: BTreeMap::new(),
            foreign_gitignores: None,
            diff: BaselineDiff::default(),
            noticed: NoticedTimes::default(),
        }
    }

    /// What a scan can reuse.
    pub(crate) fn known_tree(&self) -> KnownTree<'_> {
        KnownTree { tree: &self.tree, same_rules: self.tree_rules == Some(self.rules.digest()) }
    }

    /// Scans the workspace, after reading its ignore file.
    ///
    /// # Errors
    /// The root cannot be opened.
    pub(crate) fn rescan(&mut self) -> io::Result<()> {
        self.reload_rules();
        let scanned = scan::scan_workspace(&WorkspaceRoot::open(&self.root)?, &self.rules, self.known_tree())?;
        self.replace_tree(scanned);
        Ok(())
    }

    /// Reads the ignore file again, if it changed.
    pub(crate) fn reload_rules(&mut self) {
        if let Some(rules) = self.rules.reload(&self.root) {
            self.set_rules(rules);
        }
    }

    /// Replaces the rules and what is wrong with their file. The tree stays as it is.
    pub(crate) fn set_rules(&mut self, (rules, problems): (IgnoreRules, Vec<WorkspaceProblem>)) {
        self.rules = rules;
        self.rule_problems = problems;
    }

    /// Replaces the tree by the scan of the whole workspace under the rules in force.
    pub(crate) fn replace_tree(&mut self, scanned: ScanResult) {
        self.foreign_gitignores = None;
        let tree_rules = self.tree_rules.replace(self.rules.digest());
        let unreadable = scanned.unreadable.into_iter();
        self.unreadable = unreadable.map(|(path, error)| self.unreadable_problem(path, &error)).collect();
        if !Arc::ptr_eq(&self.tree, &scanned.tree) || tree_rules != self.tree_rules {
            self.tree = scanned.tree;
            if let Some(baseline) = &self.diff.baseline {
                file_snapshot::share_folders(&mut self.tree, &baseline.tree);
            }
            self.update_diff(BaselineDiff::compare_all);
        }
    }

    /// Replaces `folder` and everything below it by its scan.
    pub(crate) fn replace_below(&mut self, folder: &[u8], scanned: ScanResult) {
        self.foreign_gitignores = None;
        self.remove_below(folder);
        let tree = Arc::make_mut(&mut self.tree);
        for (path, files) in scanned.tree.iter() {
            tree.insert(Arc::clone(path), Arc::clone(files));
        }
        for (path, error) in scanned.unreadable {
            let (path, problem) = self.unreadable_problem(path, &error);
            self.unreadable.insert(path, problem);
        }
        self.update_diff(|diff, current| scanned.tree.keys().for_each(|path| diff.compare_folder(path, current)));
    }

    fn unreadable_problem(&self, path: Arc<[u8]>, error: &io::Error) -> (Arc<[u8]>, WorkspaceProblem) {
        let shown = self.root.join(path_bytes::as_path(&path));
        let hint = format!("make it readable, or ignore it in {}", super::IGNORE_FILE);
        (path, WorkspaceProblem::new(shown, format_args!("the folder cannot be read: {error}")).hint(hint))
    }

    /// Reads the metadata of each path that has an event and updates the tree; returns what else has to be read.
    pub(crate) fn apply_events(&mut self, events: &BTreeMap<Vec<u8>, PathEvent>) -> PendingReads {
        self.noticed.add_events(events);
        let mut pending = PendingReads::default();
        let mut edits: BTreeMap<&[u8], Vec<FileEdit<'_>>> = BTreeMap::new();
        let mut globs = Vec::new();
        for (rel, event) in events {
            let (folder, name) = path_bytes::split_path(rel);
            if name == GITIGNORE.as_bytes() {
                self.foreign_gitignores = None;
            }
            pending.rules_changed |= rel == super::IGNORE_FILE.as_bytes();
            // Files of an unknown folder are found when that folder is read.
            let Some(files) = self.tree.get(folder).filter(|_| !rel.is_empty()) else { continue };
            let known = files.find(name).is_some();
            let file = match read_dir::read_metadata(&self.root.join(path_bytes::as_path(rel))) {
                Ok((FileKind::Folder, _)) => {
                    self.handle_folder_event(rel, *event, &mut pending, &mut globs);
                    None
                }
                Err(error) if !read_dir::is_gone(&error) => continue,
                found => {
                    self.remove_below(rel);
                    let file = found.ok().filter(|(kind, _)| *kind == FileKind::File).map(|(_, stamp)| stamp);
                    file.filter(|_| known || self.rules.is_tracked(rel, false, &mut globs))
                }
            };
            if file.is_some() || known {
                edits.entry(folder).or_default().push(FileEdit { rel, name, file, written: event.written });
            }
        }
        edits.iter().for_each(|(folder, edits)| self.apply_edits(folder, edits));
        pending
    }

    /// Requests the reading of a folder that is new, was unreadable or may have been replaced.
    fn handle_folder_event(
        &mut self,
        rel: &[u8],
        event: PathEvent,
        pending: &mut PendingReads,
        globs: &mut Vec<usize>,
    ) {
        let unchanged = self.tree.contains_key(rel) && !event.moved && !self.unreadable.contains_key(rel);
        let is_covered = pending.folders.iter().any(|folder| path_bytes::is_below(rel, folder));
        if unchanged || is_covered {
            return;
        }
        if self.rules.is_tracked(rel, true, globs) {
            pending.folders.insert(rel.to_vec());
        } else {
            self.remove_below(rel);
        }
    }

    /// Applies edits to one folder. Edits without effect change nothing, so that the tree stays shared.
    fn apply_edits(&mut self, folder: &[u8], edits: &[FileEdit<'_>]) {
        let changed = edits.iter().filter(|edit| stamp_of(&self.tree, edit.rel) != edit.file);
        let changed: Vec<_> = changed.map(|edit| (edit.name, edit.file)).collect();
        if !changed.is_empty()
            && let Some(files) = Arc::make_mut(&mut self.tree).get_mut(folder)
        {
            Arc::make_mut(files).apply_edits(&changed);
        }
        self.update_diff(|diff, current| {
            edits.iter().for_each(|edit| diff.compare_file(edit.rel, edit.written, current));
        });
    }

    /// Removes `folder` and everything below it.
    fn remove_below(&mut self, folder: &[u8]) {
        let gone = folders_below(&self.tree, folder);
        if gone.is_empty() {
            return;
        }
        self.foreign_gitignores = None;
        let tree = Arc::make_mut(&mut self.tree);
        for path in &gone {
            tree.remove(path);
            self.unreadable.remove(path);
        }
        self.update_diff(|diff, current| gone.iter().for_each(|path| diff.compare_folder(path, current)));
    }

    /// Sets the baseline and compares everything with it.
    pub(crate) fn set_baseline(&mut self, baseline: Arc<FileSnapshot>) {
        if self.tree_rules.is_none() {
            // Nothing has been read yet: the first scan can reuse the baseline's tree.
            self.tree = Arc::clone(&baseline.tree);
            self.tree_rules = Some(baseline.rules);
        }
        if !Arc::ptr_eq(&self.tree, &baseline.tree) {
            file_snapshot::share_folders(&mut self.tree, &baseline.tree);
        }
        self.update_diff(|diff, current| diff.set_baseline(baseline, current));
    }

    fn update_diff(&mut self, with: impl FnOnce(&mut BaselineDiff, CurrentTree<'_>)) {
        let WorkspaceIndex { root, rules, tree, diff, .. } = self;
        with(diff, CurrentTree { root, rules, tree });
    }

    /// Whether contents have to be read before a report.
    pub(crate) fn needs_content_check(&self) -> bool {
        self.criterion == ChangeCriterion::Content && self.diff.needs_content_check()
    }

    /// Reads and compares the contents of files with changed metadata.
    pub(crate) fn compare_contents(&mut self) {
        self.update_diff(BaselineDiff::compare_contents);
    }

    /// A snapshot of all tracked files as of `requested_at_ms` (epoch ms). With [`ChangeCriterion::Content`] it reads
    /// the files that have no hash yet.
    pub(crate) fn take_snapshot(&mut self, requested_at_ms: u64) -> FileSnapshot {
        if self.criterion == ChangeCriterion::Content {
            self.hash_missing_contents();
        }
        let (root, rules, tree) = (self.root.clone(), self.rules.digest(), Arc::clone(&self.tree));
        FileSnapshot { root, rules, taken_at_ms: requested_at_ms, tree }
    }

    fn hash_missing_contents(&mut self) {
        let taken: Vec<_> = self.tree.iter().map(|(folder, files)| self.missing_hashes(folder, files)).collect();
        if taken.iter().all(Vec::is_empty) {
            return;
        }
        for (files, taken) in Arc::make_mut(&mut self.tree).values_mut().zip(taken) {
            if !taken.is_empty() {
                Arc::make_mut(files).set_hashes(&taken);
            }
        }
    }

    /// The hashes that one folder lacks.
    fn missing_hashes(&self, folder: &[u8], files: &FolderFiles) -> Vec<(usize, ContentHash)> {
        let missing = (0..files.len()).filter(|index| files.hash(*index).is_none());
        let taken = missing.filter_map(|index| {
            let path = self.root.join(path_bytes::as_path(&path_bytes::join_path(folder, files.name(index))));
            Some((index, content_hash::hash_if_unchanged(&path, files.stamp(index))?))
        });
        taken.collect()
    }

    /// The report; `None` without a baseline.
    pub(crate) fn report(&self, method: CheckMethod) -> Option<ChangeReport> {
        self.diff.report(method)
    }

    /// When the last of the differences from the baseline was noticed ([`tether_base::clock::monotonic_ms`]); `None`: there are
    /// none.
    pub(crate) fn last_noticed(&mut self) -> Option<u64> {
        let now_ms = monotonic_ms();
        self.diff.changed_paths().map(|path| self.noticed.time_of(path, now_ms)).max()
    }

    /// Explains why `rel` is tracked or not, and how it changed.
    pub(crate) fn explain_path(&self, rel: &Path) -> PathExplanation {
        let found = read_dir::read_metadata(&self.root.join(rel));
        let decision = self.rules.decide_tracking(rel, matches!(found, Ok((FileKind::Folder, _))));
        let change = self.diff.change_of(rel);
        let note = match found {
            _ if !decision.tracked => None,
            Ok((FileKind::Other, _)) => Some("it is neither a file nor a symlink"),
            _ if self.is_behind_symlink(rel) => Some("it is behind a symlink, which is not followed"),
            Err(error) if read_dir::is_gone(&error) => Some("there is no such file now"),
            _ => None,
        };
        let decision = IgnoreDecision {
            tracked: decision.tracked && note.is_none_or(|note| note.starts_with("there")),
            ..decision
        };
        PathExplanation { path: rel.to_path_buf(), decision, change, note: note.map(str::to_owned) }
    }

    fn is_behind_symlink(&self, rel: &Path) -> bool {
        let above = rel.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        above
            .map(|above| read_dir::read_metadata(&self.root.join(above)))
            .any(|found| matches!(found, Ok((FileKind::File, _))))
    }

    /// What is wrong with the ignore files, and the folders that cannot be read.
    /// Looks at each `.gitignore`.
    pub(crate) fn find_problems(&mut self) -> Vec<WorkspaceProblem> {
        self.foreign_gitignores.get_or_insert_with(|| foreign_gitignores(&self.root, &self.tree));
        self.known_problems().unwrap_or_default()
    }

    /// As [`WorkspaceIndex::find_problems`], without reading anything; `None` where something has to be read.
    pub(crate) fn known_problems(&self) -> Option<Vec<WorkspaceProblem>> {
        let foreign = self.foreign_gitignores.as_ref()?;
        Some(self.rule_problems.iter().chain(self.unreadable.values()).chain(foreign).cloned().collect())
    }
}

/// The new state of one path: a tracked file, or `None`.
struct FileEdit<'a> {
    rel: &'a [u8],
    name: &'a [u8],
    file: Option<FileStamp>,
    written: bool,
}
