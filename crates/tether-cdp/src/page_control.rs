//! Names and shapes of the commands and events by which pages are opened, left, emulated and filled in, and their storage
//! read and set.
//!
//! Fields that a peer may omit are optional.

// Names and fields are those of the specification.
#![allow(missing_docs)]

use serde::Serialize;
use serde::de::IgnoredAny;

use super::debugger::CallArgument;
use super::types::{CdpCommand, EvaluateResult, RemoteObject, command, received};

command!(
    /// Calls a function of the caller's with an element as `this` and as its argument.
    CallOnElement, "Runtime.callFunctionOn", EvaluateResult, {
        object_id: String,
        function_declaration: String,
        arguments: Vec<CallArgument>,
        object_group: String,
        user_gesture: bool,
    }
);
command!(DescribeNode, "DOM.describeNode", DescribeNodeResult, { object_id: String });
command!(
    /// The node in the world of the document's own scripts.
    ResolveInPage, "DOM.resolveNode", ResolveInPageResult, { backend_node_id: i64, object_group: String });
command!(SetFileInputFiles, "DOM.setFileInputFiles", IgnoredAny, {
    files: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend_node_id: Option<i64>,
});
command!(
    /// The dialog for files is not shown, but reported by `Page.fileChooserOpened`.
    InterceptFileChooser, "Page.setInterceptFileChooserDialog", IgnoredAny, { enabled: bool });
command!(GetNavigationHistory, "Page.getNavigationHistory", NavigationHistory, {});
command!(NavigateToHistoryEntry, "Page.navigateToHistoryEntry", IgnoredAny, { entry_id: i64 });
command!(CreateTarget, "Target.createTarget", CreateTargetResult, { url: String, background: bool });
command!(CloseTarget, "Target.closeTarget", IgnoredAny, { target_id: String });
command!(ActivateTarget, "Target.activateTarget", IgnoredAny, { target_id: String });

command!(SetDeviceMetrics, "Emulation.setDeviceMetricsOverride", IgnoredAny, {
    width: u32,
    height: u32,
    device_scale_factor: f64,
    mobile: bool,
});
command!(ClearDeviceMetrics, "Emulation.clearDeviceMetricsOverride", IgnoredAny, {});
command!(SetTouchEmulation, "Emulation.setTouchEmulationEnabled", IgnoredAny, { enabled: bool });
command!(
    /// An empty `media` and empty values are those of the browser.
    SetEmulatedMedia, "Emulation.setEmulatedMedia", IgnoredAny, { media: String, features: Vec<MediaFeature> });
command!(
    /// An empty locale is the browser's own.
    SetLocale, "Emulation.setLocaleOverride", IgnoredAny, { locale: String });
command!(
    /// An empty time zone is the browser's own.
    SetTimezone, "Emulation.setTimezoneOverride", IgnoredAny, { timezone_id: String });
command!(SetGeolocation, "Emulation.setGeolocationOverride", IgnoredAny, {
    latitude: f64,
    longitude: f64,
    accuracy: f64,
});
command!(ClearGeolocation, "Emulation.clearGeolocationOverride", IgnoredAny, {});
command!(SetCpuThrottling, "Emulation.setCPUThrottlingRate", IgnoredAny, { rate: f64 });
command!(
    /// An empty user agent is the browser's own.
    SetUserAgent, "Emulation.setUserAgentOverride", IgnoredAny, {
        user_agent: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        accept_language: Option<String>,
    }
);
command!(GrantPermissions, "Browser.grantPermissions", IgnoredAny, { permissions: Vec<&'static str> });
command!(ResetPermissions, "Browser.resetPermissions", IgnoredAny, {});
command!(
    /// Throughput in bytes a second, -1: not limited; latency in ms.
    EmulateNetworkConditions, "Network.emulateNetworkConditions", IgnoredAny, {
        offline: bool,
        latency: f64,
        download_throughput: f64,
        upload_throughput: f64,
    }
);

command!(GetCookies, "Storage.getCookies", GetCookiesResult, {});
command!(StoreCookies, "Storage.setCookies", IgnoredAny, { cookies: Vec<StoredCookie> });
command!(DeleteCookies, "Network.deleteCookies", IgnoredAny, { name: String, domain: String, path: String });
command!(ClearOriginData, "Storage.clearDataForOrigin", IgnoredAny, { origin: String, storage_types: &'static str });

/// CDP's `Emulation.MediaFeature`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MediaFeature {
    pub name: &'static str,
    pub value: String,
}

/// CDP's `Network.CookieParam`; without `expires` (epoch seconds) it ends with the browser.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredCookie {
    pub name: String,
    pub value: String,
    pub domain: String,
    pub path: String,
    pub secure: bool,
    pub http_only: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_site: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<f64>,
}

received! {
    /// Result of `DOM.describeNode`.
    struct DescribeNodeResult { node: DescribedNode }

    /// CDP's `DOM.Node`.
    struct DescribedNode { backend_node_id: i64 }

    /// Result of `DOM.resolveNode`.
    struct ResolveInPageResult { object: RemoteObject }

    /// `Page.fileChooserOpened`
    struct FileChooserOpened { backend_node_id: Option<i64> }

    /// Result of `Page.getNavigationHistory`.
    struct NavigationHistory {
        current_index: i64,
        entries: Vec<NavigationEntry>,
    }

    /// CDP's `Page.NavigationEntry`.
    struct NavigationEntry {
        id: i64,
        url: String,
    }

    /// Result of `Target.createTarget`.
    struct CreateTargetResult { target_id: String }

    /// Result of `Storage.getCookies`.
    struct GetCookiesResult { cookies: Vec<BrowserCookie> }

    /// CDP's `Network.Cookie`; `expires` in epoch seconds, or -1.
    struct BrowserCookie {
        name: String,
        value: String,
        domain: String,
        path: String,
        expires: f64,
        http_only: bool,
        secure: bool,
        same_site: Option<String>,
    }
}
