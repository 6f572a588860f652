//! MCP on stdio: each operation of the API is a tool. Must not know what an operation does.
//!
//! `initialize` never waits for the supervisor: it is reached at the first call. When it has died, the next call
//! reaches, or starts, the next one.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use serde_json::Value;
use tokio::sync::{Mutex, mpsc};

use super::render;
use super::stdio::{Ends, Stdio};
use crate::api::editor::{Initialize, Progress, Role};
use crate::api::{Effect, Group, OPERATIONS, Operation};
use crate::error::{Error, Result};
use crate::supervisor::connect::{Connection, Missing, Place, connect};

/// How long calls in flight may still be answered once stdin has ended.
const LAST_WORDS: Duration = Duration::from_millis(700);

const INSTRUCTIONS: &str = "\
tether keeps one development window (a VS Code Extension Development Host, a browser, a Node service) alive while \
everything around it restarts. The window belongs to the workspace, not to this server: it survives when this server \
ends, and is found again. `window_start` starts it or finds it; calling it twice does no harm. Edit source files \
freely: the next operation on the page notices, builds, relaunches, and says in `relaunched` which file it was; a \
failed build is an error with the compiler's last lines, and the old window stays. `window_status` and \
`window_changes` only look. When a call says that commands are not trusted, ask the user to run `tether trust`.";

/// Serves MCP on stdin and stdout until the client goes.
pub async fn serve(workspace: PathBuf, group: Option<Group>) -> Result<()> {
    let ends = Arc::new(Ends::default());
    let (read, write) = rmcp::transport::stdio_pipes();
    let transport = Stdio::new(read, write, Arc::clone(&ends));
    let door = Arc::new(Door { workspace, group, connection: Mutex::new(None) });
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
        let client =
            Initialize { name: "tether mcp".into(), version: env!("CARGO_PKG_VERSION").into(), role: Role::Client };
        let connection = connect(&place, &client, missing).await?;
        let connection = connection.ok_or_else(|| Error::other("there is no supervisor"))?;
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
}

impl ServerHandler for Door {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("tether", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.into());
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.operations().map(tool).collect()))
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
            () = context.ct.cancelled() => Err(Error::new(crate::error::Kind::Cancelled, "the call was cancelled")),
        };
        Ok(result(operation, outcome).into())
    }
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

fn result(operation: &Operation, outcome: Result<Value>) -> CallToolResult {
    match outcome {
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
        Ok(answer) => match render::picture(operation.method, &answer) {
            Some(picture) => {
                let text = ContentBlock::text(render::text(operation.method, &answer));
                CallToolResult::success(vec![ContentBlock::image(picture.data, picture.mime_type), text])
            }
            None => {
                let mut result =
                    CallToolResult::success(vec![ContentBlock::text(render::text(operation.method, &answer))]);
                result.structured_content = Some(answer);
                result
            }
        },
    }
}

fn tool(operation: &'static Operation) -> Tool {
    let mut tool = Tool::new(operation.tool(), operation.summary(), Arc::new(input_schema(operation)));
    tool.annotations = Some(
        ToolAnnotations::new()
            .read_only(operation.effect == Effect::Reads)
            .destructive(operation.effect == Effect::Destroys)
            .idempotent(matches!(operation.effect, Effect::Reads | Effect::Settles))
            .open_world(false),
    );
    tool
}

/// The parameters as a JSON schema, without what a reader does not need: an agent pays for every byte.
fn input_schema(operation: &Operation) -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = (operation.params_schema)(&mut settings.into_generator());
    schema.remove("title");
    // The tool's description says it already.
    schema.remove("description");
    leave_null_out(&mut schema);
    match schema.to_value() {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    }
}

/// An optional parameter may be left out; that it may be `null` as well is of no use to anybody.
fn leave_null_out(schema: &mut Schema) {
    let null = |it: &Value| it.is_null() || it == "null" || it.get("type").is_some_and(|of| of == "null");
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|it| !null(it));
    }
    for key in ["type", "anyOf"] {
        let Some(Value::Array(choices)) = schema.get_mut(key) else { continue };
        choices.retain(|it| !null(it));
        if choices.len() != 1 {
            continue;
        }
        match choices.swap_remove(0) {
            Value::Object(only) => {
                schema.remove(key);
                for (name, value) in only {
                    schema.ensure_object().entry(name).or_insert(value);
                }
            }
            only => drop(schema.insert(key.into(), only)),
        }
    }
    transform_subschemas(&mut leave_null_out, schema);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_short_and_say_what_is_optional_by_leaving_it_out() {
        let of = |verb: &str| {
            let operation = OPERATIONS.iter().find(|operation| operation.verb == verb).unwrap();
            serde_json::to_value(input_schema(operation)).unwrap()
        };
        let evaluate = of("evaluate");
        assert_eq!(evaluate["required"], serde_json::json!(["expression"]));
        assert_eq!(evaluate["properties"]["timeoutMs"]["type"], "integer");
        let rebuild = &of("start")["properties"]["rebuild"];
        assert_eq!(rebuild["enum"], serde_json::json!(["auto", "always", "never"]));
        assert!(rebuild.get("anyOf").is_none(), "{rebuild}");
    }
}
