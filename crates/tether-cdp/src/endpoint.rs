//! Discovers the program on a debugging port over HTTP: `/json/version` and `/json/list`.
//!
//! The port may belong to an unrelated program, so a response is limited to 2 s and 4 MiB, without proxy or redirect,
//! and of the WebSocket address it contains only the path is used.

use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::cdp_error::CdpError;

/// For a whole response.
const DEADLINE: Duration = Duration::from_secs(2);
/// Bytes.
const MAX_BODY: usize = 4 << 20;

/// The program on a debugging port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its port on the loopback.
    pub port: u16,
    /// "Chrome/156.0.8078.79", "node.js/v20.20.2".
    pub product: String,
    /// The GUID of the browser, or of Node's only target: different after each start of the program.
    pub browser_id: String,
    /// The path of the WebSocket: of the browser, or of Node's only target.
    pub path: String,
    /// Whether the WebSocket is a browser's, which has targets; Node's is that of its target.
    pub is_browser: bool,
}

/// An entry of `/json/list`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetListEntry {
    /// The target id of CDP; of Node, a new GUID at each start.
    pub id: String,
    /// `page`, `iframe`, `worker`, `node`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Of the page, or the script that Node runs.
    #[serde(default)]
    pub title: String,
    /// Of the page, or of the script that Node runs; empty if there is none.
    #[serde(default)]
    pub url: String,
    /// Missing while another client has exclusive access.
    pub web_socket_debugger_url: Option<String>,
}

#[derive(Deserialize)]
struct VersionResponse {
    #[serde(rename = "Browser")]
    browser: String,
    #[serde(rename = "webSocketDebuggerUrl")]
    socket: Option<String>,
}

/// Identifies the program on a loopback port.
pub async fn discover_endpoint(port: u16) -> Result<Endpoint, CdpError> {
    let version: VersionResponse = fetch_json(port, "/json/version").await?;
    if let Some(url) = version.socket {
        let path = websocket_path(&url)
            .ok_or_else(|| unexpected_response(port, "/json/version", &format!("the address {url:?}")))?;
        let browser_id = path.rsplit('/').next().unwrap_or_default().to_owned();
        return Ok(Endpoint { port, product: version.browser, browser_id, path, is_browser: true });
    }
    let only = list_targets(port).await?.into_iter().next();
    let only = only.ok_or_else(|| unexpected_response(port, "/json/list", "no target"))?;
    let path =
        only.web_socket_debugger_url.as_deref().and_then(websocket_path).unwrap_or_else(|| format!("/{}", only.id));
    Ok(Endpoint { port, product: version.browser, browser_id: only.id, path, is_browser: false })
}

/// The targets that the program on a loopback port lists.
pub async fn list_targets(port: u16) -> Result<Vec<TargetListEntry>, CdpError> {
    fetch_json(port, "/json/list").await
}

/// The path of `ws://host:port/path`, if that is what it is.
fn websocket_path(url: &str) -> Option<String> {
    let (_, path) = url.strip_prefix("ws://")?.split_once('/')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
    (!path.is_empty() && path.chars().all(plain)).then(|| format!("/{path}"))
}

async fn fetch_json<T: DeserializeOwned>(port: u16, path: &str) -> Result<T, CdpError> {
    let what = || format!("{path} on port {port}");
    let fetched = tokio::time::timeout(DEADLINE, fetch_body(port, path)).await;
    let body = fetched.map_err(|_| CdpError::TimedOut { what: what(), after: DEADLINE })??;
    serde_json::from_slice(&body).map_err(|cause| unexpected_response(port, path, &cause.to_string()))
}

async fn fetch_body(port: u16, path: &str) -> Result<Vec<u8>, CdpError> {
    /// Shared, since building it costs more than a request. Keeps no connections, since a port may be taken over by
    /// another program.
    static HTTP: LazyLock<Result<reqwest::Client, String>> = LazyLock::new(|| {
        let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        builder.pool_max_idle_per_host(0).build().map_err(|cause| cause.to_string())
    });
    let unreachable = |cause: String| CdpError::Unreachable { port, cause };
    let http = HTTP.as_ref().map_err(|cause| unreachable(cause.clone()))?;
    let sent = http.get(format!("http://127.0.0.1:{port}{path}")).send().await;
    let mut response = sent.map_err(|cause| unreachable(root_cause(&cause)))?;
    if !response.status().is_success() {
        return Err(unexpected_response(port, path, &format!("status {}", response.status())));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|cause| unreachable(root_cause(&cause)))? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_BODY {
            return Err(unexpected_response(port, path, "more than 4 MiB"));
        }
    }
    Ok(body)
}

fn unexpected_response(port: u16, path: &str, cause: &str) -> CdpError {
    CdpError::Unexpected { what: format!("{path} on port {port}"), cause: cause.to_owned() }
}

/// The innermost cause of an error: reqwest's own text is only "error sending request".
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Serves fixed responses by path, as raw bytes, and closes the connection after each.
    async fn serve(responses: &'static [(&'static str, String)]) -> (u16, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 4096];
                let count = stream.read(&mut request).await.unwrap();
                let request = String::from_utf8_lossy(&request[..count]).into_owned();
                let answer = responses.iter().find(|(path, _)| request.starts_with(&format!("GET {path} ")));
                // Fails when the client closes the connection because the body is too large.
                let _ = stream.write_all(answer.map(|(_, answer)| answer.as_bytes()).unwrap_or_default()).await;
            }
        });
        (port, serving)
    }

    fn ok(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
    }

    fn leak(answers: Vec<(&'static str, String)>) -> &'static [(&'static str, String)] {
        answers.leak()
    }

    async fn check(answers: Vec<(&'static str, String)>, expect: Result<(&str, &str, bool), &str>) {
        let (port, serving) = serve(leak(answers)).await;
        let found = discover_endpoint(port).await;
        serving.abort();
        match (found, expect) {
            (Ok(found), Ok(expect)) => {
                assert_eq!((found.browser_id.as_str(), found.path.as_str(), found.is_browser), expect);
                assert_eq!(found.port, port);
            }
            (Err(error), Err(expect)) => assert!(error.to_string().contains(expect), "{expect:?}: {error}"),
            (found, expect) => panic!("{expect:?}: {found:?}"),
        }
    }

    #[tokio::test]
    async fn browsers_and_node_are_distinguished_and_only_the_path_is_used() {
        let chrome = r#"{"Browser": "Chrome/156", "webSocketDebuggerUrl": "ws://127.0.0.1:1/devtools/browser/G-1"}"#;
        check(vec![("/json/version", ok(chrome))], Ok(("G-1", "/devtools/browser/G-1", true))).await;
        let elsewhere = chrome.replace("127.0.0.1:1", "evil.example:80");
        check(vec![("/json/version", ok(&elsewhere))], Ok(("G-1", "/devtools/browser/G-1", true))).await;
        let node = r#"{"Browser": "node.js/v20", "Protocol-Version": "1.1"}"#;
        let list = r#"[{"id": "N-1", "type": "node", "webSocketDebuggerUrl": "ws://[::1]:9229/N-1"}]"#;
        check(vec![("/json/version", ok(node)), ("/json/list", ok(list))], Ok(("N-1", "/N-1", false))).await;
        check(vec![("/json/version", ok(node)), ("/json/list", ok("[]"))], Err("no target")).await;
    }

    #[tokio::test]
    async fn other_programs_are_rejected_within_the_limits() {
        let version = |answer: &str| vec![("/json/version", answer.to_owned())];
        check(version(""), Err("cannot connect")).await;
        check(version("SSH-2.0-OpenSSH_9.2\r\n"), Err("cannot connect")).await;
        check(version("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), Err("status 404")).await;
        let redirect = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
        check(version(redirect), Err("status 302")).await;
        check(version(&ok("<html>")), Err("unexpected response")).await;
        check(version(&ok("{}")), Err("unexpected response")).await;
        check(version(&ok(&format!("\"{}\"", "x".repeat(5 << 20)))), Err("more than 4 MiB")).await;
        for url in ["http://x/y", "ws://nowhere", "ws://x/", "ws://x/a\\r\\nHost: evil", "ws://x/a b"] {
            let body = format!("{{\"Browser\": \"x\", \"webSocketDebuggerUrl\": \"{url}\"}}");
            check(version(&ok(&body)), Err("the address")).await;
        }
    }

    #[tokio::test]
    async fn a_silent_or_closed_port_is_reported() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = silent.local_addr().unwrap().port();
        let error = discover_endpoint(port).await.unwrap_err();
        assert!(matches!(error, CdpError::TimedOut { .. }) && error.to_string().contains(&port.to_string()), "{error}");
        drop(silent);
        let error = discover_endpoint(port).await.unwrap_err();
        // Refused; or reset, when another test forks at this moment and keeps the listener open until its exec.
        assert!(matches!(error, CdpError::Unreachable { port: reported, .. } if reported == port), "{error}");
    }
}
