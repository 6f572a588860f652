//! A page that its user has closed, in a browser that runs on.

use serde_json::json;
use tether_cdp::{discover_endpoint, open_connection};

use crate::listed_page::listed_page;
use crate::support::{TEST_TIMEOUT, browser};

#[tokio::test]
async fn start_opens_a_page_again_that_was_closed_by_hand() {
    let sandbox = browser("<title>here</title>");
    let started = sandbox.json(&["start"]);
    sandbox.arrived();
    let port = started["cdpPort"].as_u64().unwrap() as u16;
    let page = listed_page(port, |page| page.url.contains("page.html")).await;
    let endpoint = discover_endpoint(port).await.unwrap();
    let (client, connection) = open_connection(port, &endpoint.path, TEST_TIMEOUT).await.unwrap();
    tokio::spawn(connection);
    let close = json!({"targetId": page.id});
    client.call_raw(None, "Target.closeTarget", &close, TEST_TIMEOUT).await.unwrap();
    let again = sandbox.json(&["start"]);
    assert_eq!(again["state"], "ready", "{again:#}");
    sandbox.arrived();
    assert_eq!(sandbox.json(&["evaluate", "document.title"])["value"], "here");
}
