//! An MCP client that is not ours (rmcp's), on the stdio of its own `tether mcp` process.

#![allow(dead_code)] // each test program uses a part

use std::path::Path;
use std::process::Stdio;

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService};
use rmcp::{ServiceExt, model::ContentBlock};
use rustix::process::Signal;
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::support::{Sandbox, TEST_TIMEOUT, kill};

pub struct McpClient {
    pub child: Child,
    client: RunningService<RoleClient, ()>,
}

impl McpClient {
    pub async fn start(sandbox: &Sandbox) -> McpClient {
        McpClient::start_in(sandbox, &sandbox.workspace).await
    }

    /// As [`McpClient::start`], for another workspace folder than the sandbox's own.
    pub async fn start_in(sandbox: &Sandbox, folder: &Path) -> McpClient {
        let mut command = sandbox.command(["mcp"]);
        command.current_dir(folder);
        let mut command = Command::from(command);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdio = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let client = timeout(TEST_TIMEOUT, ().serve(stdio)).await.expect("no handshake").unwrap();
        McpClient { child, client }
    }

    pub async fn ask(&self, tool: &str, arguments: Value) -> CallToolResult {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.as_object().unwrap().clone());
        timeout(TEST_TIMEOUT, self.client.call_tool(params)).await.expect("no answer").unwrap()
    }

    /// Calls a tool and returns its structured result. Panics when the tool fails.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        let result = self.ask(tool, arguments).await;
        assert_ne!(result.is_error, Some(true), "{}", text(&result));
        result.structured_content.expect("a structured result")
    }

    /// The connection, for requests other than tool calls.
    pub fn service(&self) -> &RunningService<RoleClient, ()> {
        &self.client
    }

    /// Closes the server's stdin and returns its exit status.
    pub async fn leave(mut self) -> std::process::ExitStatus {
        self.client.cancel().await.unwrap();
        timeout(TEST_TIMEOUT, self.child.wait()).await.expect("it does not end").unwrap()
    }

    /// Sends the server a signal and waits for its exit.
    pub async fn end_by(mut self, signal: Signal) {
        kill(self.child.id().unwrap(), signal);
        timeout(TEST_TIMEOUT, self.child.wait()).await.expect("it does not end").unwrap();
    }
}

pub fn text(result: &CallToolResult) -> String {
    result.content.iter().filter_map(ContentBlock::as_text).map(|it| it.text.clone()).collect()
}
