//! Runs a batch of input actions in order, until the first failure.
//!
//! ```text
//! action ──► wait until its element can be acted on ──► mouse or key events ──► wait until the page has settled
//! ```
//! Batches on the same window are serialised. A page has settled when it has rendered two frames without a change of
//! its DOM; after a navigation, when the new document has loaded.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::action_error::{ActionError, unknown_key};
use super::element_point::{
    ActionRequirements, call_on_element, check_actionable, locate_target, page_of_target, viewport_center,
};
use super::injected_script::ElementCheck;
use super::input_action::{ActionKind, ActionTarget, InputAction};
use super::keyboard::{KeyChord, KeyboardKey};
use super::mouse::{click_events, drag_mouse, move_event, send_mouse_events, wheel_events};
use super::page_client::PageClient;
use super::page_error::PageError;
use super::page_snapshot::{PageSnapshot, SnapshotRequest, snapshot_page, take_snapshot};
use super::wait_condition::{wait_for_condition, wait_until_settled};
use crate::cdp::types::{DispatchKeyEvent, InsertText, SetFocusEmulationEnabled};
use crate::error::{Error, Result};

/// Maximum wait for a page that changes constantly to settle after an action.
const SETTLE_TIMEOUT: Duration = Duration::from_millis(200);
/// How long the DOM must be unchanged before the final snapshot, and the maximum wait for that.
const QUIET_TIME: Duration = Duration::from_millis(100);
const QUIET_TIMEOUT: Duration = Duration::from_millis(1000);
/// Deadline for the page to handle one input event.
const EVENT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer texts are inserted at once instead of typed key by key.
const MAX_TYPED_CHARS: usize = 500;

/// A click: the element must be enabled, and be hit.
const CLICKABLE: ActionRequirements = ActionRequirements { enabled: true, hit: true };
/// The mouse must reach the element.
const REACHABLE: ActionRequirements = ActionRequirements { enabled: false, hit: true };
/// The element must be in view.
const VISIBLE: ActionRequirements = ActionRequirements { enabled: false, hit: false };

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

/// Runs the actions; with `snapshot_bytes`, takes a snapshot of at most that many bytes afterwards. Errors contain the
/// failed action, the reason, and what was done before it.
pub async fn run_actions(
    client: &PageClient,
    actions: &[InputAction],
    page: Option<&str>,
    snapshot_bytes: Option<usize>,
) -> Result<BatchOutcome> {
    let _input = client.state.history.input_lock.lock().await;
    let mut session = client.select_page(page, "cannot act on the page").await?;
    // So that keys reach the page even when its window is not in front.
    let focus = SetFocusEmulationEnabled { enabled: true };
    client.call(Some(&session), &focus, EVENT_TIMEOUT).await.map_err(|error| client.user_error(error))?;
    let mut steps = Vec::new();
    for action in actions {
        if let Some(page) = action.kind.page_target().and_then(|target| page_of_target(client, &target)) {
            session = page;
        }
        match run_action(client, &session, action).await {
            Ok(step) => steps.push(step),
            Err(error) => return Err(batch_error(client, error, action, actions.len(), &steps)),
        }
    }
    let snapshot = match snapshot_bytes {
        Some(max_bytes) => {
            let request = SnapshotRequest { max_bytes, root: None, page: page.map(str::to_owned) };
            Some(snapshot_when_settled(client, &session, &request).await?)
        }
        None => None,
    };
    Ok(BatchOutcome { steps, snapshot })
}

/// Takes a snapshot of the page that was acted on; if the actions closed it, of the page that is left.
async fn snapshot_when_settled(client: &PageClient, page: &str, request: &SnapshotRequest) -> Result<PageSnapshot> {
    let navigations = || client.state.targets().session(page).map(|target| target.navigations);
    wait_until_settled(client, page, navigations().unwrap_or_default(), QUIET_TIME, QUIET_TIMEOUT)
        .await
        .map_err(|error| client.user_error(error))?;
    let snapshot = snapshot_page(client, page, None, request).await;
    let is_closed = navigations().is_none();
    if snapshot.is_err() && is_closed { take_snapshot(client, request).await } else { snapshot }
}

/// The error of a batch: adds the position of the action, the notices, and what was done before.
fn batch_error(
    client: &PageClient,
    failure: ActionError,
    action: &InputAction,
    count: usize,
    done: &[ActionOutcome],
) -> Error {
    let error = failure.into_error(client.endpoint.port);
    let mut text = error.doing;
    if count > 1 {
        text = format!("action {} of {count} failed: {text}", done.len() + 1);
    }
    let source = error.source.map(|source| source.to_string());
    let mut because = source.unwrap_or_else(|| format!("the action was {}", action.kind));
    for note in client.take_notices() {
        because.push_str(&format!("; {note}"));
    }
    if !done.is_empty() {
        let done: Vec<&str> = done.iter().map(|step| step.did.as_str()).collect();
        because.push_str(&format!("; done before: {}", done.join("; ")));
    }
    let mut failed = Error::new(error.kind, text).because(because);
    failed.hints = error.hints;
    failed
}

async fn run_action(client: &PageClient, page: &str, action: &InputAction) -> Result<ActionOutcome, ActionError> {
    let before = client.state.targets().session(page).map_or(0, |target| target.navigations);
    let until = Instant::now() + action.timeout;
    let target = perform_action(client, page, &action.kind, until).await?;
    wait_until_settled(client, page, before, Duration::ZERO, SETTLE_TIMEOUT).await?;
    let mut did = action.kind.to_string();
    if let Some(target) = target {
        did = format!("{did}: {target}");
    }
    let mut targets = client.state.targets();
    let mut notes = targets.take_notices();
    match targets.session(page) {
        Some(now) if now.navigations != before => notes.push(format!("the page went to {}", now.url)),
        None => notes.push("the page was closed".into()),
        Some(_) => {}
    }
    Ok(ActionOutcome { did, notes })
}

/// Performs an action; returns role and name of the element that it was performed on.
async fn perform_action(
    client: &PageClient,
    page: &str,
    kind: &ActionKind,
    until: Instant,
) -> Result<Option<String>, ActionError> {
    match kind {
        ActionKind::Click { at, button, count } => {
            if let ActionTarget::Ref(name) = at
                && let Some(option) = select_option(client, name).await?
            {
                return Ok(Some(option));
            }
            let (point, target) = locate_target(client, page, at, CLICKABLE, until).await?;
            send_mouse_events(client, page, click_events(point, *button, *count), EVENT_TIMEOUT).await?;
            Ok(target)
        }
        ActionKind::Hover { at } => {
            let (point, target) = locate_target(client, page, at, REACHABLE, until).await?;
            send_mouse_events(client, page, vec![move_event(point)], EVENT_TIMEOUT).await?;
            Ok(target)
        }
        ActionKind::Drag { from, to } => perform_drag(client, page, from, to, until).await,
        ActionKind::Scroll { at, by } => scroll_page(client, page, at.as_ref(), *by, until).await,
        ActionKind::Type { into, text } => {
            let target = focus_element(client, into.as_deref(), until).await?;
            type_text(client, page, text).await?;
            Ok(target)
        }
        ActionKind::Press { at, keys, count } => press_keys(client, page, at.as_deref(), keys, *count, until).await,
        ActionKind::Wait(condition) => wait_for_condition(client, page, condition, until).await.map(|()| None),
    }
}

async fn scroll_page(
    client: &PageClient,
    page: &str,
    at: Option<&ActionTarget>,
    by: Option<(f64, f64)>,
    until: Instant,
) -> Result<Option<String>, ActionError> {
    let (point, target) = match at {
        Some(at) => locate_target(client, page, at, VISIBLE, until).await?,
        None => (viewport_center(client, page, EVENT_TIMEOUT).await?, None),
    };
    if let Some(by) = by {
        send_mouse_events(client, page, wheel_events(point, by), EVENT_TIMEOUT).await?;
    }
    Ok(target)
}

async fn press_keys(
    client: &PageClient,
    page: &str,
    at: Option<&str>,
    keys: &str,
    count: u32,
    until: Instant,
) -> Result<Option<String>, ActionError> {
    let chords: Result<Vec<KeyChord>, String> = keys.split_whitespace().map(KeyChord::parse).collect();
    let chords = chords.map_err(|name| unknown_key(&name))?;
    let target = focus_element(client, at, until).await?;
    for chord in chords.iter().cycle().take(chords.len() * count as usize) {
        send_keys(client, page, chord.events()).await?;
    }
    Ok(target)
}

async fn perform_drag(
    client: &PageClient,
    page: &str,
    from: &ActionTarget,
    to: &ActionTarget,
    until: Instant,
) -> Result<Option<String>, ActionError> {
    // Locating the start may scroll the end out of view, so the end is located again.
    let (mut end, onto) = locate_target(client, page, to, REACHABLE, until).await?;
    let (start, target) = locate_target(client, page, from, CLICKABLE, until).await?;
    if let ActionTarget::Ref(_) = to {
        end = locate_target(client, page, to, REACHABLE, until).await?.0;
    }
    drag_mouse(client, page, start, end, EVENT_TIMEOUT).await?;
    Ok(target.zip(onto).map(|(what, onto)| format!("{what} onto {onto}")))
}

/// Selects an option of a closed `<select>`, which the page does not render and the mouse cannot reach. `None` for
/// other elements.
async fn select_option(client: &PageClient, name: &str) -> Result<Option<String>, ActionError> {
    let handle = client.state.resolve_ref(name)?;
    let call = format!("selectOption({})", handle.number);
    let selected: Option<ElementCheck> = call_on_element(client, &handle, &call, EVENT_TIMEOUT, name).await?;
    match selected {
        Some(found) => Ok(Some(check_actionable(client, &handle, name, found)?.target.unwrap_or_default())),
        None => Ok(None),
    }
}

/// Focuses an element, if one is given; returns its role and name.
async fn focus_element(client: &PageClient, name: Option<&str>, until: Instant) -> Result<Option<String>, ActionError> {
    let Some(name) = name else { return Ok(None) };
    let handle = client.state.resolve_ref(name)?;
    let left = until.saturating_duration_since(Instant::now());
    let call = format!("focus({}, {})", handle.number, left.as_millis());
    let found: ElementCheck = call_on_element(client, &handle, &call, left, name).await?;
    Ok(check_actionable(client, &handle, name, found)?.target)
}

async fn type_text(client: &PageClient, page: &str, text: &str) -> Result<(), PageError> {
    // A line break is one Enter key.
    let text = text.replace("\r\n", "\n");
    if text.chars().count() > MAX_TYPED_CHARS {
        return insert_text(client, page, text).await;
    }
    let mut typed: Vec<DispatchKeyEvent> = Vec::new();
    for letter in text.chars() {
        match KeyboardKey::by_character(letter) {
            Some(key) => typed.extend(key.events(0)),
            None => {
                send_keys(client, page, std::mem::take(&mut typed)).await?;
                insert_text(client, page, letter.into()).await?;
            }
        }
    }
    send_keys(client, page, typed).await
}

/// Inserts text without key events, as an input method does.
async fn insert_text(client: &PageClient, page: &str, text: String) -> Result<(), PageError> {
    client.call(Some(page), &InsertText { text }, EVENT_TIMEOUT).await.map(drop)
}

async fn send_keys(client: &PageClient, page: &str, events: Vec<DispatchKeyEvent>) -> Result<(), PageError> {
    let sent = events.iter().map(|event| client.call(Some(page), event, EVENT_TIMEOUT));
    join_all(sent).await.into_iter().collect::<Result<Vec<_>, _>>().map(drop)
}
