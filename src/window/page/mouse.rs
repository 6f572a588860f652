//! Mouse input: clicks, moves, the wheel, and drags.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tether_cdp::types::{DispatchDragEvent, DispatchMouseEvent, SetInterceptDrags};

use super::element_point::PagePoint;
use super::frame_tree::find_frames;
use super::injected_script::call_script;

use super::page_client::{EVENT_TIMEOUT, PageSession};
use super::page_error::PageError;
use crate::vocabulary::MouseButton;

/// Outside the viewport.
const OUTSIDE: PagePoint = PagePoint { x: -1.0, y: -1.0 };

/// Drags with the left button. Works for pages that handle mouse events themselves, and for `draggable` elements, whose
/// native drag only the browser can continue.
pub async fn drag_mouse(page: &PageSession, from: PagePoint, to: PagePoint) -> Result<(), PageError> {
    page.client.state.targets().intercepted_drag = None;
    let mut guard = DragGuard { page, pressed: None, data: json!({"items": [], "dragOperationsMask": 0}) };
    page.call(&SetInterceptDrags { enabled: true }, EVENT_TIMEOUT).await?;
    check_native_drag(page, true).await?;
    guard.pressed = Some(from);
    page.send_events(&drag_start_events(from, to)).await?;
    if check_native_drag(page, false).await? {
        drop_native_drag(&mut guard, to).await?;
    } else {
        page.send_events(&drag_move_events(from, to)).await?;
    }
    page.send_events(&[release_event(to, MouseButton::Left, 1)]).await?;
    guard.pressed = None;
    Ok(())
}

/// Whether a native drag has started in one of the frames; `begin` starts listening for one.
async fn check_native_drag(page: &PageSession, begin: bool) -> Result<bool, PageError> {
    let frames = find_frames(page).await?;
    let call = format!("checkNativeDrag({begin})");
    let calls = frames.iter().map(|frame| call_script::<bool>(&page.client, &frame.document, &call, EVENT_TIMEOUT));
    Ok(join_all(calls).await.contains(&Ok(true)))
}

async fn drop_native_drag(guard: &mut DragGuard<'_>, to: PagePoint) -> Result<(), PageError> {
    let intercepted = guard.page.client.state.wait_for_targets(|targets| targets.intercepted_drag.take());
    // Chromium intercepts no drag that has no data.
    let Ok(data) = tokio::time::timeout(EVENT_TIMEOUT, intercepted).await else { return Ok(()) };
    guard.data = data.clone();
    for kind in ["dragEnter", "dragOver", "drop"] {
        let event = DispatchDragEvent { kind, x: to.x, y: to.y, data: data.clone() };
        guard.page.call(&event, EVENT_TIMEOUT).await?;
    }
    Ok(())
}

/// Ends a drag and its interception, also when the caller cancels or the page does not respond.
struct DragGuard<'a> {
    page: &'a PageSession,
    /// Where the button is pressed; none before and after.
    pressed: Option<PagePoint>,
    /// The data of the native drag, once intercepted.
    data: Value,
}

impl Drop for DragGuard<'_> {
    fn drop(&mut self) {
        let (cdp, page) = (&self.page.client.cdp, Some(self.page.id.as_str()));
        if let Some(from) = self.pressed {
            // A native drag is moved back and cancelled; without one, the page receives nothing.
            for kind in ["dragOver", "dragCancel"] {
                cdp.send_nowait(page, &DispatchDragEvent { kind, x: from.x, y: from.y, data: self.data.clone() });
            }
            // Moved back and released outside the page, so that it is neither a drop nor a click.
            cdp.send_nowait(page, &held_move_event(from));
            cdp.send_nowait(page, &release_event(OUTSIDE, MouseButton::Left, 1));
        }
        cdp.send_nowait(page, &SetInterceptDrags { enabled: false });
    }
}

/// Moves without a button.
pub fn move_event(to: PagePoint) -> DispatchMouseEvent {
    DispatchMouseEvent { kind: "mouseMoved", x: to.x, y: to.y, button: "none", ..DispatchMouseEvent::default() }
}

/// Moves there and clicks `count` times.
pub fn click_events(at: PagePoint, button: MouseButton, count: u32) -> Vec<DispatchMouseEvent> {
    let mut events = vec![move_event(at)];
    for click in 1..=count {
        events.push(press_event(at, button, click));
        events.push(release_event(at, button, click));
    }
    events
}

/// Moves there and turns the wheel by CSS pixels.
pub fn wheel_events(at: PagePoint, (delta_x, delta_y): (f64, f64)) -> Vec<DispatchMouseEvent> {
    let wheel = DispatchMouseEvent { kind: "mouseWheel", delta_x, delta_y, button: "none", ..move_event(at) };
    vec![move_event(at), wheel]
}

/// Presses, and moves far enough for a drag to start.
fn drag_start_events(from: PagePoint, to: PagePoint) -> Vec<DispatchMouseEvent> {
    let first = PagePoint { x: from.x + 6.0_f64.copysign(to.x - from.x), y: from.y + 6.0_f64.copysign(to.y - from.y) };
    let further = interpolate_point(from, to, 0.2);
    vec![move_event(from), press_event(from, MouseButton::Left, 1), held_move_event(first), held_move_event(further)]
}

/// Moves to the end point twice: some pages update their drop target only on a further move.
fn drag_move_events(from: PagePoint, to: PagePoint) -> Vec<DispatchMouseEvent> {
    vec![held_move_event(interpolate_point(from, to, 0.5)), held_move_event(to), held_move_event(to)]
}

/// Moves with the left button pressed.
fn held_move_event(to: PagePoint) -> DispatchMouseEvent {
    DispatchMouseEvent { buttons: 1, button: "left", ..move_event(to) }
}

fn interpolate_point(from: PagePoint, to: PagePoint, share: f64) -> PagePoint {
    PagePoint { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share }
}

pub fn press_event(at: PagePoint, button: MouseButton, click_count: u32) -> DispatchMouseEvent {
    let (name, buttons) = button_codes(button);
    DispatchMouseEvent { kind: "mousePressed", button: name, buttons, click_count, ..move_event(at) }
}

pub fn release_event(at: PagePoint, button: MouseButton, click_count: u32) -> DispatchMouseEvent {
    DispatchMouseEvent { kind: "mouseReleased", button: button_codes(button).0, click_count, ..move_event(at) }
}

/// CDP's name of a button, and its bit in `buttons`.
fn button_codes(button: MouseButton) -> (&'static str, u8) {
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
    fn a_double_click_is_two_clicks_with_increasing_counts() {
        let events: Vec<_> = click_events(PagePoint { x: 3.0, y: 4.0 }, MouseButton::Right, 2)
            .into_iter()
            .map(|it| (it.kind, it.button, it.buttons, it.click_count))
            .collect();
        assert_eq!(
            events,
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
