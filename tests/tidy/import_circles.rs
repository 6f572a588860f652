//! Import circles between the files of the crate: none, beside the listed natural ones.
//!
//! A `mod` file is a file too: it may declare and re-export its children, and must not use them while they use it.

use std::collections::{BTreeMap, BTreeSet};

use crate::crate_items::{ReExport, items_of};
use crate::paths::{below_crate, mentions, module_of};
use crate::sources::File;

/// Circles that may stay, and why; each must still be there.
const NATURAL: &[(&[&str], &str)] = &[];

/// Which modules use which. Re-exports are followed to where an item is defined.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Complains of every circle that is not listed, and of every listed one that is gone.
pub fn circles(files: &[File]) -> Vec<String> {
    let graph = match graph_of(files) {
        Ok(graph) => graph,
        Err(unreadable) => return vec![unreadable],
    };
    let found: Vec<BTreeSet<String>> = components(&graph);
    println!("import circles: {}", found.len());
    let is_natural = |circle: &BTreeSet<String>| NATURAL.iter().any(|(files, _)| circle.iter().eq(files.iter()));
    let mut complaints = Vec::new();
    for circle in found.iter().filter(|it| !is_natural(it)) {
        let edges =
            circle.iter().flat_map(|from| graph[from].intersection(circle).map(move |to| format!("{from} → {to}")));
        complaints.push(format!("import circle: {}", edges.collect::<Vec<_>>().join(", ")));
    }
    for (files, _) in NATURAL.iter().filter(|(files, _)| !found.iter().any(|it| it.iter().eq(files.iter()))) {
        complaints.push(format!("no import circle any more, take it off the list: {}", files.join(", ")));
    }
    complaints
}

fn graph_of(files: &[File]) -> Result<Graph, String> {
    let modules: BTreeSet<String> = files.iter().map(|file| module_of(&file.path).join("::")).collect();
    let mut exports: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for file in files {
        for ReExport { module, name, origin, .. } in items_of(file)?.re_exports {
            exports.insert((module.join("::"), name), origin);
        }
    }
    let mut graph = Graph::new();
    for file in files {
        let module = module_of(&file.path);
        let own = module.join("::");
        let uses = graph.entry(own.clone()).or_default();
        for mention in mentions(file)?.iter().filter(|it| !it.is_test && !it.is_re_export) {
            let path = below_crate(&module, mention.segments.clone());
            let inner = mention
                .segments
                .first()
                .is_some_and(|first| modules.contains(&[&module[..], std::slice::from_ref(first)].concat().join("::")));
            if mention.segments.first().is_some_and(|it| it == "crate") || inner {
                uses.extend(defining_module(&path, &modules, &exports).filter(|it| *it != own));
            }
        }
    }
    Ok(graph)
}

/// The module in which the item at `path` is defined.
fn defining_module(
    path: &[String],
    modules: &BTreeSet<String>,
    exports: &BTreeMap<(String, String), Vec<String>>,
) -> Option<String> {
    let mut path = path.to_vec();
    // A re-export of a re-export ends somewhere; a wrong program must not hang the rule.
    for _ in 0..8 {
        let depth = (0..=path.len()).rev().find(|depth| modules.contains(&path[..*depth].join("::")))?;
        let module = path[..depth].join("::");
        let next = path.get(depth).and_then(|name| exports.get(&(module.clone(), name.clone())));
        match next {
            Some(origin) => path = [&origin[..], &path[depth + 1..]].concat(),
            None => return Some(module),
        }
    }
    None
}

/// The strongly connected components of more than one module.
fn components(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reach: BTreeMap<&String, BTreeSet<&String>> = graph.keys().map(|from| (from, reachable(graph, from))).collect();
    let mut found: BTreeSet<BTreeSet<String>> = BTreeSet::new();
    for (from, to) in &reach {
        if to.contains(from) {
            found.insert(
                to.iter()
                    .filter(|it| reach.get(**it).is_some_and(|back| back.contains(from)))
                    .map(|it| (*it).clone())
                    .collect(),
            );
        }
    }
    found.into_iter().collect()
}

/// Every module that `from` uses, directly or through others.
fn reachable<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a String> {
    let mut open: Vec<&String> = graph.get(from).into_iter().flatten().collect();
    let mut reached = BTreeSet::new();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(graph.get(next).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], holds: bool) {
        let files: Vec<File> = files.iter().map(|(path, text)| File::of(path, text)).collect();
        let found = circles(&files);
        assert_eq!(found.is_empty(), holds, "{found:?}");
    }

    #[test]
    fn a_circle_is_found_through_re_exports_and_functions() {
        let parent = ("src/wire/mod.rs", "mod frames; mod rpc; pub use frames::Frame;");
        check(&[parent, ("src/wire/frames.rs", ""), ("src/wire/rpc.rs", "use super::Frame;")], true);
        check(
            &[parent, ("src/wire/frames.rs", "use super::rpc::Peer;"), ("src/wire/rpc.rs", "use super::Frame;")],
            false,
        );
        check(
            &[
                parent,
                ("src/wire/frames.rs", "fn f() { super::rpc::send() }"),
                ("src/wire/rpc.rs", "use crate::wire::Frame;"),
            ],
            false,
        );
        let using = ("src/wire/mod.rs", "mod frames; pub struct Limit; fn f() { frames::read() }");
        check(&[using, ("src/wire/frames.rs", "use super::Limit;")], false);
        check(&[using, ("src/wire/frames.rs", "#[cfg(test)] mod tests { use super::super::Limit; }")], true);
    }
}
