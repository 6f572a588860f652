//! Where an expression is evaluated: in a page, in one of its frames, or with an element.
//!
//! A frame is named by the ref of the element that shows it, by its name, or by a part of its URL; it may run in another process.

use std::time::Duration;

use tether_base::clipped_text::clip_chars;
use tether_base::error::{Error, ErrorKind, Result};
use tether_cdp::page_control::{DescribeNode, ResolveInPage};
use tether_cdp::types::Evaluate;

use super::element_refs::ElementHandle;
use super::frame_tree::find_frames;
use super::page_client::{EVENT_TIMEOUT, PageClient, PageSession};
use super::page_error::PageError;
use super::targets::ScriptedFrame;
use crate::window::token_redaction::redact_connection_tokens;

/// Frames that an error lists.
const MAX_LISTED: usize = 10;

/// Where to evaluate.
#[derive(Clone, Debug, Default)]
pub struct PlaceRequest {
    /// The page with this id, or with this in its URL or title.
    pub page: Option<String>,
    /// A frame: the ref of its element, its name, or a part of its URL.
    pub frame: Option<String>,
    /// An element (a ref).
    pub element: Option<String>,
}

/// Where an expression is evaluated.
#[derive(Clone, Debug, Default)]
pub struct EvaluationPlace {
    /// None for Node.
    pub session: Option<String>,
    /// The execution context; none for the main frame's.
    pub context: Option<i64>,
    /// The element that the expression is about.
    pub element: Option<ElementHandle>,
}

/// Finds the place. Errors: a stale ref, no such frame, or it does not respond.
pub async fn find_place(client: &PageClient, request: &PlaceRequest) -> Result<EvaluationPlace> {
    let doing = "cannot evaluate in a frame";
    if let Some(name) = &request.element {
        if request.frame.is_some() {
            return Err(Error::usage("cannot evaluate").because("`ref` and `frame` exclude each other"));
        }
        let element = client.state.resolve_ref(name)?;
        let session = Some(element.document.session.clone());
        return Ok(EvaluationPlace { session, context: None, element: Some(element) });
    }
    let Some(wanted) = &request.frame else {
        let session = client.select_session(request.page.as_deref()).await?;
        return Ok(EvaluationPlace { session, ..EvaluationPlace::default() });
    };
    let page = match client.page_of_ref(wanted) {
        Ok(page) => page,
        Err(error) if is_ref(wanted) => return Err(error),
        Err(_) => client.select_page(request.page.as_deref(), doing).await?,
    };
    let frame = find_frame(&page, wanted).await?;
    let key = (frame.document.session.clone(), frame.info.id.clone());
    let context = client.state.targets().main_contexts.get(&key).copied();
    let context = context.ok_or_else(|| client.user_error(PageError::Closed))?;
    Ok(EvaluationPlace { session: Some(key.0), context: Some(context), element: None })
}

fn is_ref(name: &str) -> bool {
    name.strip_prefix('e').is_some_and(|digits| digits.parse::<u32>().is_ok())
}

/// A frame of a page, by the ref of its element, its name, or a part of its URL.
async fn find_frame(page: &PageSession, wanted: &str) -> Result<ScriptedFrame> {
    let client = &page.client;
    let frames = find_frames(page).await.map_err(|error| client.user_error(error))?;
    let found = if is_ref(wanted) {
        let ElementHandle { document, number } = client.state.resolve_ref(wanted)?;
        let outer = frames.iter().position(|frame| frame.document == document);
        frames.iter().find(|frame| outer.is_some_and(|outer| frame.owner == Some((outer, number))))
    } else {
        let named = frames.iter().find(|frame| frame.info.name.as_deref() == Some(wanted));
        named.or_else(|| frames.iter().skip(1).find(|frame| frame.info.url.contains(wanted)))
    };
    found.cloned().ok_or_else(|| no_frame_error(wanted, &frames))
}

fn no_frame_error(wanted: &str, frames: &[ScriptedFrame]) -> Error {
    let describe = |frame: &ScriptedFrame| {
        let url = redact_connection_tokens(frame.info.url.clone());
        format!("{:?} {:?}", clip_chars(frame.info.name.as_deref().unwrap_or_default(), 50), clip_chars(&url, 100))
    };
    let listed: Vec<String> = frames.iter().skip(1).take(MAX_LISTED).map(describe).collect();
    let error = Error::new(ErrorKind::NotFound, format!("the page has no frame {wanted:?}"));
    match listed.is_empty() {
        true => error.hint("it has no frames that respond"),
        false => error.hint(format!("there are, by name and address: {}", listed.join(", "))),
    }
}

/// The element as an object of the page's own world, in this group. Errors: it was removed.
pub async fn element_in_page(client: &PageClient, element: &ElementHandle, group: &str) -> Result<String, PageError> {
    let session = Some(element.document.session.as_str());
    let inner = isolated_element(client, element, group, EVENT_TIMEOUT).await?;
    let described = client.call(session, &DescribeNode { object_id: inner }, EVENT_TIMEOUT).await?;
    let resolve = ResolveInPage { backend_node_id: described.node.backend_node_id, object_group: group.to_owned() };
    let resolved = client.call(session, &resolve, EVENT_TIMEOUT).await?;
    resolved.object.object_id.ok_or(PageError::Closed)
}

/// The element as an object of the injected script's world, in this group. Errors: it was removed.
pub async fn isolated_element(
    client: &PageClient,
    element: &ElementHandle,
    group: &str,
    within: Duration,
) -> Result<String, PageError> {
    let evaluate = Evaluate {
        expression: format!("tether.element({})", element.number),
        context_id: Some(element.document.context),
        object_group: group.to_owned(),
        ..Evaluate::default()
    };
    let evaluated = client.call(Some(&element.document.session), &evaluate, within).await?;
    evaluated.result.object_id.ok_or(PageError::ElementRemoved)
}
