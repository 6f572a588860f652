//! Pages as tabs: listed, opened, closed, chosen; and where each goes.
//!
//! A navigation is waited for until its document has loaded. A URL of a file is one of the workspace.

use std::time::Duration;

use tether_base::clipped_text::clip_chars;
use tether_base::error::{Error, ErrorKind, Result};
use tether_base::sync::run_blocking;
use tether_cdp::page_control::{
    ActivateTarget, CloseTarget, CreateTarget, GetNavigationHistory, NavigateToHistoryEntry,
};
use tether_cdp::types::{BringToFront, GetTargets, Navigate, ReloadPage};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::page_client::{BROWSER_TIMEOUT, PageClient, PageSession, noop_evaluation};
use crate::window::token_redaction::redact_connection_tokens;
use crate::workspace::output_files::real_workspace_file;

/// How long a new page may take to be attached to.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(10);

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageTab {
    /// `t3fa9`, as long as the page is open.
    pub id: String,
    pub title: String,
    pub url: String,
    /// Whether it is the one that operations mean which name none.
    pub is_current: bool,
}

/// What to do with pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TabAction {
    List,
    /// To a URL, which may be relative to the page's.
    Go(String),
    /// By so many entries of its history: -1 is back.
    Move(i64),
    Reload {
        ignore_cache: bool,
    },
    /// A new page, which becomes the current one.
    Open(Option<String>),
    Close,
    /// Makes a page the current one.
    Switch,
}

/// Does something with the page that is meant; returns what was done. Navigations are waited for until `until`.
pub async fn control_tab(
    client: &PageClient,
    action: &TabAction,
    page: Option<&str>,
    until: Instant,
) -> Result<Option<String>> {
    let doing = "cannot control a page";
    match action {
        TabAction::List => Ok(None),
        TabAction::Go(url) => {
            let page = client.select_page(page, doing).await?;
            go_to(&page, url, until).await.map(Some)
        }
        TabAction::Move(by) => {
            let page = client.select_page(page, doing).await?;
            move_in_history(&page, *by, until).await.map(Some)
        }
        TabAction::Reload { ignore_cache } => {
            let page = client.select_page(page, doing).await?;
            let before = Navigated::of(&page);
            let reload = ReloadPage { ignore_cache: *ignore_cache };
            page.call(&reload, BROWSER_TIMEOUT).await.map_err(|error| client.user_error(error))?;
            wait_for_document(&page, before, until, "reloaded").await.map(Some)
        }
        TabAction::Open(url) => open_tab(client, url.as_deref(), until).await.map(Some),
        TabAction::Close => close_tab(client, page, until).await.map(Some),
        TabAction::Switch => switch_tab(client, page).await.map(Some),
    }
}

/// The pages, the best match for "the window" first.
pub async fn list_tabs(client: &PageClient) -> Result<Vec<PageTab>> {
    let listed = client.call(None, &GetTargets {}, BROWSER_TIMEOUT).await.map_err(|error| client.user_error(error))?;
    let mut targets = client.state.targets();
    listed.target_infos.into_iter().for_each(|info| targets.update_page(info));
    let current = targets.find_page(None).map(|page| page.target_id);
    let tab = |page: &tether_cdp::types::TargetInfo| PageTab {
        id: targets.tab_id(&page.target_id),
        title: clip_chars(&page.title, 200),
        url: clip_chars(&redact_connection_tokens(page.url.clone()), 500),
        is_current: Some(&page.target_id) == current.as_ref(),
    };
    Ok(targets.pages().into_iter().map(tab).collect())
}

/// How often a page has navigated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Navigated {
    documents: u64,
    inner: u64,
}

impl Navigated {
    fn of(page: &PageSession) -> Navigated {
        let targets = page.client.state.targets();
        let target = targets.sessions.get(&page.id);
        Navigated {
            documents: target.map_or(0, |it| it.navigations),
            inner: target.map_or(0, |it| it.inner_navigations),
        }
    }
}

/// Goes to a URL, and waits until its document has loaded; returns what was done.
pub async fn go_to(page: &PageSession, url: &str, until: Instant) -> Result<String> {
    let client = &page.client;
    let url = resolve_url(page, url).await?;
    let before = Navigated::of(page);
    let navigate = Navigate { url: url.clone() };
    let response = page.call(&navigate, until.saturating_duration_since(Instant::now())).await;
    let response = response.map_err(|error| client.user_error(error))?;
    if let Some(cause) = response.error_text {
        // The browser shows an error instead, which is there soon.
        let _ = wait_for_document(page, before, Instant::now() + BROWSER_TIMEOUT, "").await;
        return Err(Error::other(format!("cannot load {url:?}")).because(cause));
    }
    if response.loader_id.is_none() {
        return Ok(format!("went to {} within the document", current_url(page)));
    }
    let _ = page.call(&BringToFront {}, BROWSER_TIMEOUT).await;
    wait_for_document(page, before, until, "went").await
}

/// The URL as it is meant. Errors: it is none that a page may be sent to.
async fn resolve_url(page: &PageSession, text: &str) -> Result<String> {
    let text = text.trim();
    let refused = |why: &str| Error::usage(format!("cannot go to {:?}", clip_chars(text, 200))).because(why.to_owned());
    let url = match Url::parse(text) {
        Ok(url) => url,
        // `localhost:3000/a` is no relative URL.
        Err(url::ParseError::RelativeUrlWithoutBase) if text.starts_with(['/', '?', '#', '.']) => {
            let base = Url::parse(&current_url(page)).map_err(|_| refused("the page has no address to begin at"))?;
            base.join(text).map_err(|cause| refused(&cause.to_string()))?
        }
        Err(url::ParseError::RelativeUrlWithoutBase) => {
            Url::parse(&format!("http://{text}")).map_err(|cause| refused(&cause.to_string()))?
        }
        Err(cause) => return Err(refused(&cause.to_string())),
    };
    match url.scheme() {
        "http" | "https" | "data" | "about" => Ok(url.into()),
        "file" => {
            let file = url.to_file_path().map_err(|()| refused("it names no file of this machine"))?;
            let workspace = page.client.history().workspace().map(ToOwned::to_owned);
            let workspace = workspace.ok_or_else(|| refused("files are those of a workspace"))?;
            run_blocking(move || real_workspace_file(&workspace, &file.to_string_lossy())).await?;
            Ok(url.into())
        }
        // `localhost:3000` has the scheme `localhost`.
        _ if text.split_once(':').is_some_and(|(_, rest)| rest.starts_with(|it: char| it.is_ascii_digit())) => {
            Url::parse(&format!("http://{text}")).map(Into::into).map_err(|cause| refused(&cause.to_string()))
        }
        other => Err(refused(&format!("{other}: is not allowed"))
            .hint("use http, https, data, about, or a file of the workspace")),
    }
}

fn current_url(page: &PageSession) -> String {
    let targets = page.client.state.targets();
    let target = targets.sessions.get(&page.id);
    let listed = target.and_then(|it| targets.pages().into_iter().find(|page| page.target_id == it.target).cloned());
    redact_connection_tokens(
        target.map(|it| it.url.clone()).filter(|url| !url.is_empty()).or(listed.map(|it| it.url)).unwrap_or_default(),
    )
}

async fn move_in_history(page: &PageSession, by: i64, until: Instant) -> Result<String> {
    let client = &page.client;
    let history =
        page.call(&GetNavigationHistory {}, BROWSER_TIMEOUT).await.map_err(|error| client.user_error(error))?;
    let index = usize::try_from(history.current_index + by).ok();
    let word = if by < 0 { "back" } else { "forward" };
    let Some(entry) = index.and_then(|index| history.entries.get(index)) else {
        return Err(
            Error::new(ErrorKind::NotFound, format!("cannot go {word}")).because("the history of the page ends here")
        );
    };
    let before = Navigated::of(page);
    let go = NavigateToHistoryEntry { entry_id: entry.id };
    page.call(&go, BROWSER_TIMEOUT).await.map_err(|error| client.user_error(error))?;
    wait_for_document(page, before, until, &format!("went {word}")).await
}

/// Waits until the page has navigated and its document has loaded; returns what was done.
async fn wait_for_document(page: &PageSession, before: Navigated, until: Instant, done: &str) -> Result<String> {
    let client = &page.client;
    let state = &client.state;
    let gone = |targets: &super::targets::BrowserTargets| targets.session_error(&page.id);
    let begun = state.wait_for_targets(|targets| match targets.sessions.get(&page.id) {
        Some(it) if it.navigations != before.documents || it.inner_navigations != before.inner => Some(Ok(())),
        _ => gone(targets).map(Err),
    });
    let timed_out = |_| Error::new(ErrorKind::TimedOut, "the page did not go anywhere in time");
    timeout_at(until, begun).await.map_err(timed_out)?.map_err(|error| client.user_error(error))?;
    let loaded = state.wait_for_targets(|targets| match targets.sessions.get(&page.id) {
        Some(it) if !it.loading => Some(Ok(())),
        _ => gone(targets).map(Err),
    });
    let url = || current_url(page);
    match timeout_at(until, loaded).await {
        Ok(loaded) => loaded.map_err(|error| client.user_error(error))?,
        // It is used as it is.
        Err(_) => return Ok(format!("{done}: {}, which is still loading", url())),
    }
    let url = url();
    let status = client.history().document_status(&page.id, &url).map(|status| format!(" (HTTP {status})"));
    Ok(format!("{done}: {url}{}", status.unwrap_or_default()))
}

async fn open_tab(client: &PageClient, url: Option<&str>, until: Instant) -> Result<String> {
    // Relative to the page that was current.
    let url = match url {
        Some(url) => Some(resolve_url(&client.select_page(None, "cannot open a page").await?, url).await?),
        None => None,
    };
    let create = CreateTarget { url: "about:blank".into(), background: false };
    let created = client.call(None, &create, BROWSER_TIMEOUT).await.map_err(|error| client.user_error(error))?;
    let target = created.target_id;
    let known = client
        .state
        .wait_for_targets(|targets| targets.pages().into_iter().find(|page| page.target_id == target).cloned());
    let not_there = |_| Error::new(ErrorKind::TimedOut, "cannot open a page").because("the browser did not report it");
    let info = timeout_at(Instant::now() + ATTACH_TIMEOUT, known).await.map_err(not_there)?;
    let id = client.attach_page(&info).await.map_err(|error| client.user_error(error))?;
    choose(client, Some(target.clone()));
    client.state.targets().remove_opened_notice(&target);
    let name = client.state.targets().tab_id(&target);
    let page = PageSession { client: client.clone(), id };
    // Its first process is to report its events before it is left.
    let _ = page.call(&noop_evaluation(), BROWSER_TIMEOUT).await;
    match url {
        None => Ok(format!("opened {name}")),
        Some(url) => Ok(format!("opened {name}, {}", go_to(&page, &url, until).await?)),
    }
}

async fn close_tab(client: &PageClient, page: Option<&str>, until: Instant) -> Result<String> {
    let (info, name, count) = {
        let targets = client.state.targets();
        let info = targets.find_page(page);
        let name = info.as_ref().map(|info| targets.tab_id(&info.target_id)).unwrap_or_default();
        (info, name, targets.pages().len())
    };
    let info = info.ok_or_else(|| client.no_page_error(page))?;
    if count < 2 {
        return Err(Error::usage("cannot close the only page")
            .because("the window would end with it")
            .hint("`tether stop` ends the window"));
    }
    let close = CloseTarget { target_id: info.target_id.clone() };
    client.call(None, &close, BROWSER_TIMEOUT).await.map_err(|error| client.user_error(error))?;
    let gone = client
        .state
        .wait_for_targets(|targets| targets.pages().iter().all(|page| page.target_id != info.target_id).then_some(()));
    let stays = |_| Error::new(ErrorKind::TimedOut, format!("{name} does not close"));
    timeout_at(until, gone).await.map_err(stays)?;
    if client.state.targets().chosen.as_ref() == Some(&info.target_id) {
        choose(client, None);
    }
    Ok(format!("closed {name}"))
}

async fn switch_tab(client: &PageClient, page: Option<&str>) -> Result<String> {
    if page.is_none() {
        return Err(Error::usage("cannot switch").because("it is not said to which page").hint("give `page`"));
    }
    let page = client.select_page(page, "cannot switch to a page").await?;
    let target = client.state.targets().sessions.get(&page.id).map(|it| it.target.clone()).unwrap_or_default();
    let activate = ActivateTarget { target_id: target.clone() };
    client.call(None, &activate, BROWSER_TIMEOUT).await.map_err(|error| client.user_error(error))?;
    let name = client.state.targets().tab_id(&target);
    choose(client, Some(target));
    Ok(format!("switched to {name}: {}", current_url(&page)))
}

/// The page that operations mean which name none; for later connections, too.
fn choose(client: &PageClient, target: Option<String>) {
    client.state.targets().chosen.clone_from(&target);
    client.history().settings().choose_page(target);
}
