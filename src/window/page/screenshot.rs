//! Pictures of the page: what is visible, an element, or all of it.

use std::time::Duration;

use tokio::time::Instant;

use super::injected_script::LocatedElement;
use super::mouse::{ActionRequirements, PagePoint};
use super::{ActionTarget, PageConnection};
use crate::cdp::types::{CaptureScreenshot, GetLayoutMetrics, ScreenshotClip};
use crate::error::{Error, ErrorKind, Result};

const DEADLINE: Duration = Duration::from_secs(15);
/// How long an element may take to be visible.
const VISIBLE: Duration = Duration::from_secs(5);
/// Chromium draws no larger pictures.
const LONGEST: f64 = 16_384.0;

/// What to take a picture of.
#[derive(Clone, Debug, Default)]
pub struct ScreenshotRequest {
    pub element: Option<String>,
    /// All of the page, not only what is visible.
    pub full_page: bool,
    pub format: ImageFormat,
    pub page: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImageFormat {
    #[default]
    Png,
    Jpeg,
    Webp,
}

impl ImageFormat {
    pub fn name(self) -> &'static str {
        match self {
            ImageFormat::Png => "png",
            ImageFormat::Jpeg => "jpeg",
            ImageFormat::Webp => "webp",
        }
    }
}

/// A picture.
#[derive(Clone, Debug)]
pub struct CapturedImage {
    /// Base64, as the browser sends it.
    pub data: String,
    pub format: ImageFormat,
    /// What the reader should know.
    pub note: Option<String>,
}

impl PageConnection {
    /// Takes a picture. Errors: a stale ref, a hidden element, a page that crashed or does not answer.
    pub async fn screenshot(&self, shot: &ScreenshotRequest) -> Result<CapturedImage> {
        let doing = "cannot take a screenshot";
        if shot.full_page && shot.element.is_some() {
            return Err(Error::usage(doing)
                .because("`ref` and `fullPage` exclude each other")
                .hint("leave one of them out"));
        }
        let core = &self.core;
        let at = shot.element.clone().map(ActionTarget::Ref);
        let session = match at.as_ref().and_then(|at| core.page_of_target(at)) {
            Some(session) => session,
            None => core.select_page(shot.page.as_deref(), doing).await?,
        };
        let (clip, note) = match (&shot.element, shot.full_page) {
            (Some(name), _) => (Some(self.element_clip(&session, name).await?), None),
            (None, true) => self.full_page_clip(&session).await?,
            (None, false) => (None, None),
        };
        let command = CaptureScreenshot {
            format: shot.format.name(),
            clip,
            capture_beyond_viewport: clip.is_some(),
            optimize_for_speed: true,
        };
        let taken = core.call(Some(&session), &command, DEADLINE).await;
        let data = taken.map_err(|trouble| core.user_error(trouble))?.data;
        Ok(CapturedImage { data, format: shot.format, note })
    }

    async fn full_page_clip(&self, session: &str) -> Result<(Option<ScreenshotClip>, Option<String>)> {
        let metrics = self.core.call(Some(session), &GetLayoutMetrics {}, DEADLINE).await;
        let size = metrics.map_err(|trouble| self.core.user_error(trouble))?.css_content_size;
        let (width, height) = (size.width.clamp(1.0, LONGEST), size.height.clamp(1.0, LONGEST));
        let cut = width < size.width || height < size.height;
        let note = cut.then(|| {
            format!("the page is {}×{} pixels; the picture shows the first {width}×{height}", size.width, size.height)
        });
        Ok((Some(ScreenshotClip { x: 0.0, y: 0.0, width, height, scale: 1.0 }), note))
    }

    /// The rectangle of an element in the document, brought into view.
    async fn element_clip(&self, session: &str, name: &str) -> Result<ScreenshotClip> {
        let core = &self.core;
        let needs = ActionRequirements { enabled: false, hit: false };
        let at = ActionTarget::Ref(name.to_owned());
        let until = Instant::now() + VISIBLE;
        core.locate_target(session, &at, needs, until).await.map_err(|obstacle| core.action_user_error(obstacle))?;
        let handle = core.resolve_ref(name)?;
        let call = format!("rectangle({}, {})", handle.number, VISIBLE.as_millis());
        let found = core.call_element_script::<LocatedElement>(&handle, &call, VISIBLE, name).await;
        let found = found.and_then(|found| core.check_actionable(&handle, name, found));
        let found = found.map_err(|obstacle| core.action_user_error(obstacle))?;
        let (width, height) = (found.width.min(LONGEST), found.height.min(LONGEST));
        if width < 1.0 || height < 1.0 {
            return Err(Error::new(ErrorKind::Other, format!("{name} is hidden: its size is zero")));
        }
        // The script knows the element's place in its frame.
        let corner = core.point_in_page(session, &handle, PagePoint { x: found.x, y: found.y }, false, name).await;
        let corner = corner.map_err(|obstacle| core.action_user_error(obstacle))?;
        // Asked last: bringing the corner into view may have scrolled the page.
        let metrics = core.call(Some(session), &GetLayoutMetrics {}, DEADLINE).await;
        let seen = metrics.map_err(|trouble| core.user_error(trouble))?.css_visual_viewport;
        let (x, y) = (corner.x + seen.page_x, corner.y + seen.page_y);
        Ok(ScreenshotClip { x, y, width, height, scale: 1.0 })
    }
}
