//! MCP on stdio: each operation of the API is a tool; what can be watched is a resource. Must not know what an operation
//! does.
//!
//! `initialize` never waits for the supervisor: it is reached at the first call. When it has died, the next call
//! reaches, or starts, the next one.

mod resources;
mod tools;

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
use tokio::sync::{Mutex, mpsc};

use self::resources::{Resources, Topic};
use super::stdio::{Ends, Stdio};
use crate::api::editor::{Capabilities, Initialize, Progress};
use crate::api::{Effect, Group, OPERATIONS, Operation};
use crate::error::{Error, Result};
use crate::supervisor::connect::{Connection, Missing, Place, connect};

/// How long calls in flight may still be answered once stdin has ended.
const LAST_WORDS: Duration = Duration::from_millis(700);

const ON_WINDOW: &str = "\
tether keeps one development window (a VS Code Extension Development Host, a browser, a Node service) alive while \
everything around it restarts. The window belongs to the workspace, not to this server: it survives when this server \
ends, and is found again. `window_start` starts it or finds it; calling it twice does no harm. Edit source files \
freely: the next operation on the page notices, builds, relaunches, and says in `relaunched` which file it was; a \
failed build is an error with the compiler's last lines, and the old window stays. `window_status` and \
`window_changes` only look. `window_snapshot` shows the page as text with refs like e12; `window_input` acts on them, as \
many actions in one call as you like, and answers with a new snapshot when asked; a ref of an earlier document is \
refused. `window_console` also has what the extension host, or Node, has logged. When a call says that commands are not \
trusted, ask the user to run `tether trust`.";

const ON_DEBUGGING: &str = "\
Debugging: `debug_probe` looks once; `debug_launch` with `breakpoints` \
and `wait` answers with the stop and its snapshot (frames, locals, source, output; `budget`: most tokens, default \
1500); so do step and continue. Sessions and breakpoints survive this server.";

/// What an agent is told first, of the part of the API that it is offered.
fn instructions(group: Option<Group>) -> String {
    match group {
        Some(Group::Window) => ON_WINDOW.to_owned(),
        Some(Group::Debug) => ON_DEBUGGING.to_owned(),
        None => format!("{ON_WINDOW} {ON_DEBUGGING}"),
    }
}

/// Serves MCP on stdin and stdout until the client goes.
pub async fn serve(workspace: PathBuf, group: Option<Group>) -> Result<()> {
    let ends = Arc::new(Ends::default());
    let (read, write) = rmcp::transport::stdio_pipes();
    let transport = Stdio::new(read, write, Arc::clone(&ends));
    let door = Arc::new(Door { workspace, group, connection: Mutex::new(None), resources: Arc::default() });
    // A supervisor that runs is reached while the client still introduces itself; what fails here is told by the first
    // call, which tries again.
    let early = Arc::clone(&door);
    let reaching = tokio::spawn(async move { drop(early.connected(Missing::Leave).await) });
    let conversation = async {
        // An end before or in the middle of the handshake is an end, too.
        if let Ok(service) = door.serve(transport).await {
            let _ = service.waiting().await;
        }
    };
    tokio::select! {
        () = conversation => {}
        () = ends.output.notified() => {}
        () = async { ends.input.notified().await; tokio::time::sleep(LAST_WORDS).await } => {}
    }
    reaching.abort();
    Ok(())
}

struct Door {
    workspace: PathBuf,
    /// Which part of the API is offered; `None`: all.
    group: Option<Group>,
    connection: Mutex<Option<Arc<Connection>>>,
    resources: Arc<Resources>,
}

impl Door {
    fn operations(&self) -> impl Iterator<Item = &'static Operation> {
        OPERATIONS.iter().filter(|operation| self.group.is_none_or(|group| group == operation.group))
    }

    /// The connection to the supervisor, made anew when the last one has ended.
    async fn connected(&self, missing: Missing) -> Result<Arc<Connection>> {
        let mut slot = self.connection.lock().await;
        if let Some(connection) = slot.as_ref().filter(|connection| !connection.peer.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        let place = Place::of(&self.workspace)?;
        let client = Initialize {
            name: "tether mcp".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            capabilities: Capabilities { did_change_state: true },
            ..Initialize::default()
        };
        let connection = connect(&place, &client, missing).await?;
        let mut connection = connection.ok_or_else(|| Error::other("there is no supervisor"))?;
        let (_, nothing) = mpsc::channel(1);
        let incoming = std::mem::replace(&mut connection.incoming, nothing);
        let resources = Arc::clone(&self.resources);
        // Ends with the connection.
        tokio::spawn(async move { resources.listen(incoming).await });
        Ok(Arc::clone(slot.insert(Arc::new(connection))))
    }

    /// Asks; asks once more when the supervisor has died under a question that can be asked twice.
    async fn ask(
        &self,
        operation: &Operation,
        params: &Value,
        progress: &mpsc::UnboundedSender<Value>,
    ) -> Result<Value> {
        let connection = self.connected(Missing::Start).await?;
        let outcome = connection.call(operation.method, params, progress.clone()).await;
        let again = matches!(operation.effect, Effect::Reads | Effect::Settles) && connection.peer.is_closed();
        match outcome {
            Err(_) if again => {
                self.connected(Missing::Start).await?.call(operation.method, params, progress.clone()).await
            }
            outcome => outcome,
        }
    }

    async fn read(&self, topic: Topic) -> Result<Value> {
        let operation =
            crate::api::operation(topic.method()).ok_or_else(|| Error::usage("there is no such operation"))?;
        let (progress, _) = mpsc::unbounded_channel();
        self.ask(operation, &Value::Null, &progress).await
    }
}

impl ServerHandler for Door {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_resources().enable_resources_subscribe().build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("tether", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(instructions(self.group));
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.operations().map(tools::tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(operation) = self.operations().find(|operation| operation.tool() == request.name) else {
            let known: Vec<_> = self.operations().map(Operation::tool).collect();
            let text = format!("there is no tool {:?}; there are: {}", request.name, known.join(", "));
            return Err(ErrorData::invalid_params(text, None));
        };
        let params = Value::Object(request.arguments.unwrap_or_default());
        let (told, heard) = mpsc::unbounded_channel();
        let answered = self.ask(operation, &params, &told);
        let outcome = tokio::select! {
            outcome = answered => outcome,
            never = pass_progress(heard, &context) => match never {},
            // rmcp lets a cancelled call run on: this ends it, and with it the supervisor's work for it.
            () = context.ct.cancelled() => Err(Error::new(crate::error::ErrorKind::Cancelled, "the call was cancelled")),
        };
        Ok(tools::result(operation, outcome).into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(resources::list(self.group))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let topic = topic(&request.uri)?;
        let answer = tokio::select! {
            answer = self.read(topic) => answer,
            () = context.ct.cancelled() => Err(Error::new(crate::error::ErrorKind::Cancelled, "the read was cancelled")),
        };
        match answer {
            Ok(answer) => Ok(ReadResourceResult::new(vec![topic.contents(&answer)]).into()),
            Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(resources::accepted(requested))
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        // Only a supervisor can tell of changes; when there is none to be had, the next call says why.
        let _ = self.connected(Missing::Start).await;
        let uris = subscription.accepted().resource_subscriptions.iter().flatten();
        let topics = uris.filter_map(|uri| Topic::of(uri)).collect();
        let sink = subscription.sink();
        tokio::select! {
            () = self.resources.follow(topics, |topic| sink.notify_resource_updated(topic.uri())) => {}
            () = subscription.cancelled() => {}
        }
        Ok(())
    }

    // Clients of before 2026-07-28 subscribe like this.
    #[allow(deprecated)]
    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let topic = topic(&request.uri)?;
        let _ = self.connected(Missing::Start).await;
        let peer = context.peer;
        self.resources.follow_single(topic, move |topic| {
            let peer = peer.clone();
            async move { peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(topic.uri())).await }
        });
        Ok(())
    }

    #[allow(deprecated)]
    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.resources.forget(topic(&request.uri)?);
        Ok(())
    }
}

fn topic(uri: &str) -> Result<Topic, ErrorData> {
    Topic::of(uri).ok_or_else(|| {
        let known = Topic::ALL.map(Topic::uri).join(", ");
        ErrorData::resource_not_found(format!("there is no resource {uri:?}; there are: {known}"), None)
    })
}

/// Passes the supervisor's progress on to the client, when it asked for it; the call's answer ends it.
async fn pass_progress(mut heard: mpsc::UnboundedReceiver<Value>, context: &RequestContext<RoleServer>) -> Infallible {
    let token = context.meta.get_progress_token();
    let mut count = 0.0;
    while let Some(value) = heard.recv().await {
        let (Some(token), Ok(progress)) = (&token, serde_json::from_value::<Progress>(value)) else { continue };
        count += 1.0;
        let told = ProgressNotificationParam::new(token.clone(), count).with_message(progress.message);
        let _ = context.peer.notify_progress(told).await;
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instructions_are_short() {
        let words = instructions(None).split_whitespace().count();
        assert!(words < 200, "{words} words");
        assert!(!instructions(Some(Group::Window)).contains("debug_"));
        assert!(!instructions(Some(Group::Debug)).contains("window_"));
    }
}
