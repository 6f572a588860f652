//! An MCP client with `tether mcp` as its child process.
//!
//! Does not depend on the demo's story.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::Command;

/// Longer than any call takes on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(180);

/// How to start `tether` for one workspace.
pub struct TetherCommand {
    pub program: PathBuf,
    pub workspace: PathBuf,
    pub variables: Vec<(&'static str, PathBuf)>,
}

impl TetherCommand {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--workspace").arg(&self.workspace).args(arguments);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the command to its end. Errors: its stderr, when it fails.
    pub async fn run(&self, arguments: &[&str]) -> Result<()> {
        let output = self.command(arguments).output().await?;
        if output.status.success() {
            return Ok(());
        }
        bail!("`tether {}` failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr))
    }

    /// The program and the workspace, as a process that serves this workspace has them on its command line.
    pub fn serves(&self, command_line: &[String]) -> bool {
        let workspace = self.workspace.to_string_lossy();
        command_line.iter().any(|argument| *argument == workspace)
    }
}

/// A running `tether mcp`, and the connection to it.
pub struct McpAgent {
    pid: Pid,
    service: RunningService<RoleClient, ()>,
}

/// The result of a tool call, and how long the call took.
pub struct ToolAnswer {
    pub result: CallToolResult,
    pub took: Duration,
}

impl McpAgent {
    pub async fn start(tether: &TetherCommand) -> Result<McpAgent> {
        let transport = TokioChildProcess::new(tether.command(&["mcp"]))?;
        let pid = transport.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).context("the server has no PID")?;
        Ok(McpAgent { pid, service: ().serve(transport).await? })
    }

    /// Calls a tool. Errors: also when the tool's result is one.
    pub async fn call(&self, tool: &'static str, arguments: Value) -> Result<ToolAnswer> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let started = Instant::now();
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = tokio::time::timeout(TIMEOUT, self.service.call_tool(request))
            .await
            .with_context(|| format!("{tool}: no response in {} s", TIMEOUT.as_secs()))??;
        if result.is_error == Some(true) {
            bail!("{tool}: {}", result_text(&result));
        }
        Ok(ToolAnswer { result, took: started.elapsed() })
    }

    /// Kills the server with SIGKILL: it cannot disconnect first. Returns its PID.
    pub async fn kill(self) -> Result<i32> {
        // Our own child, not yet waited for: the PID cannot have been given to another.
        kill_process(self.pid, Signal::KILL)?;
        self.service.waiting().await?;
        Ok(self.pid.as_raw_pid())
    }

    /// Closes the connection; the server then exits.
    pub async fn close(self) -> Result<()> {
        self.service.cancel().await?;
        Ok(())
    }
}

impl ToolAnswer {
    /// A field of the structured result, such as `refreshed/buildMs`.
    pub fn field(&self, path: &str) -> Result<&Value> {
        let value = self.result.structured_content.as_ref().and_then(|content| content.pointer(&format!("/{path}")));
        value.with_context(|| format!("the result has no `{path}`: {}", result_text(&self.result)))
    }

    pub fn number(&self, path: &str) -> Result<u64> {
        self.field(path)?.as_u64().with_context(|| format!("`{path}` is not a number"))
    }

    pub fn text(&self, path: &str) -> Result<&str> {
        self.field(path)?.as_str().with_context(|| format!("`{path}` is not a string"))
    }

    /// Writes the first image of the result to `file`.
    pub fn save_image(&self, file: &Path) -> Result<()> {
        use base64::Engine;
        let image = self.result.content.iter().find_map(ContentBlock::as_image).context("the result has no image")?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(&image.data)?;
        std::fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display()))
    }
}

fn result_text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(ContentBlock::as_text);
    texts.map(|content| content.text.as_str()).collect::<Vec<_>>().join("\n")
}
