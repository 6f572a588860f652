//! `src/config/vscode/attributes.md`: one table for each type of configuration, one column for each of its readers.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use devtether::config::{AttributeReader, AttributeUse, WINDOW};

use super::{DocumentedType, adapters_of};

const FILE: &str = "src/config/vscode/attributes.md";

/// The requests that a row is for, and its other cells.
type TableRow<'a> = (Vec<&'a str>, Vec<String>);

/// Asserts that the file has these tables; with `UPDATE_ATTRIBUTES` writes it.
pub fn hold(every: &DocumentedType, types: &[DocumentedType]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let now = written(every, types);
    if std::env::var_os("UPDATE_ATTRIBUTES").is_some() {
        return fs::write(path, now).unwrap();
    }
    let hint = "`UPDATE_ATTRIBUTES=1 cargo test --test protocol launch_attributes` writes it again";
    assert!(fs::read_to_string(path).unwrap_or_default() == now, "{FILE} is not as the code is; {hint}");
}

fn written(every: &DocumentedType, types: &[DocumentedType]) -> String {
    let mut text = String::from(
        "# What becomes of the attributes of launch.json\n\n\
         Written by `tests/protocol/launch_attributes`, and held to what tether says and to what the adapters receive. \
         The attributes are those that VS Code's debuggers document.\n\n\
         - **honoured**: tether acts on it, itself or by how it starts the adapter.\n\
         - **passed**: the adapter receives it as it is written, and acts on it.\n\
         - **no effect**: what it changes is not here.\n\
         - **noted**: it is not honoured, and a note of the launch names it, with its line and the reason; but not where it \
         has one of the values in brackets, which are what happens anyway.\n\
         - **refused**: another program would run without it, so the launch is an error that names it.\n\n\
         An attribute that is in no table is named in a note, too.\n",
    );
    for one in std::iter::once(every).chain(types) {
        write_type(&mut text, one);
    }
    text
}

fn write_type(text: &mut String, one: &DocumentedType) {
    let title = if one.kind == "*" { "Every type" } else { &one.kind };
    let readers = readers_of(&one.kind);
    let _ = writeln!(text, "\n## {title}\n\nSource: {}\n", one.source);
    let _ =
        writeln!(text, "| attribute | request | {} |\n|---|---|{}", readers.join(" | "), "---|".repeat(readers.len()));
    let mut rows: BTreeMap<&str, Vec<TableRow>> = BTreeMap::new();
    let mut counts = vec![BTreeMap::<&str, usize>::new(); readers.len()];
    for (request, names) in &one.requests {
        for name in names {
            let uses = readers.iter().map(|reader| use_by(reader, &one.kind, request, name));
            let uses: Vec<_> = uses.collect();
            for (count, (word, _)) in counts.iter_mut().zip(&uses) {
                *count.entry(word).or_default() += usize::from(!word.is_empty());
            }
            let cells = uses.into_iter().map(|(word, more)| format!("{word}{more}")).collect();
            add_row(rows.entry(name).or_default(), request, cells);
        }
    }
    for (name, (requests, cells)) in rows.iter().flat_map(|(name, rows)| rows.iter().map(move |row| (name, row))) {
        let _ = writeln!(text, "| `{name}` | {} | {} |", requests.join(", "), cells.join(" | "));
    }
    let count = |count: &BTreeMap<&str, usize>| {
        let words = count.iter().filter(|(_, count)| **count > 0);
        words.map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
    };
    let _ = writeln!(text, "| **all** | | {} |", counts.iter().map(count).collect::<Vec<_>>().join(" | "));
}

/// Adds the cells of a request, in the row of another request where no cell differs.
fn add_row<'a>(rows: &mut Vec<TableRow<'a>>, request: &'a str, cells: Vec<String>) {
    let is_same =
        |row: &[String]| row.iter().zip(&cells).all(|(one, other)| one == other || one.is_empty() || other.is_empty());
    match rows.iter_mut().find(|(_, row)| is_same(row)) {
        Some((requests, row)) => {
            requests.push(request);
            row.iter_mut().zip(cells).filter(|(one, _)| one.is_empty()).for_each(|(one, other)| *one = other);
        }
        None => rows.push((vec![request], cells)),
    }
}

/// The window, and the adapters in the order of preference.
fn readers_of(kind: &str) -> Vec<&'static str> {
    if kind == "*" {
        return vec![WINDOW, "debug sessions"];
    }
    let window = ["node", "chrome", "extensionHost"].contains(&kind).then_some(WINDOW);
    let mut adapters: Vec<&str> =
        ["launch", "attach"].iter().flat_map(|it| adapters_of(kind, it)).map(|it| it.name).collect();
    adapters.sort_by_key(|name| devtether::adapters::ADAPTERS.iter().position(|row| row.name == *name));
    adapters.dedup();
    window.into_iter().chain(adapters.into_iter().filter(|_| kind != "extensionHost")).collect()
}

/// What becomes of an attribute, in a word; and what is to be added. Empty where the reader does not get the request.
fn use_by(reader: &str, kind: &str, request: &str, name: &str) -> (&'static str, String) {
    let is_reader = match reader {
        WINDOW => request == "launch",
        "debug sessions" => true,
        adapter => adapters_of(kind, request).iter().any(|row| row.name == adapter),
    };
    if !is_reader {
        return ("", String::new());
    }
    let reader = AttributeReader { name: reader, kind, request };
    let usual: Vec<String> = reader.usual_values(name).iter().map(|value| format!("`{value}`")).collect();
    let usual = if usual.is_empty() { String::new() } else { format!(" ({})", usual.join(", ")) };
    match reader.use_of(name) {
        AttributeUse::Honoured => ("honoured", String::new()),
        AttributeUse::Passed => ("passed", String::new()),
        AttributeUse::NoEffect(why) => ("no effect", format!(": {why}")),
        AttributeUse::Noted(why) => ("noted", format!("{usual}: {why}")),
        AttributeUse::Refused(why) => ("refused", format!(": {why}")),
        AttributeUse::Unknown => panic!("{kind} {request}: no table has `{name}`"),
    }
}
