//! Calls the script that is injected into each frame (`injected_script.js`).

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tether_cdp::{CdpError, types::Evaluate};

use super::element_refs::DocumentContext;
use super::page_client::PageClient;
use super::page_error::PageError;

const SCRIPT: &str = include_str!("injected_script.js");

/// Added to the time that the script itself is given; exceeded only when the page is frozen or the machine is busy.
const RESPONSE_TIME: Duration = Duration::from_secs(3);

/// Installs the script in a document, unless it is there.
pub async fn install_script(
    client: &PageClient,
    document: &DocumentContext,
    deadline: Duration,
) -> Result<(), PageError> {
    if evaluate_in_document::<bool>(client, document, "!!globalThis.tether".into(), deadline).await? {
        return Ok(());
    }
    evaluate_in_document::<serde::de::IgnoredAny>(client, document, SCRIPT.to_owned(), deadline).await.map(drop)
}

/// Calls a function of the script, `tether.<call>`, which itself takes at most `within`.
pub async fn call_script<T: DeserializeOwned>(
    client: &PageClient,
    document: &DocumentContext,
    call: &str,
    within: Duration,
) -> Result<T, PageError> {
    evaluate_in_document(client, document, format!("tether.{call}"), within + RESPONSE_TIME).await
}

async fn evaluate_in_document<T: DeserializeOwned>(
    client: &PageClient,
    document: &DocumentContext,
    expression: String,
    deadline: Duration,
) -> Result<T, PageError> {
    let evaluate = Evaluate {
        expression,
        context_id: Some(document.context),
        await_promise: true,
        return_by_value: true,
        ..Evaluate::default()
    };
    let evaluated = client.call(Some(&document.session), &evaluate, deadline).await?;
    let unexpected = |cause: String| CdpError::Unexpected { what: "the script in the page".into(), cause };
    if let Some(details) = evaluated.exception_details {
        return Err(unexpected(details.text()).into());
    }
    let value = evaluated.result.value.unwrap_or_default();
    serde_json::from_value(value).map_err(|cause| unexpected(cause.to_string()).into())
}

/// Where an element is in its frame (CSS pixels), or why it cannot be acted on.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ElementCheck {
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
    /// The number of the covering element.
    pub by: Option<u32>,
    /// Role and name of the covering element, or details of the failure.
    pub what: Option<String>,
    /// Role and name of the element itself.
    pub target: Option<String>,
}
