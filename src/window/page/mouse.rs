//! The mouse, and where an element can be hit: a point in its frame, carried out through the frames around it.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::actions::{At, Button};
use super::core::{Core, Trouble};
use super::inside::{self, Found};
use super::obstacle::Obstacle;
use super::refs::{Handle, lock};
use crate::cdp::types::{DragEvent, GetLayoutMetrics, MouseEvent, SetInterceptDrags};

/// A point of the page, in CSS pixels of what is visible of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

/// Where nothing of the page is.
const BESIDE: Point = Point { x: -1.0, y: -1.0 };

/// How an element has to be before it is acted on.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    pub enabled: bool,
    /// A click there must reach it.
    pub hit: bool,
}

impl Core {
    /// Where to act, and what is there, by role and name.
    pub async fn aim(
        &self,
        page: &str,
        at: &At,
        needs: Needs,
        until: Instant,
    ) -> Result<(Point, Option<String>), Obstacle> {
        match at {
            At::Point(x, y) => Ok((Point { x: *x, y: *y }, None)),
            At::Ref(name) => self.aim_at(page, name, needs, until).await,
        }
    }

    async fn aim_at(
        &self,
        page: &str,
        name: &str,
        needs: Needs,
        until: Instant,
    ) -> Result<(Point, Option<String>), Obstacle> {
        let handle = self.handle(name)?;
        let wants = format!("{{enabled: {}, hit: {}}}", needs.enabled, needs.hit);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let call = format!("ready({}, {wants}, {})", handle.number, left.as_millis());
            let found: Found = self.inside(&handle, &call, left, name).await?;
            let target = found.target.clone();
            let found = self.fitting(&handle, name, found)?;
            match self.carry_out(page, &handle, Point { x: found.x, y: found.y }, needs.hit, name).await {
                Ok(point) => return Ok((point, target)),
                // Something around it moved, or lies over it: as inside, that may pass.
                Err(obstacle) if Instant::now() >= until || !obstacle.may_pass() => return Err(obstacle),
                Err(_) => {}
            }
        }
    }

    /// Asks the script about an element; what fails is told of the element.
    pub async fn inside<T: serde::de::DeserializeOwned>(
        &self,
        handle: &Handle,
        call: &str,
        within: Duration,
        name: &str,
    ) -> Result<T, Obstacle> {
        inside::call(self, &handle.place, call, within).await.map_err(|trouble| match trouble {
            trouble if inside::left(&trouble) => Obstacle::Left(name.to_owned()),
            trouble => Obstacle::Trouble(trouble),
        })
    }

    /// What was found, unless it is why the element cannot be acted on.
    pub fn fitting(&self, handle: &Handle, name: &str, found: Found) -> Result<Found, Obstacle> {
        let Some(fail) = found.fail.clone() else { return Ok(found) };
        let by = found.by.map(|number| self.name(&Handle { place: handle.place.clone(), number }));
        Err(Obstacle::Unfit { name: name.to_owned(), target: found.target, fail, by, what: found.what })
    }

    /// From a point in the element's frame to one in the page.
    pub async fn carry_out(
        &self,
        page: &str,
        handle: &Handle,
        mut point: Point,
        hit: bool,
        name: &str,
    ) -> Result<Point, Obstacle> {
        let frames = self.frames(page).await?;
        let mut at = frames.iter().position(|frame| frame.place == handle.place);
        let mut index = at.take().ok_or_else(|| Obstacle::Left(name.to_owned()))?;
        while let Some((parent, number)) = frames[index].shown_by {
            let shows = Handle { place: frames[parent].place.clone(), number };
            let call = format!("through({number}, {}, {}, {hit})", point.x, point.y);
            let found: Found = self.inside(&shows, &call, Duration::from_secs(2), name).await?;
            let found = self.fitting(&shows, name, found)?;
            point = Point { x: found.x, y: found.y };
            index = parent;
        }
        Ok(point)
    }

    /// Sends events of the mouse, in order, and waits until the page has taken them.
    pub async fn mouse(&self, page: &str, events: Vec<MouseEvent>, deadline: Duration) -> Result<(), Trouble> {
        let sent = events.iter().map(|event| self.call(Some(page), event, deadline));
        join_all(sent).await.into_iter().collect::<Result<Vec<_>, _>>().map(drop)
    }

    /// Drags with the left button: something that the page moves itself, or something `draggable`, of which the browser
    /// makes a drag of its own that only it can carry on.
    pub async fn drag(&self, page: &str, from: Point, to: Point, deadline: Duration) -> Result<(), Trouble> {
        lock(&self.shared.view).dragged = None;
        let mut grip = Grip { core: self, page, pressed: None, data: json!({"items": [], "dragOperationsMask": 0}) };
        self.call(Some(page), &SetInterceptDrags { enabled: true }, deadline).await?;
        self.any_drags(page, true, deadline).await?;
        grip.pressed = Some(from);
        self.mouse(page, taken_up(from, to), deadline).await?;
        if self.any_drags(page, false, deadline).await? {
            self.drag_by_the_browser(&mut grip, to, deadline).await?;
        } else {
            self.mouse(page, carried(from, to), deadline).await?;
        }
        self.mouse(page, vec![released(to, Button::Left, 1)], deadline).await?;
        grip.pressed = None;
        Ok(())
    }

    /// Whether a drag of the browser has begun in one of the frames.
    async fn any_drags(&self, page: &str, begin: bool, deadline: Duration) -> Result<bool, Trouble> {
        let frames = self.frames(page).await?;
        let call = format!("drags({begin})");
        let asked = frames.iter().map(|frame| inside::call::<bool>(self, &frame.place, &call, deadline));
        Ok(join_all(asked).await.contains(&Ok(true)))
    }

    async fn drag_by_the_browser(&self, grip: &mut Grip<'_>, to: Point, deadline: Duration) -> Result<(), Trouble> {
        let mut stirred = self.shared.stirred.subscribe();
        let begun = async {
            loop {
                if let Some(data) = lock(&self.shared.view).dragged.take() {
                    return data;
                }
                let _ = stirred.changed().await;
            }
        };
        // A drag without data is none.
        let Ok(data) = tokio::time::timeout(deadline, begun).await else { return Ok(()) };
        grip.data = data.clone();
        for kind in ["dragEnter", "dragOver", "drop"] {
            let event = DragEvent { kind, x: to.x, y: to.y, data: data.clone() };
            self.call(Some(grip.page), &event, deadline).await?;
        }
        Ok(())
    }

    /// The middle of what is visible of the page.
    pub async fn middle(&self, page: &str, deadline: Duration) -> Result<Point, Trouble> {
        let metrics = self.call(Some(page), &GetLayoutMetrics {}, deadline).await?;
        let seen = metrics.css_visual_viewport;
        Ok(Point { x: seen.client_width / 2.0, y: seen.client_height / 2.0 })
    }

    /// The page's session of a ref.
    pub fn page_at(&self, at: &At) -> Option<String> {
        let At::Ref(name) = at else { return None };
        let handle = self.handle(name).ok()?;
        lock(&self.shared.view).page_of(&handle.place.session)
    }
}

/// What a drag holds, and lets go of however it ends: its caller may give up in the middle, or the page not answer.
struct Grip<'a> {
    core: &'a Core,
    page: &'a str,
    /// Where the button was pressed that is to be released.
    pressed: Option<Point>,
    /// What is dragged, once the browser has said it.
    data: Value,
}

impl Drop for Grip<'_> {
    fn drop(&mut self) {
        let (client, page) = (&self.core.client, Some(self.page));
        if let Some(from) = self.pressed {
            // A drag of the browser leaves what it was over, and ends. Where there is none, the page hears nothing of it.
            for kind in ["dragOver", "dragCancel"] {
                client.post_now(page, &DragEvent { kind, x: from.x, y: from.y, data: self.data.clone() });
            }
            // Carried back and let go of beside the page, it is neither dropped nor clicked.
            client.post_now(page, &held(from));
            client.post_now(page, &released(BESIDE, Button::Left, 1));
        }
        client.post_now(page, &SetInterceptDrags { enabled: false });
    }
}

pub fn moved(to: Point) -> MouseEvent {
    MouseEvent { kind: "mouseMoved", x: to.x, y: to.y, button: "none", ..MouseEvent::default() }
}

pub fn clicked(at: Point, button: Button, count: u32) -> Vec<MouseEvent> {
    let mut events = vec![moved(at)];
    for click in 1..=count {
        events.push(pressed(at, button, click));
        events.push(released(at, button, click));
    }
    events
}

/// Takes something up: presses, and moves far enough for a drag to begin.
fn taken_up(from: Point, to: Point) -> Vec<MouseEvent> {
    let first = Point { x: from.x + 6.0_f64.copysign(to.x - from.x), y: from.y + 6.0_f64.copysign(to.y - from.y) };
    vec![moved(from), pressed(from, Button::Left, 1), held(first), held(between(from, to, 0.2))]
}

/// Carries it there; arrives twice, as whoever listens for a move in place needs.
fn carried(from: Point, to: Point) -> Vec<MouseEvent> {
    vec![held(between(from, to, 0.5)), held(to), held(to)]
}

fn held(to: Point) -> MouseEvent {
    MouseEvent { buttons: 1, button: "left", ..moved(to) }
}

fn between(from: Point, to: Point, share: f64) -> Point {
    Point { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share }
}

pub fn wheeled(at: Point, (delta_x, delta_y): (f64, f64)) -> Vec<MouseEvent> {
    let wheel = MouseEvent { kind: "mouseWheel", delta_x, delta_y, button: "none", ..moved(at) };
    vec![moved(at), wheel]
}

fn pressed(at: Point, button: Button, click_count: u32) -> MouseEvent {
    let (name, buttons) = names(button);
    MouseEvent { kind: "mousePressed", button: name, buttons, click_count, ..moved(at) }
}

fn released(at: Point, button: Button, click_count: u32) -> MouseEvent {
    MouseEvent { kind: "mouseReleased", button: names(button).0, click_count, ..moved(at) }
}

fn names(button: Button) -> (&'static str, u8) {
    match button {
        Button::Left => ("left", 1),
        Button::Right => ("right", 2),
        Button::Middle => ("middle", 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_double_click_is_two_clicks_that_count() {
        let told: Vec<_> = clicked(Point { x: 3.0, y: 4.0 }, Button::Right, 2)
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
