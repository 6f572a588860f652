//! The contents of the collections and maps of `java.util`, read from their fields: no code of the program runs.
//!
//! The fields are those of JDK 8 to 21. What is not as expected is shown as any other object.

use std::sync::Arc;

use tether_jdwp::JdwpError;
use tether_jdwp::commands::objects::ArrayLength;
use tether_jdwp::commands::reference_types::StaticFieldValues;
use tether_jdwp::values::{JdwpValue, ObjectId};

use super::collection_pages::{
    CONCURRENT_NODE, Contents, Entry, LINKED_MAP_NODE, LIST_NODE, Layout, MAP_NODE, ObjectFields,
};
use super::java_vm::{JavaClass, JavaVm};

/// How often a collection may wrap another one.
const MAX_NESTING: usize = 64;

/// What an object has, if it is a collection or a map that is known.
pub(crate) async fn find_contents(
    vm: &JavaVm,
    object: ObjectId,
    class: &Arc<JavaClass>,
) -> Result<Option<Contents>, JdwpError> {
    let (mut object, mut class) = (object, Arc::clone(class));
    for _ in 0..MAX_NESTING {
        let Some(known) = known_class(vm, &class).await? else { return Ok(None) };
        let fields = ObjectFields { vm, object, class: &class };
        match wrapped_field(known) {
            Some((field, is_set_of_keys)) => {
                let Some(inner) = fields.read_object(field).await? else { return Ok(None) };
                if is_set_of_keys {
                    return read_key_set(vm, inner).await;
                }
                class = vm.class_of(inner).await?;
                object = inner;
            }
            None => return read_layout(&fields, known).await,
        }
    }
    Ok(None)
}

/// The keys of a map, as a set.
async fn read_key_set(vm: &JavaVm, map: ObjectId) -> Result<Option<Contents>, JdwpError> {
    let class = vm.class_of(map).await?;
    let Some(known) = known_class(vm, &class).await? else { return Ok(None) };
    let contents = read_layout(&ObjectFields { vm, object: map, class: &class }, known).await?;
    Ok(contents.filter(|it| it.is_map).map(|contents| Contents { is_map: false, ..contents }))
}

/// The name of the nearest class of `java.util`, without its package.
async fn known_class(vm: &JavaVm, class: &Arc<JavaClass>) -> Result<Option<&'static str>, JdwpError> {
    for class in vm.superclasses(class).await? {
        let name = class.signature.strip_prefix("Ljava/util/").and_then(|name| name.strip_suffix(';'));
        if let Some(known) = name.and_then(|name| KNOWN_CLASSES.iter().find(|known| **known == name)) {
            return Ok(Some(known));
        }
    }
    Ok(None)
}

const KNOWN_CLASSES: &[&str] = &[
    "ArrayDeque",
    "ArrayList",
    "Arrays$ArrayList",
    "Collections$EmptyList",
    "Collections$EmptyMap",
    "Collections$EmptySet",
    "Collections$SingletonList",
    "Collections$SingletonMap",
    "Collections$SingletonSet",
    "Collections$SynchronizedCollection",
    "Collections$SynchronizedMap",
    "Collections$UnmodifiableCollection",
    "Collections$UnmodifiableMap",
    "HashMap",
    "HashSet",
    "Hashtable",
    "ImmutableCollections$List12",
    "ImmutableCollections$ListN",
    "ImmutableCollections$Map1",
    "ImmutableCollections$MapN",
    "ImmutableCollections$Set12",
    "ImmutableCollections$SetN",
    "LinkedHashMap",
    "LinkedList",
    "PriorityQueue",
    "TreeMap",
    "TreeSet",
    "Vector",
    "concurrent/ConcurrentHashMap",
    "concurrent/CopyOnWriteArrayList",
];

/// The field with the collection inside, and whether the keys of that map are the elements.
fn wrapped_field(known: &str) -> Option<(&'static str, bool)> {
    Some(match known {
        "Collections$UnmodifiableCollection" | "Collections$SynchronizedCollection" => ("c", false),
        "Collections$UnmodifiableMap" | "Collections$SynchronizedMap" => ("m", false),
        "HashSet" => ("map", true),
        "TreeSet" => ("m", true),
        _ => return None,
    })
}

async fn read_layout(fields: &ObjectFields<'_>, known: &str) -> Result<Option<Contents>, JdwpError> {
    let contents = |size: usize, layout: Layout| Some(Contents { size, is_map: false, layout });
    let empty = || contents(0, Layout::Values(Vec::new()));
    match known {
        "ArrayList" => read_in_array(fields, "elementData", "size").await,
        "Vector" => read_in_array(fields, "elementData", "elementCount").await,
        "PriorityQueue" => read_in_array(fields, "queue", "size").await,
        "Arrays$ArrayList" | "ImmutableCollections$ListN" | "concurrent/CopyOnWriteArrayList" => {
            let name = match known {
                "Arrays$ArrayList" => "a",
                "ImmutableCollections$ListN" => "elements",
                _ => "array",
            };
            let Some(array) = fields.read_object(name).await? else { return Ok(None) };
            let size = fields.vm.request(&ArrayLength { array }).await?;
            Ok(contents(usize::try_from(size).unwrap_or(0), Layout::Array { array, first: 0 }))
        }
        "ImmutableCollections$SetN" => {
            let (array, size) = (fields.read_object("elements").await?, fields.read_size("size").await?);
            Ok(array.and_then(|array| contents(size, Layout::Sparse { array })))
        }
        "ImmutableCollections$List12" | "ImmutableCollections$Set12" => read_pair(fields).await,
        "ArrayDeque" => read_deque(fields).await,
        "LinkedList" => {
            let size = fields.read_size("size").await?;
            let first = fields.read_object("first").await?;
            Ok(first.map_or_else(empty, |first| contents(size, Layout::Linked { first, fields: LIST_NODE })))
        }
        "Collections$EmptyList" | "Collections$EmptySet" => Ok(empty()),
        "Collections$SingletonList" | "Collections$SingletonSet" => {
            let element = fields.read(["element"]).await?;
            Ok(element.and_then(|[value]| contents(1, Layout::Values(vec![Entry { key: None, value }]))))
        }
        _ => Ok(read_map(fields, known).await?.map(|contents| Contents { is_map: true, ..contents })),
    }
}

/// The elements at the beginning of an array.
async fn read_in_array(fields: &ObjectFields<'_>, array: &str, size: &str) -> Result<Option<Contents>, JdwpError> {
    let (array, size) = (fields.read_object(array).await?, fields.read_size(size).await?);
    let layout = array.map_or(Layout::Values(Vec::new()), |array| Layout::Array { array, first: 0 });
    Ok(Some(Contents { size: if array.is_some() { size } else { 0 }, is_map: false, layout }))
}

async fn read_map(fields: &ObjectFields<'_>, known: &str) -> Result<Option<Contents>, JdwpError> {
    let contents = |size: usize, layout: Option<Layout>| {
        Some(Contents { size, is_map: true, layout: layout.unwrap_or(Layout::Values(Vec::new())) })
    };
    Ok(match known {
        "LinkedHashMap" => {
            let (size, first) = (fields.read_size("size").await?, fields.read_object("head").await?);
            contents(size, first.map(|first| Layout::Linked { first, fields: LINKED_MAP_NODE }))
        }
        "HashMap" | "Hashtable" => {
            let size = fields.read_size(if known == "HashMap" { "size" } else { "count" }).await?;
            let table = fields.read_object("table").await?;
            contents(size, table.map(|table| Layout::Buckets { table, fields: MAP_NODE }))
        }
        "concurrent/ConcurrentHashMap" => {
            let Some(table) = fields.read_object("table").await? else { return Ok(contents(0, None)) };
            // Its count is spread over cells when threads compete: without them `baseCount` is exact.
            let Some([JdwpValue::Long(size), cells]) = fields.read(["baseCount", "counterCells"]).await? else {
                return Ok(None);
            };
            let layout = Layout::Buckets { table, fields: CONCURRENT_NODE };
            if !cells.is_null() {
                return Ok(None);
            }
            contents(usize::try_from(size).unwrap_or(0), Some(layout))
        }
        "TreeMap" => {
            let (size, root) = (fields.read_size("size").await?, fields.read_object("root").await?);
            contents(size, root.map(|root| Layout::Tree { root }))
        }
        "ImmutableCollections$MapN" => {
            let (size, array) = (fields.read_size("size").await?, fields.read_object("table").await?);
            contents(size, array.map(|array| Layout::Alternating { array }))
        }
        "ImmutableCollections$Map1" | "Collections$SingletonMap" => {
            let names = if known == "Collections$SingletonMap" { ["k", "v"] } else { ["k0", "v0"] };
            let Some([key, value]) = fields.read(names).await? else { return Ok(None) };
            contents(1, Some(Layout::Values(vec![Entry { key: Some(key), value }])))
        }
        "Collections$EmptyMap" => contents(0, None),
        _ => None,
    })
}

/// `List.of` and `Set.of` with one or two elements: a missing second one is `null`, or an object that stands for it.
async fn read_pair(fields: &ObjectFields<'_>) -> Result<Option<Contents>, JdwpError> {
    let Some([first, second]) = fields.read(["e0", "e1"]).await? else { return Ok(None) };
    let mut absent = JdwpValue::NULL;
    for class in fields.vm.classes_by_signature("Ljava/util/ImmutableCollections;").await? {
        if let Some(found) = fields.vm.find_field(&class, "EMPTY").await? {
            let request = StaticFieldValues { class: class.id, fields: vec![found.field.id] };
            absent = fields.vm.request(&request).await?.first().copied().unwrap_or(absent);
        }
    }
    let is_absent = second.is_null() || second.as_object().map(|it| it.id) == absent.as_object().map(|it| it.id);
    let values = if is_absent { vec![first] } else { vec![first, second] };
    let entries: Vec<Entry> = values.into_iter().map(|value| Entry { key: None, value }).collect();
    Ok(Some(Contents { size: entries.len(), is_map: false, layout: Layout::Values(entries) }))
}

async fn read_deque(fields: &ObjectFields<'_>) -> Result<Option<Contents>, JdwpError> {
    let Some([elements, head, tail]) = fields.read(["elements", "head", "tail"]).await? else { return Ok(None) };
    let (Some(elements), JdwpValue::Int(head), JdwpValue::Int(tail)) = (elements.as_object(), head, tail) else {
        return Ok(None);
    };
    let length = fields.vm.request(&ArrayLength { array: elements.id }).await?;
    let size = if length > 0 { tail.wrapping_sub(head).rem_euclid(length) } else { 0 };
    let layout = Layout::Array { array: elements.id, first: head };
    Ok(Some(Contents { size: usize::try_from(size).unwrap_or(0), is_map: false, layout }))
}
