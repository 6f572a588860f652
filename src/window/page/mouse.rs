//! The mouse, and where an element can be hit: a point in its frame, carried out through the frames around it.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::action_error::ActionError;
use super::element_refs::{ElementHandle, lock_unpoisoned};
use super::injected_script::{self, LocatedElement};
use super::input_action::{ActionTarget, MouseButton};
use super::page_client::{PageClient, PageError};
use crate::cdp::types::{DispatchDragEvent, DispatchMouseEvent, GetLayoutMetrics, SetInterceptDrags};

/// A point of the page, in CSS pixels of what is visible of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PagePoint {
    pub x: f64,
    pub y: f64,
}

/// Where nothing of the page is.
const OUTSIDE_PAGE: PagePoint = PagePoint { x: -1.0, y: -1.0 };

/// How an element has to be before it is acted on.
#[derive(Clone, Copy, Debug)]
pub struct ActionRequirements {
    pub enabled: bool,
    /// A click there must reach it.
    pub hit: bool,
}

impl PageClient {
    /// Where to act, and what is there, by role and name.
    pub async fn locate_target(
        &self,
        page: &str,
        at: &ActionTarget,
        needs: ActionRequirements,
        until: Instant,
    ) -> Result<(PagePoint, Option<String>), ActionError> {
        match at {
            ActionTarget::Point(x, y) => Ok((PagePoint { x: *x, y: *y }, None)),
            ActionTarget::Ref(name) => self.locate_element(page, name, needs, until).await,
        }
    }

    async fn locate_element(
        &self,
        page: &str,
        name: &str,
        needs: ActionRequirements,
        until: Instant,
    ) -> Result<(PagePoint, Option<String>), ActionError> {
        let handle = self.resolve_ref(name)?;
        let wants = format!("{{enabled: {}, hit: {}}}", needs.enabled, needs.hit);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let call = format!("ready({}, {wants}, {})", handle.number, left.as_millis());
            let found: LocatedElement = self.call_element_script(&handle, &call, left, name).await?;
            let target = found.target.clone();
            let found = self.check_actionable(&handle, name, found)?;
            match self.point_in_page(page, &handle, PagePoint { x: found.x, y: found.y }, needs.hit, name).await {
                Ok(point) => return Ok((point, target)),
                // Something around it moved, or lies over it: as inside, that may pass.
                Err(obstacle) if Instant::now() >= until || !obstacle.is_transient() => return Err(obstacle),
                Err(_) => {}
            }
        }
    }

    /// Asks the script about an element; what fails is told of the element.
    pub async fn call_element_script<T: serde::de::DeserializeOwned>(
        &self,
        handle: &ElementHandle,
        call: &str,
        within: Duration,
        name: &str,
    ) -> Result<T, ActionError> {
        injected_script::call_script(self, &handle.place, call, within).await.map_err(|trouble| match trouble {
            trouble if injected_script::is_document_gone(&trouble) => ActionError::DocumentGone(name.to_owned()),
            trouble => ActionError::Trouble(trouble),
        })
    }

    /// What was found, unless it is why the element cannot be acted on.
    pub fn check_actionable(
        &self,
        handle: &ElementHandle,
        name: &str,
        found: LocatedElement,
    ) -> Result<LocatedElement, ActionError> {
        let Some(fail) = found.fail.clone() else { return Ok(found) };
        let by = found.by.map(|number| self.ref_name(&ElementHandle { place: handle.place.clone(), number }));
        Err(ActionError::NotActionable { name: name.to_owned(), target: found.target, fail, by, what: found.what })
    }

    /// From a point in the element's frame to one in the page.
    pub async fn point_in_page(
        &self,
        page: &str,
        handle: &ElementHandle,
        mut point: PagePoint,
        hit: bool,
        name: &str,
    ) -> Result<PagePoint, ActionError> {
        let frames = self.frames(page).await?;
        let mut at = frames.iter().position(|frame| frame.place == handle.place);
        let mut index = at.take().ok_or_else(|| ActionError::DocumentGone(name.to_owned()))?;
        while let Some((parent, number)) = frames[index].shown_by {
            let shows = ElementHandle { place: frames[parent].place.clone(), number };
            let call = format!("through({number}, {}, {}, {hit})", point.x, point.y);
            let found: LocatedElement = self.call_element_script(&shows, &call, Duration::from_secs(2), name).await?;
            let found = self.check_actionable(&shows, name, found)?;
            point = PagePoint { x: found.x, y: found.y };
            index = parent;
        }
        Ok(point)
    }

    /// Sends events of the mouse, in order, and waits until the page has taken them.
    pub async fn send_mouse_events(
        &self,
        page: &str,
        events: Vec<DispatchMouseEvent>,
        deadline: Duration,
    ) -> Result<(), PageError> {
        let sent = events.iter().map(|event| self.call(Some(page), event, deadline));
        join_all(sent).await.into_iter().collect::<Result<Vec<_>, _>>().map(drop)
    }

    /// Drags with the left button: something that the page moves itself, or something `draggable`, of which the browser
    /// makes a drag of its own that only it can carry on.
    pub async fn drag(&self, page: &str, from: PagePoint, to: PagePoint, deadline: Duration) -> Result<(), PageError> {
        lock_unpoisoned(&self.shared.targets).intercepted_drag = None;
        let mut grip =
            DragGuard { core: self, page, pressed: None, data: json!({"items": [], "dragOperationsMask": 0}) };
        self.call(Some(page), &SetInterceptDrags { enabled: true }, deadline).await?;
        self.has_native_drag(page, true, deadline).await?;
        grip.pressed = Some(from);
        self.send_mouse_events(page, drag_start_events(from, to), deadline).await?;
        if self.has_native_drag(page, false, deadline).await? {
            self.drop_native_drag(&mut grip, to, deadline).await?;
        } else {
            self.send_mouse_events(page, drag_move_events(from, to), deadline).await?;
        }
        self.send_mouse_events(page, vec![release_event(to, MouseButton::Left, 1)], deadline).await?;
        grip.pressed = None;
        Ok(())
    }

    /// Whether a drag of the browser has begun in one of the frames.
    async fn has_native_drag(&self, page: &str, begin: bool, deadline: Duration) -> Result<bool, PageError> {
        let frames = self.frames(page).await?;
        let call = format!("drags({begin})");
        let asked =
            frames.iter().map(|frame| injected_script::call_script::<bool>(self, &frame.place, &call, deadline));
        Ok(join_all(asked).await.contains(&Ok(true)))
    }

    async fn drop_native_drag(
        &self,
        grip: &mut DragGuard<'_>,
        to: PagePoint,
        deadline: Duration,
    ) -> Result<(), PageError> {
        let mut stirred = self.shared.changed.subscribe();
        let begun = async {
            loop {
                if let Some(data) = lock_unpoisoned(&self.shared.targets).intercepted_drag.take() {
                    return data;
                }
                let _ = stirred.changed().await;
            }
        };
        // A drag without data is none.
        let Ok(data) = tokio::time::timeout(deadline, begun).await else { return Ok(()) };
        grip.data = data.clone();
        for kind in ["dragEnter", "dragOver", "drop"] {
            let event = DispatchDragEvent { kind, x: to.x, y: to.y, data: data.clone() };
            self.call(Some(grip.page), &event, deadline).await?;
        }
        Ok(())
    }

    /// The middle of what is visible of the page.
    pub async fn viewport_center(&self, page: &str, deadline: Duration) -> Result<PagePoint, PageError> {
        let metrics = self.call(Some(page), &GetLayoutMetrics {}, deadline).await?;
        let seen = metrics.css_visual_viewport;
        Ok(PagePoint { x: seen.client_width / 2.0, y: seen.client_height / 2.0 })
    }

    /// The page's session of a ref.
    pub fn page_of_target(&self, at: &ActionTarget) -> Option<String> {
        let ActionTarget::Ref(name) = at else { return None };
        let handle = self.resolve_ref(name).ok()?;
        lock_unpoisoned(&self.shared.targets).page_of(&handle.place.session)
    }
}

/// What a drag holds, and lets go of however it ends: its caller may give up in the middle, or the page not answer.
struct DragGuard<'a> {
    core: &'a PageClient,
    page: &'a str,
    /// Where the button was pressed that is to be released.
    pressed: Option<PagePoint>,
    /// What is dragged, once the browser has said it.
    data: Value,
}

impl Drop for DragGuard<'_> {
    fn drop(&mut self) {
        let (client, page) = (&self.core.client, Some(self.page));
        if let Some(from) = self.pressed {
            // A drag of the browser leaves what it was over, and ends. Where there is none, the page hears nothing of it.
            for kind in ["dragOver", "dragCancel"] {
                client.send_nowait(page, &DispatchDragEvent { kind, x: from.x, y: from.y, data: self.data.clone() });
            }
            // Carried back and let go of beside the page, it is neither dropped nor clicked.
            client.send_nowait(page, &held_move_event(from));
            client.send_nowait(page, &release_event(OUTSIDE_PAGE, MouseButton::Left, 1));
        }
        client.send_nowait(page, &SetInterceptDrags { enabled: false });
    }
}

pub fn move_event(to: PagePoint) -> DispatchMouseEvent {
    DispatchMouseEvent { kind: "mouseMoved", x: to.x, y: to.y, button: "none", ..DispatchMouseEvent::default() }
}

pub fn click_events(at: PagePoint, button: MouseButton, count: u32) -> Vec<DispatchMouseEvent> {
    let mut events = vec![move_event(at)];
    for click in 1..=count {
        events.push(press_event(at, button, click));
        events.push(release_event(at, button, click));
    }
    events
}

/// Takes something up: presses, and moves far enough for a drag to begin.
fn drag_start_events(from: PagePoint, to: PagePoint) -> Vec<DispatchMouseEvent> {
    let first = PagePoint { x: from.x + 6.0_f64.copysign(to.x - from.x), y: from.y + 6.0_f64.copysign(to.y - from.y) };
    vec![
        move_event(from),
        press_event(from, MouseButton::Left, 1),
        held_move_event(first),
        held_move_event(interpolate_point(from, to, 0.2)),
    ]
}

/// Carries it there; arrives twice, as whoever listens for a move in place needs.
fn drag_move_events(from: PagePoint, to: PagePoint) -> Vec<DispatchMouseEvent> {
    vec![held_move_event(interpolate_point(from, to, 0.5)), held_move_event(to), held_move_event(to)]
}

fn held_move_event(to: PagePoint) -> DispatchMouseEvent {
    DispatchMouseEvent { buttons: 1, button: "left", ..move_event(to) }
}

fn interpolate_point(from: PagePoint, to: PagePoint, share: f64) -> PagePoint {
    PagePoint { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share }
}

pub fn wheel_events(at: PagePoint, (delta_x, delta_y): (f64, f64)) -> Vec<DispatchMouseEvent> {
    let wheel = DispatchMouseEvent { kind: "mouseWheel", delta_x, delta_y, button: "none", ..move_event(at) };
    vec![move_event(at), wheel]
}

fn press_event(at: PagePoint, button: MouseButton, click_count: u32) -> DispatchMouseEvent {
    let (name, buttons) = button_names(button);
    DispatchMouseEvent { kind: "mousePressed", button: name, buttons, click_count, ..move_event(at) }
}

fn release_event(at: PagePoint, button: MouseButton, click_count: u32) -> DispatchMouseEvent {
    DispatchMouseEvent { kind: "mouseReleased", button: button_names(button).0, click_count, ..move_event(at) }
}

fn button_names(button: MouseButton) -> (&'static str, u8) {
    match button {
        MouseButton::Left => ("left", 1),
        MouseButton::Right => ("right", 2),
        MouseButton::Middle => ("middle", 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_double_click_is_two_clicks_that_count() {
        let told: Vec<_> = click_events(PagePoint { x: 3.0, y: 4.0 }, MouseButton::Right, 2)
            .into_iter()
            .map(|it| (it.kind, it.button, it.buttons, it.click_count))
            .collect();
        assert_eq!(
            told,
            [
                ("mouseMoved", "none", 0, 0),
                ("mousePressed", "right", 2, 1),
                ("mouseReleased", "right", 0, 1),
                ("mousePressed", "right", 2, 2),
                ("mouseReleased", "right", 0, 2),
            ]
        );
    }
}
