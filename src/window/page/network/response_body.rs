//! Takes the bodies of responses from the browser: at once where they are small, so that a navigation does not lose them, the
//! others when they are asked for.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tether_cdp::CdpError;
use tether_cdp::network::GetResponseBody;
use tokio::sync::Semaphore;

use super::BodyToTake;
use super::request_details::{RecordedBody, RequestDetail};
use crate::window::page::page_client::PageClient;
use crate::window::page::page_error::PageError;

/// What the browser keeps of bodies, in bytes: of all in a page, of one, and of one that is sent.
pub const BROWSER_TOTAL_BYTES: u64 = 32 << 20;
pub const BROWSER_BODY_BYTES: u64 = 8 << 20;
pub const BROWSER_POST_BYTES: u64 = 64 << 10;
/// The largest body that is taken when it is asked for.
const MAX_BODY_BYTES: u64 = 8 << 20;
/// Deadline for the browser to give one.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Bodies taken at the same time.
const MAX_AT_ONCE: usize = 4;
/// Bodies that wait for that; further ones stay in the browser.
const MAX_WAITING: usize = 200;

/// How many bodies are taken at the same time.
pub struct BodyPermits {
    running: Semaphore,
    waiting: Semaphore,
}

impl Default for BodyPermits {
    fn default() -> Self {
        BodyPermits { running: Semaphore::new(MAX_AT_ONCE), waiting: Semaphore::new(MAX_WAITING) }
    }
}

/// Whether a body of this size (decoded; 0: not known) and type is taken as soon as it has arrived.
pub fn is_taken_at_once(kind: &str, bytes: u64) -> bool {
    let most = match kind {
        // Never from the memory of the page, so the size is known.
        "Document" | "XHR" | "Fetch" => return bytes <= 2 << 20,
        "Script" | "Stylesheet" | "Manifest" | "Other" => 512 << 10,
        "Image" | "Font" | "TextTrack" => 128 << 10,
        _ => 0,
    };
    (1..=most).contains(&bytes)
}

/// Takes a body that has arrived, and records it.
pub async fn take_body(client: &PageClient, wanted: &BodyToTake) {
    let permits = &client.state.body_permits;
    let Ok(_waiting) = permits.waiting.try_acquire() else {
        return client.history().set_body(wanted.id, RecordedBody::InBrowser);
    };
    let Ok(_running) = permits.running.acquire().await else { return };
    let body = fetch_body(client, wanted, 0).await;
    client.history().set_body(wanted.id, body);
}

/// The body from the browser; `bytes` is its size, or 0.
pub async fn fetch_body(client: &PageClient, wanted: &BodyToTake, bytes: u64) -> RecordedBody {
    if bytes > MAX_BODY_BYTES {
        return RecordedBody::Lost(format!("it has {bytes} bytes, of which at most {MAX_BODY_BYTES} are taken"));
    }
    let (session, request_id) = &wanted.key;
    let get = GetResponseBody { request_id: request_id.clone() };
    match client.call(session.as_deref(), &get, BODY_TIMEOUT).await {
        Ok(answer) if answer.base64_encoded => match STANDARD.decode(&answer.body) {
            Ok(bytes) => RecordedBody::Bytes(bytes.into()),
            Err(cause) => RecordedBody::Lost(format!("the browser gave it in a form that cannot be read: {cause}")),
        },
        Ok(answer) => RecordedBody::Text(answer.body.into()),
        Err(PageError::Cdp(CdpError::ErrorResponse { message, .. })) => {
            RecordedBody::Lost(format!("the browser does not have it: {message}"))
        }
        Err(error) => RecordedBody::Lost(error.to_string()),
    }
}

/// The body of a request, taken from the browser if it is still there; `None`: nothing else is known than before.
pub async fn load_body(client: &PageClient, id: u64, detail: &RequestDetail) -> Option<RecordedBody> {
    if !matches!(detail.body, RecordedBody::InBrowser | RecordedBody::Awaited) {
        return None;
    }
    let wanted = client.history().body_in_browser(id)?;
    let body = fetch_body(client, &wanted, detail.body_bytes).await;
    client.history().set_body(id, body.clone());
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_bodies_of_known_size_are_taken_at_once() {
        for (kind, bytes, expect) in [
            ("Fetch", 0, true),
            ("Fetch", 3 << 20, false),
            ("Script", 0, false),
            ("Script", 1000, true),
            ("Image", 1 << 20, false),
            ("Media", 1, false),
            ("EventSource", 1, false),
        ] {
            assert_eq!(is_taken_at_once(kind, bytes), expect, "{kind} {bytes}");
        }
    }
}
