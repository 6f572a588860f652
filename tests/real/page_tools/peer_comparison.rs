//! The same script through our page tools and through chrome-devtools-mcp, on the same Chromium: the same results.

use std::path::Path;
use std::process::Stdio;

use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, ContentBlock};
use rmcp::service::{RoleClient, RunningService};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use super::find;
use crate::support::requirements::{has_program, installed_tool};

use crate::support::mcp_client::{McpClient, text};
use crate::support::{Sandbox, TEST_TIMEOUT};

const PAGE: &str = r#"<!doctype html><link rel=icon href="data:,"><title>Shop</title><h1>Shop</h1>
<label>Name <input id=name></label><button id=buy>Buy</button><p id=said role=status></p>
<script>
let bought = 0;
buy.onclick = async () => {
    console.log('bought ' + ++bought + ' for ' + document.getElementById('name').value);
    const answer = await fetch('/order?n=' + bought);
    said.textContent = 'Order ' + bought + ': ' + answer.status;
};
addEventListener('keydown', event => event.key === 'F2' && console.warn('help is wanted'));
</script>"#;

/// The results of a script.
#[derive(Debug, PartialEq)]
struct Findings {
    title: Value,
    /// The page's state at the end.
    name: Value,
    output: Value,
    /// Roles and names in the snapshot, in order.
    tree: Vec<String>,
    console: Vec<String>,
    requests: Vec<String>,
}

#[tokio::test]
async fn the_same_script_finds_the_same_through_us_and_through_the_peer() {
    let peer = "chrome-devtools-mcp/node_modules/chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js";
    let Some(peer) = installed_tool(peer).filter(|_| has_program("chromium")) else { return };
    let (port, serving) = shop().await;
    let sandbox =
        Sandbox::with(&[("devtools.toml", &format!("[window]\nkind = 'browser'\nurl = 'http://127.0.0.1:{port}/'\n"))]);
    let agent = McpClient::start(&sandbox).await;
    let cdp = agent.call("window_start", json!({})).await["cdpPort"].as_u64().unwrap();
    let ours = through_us(&agent).await;
    agent.call("window_evaluate", json!({"expression": "location.reload()"})).await;
    let theirs = through_the_peer(&peer, cdp).await;
    serving.abort();
    assert_eq!(ours, theirs);
    assert_eq!((&ours.name, &ours.output), (&json!("Ada"), &json!("Order 2: 404")));
    assert_eq!(ours.console, ["bought 1 for Ada", "bought 2 for Ada", "help is wanted"]);
    assert_eq!(ours.requests, ["GET /order?n=1 404", "GET /order?n=2 404"]);
    assert_eq!(ours.tree, ["heading \"Shop\"", "textbox \"Name\"", "button \"Buy\""]);
    agent.leave().await;
}

const END: &str = "[document.getElementById('name').value, said.textContent]";

async fn through_us(agent: &McpClient) -> Findings {
    let tree = text(&agent.ask("window_snapshot", json!({})).await);
    let (name, buy) = (find(&tree, "textbox"), find(&tree, "button"));
    let acted = agent.ask("window_input", json!({"actions": [
        {"do": "type", "ref": name, "text": "Ada"}, {"do": "click", "ref": buy}, {"do": "wait", "text": "Order 1"},
        {"do": "click", "ref": buy}, {"do": "wait", "text": "Order 2"}, {"do": "press", "keys": "F2"},
    ]})).await;
    assert_ne!(acted.is_error, Some(true), "{}", text(&acted));
    let evaluate = async |expression: &str| {
        agent.call("window_evaluate", json!({"expression": expression})).await["value"].clone()
    };
    let console = agent.call("window_console", json!({"limit": 1000})).await;
    let requests = agent.call("window_network", json!({"filter": "/order"})).await;
    let each =
        |list: &Value, tell: &dyn Fn(&Value) -> String| list["entries"].as_array().unwrap().iter().map(tell).collect();
    let path = |url: &Value| url.as_str().unwrap().split('/').next_back().unwrap().to_owned();
    let output: Vec<String> = each(&console, &|it| it["text"].as_str().unwrap().to_owned());
    let end = evaluate(END).await;
    Findings {
        title: evaluate("document.title").await,
        name: end[0].clone(),
        output: end[1].clone(),
        tree: tree.lines().skip(1).filter_map(|line| Some(role_and_name(line.trim().split_once(' ')?.1))).collect(),
        console: output.into_iter().filter(|it| it.starts_with("bought") || it.starts_with("help")).collect(),
        requests: each(&requests, &|it| {
            format!("{} /{} {}", it["method"].as_str().unwrap(), path(&it["url"]), it["status"])
        }),
    }
}

/// `button "Buy"` of `button "Buy" focusable …`.
fn role_and_name(line: &str) -> String {
    let end = line.find('"').and_then(|start| Some(start + 2 + line[start + 1..].find('"')?));
    line[..end.unwrap_or(line.find(' ').unwrap_or(line.len()))].to_owned()
}

type Client = RunningService<RoleClient, ()>;

async fn through_the_peer(peer: &Path, cdp: u64) -> Findings {
    let mut command = Command::new("node");
    command.arg(peer).args(["--browserUrl", &format!("http://127.0.0.1:{cdp}"), "--no-usage-statistics"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    let stdio = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let client: Client = timeout(TEST_TIMEOUT, ().serve(stdio)).await.expect("no handshake").unwrap();
    let call = async |tool: &str, mut arguments: Value| {
        if tool != "list_pages" {
            arguments["pageId"] = json!(1);
        }
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.as_object().unwrap().clone());
        let result = timeout(TEST_TIMEOUT, client.call_tool(params)).await.expect("no answer").unwrap();
        let text: String = result.content.iter().filter_map(ContentBlock::as_text).map(|it| it.text.clone()).collect();
        assert_ne!(result.is_error, Some(true), "{tool}: {text}");
        text
    };
    call("list_pages", json!({})).await;
    let tree = call("take_snapshot", json!({})).await;
    let uid = |words: &str| {
        tree.lines().find(|line| line.contains(words)).unwrap().trim().split(' ').next().unwrap().replace("uid=", "")
    };
    let evaluate = async |expression: &str| -> Value {
        let reported = call("evaluate_script", json!({"function": format!("() => {expression}")})).await;
        let value = reported.split("```json").nth(1).unwrap().split("```").next().unwrap();
        serde_json::from_str(value.trim()).unwrap()
    };
    call("fill", json!({"uid": uid("textbox"), "value": "Ada"})).await;
    for number in 1..=2 {
        call("click", json!({"uid": uid("button")})).await;
        call("wait_for", json!({"text": [format!("Order {number}")]})).await;
    }
    call("press_key", json!({"key": "F2"})).await;
    let console = call("list_console_messages", json!({})).await;
    let requests = call("list_network_requests", json!({"resourceTypes": ["fetch"]})).await;
    let end = evaluate(END).await;
    let findings = Findings {
        title: evaluate("document.title").await,
        name: end[0].clone(),
        output: end[1].clone(),
        tree: tree
            .lines()
            .filter(|line| line.contains("uid=") && !line.contains("RootWebArea"))
            .map(|line| role_and_name(line.trim().split_once(' ').unwrap().1))
            .filter(|line| ["heading", "textbox", "button"].iter().any(|it| line.starts_with(it)))
            .collect(),
        console: console
            .lines()
            .filter_map(|line| line.split("] ").nth(1))
            .map(|line| line.split(" (").next().unwrap().to_owned())
            .filter(|it| it.starts_with("bought") || it.starts_with("help"))
            .collect(),
        requests: requests
            .lines()
            .filter(|line| line.contains("/order"))
            .map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let url = words.iter().position(|it| it.contains("/order")).unwrap();
                let status = line.rsplit('[').next().unwrap().trim_end_matches(']');
                format!("{} /{} {status}", words[url - 1], words[url].split('/').next_back().unwrap())
            })
            .collect(),
    };
    client.cancel().await.unwrap();
    let _ = timeout(TEST_TIMEOUT, child.wait()).await;
    findings
}

/// A page on its own port; POST requests are refused.
async fn shop() -> (u16, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut first = String::new();
                let _ = stream.read_line(&mut first).await;
                let mut line = String::from("x");
                while line.trim() != "" {
                    line.clear();
                    if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                let (status, body) = if first.starts_with("GET / ") { ("200 OK", PAGE) } else { ("404 Not Found", "") };
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all((head + body).as_bytes()).await;
            });
        }
    });
    (port, serving)
}
