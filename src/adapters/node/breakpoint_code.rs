//! Conditions and log messages as JavaScript that the engine evaluates at a breakpoint.
//!
//! What they print, and why they fail, is sent by a function that the inspector adds to the program, and that has a random
//! name: a program cannot print in the name of a breakpoint by accident.

use std::path::PathBuf;

use serde::Deserialize;

/// How much of one value a log message shows, in UTF-16 code units.
const MAX_VALUE: usize = 10_000;

/// What the program has sent: a log message of a breakpoint, or why its condition has failed; a script with a map.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum BreakpointReport {
    Log(String),
    ConditionError(String),
    /// A CommonJS module is about to be compiled, and has a source map: the isolate pauses next.
    Script {
        file: PathBuf,
        map: String,
    },
}

/// The condition of the engine for a breakpoint with a condition, a log message, both or neither. `binding` is the name of
/// the function that sends reports. Errors: the log message has a brace without an end.
pub fn engine_condition(
    condition: Option<&str>,
    log_message: Option<&str>,
    binding: &str,
) -> Result<Option<String>, String> {
    if condition.is_none() && log_message.is_none() {
        return Ok(None);
    }
    let log = match log_message {
        Some(message) => format!("{};return false", log_statement(message, binding)?),
        None => "return true".to_owned(),
    };
    let test = condition.map_or_else(String::new, |condition| format!("if(!(\n{condition}\n))return false;"));
    let report = format!("globalThis.{binding}(JSON.stringify({{conditionError:String(e?.message??e)}}))");
    Ok(Some(format!("(()=>{{try{{{test}}}catch(e){{{report};return false}}{log}}})()")))
}

/// The statement that sends a message; an expression that fails is shown with its error.
fn log_statement(message: &str, binding: &str) -> Result<String, String> {
    let show = format!(
        "v=>(typeof v==='string'?v:typeof v==='object'&&v!==null?(()=>{{try{{return JSON.stringify(v)}}catch{{return \
         String(v)}}}})():String(v)).slice(0,{MAX_VALUE})"
    );
    let parts = parse_log_parts(message)?.into_iter().map(|part| match part {
        MessagePart::Text(text) => serde_json::Value::from(text).to_string(),
        MessagePart::Expression(source) => {
            let failed = serde_json::Value::from(format!("{{{source}: "));
            format!("(()=>{{try{{return show((\n{source}\n))}}catch(e){{return {failed}+String(e)+'}}'}}}})()")
        }
    });
    let text = parts.collect::<Vec<_>>().join("+");
    Ok(format!("const show={show};globalThis.{binding}(JSON.stringify({{log:''+{text}}}))"))
}

#[derive(Debug, PartialEq, Eq)]
enum MessagePart {
    Text(String),
    Expression(String),
}

/// A text with `{expressions}`, which may have braces themselves; a brace that is none is written `\{`.
fn parse_log_parts(message: &str) -> Result<Vec<MessagePart>, String> {
    let (mut parts, mut plain) = (Vec::new(), String::new());
    let mut rest = message;
    while let Some(at) = rest.find(['{', '\\']) {
        plain.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if rest.as_bytes()[at] == b'\\' {
            let escaped = after.chars().next().filter(|c| "{}\\".contains(*c));
            plain.push(escaped.unwrap_or('\\'));
            rest = escaped.map_or(after, |c| &after[c.len_utf8()..]);
            continue;
        }
        let end = closing_brace(after).ok_or_else(|| format!("`{message}` has a brace without an end"))?;
        parts.extend((!plain.is_empty()).then(|| MessagePart::Text(std::mem::take(&mut plain))));
        parts.push(MessagePart::Expression(after[..end].trim().to_owned()));
        rest = &after[end + 1..];
    }
    plain.push_str(rest);
    parts.extend((!plain.is_empty()).then_some(MessagePart::Text(plain)));
    Ok(parts)
}

fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_messages_have_expressions_in_braces() {
        let text = |text: &str| MessagePart::Text(text.to_owned());
        let code = |text: &str| MessagePart::Expression(text.to_owned());
        let check = |message: &str, expect: &[MessagePart]| assert_eq!(parse_log_parts(message).unwrap(), expect);
        check("order is {order}!", &[text("order is "), code("order"), text("!")]);
        check("{a}{ ({b: 1}).b }", &[code("a"), code("({b: 1}).b")]);
        check("\\{a\\} \\n", &[text("{a} \\n")]);
        assert!(parse_log_parts("{a").is_err());
    }

    #[test]
    fn a_breakpoint_without_conditions_has_no_code() {
        assert_eq!(engine_condition(None, None, "b"), Ok(None));
        assert!(engine_condition(None, Some("{a"), "b").is_err());
        let code = engine_condition(Some("n > 2"), None, "b").unwrap().unwrap();
        assert!(code.contains("if(!(\nn > 2\n))return false;") && code.ends_with("return true})()"), "{code}");
    }
}
