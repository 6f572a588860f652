//! MCP on stdio, or over HTTP: each operation of the API is a tool; state that changes is a resource. Does not depend on what an operation
//! does.
//!
//! `initialize` never waits for the supervisor: the first call connects to it. After its exit the next call
//! connects to, or starts, the next one.

mod http;
#[cfg(test)]
mod reference_page;
mod resources;
mod tool_list;
mod tool_names;
#[cfg(test)]
mod tool_schemas;
mod tool_search;
mod tools;
mod transport;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;
use tether_base::display_text::escape_line;
use tether_base::error::{Error, ErrorKind, Result};
use tokio::sync::{Mutex, mpsc};

pub use self::http::serve_http;
use self::resources::{ResourceKind, ResourceWatcher};
pub use self::tool_list::{ToolChoice, ToolSet};
use self::tool_list::{offered_tools, tools_text};
use self::tool_search::{SearchCall, read_call};
use self::transport::{StdioClosed, StdioTransport};
use super::repeated_call;
use crate::api::debug::DebugLaunchParams;
use crate::api::protocol::{ClientCapabilities, InitializeParams, ProgressParams};
use crate::api::{Operation, OperationEffect, OperationGroup, OperationParams};
use crate::supervisor::connect::{IfNotRunning, SupervisorConnection, SupervisorPaths, connect};

/// How long calls in flight may still complete once stdin is closed.
const CLOSE_GRACE_PERIOD: Duration = Duration::from_millis(700);

const WINDOW_INSTRUCTIONS: &str = "\
tether keeps one development window alive (a VS Code Extension Development Host, a browser or a Node service) while \
everything around it restarts. The window belongs to the workspace, not to this server: it stays open when this server \
ends. `window_start` starts it, or reconnects to it. Then edit source files freely. The next page operation notices the \
change, builds, updates the window, and names the changed file in `refreshed`. If the build fails, the call fails with \
the compiler's last lines, and the old window stays. `window_status` and `window_changes` only look. `window_snapshot` \
shows the page as text with refs such as e12. `window_input` acts on these refs: pass several actions in one call, and \
ask for a new snapshot if you need one. A ref is valid until its document is replaced. `window_console` also shows what \
the extension host or Node logged. If a call says that commands are not trusted, ask the user to run `tether trust`.";

const DEBUG_INSTRUCTIONS: &str = "\
Debugging: `debug_probe` shows the state at one line and ends the program. `debug_launch` with `breakpoints` and `wait` \
returns the stop with a snapshot: frames, locals, source, output. So do step and continue. Sessions and breakpoints \
survive this server.";

const SEARCH_INSTRUCTIONS: &str = "\
tether keeps a development window (a VS Code Extension Development Host, a browser, a Node service) and debug sessions \
alive while everything around them restarts. Few of its tools are listed: `tool_search` finds those for breakpoints, \
stepping, variables, page input, console, network and more, and `tool_call` calls them.";

/// The server instructions for the offered part of the API.
fn server_instructions(set: ToolSet) -> String {
    if set.by_search {
        return SEARCH_INSTRUCTIONS.to_owned();
    }
    match set.group {
        Some(OperationGroup::Window) => WINDOW_INSTRUCTIONS.to_owned(),
        Some(OperationGroup::Debug) => DEBUG_INSTRUCTIONS.to_owned(),
        Some(OperationGroup::Both) | None => format!("{WINDOW_INSTRUCTIONS} {DEBUG_INSTRUCTIONS}"),
    }
}

/// Serves MCP on stdin and stdout until the client closes one of them.
pub async fn serve_mcp(workspace: PathBuf, set: ToolSet) -> Result<()> {
    let ends = Arc::new(StdioClosed::default());
    let (read, write) = rmcp::transport::stdio_pipes();
    let transport = StdioTransport::new(read, write, Arc::clone(&ends), set);
    let door = Arc::new(McpServer::new(workspace, set, false));
    // Connects to a running supervisor during the client's handshake; an error here is ignored: the first
    // call tries again.
    let early = Arc::clone(&door);
    let reaching = tokio::spawn(async move { drop(early.connect(IfNotRunning::Skip).await) });
    let conversation = async {
        // The client may also close before or during the handshake.
        if let Ok(service) = door.serve(transport).await {
            let _ = service.waiting().await;
        }
    };
    tokio::select! {
        () = conversation => {}
        () = ends.output.notified() => {}
        () = async { ends.input.notified().await; tokio::time::sleep(CLOSE_GRACE_PERIOD).await } => {}
    }
    reaching.abort();
    Ok(())
}

type McpContext = RequestContext<RoleServer>;
type McpResult<T> = Result<T, ErrorData>;

struct McpServer {
    workspace: PathBuf,
    set: ToolSet,
    /// Its transport does not insert the tools into their list.
    lists_tools: bool,
    connection: Mutex<Option<Arc<SupervisorConnection>>>,
    resources: Arc<ResourceWatcher>,
}

impl McpServer {
    fn new(workspace: PathBuf, set: ToolSet, lists_tools: bool) -> McpServer {
        McpServer { workspace, set, lists_tools, connection: Mutex::new(None), resources: Arc::default() }
    }

    fn operations(&self) -> impl Iterator<Item = &'static Operation> {
        tool_names::offered_operations().filter(|operation| operation.group.is_offered_with(self.set.group))
    }

    /// The connection to the supervisor; opens a new one when the last one has closed.
    async fn connect(&self, missing: IfNotRunning) -> Result<Arc<SupervisorConnection>> {
        let mut slot = self.connection.lock().await;
        if let Some(connection) = slot.as_ref().filter(|connection| !connection.peer.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        let paths = SupervisorPaths::of_workspace(&self.workspace)?;
        let client = InitializeParams {
            name: "tether mcp".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            capabilities: ClientCapabilities { did_change_state: true, ..ClientCapabilities::default() },
            environment: tether_process::caller_environment(),
            ..InitializeParams::default()
        };
        let connection = connect(&paths, &client, missing).await?;
        let mut connection = connection.ok_or_else(|| Error::other("there is no supervisor"))?;
        let incoming = std::mem::replace(&mut connection.incoming, mpsc::channel(1).1);
        let resources = Arc::clone(&self.resources);
        // Ends with the connection.
        tokio::spawn(async move { resources.watch_notifications(incoming).await });
        Ok(Arc::clone(slot.insert(Arc::new(connection))))
    }

    /// Calls an operation, over the next supervisor too, where it may be repeated.
    async fn call_operation(
        &self,
        operation: &Operation,
        params: &Value,
        progress: &mpsc::UnboundedSender<Value>,
    ) -> Result<Value> {
        let is_repeated = OperationEffect::is_repeatable;
        repeated_call::call_operation(operation, params, progress, is_repeated, || self.connect(IfNotRunning::Start))
            .await
    }

    async fn read_resource_value(&self, topic: ResourceKind) -> Result<Value> {
        let operation =
            crate::api::find_operation(topic.method()).ok_or_else(|| Error::usage("there is no such operation"))?;
        let (progress, _) = mpsc::unbounded_channel();
        self.call_operation(operation, &Value::Null, &progress).await
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_resources().enable_resources_subscribe().build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("tether", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(server_instructions(self.set));
        info
    }

    async fn list_tools(&self, _: Option<PaginatedRequestParams>, _: McpContext) -> McpResult<ListToolsResult> {
        if !self.lists_tools {
            return Ok(ListToolsResult::default());
        }
        let tools = serde_json::from_str(&tools_text(self.set));
        let tools: Vec<_> = tools.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(&self, mut request: CallToolRequestParams, context: McpContext) -> McpResult<CallToolResponse> {
        if self.set.by_search {
            match read_call(request, &offered_tools(self.set.group)) {
                Ok(SearchCall::Tool(called)) => request = called,
                Ok(SearchCall::Found(found)) => return Ok(found.into()),
                Err(error) => return Ok(tools::error_result(&error).into()),
            }
        }
        let Some(operation) = self.operations().find(|operation| operation.tool_name() == request.name) else {
            let known: Vec<_> = self.operations().map(Operation::tool_name).collect();
            let text = format!("there is no tool {:?}; there are: {}", request.name, known.join(", "));
            return Err(ErrorData::invalid_params(escape_line(&text), None));
        };
        let mut arguments = request.arguments.unwrap_or_default();
        // An agent is shown how its program fails. A restart is as the launch was.
        if operation.method == DebugLaunchParams::METHOD && !arguments.contains_key("restart") {
            arguments.entry("stopOnUncaught").or_insert(true.into());
        }
        let params = Value::Object(arguments);
        let (sender, progress) = mpsc::unbounded_channel();
        let outcome = tokio::select! {
            outcome = self.call_operation(operation, &params, &sender) => outcome,
            never = forward_progress(progress, &context) => match never {},
            // rmcp lets a cancelled call run on: this drops it, which cancels it in the supervisor.
            () = context.ct.cancelled() => Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")),
        };
        Ok(tools::call_result(operation, outcome).into())
    }

    async fn list_resources(&self, _: Option<PaginatedRequestParams>, _: McpContext) -> McpResult<ListResourcesResult> {
        Ok(resources::list_resources(self.set.group))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: McpContext,
    ) -> McpResult<ReadResourceResponse> {
        let topic = resource_by_uri(&request.uri)?;
        let answer = tokio::select! {
            answer = self.read_resource_value(topic) => answer,
            () = context.ct.cancelled() => Err(Error::new(ErrorKind::Cancelled, "the read was cancelled")),
        };
        let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(ReadResourceResult::new(vec![topic.contents(&answer)]).into())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(resources::accepted_filter(requested))
    }

    async fn listen(&self, subscription: SubscriptionContext) -> McpResult<()> {
        // Only a supervisor sends changes; when none can be started, the next call returns the reason.
        let _ = self.connect(IfNotRunning::Start).await;
        let uris = subscription.accepted().resource_subscriptions.iter().flatten();
        let topics = uris.filter_map(|uri| ResourceKind::from_uri(uri)).collect();
        let sink = subscription.sink();
        tokio::select! {
            () = self.resources.follow(topics, |topic| sink.notify_resource_updated(topic.uri())) => {}
            () = subscription.cancelled() => {}
        }
        Ok(())
    }

    // Clients of before 2026-07-28 subscribe like this.
    #[allow(deprecated)]
    async fn subscribe(&self, request: SubscribeRequestParams, context: McpContext) -> McpResult<()> {
        let topic = resource_by_uri(&request.uri)?;
        let _ = self.connect(IfNotRunning::Start).await;
        let peer = context.peer;
        self.resources.follow_single(topic, move |topic| {
            let peer = peer.clone();
            async move { peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(topic.uri())).await }
        });
        Ok(())
    }

    #[allow(deprecated)]
    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _: McpContext) -> McpResult<()> {
        self.resources.stop_following(resource_by_uri(&request.uri)?);
        Ok(())
    }
}

fn resource_by_uri(uri: &str) -> McpResult<ResourceKind> {
    ResourceKind::from_uri(uri).ok_or_else(|| {
        let known = ResourceKind::ALL.map(ResourceKind::uri).join(", ");
        let text = format!("there is no resource {uri:?}; there are: {known}");
        ErrorData::resource_not_found(escape_line(&text), None)
    })
}

/// Forwards the supervisor's progress to a client that requested it; never returns.
async fn forward_progress(mut progress: mpsc::UnboundedReceiver<Value>, context: &McpContext) -> Infallible {
    let token = context.meta.get_progress_token();
    let mut count = 0.0;
    while let Some(value) = progress.recv().await {
        let (Some(token), Ok(progress)) = (&token, serde_json::from_value::<ProgressParams>(value)) else { continue };
        count += 1.0;
        let params = ProgressNotificationParam::new(token.clone(), count).with_message(escape_line(&progress.message));
        let _ = context.peer.notify_progress(params).await;
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instructions_are_below_200_words() {
        let of = |group| server_instructions(ToolSet { group, by_search: false });
        let words = of(None).split_whitespace().count();
        assert!(words < 200, "{words} words");
        assert!(!of(Some(OperationGroup::Window)).contains("debug_"));
        assert!(!of(Some(OperationGroup::Debug)).contains("window_"));
    }
}
