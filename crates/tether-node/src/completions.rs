//! What a text may go on with: the properties of the object before a dot, else variables and globals.
//!
//! Nothing that has effects runs: the engine ends an evaluation that would have some, as one of a getter may.

use std::collections::HashSet;

use tether_backend::Answer;
use tether_backend::completion_text::{offer_items, text_before};
use tether_cdp::debugger::{GetGlobalLexicalNames, GetProperties, PausedFrame};
use tether_cdp::types::RemoteObject;
use tether_dap::types::{CompletionItem, CompletionsArguments, CompletionsResponse};

use super::completed_expression::{CompletedExpression, parse_completed};
use super::evaluation::{self, SideEffects};
use super::isolate::Isolate;
use super::session::NodeSession;

/// How many properties of one object are read, with the begun name.
const MAX_PROPERTIES: usize = 2000;
/// The properties of a value and its prototypes, the nearest first, that begin with a name in either case: each with 1 if it
/// is a function, else 0. Of a long array those with a name are few, and are its prototype's. Uses only functions that the
/// engine knows to have no effects; without `reads` it does not look at the properties themselves, which for those that
/// Node makes on first use is an effect.
const LIST_PROPERTIES: &str = "(function(value,lower,upper,most,reads){const items=[];\
    if(value===undefined||value===null)return '[]';\
    const isObject=typeof value==='object'||typeof value==='function';\
    let at=isObject?value:Object.getPrototypeOf(value);\
    for(let depth=0;at!==null&&depth<100&&items.length<most;depth++,at=Object.getPrototypeOf(at)){\
    const isLong=(Array.isArray(at)||ArrayBuffer.isView(at))&&at.length>1000;\
    const keys=isLong?['length']:Object.getOwnPropertyNames(at);\
    for(let place=0;place<keys.length&&items.length<most;place++){const key=keys[place];\
    let same=0;while(same<lower.length&&(key[same]===lower[same]||key[same]===upper[same]))same++;\
    if(same<lower.length)continue;\
    const found=reads?Object.getOwnPropertyDescriptor(at,key):undefined;\
    items.push([key,typeof found?.value==='function'?1:0])}}\
    return JSON.stringify(items)})";

/// What the text before a position may go on with.
pub(crate) async fn completions(session: &NodeSession, arguments: CompletionsArguments) -> Answer<CompletionsResponse> {
    let before = text_before(&arguments.text, arguments.line, arguments.column);
    let Some(CompletedExpression { receiver, begun }) = parse_completed(&before) else {
        return Ok(CompletionsResponse::default());
    };
    let (isolate, frame) = evaluation::find_place(session, arguments.frame_id)?;
    let mut items = match receiver {
        Some(receiver) => list_members(session, &isolate, frame.as_ref(), receiver, begun).await,
        None => {
            let mut names = match &frame {
                Some(frame) => list_scope_names(&isolate, frame).await?,
                None => list_lexical_names(&isolate).await,
            };
            names.extend(list_globals(session, &isolate, frame.as_ref(), begun).await);
            names
        }
    };
    let mut known = HashSet::new();
    items.retain(|item| is_identifier(&item.label) && known.insert(item.label.clone()));
    Ok(offer_items(items, begun, arguments.column))
}

/// The properties of an expression's value. None of one that has effects, or no value.
async fn list_members(
    session: &NodeSession,
    isolate: &Isolate,
    frame: Option<&PausedFrame>,
    receiver: &str,
    begun: &str,
) -> Vec<CompletionItem> {
    let found = list_properties(session, isolate, frame, receiver, begun).await;
    found.into_iter().map(|(name, kind)| item(name, if kind == 1 { "method" } else { "property" })).collect()
}

async fn list_globals(
    session: &NodeSession,
    isolate: &Isolate,
    frame: Option<&PausedFrame>,
    begun: &str,
) -> Vec<CompletionItem> {
    let found = list_properties(session, isolate, frame, "globalThis", begun).await;
    let kind = |name: &str, kind: u8| match kind {
        1 if name.starts_with(char::is_uppercase) => "class",
        1 => "function",
        _ => "variable",
    };
    found.into_iter().map(|(name, is_function)| item(name.clone(), kind(&name, is_function))).collect()
}

async fn list_properties(
    session: &NodeSession,
    isolate: &Isolate,
    frame: Option<&PausedFrame>,
    receiver: &str,
    begun: &str,
) -> Vec<(String, u8)> {
    let [lower, upper] = [begun.to_lowercase(), begun.to_uppercase()].map(|name| serde_json::json!(name));
    for reads in [true, false] {
        let expression = format!("{LIST_PROPERTIES}(\n{receiver}\n,{lower},{upper},{MAX_PROPERTIES},{reads})");
        let listed = evaluation::run_expression(session, isolate, frame, &expression, SideEffects::Throw).await.ok();
        let text = listed.and_then(|listed| listed.value?.as_str().map(str::to_owned));
        if let Some(found) = text.and_then(|text| serde_json::from_str(&text).ok()) {
            return found;
        }
    }
    Vec::new()
}

/// The variables of a frame, the innermost first; the engine reads them. Errors: the isolate has ended.
async fn list_scope_names(isolate: &Isolate, frame: &PausedFrame) -> Answer<Vec<CompletionItem>> {
    let mut items = Vec::new();
    for scope in frame.scope_chain.iter().filter(|scope| scope.kind != "global") {
        let Some(object_id) = scope.object.object_id.clone() else { continue };
        let get = GetProperties { object_id, own_properties: true, non_indexed_properties_only: false };
        let variables = isolate.call(&get).await?.result;
        items.extend(variables.into_iter().map(|it| item(it.name, variable_kind(it.value.as_ref()))));
    }
    Ok(items)
}

/// What scripts have declared outside of all functions; those of a frame are in its scopes.
async fn list_lexical_names(isolate: &Isolate) -> Vec<CompletionItem> {
    let found = isolate.call(&GetGlobalLexicalNames {}).await;
    found.map(|found| found.names).unwrap_or_default().into_iter().map(|name| item(name, "variable")).collect()
}

fn item(label: String, kind: &str) -> CompletionItem {
    CompletionItem { label, kind: Some(kind.to_owned()), ..CompletionItem::default() }
}

fn variable_kind(value: Option<&RemoteObject>) -> &'static str {
    match value {
        Some(value) if value.kind == "function" => {
            let is_class = value.description.as_deref().is_some_and(|text| text.starts_with("class"));
            if is_class { "class" } else { "function" }
        }
        _ => "variable",
    }
}

/// Whether a name may stand behind a dot.
fn is_identifier(name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    !name.starts_with(|c: char| c.is_numeric()) && !name.is_empty() && name.chars().all(is_part)
}
