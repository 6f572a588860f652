//! Cookies, local and session storage: read, set, cleared; saved to and loaded from Playwright's storage state.
//!
//! Storage is reached through a frame of its origin, or through an empty page that stands for it. What pages have stored is data.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tether_base::error::{Error, ErrorKind, Result};
use tether_cdp::network::{EnableFetch, RequestPattern};
use tether_cdp::page_control::{
    BrowserCookie, ClearOriginData, CloseTarget, CreateTarget, DeleteCookies, GetCookies, StoreCookies, StoredCookie,
};
use tether_cdp::types::Navigate;
use tokio::time::timeout;
use url::Url;

use super::element_refs::DocumentContext;
use super::frame_tree::find_frames;
use super::injected_script::call_script;
use super::page_client::{BROWSER_TIMEOUT, EVENT_TIMEOUT, PageClient, PageSession};
use super::page_error::PageError;

/// How long an empty page may take to be there.
const STUB_TIMEOUT: Duration = Duration::from_secs(10);
/// Of a storage state.
const MAX_ORIGINS: usize = 200;
const MAX_COOKIES: usize = 5000;

/// A storage of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebStorage {
    Local,
    Session,
}

impl WebStorage {
    fn object(self) -> &'static str {
        match self {
            WebStorage::Local => "localStorage",
            WebStorage::Session => "sessionStorage",
        }
    }
}

/// Playwright's storage state. <https://playwright.dev/docs/api/class-browsercontext#browser-context-storage-state>
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StorageState {
    #[serde(default)]
    pub cookies: Vec<StateCookie>,
    #[serde(default)]
    pub origins: Vec<StateOrigin>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateCookie {
    pub name: String,
    pub value: String,
    #[serde(default)]
    pub domain: String,
    #[serde(default = "root_path")]
    pub path: String,
    /// Epoch seconds, or -1.
    #[serde(default = "no_expiry")]
    pub expires: f64,
    #[serde(default)]
    pub http_only: bool,
    #[serde(default)]
    pub secure: bool,
    #[serde(default = "lax")]
    pub same_site: String,
}

fn root_path() -> String {
    "/".to_owned()
}

fn no_expiry() -> f64 {
    -1.0
}

fn lax() -> String {
    "Lax".to_owned()
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateOrigin {
    pub origin: String,
    #[serde(default)]
    pub local_storage: Vec<StateItem>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateItem {
    pub name: String,
    pub value: String,
}

impl From<BrowserCookie> for StateCookie {
    fn from(it: BrowserCookie) -> StateCookie {
        StateCookie {
            name: it.name,
            value: it.value,
            domain: it.domain,
            path: it.path,
            expires: it.expires,
            http_only: it.http_only,
            secure: it.secure,
            same_site: it.same_site.unwrap_or_else(lax),
        }
    }
}

impl From<StateCookie> for StoredCookie {
    fn from(it: StateCookie) -> StoredCookie {
        StoredCookie {
            name: it.name,
            value: it.value,
            domain: it.domain,
            path: it.path,
            secure: it.secure,
            http_only: it.http_only,
            same_site: Some(it.same_site),
            expires: (it.expires >= 0.0).then_some(it.expires),
        }
    }
}

/// The origin of a page, or the one that is named. Errors: it is none that has storage.
pub async fn find_origin(client: &PageClient, named: Option<&str>) -> Result<String> {
    let text = match named {
        Some(origin) => origin.to_owned(),
        None => {
            let page = client.select_page(None, "cannot look at storage").await?;
            let targets = client.state.targets();
            let target = targets.sessions.get(&page.id).map(|it| it.target.clone()).unwrap_or_default();
            let listed = targets.pages().into_iter().find(|it| it.target_id == target).map(|it| it.url.clone());
            listed.unwrap_or_default()
        }
    };
    let origin = Url::parse(&text).ok().map(|url| url.origin()).filter(url::Origin::is_tuple);
    let none = || Error::usage(format!("{text:?} has no storage")).hint("give `origin`, such as http://127.0.0.1:3000");
    origin.map(|origin| origin.ascii_serialization()).ok_or_else(none)
}

/// The cookies that are sent to an origin; without one, all.
pub async fn read_cookies(client: &PageClient, origin: Option<&str>) -> Result<Vec<StateCookie>> {
    let got = client.call(None, &GetCookies {}, BROWSER_TIMEOUT).await.map_err(|error| client.user_error(error))?;
    let host = origin.map(host_of);
    let is_sent = |cookie: &BrowserCookie| host.as_deref().is_none_or(|host| is_sent_to(&cookie.domain, host));
    Ok(got.cookies.into_iter().filter(is_sent).take(MAX_COOKIES).map(StateCookie::from).collect())
}

fn host_of(origin: &str) -> String {
    Url::parse(origin).ok().and_then(|url| Some(url.host_str()?.to_owned())).unwrap_or_default()
}

fn is_sent_to(domain: &str, host: &str) -> bool {
    match domain.strip_prefix('.') {
        Some(domain) => host == domain || host.ends_with(&format!(".{domain}")),
        None => host == domain,
    }
}

/// Sets a cookie; `attributes` are those of [`StateCookie`]. Without a domain, it is the origin's.
pub async fn set_cookie_entry(
    client: &PageClient,
    origin: &str,
    name: &str,
    value: &str,
    attributes: Option<&Value>,
) -> Result<()> {
    let mut cookie = attributes.cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    let wrong = || Error::usage("cannot set the cookie");
    let fields = cookie.as_object_mut().ok_or_else(|| wrong().because("`cookie` is no object"))?;
    fields.insert("name".into(), name.into());
    fields.insert("value".into(), value.into());
    let mut cookie: StateCookie = serde_json::from_value(cookie).map_err(|cause| wrong().because(cause))?;
    if cookie.domain.is_empty() {
        cookie.domain = host_of(origin);
    }
    store_cookies(client, vec![cookie]).await
}

async fn store_cookies(client: &PageClient, cookies: Vec<StateCookie>) -> Result<()> {
    let store = StoreCookies { cookies: cookies.into_iter().map(StoredCookie::from).collect() };
    let refused = |cause| Error::usage("the browser does not take the cookie").because(cause);
    client.call(None, &store, EVENT_TIMEOUT).await.map(drop).map_err(refused)
}

/// Removes the cookies of an origin, or the one of this name; returns how many.
pub async fn clear_cookies(client: &PageClient, origin: &str, name: Option<&str>) -> Result<usize> {
    let page = client.select_page(None, "cannot clear cookies").await?;
    let cookies = read_cookies(client, Some(origin)).await?;
    let cleared: Vec<_> = cookies.into_iter().filter(|it| name.is_none_or(|name| it.name == name)).collect();
    for StateCookie { name, domain, path, .. } in cleared.clone() {
        let delete = DeleteCookies { name, domain, path };
        page.call(&delete, BROWSER_TIMEOUT).await.map_err(|error| client.user_error(error))?;
    }
    Ok(cleared.len())
}

/// Removes all that an origin has stored, with its caches, databases and service workers.
pub async fn clear_origin(client: &PageClient, origin: &str) -> Result<()> {
    let page = client.select_page(None, "cannot clear storage").await?;
    clear_cookies(client, origin, None).await?;
    let with_page = OriginDocument::open(client, origin).await?;
    let cleared = with_page.clear(WebStorage::Session, None).await;
    with_page.close().await;
    cleared?;
    let clear = ClearOriginData { origin: origin.to_owned(), storage_types: "all" };
    page.call(&clear, EVENT_TIMEOUT).await.map(drop).map_err(|error| client.user_error(error))
}

/// A document of an origin, by which its storage is reached: of a page, or of an empty page of ours.
pub struct OriginDocument {
    client: PageClient,
    document: DocumentContext,
    /// The target of the empty page.
    stub: Option<(String, String)>,
}

impl OriginDocument {
    /// Errors: no document of the origin can be had.
    pub async fn open(client: &PageClient, origin: &str) -> Result<OriginDocument> {
        let sessions: Vec<String> = {
            let targets = client.state.targets();
            let pages = targets.pages();
            pages.into_iter().filter_map(|page| targets.session_of_page(&page.target_id)).collect()
        };
        for id in sessions {
            let page = PageSession { client: client.clone(), id };
            let Ok(frames) = find_frames(&page).await else { continue };
            let of_origin = |url: &str| Url::parse(url).is_ok_and(|url| url.origin().ascii_serialization() == origin);
            if let Some(frame) = frames.iter().find(|frame| of_origin(&frame.info.url)) {
                return Ok(OriginDocument { client: client.clone(), document: frame.document.clone(), stub: None });
            }
        }
        OriginDocument::open_stub(client, origin).await
    }

    /// An empty page whose address is of the origin, without a request to it.
    async fn open_stub(client: &PageClient, origin: &str) -> Result<OriginDocument> {
        let create = CreateTarget { url: "about:blank".into(), background: true };
        let created = client.call(None, &create, BROWSER_TIMEOUT).await.map_err(|error| client.user_error(error))?;
        let target = created.target_id;
        let opened = async {
            let known = client
                .state
                .wait_for_targets(|targets| targets.pages().into_iter().find(|page| page.target_id == target).cloned());
            let info = known.await;
            let session = client.attach_page(&info).await?;
            {
                let mut targets = client.state.targets();
                targets.remove_opened_notice(&target);
                targets.stub_sessions.insert(session.clone());
            }
            let page = PageSession { client: client.clone(), id: session };
            let patterns = vec![RequestPattern { url_pattern: "*".into() }];
            page.call(&EnableFetch { patterns }, EVENT_TIMEOUT).await?;
            page.call(&Navigate { url: format!("{origin}/") }, EVENT_TIMEOUT).await?;
            let frames = find_frames(&page).await?;
            Ok((page, frames[0].document.clone()))
        };
        let failed = |cause: String| {
            Error::new(ErrorKind::Other, format!("cannot reach the storage of {origin}")).because(cause)
        };
        let outcome: Result<_, PageError> = match timeout(STUB_TIMEOUT, opened).await {
            Ok(outcome) => outcome,
            Err(_) => {
                client.cdp.send_nowait(None, &CloseTarget { target_id: target.clone() });
                return Err(failed("no page of it was there in time".to_owned()));
            }
        };
        match outcome {
            Ok((page, document)) => {
                Ok(OriginDocument { client: client.clone(), document, stub: Some((target, page.id)) })
            }
            Err(cause) => {
                client.cdp.send_nowait(None, &CloseTarget { target_id: target });
                Err(failed(cause.to_string()))
            }
        }
    }

    /// The entries of a storage, in the order of their names.
    pub async fn read(&self, storage: WebStorage) -> Result<BTreeMap<String, String>> {
        self.call(format!("storageItems({:?})", storage.object())).await
    }

    /// Sets entries of a storage.
    pub async fn set(&self, storage: WebStorage, entries: &[StateItem]) -> Result<()> {
        let pairs: Vec<[&str; 2]> = entries.iter().map(|it| [it.name.as_str(), it.value.as_str()]).collect();
        let pairs = serde_json::to_string(&pairs).unwrap_or_default();
        self.call::<bool>(format!("setStorage({:?}, {pairs})", storage.object())).await.map(drop)
    }

    /// Removes one entry of a storage, or all; returns how many.
    pub async fn clear(&self, storage: WebStorage, name: Option<&str>) -> Result<usize> {
        let name = serde_json::to_string(&name).unwrap_or_default();
        self.call(format!("clearStorage({:?}, {name})", storage.object())).await
    }

    async fn call<T: serde::de::DeserializeOwned>(&self, call: String) -> Result<T> {
        call_script(&self.client, &self.document, &call, EVENT_TIMEOUT)
            .await
            .map_err(|error| Error::other("cannot reach the storage").because(error))
    }

    /// Closes the empty page, if there is one.
    pub async fn close(self) {
        if let Some((target_id, session)) = self.stub {
            let _ = self.client.call(None, &CloseTarget { target_id: target_id.clone() }, BROWSER_TIMEOUT).await;
            let mut targets = self.client.state.targets();
            targets.stub_sessions.remove(&session);
            targets.remove_page(&target_id);
        }
    }
}

/// The storage state of the browser: all cookies, and the local storage of the origins of all frames that are open.
pub async fn read_state(client: &PageClient, origin: Option<&str>) -> Result<StorageState> {
    let mut origins: Vec<String> = origin.map(str::to_owned).into_iter().collect();
    let sessions: Vec<String> = {
        let targets = client.state.targets();
        targets.pages().into_iter().filter_map(|page| targets.session_of_page(&page.target_id)).collect()
    };
    for id in sessions {
        let Ok(frames) = find_frames(&PageSession { client: client.clone(), id }).await else { continue };
        for frame in frames.iter() {
            let of_frame = Url::parse(&frame.info.url).ok().map(|url| url.origin()).filter(url::Origin::is_tuple);
            origins.extend(of_frame.map(|it| it.ascii_serialization()));
        }
    }
    origins.sort();
    origins.dedup();
    let mut state = StorageState { cookies: read_cookies(client, None).await?, origins: Vec::new() };
    for origin in origins.into_iter().take(MAX_ORIGINS) {
        let document = OriginDocument::open(client, &origin).await?;
        let items = document.read(WebStorage::Local).await;
        document.close().await;
        // A page may be denied its storage.
        let items = items.unwrap_or_default();
        let local_storage: Vec<_> = items.into_iter().map(|(name, value)| StateItem { name, value }).collect();
        if !local_storage.is_empty() {
            state.origins.push(StateOrigin { origin, local_storage });
        }
    }
    Ok(state)
}

/// Sets the cookies and the local storage of a state, beside what is there.
pub async fn load_state(client: &PageClient, state: StorageState) -> Result<()> {
    if state.cookies.len() > MAX_COOKIES || state.origins.len() > MAX_ORIGINS {
        return Err(Error::usage("the storage state is too large")
            .because(format!("at most {MAX_COOKIES} cookies and {MAX_ORIGINS} origins are loaded")));
    }
    store_cookies(client, state.cookies).await?;
    for StateOrigin { origin, local_storage } in state.origins {
        let origin = find_origin(client, Some(&origin)).await?;
        let document = OriginDocument::open(client, &origin).await?;
        let set = document.set(WebStorage::Local, &local_storage).await;
        document.close().await;
        set?;
    }
    Ok(())
}
