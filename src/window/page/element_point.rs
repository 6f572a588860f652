//! Finds the point of the page at which to act on an element: in its frame first, then through the enclosing frames.

use std::time::Duration;

use serde::de::DeserializeOwned;
use tether_base::error::Result;
use tether_cdp::types::GetLayoutMetrics;
use tokio::time::Instant;

use super::action_error::ActionError;
use super::element_refs::ElementHandle;
use super::frame_tree::find_frames;
use super::injected_script::{ElementCheck, call_script};
use super::input_action::ActionTarget;
use super::page_client::{EVENT_TIMEOUT, PageClient, PageSession};
use super::page_error::PageError;

/// How long the script of an enclosing frame may take to convert a point.
const CONVERT_TIMEOUT: Duration = Duration::from_secs(2);

/// A point of the page, in CSS pixels from the top left of the viewport.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PagePoint {
    pub x: f64,
    pub y: f64,
}

/// What must be true of an element before it is acted on, besides being in view and not moving.
#[derive(Clone, Copy, Debug)]
pub struct ActionRequirements {
    /// It is not disabled.
    pub enabled: bool,
    /// A click at the point hits it.
    pub hit: bool,
}

/// A click: the element must be enabled, and be hit.
pub const CLICKABLE: ActionRequirements = ActionRequirements { enabled: true, hit: true };
/// The mouse must reach the element.
pub const REACHABLE: ActionRequirements = ActionRequirements { enabled: false, hit: true };
/// The element must be in view.
pub const VISIBLE: ActionRequirements = ActionRequirements { enabled: false, hit: false };

/// The point to act at, and role and name of the element there.
pub type LocatedTarget = (PagePoint, Option<String>);

/// The page that an action is performed on, and how long the action may wait for it.
pub struct ActionContext<'a> {
    pub page: &'a PageSession,
    pub until: Instant,
}

impl ActionContext<'_> {
    /// The time that is left for waiting.
    pub fn time_left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Locates the target of an action. Waits until the requirements are met.
    pub async fn locate(&self, at: &ActionTarget, needs: ActionRequirements) -> Result<LocatedTarget, ActionError> {
        match at {
            ActionTarget::Point(x, y) => Ok((PagePoint { x: *x, y: *y }, None)),
            ActionTarget::Ref(name) => self.locate_element(name, needs).await,
        }
    }

    /// As [`Self::locate`], for an element by its ref.
    pub async fn locate_element(&self, name: &str, needs: ActionRequirements) -> Result<LocatedTarget, ActionError> {
        let element = ReferencedElement::resolve(&self.page.client, name)?;
        let ActionRequirements { enabled, hit } = needs;
        loop {
            let (number, left) = (element.handle.number, self.time_left());
            let call =
                format!("waitUntilActionable({number}, {{enabled: {enabled}, hit: {hit}}}, {})", left.as_millis());
            let found = element.check(&call, left).await?;
            match element.point_in_page(self.page, PagePoint { x: found.x, y: found.y }, hit).await {
                Ok(point) => return Ok((point, found.target)),
                // An enclosing frame is moving or covered, which may be transient as well.
                Err(error) if Instant::now() >= self.until || !error.is_transient() => return Err(error),
                Err(_) => {}
            }
        }
    }
}

/// An element, and the ref by which an action refers to it.
pub struct ReferencedElement<'a> {
    client: &'a PageClient,
    name: &'a str,
    pub handle: ElementHandle,
}

impl<'a> ReferencedElement<'a> {
    /// The element of a ref. Errors: not a ref, never assigned, stale.
    pub fn resolve(client: &'a PageClient, name: &'a str) -> Result<Self> {
        Ok(ReferencedElement { client, name, handle: client.state.resolve_ref(name)? })
    }

    /// Calls the script in the element's document.
    pub async fn call<T: DeserializeOwned>(&self, call: &str, within: Duration) -> Result<T, ActionError> {
        call_script(self.client, &self.handle.document, call, within).await.map_err(|error| match error {
            error if error.is_document_gone() => ActionError::DocumentGone(self.name.to_owned()),
            error => ActionError::Page(error),
        })
    }

    /// As [`Self::call`], for a function that checks the element.
    pub async fn check(&self, call: &str, within: Duration) -> Result<ElementCheck, ActionError> {
        self.require_actionable(self.call(call, within).await?)
    }

    /// Turns a failed check into an error.
    pub fn require_actionable(&self, found: ElementCheck) -> Result<ElementCheck, ActionError> {
        if found.fail.is_none() {
            return Ok(found);
        }
        let covering = |number| ElementHandle { document: self.handle.document.clone(), number };
        let by = found.by.map(|number| self.client.state.assign_ref(&covering(number)));
        Err(ActionError::NotActionable { name: self.name.to_owned(), by, found: Box::new(found) })
    }

    /// Converts a point of the element's frame to one of the page; with `hit`, fails when an enclosing frame is covered.
    pub async fn point_in_page(
        &self,
        page: &PageSession,
        mut point: PagePoint,
        hit: bool,
    ) -> Result<PagePoint, ActionError> {
        let frames = find_frames(page).await?;
        let index = frames.iter().position(|frame| frame.document == self.handle.document);
        let mut index = index.ok_or_else(|| ActionError::DocumentGone(self.name.to_owned()))?;
        while let Some((parent, number)) = frames[index].owner {
            let handle = ElementHandle { document: frames[parent].document.clone(), number };
            let call = format!("pointInParent({number}, {}, {}, {hit})", point.x, point.y);
            let found = ReferencedElement { handle, ..*self }.check(&call, CONVERT_TIMEOUT).await?;
            point = PagePoint { x: found.x, y: found.y };
            index = parent;
        }
        Ok(point)
    }
}

/// The center of the viewport.
pub async fn viewport_center(page: &PageSession) -> Result<PagePoint, PageError> {
    let viewport = page.call(&GetLayoutMetrics {}, EVENT_TIMEOUT).await?.css_visual_viewport;
    Ok(PagePoint { x: viewport.client_width / 2.0, y: viewport.client_height / 2.0 })
}
