//! What is on a heap by class: counts and sizes, and what has grown since the snapshot before.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use tether_base::clipped_text::clip_bytes;

const MAX_CLASSES: usize = 12;
const MAX_NAME: usize = 100;

/// A heap snapshot as V8 writes it, as far as it is summed up.
#[derive(Deserialize)]
struct HeapSnapshot {
    snapshot: SnapshotHeader,
    nodes: Vec<u64>,
    #[serde(rename = "edges")]
    _edges: IgnoredAny,
    strings: Vec<String>,
}

#[derive(Deserialize)]
struct SnapshotHeader {
    meta: SnapshotMeta,
}

#[derive(Deserialize)]
struct SnapshotMeta {
    node_fields: Vec<String>,
    node_types: Vec<serde_json::Value>,
}

/// Counts and bytes of the objects of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ClassSize {
    count: i64,
    bytes: i64,
}

/// The classes of a heap.
#[derive(Clone, Debug, Default)]
pub struct HeapSummary {
    classes: HashMap<String, ClassSize>,
}

impl HeapSummary {
    /// Reads a snapshot. Errors: it is none.
    pub fn read(text: &str) -> Result<HeapSummary, String> {
        let snapshot: HeapSnapshot = serde_json::from_str(text).map_err(|cause| cause.to_string())?;
        let meta = &snapshot.snapshot.meta;
        let field = |name: &str| {
            meta.node_fields.iter().position(|it| it == name).ok_or_else(|| format!("its nodes have no {name}"))
        };
        let (kind, name, size) = (field("type")?, field("name")?, field("self_size")?);
        let kinds: Vec<&str> = meta
            .node_types
            .get(kind)
            .and_then(|it| it.as_array())
            .into_iter()
            .flatten()
            .filter_map(|it| it.as_str())
            .collect();
        let mut summary = HeapSummary::default();
        for node in snapshot.nodes.chunks_exact(meta.node_fields.len().max(1)) {
            let kind = kinds.get(node[kind] as usize).copied().unwrap_or_default();
            let class = match kind {
                "object" | "native" => {
                    let name = snapshot.strings.get(node[name] as usize).map_or("", String::as_str);
                    clip_bytes(name, MAX_NAME)
                }
                other => format!("({other})"),
            };
            let class = summary.classes.entry(class).or_default();
            class.count += 1;
            class.bytes += i64::try_from(node[size]).unwrap_or_default();
        }
        Ok(summary)
    }

    /// The largest classes; with the snapshot before, also those that have grown most.
    pub fn describe(&self, before: Option<&HeapSummary>) -> Vec<String> {
        let total: i64 = self.classes.values().map(|it| it.bytes).sum();
        let count: i64 = self.classes.values().map(|it| it.count).sum();
        let mut lines = vec![format!("{} in {count} objects; by class:", kib(total))];
        let mut largest: Vec<_> = self.classes.iter().collect();
        largest.sort_by_key(|(name, size)| (-size.bytes, (*name).clone()));
        let line = |name: &str, size: &ClassSize| format!("{} in {} {name:?}", kib(size.bytes), size.count);
        lines.extend(largest.iter().take(MAX_CLASSES).map(|(name, size)| line(name, size)));
        let Some(before) = before else { return lines };
        let growth = |(name, now): (&String, &ClassSize)| {
            let then = before.classes.get(name).copied().unwrap_or_default();
            (name.clone(), ClassSize { count: now.count - then.count, bytes: now.bytes - then.bytes })
        };
        let mut grown: Vec<(String, ClassSize)> =
            self.classes.iter().map(growth).filter(|(_, it)| it.bytes > 0).collect();
        grown.sort_by_key(|(name, size)| (-size.bytes, name.clone()));
        let before: i64 = before.classes.values().map(|it| it.bytes).sum();
        lines.push(format!("since the snapshot before ({}), grown most:", kib(before)));
        lines.extend(grown.iter().take(MAX_CLASSES).map(|(name, size)| format!("+{}", line(name, size))));
        lines
    }
}

fn kib(bytes: i64) -> String {
    format!("{} KiB", bytes / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(nodes: &[[u64; 3]]) -> HeapSummary {
        let nodes: Vec<u64> = nodes.iter().flatten().copied().collect();
        let text = serde_json::json!({
            "snapshot": {"meta": {"node_fields": ["type", "name", "self_size"], "node_types": [["object", "string"], "string", "number"]}},
            "nodes": nodes, "edges": [1, 2], "strings": ["Cart", "Item"]
        });
        HeapSummary::read(&text.to_string()).unwrap()
    }

    #[test]
    fn classes_are_summed_up_and_their_growth_is_found() {
        let before = snapshot(&[[0, 0, 2048], [1, 0, 1024]]);
        let after = snapshot(&[[0, 0, 2048], [0, 1, 4096], [0, 1, 4096], [1, 0, 1024]]);
        assert_eq!(
            before.describe(None),
            ["3 KiB in 2 objects; by class:", "2 KiB in 1 \"Cart\"", "1 KiB in 1 \"(string)\""]
        );
        let lines = after.describe(Some(&before));
        assert_eq!(
            lines[lines.len() - 2..],
            ["since the snapshot before (3 KiB), grown most:", "+8 KiB in 2 \"Item\""]
        );
        assert!(HeapSummary::read("{}").is_err());
    }
}
