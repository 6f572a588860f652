//! Who may use VS Code's server behind a window: its page may, another user of the machine may not.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use devtether::config::{WindowKind, WindowSettings};
use devtether::window::launch::LaunchedWindow;
use devtether::window::launch_id::scratch_dir_of;
use devtether::window::page::{ExpressionResult, PageConnection, PageHistory, evaluate_on_page};
use serde_json::{Value, json};
use tether_base::ring::RingQuery;

use super::{WindowFolder, settings};
use crate::support::other_user::spawn_node_as_nobody;
use crate::support::requirements::{has_code_server, has_program, is_root};

/// Requests a file, the workbench and the WebSocket of the server on port `argv[1]`, also with a foreign `Host` and
/// `Origin`. Prints the status of each, and the first message on the WebSocket.
const INTRUDER: &str = r#"
const http = require("http");
const [port, file] = process.argv.slice(1);
const get = (path, headers) => new Promise((done, fail) => {
    const request = http.get({ host: "127.0.0.1", port, path, headers }, response => {
        response.resume().on("end", () => done(response.statusCode));
    });
    request.on("error", fail);
});
// VS Code's own protocol behind the handshake: kind, id, acknowledged id, length, body.
const frame = body => {
    const bytes = Buffer.from(JSON.stringify(body)), header = Buffer.alloc(13);
    header[0] = 2; // a control message
    header.writeUInt32BE(bytes.length, 9);
    return Buffer.concat([header, bytes]);
};
const dial = headers => new Promise((done, fail) => {
    const path = "/?reconnectionToken=3b8f6c5e-0000-4000-8000-000000000000&reconnection=false&skipWebSocketFrames=true";
    const upgrade = { Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": 13,
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==" };
    const request = http.get({ host: "127.0.0.1", port, path, headers: { ...upgrade, ...headers } });
    request.on("error", fail).on("response", response => done(`status ${response.statusCode}`));
    request.on("upgrade", (_, socket, head) => {
        let received = head;
        const read = data => {
            received = Buffer.concat([received, data]);
            if (received.length < 13 || received.length < 13 + received.readUInt32BE(9)) return;
            const message = JSON.parse(received.subarray(13, 13 + received.readUInt32BE(9)));
            socket.destroy();
            done(message.reason ?? message.type);
        };
        socket.on("data", read).on("error", fail).on("close", () => done("closed"));
        socket.write(frame({ type: "auth", auth: "00000000000000000000", data: "x" }));
    });
});
(async () => {
    const foreign = { Origin: "http://evil.example", Host: "evil.example" };
    const file_path = "/vscode-remote-resource?path=" + encodeURIComponent(file);
    console.log(JSON.stringify({
        file: [await get(file_path), await get(file_path, foreign)],
        workbench: [await get("/"), await get("/", foreign), await get("/?tkn=0123456789abcdef0123456789abcdef")],
        socket: [await dial(), await dial(foreign)],
    }));
})();
"#;

async fn value(page: &PageConnection, expression: &str) -> Value {
    match evaluate_on_page(page, expression, Duration::from_secs(10), None).await.unwrap() {
        ExpressionResult::Value(value) => value,
        ExpressionResult::Exception(text) => panic!("{expression}: {text}"),
    }
}

/// Starts a reload of the page from one of its own tasks: the expression has its value before the document goes.
async fn reload(page: &PageConnection) {
    value(page, "void setTimeout(() => location.reload())").await;
}

/// Resolves when the page shows the workbench, in a document that is newer than `after` (`performance.timeOrigin`).
/// Returns the age of its document and the port of the server.
async fn wait_for_workbench(page: &PageConnection, after: f64) -> (f64, u16) {
    let shown = "document.title.startsWith('[Extension Development Host]') && [performance.timeOrigin, +location.port]";
    let waiting = async {
        loop {
            // An error: the document goes while it is asked.
            match evaluate_on_page(page, shown, Duration::from_secs(10), None).await {
                Ok(ExpressionResult::Value(Value::Array(both))) if both[0].as_f64() > Some(after) => {
                    return (both[0].as_f64().unwrap(), both[1].as_u64().unwrap() as u16);
                }
                _ => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("the page does not show the workbench")
}

/// The responses of the server to another user who knows its port.
fn intrude(port: u16, secret: &Path) -> Value {
    let arguments = [port.to_string(), secret.display().to_string()];
    let output = spawn_node_as_nobody(INTRUDER, arguments).wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).expect("the responses of the server")
}

/// No process of the launch has the token on its command line or in its environment, and no other user can read its file.
fn check_token_is_hidden(place: &WindowFolder) -> String {
    use std::os::unix::fs::PermissionsExt;
    let file = scratch_dir_of(&place.state, &place.launch_id).join("connection-token");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let token = std::fs::read_to_string(file).unwrap();
    assert!(token.len() >= 32, "{token}");
    for process in tether_process::find_launch_processes(&place.launch_id).unwrap() {
        for public in ["cmdline", "environ"] {
            let bytes = std::fs::read(format!("/proc/{}/{public}", process.pid())).unwrap_or_default();
            assert!(!String::from_utf8_lossy(&bytes).contains(&token), "{public} of {process:?}");
        }
    }
    token
}

async fn launch(place: &WindowFolder) -> LaunchedWindow {
    let extension = Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/extension"));
    let profile = Some("kept profile".into());
    let settings = WindowSettings { extension, profile, ..settings() };
    place.launch(WindowKind::WebExtensionHost, settings).await.unwrap()
}

#[tokio::test]
async fn only_the_page_of_the_window_may_use_the_server_of_vs_code() {
    if !has_program("chromium") || !has_code_server() || !is_root() {
        return;
    }
    let mut place = WindowFolder::fresh();
    let secret = place.file("secret", "of the owner");
    let launched = launch(&place).await;
    let page = PageConnection::open(launched.cdp_port).await.unwrap();
    let (first, port) = wait_for_workbench(&page, 0.0).await;
    let refused = "Unauthorized client refused: auth mismatch";
    let all_refused = json!({"file": [403, 403], "workbench": [403, 403, 403], "socket": [refused, refused]});
    assert_eq!(intrude(port, &secret), all_refused);
    let token = check_token_is_hidden(&place);

    // A reload of the page, and another connection to it.
    reload(&page).await;
    wait_for_workbench(&page, first).await;
    drop(page);
    let page = PageConnection::open(launched.cdp_port).await.unwrap();
    wait_for_workbench(&page, first).await;
    assert_eq!(intrude(port, &secret), all_refused);
    place.stop(&launched, Some(&page)).await;

    // A relaunch in the same profile, which has the cookie of the launch before.
    place.launch_id.push_str("-again");
    let launched = launch(&place).await;
    let page = PageConnection::open(launched.cdp_port).await.unwrap();
    let (_, port) = wait_for_workbench(&page, 0.0).await;
    assert_ne!(check_token_is_hidden(&place), token);
    assert_eq!(intrude(port, &secret), all_refused);
    place.stop(&launched, Some(&page)).await;
}

/// The URLs of the requests that a page has sent, completed or not, and the texts of its console.
fn recorded_texts(history: &PageHistory) -> Vec<String> {
    let query = RingQuery { limit: 10_000, ..RingQuery::default() };
    let (completed, in_flight) = history.network(&query);
    let urls = completed.entries.into_iter().chain(in_flight).map(|request| request.url);
    let messages = history.console(&query).entries.into_iter();
    urls.chain(messages.flat_map(|message| [Some(message.text), message.location]).flatten()).collect()
}

#[tokio::test]
async fn the_token_of_the_server_is_in_no_recorded_request() {
    if !has_program("chromium") || !has_code_server() {
        return;
    }
    let place = WindowFolder::fresh();
    let launched = launch(&place).await;
    let token = check_token_is_hidden(&place);
    let history = Arc::new(PageHistory::new(None));
    let page = PageConnection::open_with_history(launched.cdp_port, Arc::clone(&history)).await.unwrap();
    let (first, _) = wait_for_workbench(&page, 0.0).await;
    reload(&page).await;
    wait_for_workbench(&page, first).await;
    // As VS Code requests the files of extensions.
    let resource = format!("fetch('/vscode-remote-resource?path=%2Fetc%2Fhostname&tkn={token}').then(it => it.status)");
    assert_eq!(value(&page, &resource).await, json!(200));
    value(&page, &format!("console.warn('GET ' + location.origin + '/?tkn={token}#x', 'failed')")).await;
    let shown = "GET http://";
    tokio::time::timeout(Duration::from_secs(10), async {
        let mut console = history.watch_console();
        while !recorded_texts(&history).iter().any(|text| text.starts_with(shown)) {
            console.changed().await.unwrap();
        }
    })
    .await
    .expect("the message is not recorded");
    let recorded = recorded_texts(&history);
    assert!(recorded.iter().any(|text| text.ends_with("path=%2Fetc%2Fhostname&tkn=…")), "{recorded:#?}");
    assert!(recorded.iter().any(|text| text.ends_with("/?tkn=…#x failed")), "{recorded:#?}");
    assert_eq!(recorded.iter().find(|text| text.contains(&token)), None);
    place.stop(&launched, Some(&page)).await;
}
