//! Screenshots: of the viewport, of an element, or of the full page.

use std::time::Duration;

use tokio::time::Instant;

use super::action_error::ActionError;
use super::element_point::{
    ActionRequirements, PagePoint, call_on_element, check_actionable, locate_target, page_of_target, point_in_page,
};
use super::injected_script::ElementCheck;
use super::input_action::ActionTarget;
use super::page_client::PageClient;
use super::page_error::PageError;
use crate::cdp::types::{CaptureScreenshot, GetLayoutMetrics, ScreenshotClip};
use crate::error::{Error, ErrorKind, Result};

/// Deadline of each command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(15);
/// How long to wait for an element to be visible.
const VISIBLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Chromium's limit for the width and height of a picture, in pixels.
const MAX_SIDE: f64 = 16_384.0;

/// What to capture.
#[derive(Clone, Debug, Default)]
pub struct ScreenshotRequest {
    /// Only this element (a ref).
    pub element: Option<String>,
    /// The full page, not only the viewport.
    pub full_page: bool,
    /// The encoding.
    pub format: ImageFormat,
    /// The page with this in its URL or title.
    pub page: Option<String>,
}

/// Encoding of a screenshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImageFormat {
    #[default]
    Png,
    Jpeg,
    Webp,
}

impl ImageFormat {
    /// CDP's name, and the subtype of the MIME type.
    pub fn name(self) -> &'static str {
        match self {
            ImageFormat::Png => "png",
            ImageFormat::Jpeg => "jpeg",
            ImageFormat::Webp => "webp",
        }
    }
}

/// A screenshot.
#[derive(Clone, Debug)]
pub struct CapturedImage {
    /// Base64, as the browser sends it.
    pub data: String,
    /// The encoding.
    pub format: ImageFormat,
    /// A remark for the user: the page is larger than the picture.
    pub note: Option<String>,
}

/// Takes a screenshot. Errors: a stale ref, a hidden element, a page that crashed or does not respond.
pub async fn capture_screenshot(client: &PageClient, request: &ScreenshotRequest) -> Result<CapturedImage> {
    let doing = "cannot take a screenshot";
    if request.full_page && request.element.is_some() {
        return Err(Error::usage(doing)
            .because("`ref` and `fullPage` exclude each other")
            .hint("leave one of them out"));
    }
    let target = request.element.clone().map(ActionTarget::Ref);
    let session = match target.as_ref().and_then(|target| page_of_target(client, target)) {
        Some(session) => session,
        None => client.select_page(request.page.as_deref(), doing).await?,
    };
    let (clip, note) = match (&request.element, request.full_page) {
        (Some(name), _) => {
            let clip = element_clip(client, &session, name).await;
            (Some(clip.map_err(|error| error.into_error(client.endpoint.port))?), None)
        }
        (None, true) => full_page_clip(client, &session).await.map_err(|error| client.user_error(error))?,
        (None, false) => (None, None),
    };
    let command = CaptureScreenshot {
        format: request.format.name(),
        clip,
        capture_beyond_viewport: clip.is_some(),
        optimize_for_speed: true,
    };
    let captured = client.call(Some(&session), &command, COMMAND_TIMEOUT).await;
    let data = captured.map_err(|error| client.user_error(error))?.data;
    Ok(CapturedImage { data, format: request.format, note })
}

/// The clip of the full page, and a note if it exceeds the limit.
async fn full_page_clip(
    client: &PageClient,
    page: &str,
) -> Result<(Option<ScreenshotClip>, Option<String>), PageError> {
    let size = client.call(Some(page), &GetLayoutMetrics {}, COMMAND_TIMEOUT).await?.css_content_size;
    let (width, height) = (size.width.clamp(1.0, MAX_SIDE), size.height.clamp(1.0, MAX_SIDE));
    let is_cut = width < size.width || height < size.height;
    let note = is_cut.then(|| {
        format!("the page is {}×{} pixels; the picture shows the first {width}×{height}", size.width, size.height)
    });
    Ok((Some(ScreenshotClip { x: 0.0, y: 0.0, width, height, scale: 1.0 }), note))
}

/// Brings an element into view; returns its rectangle in the document.
async fn element_clip(client: &PageClient, page: &str, name: &str) -> Result<ScreenshotClip, ActionError> {
    let visible = ActionRequirements { enabled: false, hit: false };
    let target = ActionTarget::Ref(name.to_owned());
    locate_target(client, page, &target, visible, Instant::now() + VISIBLE_TIMEOUT).await?;
    let handle = client.state.resolve_ref(name)?;
    let call = format!("rectangle({}, {})", handle.number, VISIBLE_TIMEOUT.as_millis());
    let found: ElementCheck = call_on_element(client, &handle, &call, VISIBLE_TIMEOUT, name).await?;
    let found = check_actionable(client, &handle, name, found)?;
    let (width, height) = (found.width.min(MAX_SIDE), found.height.min(MAX_SIDE));
    if width < 1.0 || height < 1.0 {
        return Err(Error::new(ErrorKind::Other, format!("{name} is hidden: its size is zero")).into());
    }
    // The script returns the position within the element's frame.
    let corner = point_in_page(client, page, &handle, PagePoint { x: found.x, y: found.y }, false, name).await?;
    // Read last: bringing the corner into view may have scrolled the page.
    let viewport = client.call(Some(page), &GetLayoutMetrics {}, COMMAND_TIMEOUT).await?.css_visual_viewport;
    let (x, y) = (corner.x + viewport.page_x, corner.y + viewport.page_y);
    Ok(ScreenshotClip { x, y, width, height, scale: 1.0 })
}
