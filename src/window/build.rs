//! Running the build, and finding out what it was built from.
//!
//! The comparison point is the state of the files when the build *began*: an edit made meanwhile makes the result
//! stale, and is built again before the window is swapped. A build that changes tracked files itself would go on like
//! that for ever: [`Rounds`] finds those files, and they stop counting.
//!
//! Knows the tracker; must not know windows, nor how a step runs (`steps` does).

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::changes::{ChangeTracker, FileSnapshot};
use crate::config::WindowConfig;
use crate::error::Result;
use crate::task_runner;

/// The most rounds of one build: a user who goes on typing gets a window all the same.
const MAX_ROUNDS: usize = 3;

/// How long nobody may save for it to be the build that changes files. Who types with autosave does so more often.
const QUIET: Duration = Duration::from_millis(1500);

/// How a build went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildSummary {
    pub ok: bool,
    pub ended_at_ms: u64,
    pub duration: Duration,
    pub tail: String,
}

/// What was built, and from what.
pub struct CompletedBuild {
    /// What was built, and is to be launched: the files may say something else by now.
    pub recipe: Box<WindowConfig>,
    /// The files when the build began.
    pub baseline: Arc<FileSnapshot>,
    pub duration: Duration,
    pub tail: String,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// A build of one workspace.
pub struct Build<'a> {
    pub recipe: &'a WindowConfig,
    pub tracker: &'a ChangeTracker,
    /// The mark of this workspace's builds, by which a later supervisor finds one that was left behind.
    pub launch_id: &'a str,
}

impl Build<'_> {
    /// Builds until the files hold still, at most [`MAX_ROUNDS`] times. Without steps only looks at the files.
    /// `still` says before each further round whether the commands are those that the user trusts: None when they are
    /// others by now. Dropping the future ends the groups of all steps.
    pub async fn run(
        &self,
        rounds: &mut BuildRounds,
        still: impl Fn() -> Result<bool>,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Option<CompletedBuild>> {
        let mut baseline = self.tracker.take_snapshot().await?;
        let mut built = CompletedBuild {
            recipe: Box::new(self.recipe.clone()),
            baseline: Arc::clone(&baseline),
            duration: Duration::ZERO,
            tail: String::new(),
            notes: vec![],
        };
        if self.recipe.build.is_empty() {
            return Ok(Some(built));
        }
        rounds.begin(&baseline);
        loop {
            let ran = task_runner::run_plan(&self.recipe.build, self.launch_id, progress).await?;
            built.duration += ran.duration;
            built.tail = ran.tail;
            let mut after = self.tracker.take_snapshot().await?;
            let changed = after.changed_paths(&baseline);
            let contents = ContentHashes::of(self.tracker.root(), &changed);
            let mut verdict = rounds.observe(contents);
            if verdict == RoundOutcome::Undecided {
                progress("looking who changes the files that the build changes");
                let later = self.rested(&after).await?;
                verdict = rounds.decide(&later.changed_paths(&after));
                after = later;
            }
            built.notes = ran.left.iter().map(|who| format!("the build left a process behind: {who}")).collect();
            match verdict {
                // What the build itself changed is part of what the window runs.
                RoundOutcome::Done { accept: true } => {
                    rounds.ended = Some(Arc::clone(&after));
                    built.baseline = after;
                }
                RoundOutcome::Done { accept: false } => {
                    rounds.ended = Some(after);
                    built.baseline = baseline;
                }
                RoundOutcome::Repeat | RoundOutcome::Undecided => {
                    if !still()? {
                        return Ok(None);
                    }
                    baseline = after;
                    continue;
                }
            }
            built.notes.extend(rounds.explanation());
            return Ok(Some(built));
        }
    }

    /// The files after a while without a build, or as soon as one of them has changed.
    async fn rested(&self, before: &FileSnapshot) -> Result<Arc<FileSnapshot>> {
        let (mut hints, until) = (self.tracker.subscribe_hints(), Instant::now() + QUIET);
        loop {
            let rested = tokio::time::timeout_at(until, hints.changed()).await.is_err();
            let now = self.tracker.take_snapshot().await?;
            if rested || !now.changed_paths(before).is_empty() {
                return Ok(now);
            }
        }
    }
}

/// Changed files with what stands in them, as far as that is worth a look.
#[derive(Debug, Default)]
struct ContentHashes(BTreeMap<PathBuf, Option<u64>>);

impl ContentHashes {
    /// More files, and larger ones, are not looked into.
    const MOST: usize = 1000;
    const LARGEST: u64 = 16 << 20;

    fn of(root: &Path, changed: &[PathBuf]) -> ContentHashes {
        let content = |index: usize, path: &Path| {
            let file = root.join(path);
            let small = std::fs::metadata(&file).ok().filter(|it| it.is_file() && it.len() <= Self::LARGEST);
            small.filter(|_| index < Self::MOST)?;
            let mut hasher = std::hash::DefaultHasher::new();
            hasher.write(&std::fs::read(&file).ok()?);
            Some(hasher.finish())
        };
        let all = changed.iter().enumerate().map(|(index, path)| (path.clone(), content(index, path)));
        ContentHashes(all.collect())
    }
}

/// What to do after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundOutcome {
    /// Files changed while it ran: build once more.
    Repeat,
    /// The same files changed in every round, each time otherwise: by the build, or by a user who saves all the time.
    Undecided,
    /// Enough; `accept`: all that changed meanwhile was changed by the build itself.
    Done { accept: bool },
}

/// Which tracked files the build changes by itself: those to which it writes the same in two rounds, one after the other,
/// or something else in each of [`MAX_ROUNDS`], while they rest when no build runs.
/// Lives as long as the supervisor, so that a loop costs its extra rounds only once.
#[derive(Debug, Default)]
pub struct BuildRounds {
    round: usize,
    last: ContentHashes,
    /// Files that changed in every round so far, each time otherwise.
    unclear: BTreeSet<PathBuf>,
    /// Files that the build changes each time.
    own: BTreeSet<PathBuf>,
    /// Those of `own` that it changed this time.
    seen: BTreeSet<PathBuf>,
    /// The files when the last build had ended.
    ended: Option<Arc<FileSnapshot>>,
}

impl BuildRounds {
    fn begin(&mut self, now: &FileSnapshot) {
        let outside = self.ended.take().map(|ended| now.changed_paths(&ended)).unwrap_or_default();
        self.forget(&outside);
    }

    /// What changed while no build ran is somebody else's.
    fn forget(&mut self, outside: &[PathBuf]) {
        self.round = 0;
        self.last = ContentHashes::default();
        self.unclear.clear();
        self.seen.clear();
        self.own.retain(|path| !outside.contains(path));
    }

    fn observe(&mut self, changed: ContentHashes) -> RoundOutcome {
        self.round += 1;
        let alike = |(path, content): &(&PathBuf, &Option<u64>)| {
            content.is_some() && self.last.0.get(*path).is_some_and(|last| last == *content)
        };
        let proven = changed.0.iter().filter(alike).map(|(path, _)| path.clone());
        self.own.extend(proven);
        if self.round == 1 {
            self.unclear = changed.0.keys().cloned().collect();
        }
        self.unclear.retain(|path| changed.0.contains_key(path) && !self.own.contains(path));
        self.seen = changed.0.keys().filter(|path| self.own.contains(*path)).cloned().collect();
        let others = changed.0.into_iter().filter(|(path, _)| !self.own.contains(path));
        self.last = ContentHashes(others.collect());
        match (self.last.0.is_empty(), self.round) {
            (true, _) => RoundOutcome::Done { accept: true },
            (false, MAX_ROUNDS..) if self.last.0.keys().all(|path| self.unclear.contains(path)) => {
                RoundOutcome::Undecided
            }
            (false, MAX_ROUNDS..) => RoundOutcome::Done { accept: false },
            (false, _) => RoundOutcome::Repeat,
        }
    }

    /// After a while without a build: when all has rested, what was unclear is the build's own.
    fn decide(&mut self, moved: &[PathBuf]) -> RoundOutcome {
        let accept = moved.is_empty();
        if accept {
            self.seen.extend(self.unclear.iter().cloned());
            self.own.append(&mut self.unclear);
        }
        RoundOutcome::Done { accept }
    }

    /// The files that stopped counting, and the lines that would cure it.
    fn explanation(&self) -> Option<String> {
        if self.seen.is_empty() {
            return None;
        }
        let names: Vec<_> = self.seen.iter().take(5).map(|path| path.display().to_string()).collect();
        let more = if self.seen.len() > 5 { ", …" } else { "" };
        let lines: Vec<_> = self.cures().into_iter().take(5).map(|line| format!("`{line}`")).collect();
        Some(format!(
            "the build changes tracked files itself ({}{more}): built again, then stopped; they do not count until they \
             change outside of a build. To cure it, add to .devtoolsignore: {}",
            names.join(", "),
            lines.join(", ")
        ))
    }

    /// A folder when it holds several of the files, else the file.
    fn cures(&self) -> BTreeSet<String> {
        let siblings = |folder: &Path| self.seen.iter().filter(|path| path.parent() == Some(folder)).count();
        let cure = |path: &PathBuf| match path.parent() {
            Some(folder) if folder != Path::new("") && siblings(folder) > 1 => format!("/{}/", folder.display()),
            _ => format!("/{}", path.display()),
        };
        self.seen.iter().map(cure).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name=content`; without content nobody has looked into it.
    fn contents(files: &[&str]) -> ContentHashes {
        let split = |file: &&str| match file.split_once('=') {
            Some((name, content)) => (PathBuf::from(name), content.parse().ok()),
            None => (PathBuf::from(file), None),
        };
        ContentHashes(files.iter().map(split).collect())
    }

    const ENOUGH: RoundOutcome = RoundOutcome::Done { accept: true };
    const STALE: RoundOutcome = RoundOutcome::Done { accept: false };

    /// Each list is what changed in a round of one build.
    fn built(rounds: &mut BuildRounds, outside: &[&str], changed: &[&[&str]], expect: &[RoundOutcome]) -> String {
        rounds.forget(&outside.iter().map(PathBuf::from).collect::<Vec<_>>());
        let verdicts: Vec<RoundOutcome> = changed.iter().map(|files| rounds.observe(contents(files))).collect();
        assert_eq!(verdicts, expect, "{changed:?}");
        rounds.explanation().unwrap_or_default()
    }

    #[test]
    fn what_a_build_writes_alike_twice_is_its_own_and_known_from_then_on() {
        let mut rounds = BuildRounds::default();
        assert_eq!(built(&mut rounds, &[], &[&[]], &[ENOUGH]), "");
        // A user's edit during the build: built again, then still.
        assert_eq!(built(&mut rounds, &[], &[&["src/a.ts=1"], &[]], &[RoundOutcome::Repeat, ENOUGH]), "");
        let generated: &[&str] = &["gen/x.ts=1", "gen/y.ts=2", "v.txt=3"];
        let told = built(&mut rounds, &[], &[generated, generated], &[RoundOutcome::Repeat, ENOUGH]);
        assert!(told.contains("`/gen/`, `/v.txt`"), "{told}");
        // From then on one round is enough, and it is said again.
        assert!(built(&mut rounds, &[], &[&["v.txt=4"]], &[ENOUGH]).contains("`/v.txt`"));
        // A user's edit beside it is still seen.
        built(&mut rounds, &[], &[&["v.txt=5", "src/a.ts=2"], &["v.txt=6"]], &[RoundOutcome::Repeat, ENOUGH]);
        // Changed while no build ran, it is somebody else's again.
        built(&mut rounds, &["v.txt"], &[&["v.txt=7"], &[]], &[RoundOutcome::Repeat, ENOUGH]);
    }

    #[test]
    fn an_edit_is_not_taken_for_the_builds_own() {
        let (again, doubt) = (RoundOutcome::Repeat, RoundOutcome::Undecided);
        let mut rounds = BuildRounds::default();
        // Somebody who never stops typing gets a window that is stale.
        built(&mut rounds, &[], &[&["a=1"], &["b=1"], &["c=1"]], &[again, again, STALE]);
        // In one file, saved in each round: looked at again when no build runs.
        built(&mut rounds, &[], &[&["a=1"], &["a=2"], &["a=3"]], &[again, again, doubt]);
        assert_eq!(rounds.decide(&["a".into()]), STALE);
        assert_eq!(built(&mut rounds, &[], &[&["a=1"], &["a=2"], &[]], &[again, again, ENOUGH]), "");
        // A stamp with the time of the build rests.
        built(&mut rounds, &[], &[&["s=1"], &["s=2"], &["s=3"]], &[again, again, doubt]);
        assert_eq!(rounds.decide(&[]), ENOUGH);
        assert!(rounds.explanation().unwrap().contains("`/s`"));
        built(&mut rounds, &[], &[&["s=4"]], &[ENOUGH]);
        // Beside a stamp that is not known yet somebody types.
        built(&mut BuildRounds::default(), &[], &[&["s=1"], &["s=2", "a=1"], &["s=3"]], &[again, again, doubt]);
        built(&mut BuildRounds::default(), &[], &[&["s=1"], &["s=2"], &["s=3", "a=1"]], &[again, again, STALE]);
    }
}
