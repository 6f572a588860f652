//! Where the engine pauses at a `return`: behind the statement. Where a compiler has left out the semicolon, that is the brace in
//! which the function ends, which its map has on another line.
//!
//! (V8: the position of a return is the end of its statement, or the closing brace of the function without one.)

use tether_cdp::debugger::GetScriptSource;
use tether_cdp::types::RemoteObject;

use super::function_ranges::{ScriptPlace, byte_offset, script_place};
use super::isolate::Isolate;
use super::js_tokens::{JsToken, JsTokenKind, TokenReader};
use super::scripts::LoadedScript;
use super::source_maps::{OriginalPlace, ScriptMap};

/// Longer scripts, in UTF-16 code units, are not read for it.
const MAX_READ: i64 = 2 << 20;

/// A statement that ends where the engine pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReturnStatement {
    start: ScriptPlace,
    /// The function may also end there without it, since it is the branch of a condition.
    is_branch: bool,
}

/// The place of the source at which a frame is shown. `returned`: what its function is about to return.
pub(crate) async fn shown_place(
    isolate: &Isolate,
    script: &LoadedScript,
    at: ScriptPlace,
    returned: Option<&RemoteObject>,
) -> Option<OriginalPlace> {
    let map = script.map()?;
    let own = map.original_place(at.0, at.1);
    let Some(returned) = returned else { return own };
    match find_return(isolate, script, at).await {
        Some(found) if !found.is_branch || returned.kind != "undefined" => {
            map.original_place(found.start.0, found.start.1).or(own)
        }
        _ => own,
    }
}

/// The place of the source at which a breakpoint is bound: the engine was asked for one place, and has found another.
pub(crate) async fn bound_place(
    isolate: &Isolate,
    script: &LoadedScript,
    map: &ScriptMap,
    (wanted, found): (ScriptPlace, ScriptPlace),
) -> Option<OriginalPlace> {
    let (own, asked) = (map.original_place(found.0, found.1), map.original_place(wanted.0, wanted.1));
    let line = |place: &Option<OriginalPlace>| place.as_ref().map(|place| place.line);
    if line(&own) == line(&asked) {
        return own;
    }
    let is_return = find_return(isolate, script, found).await.is_some_and(|found| found.start == wanted);
    if is_return { asked } else { own }
}

async fn find_return(isolate: &Isolate, script: &LoadedScript, at: ScriptPlace) -> Option<ReturnStatement> {
    if script.length > MAX_READ {
        return None;
    }
    // Fails when it is gone.
    let text = isolate.call(&GetScriptSource { script_id: script.id.clone() }).await.ok()?;
    return_statement(&text.script_source, at)
}

/// The statement that ends at a brace. `None`: there is another, or the text is not understood.
fn return_statement(text: &str, at: ScriptPlace) -> Option<ReturnStatement> {
    let brace = byte_offset(text, at).filter(|at| text.get(*at..).is_some_and(|rest| rest.starts_with('}')))?;
    // Its first line may be for the shell.
    let dropped = if text.starts_with("#!") { text.find('\n')? } else { 0 };
    let code = format!("{}\n", text.get(dropped..)?);
    let tokens = TokenReader::new(&code).read_all()?;
    let end = tokens.iter().position(|token| token.start.saturating_add(dropped) == brace)?;
    let before = tokens.get(..end)?;
    let statement = find_statement(before, &code)?;
    let start = before.get(statement)?.start.saturating_add(dropped);
    let previous = statement.checked_sub(1).and_then(|at| before.get(at));
    let is_branch = previous.is_none_or(|token| !matches!(token.text(&code), ";" | "{" | "}"));
    Some(ReturnStatement { start: script_place(text, start)?, is_branch })
}

/// The index of the `return` of the last statement of a block.
fn find_statement(before: &[JsToken], code: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in before.iter().enumerate().rev() {
        let is_property =
            || at.checked_sub(1).and_then(|at| before.get(at)).is_some_and(|it| it.kind == JsTokenKind::Dot);
        match token.kind {
            JsTokenKind::Close | JsTokenKind::CloseBrace => depth = depth.saturating_add(1),
            JsTokenKind::Open => depth = depth.checked_sub(1)?,
            JsTokenKind::Word if depth == 0 && token.text(code) == "return" && !is_property() => return Some(at),
            // The one of the statement itself.
            JsTokenKind::Operator if depth == 0 && token.text(code) == ";" && at.saturating_add(1) < before.len() => {
                return None;
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brace_is_of_the_return_before_it() {
        let check = |text: &str, expect: Option<(&str, bool)>| {
            let brace = text.find('^').unwrap();
            let text = text.replace('^', "");
            let at = script_place(&text, brace).unwrap();
            let found = return_statement(&text, at).map(|it| {
                let start = byte_offset(&text, it.start).unwrap();
                (text[start..brace].to_owned(), it.is_branch)
            });
            assert_eq!(found, expect.map(|(text, is_branch)| (text.to_owned(), is_branch)), "{text}");
        };
        check("function f(a){const b=a*2;return b^}", Some(("return b", false)));
        check("function f(a){const b=a*2;return b;^}", Some(("return b;", false)));
        check("#!/bin/x\nfunction f(){g();return{a:{b:1}}^}", Some(("return{a:{b:1}}", false)));
        check("const f=ä=>{if(ä){return 1}return ä^};", Some(("return ä", false)));
        check("function f(a){if(a)return g(a)^}", Some(("return g(a)", true)));
        check("function f(a){if(a){return 1}^}", None);
        check("function f(a){g();a.return^}", None);
        check("function f(a){return 1;g();h()^}", None);
        check("function f(a){g()^;}", None);
    }
}
