//! `cargo xtask graph`: the picture of the workspace's crates in the book, drawn from what cargo says.
//!
//! A crate is drawn below all crates that use it. An arrow that follows from others is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;
use xshell::{Shell, cmd};

/// The picture, from the top of the checkout.
pub const PICTURE: &str = "docs/src/crates.svg";

const BOX_WIDTH: usize = 128;
const BOX_HEIGHT: usize = 30;
const GAP: usize = 24;
const ROW: usize = 78;

/// Which crate uses which.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Draws the picture again.
pub fn write_picture(checkout: &Path) -> Result<()> {
    let path = checkout.join(PICTURE);
    std::fs::write(&path, draw(&read_graph(checkout)?)).with_context(|| format!("cannot write {}", path.display()))
}

/// The crates of the workspace that ship, and which they use.
fn read_graph(checkout: &Path) -> Result<Graph> {
    let sh = Shell::new()?;
    sh.change_dir(checkout);
    let metadata: Value =
        serde_json::from_str(&cmd!(sh, "cargo metadata --no-deps --format-version 1").quiet().read()?)?;
    let packages = metadata["packages"].as_array().context("cargo names no packages")?;
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let ours: BTreeSet<String> = packages.iter().map(name).filter(|name| name != "xtask").collect();
    let uses = |package: &Value| {
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let normal = dependencies.filter(|dependency| dependency["kind"].is_null()).map(name);
        normal.filter(|name| ours.contains(name)).collect()
    };
    Ok(packages.iter().filter(|it| ours.contains(&name(it))).map(|package| (name(package), uses(package))).collect())
}

/// All crates that one uses, directly or not.
fn reached(graph: &Graph, from: &str) -> BTreeSet<String> {
    let direct = graph.get(from).into_iter().flatten();
    direct.flat_map(|to| reached(graph, to).into_iter().chain([to.clone()])).collect()
}

/// How many crates lie below it, one above the other.
fn depth(graph: &Graph, name: &str) -> usize {
    graph.get(name).into_iter().flatten().map(|to| depth(graph, to) + 1).max().unwrap_or(0)
}

fn draw(graph: &Graph) -> String {
    let mut rows: BTreeMap<usize, Vec<&String>> = BTreeMap::new();
    for name in graph.keys() {
        rows.entry(depth(graph, name)).or_default().push(name);
    }
    let widest = rows.values().map(Vec::len).max().unwrap_or(1);
    let width = widest * (BOX_WIDTH + GAP) + GAP;
    let highest = rows.keys().last().copied().unwrap_or(0);
    let mut places = BTreeMap::new();
    for (row, names) in &rows {
        let used = names.len() * (BOX_WIDTH + GAP) - GAP;
        for (at, name) in names.iter().enumerate() {
            let x = (width - used) / 2 + at * (BOX_WIDTH + GAP);
            places.insert(*name, (x, GAP + (highest - row) * ROW));
        }
    }
    let height = GAP * 2 + highest * ROW + BOX_HEIGHT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>The crates of the workspace: each uses those below it that it points to</title>\n\
         <style>rect{{fill:#e8eef7;stroke:#5a7099}}text{{font:12px sans-serif;fill:#1b2a41;text-anchor:middle}}\
         line{{stroke:#8a94a6;marker-end:url(#tip)}}</style>\n\
         <marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
         <path d=\"M0 0L8 4L0 8z\" fill=\"#8a94a6\"/></marker>\n"
    );
    for (from, uses) in graph {
        let follows = |to: &String| uses.iter().any(|other| other != to && reached(graph, other).contains(to));
        for to in uses.iter().filter(|to| !follows(to)) {
            let ((x1, y1), (x2, y2)) = (places[from], places[to]);
            let middle = BOX_WIDTH / 2;
            let (x1, y1, x2) = (x1 + middle, y1 + BOX_HEIGHT, x2 + middle);
            let _ = writeln!(svg, "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>");
        }
    }
    for (name, (x, y)) in &places {
        let (middle, base) = (x + BOX_WIDTH / 2, y + 19);
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"4\"/>\
             <text x=\"{middle}\" y=\"{base}\">{name}</text>"
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(uses: &[(&str, &[&str])]) -> Graph {
        uses.iter().map(|(name, to)| ((*name).to_owned(), to.iter().map(|to| (*to).to_owned()).collect())).collect()
    }

    #[test]
    fn a_crate_is_below_its_users_and_arrows_that_follow_are_left_out() {
        let graph = graph(&[("top", &["middle", "base"]), ("middle", &["base"]), ("base", &[])]);
        assert_eq!(["top", "middle", "base"].map(|name| depth(&graph, name)), [2, 1, 0]);
        assert_eq!(draw(&graph).matches("<line ").count(), 2);
    }

    #[test]
    fn the_picture_in_the_book_is_that_of_the_workspace() {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let drawn = draw(&read_graph(checkout).unwrap());
        let picture = std::fs::read_to_string(checkout.join(PICTURE)).unwrap();
        assert!(drawn == picture, "`cargo xtask graph` draws {PICTURE} again");
    }
}
