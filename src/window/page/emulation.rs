//! Emulates devices, preferences, places and slow conditions in all pages, frames and workers, also in those that come later.

use tether_base::error::{Error, Result};
use tether_cdp::CdpError;
use tether_cdp::page_control::{
    ClearDeviceMetrics, ClearGeolocation, EmulateNetworkConditions, GrantPermissions, MediaFeature, ResetPermissions,
    SetCpuThrottling, SetDeviceMetrics, SetEmulatedMedia, SetGeolocation, SetLocale, SetTimezone, SetTouchEmulation,
    SetUserAgent,
};
use tether_cdp::types::CdpCommand;

use super::console::ConsoleSource;
use super::expression::{ExpressionResult, await_expression};
use super::page_client::{EVENT_TIMEOUT, PageClient};
use super::page_error::PageError;
use crate::vocabulary::{ColorScheme, CssMedia, NetworkPreset, PageEmulation};

/// Emulates this in all that is open, in the place of what was; the settings have it for what is opened later. Errors: the
/// browser does not know a value; what was before is emulated again.
pub async fn emulate(client: &PageClient, wanted: PageEmulation) -> Result<()> {
    check_names(client, &wanted).await?;
    let settings = client.history().settings();
    let before = settings.emulation();
    settings.set_emulation(wanted.clone());
    let Err(cause) = apply_everywhere(client, &wanted, &before).await else { return Ok(()) };
    settings.set_emulation(before.clone());
    let _ = apply_everywhere(client, &before, &wanted).await;
    match cause {
        PageError::Cdp(CdpError::ErrorResponse { message, .. }) => {
            Err(Error::usage("cannot emulate this").because(message))
        }
        other => Err(client.user_error(other)),
    }
}

/// Chromium takes names that mean nothing.
async fn check_names(client: &PageClient, wanted: &PageEmulation) -> Result<()> {
    if wanted.locale.is_none() && wanted.time_zone.is_none() {
        return Ok(());
    }
    let text = |it: &Option<String>| serde_json::to_string(it).unwrap_or_default();
    let (locale, zone) = (text(&wanted.locale), text(&wanted.time_zone));
    let check = format!("new Intl.DateTimeFormat({locale} ?? undefined, {{timeZone: {zone} ?? undefined}}), 1");
    match await_expression(client, &check, EVENT_TIMEOUT).await? {
        ExpressionResult::Exception(why) => {
            let why = why.lines().next().unwrap_or_default().to_owned();
            Err(Error::usage("cannot emulate this").because(why))
        }
        ExpressionResult::Value(_) => Ok(()),
    }
}

async fn apply_everywhere(
    client: &PageClient,
    wanted: &PageEmulation,
    before: &PageEmulation,
) -> Result<(), PageError> {
    let sessions: Vec<(String, ConsoleSource)> = {
        let targets = client.state.targets();
        targets.sessions.iter().map(|(session, it)| (session.clone(), it.source)).collect()
    };
    if wanted.latitude.is_some() {
        let permissions = vec!["geolocation"];
        client.call(None, &GrantPermissions { permissions }, EVENT_TIMEOUT).await?;
    } else if before.latitude.is_some() {
        client.call(None, &ResetPermissions {}, EVENT_TIMEOUT).await?;
    }
    for (session, source) in sessions {
        let sender = EmulationSender { client, session: &session, before: Some(before) };
        match sender.send(source, wanted).await {
            // It is gone, or a worker that knows no such thing.
            Err(PageError::Closed | PageError::Crashed) => {}
            Err(_) if source != ConsoleSource::Page => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

/// Emulates in a session that is new, without waiting for the responses.
pub async fn emulate_in_new_session(client: &PageClient, session: &str, source: ConsoleSource) -> Result<(), CdpError> {
    let wanted = client.history().settings().emulation();
    match (EmulationSender { client, session, before: None }).send(source, &wanted).await {
        Err(PageError::Cdp(cause)) => Err(cause),
        _ => Ok(()),
    }
}

/// Sends what is emulated to one session.
struct EmulationSender<'a> {
    client: &'a PageClient,
    session: &'a str,
    /// What is emulated in it already; `None`: nothing, and responses are not waited for.
    before: Option<&'a PageEmulation>,
}

impl EmulationSender<'_> {
    async fn send(&self, source: ConsoleSource, wanted: &PageEmulation) -> Result<(), PageError> {
        let differs = |read: fn(&PageEmulation) -> PageEmulation| {
            read(self.before.unwrap_or(&PageEmulation::default())) != read(wanted)
        };
        if differs(|it| PageEmulation { network: it.network, ..PageEmulation::default() }) {
            self.put(&network_conditions(wanted.network)).await?;
        }
        if source == ConsoleSource::Worker {
            return Ok(());
        }
        let size = |it: &PageEmulation| PageEmulation {
            width: it.width,
            height: it.height,
            scale: it.scale,
            mobile: it.mobile,
            ..PageEmulation::default()
        };
        if source == ConsoleSource::Page && differs(size) {
            match wanted.width.zip(wanted.height) {
                Some((width, height)) => {
                    let (device_scale_factor, mobile) =
                        (wanted.scale.unwrap_or(0.0), wanted.mobile.unwrap_or_default());
                    self.put(&SetDeviceMetrics { width, height, device_scale_factor, mobile }).await?;
                }
                None => self.put(&ClearDeviceMetrics {}).await?,
            }
        }
        if differs(|it| PageEmulation { touch: it.touch, ..PageEmulation::default() }) {
            self.put(&SetTouchEmulation { enabled: wanted.touch.unwrap_or_default() }).await?;
        }
        let agent = |it: &PageEmulation| PageEmulation {
            user_agent: it.user_agent.clone(),
            locale: it.locale.clone(),
            ..PageEmulation::default()
        };
        if differs(agent) {
            let user_agent = wanted.user_agent.clone().unwrap_or_default();
            self.put(&SetUserAgent { user_agent, accept_language: wanted.locale.clone() }).await?;
            self.put(&SetLocale { locale: wanted.locale.clone().unwrap_or_default() }).await?;
        }
        let media = |it: &PageEmulation| PageEmulation {
            color_scheme: it.color_scheme,
            reduced_motion: it.reduced_motion,
            media: it.media,
            ..PageEmulation::default()
        };
        if differs(media) {
            self.put(&emulated_media(wanted)).await?;
        }
        if differs(|it| PageEmulation { time_zone: it.time_zone.clone(), ..PageEmulation::default() }) {
            self.put(&SetTimezone { timezone_id: wanted.time_zone.clone().unwrap_or_default() }).await?;
        }
        if differs(|it| PageEmulation { latitude: it.latitude, longitude: it.longitude, ..PageEmulation::default() }) {
            match wanted.latitude.zip(wanted.longitude) {
                Some((latitude, longitude)) => {
                    self.put(&SetGeolocation { latitude, longitude, accuracy: 1.0 }).await?;
                }
                None => self.put(&ClearGeolocation {}).await?,
            }
        }
        if differs(|it| PageEmulation { cpu_slowdown: it.cpu_slowdown, ..PageEmulation::default() }) {
            self.put(&SetCpuThrottling { rate: wanted.cpu_slowdown.unwrap_or(1.0) }).await?;
        }
        Ok(())
    }

    async fn put<C: CdpCommand>(&self, command: &C) -> Result<(), PageError> {
        match self.before {
            Some(_) => self.client.call(Some(self.session), command, EVENT_TIMEOUT).await.map(drop),
            None => Ok(self.client.cdp.send(Some(self.session), command).await?),
        }
    }
}

fn emulated_media(wanted: &PageEmulation) -> SetEmulatedMedia {
    let scheme = match wanted.color_scheme {
        Some(ColorScheme::Light) => "light",
        Some(ColorScheme::Dark) => "dark",
        Some(ColorScheme::None) | None => "",
    };
    let motion = if wanted.reduced_motion == Some(true) { "reduce" } else { "" };
    let media = match wanted.media {
        Some(CssMedia::Print) => "print",
        Some(CssMedia::Screen) => "screen",
        Some(CssMedia::None) | None => "",
    };
    let feature = |name, value: &str| MediaFeature { name, value: value.to_owned() };
    let features = vec![feature("prefers-color-scheme", scheme), feature("prefers-reduced-motion", motion)];
    SetEmulatedMedia { media: media.to_owned(), features }
}

/// The presets of DevTools.
fn network_conditions(preset: Option<NetworkPreset>) -> EmulateNetworkConditions {
    let limited = |latency: f64, down_kbit: f64, up_kbit: f64| EmulateNetworkConditions {
        offline: false,
        latency,
        download_throughput: down_kbit * 1000.0 / 8.0,
        upload_throughput: up_kbit * 1000.0 / 8.0,
    };
    match preset {
        Some(NetworkPreset::Offline) => EmulateNetworkConditions { offline: true, ..limited(0.0, 0.0, 0.0) },
        Some(NetworkPreset::Slow3g) => limited(2000.0, 400.0, 400.0),
        Some(NetworkPreset::Fast3g) => limited(562.5, 1440.0, 675.0),
        Some(NetworkPreset::Slow4g) => limited(562.5, 1440.0, 675.0),
        Some(NetworkPreset::Fast4g) => limited(165.0, 8100.0, 1350.0),
        Some(NetworkPreset::None) | None => EmulateNetworkConditions {
            offline: false,
            latency: 0.0,
            download_throughput: -1.0,
            upload_throughput: -1.0,
        },
    }
}
