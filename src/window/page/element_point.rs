//! Finds the point of the page at which to act on an element: in its frame first, then through the enclosing frames.

use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::action_error::ActionError;
use super::element_refs::ElementHandle;
use super::frame_tree::find_frames;
use super::injected_script::{ElementCheck, call_script};
use super::input_action::ActionTarget;
use super::page_client::PageClient;
use super::page_error::PageError;
use crate::cdp::types::GetLayoutMetrics;

/// How long the script of an enclosing frame may take to convert a point.
const CONVERT_TIMEOUT: Duration = Duration::from_secs(2);

/// A point of the page, in CSS pixels from the top left of the viewport.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PagePoint {
    pub x: f64,
    pub y: f64,
}

/// What must be true of an element before it is acted on, besides being visible and not moving.
#[derive(Clone, Copy, Debug)]
pub struct ActionRequirements {
    /// It is not disabled.
    pub enabled: bool,
    /// A click at the point hits it.
    pub hit: bool,
}

/// The point to act at, and role and name of the element there. Waits until the requirements are met, at most until
/// `until`.
pub async fn locate_target(
    client: &PageClient,
    page: &str,
    target: &ActionTarget,
    requirements: ActionRequirements,
    until: Instant,
) -> Result<(PagePoint, Option<String>), ActionError> {
    match target {
        ActionTarget::Point(x, y) => Ok((PagePoint { x: *x, y: *y }, None)),
        ActionTarget::Ref(name) => locate_element(client, page, name, requirements, until).await,
    }
}

async fn locate_element(
    client: &PageClient,
    page: &str,
    name: &str,
    requirements: ActionRequirements,
    until: Instant,
) -> Result<(PagePoint, Option<String>), ActionError> {
    let handle = client.state.resolve_ref(name)?;
    let ActionRequirements { enabled, hit } = requirements;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let wants = format!("{{enabled: {enabled}, hit: {hit}}}");
        let call = format!("waitUntilActionable({}, {wants}, {})", handle.number, left.as_millis());
        let found: ElementCheck = call_on_element(client, &handle, &call, left, name).await?;
        let target = found.target.clone();
        let found = check_actionable(client, &handle, name, found)?;
        let in_frame = PagePoint { x: found.x, y: found.y };
        match point_in_page(client, page, &handle, in_frame, hit, name).await {
            Ok(point) => return Ok((point, target)),
            // An enclosing frame is moving or covered, which may be transient as well.
            Err(error) if Instant::now() >= until || !error.is_transient() => return Err(error),
            Err(_) => {}
        }
    }
}

/// Calls the script in an element's document; `name` is the element's ref, for the error.
pub async fn call_on_element<T: DeserializeOwned>(
    client: &PageClient,
    handle: &ElementHandle,
    call: &str,
    within: Duration,
    name: &str,
) -> Result<T, ActionError> {
    call_script(client, &handle.document, call, within).await.map_err(|error| match error {
        error if error.is_document_gone() => ActionError::DocumentGone(name.to_owned()),
        error => ActionError::Page(error),
    })
}

/// Turns a failed check into an error.
pub fn check_actionable(
    client: &PageClient,
    handle: &ElementHandle,
    name: &str,
    found: ElementCheck,
) -> Result<ElementCheck, ActionError> {
    let Some(fail) = found.fail.clone() else { return Ok(found) };
    let covering = |number| ElementHandle { document: handle.document.clone(), number };
    let by = found.by.map(|number| client.state.assign_ref(&covering(number)));
    Err(ActionError::NotActionable { name: name.to_owned(), target: found.target, fail, by, what: found.what })
}

/// Converts a point of the element's frame to one of the page; with `hit`, fails when an enclosing frame is covered.
pub async fn point_in_page(
    client: &PageClient,
    page: &str,
    handle: &ElementHandle,
    mut point: PagePoint,
    hit: bool,
    name: &str,
) -> Result<PagePoint, ActionError> {
    let frames = find_frames(client, page).await?;
    let index = frames.iter().position(|frame| frame.document == handle.document);
    let mut index = index.ok_or_else(|| ActionError::DocumentGone(name.to_owned()))?;
    while let Some((parent, number)) = frames[index].owner {
        let owner = ElementHandle { document: frames[parent].document.clone(), number };
        let call = format!("pointInParent({number}, {}, {}, {hit})", point.x, point.y);
        let found: ElementCheck = call_on_element(client, &owner, &call, CONVERT_TIMEOUT, name).await?;
        let found = check_actionable(client, &owner, name, found)?;
        point = PagePoint { x: found.x, y: found.y };
        index = parent;
    }
    Ok(point)
}

/// The center of the viewport.
pub async fn viewport_center(client: &PageClient, page: &str, deadline: Duration) -> Result<PagePoint, PageError> {
    let viewport = client.call(Some(page), &GetLayoutMetrics {}, deadline).await?.css_visual_viewport;
    Ok(PagePoint { x: viewport.client_width / 2.0, y: viewport.client_height / 2.0 })
}

/// The session of the page that contains the target; `None` for a point or an unknown ref.
pub fn page_of_target(client: &PageClient, target: &ActionTarget) -> Option<String> {
    let ActionTarget::Ref(name) = target else { return None };
    let handle = client.state.resolve_ref(name).ok()?;
    client.state.targets().page_of(&handle.document.session)
}
