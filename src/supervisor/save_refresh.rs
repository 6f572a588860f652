//! Refreshes the window after a save, without a request: where `[refresh] on = "save"` says so, or a front end that is connected
//! asks for it.
//!
//! ```text
//! a tracked file changes ─▶ quiet ─▶ build, and the cheapest refresh, as for a request ─▶ fresh
//!                                       ├─ it fails: the next change tries again; one that came meanwhile at once
//!                                       └─ held by the debugger: tried again when the program runs
//! ```
//! What was tried and did not help is not tried again until another file changes: a build that fails, or that writes tracked files
//! itself, ends. Does not decide how the window is refreshed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout;
use tracing::info;

use super::context::SupervisorContext;
use crate::config::refreshes_on_save;
use crate::timeline::event_now;
use crate::vocabulary::TimelineKind;
use crate::window::{Caller, FileChange, Window, WindowFeed};

/// For how long no file changes once a burst of saves is over: a formatter writes right after the editor, a checkout many files.
const QUIET: Duration = Duration::from_millis(60);
/// How long files may go on changing before the window is refreshed all the same.
const MAX_BURST: Duration = Duration::from_secs(2);
/// How often in a row a build that fails is tried because it has itself written tracked files.
const MAX_BUILT: u32 = 3;
/// And because of any files that have changed while it ran.
const MAX_ATTEMPTS: u32 = 10;

/// Refreshes the window after saves until the window's actor has ended.
pub(super) async fn refresh_on_save(supervisor: Arc<SupervisorContext>) {
    let mut saves =
        SaveRefresh { feed: WindowFeed::follow(&supervisor.window), supervisor: &supervisor, tried: None, held: None };
    let (mut asking, mut sessions) = (supervisor.save_refreshers.subscribe(), supervisor.sessions.watch());
    let mut published = supervisor.window.watch();
    // Without a window there is nothing to refresh, and the files are not watched.
    while published.wait_for(|now| now.window.is_some()).await.is_ok() {
        let is_open = tokio::select! {
            is_open = saves.feed.wait_for_change() => is_open,
            Ok(()) = asking.changed() => true,
            // A program that goes on no longer holds the refresh.
            Ok(()) = sessions.changed(), if saves.held.is_some() => true,
        };
        if !is_open || !saves.handle_change().await {
            return;
        }
    }
}

/// The tracked files that differ from those that the window runs.
type ChangedFiles = (usize, Vec<FileChange>);

struct SaveRefresh<'a> {
    feed: WindowFeed,
    supervisor: &'a SupervisorContext,
    /// The changes that a refresh was tried for, and which are still there.
    tried: Option<ChangedFiles>,
    /// Why the last refresh has not taken place.
    held: Option<String>,
}

impl SaveRefresh<'_> {
    /// `false`: the window's actor has ended.
    async fn handle_change(&mut self) -> bool {
        let window = &self.supervisor.window;
        let is_asked = *self.supervisor.save_refreshers.borrow() > 0;
        if window.watch().borrow().window.is_none()
            || !(is_asked || refreshes_on_save(&self.supervisor.paths.workspace))
        {
            return true;
        }
        let began = Instant::now();
        while began.elapsed() < MAX_BURST {
            match timeout(QUIET, self.feed.wait_for_change()).await {
                Ok(true) => {}
                Ok(false) => return false,
                Err(_) => break,
            }
        }
        // What each attempt has written: by the build itself.
        let mut built: Option<BTreeSet<PathBuf>> = None;
        for attempt in 1..=MAX_ATTEMPTS {
            let changed = changed_files(window).await;
            if changed.is_none() || changed == self.tried {
                self.held = self.held.take().filter(|_| changed.is_some());
                return true;
            }
            if self.refresh().await {
                return true;
            }
            let now = changed_files(window).await;
            let written = differing_paths(&changed, &now);
            let in_each: BTreeSet<PathBuf> =
                built.iter().fold(written.clone(), |written, known| written.intersection(known).cloned().collect());
            // What is not the build's own is a later save.
            let is_edited = !written.is_subset(&in_each);
            built = Some(in_each);
            self.tried = now;
            if written.is_empty() || (attempt >= MAX_BUILT && !is_edited) {
                return true;
            }
            self.tried = None;
        }
        self.tried = changed_files(window).await;
        true
    }

    /// `false`: it has failed.
    async fn refresh(&mut self) -> bool {
        let window = &self.supervisor.window;
        let outcome = window.refresh_after_save(&SaveCaller).await;
        let held = match outcome {
            Ok(note) => note.filter(|_| window.is_replacement_blocked()),
            Err(error) => {
                info!("the window was not refreshed after a save: {error}");
                return false;
            }
        };
        if held.is_some() && held != self.held {
            let text = held.clone().unwrap_or_default();
            self.supervisor.timeline().record(event_now(TimelineKind::RefreshHeld, text));
        }
        self.tried = if held.is_some() { None } else { changed_files(window).await };
        self.held = held;
        true
    }
}

/// `None`: the window is up to date, or that cannot be found out.
async fn changed_files(window: &Window) -> Option<ChangedFiles> {
    let check = window.inspect_changes().await.ok()?.check?;
    check.stale.then_some((check.total, check.changed))
}

/// The files that are in one of the two and not, or otherwise, in the other.
fn differing_paths(before: &Option<ChangedFiles>, after: &Option<ChangedFiles>) -> BTreeSet<PathBuf> {
    let files = |of: &Option<ChangedFiles>| of.iter().flat_map(|(_, files)| files.clone()).collect::<Vec<_>>();
    let (before, after) = (files(before), files(after));
    let is_new = |one: &&FileChange, others: &[FileChange]| !others.contains(one);
    let gone = before.iter().filter(|one| is_new(one, &after));
    gone.chain(after.iter().filter(|one| is_new(one, &before))).map(|one| one.path.clone()).collect()
}

/// The save: nobody waits for what it leads to.
struct SaveCaller;

impl Caller for SaveCaller {
    fn report_progress(&self, progress: &str) {
        info!("after a save: {progress}");
    }

    fn is_interrupted(&self) -> bool {
        false
    }
}
