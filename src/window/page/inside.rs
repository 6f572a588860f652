//! Asking the script that runs inside each frame (`inside.js`).

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::core::{Core, Trouble};
use super::refs::Place;
use crate::cdp::{self, types::Evaluate};

const SCRIPT: &str = include_str!("inside.js");

/// Beyond what the script was given: it answers in time, unless the page is frozen, or the machine is busy.
const EXTRA: Duration = Duration::from_secs(3);

/// Puts the script where it is not yet.
pub async fn install(core: &Core, place: &Place, deadline: Duration) -> Result<(), Trouble> {
    if ask::<bool>(core, place, "!!globalThis.tether".into(), deadline).await? {
        return Ok(());
    }
    ask::<serde::de::IgnoredAny>(core, place, SCRIPT.to_owned(), deadline).await.map(drop)
}

/// Calls a function of the script: `tether.<call>`.
pub async fn call<T: DeserializeOwned>(core: &Core, place: &Place, call: &str, within: Duration) -> Result<T, Trouble> {
    ask(core, place, format!("tether.{call}"), within + EXTRA).await
}

/// Evaluates in the script's world.
async fn ask<T: DeserializeOwned>(
    core: &Core,
    place: &Place,
    expression: String,
    deadline: Duration,
) -> Result<T, Trouble> {
    let evaluate = Evaluate {
        expression,
        context_id: Some(place.context),
        await_promise: true,
        return_by_value: true,
        ..Evaluate::default()
    };
    let answer = core.call(Some(&place.session), &evaluate, deadline).await?;
    let unexpected = |cause: String| cdp::Error::Unexpected { what: "the script in the page".into(), cause };
    if let Some(details) = answer.exception_details {
        return Err(unexpected(details.text()).into());
    }
    let value = answer.result.value.unwrap_or_default();
    serde_json::from_value(value).map_err(|cause| unexpected(cause.to_string()).into())
}

/// A point in a frame, or why there is none.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Found {
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
pub fn left(trouble: &Trouble) -> bool {
    let words = ["Cannot find context", "context was destroyed", "navigated or closed", "uniqueContextId"];
    matches!(trouble, Trouble::Cdp(cdp::Error::Refused { message, .. }) if words.iter().any(|it| message.contains(it)))
}
