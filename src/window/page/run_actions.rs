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

use super::PageConnection;
use super::action_error::{ActionError, unknown_key};
use super::element_refs::lock_unpoisoned;
use super::injected_script::LocatedElement;
use super::input_action::{ActionKind, ActionTarget, InputAction, WaitCondition};
use super::keyboard::{KeyChord, KeyboardKey};
use super::mouse::{self, ActionRequirements};
use super::page_client::{PageClient, PageError};
use super::page_snapshot::{PageSnapshot, SnapshotRequest};
use crate::cdp::types::{DispatchKeyEvent, InsertText, SetFocusEmulationEnabled};
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
pub struct BatchOutcome {
    pub steps: Vec<ActionOutcome>,
    pub snapshot: Option<PageSnapshot>,
}

/// What an action did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionOutcome {
    /// `click e12 button "Run"`
    pub did: String,
    /// What happened besides: dialogs, downloads, another document, another page.
    pub notes: Vec<String>,
}

impl PageConnection {
    /// Does the actions, and looks at the page afterwards when asked to. Errors name the action that failed, why, and
    /// what was done before it.
    pub async fn act(&self, actions: &[InputAction], page: Option<&str>, look: Option<usize>) -> Result<BatchOutcome> {
        let core = &self.core;
        let _turn = core.shared.records.acting.lock().await;
        let mut session = core.select_page(page, "cannot act on the page").await?;
        // Keys go to the page whether or not its window is the one in front.
        core.call(Some(&session), &SetFocusEmulationEnabled { enabled: true }, EVENT)
            .await
            .map_err(|it| core.user_error(it))?;
        let mut steps = Vec::new();
        for action in actions {
            if let Some(page) = action.kind.page_target().and_then(|at| core.page_of_target(&at)) {
                session = page;
            }
            match core.run_action(&session, action).await {
                Ok(step) => steps.push(step),
                Err(obstacle) => return Err(core.batch_error(obstacle, action, actions.len(), &steps)),
            }
        }
        let snapshot = match look {
            Some(max) => Some(
                self.snapshot_after(&session, &SnapshotRequest { max, root: None, page: page.map(str::to_owned) })
                    .await?,
            ),
            None => None,
        };
        Ok(BatchOutcome { steps, snapshot })
    }

    /// Looks at the page that was acted on, once it has settled; when that was closed, at the one that is left.
    async fn snapshot_after(&self, session: &str, look: &SnapshotRequest) -> Result<PageSnapshot> {
        let core = &self.core;
        let attached = || lock_unpoisoned(&core.shared.targets).attached(session).cloned();
        let visits = attached().map_or(0, |attached| attached.visits);
        core.wait_until_settled(session, visits, QUIET, CALMING).await.map_err(|trouble| core.user_error(trouble))?;
        let told = core.snapshot_page(session, None, look).await;
        if told.is_err() && attached().is_none() { self.snapshot(look).await } else { told }
    }
}

impl ActionKind {
    /// The place that says which page is meant.
    fn page_target(&self) -> Option<ActionTarget> {
        match self {
            ActionKind::Click { at, .. } | ActionKind::Hover { at } | ActionKind::Drag { from: at, .. } => {
                Some(at.clone())
            }
            ActionKind::Scroll { at, .. } => at.clone(),
            ActionKind::Type { into: name, .. } | ActionKind::Press { at: name, .. } => {
                name.clone().map(ActionTarget::Ref)
            }
            ActionKind::Wait(WaitCondition::ElementGone(name)) => Some(ActionTarget::Ref(name.clone())),
            ActionKind::Wait(_) => None,
        }
    }
}

impl PageClient {
    /// Does one action, and tells what came of it.
    async fn run_action(&self, page: &str, action: &InputAction) -> Result<ActionOutcome, ActionError> {
        let before = lock_unpoisoned(&self.shared.targets).attached(page).map_or(0, |attached| attached.visits);
        let until = Instant::now() + action.timeout;
        let target = self.perform_action(page, &action.kind, until).await?;
        self.wait_until_settled(page, before, Duration::ZERO, SETTLING).await?;
        let mut did = action.kind.to_string();
        if let Some(target) = target {
            did = format!("{did}: {target}");
        }
        let mut view = lock_unpoisoned(&self.shared.targets);
        let mut notes = view.take_notices();
        match view.attached(page) {
            Some(now) if now.visits != before => notes.push(format!("the page went to {}", now.url)),
            None => notes.push("the page was closed".into()),
            Some(_) => {}
        }
        Ok(ActionOutcome { did, notes })
    }

    /// Does it; answers what it was done to, by role and name.
    async fn perform_action(
        &self,
        page: &str,
        does: &ActionKind,
        until: Instant,
    ) -> Result<Option<String>, ActionError> {
        let click = ActionRequirements { enabled: true, hit: true };
        let reach = ActionRequirements { enabled: false, hit: true };
        match does {
            ActionKind::Click { at, button, count } => {
                if let ActionTarget::Ref(name) = at
                    && let Some(target) = self.select_option(name).await?
                {
                    return Ok(Some(target));
                }
                let (point, target) = self.locate_target(page, at, click, until).await?;
                self.send_mouse_events(page, mouse::click_events(point, *button, *count), EVENT).await?;
                Ok(target)
            }
            ActionKind::Hover { at } => {
                let (point, target) = self.locate_target(page, at, reach, until).await?;
                self.send_mouse_events(page, vec![mouse::move_event(point)], EVENT).await?;
                Ok(target)
            }
            ActionKind::Drag { from, to } => {
                // The second may scroll the first away: whoever drags over more than is visible is told so.
                let (end, onto) = self.locate_target(page, to, reach, until).await?;
                let (start, target) = self.locate_target(page, from, click, until).await?;
                let (end, _) = if let ActionTarget::Ref(_) = to {
                    self.locate_target(page, to, reach, until).await?
                } else {
                    (end, None)
                };
                self.drag(page, start, end, EVENT).await?;
                Ok(target.zip(onto).map(|(what, onto)| format!("{what} onto {onto}")))
            }
            ActionKind::Scroll { at, by } => {
                let needs = ActionRequirements { enabled: false, hit: false };
                let (point, target) = match at {
                    Some(at) => self.locate_target(page, at, needs, until).await?,
                    None => (self.viewport_center(page, EVENT).await?, None),
                };
                if let Some(by) = by {
                    self.send_mouse_events(page, mouse::wheel_events(point, *by), EVENT).await?;
                }
                Ok(target)
            }
            ActionKind::Type { into, text } => {
                let target = self.focus_element(into.as_deref(), until).await?;
                self.type_text(page, text).await?;
                Ok(target)
            }
            ActionKind::Press { at, keys, count } => {
                let chords: Result<Vec<KeyChord>, String> = keys.split_whitespace().map(KeyChord::parse).collect();
                let chords = chords.map_err(|name| unknown_key(&name))?;
                let target = self.focus_element(at.as_deref(), until).await?;
                for chord in chords.iter().cycle().take(chords.len() * *count as usize) {
                    self.send_keys(page, chord.events()).await?;
                }
                Ok(target)
            }
            ActionKind::Wait(what) => self.wait_for(page, what, until).await.map(|()| None),
        }
    }

    /// A choice of a closed list is not drawn by the page, and cannot be clicked.
    async fn select_option(&self, name: &str) -> Result<Option<String>, ActionError> {
        let handle = self.resolve_ref(name)?;
        let chosen: Option<LocatedElement> =
            self.call_element_script(&handle, &format!("choose({})", handle.number), EVENT, name).await?;
        match chosen {
            Some(found) => Ok(Some(self.check_actionable(&handle, name, found)?.target.unwrap_or_default())),
            None => Ok(None),
        }
    }

    async fn focus_element(&self, name: Option<&str>, until: Instant) -> Result<Option<String>, ActionError> {
        let Some(name) = name else { return Ok(None) };
        let handle = self.resolve_ref(name)?;
        let left = until.saturating_duration_since(Instant::now());
        let call = format!("focus({}, {})", handle.number, left.as_millis());
        let found: LocatedElement = self.call_element_script(&handle, &call, left, name).await?;
        Ok(self.check_actionable(&handle, name, found)?.target)
    }

    async fn type_text(&self, page: &str, text: &str) -> Result<(), PageError> {
        // The end of a line is one key, however it is written.
        let text = text.replace("\r\n", "\n");
        if text.chars().count() > MOST_KEYS {
            return self.insert_text(page, text).await;
        }
        let mut typed: Vec<DispatchKeyEvent> = Vec::new();
        for letter in text.chars() {
            match KeyboardKey::by_character(letter) {
                Some(key) => typed.extend(key.events(0)),
                None => {
                    self.send_keys(page, std::mem::take(&mut typed)).await?;
                    self.insert_text(page, letter.into()).await?;
                }
            }
        }
        self.send_keys(page, typed).await
    }

    async fn insert_text(&self, page: &str, text: String) -> Result<(), PageError> {
        self.call(Some(page), &InsertText { text }, EVENT).await.map(drop)
    }

    async fn send_keys(&self, page: &str, events: Vec<DispatchKeyEvent>) -> Result<(), PageError> {
        let sent = events.iter().map(|event| self.call(Some(page), event, EVENT));
        join_all(sent).await.into_iter().collect::<Result<Vec<_>, _>>().map(drop)
    }
}
