//! The page's requests over MCP: headers, bodies, timing, initiators, messages; HAR files; rules that block, delay and mock.

use serde_json::{Value, json};

use super::page_fixture::PageFixture;
use super::test_site::PIXEL;
use crate::support::mcp_client::text;
use crate::support::requirements::{has_program, installed_tool};

/// `load` of `src/api.ts`, line 7, over the source map below.
const SCRIPT: &str = "function load(url, init) {\n  return fetch(url, init);\n}\n//# sourceMappingURL=app.js.map\n";
const MAP: &str = r#"{"version":3,"file":"app.js","sources":["../src/api.ts"],"names":[],"mappings":"AAAA;AAME"}"#;
const PAGE: &str = r#"<!doctype html><link rel=icon href="data:,"><title>Requests</title><h1>Requests</h1>
<script src="app.js"></script>"#;
const SITE: &[(&str, &str)] = &[
    ("/", PAGE),
    ("/app.js", SCRIPT),
    ("/app.js.map", MAP),
    ("/data.json", r#"{"b":1,"a":[1.50,"x"]}"#),
    ("/next", "<!doctype html><title>Next</title><h1>Next</h1>"),
];

/// The one request with these words, in full.
async fn detail(page: &PageFixture, filter: &str) -> (Value, Value) {
    let id = page.request_id(filter).await;
    let mut shown = page.agent.call("window_network", json!({"id": id})).await;
    assert_eq!(shown["entries"].as_array().unwrap().len(), 1, "{shown}");
    (shown["entries"][0].take(), shown["detail"].take())
}

#[tokio::test]
async fn a_request_is_shown_with_headers_body_timing_and_the_place_in_its_source() {
    if !has_program("chromium") {
        return;
    }
    let page = PageFixture::open(SITE).await;
    let posted = r#"load('/echo', {method: 'POST', body: '{"name":"Ann"}', headers: {'X-Asked': 'why'}}).then(async it => (await it.text(), it.status))"#;
    assert_eq!(page.value(posted).await, 200);
    let (entry, detail) = detail(&page, "/echo POST").await;
    assert_eq!((&entry["status"], &entry["type"]), (&json!(200), &json!("Fetch")));
    let headers = |side: &str| detail[side].to_string().to_lowercase();
    assert!(headers("requestHeaders").contains("x-asked: why"), "{detail}");
    assert!(headers("responseHeaders").contains("x-answer: yes"), "{detail}");
    assert_eq!(detail["requestBody"], "{\n  \"name\": \"Ann\"\n}");
    assert!(detail["body"].as_str().unwrap().contains("\n  \"method\": \"POST\""), "{detail}");
    assert!(detail["timing"]["waitMs"].as_f64().is_some(), "{detail}");
    let initiator = detail["initiator"].as_array().unwrap();
    assert_eq!(initiator[0], "script");
    assert_eq!(initiator[1], "load ../src/api.ts:7:3", "{detail}");
    page.end().await;
}

#[tokio::test]
async fn bodies_outlive_a_navigation_and_binary_ones_are_files() {
    if !has_program("chromium") {
        return;
    }
    let page = PageFixture::open(SITE).await;
    page.value("Promise.all([fetch('/data.json'), fetch('/pixel.png'), fetch('/missing')].map(async it => (await it).blob())).then(() => 1)").await;
    let other = page.site.other_url("/next");
    page.call("window_page", json!({"do": "goto", "url": other})).await;
    let (_, json) = detail(&page, "/data.json").await;
    // The numbers are as they were sent.
    assert_eq!(json["body"], "{\n  \"b\": 1,\n  \"a\": [\n    1.50,\n    \"x\"\n  ]\n}");
    let (_, picture) = detail(&page, "pixel.png").await;
    let file = picture["bodyFile"].as_str().unwrap_or_else(|| panic!("{picture}"));
    assert!(file.starts_with(".devtools/files/request-") && file.ends_with(".png"), "{file}");
    assert_eq!(std::fs::read(page.sandbox.path(file)).unwrap(), PIXEL);
    let failed = page.agent.call("window_network", json!({"filter": "failed 4xx missing"})).await;
    assert_eq!(failed["entries"][0]["status"], 404, "{failed}");
    let (_, missing) = detail(&page, "failed missing").await;
    assert_eq!(missing["body"], "there is nothing");
    // A long text is cut, and the whole of it is a file.
    let long =
        "fetch('/echo', {method: 'POST', body: 'long '.repeat(10000)}).then(it => it.text()).then(it => it.length)";
    page.value(long).await;
    let (_, long) = detail(&page, "/echo").await;
    assert!(long["bodyNote"].as_str().unwrap().starts_with("cut: the first 16384 of"), "{}", long["bodyNote"]);
    let whole = std::fs::read_to_string(page.sandbox.path(long["bodyFile"].as_str().unwrap())).unwrap();
    assert!(whole.len() > 50_000 && whole.contains("long long"), "{}", whole.len());
    let unknown = page.agent.ask("window_network", json!({"id": 999_999})).await;
    assert!(
        unknown.is_error == Some(true) && text(&unknown).contains("there is no request 999999"),
        "{}",
        text(&unknown)
    );
    page.end().await;
}

#[tokio::test]
async fn messages_of_sockets_and_event_streams_are_kept() {
    if !has_program("chromium") {
        return;
    }
    let page = PageFixture::open(&[("/", PAGE), ("/app.js", "let url = '$socket';")]).await;
    let talk = "new Promise(done => { const it = new WebSocket(url); it.onopen = () => it.send('hello');
        it.onmessage = ({data}) => { it.close(); done(data) } })";
    assert_eq!(page.value(talk).await, "hello");
    let listen = "new Promise(done => { const it = new EventSource('/events'); it.onmessage = ({data}) => { it.close(); done(data) } })";
    assert_eq!(page.value(listen).await, "second");
    let messages = async |filter: &str| -> Vec<[String; 2]> {
        let (_, detail) = detail(&page, filter).await;
        let all = detail["messages"].as_array().cloned().unwrap_or_default();
        all.iter().map(|it| ["kind", "text"].map(|name| it[name].as_str().unwrap().to_owned())).collect()
    };
    let socket = messages("websocket").await;
    assert_eq!(socket[..2], [["sent", "hello"], ["received", "hello"]].map(|it| it.map(str::to_owned)));
    let stream = messages("events eventsource").await;
    assert_eq!(stream, [["news", "first"], ["message", "second"]].map(|it| it.map(str::to_owned)));
    page.end().await;
}

/// Plays the archive into a page, without a server; prints what the page fetched.
const READ_HAR: &str = r#"
const { chromium } = require(process.argv[2]);
(async () => {
    const browser = await chromium.launch({ executablePath: process.argv[3], args: ['--no-sandbox'] });
    const context = await browser.newContext();
    await context.routeFromHAR(process.argv[4], { notFound: 'abort' });
    const page = await context.newPage();
    await page.goto(process.argv[5]);
    console.log(JSON.stringify(await page.evaluate(() => fetch('/data.json').then(it => it.json()))));
    await browser.close();
})().catch((error) => { console.error(error); process.exit(1); });
"#;

#[tokio::test]
async fn playwright_reads_the_archive() {
    let Some(playwright) =
        installed_tool("playwright/node_modules/@playwright/test").filter(|_| has_program("chromium"))
    else {
        return;
    };
    let page = PageFixture::open(SITE).await;
    page.value("fetch('/data.json').then(it => it.json())").await;
    page.call("window_page", json!({"do": "reload"})).await;
    page.value("fetch('/data.json').then(it => it.json())").await;
    let exported = page.agent.call("window_network", json!({"har": "story", "limit": 1000})).await;
    assert_eq!(exported["har"], ".devtools/files/story.har");
    let refused = page.agent.ask("window_network", json!({"har": "../story"})).await;
    assert_eq!(refused.is_error, Some(true));
    let url = page.site.url("/");
    let folder = tempfile::tempdir().unwrap();
    let (script, copy) = (folder.path().join("read.js"), folder.path().join("story.har"));
    std::fs::write(&script, READ_HAR).unwrap();
    std::fs::copy(page.sandbox.path(".devtools/files/story.har"), &copy).unwrap();
    // The site is gone with it.
    page.end().await;
    let chromium = std::process::Command::new("sh").args(["-c", "command -v chromium"]).output().unwrap();
    let chromium = String::from_utf8(chromium.stdout).unwrap();
    let ran = tokio::process::Command::new("node")
        .arg(&script)
        .args([playwright.as_os_str(), chromium.trim().as_ref(), copy.as_os_str(), url.as_ref()])
        .kill_on_drop(true)
        .output();
    let ran = tokio::time::timeout(crate::support::TEST_TIMEOUT, ran).await.unwrap().unwrap();
    let output = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{output}");
    assert_eq!(output.trim(), r#"{"b":1,"a":[1.5,"x"]}"#);
}

#[tokio::test]
async fn rules_block_delay_and_mock_requests_until_they_are_removed() {
    if !has_program("chromium") {
        return;
    }
    let page = PageFixture::open(SITE).await;
    page.sandbox.write("mocks/data.json", r#"{"mocked":true}"#);
    let route = async |arguments: Value| page.agent.call("window_route", arguments).await;
    let fetched = "fetch('/data.json').then(it => it.text(), error => String(error))";
    route(json!({"url": "*/data.json", "file": "mocks/data.json", "status": 201})).await;
    assert_eq!(page.value(fetched).await, r#"{"mocked":true}"#);
    // Read at each request.
    page.sandbox.write("mocks/data.json", r#"{"mocked":"again"}"#);
    assert_eq!(page.value(fetched).await, r#"{"mocked":"again"}"#);
    let other = format!(
        "fetch({:?}, {{headers: {{'x-asked': 'why'}}}}).then(it => it.status)",
        page.site.other_url("/data.json")
    );
    assert_eq!(page.value(&other).await, 201);
    assert_eq!(page.value("fetch('/echo').then(it => it.status)").await, 200);
    let listed = route(json!({})).await;
    assert!(listed["rules"][0]["hits"].as_u64().unwrap() >= 3, "{listed}");
    let status = page.agent.call("window_status", json!({})).await["notes"].to_string();
    assert!(status.contains("rule 1:") && status.contains("mocks/data.json"), "{status}");
    route(json!({"url": "*/data.json", "block": true, "keep": true})).await;
    assert!(page.value(fetched).await.as_str().unwrap().contains("Failed to fetch"));
    route(json!({"url": "/echo", "delayMs": 300})).await;
    let took = "(async () => { const at = performance.now(); await fetch('/echo'); return performance.now() - at })()";
    assert!(page.value(took).await.as_f64().unwrap() >= 300.0);
    let refused = page.agent.ask("window_route", json!({"url": "x", "file": "../outside"})).await;
    assert!(text(&refused).contains("is not a file of the workspace"), "{}", text(&refused));
    // With the launch go the rules that are not kept.
    page.agent.call("window_restart", json!({})).await;
    page.arrive().await;
    let kept = route(json!({})).await;
    assert_eq!((kept["rules"].as_array().unwrap().len(), &kept["rules"][0]["block"]), (1, &json!(true)), "{kept}");
    assert!(page.value(fetched).await.as_str().unwrap().contains("Failed to fetch"));
    // Another supervisor has it, too.
    page.sandbox.kill_supervisor();
    assert!(page.value(fetched).await.as_str().unwrap().contains("Failed to fetch"));
    route(json!({"remove": "all"})).await;
    assert!(page.value(fetched).await.as_str().unwrap().contains("1.50"));
    page.end().await;
}
