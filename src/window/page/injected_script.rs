//! Asking the script that runs inside each frame (`inside.js`).

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::element_refs::DocumentContext;
use super::page_client::{PageClient, PageError};
use crate::cdp::{self, types::Evaluate};

const SCRIPT: &str = include_str!("injected_script.js");

/// Beyond what the script was given: it answers in time, unless the page is frozen, or the machine is busy.
const EXTRA: Duration = Duration::from_secs(3);

/// Puts the script where it is not yet.
pub async fn install_script(core: &PageClient, place: &DocumentContext, deadline: Duration) -> Result<(), PageError> {
    if evaluate_in_context::<bool>(core, place, "!!globalThis.tether".into(), deadline).await? {
        return Ok(());
    }
    evaluate_in_context::<serde::de::IgnoredAny>(core, place, SCRIPT.to_owned(), deadline).await.map(drop)
}

/// Calls a function of the script: `tether.<call>`.
pub async fn call_script<T: DeserializeOwned>(
    core: &PageClient,
    place: &DocumentContext,
    call: &str,
    within: Duration,
) -> Result<T, PageError> {
    evaluate_in_context(core, place, format!("tether.{call}"), within + EXTRA).await
}

/// Evaluates in the script's world.
async fn evaluate_in_context<T: DeserializeOwned>(
    core: &PageClient,
    place: &DocumentContext,
    expression: String,
    deadline: Duration,
) -> Result<T, PageError> {
    let evaluate = Evaluate {
        expression,
        context_id: Some(place.context),
        await_promise: true,
        return_by_value: true,
        ..Evaluate::default()
    };
    let answer = core.call(Some(&place.session), &evaluate, deadline).await?;
    let unexpected = |cause: String| cdp::CdpError::Unexpected { what: "the script in the page".into(), cause };
    if let Some(details) = answer.exception_details {
        return Err(unexpected(details.text()).into());
    }
    let value = answer.result.value.unwrap_or_default();
    serde_json::from_value(value).map_err(|cause| unexpected(cause.to_string()).into())
}

/// A point in a frame, or why there is none.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct LocatedElement {
    #[serde(default)]
    pub x: f64,
    #[serde(default)]
    pub y: f64,
    #[serde(default)]
    pub width: f64,
    #[serde(default)]
    pub height: f64,
    /// `removed`, `hidden`, `disabled`, `moving`, `outside`, `covered`, `focus`
    pub fail: Option<String>,
    /// What lies over it: its number.
    pub by: Option<u32>,
    /// What lies over it, or more about why.
    pub what: Option<String>,
    /// Role and name of the element itself.
    pub target: Option<String>,
}

/// Whether trouble means that the document is gone in which the script was.
pub fn is_document_gone(trouble: &PageError) -> bool {
    let words = ["Cannot find context", "context was destroyed", "navigated or closed", "uniqueContextId"];
    matches!(trouble, PageError::Cdp(cdp::CdpError::ErrorResponse { message, .. }) if words.iter().any(|it| message.contains(it)))
}
