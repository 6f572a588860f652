//! A server with rmcp alone: the bench itself, called again.

use std::process::Command;
use std::time::{Duration, Instant};

use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, Tool};
use rmcp::model::{PaginatedRequestParams, ServerCapabilities, ServerConfig};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::json;

use super::Client;

const BARE: &str = "--bare-rmcp-server";

/// Whether this process is to be the server.
pub fn is_called() -> bool {
    std::env::args().any(|argument| argument == BARE)
}

/// Starts the server.
pub fn command() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(BARE);
    command
}

/// exec → initialize → tools/list → window_status.
pub fn time_to_status(mut command: Command) -> Duration {
    let begun = Instant::now();
    let mut client = Client::start(&mut command);
    client.ask("tools/list", json!({}));
    client.ask("tools/call", json!({"name": "window_status", "arguments": {}}));
    begun.elapsed()
}

/// A server that only answers: what rmcp itself costs.
struct Bare;

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = Tool::new("window_status", "answers", rmcp::model::JsonObject::new());
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text("ready")]).into())
    }
}

/// Serves, instead of what the bench is.
pub fn serve() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let service = Bare.serve(rmcp::transport::stdio_pipes()).await.unwrap();
        let _ = service.waiting().await;
    });
    runtime.shutdown_background();
}
