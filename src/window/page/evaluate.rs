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

use super::core::{Core, Trouble};
use crate::cdp::Error;
use crate::cdp::types::{self, AwaitPromise, CallFunctionOn, Command, Evaluate, EvaluateAnswer, RemoteObject};

/// What V8 gets beyond the deadline to say that it has stopped.
const EXTRA: Duration = Duration::from_millis(250);
/// How long a page may take to show that it is idle, when nobody waits for it any more.
const IDLE: Duration = Duration::from_secs(1);
const TERMINATION: Duration = Duration::from_secs(2);
/// The page keeps what we have looked at until this group is released.
const GROUP: &str = "devtether";

/// What an expression came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Evaluated {
    /// What JSON cannot say is text: `NaN`, `10n`, a node, a function; `undefined` is null.
    Value(Value),
    /// Message and stack.
    Exception(String),
}

/// Where and how long to evaluate.
pub struct Script<'a> {
    pub core: &'a Core,
    pub session: Option<&'a str>,
    pub timeout: Duration,
}

impl Script<'_> {
    /// Errors: the deadline has passed (the script has then been stopped), or the connection ended. A script whose
    /// caller gives up is stopped, too.
    pub async fn run(&self, expression: &str) -> Result<Evaluated, Trouble> {
        let mut attended = Attended { script: self, over: false };
        let result = self.run_attended(expression).await;
        attended.over = true;
        result
    }

    async fn run_attended(&self, expression: &str) -> Result<Evaluated, Trouble> {
        let started = Instant::now();
        let result = self.steps(expression, started + self.timeout + EXTRA).await;
        match result {
            Err(Trouble::Cdp(Error::TimedOut { .. })) => self.core.interrupt(self.session, EXTRA).await,
            // V8 has ended the script; Chromium says "Execution was terminated", Node 20 "Internal error".
            Err(Trouble::Cdp(Error::Refused { .. })) if started.elapsed() >= self.timeout => {}
            Err(Trouble::Cdp(Error::Refused { message, .. })) => return Ok(Evaluated::Exception(explained(message))),
            other => return other,
        }
        Err(Error::TimedOut { what: "the expression".into(), after: self.timeout }.into())
    }

    async fn steps(&self, expression: &str, until: Instant) -> Result<Evaluated, Trouble> {
        let milliseconds = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        let answer = self.call(&evaluation(expression, Some(milliseconds)), until).await?;
        let Some(object_id) = answer.result.object_id.clone().filter(|_| answer.exception_details.is_none()) else {
            return Ok(evaluated(answer));
        };
        let evaluated = match kind_of(&answer.result) {
            Object::Promise => {
                let promise = AwaitPromise { promise_object_id: object_id, return_by_value: true };
                self.call(&promise, until).await.map(evaluated)
            }
            Object::Data => {
                let function_declaration = "function() { return this }";
                let by_value = CallFunctionOn { object_id, function_declaration, return_by_value: true };
                self.call(&by_value, until).await.map(evaluated)
            }
            Object::Described => Ok(Evaluated::Value(Value::String(answer.result.text()))),
        };
        self.core.client.post(self.session, &types::ReleaseObjectGroup { object_group: GROUP }).await?;
        evaluated
    }

    async fn call<C: Command>(&self, command: &C, until: Instant) -> Result<C::Answer, Trouble> {
        self.core.call(self.session, command, until.saturating_duration_since(Instant::now())).await
    }
}

impl Core {
    /// Stops a script that runs and runs. An idle page (one that awaits) is left alone: V8 would end the *next*
    /// script instead. It shows that it is idle by answering within `patience`.
    async fn interrupt(&self, session: Option<&str>, patience: Duration) {
        if self.call(session, &alive(), patience).await.is_err_and(|trouble| trouble.timed_out()) {
            let _ = self.call(session, &types::TerminateExecution {}, TERMINATION).await;
        }
    }
}

/// Stops a script whose caller has gone before its end, so that the page is not frozen until its time is over.
struct Attended<'a> {
    script: &'a Script<'a>,
    over: bool,
}

impl Drop for Attended<'_> {
    fn drop(&mut self) {
        // Without a runtime, there is no connection either.
        if let (false, Ok(runtime)) = (self.over, Handle::try_current()) {
            let (core, session) = (self.script.core.clone(), self.script.session.map(str::to_owned));
            runtime.spawn(async move { core.interrupt(session.as_deref(), IDLE).await });
        }
    }
}

/// V8's words for a page that was left while a script of it ran are about contexts and targets.
fn explained(refusal: String) -> String {
    let left = ["Cannot find context", "context was destroyed", "navigated or closed", "Promise was collected"];
    if left.iter().any(|words| refusal.contains(words)) {
        return format!("the page was left or reloaded before the expression ended ({refusal})");
    }
    refusal
}

/// The smallest question that only a page that is not busy answers.
pub fn alive() -> Evaluate {
    evaluation("0", None)
}

fn evaluation(expression: &str, timeout: Option<u64>) -> Evaluate {
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

enum Object {
    Promise,
    Data,
    /// By value it would be `{}`, or the whole document.
    Described,
}

fn kind_of(object: &RemoteObject) -> Object {
    match object.subtype.as_deref() {
        Some("promise") => Object::Promise,
        Some("node" | "error" | "regexp" | "date" | "proxy") => Object::Described,
        _ if object.kind == "object" => Object::Data,
        _ => Object::Described, // functions and symbols
    }
}

fn evaluated(answer: EvaluateAnswer) -> Evaluated {
    if let Some(details) = answer.exception_details {
        return Evaluated::Exception(details.text());
    }
    let text = match answer.result.kind.as_str() {
        "symbol" | "function" => answer.result.description,
        _ => answer.result.unserializable_value,
    };
    Evaluated::Value(answer.result.value.or(text.map(Value::String)).unwrap_or(Value::Null))
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
