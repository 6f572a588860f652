//! Screenshots: of the viewport, of an element, or of the full page.

use std::time::Duration;

use tether_base::error::{Error, ErrorKind, Result};
use tether_cdp::types::{CaptureScreenshot, GetLayoutMetrics, ScreenshotClip};
use tokio::time::Instant;

use super::action_error::ActionError;
use super::element_point::{ActionContext, PagePoint, ReferencedElement, VISIBLE};
use super::page_client::{PageClient, PageSession};
use super::page_error::PageError;
use crate::vocabulary::ImageFormat;

/// Deadline of each command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(15);
/// How long to wait for an element to be visible.
const VISIBLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Chromium's limit for the width and height of a picture, in pixels.
const MAX_SIDE: f64 = 16_384.0;
/// How often an element in a frame of another process is captured at most.
const MAX_CAPTURES: usize = 5;

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
    let page = match request.element.as_deref().and_then(|name| client.page_of_ref(name).ok()) {
        Some(page) => page,
        None => client.select_page(request.page.as_deref(), doing).await?,
    };
    let mut captures = 1;
    let (clip, note) = match (&request.element, request.full_page) {
        (Some(name), _) => {
            let clip = element_clip(&page, name).await.map_err(|error| error.into_error(client.endpoint.port))?;
            if client.state.resolve_ref(name)?.document.session != page.id {
                captures = MAX_CAPTURES;
            }
            (Some(clip), None)
        }
        (None, true) => full_page_clip(&page).await.map_err(|error| client.user_error(error))?,
        (None, false) => (None, None),
    };
    let command = CaptureScreenshot {
        format: request.format.name(),
        clip,
        capture_beyond_viewport: clip.is_some(),
        optimize_for_speed: true,
    };
    let data = capture_drawn(&page, &command, captures).await.map_err(|error| client.user_error(error))?;
    Ok(CapturedImage { data, format: request.format, note })
}

/// Captures until two pictures in a row are equal, at most `captures` times. (For a picture that is larger than the
/// viewport Chromium enlarges it, and does not wait until a frame of another process is drawn anew: it may be blank.)
async fn capture_drawn(page: &PageSession, command: &CaptureScreenshot, captures: usize) -> Result<String, PageError> {
    let mut data = page.call(command, COMMAND_TIMEOUT).await?.data;
    for _ in 1..captures {
        let next = page.call(command, COMMAND_TIMEOUT).await?.data;
        if next == data {
            break;
        }
        data = next;
    }
    Ok(data)
}

/// The clip of the full page, and a note if it exceeds the limit.
async fn full_page_clip(page: &PageSession) -> Result<(Option<ScreenshotClip>, Option<String>), PageError> {
    let size = page.call(&GetLayoutMetrics {}, COMMAND_TIMEOUT).await?.css_content_size;
    let (width, height) = (size.width.clamp(1.0, MAX_SIDE), size.height.clamp(1.0, MAX_SIDE));
    let is_cut = width < size.width || height < size.height;
    let note = is_cut.then(|| {
        format!("the page is {}×{} pixels; the picture shows the first {width}×{height}", size.width, size.height)
    });
    Ok((Some(ScreenshotClip { x: 0.0, y: 0.0, width, height, scale: 1.0 }), note))
}

/// Brings an element into view; returns its rectangle in the document.
async fn element_clip(page: &PageSession, name: &str) -> Result<ScreenshotClip, ActionError> {
    ActionContext { page, until: Instant::now() + VISIBLE_TIMEOUT }.locate_element(name, VISIBLE).await?;
    let element = ReferencedElement::resolve(&page.client, name)?;
    let call = format!("rectangle({}, {})", element.handle.number, VISIBLE_TIMEOUT.as_millis());
    let found = element.check(&call, VISIBLE_TIMEOUT).await?;
    let (width, height) = (found.width.min(MAX_SIDE), found.height.min(MAX_SIDE));
    if width < 1.0 || height < 1.0 {
        return Err(Error::new(ErrorKind::Other, format!("{name} is hidden: its size is zero")).into());
    }
    // The script returns the position within the element's frame.
    let corner = element.point_in_page(page, PagePoint { x: found.x, y: found.y }, false).await?;
    // Read last: bringing the corner into view may have scrolled the page.
    let viewport = page.call(&GetLayoutMetrics {}, COMMAND_TIMEOUT).await?.css_visual_viewport;
    let (x, y) = (corner.x + viewport.page_x, corner.y + viewport.page_y);
    Ok(ScreenshotClip { x, y, width, height, scale: 1.0 })
}
