//! The variables of frames, objects, arrays and collections, page by page.

use futures_util::future::try_join_all;
use tether_backend::Answer;
use tether_dap::types::{DapVariable, VariablesArguments};
use tether_jdwp::JdwpError;
use tether_jdwp::commands::objects::ArrayElements;
use tether_jdwp::commands::reference_types::{StaticFieldValues, VariableEntryOfMethod};
use tether_jdwp::commands::threads::{ThisObject, VariableValues};
use tether_jdwp::values::{CodeLocation, JdwpValue, ObjectId, ReferenceTypeId, TYPE_CLASS};

use super::collection_pages::Entry;
use super::frames;
use super::java_vm::{STATIC, SYNTHETIC};
use super::session::{FrameSpot, JavaSession, ValueContainer};
use super::value_text::{Children, ShownValue};

/// How many elements are shown when the client does not limit them.
const MAX_SHOWN: usize = 1000;

/// A variable with its value, not shown yet.
pub(crate) struct NamedValue {
    pub name: String,
    pub value: JdwpValue,
    /// The signature of its type.
    pub declared: String,
}

/// A part of what is to be shown.
#[derive(Clone, Copy)]
struct PageBounds {
    start: usize,
    count: usize,
}

/// The variables behind a reference.
pub(crate) async fn variables(session: &JavaSession, arguments: VariablesArguments) -> Answer<Vec<DapVariable>> {
    let container = session.container(arguments.variables_reference)?;
    let number = |given: Option<i64>| given.and_then(|given| usize::try_from(given).ok());
    let count = number(arguments.count).filter(|count| *count > 0);
    let page = PageBounds { start: number(arguments.start).unwrap_or(0), count: count.unwrap_or(MAX_SHOWN) };
    let wants_elements = arguments.filter.as_deref() != Some("named");
    let wants_named = arguments.filter.as_deref() != Some("indexed");
    let named = match container {
        ValueContainer::Elements { array, length } if wants_elements => {
            return show_elements(session, array, length, page).await;
        }
        ValueContainer::Contents(contents) if wants_elements => {
            let entries = contents.read_page(&session.vm, page.start, page.count).await?;
            return show_entries(session, entries, page.start).await;
        }
        ValueContainer::Elements { .. } | ValueContainer::Contents(_) => Vec::new(),
        _ if !wants_named => Vec::new(),
        ValueContainer::Locals(spot) => read_locals(session, spot).await?,
        ValueContainer::Statics(class) => read_statics(session, class).await?,
        ValueContainer::Fields(object) => read_object_fields(session, object.id).await?,
        ValueContainer::Entry(entry) => entry_values(&entry),
    };
    let named = named.into_iter().skip(page.start);
    let named: Vec<NamedValue> = if count.is_some() { named.take(page.count).collect() } else { named.collect() };
    let show = |it: NamedValue| async move { show_variable(session, &it.name, it.value, &it.declared).await };
    try_join_all(named.into_iter().map(show)).await
}

/// A variable as it is shown, with a reference to what is inside.
pub(crate) async fn show_variable(
    session: &JavaSession,
    name: &str,
    value: JdwpValue,
    declared: &str,
) -> Answer<DapVariable> {
    let shown = match session.vm.show_value(value, declared).await {
        Ok(shown) => shown,
        // The object may have been collected while other threads ran.
        Err(error) if !error.is_closed() => {
            ShownValue { text: format!("<{error}>"), type_name: String::new(), children: Children::None }
        }
        Err(error) => return Err(error.into()),
    };
    let (variables_reference, indexed) = add_children(session, &shown.children);
    Ok(DapVariable {
        name: name.to_owned(),
        value: shown.text,
        variables_reference,
        kind: Some(shown.type_name).filter(|name| !name.is_empty()),
        named_variables: None,
        indexed_variables: indexed,
    })
}

/// A reference to what can be opened below a value, and how many elements it has.
pub(crate) fn add_children(session: &JavaSession, children: &Children) -> (i64, Option<i64>) {
    let (container, indexed) = match children.clone() {
        Children::None => return (0, None),
        Children::Fields(object) => (ValueContainer::Fields(object), None),
        Children::Elements { array, length } => (ValueContainer::Elements { array, length }, Some(length as i64)),
        Children::Contents(contents) => {
            let size = contents.size as i64;
            (ValueContainer::Contents(contents), Some(size))
        }
    };
    (session.with_tables(|tables| tables.add_container(container)), indexed)
}

async fn show_elements(
    session: &JavaSession,
    array: ObjectId,
    length: usize,
    page: PageBounds,
) -> Answer<Vec<DapVariable>> {
    let count = page.count.min(length.saturating_sub(page.start));
    if count == 0 {
        return Ok(Vec::new());
    }
    let number = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let request = ArrayElements { array, first: number(page.start), count: number(count) };
    let entries = session.vm.request(&request).await?.0;
    let entries = entries.into_iter().map(|value| Entry { key: None, value }).collect();
    show_entries(session, entries, page.start).await
}

async fn show_entries(session: &JavaSession, entries: Vec<Entry>, start: usize) -> Answer<Vec<DapVariable>> {
    let shown = entries.into_iter().enumerate().map(|(at, entry)| async move {
        let Some(key) = entry.key else {
            return show_variable(session, &format!("[{}]", start.saturating_add(at)), entry.value, OBJECT).await;
        };
        let key_text = session.vm.show_value(key, OBJECT).await?.text;
        let variable = show_variable(session, &key_text, entry.value, OBJECT).await?;
        // A key with more than its text is opened beside its value.
        let opens = |value: JdwpValue| value.as_object().is_some_and(|object| object.tag != b's');
        let has_more = opens(key) && key_text.contains('@');
        if !has_more {
            return Ok(variable);
        }
        let container = ValueContainer::Entry(Box::new(entry));
        let variables_reference = session.with_tables(|tables| tables.add_container(container));
        Ok(DapVariable { variables_reference, indexed_variables: None, ..variable })
    });
    try_join_all(shown).await
}

/// `this` and the variables that exist at the place of a frame.
pub(crate) async fn read_locals(session: &JavaSession, spot: FrameSpot) -> Answer<Vec<NamedValue>> {
    let frame = frames::read_frame(session, spot).await?;
    let mut found = Vec::new();
    if frame.method.modifiers & STATIC == 0 {
        let this = session.vm.request(&ThisObject { thread: spot.thread, frame: frame.id }).await?;
        let declared = frame.class.signature.clone();
        found.push(NamedValue { name: "this".to_owned(), value: JdwpValue::Object(this), declared });
    }
    let Some(table) = frames::frame_variables(session, &frame).await? else { return Ok(found) };
    let visible: Vec<&VariableEntryOfMethod> =
        table.variables.iter().filter(|it| is_visible(it, frame.location) && it.name != "this").collect();
    if visible.is_empty() {
        return Ok(found);
    }
    let slots = visible.iter().map(|it| (it.slot, slot_tag(&it.signature))).collect();
    let values = session.vm.request(&VariableValues { thread: spot.thread, frame: frame.id, slots }).await?;
    for (variable, value) in visible.into_iter().zip(values) {
        found.push(NamedValue { name: variable.name.clone(), value, declared: variable.signature.clone() });
    }
    Ok(found)
}

async fn read_statics(session: &JavaSession, class: ReferenceTypeId) -> Answer<Vec<NamedValue>> {
    let class = session.vm.class(class, TYPE_CLASS).await?;
    let mut fields = session.vm.fields(&class).await?.to_vec();
    fields.retain(|field| field.modifiers & STATIC != 0);
    if fields.is_empty() {
        return Ok(Vec::new());
    }
    let ids = fields.iter().map(|field| field.id).collect();
    let values = session.vm.request(&StaticFieldValues { class: class.id, fields: ids }).await?;
    let named = |(field, value): (tether_jdwp::commands::reference_types::DeclaredField, JdwpValue)| NamedValue {
        name: field.name,
        value,
        declared: field.signature,
    };
    Ok(fields.into_iter().zip(values).map(named).collect())
}

/// The fields of an object; an inherited one that is hidden by another has its class before its name.
async fn read_object_fields(session: &JavaSession, object: ObjectId) -> Result<Vec<NamedValue>, JdwpError> {
    let mut named: Vec<NamedValue> = Vec::new();
    for (found, value) in session.vm.read_fields(object).await? {
        let is_hidden = named.iter().any(|other| other.name == found.field.name);
        let name = match is_hidden {
            true => format!("{}.{}", found.class.short_name(), found.field.name),
            false => found.field.name,
        };
        // Of the compiler's own fields only that of the outer object helps a reader.
        if found.field.modifiers & SYNTHETIC == 0 || name.starts_with("this$") || name.starts_with("val$") {
            named.push(NamedValue { name, value, declared: found.field.signature });
        }
    }
    Ok(named)
}

const OBJECT: &str = "Ljava/lang/Object;";

fn entry_values(entry: &Entry) -> Vec<NamedValue> {
    let named = |name: &str, value: JdwpValue| NamedValue { name: name.to_owned(), value, declared: OBJECT.to_owned() };
    entry.key.map(|key| named("key", key)).into_iter().chain([named("value", entry.value)]).collect()
}

/// Whether a variable exists at a place.
pub(crate) fn is_visible(variable: &VariableEntryOfMethod, at: CodeLocation) -> bool {
    let end = variable.index.saturating_add(u64::from(variable.length));
    (variable.index..end).contains(&at.index)
}

/// The tag that a variable's value is read with: for objects of any kind `L`.
pub(crate) fn slot_tag(signature: &str) -> u8 {
    match signature.as_bytes().first() {
        Some(tag @ (b'Z' | b'B' | b'C' | b'S' | b'I' | b'J' | b'F' | b'D' | b'[')) => *tag,
        _ => b'L',
    }
}
