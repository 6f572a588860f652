//! Readies a program for the end of its connection, where its adapter would end it at a breakpoint after that (rdbg 1.4).
//!
//! ```text
//! each stop until it is ready ─▶ stackTrace ─▶ evaluate in the first frame that can ─▶ ready
//! ```
//! Frames of native code cannot evaluate. Does not depend on how stops are classified.

use std::time::Duration;

use tether_dap::types::{EvaluateArguments, StackTraceArguments};
use tether_dap::{DapClient, DapError};
use tokio::time::timeout;
use tracing::warn;

use super::target_handle::TargetHandle;
use crate::adapters::DetachHook;

/// How long a stop may be held back: the adapter may report it before the program has stopped.
const HOOK_TIMEOUT: Duration = Duration::from_secs(3);
/// The frames that are tried.
const MAX_FRAMES: i64 = 50;

/// Evaluates the hook in a thread that has stopped, unless that has been done; within [`HOOK_TIMEOUT`].
pub async fn install_detach_hook(client: &DapClient, target: &TargetHandle, hook: DetachHook, thread: i64) {
    let turn = target.with_channel(|channel| channel.detach_hook_requests.clone()).unwrap_or_default();
    let installed = async {
        let _turn = turn.lock().await;
        if target.is_detach_ready() {
            return Ok(true);
        }
        evaluate_in_a_frame(client, hook, thread).await
    };
    match timeout(HOOK_TIMEOUT, installed).await {
        Ok(Ok(true)) => drop(target.with_channel(|channel| channel.is_detach_ready.send_replace(true))),
        Ok(Ok(false)) => warn!("no frame of thread {thread} could evaluate the hook of a detach"),
        Ok(Err(error)) => warn!("{error}"),
        Err(_) => warn!("the hook of a detach was not evaluated within {HOOK_TIMEOUT:?}"),
    }
}

async fn evaluate_in_a_frame(client: &DapClient, hook: DetachHook, thread: i64) -> Result<bool, DapError> {
    let stack = StackTraceArguments { thread_id: thread, levels: Some(MAX_FRAMES), ..StackTraceArguments::default() };
    let frames = client.request(&stack, HOOK_TIMEOUT).await?.stack_frames;
    for frame in frames.iter().take(MAX_FRAMES as usize) {
        let request = EvaluateArguments {
            expression: hook.expression.to_owned(),
            frame_id: Some(frame.id),
            context: Some("repl".to_owned()),
        };
        if client.request(&request, HOOK_TIMEOUT).await?.result == hook.value {
            return Ok(true);
        }
    }
    Ok(false)
}
