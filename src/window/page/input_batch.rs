//! Runs a batch of input actions in order, until the first failure.
//!
//! ```text
//! action ──► wait until its element can be acted on ──► mouse or key events ──► wait until the page has settled
//! ```
//! Batches on the same window are serialised. A page has settled when it has rendered two frames without a change of
//! its DOM; after a navigation, when the new document has loaded.

use std::time::Duration;

use tether_base::error::{Error, Result};
use tether_cdp::types::{DispatchKeyEvent, InsertText, SetFocusEmulationEnabled};
use tokio::time::Instant;

use super::action_error::{ActionError, unknown_key};
use super::element_point::{ActionContext, CLICKABLE, REACHABLE, ReferencedElement, VISIBLE, viewport_center};
use super::injected_script::ElementCheck;
use super::input_action::{ActionKind, ActionTarget, InputAction};
use super::keyboard::{KeyChord, KeyboardKey};
use super::mouse::{click_events, drag_mouse, move_event, wheel_events};
use super::page_client::{EVENT_TIMEOUT, PageClient, PageSession};
use super::page_error::PageError;
use super::page_snapshot::{PageSnapshot, SnapshotRequest, snapshot_page, take_snapshot};
use super::wait_condition::wait_until_settled;
use crate::window::token_redaction::redact_connection_tokens;

/// Maximum wait for a page that changes constantly to settle after an action.
const SETTLE_TIMEOUT: Duration = Duration::from_millis(200);
/// How long the DOM must be unchanged before the final snapshot, and the maximum wait for that.
const QUIET_TIME: Duration = Duration::from_millis(100);
const QUIET_TIMEOUT: Duration = Duration::from_millis(1000);
/// Longer texts are inserted at once instead of typed key by key.
const MAX_TYPED_CHARS: usize = 500;

/// The outcome of a batch in which every action succeeded.
#[derive(Clone, Debug)]
pub struct BatchOutcome {
    /// One for each action.
    pub steps: Vec<ActionOutcome>,
    /// Taken after the last action, if requested.
    pub snapshot: Option<PageSnapshot>,
}

/// The outcome of one action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionOutcome {
    /// What was done: `click e12: button "Run"`.
    pub did: String,
    /// Side effects: dialogs, downloads, navigations, opened pages.
    pub notes: Vec<String>,
}

/// Runs the actions; with `snapshot_bytes`, takes a snapshot of at most that many bytes afterwards. `report` gets each
/// action that is done. Errors contain the failed action, the reason, and what was done before it.
pub async fn run_actions(
    client: &PageClient,
    actions: &[InputAction],
    page: Option<&str>,
    snapshot_bytes: Option<usize>,
    mut report: impl FnMut(&ActionOutcome),
) -> Result<BatchOutcome> {
    let _input = client.state.history.input_lock.lock().await;
    let mut session = client.select_page(page, "cannot act on the page").await?;
    // So that keys reach the page even when its window is not in front.
    let focus = SetFocusEmulationEnabled { enabled: true };
    session.call(&focus, EVENT_TIMEOUT).await.map_err(|error| client.user_error(error))?;
    // Those that this batch leaves answer no later dialog.
    let _answers = ForgetAnswers(client);
    let mut steps = Vec::new();
    for action in actions {
        if let Some(page) = action.kind.page_ref().and_then(|name| client.page_of_ref(name).ok()) {
            session = page;
        }
        match run_action(&session, action).await {
            Ok(step) => {
                report(&step);
                steps.push(step);
            }
            Err(error) => return Err(batch_error(client, error, actions, &steps)),
        }
    }
    let snapshot = match snapshot_bytes {
        Some(max_bytes) => {
            let request = SnapshotRequest { max_bytes, root: None, page: page.map(str::to_owned) };
            Some(snapshot_when_settled(&session, &request).await?)
        }
        None => None,
    };
    Ok(BatchOutcome { steps, snapshot })
}

/// Forgets the answers to dialogs that were not needed.
struct ForgetAnswers<'a>(&'a PageClient);

impl Drop for ForgetAnswers<'_> {
    fn drop(&mut self) {
        self.0.state.targets().dialog_answers.clear();
    }
}

/// Takes a snapshot of the page that was acted on; if the actions closed it, of the page that is left.
async fn snapshot_when_settled(page: &PageSession, request: &SnapshotRequest) -> Result<PageSnapshot> {
    wait_until_settled(page, page.navigations().unwrap_or_default(), QUIET_TIME, QUIET_TIMEOUT)
        .await
        .map_err(|error| page.client.user_error(error))?;
    let snapshot = snapshot_page(page, request).await;
    let is_closed = page.navigations().is_none();
    if snapshot.is_err() && is_closed { take_snapshot(&page.client, request).await } else { snapshot }
}

/// The error of a batch: adds the position of the action, the notices, and what was done before.
fn batch_error(client: &PageClient, failure: ActionError, actions: &[InputAction], done: &[ActionOutcome]) -> Error {
    let error = failure.into_error(client.endpoint.port);
    let mut text = error.doing;
    if actions.len() > 1 {
        text = format!("action {} of {} failed: {text}", done.len() + 1, actions.len());
    }
    let action = &actions[done.len()].kind;
    let mut because = error.source.map_or_else(|| format!("the action was {action}"), |source| source.to_string());
    for note in client.take_notices() {
        because.push_str(&format!("; {note}"));
    }
    if !done.is_empty() {
        let done: Vec<&str> = done.iter().map(|step| step.did.as_str()).collect();
        because.push_str(&format!("; done before: {}", done.join("; ")));
    }
    Error { hints: error.hints, ..Error::new(error.kind, text).because(because) }
}

async fn run_action(page: &PageSession, action: &InputAction) -> Result<ActionOutcome, ActionError> {
    let before = page.navigations().unwrap_or_default();
    let target = ActionContext { page, until: Instant::now() + action.timeout }.perform(&action.kind).await?;
    wait_until_settled(page, before, Duration::ZERO, SETTLE_TIMEOUT).await?;
    let mut did = action.kind.to_string();
    if let Some(target) = target {
        did = format!("{did}: {target}");
    }
    let mut targets = page.client.state.targets();
    let mut notes = targets.take_notices();
    match targets.sessions.get(&page.id) {
        Some(now) if now.navigations != before => {
            notes.push(format!("the page went to {}", redact_connection_tokens(now.url.clone())))
        }
        None => notes.push("the page was closed".into()),
        Some(_) => {}
    }
    Ok(ActionOutcome { did, notes })
}

impl ActionContext<'_> {
    /// Performs an action; returns role and name of the element that it was performed on.
    async fn perform(&self, kind: &ActionKind) -> Result<Option<String>, ActionError> {
        match kind {
            ActionKind::Click { at, button, count } => {
                if let ActionTarget::Ref(name) = at
                    && let Some(option) = self.select_option(name).await?
                {
                    return Ok(Some(option));
                }
                let (point, target) = self.locate(at, CLICKABLE).await?;
                self.page.send_events(&click_events(point, *button, *count)).await?;
                Ok(target)
            }
            ActionKind::Hover { at } => {
                let (point, target) = self.locate(at, REACHABLE).await?;
                self.page.send_events(&[move_event(point)]).await?;
                Ok(target)
            }
            ActionKind::Drag { from, to } => self.drag(from, to).await,
            ActionKind::Scroll { at, by } => {
                let (point, target) = match at {
                    Some(at) => self.locate(at, VISIBLE).await?,
                    None => (viewport_center(self.page).await?, None),
                };
                if let Some(by) = by {
                    self.page.send_events(&wheel_events(point, *by)).await?;
                }
                Ok(target)
            }
            ActionKind::Type { into, text } => {
                let target = self.focus(into.as_deref()).await?;
                self.record_typing(text).await;
                type_text(self.page, text).await?;
                Ok(target)
            }
            ActionKind::Press { at, keys, count } => {
                let chords: Result<Vec<KeyChord>, String> = keys.split_whitespace().map(KeyChord::parse).collect();
                let chords = chords.map_err(|name| unknown_key(&name))?;
                let target = self.focus(at.as_deref()).await?;
                for chord in chords.iter().cycle().take(chords.len() * *count as usize) {
                    self.page.send_events(&chord.events()).await?;
                }
                Ok(target)
            }
            ActionKind::Fill { fields } => {
                let mut filled = Vec::new();
                for (name, value) in fields {
                    filled.extend(self.fill(name, value).await?);
                }
                Ok(Some(filled.join(", ")))
            }
            ActionKind::Select { at, values } => self.select(at, values).await,
            ActionKind::Check { at, checked } => self.toggle(at, *checked).await,
            ActionKind::Paste { into, text } => {
                let target = self.focus(into.as_deref()).await?;
                self.paste(text).await?;
                Ok(target)
            }
            ActionKind::Upload { at, files } => self.upload(at, files).await,
            ActionKind::DropFiles { at, files } => self.drop_files(at, files).await,
            ActionKind::LongPress { at, hold } => self.long_press(at, *hold).await,
            ActionKind::Dialog(answer) => {
                self.page.client.state.targets().dialog_answers.push_back(answer.clone());
                Ok(None)
            }
            ActionKind::Wait(condition) => self.wait_for(condition).await.map(|()| None),
        }
    }

    async fn drag(&self, from: &ActionTarget, to: &ActionTarget) -> Result<Option<String>, ActionError> {
        // Locating the start may scroll the end out of view, so the end is located again.
        let (mut end, onto) = self.locate(to, REACHABLE).await?;
        let (start, target) = self.locate(from, CLICKABLE).await?;
        if let ActionTarget::Ref(_) = to {
            end = self.locate(to, REACHABLE).await?.0;
        }
        drag_mouse(self.page, start, end).await?;
        Ok(target.zip(onto).map(|(what, onto)| format!("{what} onto {onto}")))
    }

    /// Selects an option of a closed `<select>`, which the page does not render and the mouse cannot reach. `None` for
    /// other elements.
    async fn select_option(&self, name: &str) -> Result<Option<String>, ActionError> {
        let element = ReferencedElement::resolve(&self.page.client, name)?;
        let call = format!("selectOption({})", element.handle.number);
        let selected: Option<ElementCheck> = element.call(&call, EVENT_TIMEOUT).await?;
        let selected = selected.map(|found| element.require_actionable(found)).transpose()?;
        Ok(selected.map(|found| found.target.unwrap_or_default()))
    }

    /// Focuses an element, if one is given; returns its role and name.
    async fn focus(&self, name: Option<&str>) -> Result<Option<String>, ActionError> {
        let Some(name) = name else { return Ok(None) };
        let element = ReferencedElement::resolve(&self.page.client, name)?;
        let left = self.time_left();
        let call = format!("focus({}, {})", element.handle.number, left.as_millis());
        Ok(element.check(&call, left).await?.target)
    }
}

async fn type_text(page: &PageSession, text: &str) -> Result<(), PageError> {
    // A line break is one Enter key.
    let text = text.replace("\r\n", "\n");
    if text.chars().count() > MAX_TYPED_CHARS {
        return insert_text(page, text).await;
    }
    let mut typed: Vec<DispatchKeyEvent> = Vec::new();
    for letter in text.chars() {
        match KeyboardKey::by_character(letter) {
            Some(key) => typed.extend(key.events(0)),
            None => {
                page.send_events(&std::mem::take(&mut typed)).await?;
                insert_text(page, letter.into()).await?;
            }
        }
    }
    page.send_events(&typed).await
}

/// Inserts text without key events, as an input method does.
pub(super) async fn insert_text(page: &PageSession, text: String) -> Result<(), PageError> {
    page.call(&InsertText { text }, EVENT_TIMEOUT).await.map(drop)
}
