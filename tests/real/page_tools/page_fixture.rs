//! A browser of a workspace on a page of a test's site, as an agent has it over MCP.

use serde_json::{Value, json};

use super::test_site::TestSite;
use crate::support::Sandbox;
use crate::support::mcp_client::{McpClient, text};

pub struct PageFixture {
    pub site: TestSite,
    pub agent: McpClient,
    // Dropped last: it proves that nothing is left.
    pub sandbox: Sandbox,
}

impl PageFixture {
    /// Opens `/`.
    pub async fn open(pages: &[(&str, &str)]) -> PageFixture {
        let site = TestSite::serve(pages).await;
        let toml = format!("[window]\nkind = 'browser'\nurl = '{}'\n", site.url("/"));
        let sandbox = tokio::task::spawn_blocking(move || Sandbox::with(&[("devtools.toml", &toml)])).await.unwrap();
        let agent = McpClient::start(&sandbox).await;
        agent.call("window_start", json!({})).await;
        let fixture = PageFixture { site, agent, sandbox };
        fixture.arrive().await;
        fixture
    }

    /// Waits until the page is there: a Chromium that starts from a cold disk may stay on `about:blank` for a while.
    pub async fn arrive(&self) {
        let there = "document.readyState === 'complete' && location.protocol !== 'about:'";
        for attempt in 0.. {
            let result = self.agent.ask("window_evaluate", json!({"expression": there})).await;
            if result.structured_content.as_ref().is_some_and(|it| it["value"] == true) {
                return;
            }
            assert!(attempt < 3000, "the page never came: {}", text(&result));
        }
    }

    /// Calls a tool; panics when it fails.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.agent.call(tool, arguments).await
    }

    /// The error of a tool's call.
    pub async fn refused(&self, tool: &str, arguments: Value) -> String {
        let result = self.agent.ask(tool, arguments).await;
        assert_eq!(result.is_error, Some(true), "{}", text(&result));
        text(&result)
    }

    /// Evaluates until it has no exception: the value.
    pub async fn value(&self, expression: &str) -> Value {
        let result = self.call("window_evaluate", json!({"expression": expression})).await;
        assert_eq!(result.get("exception"), None, "{expression}");
        result["value"].clone()
    }

    /// The ref of the one line of a snapshot with these words.
    pub async fn find(&self, words: &str) -> String {
        super::find(&text(&self.agent.ask("window_snapshot", json!({})).await), words)
    }

    /// Does the actions; the text of what was done.
    pub async fn act(&self, actions: Value) -> String {
        let result = self.agent.ask("window_input", json!({"actions": actions})).await;
        assert_ne!(result.is_error, Some(true), "{}", text(&result));
        text(&result)
    }

    /// The id of the newest request that matches; waits until there is one.
    pub async fn request_id(&self, filter: &str) -> u64 {
        for attempt in 0.. {
            let listed = self.call("window_network", json!({"filter": filter, "limit": 1})).await;
            let newest =
                listed["entries"].as_array().into_iter().chain(listed["pending"].as_array()).flatten().next_back();
            if let Some(id) = newest.and_then(|entry| entry["id"].as_u64()) {
                return id;
            }
            assert!(attempt < 1000, "no request: {filter}");
        }
        unreachable!()
    }

    pub async fn end(self) {
        self.call("window_stop", json!({})).await;
        self.agent.leave().await;
    }
}
