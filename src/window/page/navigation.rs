//! Loads a URL in the page, and sets the browser's cookies.

use std::time::Duration;

use tether_base::error::{Error, Result};
use tether_cdp::types::{BringToFront, CookieParam, Navigate, SetCookies};

use super::page_client::{BROWSER_TIMEOUT, PageClient};

/// Deadline for the response headers of the URL.
const NAVIGATION_TIMEOUT: Duration = Duration::from_secs(30);

/// Sets a cookie in the browser, over one of the same name.
pub async fn set_cookie(client: &PageClient, cookie: &CookieParam) -> Result<()> {
    let set = SetCookies { cookies: vec![cookie.clone()] };
    client.call(None, &set, BROWSER_TIMEOUT).await.map_err(|error| client.user_error(error))?;
    Ok(())
}

/// Loads `url` in the best page; returns when the document begins to load.
pub async fn navigate_page(client: &PageClient, url: &str) -> Result<()> {
    let doing = "cannot load a URL";
    let page = client.select_page(None, doing).await?;
    let navigate = Navigate { url: url.to_owned() };
    let response = page.call(&navigate, NAVIGATION_TIMEOUT).await.map_err(|error| client.user_error(error))?;
    if let Some(cause) = response.error_text {
        return Err(Error::other(doing).because(cause));
    }
    // A browser that was started on an empty page has its focus in the address bar.
    page.call(&BringToFront {}, BROWSER_TIMEOUT).await.map_err(|error| client.user_error(error))?;
    Ok(())
}
