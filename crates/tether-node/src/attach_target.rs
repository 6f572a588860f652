//! Finds what is attached to: the inspector of a Node program, or a page of a browser, at its port.

use std::net::Ipv4Addr;

use globset::Glob;
use tether_backend::request_failure::RequestFailure;
use tether_base::error::{Error, Result};
use tether_cdp::{TargetListEntry, discover_endpoint, list_targets};
use tether_process::foreign_listener;

use super::connection::InspectorAddress;
use super::isolate_host::IsolateHost;
use super::launch_arguments::{NodeAttach, NodeAttachPlace, websocket_address};
use super::process_inspector::find_process_inspector;
use super::shared_workers::SHARED_WORKER;
use super::web_files::plain_url;

/// What Chromium says of a command to a page that shows another document by now.
const NAVIGATED: &str = "navigated or closed";
const NO_PAGE: &str = "no page matches";
/// How many pages an error names.
const MAX_NAMED_PAGES: usize = 10;

/// Finds it. Errors: nothing listens there, or another user's process, or something that is not what was named.
pub(crate) async fn find_target(attach: &NodeAttach) -> Result<InspectorAddress> {
    let (port, path) = match &attach.place {
        NodeAttachPlace::Process(pid) => return find_process_inspector(*pid).await,
        NodeAttachPlace::Port { port, path } => (*port, path.clone()),
    };
    let failed = |cause: String| attach_error(attach, port, cause);
    let foreign = if attach.is_host_named { Ok(None) } else { foreign_listener((Ipv4Addr::LOCALHOST, port).into()) };
    if let Some(foreign) = foreign.map_err(|cause| failed(cause.to_string()))? {
        return Err(failed(foreign));
    }
    if let Some(path) = path {
        return Ok(node_address(attach, port, path));
    }
    let endpoint = discover_endpoint(port).await.map_err(|error| failed(error.to_string()))?;
    match (&attach.page, endpoint.is_browser) {
        (None, false) => Ok(node_address(attach, port, endpoint.path)),
        (Some(filter), true) => {
            let targets = list_targets(port).await.map_err(|error| failed(error.to_string()))?;
            let address = find_page(&targets, filter).and_then(|page| page_address(port, page)).map_err(failed)?;
            Ok(InspectorAddress { allows_foreign: attach.is_host_named, ..address })
        }
        (None, true) => {
            let error = Error::other(format!("cannot attach to 127.0.0.1:{port}"));
            let error = error.because(format!("{} is a browser, and no page was named", endpoint.product));
            Err(error.hint("`url` (or `urlFilter`) names a page by its address"))
        }
        (Some(_), false) => Err(failed(format!("{} is not a browser", endpoint.product))),
    }
}

/// Whether a page could not be connected to since it has gone to another document meanwhile.
pub(crate) fn has_navigated(target: &InspectorAddress, failure: &RequestFailure) -> bool {
    matches!(target.host, IsolateHost::Document { .. }) && failure.0.contains(NAVIGATED)
}

/// Why a port cannot be attached to, with what to start instead.
pub(crate) fn attach_error(attach: &NodeAttach, port: u16, cause: String) -> Error {
    let hint = match attach.page {
        Some(_) if cause.contains(NAVIGATED) => {
            "the page goes from one document to the next: attach once it has loaded"
        }
        Some(_) if cause.contains(NO_PAGE) => "`url` (or `urlFilter`) names one of them, with `*` for any text",
        Some(_) => "a browser that can be attached to is started with `--remote-debugging-port=0`, and prints its port",
        None => {
            "a Node program that can be attached to is started with `--inspect=127.0.0.1:0`, and prints its port; \
             `tether debug attach --pid PID --language node` attaches to any other"
        }
    };
    Error::other(format!("cannot attach to 127.0.0.1:{port}")).because(cause).hint(hint)
}

fn node_address(attach: &NodeAttach, port: u16, path: String) -> InspectorAddress {
    let (name, allows_foreign) = (format!("node at port {port}"), attach.is_host_named);
    InspectorAddress { port, path, name, host: IsolateHost::Node, allows_foreign, is_launched: false }
}

fn page_address(port: u16, page: &TargetListEntry) -> std::result::Result<InspectorAddress, String> {
    let url = plain_url(&page.url);
    let (name, host) = match page.kind == SHARED_WORKER {
        true => (format!("shared worker {url}"), IsolateHost::WebWorker),
        false => (format!("page {url}"), IsolateHost::Document { frame: page.id.clone() }),
    };
    let address = page.web_socket_debugger_url.as_deref().ok_or("another debugger has exclusive access to the page")?;
    // Only the path counts: the port is the one that was asked.
    let (_, path) = websocket_address(address)?;
    Ok(InspectorAddress { port, path, name, host, allows_foreign: false, is_launched: false })
}

/// The first page whose URL matches, with `*` for any text, or else the first shared worker whose script has that URL.
fn find_page<'a>(targets: &'a [TargetListEntry], filter: &str) -> std::result::Result<&'a TargetListEntry, String> {
    let parts: Vec<String> = filter.split('*').map(globset::escape).collect();
    let pattern = Glob::new(&parts.join("*")).map_err(|cause| cause.to_string())?.compile_matcher();
    let pages: Vec<&TargetListEntry> =
        targets.iter().filter(|target| matches!(target.kind.as_str(), "page" | "webview")).collect();
    let is_meant = |page: &&TargetListEntry| {
        let plain = page.url.split('#').next().unwrap_or_default();
        [page.url.as_str(), plain, plain.trim_end_matches('/')].into_iter().any(|url| pattern.is_match(url))
    };
    let mut shared = targets.iter().filter(|target| target.kind == SHARED_WORKER);
    pages.iter().copied().find(is_meant).or_else(|| shared.find(is_meant)).ok_or_else(|| {
        let urls: Vec<&str> = pages.iter().take(MAX_NAMED_PAGES).map(|page| page.url.as_str()).collect();
        let has = if urls.is_empty() { "the browser has no page".to_owned() } else { urls.join(", ") };
        format!("{NO_PAGE} `{filter}`; the pages are: {has}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(kind: &str, url: &str) -> TargetListEntry {
        let web_socket_debugger_url = Some(format!("ws://127.0.0.1:1/devtools/page/{}", url.len()));
        let (id, kind, title) = (url.to_owned(), kind.to_owned(), String::new());
        TargetListEntry { id, kind, title, url: url.to_owned(), web_socket_debugger_url }
    }

    #[test]
    fn a_page_is_found_by_its_url() {
        let targets = [
            target("service_worker", "http://localhost:1/sw.js"),
            target("shared_worker", "http://localhost:1/shared.js"),
            target("page", "http://localhost:1/a[1].html?q=1#top"),
            target("page", "http://localhost:1/"),
        ];
        let find = |filter: &str| find_page(&targets, filter).map(|page| page.url.as_str());
        assert_eq!(find("*"), Ok("http://localhost:1/a[1].html?q=1#top"));
        assert_eq!(find("http://localhost:1/a[1].html*"), Ok("http://localhost:1/a[1].html?q=1#top"));
        assert_eq!(find("http://localhost:1"), Ok("http://localhost:1/"));
        assert_eq!(find("http://localhost:1/shared.js"), Ok("http://localhost:1/shared.js"));
        let none = find("http://localhost:2/*").unwrap_err();
        assert!(none.contains("a[1].html") && !none.contains("sw.js"), "{none}");
        let address = page_address(7, &targets[3]).unwrap();
        assert_eq!((address.port, address.path.as_str()), (7, "/devtools/page/19"));
        let taken = TargetListEntry { web_socket_debugger_url: None, ..target("page", "x") };
        assert!(page_address(7, &taken).is_err());
    }
}
