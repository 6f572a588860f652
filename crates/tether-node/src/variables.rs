//! The variables of scopes and the properties of objects, page by page. Getters run only when they are opened.

use futures_util::future::join_all;
use tether_backend::Answer;
use tether_cdp::debugger::{
    CallArgument, CallFunction, GetProperties, GetPropertiesResult, PausedFrame, PropertyDescriptor, SetReturnValue,
    SetVariableValue,
};
use tether_cdp::types::RemoteObject;
use tether_dap::types::{DapVariable, SetVariableArguments, SetVariableResponse, VariablesArguments};
use tokio::try_join;

use super::evaluation::{self, SideEffects};
use super::property_watches;
use super::session::{ContainerKind, NodeContainer, NodeFrame, NodeSession};
use super::value_text::{described_size, type_name, value_text};

/// The group of the objects that a stop shows.
pub(crate) const STOP_OBJECTS: &str = "tether-stop";
/// Of so many values of a page the content is shown beside them.
const MAX_PREVIEWS: usize = 200;
/// Arrays and maps with more elements are shown by their size.
const MAX_PREVIEWED: i64 = 1000;
/// How many properties are shown at once; a client that pages sees all of them.
const MAX_PAGE: i64 = 10_000;

/// The scopes whose variables are all written in the code.
const SMALL_SCOPES: [&str; 5] = ["local", "block", "closure", "catch", "module"];

/// How the value that a function is about to return is listed.
const RETURN_VALUE: &str = "(return value)";
const COUNT_KEYS: &str = "function(){return Reflect.ownKeys(this).length}";
const PAGE_KEYS: &str = "function(start,count){const page=Object.create(null);\
    for(const key of Reflect.ownKeys(this).slice(start,start+count))\
    Object.defineProperty(page,key,Object.getOwnPropertyDescriptor(this,key));return page}";
const PAGE_ELEMENTS: &str = "function(start,count){const page=Object.create(null);\
    const end=Math.min(this.length,start+count);\
    for(let at=start;at<end;at++){const it=Object.getOwnPropertyDescriptor(this,at);if(it)Object.defineProperty(page,at,it)}\
    return page}";
const PAGE_MAP: &str = "function(start,count){const page=Object.create(null);let at=0;\
    for(const [key,value] of Map.prototype.entries.call(this)){if(at>=start+count)break;\
    if(at>=start)page[at]=Object.assign(Object.create(null),{key,value});at++}return page}";
const PAGE_SET: &str = "function(start,count){const page=Object.create(null);let at=0;\
    for(const value of Set.prototype.values.call(this)){if(at>=start+count)break;if(at>=start)page[at]=value;at++}return page}";
const READ_PROPERTY: &str = "function(name){return this[name]}";
const WRITE_PROPERTY: &str = "function(name,value){this[name]=value;return this[name]}";

/// What a reference contains.
pub(crate) async fn variables(session: &NodeSession, arguments: VariablesArguments) -> Answer<Vec<DapVariable>> {
    let container = session.container(arguments.variables_reference)?;
    let start = arguments.start.unwrap_or(0).max(0);
    let count = arguments.count.filter(|count| *count > 0).unwrap_or(MAX_PAGE).min(MAX_PAGE);
    let is_indexed = arguments.filter.as_deref() != Some("named");
    let is_named = arguments.filter.as_deref() != Some("indexed");
    let mut variables = Vec::new();
    match &container.kind {
        ContainerKind::Scope { frame, scope } => {
            let values = scope_values(session, &container, *frame, *scope, start, count);
            let (of_frame, in_scope) = try_join!(frame_values(session, *frame, *scope), values)?;
            variables.extend(of_frame.into_iter().chain(in_scope));
        }
        ContainerKind::Properties => variables = read_properties(session, &container, start, count).await?,
        ContainerKind::Getter(name) => {
            let arguments = vec![CallArgument::from_value(name.as_str())];
            let mut value = call_function(session, &container, READ_PROPERTY, arguments).await?;
            add_previews(session, container.isolate, vec![&mut value]).await;
            variables.push(variable(session, container.isolate, name.clone(), &value));
        }
        ContainerKind::Elements | ContainerKind::MapEntries(_) | ContainerKind::SetEntries(_) => {
            if is_indexed {
                variables = read_elements(session, &container, start, count).await?;
            }
            if is_named {
                variables.extend(read_named(session, &container).await?);
            }
        }
    }
    Ok(variables)
}

/// `this` and the value that is returned are not in the scope, and belong to the first one of a frame.
async fn frame_values(session: &NodeSession, frame: NodeFrame, scope: usize) -> Answer<Vec<DapVariable>> {
    let Some(mut at) = call_frame(session, frame).filter(|_| scope == 0) else { return Ok(Vec::new()) };
    add_previews(session, frame.isolate, at.this.iter_mut().chain(&mut at.return_value).collect()).await;
    let returned = at.return_value.map(|value| variable(session, frame.isolate, RETURN_VALUE.to_owned(), &value));
    let this = at.this.filter(|this| this.kind != "undefined");
    let this = this.map(|value| variable(session, frame.isolate, "this".to_owned(), &value));
    Ok(returned.into_iter().chain(this).collect())
}

/// The variables of a scope. Those of code are few, and are not counted first; the global object and that of a `with` may
/// have any number.
async fn scope_values(
    session: &NodeSession,
    container: &NodeContainer,
    frame: NodeFrame,
    scope: usize,
    start: i64,
    count: i64,
) -> Answer<Vec<DapVariable>> {
    let frame = call_frame(session, frame);
    let kind = frame.as_ref().and_then(|at| at.scope_chain.get(scope)).map(|scope| scope.kind.as_str());
    if start > 0 || !kind.is_some_and(|kind| SMALL_SCOPES.contains(&kind)) {
        return read_properties(session, container, start, count).await;
    }
    let properties = get_properties(session, container, &container.object_id, false).await?;
    if properties.result.len() as i64 > count {
        return read_properties(session, container, start, count).await;
    }
    Ok(property_variables(session, container, properties, true))
}

fn call_frame(session: &NodeSession, frame: NodeFrame) -> Option<PausedFrame> {
    let pause = session.isolate(frame.isolate).ok()?.pause().filter(|pause| pause.number == frame.pause)?;
    pause.event.call_frames.get(frame.depth?).cloned()
}

/// All properties of an object; of one with very many, a page.
async fn read_properties(
    session: &NodeSession,
    container: &NodeContainer,
    start: i64,
    count: i64,
) -> Answer<Vec<DapVariable>> {
    let size = call_count(session, container, COUNT_KEYS).await.unwrap_or(0);
    if size <= count && start == 0 {
        let properties = get_properties(session, container, &container.object_id, false).await?;
        return Ok(property_variables(session, container, properties, true));
    }
    let arguments = vec![CallArgument::from_value(start), CallArgument::from_value(count)];
    let page = call_function(session, container, PAGE_KEYS, arguments).await?;
    let page_id = page.object_id.ok_or("the page of properties is not an object")?;
    let properties = get_properties(session, container, &page_id, false).await?;
    let mut variables = property_variables(session, container, properties, false);
    let left = count_left(size, start, count);
    if left > 0 {
        let value = format!("{left} more properties");
        variables.push(DapVariable { name: "…".to_owned(), value, ..DapVariable::default() });
    }
    Ok(variables)
}

async fn read_elements(
    session: &NodeSession,
    container: &NodeContainer,
    start: i64,
    count: i64,
) -> Answer<Vec<DapVariable>> {
    let function = match container.kind {
        ContainerKind::MapEntries(_) => PAGE_MAP,
        ContainerKind::SetEntries(_) => PAGE_SET,
        _ => PAGE_ELEMENTS,
    };
    let arguments = vec![CallArgument::from_value(start), CallArgument::from_value(count)];
    let page = call_function(session, container, function, arguments).await?;
    let page_id = page.object_id.ok_or("the page of elements is not an object")?;
    let properties = get_properties(session, container, &page_id, false).await?;
    let mut variables = property_variables(session, container, properties, false);
    if matches!(container.kind, ContainerKind::MapEntries(_)) {
        for variable in &mut variables {
            variable.value = variable.value.replacen("key: ", "", 1).replacen(", value: ", " => ", 1);
            variable.kind = None;
        }
    }
    Ok(variables)
}

/// The properties of an array, a map or a set beside its elements.
async fn read_named(session: &NodeSession, container: &NodeContainer) -> Answer<Vec<DapVariable>> {
    if !matches!(container.kind, ContainerKind::Elements) {
        // Whatever is asked of a map itself, the engine adds all its entries.
        let name = "size".to_owned();
        let (ContainerKind::MapEntries(size) | ContainerKind::SetEntries(size)) = &container.kind else {
            return Ok(Vec::new());
        };
        let kind = Some("number".to_owned());
        return Ok(vec![DapVariable { name, value: size.to_string(), kind, ..DapVariable::default() }]);
    }
    let properties = get_properties(session, container, &container.object_id, true).await?;
    Ok(property_variables(session, container, properties, true))
}

async fn get_properties(
    session: &NodeSession,
    container: &NodeContainer,
    object_id: &str,
    non_indexed_properties_only: bool,
) -> Answer<GetPropertiesResult> {
    let (object_id, own_properties) = (object_id.to_owned(), true);
    let get = GetProperties { object_id, own_properties, non_indexed_properties_only };
    let mut found = session.isolate(container.isolate)?.call(&get).await?;
    // A property that is watched is shown as its value.
    for property in found.result.iter_mut().filter(|property| property_watches::is_watched(session, property)) {
        let arguments = vec![CallArgument::from_value(property.name.as_str())];
        property.value = call_function(session, container, READ_PROPERTY, arguments).await.ok();
    }
    let all = found.result.iter_mut().chain(&mut found.private_properties).filter_map(|it| it.value.as_mut());
    let internal = found.internal_properties.iter_mut().filter_map(|it| it.value.as_mut());
    add_previews(session, container.isolate, all.chain(internal).collect()).await;
    Ok(found)
}

/// Adds the engine's previews to objects. Not to large ones: the engine reads all of an array or a map for that.
pub(crate) async fn add_previews(session: &NodeSession, isolate: i64, values: Vec<&mut RemoteObject>) {
    let Ok(isolate) = session.isolate(isolate) else { return };
    let is_wanted = |value: &RemoteObject| {
        let has_preview =
            matches!(value.subtype.as_deref(), None | Some("array" | "typedarray" | "map" | "set" | "promise"));
        // The global object is the same everywhere.
        let is_global = value.class_name.as_deref() == Some("global");
        value.kind == "object"
            && !is_global
            && has_preview
            && described_size(value).is_none_or(|size| size <= MAX_PREVIEWED)
    };
    let mut wanted: Vec<&mut RemoteObject> = values.into_iter().filter(|it| is_wanted(it)).take(MAX_PREVIEWS).collect();
    let calls = wanted.iter().filter_map(|value| value.object_id.clone()).map(|object_id| {
        let call = CallFunction {
            object_id,
            function_declaration: "function(){return this}",
            object_group: STOP_OBJECTS.to_owned(),
            generate_preview: true,
            ..CallFunction::default()
        };
        let isolate = &isolate;
        async move { isolate.call(&call).await.ok().and_then(|found| found.result.preview) }
    });
    let previews = join_all(calls.collect::<Vec<_>>()).await;
    let with_id = wanted.iter_mut().filter(|value| value.object_id.is_some());
    for (value, preview) in with_id.zip(previews) {
        value.preview = preview;
    }
    property_watches::fill_watched_previews(session, &isolate, &mut wanted).await;
}

/// `with_internal`: also what the engine knows of the object, as `[[Prototype]]`.
fn property_variables(
    session: &NodeSession,
    container: &NodeContainer,
    properties: GetPropertiesResult,
    with_internal: bool,
) -> Vec<DapVariable> {
    let all = properties.result.into_iter().chain(properties.private_properties);
    let mut variables: Vec<DapVariable> = all.filter_map(|it| property_variable(session, container, it)).collect();
    let internal = properties.internal_properties.into_iter().filter(|_| with_internal);
    variables.extend(internal.filter_map(|it| Some(variable(session, container.isolate, it.name, &it.value?))));
    variables
}

fn property_variable(
    session: &NodeSession,
    container: &NodeContainer,
    property: PropertyDescriptor,
) -> Option<DapVariable> {
    if let Some(value) = &property.value {
        return Some(variable(session, container.isolate, property.name, value));
    }
    let name = property.name;
    if property.get.as_ref().is_some_and(|get| get.kind == "function") {
        let kind = ContainerKind::Getter(name.clone());
        let getter = NodeContainer { kind, ..container.clone() };
        let variables_reference = session.add_container(getter);
        return Some(DapVariable { name, value: "(getter)".to_owned(), variables_reference, ..DapVariable::default() });
    }
    // A variable that has no value yet.
    let value = if property.set.is_some() { "(setter)" } else { "<not initialized>" };
    Some(DapVariable { name, value: value.to_owned(), ..DapVariable::default() })
}

/// A value with its text, its type, and a reference if it can be opened.
pub(crate) fn variable(session: &NodeSession, isolate: i64, name: String, value: &RemoteObject) -> DapVariable {
    let (variables_reference, indexed_variables) = open_value(session, isolate, value);
    DapVariable {
        name,
        value: value_text(value),
        variables_reference,
        kind: Some(type_name(value)),
        // At least its length.
        named_variables: indexed_variables.map(|_| 1),
        indexed_variables,
    }
}

/// A reference by which a value can be opened, and how many elements it has; 0: it cannot.
pub(crate) fn open_value(session: &NodeSession, isolate: i64, value: &RemoteObject) -> (i64, Option<i64>) {
    let Some(object_id) = value.object_id.clone().filter(|_| matches!(value.kind.as_str(), "object" | "function"))
    else {
        return (0, None);
    };
    let size = described_size(value).unwrap_or(0);
    let kind = match value.subtype.as_deref() {
        Some("array" | "typedarray") => ContainerKind::Elements,
        Some("map") => ContainerKind::MapEntries(size),
        Some("set") => ContainerKind::SetEntries(size),
        _ => ContainerKind::Properties,
    };
    let indexed = (kind != ContainerKind::Properties).then_some(size);
    (session.add_container(NodeContainer { isolate, object_id, kind }), indexed)
}

async fn call_function(
    session: &NodeSession,
    container: &NodeContainer,
    function_declaration: &'static str,
    arguments: Vec<CallArgument>,
) -> Answer<RemoteObject> {
    let call = CallFunction {
        object_id: container.object_id.clone(),
        function_declaration,
        arguments,
        object_group: STOP_OBJECTS.to_owned(),
        generate_preview: false,
        return_by_value: false,
    };
    let result = session.isolate(container.isolate)?.call(&call).await?;
    match result.exception_details {
        Some(details) => Err(details.text().lines().next().unwrap_or_default().into()),
        None => Ok(result.result),
    }
}

async fn call_count(
    session: &NodeSession,
    container: &NodeContainer,
    function_declaration: &'static str,
) -> Answer<i64> {
    let call = CallFunction {
        object_id: container.object_id.clone(),
        function_declaration,
        return_by_value: true,
        ..CallFunction::default()
    };
    let result = session.isolate(container.isolate)?.call(&call).await?;
    read_count(&result.result).ok_or_else(|| "it has no count".into())
}

/// Gives a variable or a property the value of an expression.
pub(crate) async fn set_variable(
    session: &NodeSession,
    arguments: SetVariableArguments,
) -> Answer<SetVariableResponse> {
    let container = session.container(arguments.variables_reference)?;
    let isolate = session.isolate(container.isolate)?;
    let frame = match &container.kind {
        ContainerKind::Scope { frame, .. } => call_frame(session, *frame),
        _ => isolate.pause().and_then(|pause| pause.event.call_frames.first().cloned()),
    };
    let value =
        evaluation::run_expression(session, &isolate, frame.as_ref(), &arguments.value, SideEffects::Allow).await?;
    let value = match (&container.kind, frame) {
        (ContainerKind::Scope { .. }, Some(_)) if arguments.name == RETURN_VALUE => {
            isolate.call(&SetReturnValue { new_value: CallArgument::from_object(&value) }).await?;
            isolate.with_state(|state| state.set_return_value(&value));
            value
        }
        (ContainerKind::Scope { scope, .. }, Some(frame)) => {
            let set = SetVariableValue {
                scope_number: *scope,
                variable_name: arguments.name.clone(),
                new_value: CallArgument::from_object(&value),
                call_frame_id: frame.call_frame_id,
            };
            isolate.call(&set).await?;
            // The object of the scope is a copy, which is shown until the next stop.
            let arguments = vec![CallArgument::from_value(arguments.name), CallArgument::from_object(&value)];
            call_function(session, &container, WRITE_PROPERTY, arguments).await?;
            value
        }
        (ContainerKind::MapEntries(_) | ContainerKind::SetEntries(_) | ContainerKind::Scope { .. }, _) => {
            return Err(format!("`{}` cannot be set here", arguments.name).into());
        }
        _ => {
            let arguments = vec![CallArgument::from_value(arguments.name), CallArgument::from_object(&value)];
            call_function(session, &container, WRITE_PROPERTY, arguments).await?
        }
    };
    Ok(set_response(session, isolate.id, &value))
}

/// The response to a request that has set a value.
pub(crate) fn set_response(session: &NodeSession, isolate: i64, value: &RemoteObject) -> SetVariableResponse {
    let (reference, _) = open_value(session, isolate, value);
    SetVariableResponse {
        value: Some(value_text(value)),
        kind: Some(type_name(value)),
        variables_reference: Some(reference).filter(|reference| *reference > 0),
    }
}

/// A count as the program gives it; 0 for a negative one.
fn read_count(value: &RemoteObject) -> Option<i64> {
    Some(value.value.as_ref()?.as_i64()?.max(0))
}

/// How many of `size` properties are behind a page.
fn count_left(size: i64, start: i64, count: i64) -> i64 {
    size.saturating_sub(start).saturating_sub(count).max(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_of_a_program_are_never_negative() {
        for (value, count) in [
            (json!(3), Some(3)),
            (json!(-1), Some(0)),
            (json!(i64::MIN), Some(0)),
            (json!(i64::MAX), Some(i64::MAX)),
            (json!(1.5), None),
            (json!("3"), None),
        ] {
            let object = serde_json::from_value(json!({"type": "number", "value": value})).unwrap();
            assert_eq!(read_count(&object), count, "{object:?}");
        }
    }

    #[test]
    fn what_is_left_behind_a_page_is_counted_whatever_the_program_and_the_client_say() {
        assert_eq!(count_left(10_005, 10_000, 3), 2);
        assert_eq!(count_left(3, 0, MAX_PAGE), 0);
        assert_eq!(count_left(i64::MIN, 1, MAX_PAGE), 0);
        assert_eq!(count_left(i64::MAX, i64::MAX, MAX_PAGE), 0);
        assert_eq!(count_left(i64::MAX, 0, 1), i64::MAX - 1);
    }
}
