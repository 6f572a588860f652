//! Running the build, and finding out what it was built from.
//!
//! The comparison point is the state of the files when the build *began*: an edit made meanwhile makes the result
//! stale, and is built again before the window is swapped. A build that changes tracked files itself would go on like
//! that for ever: [`Rounds`] finds those files, and they stop counting.
//!
//! Knows the tracker; must not know windows, nor how a step runs (`steps` does).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::changes::{Snapshot, Tracker};
use crate::config::Recipe;
use crate::error::Result;
use crate::steps;

/// The most rounds of one build: a user who goes on typing gets a window all the same.
const MAX_ROUNDS: usize = 3;

/// How a build went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastBuild {
    pub ok: bool,
    pub ended_at_ms: u64,
    pub duration: Duration,
    pub tail: String,
}

/// What was built, and from what.
pub struct Built {
    /// What was built, and is to be launched: the files may say something else by now.
    pub recipe: Box<Recipe>,
    /// The files when the build began.
    pub baseline: Arc<Snapshot>,
    pub duration: Duration,
    pub tail: String,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// A build of one workspace.
pub struct Build<'a> {
    pub recipe: &'a Recipe,
    pub tracker: &'a Tracker,
    /// The mark of this workspace's builds, by which a later supervisor finds one that was left behind.
    pub mark: &'a str,
}

impl Build<'_> {
    /// Builds until the files hold still, at most [`MAX_ROUNDS`] times. Without steps only looks at the files.
    /// Dropping the future ends the groups of all steps.
    pub async fn run(&self, rounds: &mut Rounds, progress: &(dyn Fn(&str) + Send + Sync)) -> Result<Built> {
        let mut baseline = self.tracker.snapshot().await?;
        let mut built = Built {
            recipe: Box::new(self.recipe.clone()),
            baseline: Arc::clone(&baseline),
            duration: Duration::ZERO,
            tail: String::new(),
            notes: vec![],
        };
        if self.recipe.build.is_empty() {
            return Ok(built);
        }
        rounds.begin();
        loop {
            let ran = steps::run(&self.recipe.build, self.mark, progress).await?;
            built.duration += ran.duration;
            built.tail = ran.tail;
            let after = self.tracker.snapshot().await?;
            let verdict = rounds.observe(after.differences(&baseline));
            built.notes = ran.left.iter().map(|who| format!("the build left a process behind: {who}")).collect();
            match verdict {
                // What the build itself changed is part of what the window runs.
                Verdict::Settled { accept: true } => built.baseline = after,
                Verdict::Settled { accept: false } => built.baseline = baseline,
                Verdict::Again => {
                    baseline = after;
                    continue;
                }
            }
            built.notes.extend(rounds.explanation());
            return Ok(built);
        }
    }
}

/// What to do after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Files changed while it ran: build once more.
    Again,
    /// Enough; `accept`: all that changed meanwhile was changed by the build itself.
    Settled { accept: bool },
}

/// Which tracked files the build changes by itself: those that changed in two rounds, one after the other.
/// Lives as long as the supervisor, so that a loop costs its extra round only once.
#[derive(Debug, Default)]
pub struct Rounds {
    round: usize,
    last: BTreeSet<PathBuf>,
    /// Files that the build changes each time.
    own: BTreeSet<PathBuf>,
    /// Those of `own` that it changed this time.
    seen: BTreeSet<PathBuf>,
}

impl Rounds {
    fn begin(&mut self) {
        self.round = 0;
        self.last.clear();
        self.seen.clear();
    }

    fn observe(&mut self, changed: impl IntoIterator<Item = PathBuf>) -> Verdict {
        self.round += 1;
        let changed: BTreeSet<PathBuf> = changed.into_iter().collect();
        self.own.extend(changed.intersection(&self.last).cloned());
        self.seen = changed.intersection(&self.own).cloned().collect();
        let others: BTreeSet<PathBuf> = changed.difference(&self.own).cloned().collect();
        self.last = others;
        match (self.last.is_empty(), self.round) {
            (true, _) => Verdict::Settled { accept: true },
            (false, MAX_ROUNDS..) => Verdict::Settled { accept: false },
            (false, _) => Verdict::Again,
        }
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
            "the build changes tracked files itself ({}{more}): built twice, then stopped; they do not count until they \
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

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn a_loop_is_found_in_the_second_round_and_known_from_then_on() {
        let mut rounds = Rounds::default();
        let mut check = |begin: bool, changed: &[&str], expect| {
            if begin {
                rounds.begin();
            }
            assert_eq!(rounds.observe(paths(changed)), expect, "{changed:?}");
            rounds.explanation().unwrap_or_default()
        };
        let (enough, again) = (Verdict::Settled { accept: true }, Verdict::Again);
        assert_eq!(check(true, &[], enough), "");
        // A user's edit during the build: built again, then still.
        assert_eq!(check(true, &["src/a.ts"], again), "");
        assert_eq!(check(false, &[], enough), "");
        // The build writes two files each time.
        check(true, &["gen/x.ts", "gen/y.ts", "v.txt"], again);
        let told = check(false, &["gen/x.ts", "gen/y.ts", "v.txt"], enough);
        assert!(told.contains("`/gen/`, `/v.txt`"), "{told}");
        // From then on one round is enough, and it is said again.
        assert!(check(true, &["v.txt"], enough).contains("`/v.txt`"));
        // A user's edit beside it is still seen.
        check(true, &["v.txt", "src/a.ts"], again);
        check(false, &["v.txt"], enough);
        // Somebody who never stops typing gets a window that is stale.
        check(true, &["a"], again);
        check(false, &["b"], again);
        check(false, &["c"], Verdict::Settled { accept: false });
    }
}
