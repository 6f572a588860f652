//! What is known of the workspace: the rules in force, the tree, what could not be read.
//!
//! Owns the ways in which that changes: a walk of everything, a walk of a folder, a look at touched paths; and keeps the
//! comparison with the baseline up with each. Must not know when it is asked, nor where news of edits comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::baseline_diff::{BaselineDiff, CurrentTree};
use super::change_report::{ChangeReport, CheckMethod, PathExplanation};
use super::content_hash;
use super::file_snapshot::{self, FileSnapshot, FolderTree, folders_below, stamp_of};
use super::folder_files::{ContentHash, FileStamp, FolderFiles};
use super::ignore_rules::{DerivedRule, IgnoreDecision, IgnoreRules, RulesDigest};
use super::path_bytes;
use super::read_dir::{self, FileKind, WorkspaceRoot};
use super::scan::{self, KnownTree, ScanResult};
use super::tracker::ChangeCriterion;
use super::watcher::PathEvent;
use super::workspace_problem::WorkspaceProblem;

pub(super) struct WorkspaceIndex {
    root: PathBuf,
    confirm: ChangeCriterion,
    rules: IgnoreRules,
    rule_problems: Vec<WorkspaceProblem>,
    tree: Arc<FolderTree>,
    /// The rules that `tree` was read under.
    tree_rules: Option<RulesDigest>,
    unreadable: BTreeMap<Arc<[u8]>, WorkspaceProblem>,
    comparison: BaselineDiff,
}

/// What cannot be settled by looking at single paths.
#[derive(Debug, Default)]
pub(super) struct PendingReads {
    pub rules: bool,
    /// Folders that came or may have been replaced: to be watched and read.
    pub folders: BTreeSet<Vec<u8>>,
}

impl WorkspaceIndex {
    pub fn new(root: PathBuf, confirm: ChangeCriterion, derived: &Arc<[DerivedRule]>) -> WorkspaceIndex {
        let (rules, rule_problems) = IgnoreRules::parse_with_derived(derived, &root, b"");
        WorkspaceIndex {
            root,
            confirm,
            rules,
            rule_problems,
            tree: Arc::default(),
            tree_rules: None,
            unreadable: BTreeMap::new(),
            comparison: BaselineDiff::default(),
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn tree(&self) -> &Arc<FolderTree> {
        &self.tree
    }

    pub fn rules(&self) -> &IgnoreRules {
        &self.rules
    }

    pub fn tree_rules(&self) -> Option<RulesDigest> {
        self.tree_rules
    }

    pub fn known_tree(&self) -> KnownTree<'_> {
        KnownTree { tree: &self.tree, same_rules: self.tree_rules == Some(self.rules.digest()) }
    }

    /// Reads the whole workspace, and its ignore file first.
    ///
    /// # Errors
    /// The root cannot be opened.
    pub fn rescan(&mut self) -> io::Result<()> {
        self.reload_rules();
        let scanned = scan::scan_workspace(&WorkspaceRoot::open(&self.root)?, &self.rules, self.known_tree())?;
        self.replace_tree(scanned);
        Ok(())
    }

    /// Reads the ignore file again.
    pub fn reload_rules(&mut self) {
        if let Some(rules) = self.rules.reload(&self.root) {
            self.set_rules(rules);
        }
    }

    pub fn set_rules(&mut self, (rules, problems): (IgnoreRules, Vec<WorkspaceProblem>)) {
        self.rules = rules;
        self.rule_problems = problems;
    }

    /// Takes over a walk of the whole workspace under the rules in force.
    pub fn replace_tree(&mut self, scanned: ScanResult) {
        let tree_rules = self.tree_rules.replace(self.rules.digest());
        let unreadable = scanned.unreadable.into_iter();
        self.unreadable = unreadable.map(|(path, error)| self.unreadable(path, &error)).collect();
        if !Arc::ptr_eq(&self.tree, &scanned.tree) || tree_rules != self.tree_rules {
            self.tree = scanned.tree;
            if let Some(baseline) = self.comparison.baseline() {
                file_snapshot::share_folders(&mut self.tree, &baseline.tree);
            }
            self.update_diff(BaselineDiff::compare_all);
        }
    }

    /// Takes over a walk of `folder` and what is below it.
    pub fn replace_below(&mut self, folder: &[u8], scanned: ScanResult) {
        self.remove_below(folder);
        let tree = Arc::make_mut(&mut self.tree);
        for (path, files) in scanned.tree.iter() {
            tree.insert(Arc::clone(path), Arc::clone(files));
        }
        for (path, error) in scanned.unreadable {
            let (path, problem) = self.unreadable(path, &error);
            self.unreadable.insert(path, problem);
        }
        self.update_diff(|comparison, present| {
            scanned.tree.keys().for_each(|path| comparison.compare_folder(path, present))
        });
    }

    fn unreadable(&self, path: Arc<[u8]>, error: &io::Error) -> (Arc<[u8]>, WorkspaceProblem) {
        let shown = self.root.join(path_bytes::as_path(&path));
        let hint = format!("make it readable, or ignore it in {}", super::IGNORE_FILE);
        (path, WorkspaceProblem::new(shown, format_args!("the folder cannot be read: {error}")).hint(hint))
    }

    /// Looks at each touched path and brings the tree up to date; gives back what needs more than a look.
    pub fn apply_events(&mut self, dirty: &BTreeMap<Vec<u8>, PathEvent>) -> PendingReads {
        let mut open = PendingReads::default();
        let mut edits: BTreeMap<&[u8], Vec<FileEdit<'_>>> = BTreeMap::new();
        let mut globs = Vec::new();
        for (rel, touch) in dirty {
            let (folder, name) = path_bytes::split_path(rel);
            open.rules |= rel == super::IGNORE_FILE.as_bytes();
            // What lies in a folder that is not known comes with the reading of that folder.
            let Some(files) = self.tree.get(folder).filter(|_| !rel.is_empty()) else { continue };
            let known = files.find(name).is_some();
            let file = match read_dir::read_metadata(&self.root.join(path_bytes::as_path(rel))) {
                Ok((FileKind::Folder, _)) => {
                    self.handle_folder_event(rel, *touch, &mut open, &mut globs);
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
                edits.entry(folder).or_default().push(FileEdit { rel, name, file, written: touch.written });
            }
        }
        edits.iter().for_each(|(folder, edits)| self.apply_edits(folder, edits));
        open
    }

    /// A folder that is where it was needs nothing; one that came, or may be another of the same name, is read.
    fn handle_folder_event(&mut self, rel: &[u8], touch: PathEvent, open: &mut PendingReads, globs: &mut Vec<usize>) {
        let settled = self.tree.contains_key(rel) && !touch.moved && !self.unreadable.contains_key(rel);
        let inside_one = open.folders.iter().any(|folder| path_bytes::is_below(rel, folder));
        if settled || inside_one {
            return;
        }
        if self.rules.is_tracked(rel, true, globs) {
            open.folders.insert(rel.to_vec());
        } else {
            self.remove_below(rel);
        }
    }

    /// Applies edits to one folder. What is as it was touches nothing, so that the tree stays shared.
    fn apply_edits(&mut self, folder: &[u8], edits: &[FileEdit<'_>]) {
        let moved = edits.iter().filter(|edit| stamp_of(&self.tree, edit.rel) != edit.file);
        let moved: Vec<_> = moved.map(|edit| (edit.name, edit.file)).collect();
        if !moved.is_empty()
            && let Some(files) = Arc::make_mut(&mut self.tree).get_mut(folder)
        {
            Arc::make_mut(files).apply_edits(&moved);
        }
        self.update_diff(|comparison, present| {
            edits.iter().for_each(|edit| comparison.compare_file(edit.rel, edit.written, present));
        });
    }

    /// Drops `folder` and what is below it.
    fn remove_below(&mut self, folder: &[u8]) {
        let gone = folders_below(&self.tree, folder);
        if gone.is_empty() {
            return;
        }
        let tree = Arc::make_mut(&mut self.tree);
        for path in &gone {
            tree.remove(path);
            self.unreadable.remove(path);
        }
        self.update_diff(|comparison, present| gone.iter().for_each(|path| comparison.compare_folder(path, present)));
    }

    pub fn set_baseline(&mut self, baseline: Arc<FileSnapshot>) {
        if self.tree_rules.is_none() {
            // Nothing has been read yet: what was known then makes the first walk cheap.
            self.tree = Arc::clone(&baseline.tree);
            self.tree_rules = Some(baseline.rules);
        }
        if !Arc::ptr_eq(&self.tree, &baseline.tree) {
            file_snapshot::share_folders(&mut self.tree, &baseline.tree);
        }
        self.update_diff(|comparison, present| comparison.set_baseline(baseline, present));
    }

    fn update_diff(&mut self, with: impl FnOnce(&mut BaselineDiff, CurrentTree<'_>)) {
        let WorkspaceIndex { root, rules, tree, comparison, .. } = self;
        with(comparison, CurrentTree { root, rules, tree });
    }

    /// Whether contents have to be read before the question can be answered.
    pub fn needs_content_check(&self) -> bool {
        self.confirm == ChangeCriterion::Content && self.comparison.needs_content_check()
    }

    pub fn compare_contents(&mut self) {
        self.update_diff(BaselineDiff::compare_contents);
    }

    /// Everything tracked, as of `asked_at_ms`. With `confirm = "content"` it reads what it has no print of yet.
    pub fn take_snapshot(&mut self, asked_at_ms: u64) -> FileSnapshot {
        if self.confirm == ChangeCriterion::Content {
            self.hash_missing_contents();
        }
        let (root, rules, tree) = (self.root.clone(), self.rules.digest(), Arc::clone(&self.tree));
        FileSnapshot { root, rules, taken_at_ms: asked_at_ms, tree }
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

    /// The prints that are missing in one folder.
    fn missing_hashes(&self, folder: &[u8], files: &FolderFiles) -> Vec<(usize, ContentHash)> {
        let missing = (0..files.len()).filter(|index| files.hash(*index).is_none());
        let taken = missing.filter_map(|index| {
            let path = self.root.join(path_bytes::as_path(&path_bytes::join_path(folder, files.name(index))));
            Some((index, content_hash::hash_if_unchanged(&path, files.stamp(index))?))
        });
        taken.collect()
    }

    /// The answer; `None` without a baseline to compare with.
    pub fn report(&self, how: CheckMethod) -> Option<ChangeReport> {
        self.comparison.report(how)
    }

    /// Why `rel` counts, or does not.
    pub fn explain_path(&self, rel: &Path) -> PathExplanation {
        let found = read_dir::read_metadata(&self.root.join(rel));
        let decision = self.rules.decide(rel, matches!(found, Ok((FileKind::Folder, _))));
        let change = self.comparison.change_of(rel);
        let note = match found {
            _ if !decision.tracked => None,
            Ok((FileKind::Other, _)) => Some("it is neither a file nor a symlink"),
            _ if self.is_behind_symlink(rel) => Some("it lies behind a symlink, which is not followed"),
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

    pub fn problems(&self) -> Vec<WorkspaceProblem> {
        self.rule_problems.iter().chain(self.unreadable.values()).cloned().collect()
    }
}

/// What one path is now, to be entered into its folder.
struct FileEdit<'a> {
    rel: &'a [u8],
    name: &'a [u8],
    file: Option<FileStamp>,
    written: bool,
}
