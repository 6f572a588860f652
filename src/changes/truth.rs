//! What is known of the workspace: the rules in force, the tree, what could not be read.
//!
//! Owns the ways in which that changes: a walk of everything, a walk of a folder, a look at touched paths; and keeps the
//! comparison with the baseline up with each. Must not know when it is asked, nor where news of edits comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::change::{Check, Explanation, How};
use super::comparison::{Comparison, Present};
use super::content;
use super::folder::{Folder, Print, Stamp};
use super::ignore::{Decision, Derived, Rules, RulesDigest};
use super::list::{self, Kind, Root};
use super::name;
use super::problem::Problem;
use super::scan::{self, Known, Scanned};
use super::snapshot::{self, Snapshot, Tree, folders_at, stamp_of};
use super::tracker::Confirm;
use super::watch::Touch;

pub(super) struct Truth {
    root: PathBuf,
    confirm: Confirm,
    rules: Rules,
    rule_problems: Vec<Problem>,
    tree: Arc<Tree>,
    /// The rules that `tree` was read under.
    tree_rules: Option<RulesDigest>,
    unreadable: BTreeMap<Arc<[u8]>, Problem>,
    comparison: Comparison,
}

/// What cannot be settled by looking at single paths.
#[derive(Debug, Default)]
pub(super) struct Open {
    pub rules: bool,
    /// Folders that came or may have been replaced: to be watched and read.
    pub folders: BTreeSet<Vec<u8>>,
}

impl Truth {
    pub fn new(root: PathBuf, confirm: Confirm, derived: &Arc<[Derived]>) -> Truth {
        let (rules, rule_problems) = Rules::with(derived, &root, b"");
        Truth {
            root,
            confirm,
            rules,
            rule_problems,
            tree: Arc::default(),
            tree_rules: None,
            unreadable: BTreeMap::new(),
            comparison: Comparison::default(),
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    pub fn tree_rules(&self) -> Option<RulesDigest> {
        self.tree_rules
    }

    pub fn known(&self) -> Known<'_> {
        Known { tree: &self.tree, same_rules: self.tree_rules == Some(self.rules.digest()) }
    }

    /// Reads the whole workspace, and its ignore file first.
    ///
    /// # Errors
    /// The root cannot be opened.
    pub fn scan(&mut self) -> io::Result<()> {
        self.load_rules();
        let scanned = scan::scan(&Root::open(&self.root)?, &self.rules, self.known())?;
        self.adopt(scanned);
        Ok(())
    }

    /// Reads the ignore file again.
    pub fn load_rules(&mut self) {
        if let Some(rules) = self.rules.reload(&self.root) {
            self.set_rules(rules);
        }
    }

    pub fn set_rules(&mut self, (rules, problems): (Rules, Vec<Problem>)) {
        self.rules = rules;
        self.rule_problems = problems;
    }

    /// Takes over a walk of the whole workspace under the rules in force.
    pub fn adopt(&mut self, scanned: Scanned) {
        let tree_rules = self.tree_rules.replace(self.rules.digest());
        let unreadable = scanned.unreadable.into_iter();
        self.unreadable = unreadable.map(|(path, error)| self.unreadable(path, &error)).collect();
        if !Arc::ptr_eq(&self.tree, &scanned.tree) || tree_rules != self.tree_rules {
            self.tree = scanned.tree;
            if let Some(baseline) = self.comparison.baseline() {
                snapshot::share(&mut self.tree, &baseline.tree);
            }
            self.compare(Comparison::all);
        }
    }

    /// Takes over a walk of `folder` and what is below it.
    pub fn adopt_below(&mut self, folder: &[u8], scanned: Scanned) {
        self.forget_below(folder);
        let tree = Arc::make_mut(&mut self.tree);
        for (path, files) in scanned.tree.iter() {
            tree.insert(Arc::clone(path), Arc::clone(files));
        }
        for (path, error) in scanned.unreadable {
            let (path, problem) = self.unreadable(path, &error);
            self.unreadable.insert(path, problem);
        }
        self.compare(|comparison, present| scanned.tree.keys().for_each(|path| comparison.folder(path, present)));
    }

    fn unreadable(&self, path: Arc<[u8]>, error: &io::Error) -> (Arc<[u8]>, Problem) {
        let shown = self.root.join(name::path(&path));
        let hint = format!("make it readable, or ignore it in {}", super::IGNORE_FILE);
        (path, Problem::new(shown, format_args!("the folder cannot be read: {error}")).hint(hint))
    }

    /// Looks at each touched path and brings the tree up to date; gives back what needs more than a look.
    pub fn apply(&mut self, dirty: &BTreeMap<Vec<u8>, Touch>) -> Open {
        let mut open = Open::default();
        let mut edits: BTreeMap<&[u8], Vec<Edit<'_>>> = BTreeMap::new();
        let mut globs = Vec::new();
        for (rel, touch) in dirty {
            let (folder, name) = name::split(rel);
            open.rules |= rel == super::IGNORE_FILE.as_bytes();
            // What lies in a folder that is not known comes with the reading of that folder.
            let Some(files) = self.tree.get(folder).filter(|_| !rel.is_empty()) else { continue };
            let known = files.find(name).is_some();
            let file = match list::look(&self.root.join(name::path(rel))) {
                Ok((Kind::Folder, _)) => {
                    self.folder_touched(rel, *touch, &mut open, &mut globs);
                    None
                }
                Err(error) if !list::is_gone(&error) => continue,
                found => {
                    self.forget_below(rel);
                    let file = found.ok().filter(|(kind, _)| *kind == Kind::File).map(|(_, stamp)| stamp);
                    file.filter(|_| known || self.rules.tracks(rel, false, &mut globs))
                }
            };
            if file.is_some() || known {
                edits.entry(folder).or_default().push(Edit { rel, name, file, written: touch.written });
            }
        }
        edits.iter().for_each(|(folder, edits)| self.edit(folder, edits));
        open
    }

    /// A folder that is where it was needs nothing; one that came, or may be another of the same name, is read.
    fn folder_touched(&mut self, rel: &[u8], touch: Touch, open: &mut Open, globs: &mut Vec<usize>) {
        let settled = self.tree.contains_key(rel) && !touch.moved && !self.unreadable.contains_key(rel);
        let inside_one = open.folders.iter().any(|folder| name::is_below(rel, folder));
        if settled || inside_one {
            return;
        }
        if self.rules.tracks(rel, true, globs) {
            open.folders.insert(rel.to_vec());
        } else {
            self.forget_below(rel);
        }
    }

    /// Applies edits to one folder. What is as it was touches nothing, so that the tree stays shared.
    fn edit(&mut self, folder: &[u8], edits: &[Edit<'_>]) {
        let moved = edits.iter().filter(|edit| stamp_of(&self.tree, edit.rel) != edit.file);
        let moved: Vec<_> = moved.map(|edit| (edit.name, edit.file)).collect();
        if !moved.is_empty()
            && let Some(files) = Arc::make_mut(&mut self.tree).get_mut(folder)
        {
            Arc::make_mut(files).edit(&moved);
        }
        self.compare(|comparison, present| {
            edits.iter().for_each(|edit| comparison.file(edit.rel, edit.written, present));
        });
    }

    /// Drops `folder` and what is below it.
    fn forget_below(&mut self, folder: &[u8]) {
        let gone = folders_at(&self.tree, folder);
        if gone.is_empty() {
            return;
        }
        let tree = Arc::make_mut(&mut self.tree);
        for path in &gone {
            tree.remove(path);
            self.unreadable.remove(path);
        }
        self.compare(|comparison, present| gone.iter().for_each(|path| comparison.folder(path, present)));
    }

    pub fn set_baseline(&mut self, baseline: Arc<Snapshot>) {
        if self.tree_rules.is_none() {
            // Nothing has been read yet: what was known then makes the first walk cheap.
            self.tree = Arc::clone(&baseline.tree);
            self.tree_rules = Some(baseline.rules);
        }
        if !Arc::ptr_eq(&self.tree, &baseline.tree) {
            snapshot::share(&mut self.tree, &baseline.tree);
        }
        self.compare(|comparison, present| comparison.set_baseline(baseline, present));
    }

    fn compare(&mut self, with: impl FnOnce(&mut Comparison, Present<'_>)) {
        let Truth { root, rules, tree, comparison, .. } = self;
        with(comparison, Present { root, rules, tree });
    }

    /// Whether contents have to be read before the question can be answered.
    pub fn wants_contents(&self) -> bool {
        self.confirm == Confirm::Content && self.comparison.wants_contents()
    }

    pub fn compare_contents(&mut self) {
        self.compare(Comparison::contents);
    }

    /// Everything tracked, as of `asked_at_ms`. With `confirm = "content"` it reads what it has no print of yet.
    pub fn snapshot(&mut self, asked_at_ms: u64) -> Snapshot {
        if self.confirm == Confirm::Content {
            self.take_prints();
        }
        let (root, rules, tree) = (self.root.clone(), self.rules.digest(), Arc::clone(&self.tree));
        Snapshot { root, rules, taken_at_ms: asked_at_ms, tree }
    }

    fn take_prints(&mut self) {
        let taken: Vec<_> = self.tree.iter().map(|(folder, files)| self.prints_of(folder, files)).collect();
        if taken.iter().all(Vec::is_empty) {
            return;
        }
        for (files, taken) in Arc::make_mut(&mut self.tree).values_mut().zip(taken) {
            if !taken.is_empty() {
                Arc::make_mut(files).set_prints(&taken);
            }
        }
    }

    /// The prints that are missing in one folder.
    fn prints_of(&self, folder: &[u8], files: &Folder) -> Vec<(usize, Print)> {
        let missing = (0..files.len()).filter(|index| files.print(*index).is_none());
        let taken = missing.filter_map(|index| {
            let path = self.root.join(name::path(&name::join(folder, files.name(index))));
            Some((index, content::print(&path, files.stamp(index))?))
        });
        taken.collect()
    }

    /// The answer; `None` without a baseline to compare with.
    pub fn check(&self, how: How) -> Option<Check> {
        self.comparison.check(how)
    }

    /// Why `rel` counts, or does not.
    pub fn explain(&self, rel: &Path) -> Explanation {
        let found = list::look(&self.root.join(rel));
        let decision = self.rules.decide(rel, matches!(found, Ok((Kind::Folder, _))));
        let change = self.comparison.change_of(rel);
        let note = match found {
            _ if !decision.tracked => None,
            Ok((Kind::Other, _)) => Some("it is neither a file nor a symlink"),
            _ if self.behind_a_link(rel) => Some("it lies behind a symlink, which is not followed"),
            Err(error) if list::is_gone(&error) => Some("there is no such file now"),
            _ => None,
        };
        let decision =
            Decision { tracked: decision.tracked && note.is_none_or(|note| note.starts_with("there")), ..decision };
        Explanation { path: rel.to_path_buf(), decision, change, note: note.map(str::to_owned) }
    }

    fn behind_a_link(&self, rel: &Path) -> bool {
        let above = rel.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        above.map(|above| list::look(&self.root.join(above))).any(|found| matches!(found, Ok((Kind::File, _))))
    }

    pub fn problems(&self) -> Vec<Problem> {
        self.rule_problems.iter().chain(self.unreadable.values()).cloned().collect()
    }
}

/// What one path is now, to be entered into its folder.
struct Edit<'a> {
    rel: &'a [u8],
    name: &'a [u8],
    file: Option<Stamp>,
    written: bool,
}

pub(super) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
