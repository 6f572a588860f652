//! Screenshots: of the viewport, of an element, or of the full page.

use std::time::Duration;

use tether_base::error::{Error, ErrorKind, Result};
use tether_cdp::types::{CaptureScreenshot, Evaluate, GetLayoutMetrics, ScreenshotClip};
use tokio::time::Instant;

use super::action_error::ActionError;
use super::element_point::{ActionContext, PagePoint, ReferencedElement, VISIBLE};
use super::page_client::{EVENT_TIMEOUT, PageClient, PageSession};
use super::page_error::PageError;
use crate::vocabulary::ImageFormat;

/// Deadline of each command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(15);
/// How long to wait for an element to be visible.
const VISIBLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Chromium's limit for the width and height of a picture, in pixels.
const MAX_SIDE: f64 = 16_384.0;
/// Pixels of a picture for which no scale is given: 1,500 tokens for a model that pays one for 750.
const MAX_PIXELS: f64 = 1500.0 * 750.0;
/// How often an element in a frame of another process is captured at most.
const MAX_CAPTURES: usize = 5;

/// What to capture.
#[derive(Clone, Debug, Default)]
pub struct ScreenshotRequest {
    /// Only this element (a ref).
    pub element: Option<String>,
    /// The full page, not only the viewport.
    pub full_page: bool,
    /// Only this part of the viewport: x, y, width and height in CSS pixels.
    pub clip: Option<[f64; 4]>,
    /// The encoding.
    pub format: ImageFormat,
    /// Pixels for a CSS pixel; without it, at most one, and few enough for [`MAX_PIXELS`].
    pub scale: Option<f64>,
    /// From 1 to 100, of a lossy encoding.
    pub quality: Option<u8>,
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
    if [request.full_page, request.element.is_some(), request.clip.is_some()].iter().filter(|it| **it).count() > 1 {
        return Err(Error::usage(doing)
            .because("`ref`, `fullPage` and `clip` exclude each other")
            .hint("leave one of them out"));
    }
    let page = match request.element.as_deref().and_then(|name| client.page_of_ref(name).ok()) {
        Some(page) => page,
        None => client.select_page(request.page.as_deref(), doing).await?,
    };
    let mut captures = 1;
    let (clip, mut note) = match (&request.element, request.full_page) {
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
    let viewport = Viewport::read(&page).await.map_err(|error| client.user_error(error))?;
    let clip = viewport.scaled_clip(clip, request, &mut note);
    let command = CaptureScreenshot {
        format: request.format.name(),
        quality: request.quality.filter(|_| request.format != ImageFormat::Png),
        clip,
        capture_beyond_viewport: request.full_page || request.element.is_some(),
        optimize_for_speed: true,
    };
    let data = capture_drawn(&page, &command, captures).await.map_err(|error| client.user_error(error))?;
    Ok(CapturedImage { data, format: request.format, note })
}

/// The viewport, with its scroll bars, in CSS pixels.
struct Viewport {
    width: f64,
    height: f64,
    /// Where it is in the document.
    left: f64,
    top: f64,
    /// Pixels of the screen for a CSS pixel.
    ratio: f64,
}

impl Viewport {
    async fn read(page: &PageSession) -> Result<Viewport, PageError> {
        let expression = "[innerWidth, innerHeight, devicePixelRatio]".to_owned();
        let read = Evaluate { expression, return_by_value: true, ..Evaluate::default() };
        let (metrics, evaluated) = (GetLayoutMetrics {}, page.call(&read, EVENT_TIMEOUT).await?);
        let shown = page.call(&metrics, COMMAND_TIMEOUT).await?.css_visual_viewport;
        let numbers = evaluated.result.value.and_then(|value| serde_json::from_value::<[f64; 3]>(value).ok());
        let [width, height, ratio] = numbers.unwrap_or([shown.client_width, shown.client_height, 1.0]);
        Ok(Viewport { width, height, left: shown.page_x, top: shown.page_y, ratio: ratio.max(0.01) })
    }

    /// The part of the document that is captured, with the scale that is asked for; without one, so that the picture has at most
    /// [`MAX_PIXELS`], and a note of that. `None`: the viewport as it is.
    fn scaled_clip(
        &self,
        clip: Option<ScreenshotClip>,
        request: &ScreenshotRequest,
        note: &mut Option<String>,
    ) -> Option<ScreenshotClip> {
        let is_plain = clip.is_none() && request.clip.is_none();
        let clip = clip.unwrap_or_else(|| self.part(request.clip.unwrap_or([0.0, 0.0, self.width, self.height])));
        let pixels = clip.width * clip.height;
        let most = MAX_SIDE / clip.width.max(clip.height);
        let fitting = (MAX_PIXELS / pixels).sqrt().min(1.0);
        let wanted = request.scale.unwrap_or(fitting).min(most);
        let scale = wanted / self.ratio;
        if is_plain && (scale - 1.0).abs() < f64::EPSILON {
            return None;
        }
        if request.scale.is_none() && fitting < 1.0 {
            let (width, height, percent) = (clip.width, clip.height, wanted * 100.0);
            let said = format!("{width}×{height} pixels are shown at {percent:.0} %; `scale` or `clip` shows more");
            *note = Some(note.take().map_or(said.clone(), |note| format!("{note}; {said}")));
        }
        Some(ScreenshotClip { scale, ..clip })
    }

    /// A part of the viewport, as far as it is within it.
    fn part(&self, [x, y, width, height]: [f64; 4]) -> ScreenshotClip {
        let (x, y) = (x.clamp(0.0, (self.width - 1.0).max(0.0)), y.clamp(0.0, (self.height - 1.0).max(0.0)));
        let (width, height) = (width.min(self.width - x).max(1.0), height.min(self.height - y).max(1.0));
        ScreenshotClip { x: x + self.left, y: y + self.top, width, height, scale: 1.0 }
    }
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
