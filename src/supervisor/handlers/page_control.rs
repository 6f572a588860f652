//! The control of the window's pages: tabs, emulation, storage.

use std::time::Duration;

use tether_base::clipped_text::clip_bytes;
use tether_base::clock::now_ms;
use tether_base::error::{Error, Result};
use tokio::time::Instant;

use super::window::refresh_report;
use super::window_stops::{open_loaded_page, until_stopped};
use crate::api::page_control::{
    EmulationReport, PageControlParams, PageEmulateParams, PageProfileParams, PageStorageParams, PageTab, PageTabs,
    PageVerb, ProfileReport, ProfileVerb, StorageArea, StorageItem, StorageReport, StorageVerb,
};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};
use crate::vocabulary::{ColorScheme, CssMedia, DEVICES, NetworkPreset, PageEmulation};
use crate::window::page::{self, PageClient, TabAction, WebStorage};
use crate::window::{PageResult, change_emulation, read_file_of_workspace, save_output_file};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_TIMEOUT: Duration = Duration::from_secs(600);
/// Of a recording.
const DEFAULT_SPAN: Duration = Duration::from_secs(3);
const MAX_SPAN: Duration = Duration::from_secs(60);
const MAX_SIDE: u32 = 10_000;
const MAX_SLOWDOWN: f64 = 100.0;
/// Entries of a storage that are shown, and the bytes of each.
const MAX_ITEMS: usize = 200;
const MAX_VALUE: usize = 1000;
const DEFAULT_STATE_FILE: &str = "storage-state.json";

impl OperationHandler for PageControlParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<PageTabs> {
        let action = tab_action(&self)?;
        let timeout = self.timeout_ms.map_or(DEFAULT_TIMEOUT, Duration::from_millis).min(MAX_TIMEOUT);
        let fresh = open_loaded_page(context, call).await?;
        let until = Instant::now() + timeout;
        let work = async {
            let did = page::control_tab(&fresh.page, &action, self.page.as_deref(), until).await?;
            Ok((did, page::list_tabs(&fresh.page).await?))
        };
        let outcome = until_stopped(context, work).await.done();
        let PageResult { value: (did, tabs), generation, refreshed, notes } = fresh.finish(outcome)?;
        let tab = |it: page::PageTab| PageTab { id: it.id, title: it.title, url: it.url, current: it.is_current };
        let tabs = tabs.into_iter().map(tab).collect();
        Ok(PageTabs { did, tabs, generation, refreshed: refreshed.map(refresh_report), notes })
    }
}

fn tab_action(it: &PageControlParams) -> Result<TabAction> {
    let verb = it.does.unwrap_or_default();
    let takes_url = matches!(verb, PageVerb::Goto | PageVerb::New);
    if it.url.is_some() && !takes_url {
        return Err(Error::usage("`url` is for `goto` and `new`"));
    }
    Ok(match verb {
        PageVerb::List => TabAction::List,
        PageVerb::Goto => TabAction::Go(it.url.clone().ok_or_else(|| Error::usage("`goto` needs `url`"))?),
        PageVerb::Back => TabAction::Move(-1),
        PageVerb::Forward => TabAction::Move(1),
        PageVerb::Reload => TabAction::Reload { ignore_cache: it.ignore_cache.unwrap_or_default() },
        PageVerb::New => TabAction::Open(it.url.clone()),
        PageVerb::Close => TabAction::Close,
        PageVerb::Switch => TabAction::Switch,
    })
}

impl OperationHandler for PageEmulateParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<EmulationReport> {
        let (emulation, notes) = change_emulation(&context.window, |current| changed_emulation(self, current)).await?;
        Ok(EmulationReport { emulation, notes })
    }
}

/// What is emulated after a call. Errors: a value means nothing.
fn changed_emulation(it: PageEmulateParams, current: PageEmulation) -> Result<PageEmulation> {
    let mut wanted = if it.reset == Some(true) { PageEmulation::default() } else { current };
    if let Some(device) = &it.device {
        let (width, height, scale, mobile, touch, user_agent) = Default::default();
        wanted = PageEmulation { device: None, width, height, scale, mobile, touch, user_agent, ..wanted };
        if device != "none" && wanted.set_device(device).is_none() {
            let names: Vec<&str> = DEVICES.iter().map(|row| row.0).collect();
            return Err(
                Error::usage(format!("there is no device {device:?}")).hint(format!("there are: {}", names.join(", ")))
            );
        }
    }
    if let Some(text) = &it.viewport {
        wanted.device = None;
        (wanted.width, wanted.height, wanted.scale) = parse_viewport(text)?;
    }
    if let Some(text) = &it.geolocation {
        (wanted.latitude, wanted.longitude) = parse_position(text)?;
    }
    if let Some(factor) = it.cpu {
        if !(1.0..=MAX_SLOWDOWN).contains(&factor) {
            return Err(Error::usage(format!("`cpu` is from 1 to {MAX_SLOWDOWN}")));
        }
        wanted.cpu_slowdown = Some(factor).filter(|factor| *factor > 1.0);
    }
    let text = |given: Option<String>, before: Option<String>| match given {
        None => before,
        Some(text) => Some(clip_bytes(&text, 500)).filter(|text| text != "none" && !text.is_empty()),
    };
    wanted.user_agent = text(it.user_agent, wanted.user_agent);
    wanted.locale = text(it.locale, wanted.locale);
    wanted.time_zone = text(it.time_zone, wanted.time_zone);
    wanted.touch = it.touch.or(wanted.touch).filter(|it| *it);
    wanted.reduced_motion = it.reduced_motion.or(wanted.reduced_motion).filter(|it| *it);
    wanted.color_scheme = it.color_scheme.or(wanted.color_scheme).filter(|it| *it != ColorScheme::None);
    wanted.media = it.media.or(wanted.media).filter(|it| *it != CssMedia::None);
    wanted.network = it.network.or(wanted.network).filter(|it| *it != NetworkPreset::None);
    Ok(wanted)
}

type Viewport = (Option<u32>, Option<u32>, Option<f64>);

fn parse_viewport(text: &str) -> Result<Viewport> {
    let wrong = || Error::usage(format!("{text:?} is no size")).hint("write it as 390x844, or 390x844x3 with a scale");
    if text == "none" {
        return Ok((None, None, None));
    }
    let mut parts = text.split('x');
    let mut side = || -> Option<u32> { parts.next()?.trim().parse().ok().filter(|side| (1..=MAX_SIDE).contains(side)) };
    let (width, height) = (side().ok_or_else(wrong)?, side().ok_or_else(wrong)?);
    let scale = match parts.next() {
        Some(scale) => Some(scale.trim().parse().ok().filter(|it: &f64| *it > 0.0 && *it <= 10.0).ok_or_else(wrong)?),
        None => None,
    };
    if parts.next().is_some() { Err(wrong()) } else { Ok((Some(width), Some(height), scale)) }
}

fn parse_position(text: &str) -> Result<(Option<f64>, Option<f64>)> {
    let wrong = || Error::usage(format!("{text:?} is no position")).hint("write it as latitude,longitude: 52.52,13.40");
    if text == "none" {
        return Ok((None, None));
    }
    let (latitude, longitude) = text.split_once(',').ok_or_else(wrong)?;
    let degrees = |text: &str, most: f64| text.trim().parse::<f64>().ok().filter(|it| it.abs() <= most);
    let (latitude, longitude) = (degrees(latitude, 90.0), degrees(longitude, 180.0));
    if latitude.is_none() || longitude.is_none() { Err(wrong()) } else { Ok((latitude, longitude)) }
}

impl OperationHandler for PageProfileParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<ProfileReport> {
        let kind = match self.does.unwrap_or_default() {
            ProfileVerb::Trace => page::ProfileKind::Trace,
            ProfileVerb::Cpu => page::ProfileKind::Cpu,
            ProfileVerb::Heap => page::ProfileKind::Heap,
        };
        let span = self.ms.map_or(DEFAULT_SPAN, Duration::from_millis).min(MAX_SPAN);
        let request = page::ProfileRequest { kind, url: self.url, span, page: self.page };
        let fresh = open_loaded_page(context, call).await?;
        let recorded = until_stopped(context, page::record_profile(&fresh.page, &request)).await.done();
        let PageResult { value, notes, .. } = fresh.finish(recorded)?;
        let (ending, content) = value.file;
        let name = match kind {
            page::ProfileKind::Trace => "trace",
            page::ProfileKind::Cpu => "cpu",
            page::ProfileKind::Heap => "heap",
        };
        let file = save_output_file(&context.window, format!("{name}-{}.{ending}", now_ms()), content).await?;
        Ok(ProfileReport { findings: value.lines, file, notes })
    }
}

impl OperationHandler for PageStorageParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<StorageReport> {
        check_storage_params(&self)?;
        let fresh = open_loaded_page(context, call).await?;
        let outcome = until_stopped(context, access_storage(context, &fresh.page, &self)).await.done();
        let PageResult { value, notes, .. } = fresh.finish(outcome)?;
        Ok(StorageReport { notes, ..value })
    }
}

fn check_storage_params(it: &PageStorageParams) -> Result<()> {
    let verb = it.does.unwrap_or_default();
    let wrong = |why: &str| Err(Error::usage(why));
    match verb {
        StorageVerb::Set if it.name.is_none() || it.value.is_none() => wrong("`set` needs `name` and `value`"),
        StorageVerb::Load if it.file.is_none() => wrong("`load` needs `file`"),
        StorageVerb::Get | StorageVerb::Set if it.area == Some(StorageArea::All) => wrong("`all` is for `clear`"),
        _ if it.cookie.is_some() && (verb != StorageVerb::Set || !is_cookies(it)) => {
            wrong("`cookie` is for setting a cookie")
        }
        _ => Ok(()),
    }
}

fn is_cookies(it: &PageStorageParams) -> bool {
    it.area.unwrap_or_default() == StorageArea::Cookies
}

async fn access_storage(
    context: &SupervisorContext,
    client: &PageClient,
    it: &PageStorageParams,
) -> Result<StorageReport> {
    match it.does.unwrap_or_default() {
        StorageVerb::Save => return save_state(context, client, it).await,
        StorageVerb::Load => return load_state(context, client, it).await,
        StorageVerb::Get | StorageVerb::Set | StorageVerb::Clear => {}
    }
    let origin = page::find_origin(client, it.origin.as_deref()).await?;
    let (name, value) = (it.name.as_deref(), it.value.as_deref().unwrap_or_default());
    let mut report = StorageReport { origin: Some(origin.clone()), ..StorageReport::default() };
    let area = it.area.unwrap_or_default();
    let storage = match area {
        StorageArea::Local => WebStorage::Local,
        StorageArea::Session => WebStorage::Session,
        StorageArea::Cookies => {
            match it.does.unwrap_or_default() {
                StorageVerb::Set => {
                    page::set_cookie_entry(client, &origin, name.unwrap_or_default(), value, it.cookie.as_ref())
                        .await?;
                    report.did = Some("set the cookie".to_owned());
                }
                StorageVerb::Clear => {
                    let count = page::clear_cookies(client, &origin, name).await?;
                    report.did = Some(format!("removed {count} cookies"));
                }
                _ => list_items(
                    &mut report,
                    page::read_cookies(client, Some(&origin)).await?.into_iter().map(cookie_item),
                    name,
                ),
            }
            return Ok(report);
        }
        StorageArea::All => {
            page::clear_origin(client, &origin).await?;
            report.did = Some("cleared all that the origin had stored".to_owned());
            return Ok(report);
        }
    };
    let document = page::OriginDocument::open(client, &origin).await?;
    let outcome = match it.does.unwrap_or_default() {
        StorageVerb::Set => {
            let item = page::StateItem { name: name.unwrap_or_default().to_owned(), value: value.to_owned() };
            document.set(storage, &[item]).await.map(|()| report.did = Some("set the entry".to_owned()))
        }
        StorageVerb::Clear => {
            document.clear(storage, name).await.map(|count| report.did = Some(format!("removed {count} entries")))
        }
        _ => document.read(storage).await.map(|items| {
            let items = items.into_iter().map(|(name, value)| StorageItem { name, value, attributes: None });
            list_items(&mut report, items, name);
        }),
    };
    document.close().await;
    outcome.map(|()| report)
}

fn cookie_item(it: page::StateCookie) -> StorageItem {
    let mut attributes = vec![format!("{}{}", it.domain, it.path)];
    attributes.extend(it.http_only.then(|| "httpOnly".to_owned()));
    attributes.extend(it.secure.then(|| "secure".to_owned()));
    attributes.push(format!("sameSite={}", it.same_site));
    attributes.extend((it.expires >= 0.0).then(|| format!("expires={}", it.expires as i64)));
    StorageItem { name: it.name, value: it.value, attributes: Some(attributes.join(" ")) }
}

/// The entries of this name, or the first of all.
fn list_items(report: &mut StorageReport, items: impl Iterator<Item = StorageItem>, name: Option<&str>) {
    let mut items: Vec<StorageItem> = items.filter(|item| name.is_none_or(|name| item.name == name)).collect();
    report.more = items.len().saturating_sub(MAX_ITEMS) as u64;
    items.truncate(MAX_ITEMS);
    // One that is named is shown as it is.
    let most = if name.is_some() { 50 * MAX_VALUE } else { MAX_VALUE };
    for item in &mut items {
        (item.name, item.value) = (clip_bytes(&item.name, MAX_VALUE), clip_bytes(&item.value, most));
    }
    report.entries = items;
}

async fn save_state(context: &SupervisorContext, client: &PageClient, it: &PageStorageParams) -> Result<StorageReport> {
    let state = page::read_state(client, it.origin.as_deref()).await?;
    let did = format!("saved {} cookies and the local storage of {} origins", state.cookies.len(), state.origins.len());
    let name = it.file.clone().unwrap_or_else(|| DEFAULT_STATE_FILE.to_owned());
    let text = serde_json::to_vec_pretty(&state)
        .map_err(|cause| Error::other("cannot write the storage state").because(cause))?;
    let file = save_output_file(&context.window, name, text).await?;
    Ok(StorageReport { did: Some(did), file: Some(file), ..StorageReport::default() })
}

async fn load_state(context: &SupervisorContext, client: &PageClient, it: &PageStorageParams) -> Result<StorageReport> {
    let file = it.file.clone().unwrap_or_default();
    let text = read_file_of_workspace(&context.window, file.clone()).await?;
    let wrong = |cause| Error::usage(format!("{file:?} is no storage state")).because(cause);
    let state: page::StorageState = serde_json::from_slice(&text).map_err(wrong)?;
    let did =
        format!("loaded {} cookies and the local storage of {} origins", state.cookies.len(), state.origins.len());
    page::load_state(client, state).await?;
    Ok(StorageReport { did: Some(did), ..StorageReport::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emulation_is_added_to_what_is_emulated_and_none_ends_it() {
        let change = |current: &PageEmulation, it: PageEmulateParams| changed_emulation(it, current.clone());
        let of = PageEmulateParams::default;
        let phone =
            change(&PageEmulation::default(), PageEmulateParams { device: Some("iphone 15".into()), ..of() }).unwrap();
        assert_eq!(phone.describe().unwrap(), "iPhone 15 (393×852 ×3), mobile, touch");
        let more = PageEmulateParams {
            color_scheme: Some(ColorScheme::Dark),
            geolocation: Some("-33.9,151.2".into()),
            cpu: Some(4.0),
            network: Some(NetworkPreset::Offline),
            locale: Some("de-DE".into()),
            ..of()
        };
        let more = change(&phone, more).unwrap();
        let expect = "iPhone 15 (393×852 ×3), mobile, touch, dark, de-DE, at -33.9,151.2, CPU 4× slower, offline";
        assert_eq!(more.describe().unwrap(), expect);
        let fewer = PageEmulateParams {
            device: Some("none".into()),
            color_scheme: Some(ColorScheme::None),
            geolocation: Some("none".into()),
            cpu: Some(1.0),
            locale: Some("none".into()),
            ..of()
        };
        assert_eq!(change(&more, fewer).unwrap().describe().unwrap(), "offline");
        let sized =
            change(&more, PageEmulateParams { reset: Some(true), viewport: Some("800x600x2".into()), ..of() }).unwrap();
        assert_eq!(sized.describe().unwrap(), "800×600 ×2");
        for wrong in [
            PageEmulateParams { device: Some("toaster".into()), ..of() },
            PageEmulateParams { viewport: Some("0x1".into()), ..of() },
            PageEmulateParams { viewport: Some("1x2x3x4".into()), ..of() },
            PageEmulateParams { geolocation: Some("91,0".into()), ..of() },
            PageEmulateParams { cpu: Some(0.5), ..of() },
        ] {
            assert!(change(&phone, wrong).is_err());
        }
    }
}
