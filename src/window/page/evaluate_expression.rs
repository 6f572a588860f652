//! One expression, from its text to a JSON value or an exception, within a deadline.
//!
//! ```text
//! evaluate ──► a primitive ──────────────────────────────► value
//!          ──► a promise ──► await it ───────────────────► value
//!          ──► an object ──► by value; a node, an error, a function: its description
//! ```
//! Each step holds the object by a handle. V8 could await by itself (`awaitPromise`), but holds what it awaits
//! weakly, and then answers "Promise was collected" from a busy Node. Only a text with `await`, or with declarations
//! that are to be repeatable, is evaluated as a console does (`replMode`), which cannot do without.

use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::page_client::{PageClient, PageError};
use crate::cdp::CdpError;
use crate::cdp::types::{self, AwaitPromise, CallFunctionOn, CdpCommand, Evaluate, EvaluateResult, RemoteObject};

/// What V8 gets beyond the deadline to say that it has stopped.
const EXTRA: Duration = Duration::from_millis(250);
/// How long a page may take to show that it is idle, when nobody waits for it any more.
const IDLE: Duration = Duration::from_secs(1);
const TERMINATION: Duration = Duration::from_secs(2);
/// The page keeps what we have looked at until this group is released.
const GROUP: &str = "devtether";

/// What an expression came to.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionResult {
    /// What JSON cannot say is text: `NaN`, `10n`, a node, a function; `undefined` is null.
    Value(Value),
    /// Message and stack.
    Exception(String),
}

/// Where and how long to evaluate.
pub struct ScriptRun<'a> {
    pub core: &'a PageClient,
    pub session: Option<&'a str>,
    pub timeout: Duration,
}

impl ScriptRun<'_> {
    /// Errors: the deadline has passed (the script has then been stopped), or the connection ended. A script whose
    /// caller gives up is stopped, too.
    pub async fn run(&self, expression: &str) -> Result<ExpressionResult, PageError> {
        let mut attended = TerminateOnDrop { script: self, over: false };
        let result = self.run_until_timeout(expression).await;
        attended.over = true;
        result
    }

    async fn run_until_timeout(&self, expression: &str) -> Result<ExpressionResult, PageError> {
        let started = Instant::now();
        let result = self.evaluate_and_resolve(expression, started + self.timeout + EXTRA).await;
        match result {
            Err(PageError::Cdp(CdpError::TimedOut { .. })) => {
                self.core.terminate_busy_script(self.session, EXTRA).await
            }
            // V8 has ended the script; Chromium says "Execution was terminated", Node 20 "Internal error".
            Err(PageError::Cdp(CdpError::ErrorResponse { .. })) if started.elapsed() >= self.timeout => {}
            Err(PageError::Cdp(CdpError::ErrorResponse { message, .. })) => {
                return Ok(ExpressionResult::Exception(explain_rejection(message)));
            }
            other => return other,
        }
        Err(CdpError::TimedOut { what: "the expression".into(), after: self.timeout }.into())
    }

    async fn evaluate_and_resolve(&self, expression: &str, until: Instant) -> Result<ExpressionResult, PageError> {
        let milliseconds = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        let answer = self.call(&evaluate_command(expression, Some(milliseconds)), until).await?;
        let Some(object_id) = answer.result.object_id.clone().filter(|_| answer.exception_details.is_none()) else {
            return Ok(expression_result(answer));
        };
        let evaluated = match object_kind(&answer.result) {
            ObjectKind::Promise => {
                let promise = AwaitPromise { promise_object_id: object_id, return_by_value: true };
                self.call(&promise, until).await.map(expression_result)
            }
            ObjectKind::Data => {
                let function_declaration = "function() { return this }";
                let by_value = CallFunctionOn { object_id, function_declaration, return_by_value: true };
                self.call(&by_value, until).await.map(expression_result)
            }
            ObjectKind::Described => Ok(ExpressionResult::Value(Value::String(answer.result.text()))),
        };
        self.core.client.send(self.session, &types::ReleaseObjectGroup { object_group: GROUP }).await?;
        evaluated
    }

    async fn call<C: CdpCommand>(&self, command: &C, until: Instant) -> Result<C::Response, PageError> {
        self.core.call(self.session, command, until.saturating_duration_since(Instant::now())).await
    }
}

impl PageClient {
    /// Stops a script that runs and runs. An idle page (one that awaits) is left alone: V8 would end the *next*
    /// script instead. It shows that it is idle by answering within `patience`.
    async fn terminate_busy_script(&self, session: Option<&str>, patience: Duration) {
        if self.call(session, &noop_evaluation(), patience).await.is_err_and(|trouble| trouble.is_timeout()) {
            let _ = self.call(session, &types::TerminateExecution {}, TERMINATION).await;
        }
    }
}

/// Stops a script whose caller has gone before its end, so that the page is not frozen until its time is over.
struct TerminateOnDrop<'a> {
    script: &'a ScriptRun<'a>,
    over: bool,
}

impl Drop for TerminateOnDrop<'_> {
    fn drop(&mut self) {
        // Without a runtime, there is no connection either.
        if let (false, Ok(runtime)) = (self.over, Handle::try_current()) {
            let (core, session) = (self.script.core.clone(), self.script.session.map(str::to_owned));
            runtime.spawn(async move { core.terminate_busy_script(session.as_deref(), IDLE).await });
        }
    }
}

/// V8's words for a page that was left while a script of it ran are about contexts and targets.
fn explain_rejection(refusal: String) -> String {
    let left = ["Cannot find context", "context was destroyed", "navigated or closed", "Promise was collected"];
    if left.iter().any(|words| refusal.contains(words)) {
        return format!("the page was left or reloaded before the expression ended ({refusal})");
    }
    refusal
}

/// The smallest question that only a page that is not busy answers.
pub fn noop_evaluation() -> Evaluate {
    evaluate_command("0", None)
}

fn evaluate_command(expression: &str, timeout: Option<u64>) -> Evaluate {
    let repl_mode = needs_repl(expression);
    let expression = expression.to_owned();
    let await_promise = repl_mode;
    Evaluate {
        expression,
        object_group: GROUP,
        await_promise,
        user_gesture: true,
        repl_mode,
        timeout,
        ..Evaluate::default()
    }
}

/// Whether the text has one of the words that only a console takes (again) at the top level; a word in a string or
/// a function is taken for one too, which does no harm.
fn needs_repl(expression: &str) -> bool {
    let words = expression.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
    words.into_iter().any(|word| matches!(word, "await" | "let" | "const" | "class"))
}

enum ObjectKind {
    Promise,
    Data,
    /// By value it would be `{}`, or the whole document.
    Described,
}

fn object_kind(object: &RemoteObject) -> ObjectKind {
    match object.subtype.as_deref() {
        Some("promise") => ObjectKind::Promise,
        Some("node" | "error" | "regexp" | "date" | "proxy") => ObjectKind::Described,
        _ if object.kind == "object" => ObjectKind::Data,
        _ => ObjectKind::Described, // functions and symbols
    }
}

fn expression_result(answer: EvaluateResult) -> ExpressionResult {
    if let Some(details) = answer.exception_details {
        return ExpressionResult::Exception(details.text());
    }
    let text = match answer.result.kind.as_str() {
        "symbol" | "function" => answer.result.description,
        _ => answer.result.unserializable_value,
    };
    ExpressionResult::Value(answer.result.value.or(text.map(Value::String)).unwrap_or(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_is_needed_where_awaits_or_declarations_are() {
        let check = |text: &str, expect: bool| assert_eq!(needs_repl(text), expect, "{text}");
        check("await x", true);
        check("let a = 1; a", true);
        check("for(const x of y){}", true);
        check("class A {}", true);
        check("document.title", false);
        check("awaited + $let + const_ + _class", false);
        check("", false);
    }
}
