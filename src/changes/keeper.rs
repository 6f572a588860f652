//! The task behind the tracker: keeps the truth of one workspace, warm while its watch can vouch for it.
//!
//! Owns the order of things: fence before look, watch before read, one fence for the questions that wait, a new watch
//! after a lost one. Must not know what the answers are used for.
//!
//! ```text
//!              start                    fence fails, overflow, no watches left
//!   Rising ───────────▶ Standing ─────────────────────────────────▶ Fallen{because, retry_at}
//!     ▲   watches set    (warm)                                       (cold)      │
//!     └───────────────────────────────────────────────────────────────────────────┘
//!                        a question after `retry_at`
//! ```
//! Only in `Standing` are answers warm; otherwise each question is answered by a walk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::change::{Check, Explanation, How};
use super::name;
use super::problem::Problem;
use super::rise::{Risen, read_watched, rise};
use super::snapshot::Snapshot;
use super::tracker::{Confirm, Options};
use super::truth::{Open, Truth, now_ms};
use super::watch::{Lost, Touch, Touched, Watch};
use crate::error::{Error, Kind, Result};

/// Touched paths beyond this are looked at on the blocking pool, not on the task's own thread.
const MOST_INLINE: usize = 64;
/// How many questions wait, and share one fence, at most; further ones wait to be let in.
pub(super) const MOST_AT_ONCE: usize = 256;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// A watch that stood so long has earned a quick retry.
const PROVEN: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) enum Ask {
    Snapshot(Reply<Arc<Snapshot>>),
    Check(Reply<Check>),
    Explain(PathBuf, Reply<Explanation>),
    Baseline(Arc<Snapshot>, oneshot::Sender<()>),
}

type Reply<T> = oneshot::Sender<Result<T>>;

/// Whether news of edits can be had.
enum Ears {
    Rising(JoinHandle<Result<Risen, Lost>>),
    Standing { watch: Watch, since: Instant },
    Fallen { because: Lost, retry_at: Instant },
}

pub(super) struct Keeper {
    options: Options,
    /// Away only while the blocking pool works on it.
    truth: Option<Truth>,
    ears: Ears,
    pause: Duration,
    /// Folders that were watched since the fence before the last: see `apply`.
    recent: Vec<Vec<u8>>,
    problems: watch::Sender<Vec<Problem>>,
    hints: watch::Sender<u64>,
}

impl Keeper {
    pub fn new(options: Options, problems: watch::Sender<Vec<Problem>>, hints: watch::Sender<u64>) -> Keeper {
        Keeper {
            truth: Some(Truth::new(options.root.clone(), options.confirm, &options.derived)),
            ears: Ears::Rising(rise(&options, &hints, Arc::default(), None)),
            pause: FIRST_PAUSE,
            recent: Vec::new(),
            options,
            problems,
            hints,
        }
    }

    /// Answers until the last handle is dropped.
    pub async fn run(mut self, mut inbox: mpsc::Receiver<Ask>) {
        let mut asks = Vec::new();
        loop {
            tokio::select! {
                biased;
                risen = risen(&mut self.ears) => self.stand(risen),
                count = inbox.recv_many(&mut asks, MOST_AT_ONCE) => {
                    if count == 0 {
                        return;
                    }
                    self.answer(&mut asks).await;
                }
            }
        }
    }

    /// Answers questions that were all asked before this call: one look at the truth serves them all.
    async fn answer(&mut self, asks: &mut Vec<Ask>) {
        let asked_at_ms = now_ms();
        let how = match asks.iter().all(|ask| matches!(ask, Ask::Baseline(..))) {
            true => Ok(How::Warm),
            false => self.refresh().await,
        };
        for ask in asks.drain(..) {
            match ask {
                Ask::Snapshot(reply) => drop(reply.send(self.snapshot(&how, asked_at_ms).await)),
                Ask::Check(reply) => drop(reply.send(self.check(&how).await)),
                Ask::Explain(path, reply) => drop(reply.send(self.explain(&how, path).await)),
                Ask::Baseline(baseline, done) => {
                    self.blocking(move |truth| truth.set_baseline(baseline)).await;
                    let _ = done.send(());
                }
            }
        }
        self.tell_problems();
    }

    async fn snapshot(&mut self, how: &Result<How, Cold>, asked_at_ms: u64) -> Result<Arc<Snapshot>> {
        told(how)?;
        match self.options.confirm {
            Confirm::Mtime => Ok(Arc::new(self.truth().snapshot(asked_at_ms))),
            Confirm::Content => Ok(Arc::new(self.blocking(move |truth| truth.snapshot(asked_at_ms)).await)),
        }
    }

    async fn check(&mut self, how: &Result<How, Cold>) -> Result<Check> {
        let how = told(how)?;
        self.compare_contents().await;
        self.truth().check(how).ok_or_else(|| {
            Error::new(
                Kind::NotFound,
                "there is nothing to compare the workspace with: no window was built from it yet",
            )
            .hint("`tether start` builds and launches one")
        })
    }

    async fn explain(&mut self, how: &Result<How, Cold>, path: PathBuf) -> Result<Explanation> {
        told(how)?;
        self.compare_contents().await;
        Ok(self.truth().explain(&path))
    }

    async fn compare_contents(&mut self) {
        if self.truth().wants_contents() {
            self.blocking(Truth::compare_contents).await;
        }
    }

    /// Brings the truth up to date, warm if the watch can vouch for it.
    async fn refresh(&mut self) -> Result<How, Cold> {
        if let Ears::Rising(rising) = &mut self.ears
            && rising.is_finished()
        {
            let risen = risen(&mut self.ears).await;
            self.stand(risen);
        }
        let because = match &mut self.ears {
            Ears::Rising(_) => Lost::NotYet,
            Ears::Fallen { because, .. } => because.clone(),
            Ears::Standing { watch, .. } => match watch.fence().await {
                Ok(touched) => match self.apply(touched).await {
                    Ok(()) => return Ok(How::Warm),
                    Err(lost) => self.fall(lost),
                },
                Err(lost) => self.fall(lost),
            },
        };
        let scanned = self.blocking(Truth::scan).await;
        self.retry();
        let because = because.to_string();
        scanned
            .map(|()| How::Cold { because })
            .map_err(|error| Cold { root: self.options.root.clone(), error: Arc::new(error) })
    }

    /// Enters what was touched.
    async fn apply(&mut self, touched: Touched) -> Result<(), Lost> {
        if touched.is_empty() {
            self.recent.clear();
            return Ok(());
        }
        let mut dirty = relative(&self.options.root, touched);
        self.revisit(&mut dirty);
        let open = match dirty.len() {
            0..=MOST_INLINE => self.truth().apply(&dirty),
            _ => self.blocking(move |truth| truth.apply(&dirty)).await,
        };
        if open.rules || !open.folders.is_empty() { self.read_open(open).await } else { Ok(()) }
    }

    /// notify forgets a watch by path when a folder moves away. If that folder was found under its new name before the
    /// news of the move was read, the watch that goes is the new one's. Hence folders that were watched in the last
    /// round are watched and read again if anything moved; one round is enough, for the news of a move precedes the
    /// watch that it can undo.
    fn revisit(&mut self, dirty: &mut BTreeMap<Vec<u8>, Touch>) {
        let recent = std::mem::take(&mut self.recent);
        if dirty.values().any(|touch| touch.moved) {
            for folder in recent {
                dirty.entry(folder).or_default().moved = true;
            }
        }
    }

    /// Watches and reads new folders, or everything under new rules.
    async fn read_open(&mut self, open: Open) -> Result<(), Lost> {
        let ears = std::mem::replace(&mut self.ears, Ears::Fallen { because: Lost::NotYet, retry_at: Instant::now() });
        let Ears::Standing { mut watch, since } = ears else { return Err(Lost::NotYet) };
        let (watch, read) = self
            .blocking(move |truth| {
                let read = read_watched(truth, &mut watch, &open);
                (watch, read)
            })
            .await;
        self.ears = Ears::Standing { watch, since };
        self.recent = read?;
        Ok(())
    }

    fn stand(&mut self, risen: Result<Risen, Lost>) {
        match risen {
            Ok(Risen { watch, rules, scanned }) => {
                let truth = self.truth();
                truth.set_rules(rules);
                truth.adopt(scanned);
                self.ears = Ears::Standing { watch, since: Instant::now() };
                // What changed until now was not hinted at.
                self.hints.send_modify(|count| *count += 1);
                tracing::debug!(root = %self.options.root.display(), "watches stand");
                self.tell_problems();
            }
            Err(lost) => drop(self.fall(lost)),
        }
    }

    /// Gives the watch up; the next try waits longer each time, unless it had stood for a while.
    fn fall(&mut self, because: Lost) -> Lost {
        tracing::warn!(root = %self.options.root.display(), %because, "the watch is lost; answers are cold");
        if matches!(&self.ears, Ears::Standing { since, .. } if since.elapsed() > PROVEN) {
            self.pause = FIRST_PAUSE;
        }
        let retry_at = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.ears = Ears::Fallen { because: because.clone(), retry_at };
        // Whoever waits for hints must ask, as there will be none for a while.
        self.hints.send_modify(|count| *count += 1);
        because
    }

    /// Sets the watches again once the pause is over. Questions drive it: a tracker that nobody asks does nothing.
    fn retry(&mut self) {
        if matches!(self.ears, Ears::Fallen { retry_at, .. } if Instant::now() >= retry_at) {
            let truth = self.truth();
            let (tree, rules) = (Arc::clone(truth.tree()), truth.tree_rules());
            self.ears = Ears::Rising(rise(&self.options, &self.hints, tree, rules));
        }
    }

    fn truth(&mut self) -> &mut Truth {
        let Options { root, confirm, derived, .. } = &self.options;
        self.truth.get_or_insert_with(|| Truth::new(root.clone(), *confirm, derived))
    }

    /// Lets the blocking pool work on the truth.
    async fn blocking<T: Send + 'static>(&mut self, work: impl FnOnce(&mut Truth) -> T + Send + 'static) -> T {
        self.truth();
        let mut truth = self.truth.take();
        let worked = tokio::task::spawn_blocking(move || {
            let done = truth.as_mut().map(work);
            (truth, done)
        });
        match worked.await {
            Ok((truth, Some(done))) => {
                self.truth = truth;
                done
            }
            Ok((_, None)) => unreachable!("the truth was put in place above"),
            // A panic is a bug of ours: it goes on in this task, and questions then say that the tracker has ended.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    fn tell_problems(&mut self) {
        let mut problems = self.truth().problems();
        if let Ears::Fallen { because, .. } = &self.ears {
            problems.push(watch_problem(&self.options.root, because));
        }
        self.problems.send_if_modified(|told| {
            let news = *told != problems;
            *told = problems;
            news
        });
    }
}

/// Why not even a walk could tell.
#[derive(Clone, Debug)]
struct Cold {
    root: PathBuf,
    error: Arc<std::io::Error>,
}

fn told(how: &Result<How, Cold>) -> Result<How> {
    how.clone().map_err(|Cold { root, error }| {
        let gone = matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory);
        let (kind, what) = if gone { (Kind::NotFound, "is gone") } else { (Kind::Other, "cannot be read") };
        Error::new(kind, format!("the workspace folder {} {what}", root.display()))
            .because(error)
            .hint("`tether shutdown` ends the supervisor of a workspace that is no longer there")
    })
}

/// Pends unless the watches are being set up: then it waits for that.
async fn risen(ears: &mut Ears) -> Result<Risen, Lost> {
    match ears {
        Ears::Rising(rising) => match rising.await {
            Ok(risen) => risen,
            Err(error) => Err(Lost::Watcher(format!("setting the watches failed: {error}"))),
        },
        _ => std::future::pending().await,
    }
}

/// Paths relative to the root; those of a folder that was renamed above us fall away with the root itself.
fn relative(root: &Path, touched: Touched) -> BTreeMap<Vec<u8>, Touch> {
    let inside = touched.iter().filter_map(|(path, touch)| Some((path.strip_prefix(root).ok()?, touch)));
    inside.map(|(rel, touch)| (name::bytes(rel).to_vec(), *touch)).collect()
}

fn watch_problem(root: &Path, because: &Lost) -> Problem {
    let problem = Problem::new(root, format_args!("checks read every tracked file, because {because}"));
    match because {
        Lost::NoWatchesLeft => problem.hint("sudo sysctl fs.inotify.max_user_watches=524288"),
        Lost::NoInstancesLeft => problem.hint("sudo sysctl fs.inotify.max_user_instances=512"),
        Lost::Overflow => problem.hint("sudo sysctl fs.inotify.max_queued_events=131072"),
        _ => problem,
    }
}
