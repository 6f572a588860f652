//! Conditions and log messages as JavaScript that the engine evaluates at a breakpoint.
//!
//! What they print, and why they fail, is sent by a function that the inspector adds to the program, and that has a random
//! name: a program cannot print in the name of a breakpoint by accident.

use std::path::PathBuf;

use serde::Deserialize;
use tether_backend::log_message::{MessagePart, split_log_message};

/// How much of one value a log message shows, in UTF-16 code units.
const MAX_VALUE: usize = 10_000;

/// What the program has sent: a log message of a breakpoint, or why its condition has failed; a script with a map; the end
/// of a worker.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ProgramReport {
    /// The text, and the id of the breakpoint.
    Log { text: String, breakpoint: i64 },
    /// A condition, and why it has failed.
    ConditionError { condition: String, reason: String },
    /// A CommonJS module is about to be compiled, and has a source map: the isolate waits until it is let go, by that number, and
    /// pauses if that takes long.
    Script { file: PathBuf, map: String, number: u32 },
    /// A worker ends, by its `threadId`, or the process with all its workers: the isolate pauses next.
    WorkerEnds { thread: Option<u64> },
}

/// The condition of the engine for the breakpoint `id`, with a condition, a log message, both or neither. `binding` is the name
/// of the function that sends reports. Errors: the log message has a brace without an end.
pub(crate) fn engine_condition(
    condition: Option<&str>,
    log_message: Option<&str>,
    (binding, id): (&str, i64),
) -> Result<Option<String>, String> {
    if condition.is_none() && log_message.is_none() {
        return Ok(None);
    }
    let log = match log_message {
        Some(message) => format!("{};return false", log_statement(message, (binding, id))?),
        None => "return true".to_owned(),
    };
    let test = condition.map_or_else(String::new, |condition| format!("if(!(\n{condition}\n))return false;"));
    let named = serde_json::Value::from(condition.unwrap_or_default()).to_string();
    let failure = format!("{{condition:{named},reason:String(e?.message??e)}}");
    let report = format!("globalThis.{binding}(JSON.stringify({{conditionError:{failure}}}))");
    Ok(Some(format!("(()=>{{try{{{test}}}catch(e){{{report};return false}}{log}}})()")))
}

/// The statement that sends a message; an expression that fails is shown with its error.
fn log_statement(message: &str, (binding, id): (&str, i64)) -> Result<String, String> {
    let show = format!(
        "v=>(typeof v==='string'?v:typeof v==='object'&&v!==null?(()=>{{try{{return JSON.stringify(v)}}catch{{return \
         String(v)}}}})():String(v)).slice(0,{MAX_VALUE})"
    );
    let parts = split_log_message(message)?.into_iter().map(|part| match part {
        MessagePart::Text(text) => serde_json::Value::from(text).to_string(),
        MessagePart::Expression(source) => {
            let failed = serde_json::Value::from(format!("{{{source}: "));
            format!("(()=>{{try{{return show((\n{source}\n))}}catch(e){{return {failed}+String(e)+'}}'}}}})()")
        }
    });
    let text = parts.collect::<Vec<_>>().join("+");
    Ok(format!("const show={show};globalThis.{binding}(JSON.stringify({{log:{{text:''+{text},breakpoint:{id}}}}}))"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breakpoint_without_conditions_has_no_code() {
        assert_eq!(engine_condition(None, None, ("b", 1)), Ok(None));
        assert!(engine_condition(None, Some("{a"), ("b", 1)).is_err());
        let code = engine_condition(Some("n > 2"), None, ("b", 1)).unwrap().unwrap();
        assert!(code.contains("if(!(\nn > 2\n))return false;") && code.ends_with("return true})()"), "{code}");
    }
}
