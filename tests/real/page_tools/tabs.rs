//! Navigation and tabs over MCP, on real pages.

use serde_json::{Value, json};

use super::page_fixture::PageFixture;
use crate::support::mcp_client::text;
use crate::support::requirements::has_program;

const SITE: &[(&str, &str)] = &[
    ("/", "<!doctype html><link rel=icon href=\"data:,\"><title>One</title><h1>One</h1><a href=/two target=_blank>Open</a>
     <button onclick=\"location.href = '/two'\">Leave</button>"),
    ("/two", "<!doctype html><link rel=icon href=\"data:,\"><title>Two</title><h1>Two</h1>"),
];

fn tab_ids(listed: &Value) -> Vec<String> {
    listed["tabs"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_page_goes_back_and_forth_and_each_load_is_waited_for() {
    if !has_program("chromium") {
        return;
    }
    let page = PageFixture::open(SITE).await;
    let go = async |arguments: Value| page.call("window_page", arguments).await["did"].as_str().unwrap().to_owned();
    let title = async || page.value("[document.title, document.readyState]").await;
    let there = go(json!({"do": "goto", "url": "/two"})).await;
    assert!(there.ends_with("/two (HTTP 200)"), "{there}");
    assert_eq!(title().await, json!(["Two", "complete"]));
    go(json!({"do": "back"})).await;
    assert_eq!(title().await, json!(["One", "complete"]));
    go(json!({"do": "forward"})).await;
    assert_eq!(title().await, json!(["Two", "complete"]));
    page.value("window.mark = 1").await;
    go(json!({"do": "goto", "url": "#part"})).await;
    assert_eq!(page.value("[mark, location.hash]").await, json!([1, "#part"]));
    go(json!({"do": "back"})).await;
    assert_eq!(page.value("[mark, location.hash]").await, json!([1, ""]));
    go(json!({"do": "reload", "ignoreCache": true})).await;
    assert_eq!(page.value("window.mark ?? null").await, Value::Null);
    let missing = go(json!({"do": "goto", "url": page.site.url("/nowhere")})).await;
    assert!(missing.ends_with("(HTTP 404)"), "{missing}");
    for (arguments, expect) in [
        (json!({"do": "goto", "url": "javascript:alert(1)"}), "is not allowed"),
        (json!({"do": "goto", "url": "file:///etc/passwd"}), "is not a file of the workspace"),
        (json!({"do": "goto", "url": "chrome://settings"}), "is not allowed"),
        (json!({"do": "goto", "url": "http://127.0.0.1:1/"}), "ERR_"),
        (json!({"do": "goto"}), "needs `url`"),
        (json!({"do": "forward"}), "the history of the page ends here"),
        (json!({"do": "close"}), "cannot close the only page"),
    ] {
        let refused = page.refused("window_page", arguments.clone()).await;
        assert!(refused.contains(expect), "{arguments}: {refused}");
    }
    page.sandbox.write("local.html", "<title>Local</title>");
    let local = format!("file://{}", page.sandbox.path("local.html").display()).replace(' ', "%20");
    go(json!({"do": "goto", "url": local})).await;
    assert_eq!(page.value("document.title").await, "Local");
    page.end().await;
}

#[tokio::test]
async fn tabs_keep_their_ids_over_connections_and_supervisors() {
    if !has_program("chromium") {
        return;
    }
    let page = PageFixture::open(SITE).await;
    let first = tab_ids(&page.call("window_page", json!({})).await);
    assert_eq!(first.len(), 1);
    // What a page opens by itself is a tab.
    let link = page.find("link \"Open\"").await;
    let opened = page.act(json!([{"do": "click", "ref": link}, {"do": "wait", "timeoutMs": 200}])).await;
    let listed = page.call("window_page", json!({})).await;
    let ids = tab_ids(&listed);
    assert_eq!(ids.len(), 2, "{listed}");
    let new = ids.iter().find(|id| **id != first[0]).unwrap();
    assert!(
        opened.contains(&format!("a new page was opened: {new} ")) || listed["notes"].to_string().contains(new),
        "{opened} {listed}"
    );
    let title =
        async |page: &PageFixture, arguments: Value| page.call("window_evaluate", arguments).await["value"].clone();
    assert_eq!(title(&page, json!({"expression": "document.title", "page": new})).await, "Two");
    let switched = page.call("window_page", json!({"do": "switch", "page": new})).await;
    let current: Vec<&Value> =
        switched["tabs"].as_array().unwrap().iter().filter(|tab| tab["current"] == true).collect();
    assert_eq!((current.len(), current[0]["id"].as_str().unwrap()), (1, new.as_str()), "{switched}");
    assert_eq!(page.value("document.title").await, "Two");
    page.sandbox.kill_supervisor();
    let again = page.call("window_page", json!({})).await;
    let mut sorted = [tab_ids(&again), ids.clone()];
    sorted.iter_mut().for_each(|it| it.sort());
    assert_eq!(sorted[0], sorted[1], "{again}");
    assert_eq!(page.value("document.title").await, "Two");
    let snapshot = text(&page.agent.ask("window_snapshot", json!({})).await);
    assert!(snapshot.contains(&format!(" {} \"One\"", first[0])), "{snapshot}");
    let third = page.call("window_page", json!({"do": "new", "url": page.site.url("/")})).await;
    assert_eq!(tab_ids(&third).len(), 3, "{third}");
    assert!(third.get("notes").is_none(), "{third}");
    assert_eq!(page.value("document.title").await, "One");
    page.call("window_page", json!({"do": "close"})).await;
    let closed = page.call("window_page", json!({"do": "close", "page": new})).await;
    assert_eq!(tab_ids(&closed), first, "{closed}");
    assert_eq!(page.value("document.title").await, "One");
    let unknown = page.refused("window_page", json!({"do": "switch", "page": "tffff9"})).await;
    assert!(unknown.contains("there is no page"), "{unknown}");
    page.end().await;
}

#[tokio::test]
async fn an_operation_that_meets_a_navigation_waits_for_the_new_document_and_says_so() {
    if !has_program("chromium") {
        return;
    }
    let page = PageFixture::open(SITE).await;
    let left = page.call("window_evaluate", json!({"expression": "new Promise(() => location.href = '/two')"})).await;
    assert!(left["exception"].as_str().unwrap().contains("the page was left or reloaded"), "{left}");
    assert!(left["notes"].to_string().contains("the page went to"), "{left}");
    assert_eq!(page.value("[document.title, document.readyState]").await, json!(["Two", "complete"]));
    page.call("window_page", json!({"do": "back"})).await;
    let leave = page.find("button \"Leave\"").await;
    let did = page.act(json!([{"do": "click", "ref": leave}])).await;
    assert!(did.contains("the page went to") && did.contains("/two"), "{did}");
    assert_eq!(page.value("[document.title, document.readyState]").await, json!(["Two", "complete"]));
    page.end().await;
}
