//! Watches properties of a program, by a script that is evaluated in it: a watched property is an accessor instead of a
//! value, and its setter pauses the engine, which has no data breakpoints itself.
//!
//! Does not depend on which breakpoints there are.

use tether_backend::Answer;
use tether_cdp::debugger::{CallArgument, CallFunction, EvaluateInGlobalScope, PropertyDescriptor};
use tether_cdp::types::RemoteObject;

use super::isolate::Isolate;
use super::session::NodeSession;

/// Makes the accessors, which are called as `BINDING` is.
const SCRIPT: &str = include_str!("property_watches.cjs");
/// What the script calls its accessors; replaced by a name that the program does not know.
const ACCESSOR: &str = "BINDING";
/// The group of the script's own object; it is kept until the program ends.
const WATCH_OBJECTS: &str = "tether-watches";
const ADD: &str = "function(object,name){return this.add(object,name)}";
const INSTALL: &str = "function(id){return this.install(id)}";
const REMOVE: &str = "function(id){this.remove(id)}";
const READ: &str = "function(object,name){return this.read(object,name)}";

/// The number by which a property can be watched. Errors: it cannot.
pub(crate) async fn add_watch(session: &NodeSession, isolate: &Isolate, object_id: String, name: &str) -> Answer<i64> {
    let added = call_watch_script(session, isolate, ADD, property_arguments(object_id, name)).await?;
    let value = added.value.unwrap_or_default();
    value.as_i64().ok_or_else(|| refusal_text(value.as_str().unwrap_or_default(), name).into())
}

/// Watches a property from now on. Errors: it has been redefined since, or its object refuses it.
pub(crate) async fn install_watch(session: &NodeSession, isolate: &Isolate, watch: i64, name: &str) -> Answer<()> {
    let installed = call_watch_script(session, isolate, INSTALL, vec![CallArgument::from_value(watch)]).await?;
    match installed.value.as_ref().and_then(|value| value.as_str()) {
        Some("") => Ok(()),
        reason => Err(refusal_text(reason.unwrap_or_default(), name).into()),
    }
}

/// Gives a property its value back.
pub(crate) async fn remove_watch(session: &NodeSession, isolate: &Isolate, watch: i64) {
    // Fails when the isolate has ended.
    let _ = call_watch_script(session, isolate, REMOVE, vec![CallArgument::from_value(watch)]).await;
}

/// Shows the watched properties in previews of objects as their values.
pub(crate) async fn fill_watched_previews(session: &NodeSession, isolate: &Isolate, values: &mut [&mut RemoteObject]) {
    if session.with_data_breakpoints(|table| table.entries.is_empty()) {
        return;
    }
    for value in values {
        let (Some(object_id), Some(preview)) = (value.object_id.clone(), &mut value.preview) else { continue };
        for property in preview.properties.iter_mut().filter(|property| property.kind == "accessor") {
            let arguments = property_arguments(object_id.clone(), &property.name);
            // Fails when it is the program's own accessor.
            if let Ok(found) = call_watch_script(session, isolate, READ, arguments).await {
                (property.value, property.kind, property.subtype) = (Some(found.text()), found.kind, found.subtype);
            }
        }
    }
}

/// Whether a property is one that is watched.
pub(crate) fn is_watched(session: &NodeSession, property: &PropertyDescriptor) -> bool {
    let text = property.get.as_ref().and_then(|get| get.description.as_deref());
    text.is_some_and(|text| text.contains(&session.binding))
}

async fn call_watch_script(
    session: &NodeSession,
    isolate: &Isolate,
    function_declaration: &'static str,
    arguments: Vec<CallArgument>,
) -> Answer<RemoteObject> {
    let known = session.with_data_breakpoints(|table| table.scripts.get(&isolate.id).cloned());
    let object_id = match known {
        Some(object_id) => object_id,
        None => load_watch_script(session, isolate).await?,
    };
    let object_group = WATCH_OBJECTS.to_owned();
    let call = CallFunction { object_id, function_declaration, arguments, object_group, ..CallFunction::default() };
    let called = isolate.call(&call).await?;
    match called.exception_details {
        Some(details) => Err(details.text().lines().next().unwrap_or_default().into()),
        None => Ok(called.result),
    }
}

async fn load_watch_script(session: &NodeSession, isolate: &Isolate) -> Answer<String> {
    let expression = SCRIPT.replace(ACCESSOR, &session.binding);
    let object_group = WATCH_OBJECTS.to_owned();
    let evaluate = EvaluateInGlobalScope { expression, object_group, ..EvaluateInGlobalScope::default() };
    let loaded = isolate.call(&evaluate).await?.result.object_id;
    let object_id = loaded.ok_or("properties cannot be watched in this program")?;
    session.with_data_breakpoints(|table| table.scripts.insert(isolate.id, object_id.clone()));
    Ok(object_id)
}

fn property_arguments(object_id: String, name: &str) -> Vec<CallArgument> {
    vec![CallArgument { object_id: Some(object_id), ..CallArgument::default() }, CallArgument::from_value(name)]
}

/// The line of the script, from 0, at which a setter pauses.
pub(crate) fn pause_line() -> Option<i64> {
    SCRIPT.lines().position(|line| line.trim() == "debugger;").and_then(|line| i64::try_from(line).ok())
}

/// A reason of the script, for people.
fn refusal_text(reason: &str, name: &str) -> String {
    match reason {
        "missing" => format!("the object has no property `{name}` of its own"),
        "accessor" => format!("`{name}` is an accessor: it has no value that is written"),
        "constant" => format!("`{name}` is read-only"),
        _ => format!("`{name}` cannot be redefined: it is not configurable"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_pauses_at_one_line_of_an_accessor() {
        let line = usize::try_from(pause_line().unwrap()).unwrap();
        assert_eq!(SCRIPT.lines().nth(line).map(str::trim), Some("debugger;"));
        assert_eq!(SCRIPT.matches("debugger").count(), 1);
        // The comment, and each accessor as it is made and taken.
        assert_eq!(SCRIPT.matches(ACCESSOR).count(), 5);
    }
}
