//! Pictures of the page: what is visible, an element, or all of it.

use std::time::Duration;

use tokio::time::Instant;

use super::inside::Found;
use super::mouse::{Needs, Point};
use super::{At, Page};
use crate::cdp::types::{CaptureScreenshot, Clip, GetLayoutMetrics};
use crate::error::{Error, Kind, Result};

const DEADLINE: Duration = Duration::from_secs(15);
/// How long an element may take to be visible.
const VISIBLE: Duration = Duration::from_secs(5);
/// Chromium draws no larger pictures.
const LONGEST: f64 = 16_384.0;

/// What to take a picture of.
#[derive(Clone, Debug, Default)]
pub struct Shot {
    pub element: Option<String>,
    /// All of the page, not only what is visible.
    pub full: bool,
    pub format: Format,
    pub page: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Png,
    Jpeg,
    Webp,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::Png => "png",
            Format::Jpeg => "jpeg",
            Format::Webp => "webp",
        }
    }
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Base64, as the browser sends it.
    pub data: String,
    pub format: Format,
    /// What the reader should know.
    pub note: Option<String>,
}

impl Page {
    /// Takes a picture. Errors: a stale ref, a hidden element, a page that crashed or does not answer.
    pub async fn screenshot(&self, shot: &Shot) -> Result<Picture> {
        let doing = "cannot take a screenshot";
        if shot.full && shot.element.is_some() {
            return Err(Error::usage(doing)
                .because("`ref` and `fullPage` exclude each other")
                .hint("leave one of them out"));
        }
        let core = &self.core;
        let at = shot.element.clone().map(At::Ref);
        let session = match at.as_ref().and_then(|at| core.page_at(at)) {
            Some(session) => session,
            None => core.page(shot.page.as_deref(), doing).await?,
        };
        let (clip, note) = match (&shot.element, shot.full) {
            (Some(name), _) => (Some(self.rectangle(&session, name).await?), None),
            (None, true) => self.whole(&session).await?,
            (None, false) => (None, None),
        };
        let command = CaptureScreenshot {
            format: shot.format.name(),
            clip,
            capture_beyond_viewport: clip.is_some(),
            optimize_for_speed: true,
        };
        let taken = core.call(Some(&session), &command, DEADLINE).await;
        let data = taken.map_err(|trouble| core.explain(trouble))?.data;
        Ok(Picture { data, format: shot.format, note })
    }

    async fn whole(&self, session: &str) -> Result<(Option<Clip>, Option<String>)> {
        let metrics = self.core.call(Some(session), &GetLayoutMetrics {}, DEADLINE).await;
        let size = metrics.map_err(|trouble| self.core.explain(trouble))?.css_content_size;
        let (width, height) = (size.width.clamp(1.0, LONGEST), size.height.clamp(1.0, LONGEST));
        let cut = width < size.width || height < size.height;
        let note = cut.then(|| {
            format!("the page is {}×{} pixels; the picture shows the first {width}×{height}", size.width, size.height)
        });
        Ok((Some(Clip { x: 0.0, y: 0.0, width, height, scale: 1.0 }), note))
    }

    /// The rectangle of an element in the document, brought into view.
    async fn rectangle(&self, session: &str, name: &str) -> Result<Clip> {
        let core = &self.core;
        let needs = Needs { enabled: false, hit: false };
        let at = At::Ref(name.to_owned());
        let until = Instant::now() + VISIBLE;
        core.aim(session, &at, needs, until).await.map_err(|obstacle| core.obstacle(obstacle))?;
        let handle = core.handle(name)?;
        let call = format!("rectangle({}, {})", handle.number, VISIBLE.as_millis());
        let found = core.inside::<Found>(&handle, &call, VISIBLE, name).await;
        let found = found.and_then(|found| core.fitting(&handle, name, found));
        let found = found.map_err(|obstacle| core.obstacle(obstacle))?;
        let (width, height) = (found.width.min(LONGEST), found.height.min(LONGEST));
        if width < 1.0 || height < 1.0 {
            return Err(Error::new(Kind::Other, format!("{name} is hidden: its size is zero")));
        }
        // The script knows the element's place in its frame.
        let corner = core.carry_out(session, &handle, Point { x: found.x, y: found.y }, false, name).await;
        let corner = corner.map_err(|obstacle| core.obstacle(obstacle))?;
        // Asked last: bringing the corner into view may have scrolled the page.
        let metrics = core.call(Some(session), &GetLayoutMetrics {}, DEADLINE).await;
        let seen = metrics.map_err(|trouble| core.explain(trouble))?.css_visual_viewport;
        let (x, y) = (corner.x + seen.page_x, corner.y + seen.page_y);
        Ok(Clip { x, y, width, height, scale: 1.0 })
    }
}
