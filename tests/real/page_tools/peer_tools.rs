//! Every tool of chrome-devtools-mcp and of @playwright/mcp, and the call that does the same here, run on a real page.
//!
//! `docs/src/page-tools.md` has the same table; `UPDATE_PEER_TABLE=1` writes it again.

use std::path::Path;
use std::process::Stdio;

use rmcp::ServiceExt;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use super::page_fixture::PageFixture;
use crate::support::TEST_TIMEOUT;
use crate::support::mcp_client::text;
use crate::support::requirements::{has_program, installed_tool};

/// How the same is done here.
enum Here {
    /// The tool, its arguments (`$x` is the ref of the element with this id), and what its text has.
    Call(&'static str, &'static str, &'static str),
    /// It is left to them, and why.
    Theirs(&'static str),
}

use Here::{Call, Theirs};

const INPUT: &str = "window_input";
const PAGE_TOOL: &str = "window_page";
const STORAGE: &str = "window_storage";

/// Tools of the peers, and how the same is done here.
const CHROME_DEVTOOLS_MCP: &[(&str, Here)] = &[
    ("click", Call(INPUT, r#"{"actions":[{"do":"click","ref":"$buy"}]}"#, "click e")),
    ("close_page", Call(PAGE_TOOL, r#"{"do":"close","page":"Second"}"#, "closed t")),
    ("drag", Call(INPUT, r#"{"actions":[{"do":"drag","ref":"$card","to":"$zone"}]}"#, "onto")),
    (
        "emulate",
        Call("window_emulate", r#"{"colorScheme":"dark","network":"fast4g","cpu":2,"geolocation":"1,2"}"#, "dark"),
    ),
    ("evaluate_script", Call("window_evaluate", r#"{"expression":"it => it.id","ref":"$buy"}"#, "buy")),
    ("fill", Call(INPUT, r#"{"actions":[{"do":"fill","ref":"$name","text":"Ann"}]}"#, "fill e")),
    ("fill_form", Call(INPUT, r#"{"actions":[{"do":"fill","fields":{"$name":"Ann","$color":"Blue"}}]}"#, "fill e")),
    ("get_console_message", Call("window_console", r#"{"filter":"hello","limit":1}"#, "hello")),
    (
        "get_css_styles",
        Call("window_evaluate", r#"{"expression":"getComputedStyle(element).color","ref":"$buy"}"#, "rgb"),
    ),
    ("get_network_request", Call("window_network", r#"{"id":$request}"#, "response headers")),
    (
        "handle_dialog",
        Call(
            INPUT,
            r#"{"actions":[{"do":"dialog","text":"Ann"},{"do":"click","ref":"$ask"}]}"#,
            "accepted with \"Ann\"",
        ),
    ),
    ("hover", Call(INPUT, r#"{"actions":[{"do":"hover","ref":"$buy"}]}"#, "hover e")),
    ("lighthouse_audit", Theirs("an audit is a judgement; `npx lighthouse --port` runs it on the window's CDP port")),
    ("list_console_messages", Call("window_console", "{}", "hello")),
    ("list_network_requests", Call("window_network", r#"{"filter":"data.json"}"#, "/data.json 200")),
    ("list_pages", Call(PAGE_TOOL, "{}", "(current)")),
    ("navigate_page", Call(PAGE_TOOL, r#"{"do":"goto","url":"/second"}"#, "(HTTP 200)")),
    ("new_page", Call(PAGE_TOOL, r#"{"do":"new","url":"$site/second"}"#, "opened t")),
    ("performance_analyze_insight", Call("window_profile", r#"{"do":"trace","url":"/"}"#, "LCP")),
    ("performance_start_trace", Call("window_profile", r#"{"do":"trace","url":"/"}"#, "LCP")),
    ("performance_stop_trace", Call("window_profile", r#"{"do":"trace","ms":200}"#, ".devtools/files/trace")),
    ("press_key", Call(INPUT, r#"{"actions":[{"do":"press","keys":"Control+A"}]}"#, "press Control+A")),
    ("resize_page", Call("window_emulate", r#"{"viewport":"500x400"}"#, "500×400")),
    ("screencast_start", Theirs("a video of the page; `window_screenshot` shows it at one moment")),
    ("screencast_stop", Theirs("a video of the page; `window_screenshot` shows it at one moment")),
    ("select_page", Call(PAGE_TOOL, r#"{"do":"switch","page":"Second"}"#, "switched to t")),
    ("take_heapsnapshot", Call("window_profile", r#"{"do":"heap"}"#, ".heapsnapshot")),
    ("take_screenshot", Call("window_screenshot", r#"{"ref":"$buy"}"#, "a picture")),
    ("take_snapshot", Call("window_snapshot", "{}", "button \"Buy\"")),
    ("type_text", Call(INPUT, r#"{"actions":[{"do":"type","ref":"$name","text":"Ann"}]}"#, "type \"Ann\"")),
    ("upload_file", Call(INPUT, r#"{"actions":[{"do":"upload","ref":"$file","values":["a.txt"]}]}"#, "upload")),
    ("wait_for", Call(INPUT, r#"{"actions":[{"do":"wait","text":"Shop"}]}"#, "wait for")),
];

const PLAYWRIGHT_MCP: &[(&str, Here)] = &[
    ("browser_annotate", Theirs("a person marks elements in its own dashboard")),
    ("browser_click", Call(INPUT, r#"{"actions":[{"do":"click","ref":"$buy","count":2}]}"#, "double click e")),
    ("browser_close", Call(PAGE_TOOL, r#"{"do":"close","page":"Second"}"#, "closed t")),
    ("browser_console_messages", Call("window_console", r#"{"filter":"error"}"#, "cursor")),
    ("browser_cookie_clear", Call(STORAGE, r#"{"do":"clear"}"#, "removed 1 cookies")),
    ("browser_cookie_delete", Call(STORAGE, r#"{"do":"clear","name":"session"}"#, "removed 1 cookies")),
    ("browser_cookie_get", Call(STORAGE, r#"{"name":"session"}"#, "session=s3cret")),
    ("browser_cookie_list", Call(STORAGE, "{}", "session=s3cret")),
    (
        "browser_cookie_set",
        Call(STORAGE, r#"{"do":"set","name":"a","value":"1","cookie":{"secure":false}}"#, "set the cookie"),
    ),
    ("browser_drag", Call(INPUT, r#"{"actions":[{"do":"drag","ref":"$card","to":"$zone"}]}"#, "onto")),
    ("browser_drop", Call(INPUT, r#"{"actions":[{"do":"drop","ref":"$zone","values":["a.txt"]}]}"#, "drop")),
    (
        "browser_emulate_media",
        Call("window_emulate", r#"{"media":"print","colorScheme":"light","reducedMotion":true}"#, "print"),
    ),
    ("browser_evaluate", Call("window_evaluate", r#"{"expression":"document.title"}"#, "Shop")),
    ("browser_file_upload", Call(INPUT, r#"{"actions":[{"do":"upload","ref":"$file","values":["a.txt"]}]}"#, "upload")),
    (
        "browser_fill_form",
        Call(INPUT, r#"{"actions":[{"do":"fill","fields":{"$name":"Ann","$terms":"true"}}]}"#, "fill e"),
    ),
    ("browser_find", Call("window_snapshot", r#"{"ref":"$form"}"#, "textbox")),
    ("browser_generate_locator", Theirs("it writes tests for Playwright; a ref names the element here")),
    ("browser_get_config", Call("window_status", "{}", "the window is")),
    (
        "browser_handle_dialog",
        Call(
            INPUT,
            r#"{"actions":[{"do":"dialog","accept":false},{"do":"click","ref":"$ask"}]}"#,
            "a dialog was dismissed",
        ),
    ),
    ("browser_hide_highlight", Theirs("it shows a person what the agent looks at")),
    ("browser_highlight", Theirs("it shows a person what the agent looks at")),
    ("browser_hover", Call(INPUT, r#"{"actions":[{"do":"hover","ref":"$buy"}]}"#, "hover e")),
    ("browser_localstorage_clear", Call(STORAGE, r#"{"do":"clear","area":"local"}"#, "removed 1 entries")),
    (
        "browser_localstorage_delete",
        Call(STORAGE, r#"{"do":"clear","area":"local","name":"who"}"#, "removed 1 entries"),
    ),
    ("browser_localstorage_get", Call(STORAGE, r#"{"area":"local","name":"who"}"#, "who=Ann")),
    ("browser_localstorage_list", Call(STORAGE, r#"{"area":"local"}"#, "who=Ann")),
    (
        "browser_localstorage_set",
        Call(STORAGE, r#"{"do":"set","area":"local","name":"a","value":"1"}"#, "set the entry"),
    ),
    ("browser_mouse_click_xy", Call(INPUT, r#"{"actions":[{"do":"click","x":5,"y":5}]}"#, "click 5,5")),
    ("browser_mouse_down", Call(INPUT, r#"{"actions":[{"do":"click","ref":"$buy","holdMs":50}]}"#, "for 50 ms")),
    (
        "browser_mouse_drag_xy",
        Call(INPUT, r#"{"actions":[{"do":"drag","x":5,"y":5,"to":"50,50"}]}"#, "drag 5,5 to 50,50"),
    ),
    ("browser_mouse_move_xy", Call(INPUT, r#"{"actions":[{"do":"hover","x":5,"y":5}]}"#, "hover 5,5")),
    ("browser_mouse_up", Call(INPUT, r#"{"actions":[{"do":"click","ref":"$buy","holdMs":50}]}"#, "for 50 ms")),
    ("browser_mouse_wheel", Call(INPUT, r#"{"actions":[{"do":"scroll","dy":100}]}"#, "scroll by 0,100")),
    ("browser_navigate", Call(PAGE_TOOL, r#"{"do":"goto","url":"/second"}"#, "(HTTP 200)")),
    ("browser_navigate_back", Call(PAGE_TOOL, r#"{"do":"back"}"#, "went back")),
    ("browser_network_request", Call("window_network", r#"{"id":$request}"#, "response headers")),
    ("browser_network_requests", Call("window_network", r#"{"filter":"fetch"}"#, "/data.json 200")),
    ("browser_network_state_set", Call("window_emulate", r#"{"network":"offline"}"#, "offline")),
    ("browser_pdf_save", Theirs("a print job; `window_emulate` with media print shows how it looks")),
    ("browser_press_key", Call(INPUT, r#"{"actions":[{"do":"press","keys":"F5"}]}"#, "press F5")),
    ("browser_resize", Call("window_emulate", r#"{"viewport":"500x400"}"#, "500×400")),
    ("browser_resume", Call("window_evaluate", r#"{"expression":"1"}"#, "1")),
    ("browser_route", Call("window_route", r#"{"url":"*/data.json","file":"a.txt"}"#, "gets \"a.txt\"")),
    ("browser_route_list", Call("window_route", "{}", "no rules")),
    ("browser_run_code_unsafe", Theirs("code of Playwright; `window_evaluate` runs code in the page")),
    (
        "browser_select_option",
        Call(INPUT, r#"{"actions":[{"do":"select","ref":"$color","values":["Blue"]}]}"#, "select"),
    ),
    ("browser_sessionstorage_clear", Call(STORAGE, r#"{"do":"clear","area":"session"}"#, "removed 1 entries")),
    (
        "browser_sessionstorage_delete",
        Call(STORAGE, r#"{"do":"clear","area":"session","name":"step"}"#, "removed 1 entries"),
    ),
    ("browser_sessionstorage_get", Call(STORAGE, r#"{"area":"session","name":"step"}"#, "step=2")),
    ("browser_sessionstorage_list", Call(STORAGE, r#"{"area":"session"}"#, "step=2")),
    (
        "browser_sessionstorage_set",
        Call(STORAGE, r#"{"do":"set","area":"session","name":"a","value":"1"}"#, "set the entry"),
    ),
    ("browser_set_storage_state", Call(STORAGE, r#"{"do":"load","file":"state.json"}"#, "loaded 0 cookies")),
    ("browser_snapshot", Call("window_snapshot", "{}", "button \"Buy\"")),
    ("browser_start_recording", Theirs("it records a person's actions as a test")),
    ("browser_start_tracing", Call("window_profile", r#"{"do":"trace","url":"/"}"#, "LCP")),
    ("browser_start_video", Theirs("a video of the page")),
    ("browser_stop_recording", Theirs("it records a person's actions as a test")),
    ("browser_stop_tracing", Call("window_profile", r#"{"do":"trace","ms":200}"#, ".devtools/files/trace")),
    ("browser_stop_video", Theirs("a video of the page")),
    ("browser_storage_state", Call(STORAGE, r#"{"do":"save"}"#, "storage-state.json")),
    ("browser_tabs", Call(PAGE_TOOL, r#"{"do":"switch","page":"Second"}"#, "switched to t")),
    ("browser_take_screenshot", Call("window_screenshot", r#"{"fullPage":true,"format":"jpeg"}"#, "a picture")),
    (
        "browser_type",
        Call(
            INPUT,
            r#"{"actions":[{"do":"type","ref":"$name","text":"Ann"},{"do":"press","keys":"Enter"}]}"#,
            "press Enter",
        ),
    ),
    ("browser_unroute", Call("window_route", r#"{"remove":"all"}"#, "no rules")),
    ("browser_verify_element_visible", Call("window_snapshot", r#"{"ref":"$buy"}"#, "button \"Buy\"")),
    ("browser_verify_list_visible", Call("window_snapshot", r#"{"ref":"$form"}"#, "option \"Blue\"")),
    ("browser_verify_text_visible", Call(INPUT, r#"{"actions":[{"do":"wait","text":"Shop"}]}"#, "wait for")),
    ("browser_verify_value", Call("window_evaluate", r#"{"expression":"element.value","ref":"$name"}"#, "nobody")),
    ("browser_video_chapter", Theirs("a video of the page")),
    ("browser_video_hide_actions", Theirs("a video of the page")),
    ("browser_video_show_actions", Theirs("a video of the page")),
    ("browser_wait_for", Call(INPUT, r#"{"actions":[{"do":"wait","ref":"$soon"}]}"#, "wait until")),
];

const SHOP: &str = r#"<!doctype html><link rel=icon href="data:,"><title>Shop</title><h1>Shop</h1>
<style>#card,#zone{width:90px;height:40px}</style>
<div id=form role=group aria-label=Order><input id=name aria-label=Name value=nobody>
<select id=color aria-label=Color><option>Red</option><option>Blue</option></select>
<input id=terms type=checkbox aria-label=Terms><input id=file type=file aria-label=File></div>
<button id=buy>Buy</button><button id=ask onclick="prompt('Who?')">Ask</button>
<div id=card draggable=true role=button>Card</div><div id=zone role=button ondragover="event.preventDefault()">Zone</div>
<p id=soon role=status aria-label=Soon>Soon</p>
<script>
console.log('hello');
localStorage.who = 'Ann';
sessionStorage.step = '2';
fetch('/login').then(() => fetch('/data.json'));
setTimeout(() => soon.hidden = true, 500);
</script>"#;
const SITE: &[(&str, &str)] = &[
    ("/", SHOP),
    ("/second", "<!doctype html><link rel=icon href=\"data:,\"><title>Second</title>"),
    ("/data.json", "{}"),
];

/// The elements by the words of their lines in a snapshot.
const ELEMENTS: &[(&str, &str)] = &[
    ("$buy", "button \"Buy\""),
    ("$ask", "button \"Ask\""),
    ("$name", "textbox \"Name\""),
    ("$color", "combobox \"Color\""),
    ("$terms", "checkbox \"Terms\""),
    ("$file", "file \"File\""),
    ("$form", "group \"Order\""),
    ("$card", "button \"Card\""),
    ("$zone", "button \"Zone\""),
];

#[tokio::test]
async fn each_tool_of_the_peers_has_its_line() {
    check_document();
    if !has_program("chromium") {
        return;
    }
    if let Some(peer) =
        installed_tool("chrome-devtools-mcp/node_modules/chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js")
    {
        let listed = peer_tools(&peer).await;
        let ours: Vec<&str> = CHROME_DEVTOOLS_MCP.iter().map(|(tool, _)| *tool).collect();
        assert_eq!(ours, listed);
    }
    let page = PageFixture::open(SITE).await;
    page.sandbox.write("a.txt", "a");
    page.sandbox.write("state.json", r#"{"cookies": [], "origins": []}"#);
    // The files are tracked: this is the page of the window that was launched for them.
    let tabs = page.call(PAGE_TOOL, json!({})).await;
    let first = tabs["tabs"][0]["id"].as_str().unwrap().to_owned();
    for (peer, tool, arguments, expect) in
        CHROME_DEVTOOLS_MCP.iter().chain(PLAYWRIGHT_MCP).filter_map(|(peer, here)| match here {
            Call(tool, arguments, expect) => Some((*peer, *tool, *arguments, *expect)),
            Theirs(_) => None,
        })
    {
        run_line(&page, &first, peer, [tool, arguments, expect]).await;
    }
    page.end().await;
}

/// Runs a line on the page as it is at first, beside a second one.
async fn run_line(page: &PageFixture, first: &str, peer: &str, [tool, arguments, expect]: [&str; 3]) {
    page.call("window_emulate", json!({"reset": true})).await;
    page.call("window_route", json!({"remove": "all"})).await;
    let tabs = page.call(PAGE_TOOL, json!({})).await;
    for tab in tabs["tabs"].as_array().unwrap().iter().filter(|tab| tab["id"] != first) {
        page.call(PAGE_TOOL, json!({"do": "close", "page": tab["id"]})).await;
    }
    page.call(PAGE_TOOL, json!({"do": "new", "url": page.site.url("/second")})).await;
    page.call(PAGE_TOOL, json!({"do": "switch", "page": first})).await;
    page.call(STORAGE, json!({"do": "clear"})).await;
    page.call(PAGE_TOOL, json!({"do": "goto", "url": page.site.url("/")})).await;
    page.value("new Promise(done => { const look = () => performance.getEntriesByName(location.origin + '/data.json').length ? done(1) : setTimeout(look); look() })").await;
    let snapshot = text(&page.agent.ask("window_snapshot", json!({})).await);
    let mut filled = arguments.replace("$site", page.site.url("").as_str());
    for (name, words) in ELEMENTS.iter().filter(|(name, _)| arguments.contains(name)) {
        filled = filled.replace(name, &super::find(&snapshot, words));
    }
    if filled.contains("$soon") {
        let soon = snapshot
            .lines()
            .find(|line| line.contains("status \"Soon\""))
            .map(|line| line.trim().split(' ').next().unwrap());
        filled = filled.replace("$soon", soon.unwrap_or(&super::find(&snapshot, "button \"Buy\"")));
        page.value("soon.hidden = true; buy.hidden = true").await;
    }
    if filled.contains("$request") {
        filled = filled.replace("$request", &page.request_id("/data.json").await.to_string());
    }
    let arguments: Value = serde_json::from_str(&filled).unwrap_or_else(|error| panic!("{peer}: {error}: {filled}"));
    let result = page.agent.ask(tool, arguments.clone()).await;
    let said = text(&result);
    assert!(result.is_error != Some(true) && said.contains(expect), "{peer}: {tool} {arguments}: {said}");
}

/// The names of the tools of an installed peer, sorted.
async fn peer_tools(peer: &Path) -> Vec<String> {
    let mut command = Command::new("node");
    command.arg(peer).arg("--no-usage-statistics");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    let stdio = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let client = timeout(TEST_TIMEOUT, ().serve(stdio)).await.expect("no handshake").unwrap();
    let tools = timeout(TEST_TIMEOUT, client.list_all_tools()).await.expect("no answer").unwrap();
    let mut names: Vec<String> = tools.iter().map(|tool| tool.name.to_string()).collect();
    names.sort();
    client.cancel().await.unwrap();
    let _ = timeout(TEST_TIMEOUT, child.wait()).await;
    names
}

/// The table as the documentation has it.
fn check_document() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/page-tools.md");
    let mut document = String::from(
        "# Page tools beside others\n\nWhat the tools of chrome-devtools-mcp 1.11.0 and of @playwright/mcp 0.0.83 (with all its capabilities) do, \
         and the call that does it here. A test runs each of these calls on a real page; `$buy` is the ref of an element.\n",
    );
    for (title, table) in [("chrome-devtools-mcp", CHROME_DEVTOOLS_MCP), ("@playwright/mcp", PLAYWRIGHT_MCP)] {
        document += &format!("\n## {title}\n\n| their tool | here |\n|---|---|\n");
        for (tool, here) in table {
            let cell = match here {
                Call(ours, "{}", _) => format!("`{ours}`"),
                Call(ours, arguments, _) => format!("`{ours} {arguments}`"),
                Theirs(why) => format!("theirs: {why}"),
            };
            document += &format!("| `{tool}` | {cell} |\n");
        }
    }
    if std::env::var_os("UPDATE_PEER_TABLE").is_some() {
        return std::fs::write(&file, document).unwrap();
    }
    assert!(
        std::fs::read_to_string(&file).unwrap_or_default() == document,
        "`UPDATE_PEER_TABLE=1` writes {} again",
        file.display()
    );
}
