//! Decides after each round of a build whether another round is needed; finds the files that the build itself changes.
//!
//! A file that changes during a build makes its result stale. A build that changes tracked files itself would never end
//! like this, so these files are found and ignored. Does not run builds.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tether_base::bounded_file::{self, Links};
use tether_changes::FileSnapshot;

/// The most rounds of one build, also for a user who keeps saving files.
const MAX_ROUNDS: usize = 3;

/// The hashes of changed files; `None` for files that are not hashed.
#[derive(Debug, Default)]
pub struct ContentHashes(BTreeMap<PathBuf, Option<u64>>);

impl ContentHashes {
    /// Further files, and files larger than [`Self::MAX_SIZE`] bytes, are not hashed.
    const MAX_FILES: usize = 1000;
    const MAX_SIZE: u64 = 16 << 20;

    /// Reads and hashes the files; paths are relative to `root`.
    pub fn read(root: &Path, changed: &[PathBuf]) -> ContentHashes {
        let content = |index: usize, path: &Path| {
            let read = || bounded_file::read_file(&root.join(path), Self::MAX_SIZE, Links::Follow).ok();
            let content = Some(index).filter(|index| *index < Self::MAX_FILES).and_then(|_| read())?;
            let mut hasher = std::hash::DefaultHasher::new();
            hasher.write(&content);
            Some(hasher.finish())
        };
        let all = changed.iter().enumerate().map(|(index, path)| (path.clone(), content(index, path)));
        ContentHashes(all.collect())
    }
}

/// What to do after a round of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundOutcome {
    /// Files changed during the build: run it once more.
    Repeat,
    /// The same files changed in every round, each time to other contents: by the build, or by a user who saves often.
    Undecided,
    /// No further round is needed; `accept`: the build itself made all changes.
    Done { accept: bool },
}

/// Finds the tracked files that the build itself changes: it writes the same contents in two consecutive rounds, or other
/// contents in each of [`MAX_ROUNDS`] while the files do not change without a build. Kept until the supervisor exits, so
/// that the extra rounds are needed only once.
#[derive(Debug, Default)]
pub struct RepeatedBuilds {
    round: usize,
    /// The other changed files of the last round.
    last: ContentHashes,
    /// Files that changed in every round so far, each time to other contents.
    undecided: BTreeSet<PathBuf>,
    /// Files that the build itself changes.
    by_build: BTreeSet<PathBuf>,
    /// Those of `by_build` that changed in the last round.
    seen: BTreeSet<PathBuf>,
    /// The files at the end of the last build.
    ended_with: Option<Arc<FileSnapshot>>,
}

impl RepeatedBuilds {
    /// Begins a build with the files as of `now`.
    pub fn start_build(&mut self, now: &FileSnapshot) {
        let between = self.ended_with.take().map(|ended| now.changed_paths(&ended)).unwrap_or_default();
        self.reset(&between);
    }

    /// Ends a build with the files as of `now`.
    pub fn end_build(&mut self, now: Arc<FileSnapshot>) {
        self.ended_with = Some(now);
    }

    /// Begins a build. Files that changed between two builds are not changed by the build alone.
    fn reset(&mut self, between: &[PathBuf]) {
        self.round = 0;
        self.last = ContentHashes::default();
        self.undecided.clear();
        self.seen.clear();
        self.by_build.retain(|path| !between.contains(path));
    }

    /// The files that the build is known to change itself.
    pub fn changed_by_build(&self) -> Vec<PathBuf> {
        self.by_build.iter().cloned().collect()
    }

    /// Adds a round, during which these files changed.
    pub fn add_round(&mut self, changed: ContentHashes) -> RoundOutcome {
        self.round += 1;
        let is_same = |(path, content): &(&PathBuf, &Option<u64>)| {
            content.is_some() && self.last.0.get(*path).is_some_and(|last| last == *content)
        };
        let by_build = changed.0.iter().filter(is_same).map(|(path, _)| path.clone());
        self.by_build.extend(by_build);
        if self.round == 1 {
            self.undecided = changed.0.keys().cloned().collect();
        }
        self.undecided.retain(|path| changed.0.contains_key(path) && !self.by_build.contains(path));
        self.seen = changed.0.keys().filter(|path| self.by_build.contains(*path)).cloned().collect();
        let others = changed.0.into_iter().filter(|(path, _)| !self.by_build.contains(path));
        self.last = ContentHashes(others.collect());
        match (self.last.0.is_empty(), self.round) {
            (true, _) => RoundOutcome::Done { accept: true },
            (false, MAX_ROUNDS..) if self.last.0.keys().all(|path| self.undecided.contains(path)) => {
                RoundOutcome::Undecided
            }
            (false, MAX_ROUNDS..) => RoundOutcome::Done { accept: false },
            (false, _) => RoundOutcome::Repeat,
        }
    }

    /// Decides after [`RoundOutcome::Undecided`], given the files that changed for a while without a build: if none did, the
    /// build makes all changes.
    pub fn decide(&mut self, changed: &[PathBuf]) -> RoundOutcome {
        let accept = changed.is_empty();
        if accept {
            self.seen.extend(self.undecided.iter().cloned());
            self.by_build.append(&mut self.undecided);
        }
        RoundOutcome::Done { accept }
    }

    /// A note that names the changed files, which are ignored, and the lines for .devtoolsignore.
    pub fn explanation(&self) -> Option<String> {
        if self.seen.is_empty() {
            return None;
        }
        let names: Vec<_> = self.seen.iter().take(5).map(|path| path.display().to_string()).collect();
        let more = if self.seen.len() > 5 { ", …" } else { "" };
        let lines: Vec<_> = self.ignore_lines().into_iter().take(5).map(|line| format!("`{line}`")).collect();
        Some(format!(
            "the build changes tracked files itself ({}{more}): it was run again, then these files were ignored until they \
             change outside of a build; to fix this, add to .devtoolsignore: {}",
            names.join(", "),
            lines.join(", ")
        ))
    }

    /// The ignore lines: a folder for several of its files, else the file.
    fn ignore_lines(&self) -> BTreeSet<String> {
        let siblings = |folder: &Path| self.seen.iter().filter(|path| path.parent() == Some(folder)).count();
        let line = |path: &PathBuf| match path.parent() {
            Some(folder) if folder != Path::new("") && siblings(folder) > 1 => format!("/{}/", folder.display()),
            _ => format!("/{}", path.display()),
        };
        self.seen.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name=content`; not hashed without content.
    fn contents(files: &[&str]) -> ContentHashes {
        let split = |file: &&str| match file.split_once('=') {
            Some((name, content)) => (PathBuf::from(name), content.parse().ok()),
            None => (PathBuf::from(file), None),
        };
        ContentHashes(files.iter().map(split).collect())
    }

    const ACCEPTED: RoundOutcome = RoundOutcome::Done { accept: true };
    const STALE: RoundOutcome = RoundOutcome::Done { accept: false };

    /// Runs a build; each list is what changed in a round.
    fn run_build(
        rounds: &mut RepeatedBuilds,
        between: &[&str],
        changed: &[&[&str]],
        expect: &[RoundOutcome],
    ) -> String {
        rounds.reset(&between.iter().map(PathBuf::from).collect::<Vec<_>>());
        let outcomes: Vec<RoundOutcome> = changed.iter().map(|files| rounds.add_round(contents(files))).collect();
        assert_eq!(outcomes, expect, "{changed:?}");
        rounds.explanation().unwrap_or_default()
    }

    #[test]
    fn files_with_the_same_contents_in_two_rounds_are_changed_by_the_build() {
        let mut rounds = RepeatedBuilds::default();
        assert_eq!(run_build(&mut rounds, &[], &[&[]], &[ACCEPTED]), "");
        // A user's edit during the build: a second round without changes.
        assert_eq!(run_build(&mut rounds, &[], &[&["src/a.ts=1"], &[]], &[RoundOutcome::Repeat, ACCEPTED]), "");
        let generated: &[&str] = &["gen/x.ts=1", "gen/y.ts=2", "v.txt=3"];
        let note = run_build(&mut rounds, &[], &[generated, generated], &[RoundOutcome::Repeat, ACCEPTED]);
        assert!(note.contains("`/gen/`, `/v.txt`"), "{note}");
        // In the next build one round is enough, with the same note.
        assert!(run_build(&mut rounds, &[], &[&["v.txt=4"]], &[ACCEPTED]).contains("`/v.txt`"));
        // A user's edit of another file still counts.
        run_build(&mut rounds, &[], &[&["v.txt=5", "src/a.ts=2"], &["v.txt=6"]], &[RoundOutcome::Repeat, ACCEPTED]);
        // A change between two builds: it counts again.
        run_build(&mut rounds, &["v.txt"], &[&["v.txt=7"], &[]], &[RoundOutcome::Repeat, ACCEPTED]);
    }

    #[test]
    fn an_edit_of_the_user_is_not_attributed_to_the_build() {
        let (repeat, undecided) = (RoundOutcome::Repeat, RoundOutcome::Undecided);
        let mut rounds = RepeatedBuilds::default();
        // A user who never stops typing gets a stale window.
        run_build(&mut rounds, &[], &[&["a=1"], &["b=1"], &["c=1"]], &[repeat, repeat, STALE]);
        // One file, saved in each round: decided without a build.
        run_build(&mut rounds, &[], &[&["a=1"], &["a=2"], &["a=3"]], &[repeat, repeat, undecided]);
        assert_eq!(rounds.decide(&["a".into()]), STALE);
        assert_eq!(run_build(&mut rounds, &[], &[&["a=1"], &["a=2"], &[]], &[repeat, repeat, ACCEPTED]), "");
        // A stamp file with the time of the build does not change without a build.
        run_build(&mut rounds, &[], &[&["s=1"], &["s=2"], &["s=3"]], &[repeat, repeat, undecided]);
        assert_eq!(rounds.decide(&[]), ACCEPTED);
        assert!(rounds.explanation().unwrap().contains("`/s`"));
        run_build(&mut rounds, &[], &[&["s=4"]], &[ACCEPTED]);
        // A user types while the stamp file is still undecided.
        run_build(
            &mut RepeatedBuilds::default(),
            &[],
            &[&["s=1"], &["s=2", "a=1"], &["s=3"]],
            &[repeat, repeat, undecided],
        );
        run_build(
            &mut RepeatedBuilds::default(),
            &[],
            &[&["s=1"], &["s=2"], &["s=3", "a=1"]],
            &[repeat, repeat, STALE],
        );
    }
}
