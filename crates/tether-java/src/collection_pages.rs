//! The elements of a collection or a map, page by page, by the way in which they are stored.

use std::sync::Arc;

use futures_util::future::try_join_all;
use tether_jdwp::JdwpError;
use tether_jdwp::commands::objects::{ArrayElements, ArrayLength, FieldValues, StringValue};
use tether_jdwp::values::{JdwpValue, ObjectId};

use super::java_vm::{JavaClass, JavaVm};

/// How many elements of an array are read at once.
const CHUNK: i32 = 512;
/// How deep a tree may be.
const MAX_DEPTH: usize = 64;

/// What a collection or a map has, and how it is read.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    pub size: usize,
    /// Whether each element is a key and a value.
    pub is_map: bool,
    pub layout: Layout,
}

/// One element; of a map, its key and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry {
    pub key: Option<JdwpValue>,
    pub value: JdwpValue,
}

/// Where the elements are.
#[derive(Clone, Debug)]
pub(crate) enum Layout {
    /// The values themselves.
    Values(Vec<Entry>),
    /// Elements of an array from `first` on, which wrap around at its end.
    Array { array: ObjectId, first: i32 },
    /// Elements of an array that are not `null`.
    Sparse { array: ObjectId },
    /// Keys and values in turn, `null` where there are none.
    Alternating { array: ObjectId },
    /// A hash table of linked nodes: the names of a node's fields.
    Buckets { table: ObjectId, fields: NodeFields },
    /// Linked nodes.
    Linked { first: ObjectId, fields: NodeFields },
    /// A red-black tree.
    Tree { root: ObjectId },
}

/// The fields of a node: its key (a set shows that), its value, the next node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeFields {
    key: Option<&'static str>,
    value: &'static str,
    next: &'static str,
}

/// Of `HashMap` and `Hashtable`.
pub(crate) const MAP_NODE: NodeFields = NodeFields { key: Some("key"), value: "value", next: "next" };
/// Of `LinkedHashMap`, in the order of insertion.
pub(crate) const LINKED_MAP_NODE: NodeFields = NodeFields { key: Some("key"), value: "value", next: "after" };
/// Of `ConcurrentHashMap`.
pub(crate) const CONCURRENT_NODE: NodeFields = NodeFields { key: Some("key"), value: "val", next: "next" };
/// Of `LinkedList`.
pub(crate) const LIST_NODE: NodeFields = NodeFields { key: None, value: "item", next: "next" };

/// Reads fields of one object by name.
pub(crate) struct ObjectFields<'a> {
    pub vm: &'a JavaVm,
    pub object: ObjectId,
    pub class: &'a Arc<JavaClass>,
}

impl ObjectFields<'_> {
    /// The values of these fields; `None` if one of them is not there.
    pub(crate) async fn read<const N: usize>(&self, names: [&str; N]) -> Result<Option<[JdwpValue; N]>, JdwpError> {
        let mut fields = Vec::with_capacity(N);
        for name in names {
            let Some(found) = self.vm.find_field(self.class, name).await? else { return Ok(None) };
            fields.push(found.field.id);
        }
        let values = self.vm.request(&FieldValues { object: self.object, fields }).await?;
        Ok(values.try_into().ok())
    }

    /// The object in a field; `None` for `null`, too.
    pub(crate) async fn read_object(&self, name: &str) -> Result<Option<ObjectId>, JdwpError> {
        let value = self.read([name]).await?;
        Ok(value.and_then(|[value]| value.as_object()).map(|object| object.id))
    }

    /// The text in a field; `None` for `null`, too.
    pub(crate) async fn read_text(&self, name: &str) -> Result<Option<String>, JdwpError> {
        match self.read_object(name).await? {
            Some(string) => self.vm.request(&StringValue { string }).await.map(Some),
            None => Ok(None),
        }
    }

    /// A count in a field; 0 if there is none.
    pub(crate) async fn read_size(&self, name: &str) -> Result<usize, JdwpError> {
        match self.read([name]).await? {
            Some([JdwpValue::Int(size)]) => Ok(usize::try_from(size).unwrap_or(0)),
            _ => Ok(0),
        }
    }
}

impl Contents {
    /// Elements from `start` on, in the order in which an iterator returns them.
    pub(crate) async fn read_page(&self, vm: &JavaVm, start: usize, count: usize) -> Result<Vec<Entry>, JdwpError> {
        let count = count.min(self.size.saturating_sub(start));
        let mut page = Page { start, count, passed: 0, entries: Vec::new() };
        match &self.layout {
            Layout::Values(values) => values.iter().for_each(|entry| page.push(*entry)),
            Layout::Array { array, first } => return read_ring(vm, *array, *first, start, count).await,
            Layout::Sparse { array } => {
                let mut chunks = ArrayChunks::open(vm, *array).await?;
                while let Some(chunk) = chunks.next_chunk(&page).await? {
                    let present = chunk.into_iter().filter(|it| !it.is_null());
                    present.for_each(|value| page.push(Entry { key: None, value }));
                }
            }
            Layout::Alternating { array } => {
                let mut chunks = ArrayChunks::open(vm, *array).await?;
                while let Some(chunk) = chunks.next_chunk(&page).await? {
                    let (pairs, _) = chunk.as_chunks::<2>();
                    for [key, value] in pairs.iter().filter(|[key, _]| !key.is_null()) {
                        page.push(Entry { key: Some(*key), value: *value });
                    }
                }
            }
            Layout::Buckets { table, fields } => {
                let mut chunks = ArrayChunks::open(vm, *table).await?;
                while let Some(chunk) = chunks.next_chunk(&page).await? {
                    read_buckets(vm, &chunk, *fields, &mut page).await?;
                }
            }
            Layout::Linked { first, fields } => read_chain(vm, *first, *fields, &mut page).await?,
            Layout::Tree { root } => read_tree(vm, *root, &mut page).await?,
        }
        // The elements of a set are the keys of its map.
        let as_element = |entry: Entry| Entry { key: None, value: entry.key.unwrap_or(entry.value) };
        let entries = page.entries.into_iter();
        Ok(if self.is_map { entries.collect() } else { entries.map(as_element).collect() })
    }
}

/// The elements that are wanted of all that pass.
struct Page {
    start: usize,
    count: usize,
    passed: usize,
    entries: Vec<Entry>,
}

impl Page {
    fn push(&mut self, entry: Entry) {
        if self.passed >= self.start && !self.is_full() {
            self.entries.push(entry);
        }
        self.passed = self.passed.saturating_add(1);
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= self.count
    }
}

async fn read_ring(
    vm: &JavaVm,
    array: ObjectId,
    first: i32,
    start: usize,
    count: usize,
) -> Result<Vec<Entry>, JdwpError> {
    let length = vm.request(&ArrayLength { array }).await?;
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let mut entries = Vec::new();
    while entries.len() < count && length > 0 {
        let after_first = i64::try_from(start.saturating_add(entries.len())).unwrap_or(i64::MAX);
        let at = i64::from(first).saturating_add(after_first).checked_rem_euclid(i64::from(length)).unwrap_or(0) as i32;
        let left = number(count.saturating_sub(entries.len()));
        let count = left.min(length.saturating_sub(at)).min(CHUNK);
        let read = vm.request(&ArrayElements { array, first: at, count }).await?.0;
        if read.is_empty() {
            break;
        }
        entries.extend(read.into_iter().map(|value| Entry { key: None, value }));
    }
    Ok(entries)
}

/// The elements of an array, part by part, until a page is full.
struct ArrayChunks<'a> {
    vm: &'a JavaVm,
    array: ObjectId,
    length: i32,
    next: i32,
}

impl ArrayChunks<'_> {
    async fn open(vm: &JavaVm, array: ObjectId) -> Result<ArrayChunks<'_>, JdwpError> {
        Ok(ArrayChunks { vm, array, length: vm.request(&ArrayLength { array }).await?, next: 0 })
    }

    async fn next_chunk(&mut self, page: &Page) -> Result<Option<Vec<JdwpValue>>, JdwpError> {
        if self.next >= self.length || page.is_full() {
            return Ok(None);
        }
        let (array, first, count) = (self.array, self.next, CHUNK.min(self.length.saturating_sub(self.next)));
        self.next = self.next.saturating_add(count);
        Ok(Some(self.vm.request(&ArrayElements { array, first, count }).await?.0))
    }
}

/// The nodes of a part of a hash table: all first ones at once, then those that are linked to them.
async fn read_buckets(
    vm: &JavaVm,
    buckets: &[JdwpValue],
    fields: NodeFields,
    page: &mut Page,
) -> Result<(), JdwpError> {
    let heads: Vec<ObjectId> = buckets.iter().filter_map(|value| value.as_object()).map(|head| head.id).collect();
    // All together are one round trip.
    let heads = try_join_all(heads.into_iter().map(|head| read_node(vm, head, fields))).await?;
    for (entry, next) in heads.into_iter().flatten() {
        page.push(entry);
        if let Some(next) = next {
            read_chain(vm, next, fields, page).await?;
        }
        if page.is_full() {
            break;
        }
    }
    Ok(())
}

async fn read_chain(vm: &JavaVm, first: ObjectId, fields: NodeFields, page: &mut Page) -> Result<(), JdwpError> {
    let mut next = Some(first);
    // A program may link nodes in a circle: no more of them are followed than a page needs.
    let most = page.passed.saturating_add(page.start).saturating_add(page.count).saturating_add(1);
    while let Some(node) = next.filter(|_| !page.is_full() && page.passed < most) {
        let Some((entry, following)) = read_node(vm, node, fields).await? else { break };
        page.push(entry);
        next = following;
    }
    Ok(())
}

/// An entry and the next node; `None` for a node of another form.
async fn read_node(
    vm: &JavaVm,
    node: ObjectId,
    fields: NodeFields,
) -> Result<Option<(Entry, Option<ObjectId>)>, JdwpError> {
    let class = vm.class_of(node).await?;
    let read = ObjectFields { vm, object: node, class: &class };
    let names = [fields.key.unwrap_or(fields.value), fields.value, fields.next];
    let Some([key, value, next]) = read.read(names).await? else { return Ok(None) };
    if key.is_null() && fields.value == CONCURRENT_NODE.value {
        // A bucket that has become a tree: its nodes are linked, too.
        let first = if class.signature.ends_with("$TreeBin;") { read.read_object("first").await? } else { None };
        let Some(first) = first else { return Ok(None) };
        let read = ObjectFields { vm, object: first, class: &vm.class_of(first).await? };
        let Some([key, value, next]) = read.read(names).await? else { return Ok(None) };
        return Ok(Some((Entry { key: Some(key), value }, next.as_object().map(|it| it.id))));
    }
    let entry = Entry { key: fields.key.map(|_| key), value };
    Ok(Some((entry, next.as_object().map(|it| it.id))))
}

async fn read_tree(vm: &JavaVm, root: ObjectId, page: &mut Page) -> Result<(), JdwpError> {
    let mut path: Vec<(Entry, Option<ObjectId>)> = Vec::new();
    let mut next = Some(root);
    while !page.is_full() {
        if let Some(node) = next {
            if path.len() > MAX_DEPTH {
                return Ok(());
            }
            let class = vm.class_of(node).await?;
            let read = ObjectFields { vm, object: node, class: &class };
            let names = ["key", "value", "left", "right"];
            let Some([key, value, left, right]) = read.read(names).await? else { return Ok(()) };
            path.push((Entry { key: Some(key), value }, right.as_object().map(|it| it.id)));
            next = left.as_object().map(|it| it.id);
        } else if let Some((entry, right)) = path.pop() {
            page.push(entry);
            next = right;
        } else {
            return Ok(());
        }
    }
    Ok(())
}
