//! Evaluates one expression in a page or in Node: to a JSON value or an exception, within a deadline.
//!
//! ```text
//! Runtime.evaluate ──► a primitive ────────────────────────► value
//!                  ──► a promise ──► Runtime.awaitPromise ─► value
//!                  ──► an object ──► by value; a node, an error, a function: its description
//! ```
//! Each step refers to the object by its id. V8's own `awaitPromise` holds the awaited promise weakly, which fails with
//! "Promise was collected" in a busy Node. It is used only for expressions that need `replMode`: `await` and repeatable
//! declarations at the top level.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tether_base::error::{Error, ErrorKind, Result};
use tether_cdp::CdpError;
use tether_cdp::debugger::CallArgument;
use tether_cdp::page_control::CallOnElement;
use tether_cdp::types::{self, AwaitPromise, CallFunctionOn, CdpCommand, Evaluate, EvaluateResult, ReleaseObjectGroup};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::element_refs::ElementHandle;
use super::evaluation_place::{EvaluationPlace, PlaceRequest, element_in_page, find_place};
use super::page_client::{OBJECT_GROUP, PageClient, PageSession, noop_evaluation};
use super::page_error::PageError;
use super::targets::PageNotice;
use super::wait_condition::wait_until_settled;
use crate::window::token_redaction::redact_connection_tokens;

/// Added to the caller's timeout, so that V8 can report that it has terminated the script.
const REPORT_TIME: Duration = Duration::from_millis(250);
/// How long a page may take to prove that it is idle after the caller has cancelled.
const CANCEL_CHECK: Duration = Duration::from_secs(1);
/// Deadline of `Runtime.terminateExecution`.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(2);

/// The outcome of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionResult {
    /// Values without a JSON form are text: `NaN`, `10n`, a node, a function; `undefined` is null.
    Value(Value),
    /// Message and stack of the uncaught exception.
    Exception(String),
}

/// Evaluates an expression in the page (or in Node): the best page, or the one with `page` in its URL or title. Promises are
/// awaited; declarations and `await` are allowed at the top level. Errors: [`ErrorKind::TimedOut`], after which the running
/// script has been terminated; the window is gone.
pub async fn evaluate_on_page(
    client: &PageClient,
    expression: &str,
    timeout: Duration,
    page: Option<&str>,
) -> Result<ExpressionResult> {
    let place = PlaceRequest { page: page.map(str::to_owned), ..PlaceRequest::default() };
    evaluate_at(client, expression, timeout, &place).await
}

/// As [`evaluate_on_page`], in a frame or on an element: then the expression is a function, which is called with the element, or
/// uses it as `element`.
pub async fn evaluate_at(
    client: &PageClient,
    expression: &str,
    timeout: Duration,
    place: &PlaceRequest,
) -> Result<ExpressionResult> {
    let place = find_place(client, place).await?;
    let page = place.session.as_deref().and_then(|session| client.state.targets().page_of(session));
    let before = page.as_deref().and_then(|page| load_state(client, page));
    let outcome = Evaluation { client, place, timeout, may_terminate: true }.report(expression).await;
    if let (Some(page), Some(before)) = (page, before) {
        wait_for_new_document(client, page, before).await;
    }
    outcome
}

/// How often a page has navigated, and whether it is loading.
fn load_state(client: &PageClient, page: &str) -> Option<(u64, bool)> {
    client.state.targets().sessions.get(page).map(|it| (it.navigations, it.loading))
}

/// Waits for the document of a page that was left since `before`, and says so.
async fn wait_for_new_document(client: &PageClient, id: String, before: (u64, bool)) {
    let Some(now) = load_state(client, &id).filter(|now| now.0 != before.0 || (now.1 && !before.1)) else { return };
    let page = PageSession { client: client.clone(), id };
    // A document that never finishes loading is used as it is.
    let _ = wait_until_settled(&page, before.0, Duration::ZERO, Duration::ZERO).await;
    let mut targets = client.state.targets();
    let url = targets.sessions.get(&page.id).map(|it| redact_connection_tokens(it.url.clone())).unwrap_or_default();
    if now.0 != before.0 || targets.sessions.get(&page.id).is_some_and(|it| it.navigations != before.0) {
        targets.add_notice(PageNotice::Text(format!("the page went to {url}")));
    }
}

/// As [`evaluate_on_page`] on the best page, for an expression of tether's own, which does not block the page. No script is
/// terminated after a timeout: the one that the expression waits for is the page's own.
pub async fn await_expression(client: &PageClient, expression: &str, timeout: Duration) -> Result<ExpressionResult> {
    let place = EvaluationPlace { session: client.select_session(None).await?, ..EvaluationPlace::default() };
    Evaluation { client, place, timeout, may_terminate: false }.report(expression).await
}

/// Where an expression is evaluated, and for how long.
struct Evaluation<'a> {
    client: &'a PageClient,
    place: EvaluationPlace,
    timeout: Duration,
    /// Whether a script that blocks the page is terminated on a timeout, or when the caller cancels.
    may_terminate: bool,
}

impl Evaluation<'_> {
    /// Runs it; its errors are the user-facing ones.
    async fn report(&self, expression: &str) -> Result<ExpressionResult> {
        let Evaluation { client, timeout, .. } = *self;
        self.run(expression).await.map_err(|error| {
            if error.is_timeout() {
                let doing = format!("the expression did not end within {}", humantime::format_duration(timeout));
                return Error::new(ErrorKind::TimedOut, doing).hint("a larger `timeoutMs` waits longer");
            }
            client.user_error(error)
        })
    }

    async fn run(&self, expression: &str) -> Result<ExpressionResult, PageError> {
        let mut guard = TerminateOnDrop { evaluation: self, is_finished: false };
        let result = self.run_until_timeout(expression).await;
        guard.is_finished = true;
        result
    }

    async fn run_until_timeout(&self, expression: &str) -> Result<ExpressionResult, PageError> {
        let started = Instant::now();
        let result = self.evaluate_and_resolve(expression, started + self.timeout + REPORT_TIME).await;
        match result {
            Err(PageError::Cdp(CdpError::TimedOut { .. })) => {
                if self.may_terminate {
                    terminate_busy_script(self.client, self.place.session.as_deref(), REPORT_TIME).await;
                }
            }
            // Terminated by V8: Chromium reports "Execution was terminated", Node 20 "Internal error".
            Err(PageError::Cdp(CdpError::ErrorResponse { .. })) if started.elapsed() >= self.timeout => {}
            Err(PageError::Cdp(CdpError::ErrorResponse { message, .. })) => {
                return Ok(ExpressionResult::Exception(explain_rejection(message)));
            }
            other => return other,
        }
        Err(CdpError::TimedOut { what: "the expression".into(), after: self.timeout }.into())
    }

    async fn evaluate_and_resolve(&self, expression: &str, until: Instant) -> Result<ExpressionResult, PageError> {
        let command = Evaluate { context_id: self.place.context, ..evaluate_command(expression, self.timeout) };
        let group = ReleaseObjectGroup { object_group: command.object_group.clone() };
        let evaluated = match &self.place.element {
            Some(element) => self.call_on_element(expression, element, &group.object_group, until).await?,
            None => self.call(&command, until).await?,
        };
        let is_exception = evaluated.exception_details.is_some();
        let Some(object_id) = evaluated.result.object_id.clone().filter(|_| !is_exception) else {
            return Ok(expression_result(evaluated));
        };
        let result = match evaluated.result.subtype.as_deref() {
            Some("promise") => {
                let promise = AwaitPromise { promise_object_id: object_id, return_by_value: true };
                self.call(&promise, until).await.map(expression_result)
            }
            subtype if evaluated.result.kind == "object" && !subtype.is_some_and(is_described) => {
                let function_declaration = "function() { return this }";
                let by_value = CallFunctionOn { object_id, function_declaration, return_by_value: true };
                match self.call(&by_value, until).await {
                    Err(PageError::Cdp(CdpError::ErrorResponse { message, .. })) if is_unserializable(&message) => {
                        Ok(ExpressionResult::Value(Value::String(evaluated.result.text())))
                    }
                    outcome => outcome.map(expression_result),
                }
            }
            _ => Ok(ExpressionResult::Value(Value::String(evaluated.result.text()))),
        };
        self.client.cdp.send(self.place.session.as_deref(), &group).await?;
        result
    }

    async fn call_on_element(
        &self,
        expression: &str,
        element: &ElementHandle,
        group: &str,
        until: Instant,
    ) -> Result<EvaluateResult, PageError> {
        let object_id = element_in_page(self.client, element, group).await?;
        let expression = expression.trim().trim_end_matches(';');
        let call = CallOnElement {
            function_declaration: format!(
                "async function(element) {{ const it = (\n{expression}\n); return typeof it === 'function' ? it.call(element, element) : it }}"
            ),
            arguments: vec![CallArgument { object_id: Some(object_id.clone()), ..CallArgument::default() }],
            object_id,
            object_group: group.to_owned(),
            user_gesture: true,
        };
        self.call(&call, until).await
    }

    async fn call<C: CdpCommand>(&self, command: &C, until: Instant) -> Result<C::Response, PageError> {
        self.client.call(self.place.session.as_deref(), command, until.saturating_duration_since(Instant::now())).await
    }
}

/// Terminates a script that blocks the page. An idle page, one whose script awaits, responds within `idle_check` and
/// is left alone: V8 would terminate the *next* script instead.
async fn terminate_busy_script(client: &PageClient, session: Option<&str>, idle_check: Duration) {
    if client.call(session, &noop_evaluation(), idle_check).await.is_err_and(|error| error.is_timeout()) {
        let _ = client.call(session, &types::TerminateExecution {}, TERMINATE_TIMEOUT).await;
    }
}

/// Terminates the script when the caller cancels, so that the page is not blocked until the timeout.
struct TerminateOnDrop<'a> {
    evaluation: &'a Evaluation<'a>,
    is_finished: bool,
}

impl Drop for TerminateOnDrop<'_> {
    fn drop(&mut self) {
        let Evaluation { client, ref place, may_terminate, .. } = *self.evaluation;
        // Without a runtime, the connection is closed as well.
        if let (true, Ok(runtime)) = (may_terminate && !self.is_finished, Handle::try_current()) {
            let (client, session) = (client.clone(), place.session.clone());
            runtime.spawn(async move { terminate_busy_script(&client, session.as_deref(), CANCEL_CHECK).await });
        }
    }
}

/// Replaces V8's messages about contexts and targets, for a page that navigated while its script ran.
fn explain_rejection(message: String) -> String {
    let navigated = ["Cannot find context", "context was destroyed", "navigated or closed", "Promise was collected"];
    if navigated.iter().any(|text| message.contains(text)) {
        return format!("the page was left or reloaded before the expression ended ({message})");
    }
    message
}

/// Its objects are a group of their own: another evaluation that ends releases none of them.
fn evaluate_command(expression: &str, timeout: Duration) -> Evaluate {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let repl_mode = needs_repl(expression);
    Evaluate {
        expression: expression.to_owned(),
        await_promise: repl_mode,
        repl_mode,
        object_group: format!("{OBJECT_GROUP}-{}", COUNT.fetch_add(1, Ordering::Relaxed)),
        timeout: Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        ..noop_evaluation()
    }
}

/// Whether the expression may have `await` or a redeclarable declaration at the top level. Words in strings or
/// functions count too, which is harmless.
fn needs_repl(expression: &str) -> bool {
    let words = expression.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
    words.into_iter().any(|word| matches!(word, "await" | "let" | "const" | "class"))
}

/// Whether objects of this kind are shown by their description: by value they would be `{}`, or a whole document.
fn is_described(subtype: &str) -> bool {
    matches!(subtype, "node" | "error" | "regexp" | "date" | "proxy")
}

/// Whether V8 says that a value is no JSON: it refers to itself, or is nested too deep.
fn is_unserializable(message: &str) -> bool {
    message.contains("reference chain is too long") || message.contains("couldn't be returned by value")
}

fn expression_result(evaluated: EvaluateResult) -> ExpressionResult {
    if let Some(details) = evaluated.exception_details {
        return ExpressionResult::Exception(details.text());
    }
    let text = match evaluated.result.kind.as_str() {
        "symbol" | "function" => evaluated.result.description,
        _ => evaluated.result.unserializable_value,
    };
    ExpressionResult::Value(evaluated.result.value.or(text.map(Value::String)).unwrap_or(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repl_mode_is_used_for_await_and_declarations() {
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
