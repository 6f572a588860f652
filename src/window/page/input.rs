//! A batch of actions, done in order, stopping at the first that fails.
//!
//! ```text
//! action ──► wait until its element can be acted on ──► events of mouse or keys ──► wait until the page has settled
//! ```
//! One batch at a time acts on a window. A page counts as settled when it has drawn twice without changing; when it has
//! begun to show another document, when that one has been read.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::Page;
use super::actions::{Action, At, Does, Until};
use super::core::{Core, Trouble};
use super::inside::Found;
use super::keys::{Chord, Key};
use super::mouse::{self, Needs};
use super::obstacle::{Obstacle, unknown_key};
use super::refs::lock;
use super::snapshot::{Look, Snapshot};
use crate::cdp::types::{InsertText, KeyEvent, SetFocusEmulation};
use crate::error::Result;

/// How long a page that changes all the time is waited for.
const SETTLING: Duration = Duration::from_millis(200);
/// For how long it must not change before it is looked at after the last action, and how long that is waited for.
const QUIET: Duration = Duration::from_millis(100);
const CALMING: Duration = Duration::from_millis(1000);
/// How long the page may take for an event itself.
const EVENT: Duration = Duration::from_secs(5);
/// A longer text is not typed key by key.
const MOST_KEYS: usize = 500;

/// What a batch did.
#[derive(Clone, Debug)]
pub struct Acted {
    pub steps: Vec<Step>,
    pub snapshot: Option<Snapshot>,
}

/// What an action did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// `click e12 button "Run"`
    pub did: String,
    /// What happened besides: dialogs, downloads, another document, another page.
    pub notes: Vec<String>,
}

impl Page {
    /// Does the actions, and looks at the page afterwards when asked to. Errors name the action that failed, why, and
    /// what was done before it.
    pub async fn act(&self, actions: &[Action], page: Option<&str>, look: Option<usize>) -> Result<Acted> {
        let core = &self.core;
        let _turn = core.shared.records.acting.lock().await;
        let mut session = core.page(page, "cannot act on the page").await?;
        // Keys go to the page whether or not its window is the one in front.
        core.call(Some(&session), &SetFocusEmulation { enabled: true }, EVENT).await.map_err(|it| core.explain(it))?;
        let mut steps = Vec::new();
        for action in actions {
            if let Some(page) = action.does.place().and_then(|at| core.page_at(&at)) {
                session = page;
            }
            match core.step(&session, action).await {
                Ok(step) => steps.push(step),
                Err(obstacle) => return Err(core.failed(obstacle, action, actions.len(), &steps)),
            }
        }
        let snapshot = match look {
            Some(max) => {
                Some(self.look_afterwards(&session, &Look { max, from: None, page: page.map(str::to_owned) }).await?)
            }
            None => None,
        };
        Ok(Acted { steps, snapshot })
    }

    /// Looks at the page that was acted on, once it has settled; when that was closed, at the one that is left.
    async fn look_afterwards(&self, session: &str, look: &Look) -> Result<Snapshot> {
        let core = &self.core;
        let attached = || lock(&core.shared.view).attached(session).cloned();
        let visits = attached().map_or(0, |attached| attached.visits);
        core.settle(session, visits, QUIET, CALMING).await.map_err(|trouble| core.explain(trouble))?;
        let told = core.snapshot_of(session, None, look).await;
        if told.is_err() && attached().is_none() { self.snapshot(look).await } else { told }
    }
}

impl Does {
    /// The place that says which page is meant.
    fn place(&self) -> Option<At> {
        match self {
            Does::Click { at, .. } | Does::Hover { at } | Does::Drag { from: at, .. } => Some(at.clone()),
            Does::Scroll { at, .. } => at.clone(),
            Does::Type { into: name, .. } | Does::Press { at: name, .. } => name.clone().map(At::Ref),
            Does::Wait(Until::Gone(name)) => Some(At::Ref(name.clone())),
            Does::Wait(_) => None,
        }
    }
}

impl Core {
    /// Does one action, and tells what came of it.
    async fn step(&self, page: &str, action: &Action) -> Result<Step, Obstacle> {
        let before = lock(&self.shared.view).attached(page).map_or(0, |attached| attached.visits);
        let until = Instant::now() + action.timeout;
        let target = self.carry(page, &action.does, until).await?;
        self.settle(page, before, Duration::ZERO, SETTLING).await?;
        let mut did = action.does.to_string();
        if let Some(target) = target {
            did = format!("{did}: {target}");
        }
        let mut view = lock(&self.shared.view);
        let mut notes = view.take_notices();
        match view.attached(page) {
            Some(now) if now.visits != before => notes.push(format!("the page went to {}", now.url)),
            None => notes.push("the page was closed".into()),
            Some(_) => {}
        }
        Ok(Step { did, notes })
    }

    /// Does it; answers what it was done to, by role and name.
    async fn carry(&self, page: &str, does: &Does, until: Instant) -> Result<Option<String>, Obstacle> {
        let click = Needs { enabled: true, hit: true };
        let reach = Needs { enabled: false, hit: true };
        match does {
            Does::Click { at, button, count } => {
                if let At::Ref(name) = at
                    && let Some(target) = self.choose(name).await?
                {
                    return Ok(Some(target));
                }
                let (point, target) = self.aim(page, at, click, until).await?;
                self.mouse(page, mouse::clicked(point, *button, *count), EVENT).await?;
                Ok(target)
            }
            Does::Hover { at } => {
                let (point, target) = self.aim(page, at, reach, until).await?;
                self.mouse(page, vec![mouse::moved(point)], EVENT).await?;
                Ok(target)
            }
            Does::Drag { from, to } => {
                // The second may scroll the first away: whoever drags over more than is visible is told so.
                let (end, onto) = self.aim(page, to, reach, until).await?;
                let (start, target) = self.aim(page, from, click, until).await?;
                let (end, _) = if let At::Ref(_) = to { self.aim(page, to, reach, until).await? } else { (end, None) };
                self.drag(page, start, end, EVENT).await?;
                Ok(target.zip(onto).map(|(what, onto)| format!("{what} onto {onto}")))
            }
            Does::Scroll { at, by } => {
                let needs = Needs { enabled: false, hit: false };
                let (point, target) = match at {
                    Some(at) => self.aim(page, at, needs, until).await?,
                    None => (self.middle(page, EVENT).await?, None),
                };
                if let Some(by) = by {
                    self.mouse(page, mouse::wheeled(point, *by), EVENT).await?;
                }
                Ok(target)
            }
            Does::Type { into, text } => {
                let target = self.focus(into.as_deref(), until).await?;
                self.type_in(page, text).await?;
                Ok(target)
            }
            Does::Press { at, keys, count } => {
                let chords: Result<Vec<Chord>, String> = keys.split_whitespace().map(Chord::parse).collect();
                let chords = chords.map_err(|name| unknown_key(&name))?;
                let target = self.focus(at.as_deref(), until).await?;
                for chord in chords.iter().cycle().take(chords.len() * *count as usize) {
                    self.keys(page, chord.events()).await?;
                }
                Ok(target)
            }
            Does::Wait(what) => self.wait(page, what, until).await.map(|()| None),
        }
    }

    /// A choice of a closed list is not drawn by the page, and cannot be clicked.
    async fn choose(&self, name: &str) -> Result<Option<String>, Obstacle> {
        let handle = self.handle(name)?;
        let chosen: Option<Found> = self.inside(&handle, &format!("choose({})", handle.number), EVENT, name).await?;
        match chosen {
            Some(found) => Ok(Some(self.fitting(&handle, name, found)?.target.unwrap_or_default())),
            None => Ok(None),
        }
    }

    async fn focus(&self, name: Option<&str>, until: Instant) -> Result<Option<String>, Obstacle> {
        let Some(name) = name else { return Ok(None) };
        let handle = self.handle(name)?;
        let left = until.saturating_duration_since(Instant::now());
        let call = format!("focus({}, {})", handle.number, left.as_millis());
        let found: Found = self.inside(&handle, &call, left, name).await?;
        Ok(self.fitting(&handle, name, found)?.target)
    }

    async fn type_in(&self, page: &str, text: &str) -> Result<(), Trouble> {
        // The end of a line is one key, however it is written.
        let text = text.replace("\r\n", "\n");
        if text.chars().count() > MOST_KEYS {
            return self.insert(page, text).await;
        }
        let mut typed: Vec<KeyEvent> = Vec::new();
        for letter in text.chars() {
            match Key::typing(letter) {
                Some(key) => typed.extend(key.events(0)),
                None => {
                    self.keys(page, std::mem::take(&mut typed)).await?;
                    self.insert(page, letter.into()).await?;
                }
            }
        }
        self.keys(page, typed).await
    }

    async fn insert(&self, page: &str, text: String) -> Result<(), Trouble> {
        self.call(Some(page), &InsertText { text }, EVENT).await.map(drop)
    }

    async fn keys(&self, page: &str, events: Vec<KeyEvent>) -> Result<(), Trouble> {
        let sent = events.iter().map(|event| self.call(Some(page), event, EVENT));
        join_all(sent).await.into_iter().collect::<Result<Vec<_>, _>>().map(drop)
    }
}
