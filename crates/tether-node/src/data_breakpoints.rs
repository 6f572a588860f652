//! Data breakpoints: which properties of a program can be watched, and which are.
//!
//! Only writes are watched, and only those of properties: an accessor in their place sees them.

use tether_backend::Answer;
use tether_backend::hit_condition::HitCondition;
use tether_backend::request_failure::RequestFailure;
use tether_cdp::debugger::CallFunction;
use tether_dap::types::{DapBreakpoint, DataBreakpoint, DataBreakpointInfoArguments, DataBreakpointInfoResponse};

use super::completed_expression::parse_completed;
use super::data_breakpoint_table::{NodeDataBreakpoint, WatchedProperty};
use super::evaluation::{self, SideEffects};
use super::isolate::Isolate;
use super::property_watches;
use super::session::{ContainerKind, NodeSession};
use super::variables::STOP_OBJECTS;

/// The only access that is watched.
const ACCESS: &str = "write";
const ONLY_PROPERTIES: &str = "the engine watches no variables and no elements, only properties: `object.property`";

/// Whether data can be watched, and the id that it is watched by; else the reason.
pub(crate) async fn data_breakpoint_info(
    session: &NodeSession,
    arguments: DataBreakpointInfoArguments,
) -> DataBreakpointInfoResponse {
    match find_watchable(session, &arguments).await {
        Ok(property) => {
            let (data_id, access_types) = (Some(property.data_id(&session.binding)), vec![ACCESS.to_owned()]);
            DataBreakpointInfoResponse { data_id, description: property.name, access_types, can_persist: false }
        }
        Err(RequestFailure(description)) => DataBreakpointInfoResponse { description, ..Default::default() },
    }
}

async fn find_watchable(session: &NodeSession, arguments: &DataBreakpointInfoArguments) -> Answer<WatchedProperty> {
    let name = arguments.name.trim();
    let parsed = parse_completed(name).filter(|it| !it.begun.is_empty());
    let (isolate, object_id, property) = match arguments.variables_reference.filter(|reference| *reference > 0) {
        Some(reference) => {
            let container = session.container(reference)?;
            if container.kind != ContainerKind::Properties && container.kind != ContainerKind::Elements {
                return Err(ONLY_PROPERTIES.into());
            }
            (session.isolate(container.isolate)?, container.object_id, name)
        }
        None => {
            let parsed = parsed.and_then(|it| Some((it.receiver?, it.begun)));
            let (receiver, property) = parsed.ok_or(ONLY_PROPERTIES)?;
            let (isolate, frame) = evaluation::find_place(session, arguments.frame_id)?;
            let object =
                evaluation::run_expression(session, &isolate, frame.as_ref(), receiver, SideEffects::Throw).await?;
            let object_id = object.object_id.ok_or_else(|| format!("`{receiver}` is not an object"))?;
            (isolate, object_id, property)
        }
    };
    verify_watchable(&isolate, &object_id, property).await?;
    let watch = property_watches::add_watch(session, &isolate, object_id, property).await?;
    Ok(WatchedProperty { isolate: isolate.id, watch, name: name.to_owned() })
}

/// Errors: an accessor could not see all writes.
async fn verify_watchable(isolate: &Isolate, object_id: &str, name: &str) -> Answer<()> {
    let call = CallFunction {
        object_id: object_id.to_owned(),
        function_declaration: "function(){return this}",
        object_group: STOP_OBJECTS.to_owned(),
        ..CallFunction::default()
    };
    let object = isolate.call(&call).await?.result;
    let is_index = name.chars().all(|c| c.is_ascii_digit());
    match object.subtype.as_deref() {
        Some("proxy") => Err("a Proxy decides itself what is written".into()),
        Some("array" | "typedarray") if is_index => Err(ONLY_PROPERTIES.into()),
        _ => Ok(()),
    }
}

/// Replaces all data breakpoints.
pub(crate) async fn set_data_breakpoints(session: &NodeSession, wanted: Vec<DataBreakpoint>) -> Vec<DapBreakpoint> {
    let mut old = session.with_data_breakpoints(|table| std::mem::take(&mut table.entries));
    let mut bound = Vec::new();
    for one in wanted {
        let entry = match old.iter().position(|entry| entry.wanted == one) {
            Some(kept) => Ok(old.swap_remove(kept)),
            None => install_data_breakpoint(session, one).await,
        };
        bound.push(match entry {
            Ok(entry) => {
                let id = Some(entry.id);
                session.with_data_breakpoints(|table| table.entries.push(entry));
                DapBreakpoint { verified: true, id, ..DapBreakpoint::default() }
            }
            Err(RequestFailure(reason)) => DapBreakpoint { message: Some(reason), ..DapBreakpoint::default() },
        });
    }
    remove_data_breakpoints(session, old).await;
    bound
}

async fn install_data_breakpoint(session: &NodeSession, wanted: DataBreakpoint) -> Answer<NodeDataBreakpoint> {
    let property = WatchedProperty::parse(&session.binding, &wanted.data_id).ok_or("it is gone: watch it again")?;
    if wanted.access_type.as_deref().is_some_and(|access| access != ACCESS) {
        return Err("only writes are watched".into());
    }
    let hits = wanted.hit_condition.as_deref().filter(|text| !text.trim().is_empty());
    let hits = hits.map(HitCondition::parse).transpose()?;
    let isolate = session.isolate(property.isolate)?;
    property_watches::install_watch(session, &isolate, property.watch, &property.name).await?;
    let id = session.with_breakpoints(|breakpoints| breakpoints.next_id());
    Ok(NodeDataBreakpoint { id, wanted, property, hits, hit_count: 0 })
}

/// Gives all watched properties their values back, before the session leaves the program.
pub(crate) async fn remove_all_data_breakpoints(session: &NodeSession) {
    let all = session.with_data_breakpoints(|table| std::mem::take(&mut table.entries));
    remove_data_breakpoints(session, all).await;
}

/// They are not in the table any more; others may watch the same properties.
async fn remove_data_breakpoints(session: &NodeSession, removed: Vec<NodeDataBreakpoint>) {
    for NodeDataBreakpoint { property, .. } in removed {
        let is_watched = session.with_data_breakpoints(|table| table.is_watching(&property));
        if let (false, Ok(isolate)) = (is_watched, session.isolate(property.isolate)) {
            property_watches::remove_watch(session, &isolate, property.watch).await;
        }
    }
}
