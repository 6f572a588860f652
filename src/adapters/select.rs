//! Selects the adapters for a target: by name, by a type of launch.json, by language, by the program itself.
//!
//! Does not depend on how any adapter works.

use std::path::Path;

use tether_base::bounded_file;
use tether_base::error::{Error, ErrorKind, Result};
use tether_node::BUN_INSPECTOR;

use super::adapter::Adapter;
use super::discovery::{AdapterSearch, FoundAdapter};
use super::rows::ADAPTERS;

/// How much of a program is read to identify it, in bytes: Go's linker puts its note within these.
const HEAD_BYTES: u64 = 32 * 1024;

/// What is known about a target; the first field that names something decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdapterQuery<'a> {
    /// The name of an adapter.
    pub adapter: Option<&'a str>,
    /// The `type` of a configuration of launch.json.
    pub kind: Option<&'a str>,
    /// Whether it is running already.
    pub is_attach: bool,
    /// Its name, in any letter case.
    pub language: Option<&'a str>,
    /// A source file, an executable or a folder.
    pub program: Option<&'a Path>,
}

/// The adapters that can debug it, the preferred one first; at least one. Errors: [`ErrorKind::Usage`], with the known
/// names.
pub fn select_adapters(query: AdapterQuery<'_>) -> Result<Vec<&'static Adapter>> {
    let (what, hint, rows) = match query {
        AdapterQuery { adapter: Some(name), .. } => {
            let names = ADAPTERS.iter().map(|row| row.name).collect();
            (format!("there is no adapter {name:?}"), list_names("adapters", names), rows_where(|row| row.name == name))
        }
        AdapterQuery { kind: Some(kind), is_attach, .. } => {
            let mut types: Vec<&str> = ADAPTERS.iter().flat_map(|row| row.types).copied().collect();
            types.sort_unstable();
            types.dedup();
            let why = if kind == "bun" { format!(": Bun runs it, {BUN_INSPECTOR}") } else { String::new() };
            let what = format!("no adapter debugs a configuration of type {kind:?}{why}");
            (what, list_names("types", types), rows_where(|row| debugs_type(row, kind, is_attach)))
        }
        AdapterQuery { language: Some(language), .. } => {
            let lower = language.to_lowercase();
            let what = format!("no adapter debugs {language:?}");
            (what, list_languages(), rows_where(|row| row.languages.contains(&lower.as_str())))
        }
        AdapterQuery { program: Some(program), .. } => select_by_program(program)?,
        AdapterQuery { .. } => {
            let what = "cannot select an adapter: a port or a process does not show its language";
            (what.to_owned(), format!("name it, as in `--language python`; {}", list_languages()), Vec::new())
        }
    };
    if rows.is_empty() { Err(Error::usage(what).hint(hint)) } else { Ok(rows) }
}

/// The preferred adapter that is installed. Errors: those of [`select_adapters`]; or none is installed, with the
/// install command of each.
pub fn locate_adapter(query: AdapterQuery<'_>, search: &AdapterSearch) -> Result<(&'static Adapter, FoundAdapter)> {
    let mut missing: Option<Error> = None;
    for row in select_adapters(query)? {
        match (row.find)(search) {
            Ok(found) => return Ok((row, found)),
            Err(error) => {
                missing = Some(match missing {
                    None => error,
                    Some(first) => error.hints.into_iter().fold(first, Error::hint),
                });
            }
        }
    }
    Err(missing.unwrap_or_else(|| Error::new(ErrorKind::MissingTool, "there is no adapter for this")))
}

fn debugs_type(row: &Adapter, kind: &str, is_attach: bool) -> bool {
    row.types.contains(&kind) || (is_attach && row.attach_types.contains(&kind))
}

fn rows_where(fits: impl Fn(&Adapter) -> bool) -> Vec<&'static Adapter> {
    ADAPTERS.iter().filter(|row| fits(row)).collect()
}

fn list_names(what: &str, names: Vec<&str>) -> String {
    format!("the {what} are: {}", names.join(", "))
}

fn list_languages() -> String {
    let mut names: Vec<&str> = ADAPTERS.iter().flat_map(|row| row.languages).copied().collect();
    names.sort_unstable();
    names.dedup();
    list_names("languages", names)
}

type Selection = (String, String, Vec<&'static Adapter>);

fn select_by_program(program: &Path) -> Result<Selection> {
    let extension = program.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let by_name = extension.as_deref().map(|extension| rows_where(|row| row.extensions.contains(&extension)));
    if let Some(rows) = by_name.filter(|rows| !rows.is_empty()) {
        return Ok((String::new(), String::new(), rows));
    }
    let language = if program.is_dir() { language_of_folder(program) } else { language_of_head(&read_head(program)?) };
    let what = match extension {
        Some(extension) if language.is_none() => format!("no adapter debugs .{extension} ({})", program.display()),
        _ => format!("cannot identify the language of {}", program.display()),
    };
    let rows = language.map(|language| rows_where(|row| row.languages.contains(&language))).unwrap_or_default();
    Ok((what, format!("name its language; {}", list_languages()), rows))
}

fn read_head(program: &Path) -> Result<Vec<u8>> {
    let cannot = |cause: std::io::Error| {
        let kind = if cause.kind() == std::io::ErrorKind::NotFound { ErrorKind::NotFound } else { ErrorKind::Other };
        let cause = if kind == ErrorKind::NotFound { "there is no such file".to_owned() } else { cause.to_string() };
        Error::new(kind, format!("cannot debug {}", program.display())).because(cause)
    };
    bounded_file::read_start(program, HEAD_BYTES).map_err(cannot)
}

/// The language of the package in a folder.
fn language_of_folder(folder: &Path) -> Option<&'static str> {
    let has = |fits: &dyn Fn(&str) -> bool| {
        std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| fits(&entry.file_name().to_string_lossy()))
    };
    match () {
        () if has(&|name| name == "__main__.py") => Some("python"),
        () if has(&|name| name.ends_with(".go")) => Some("go"),
        () => None,
    }
}

/// The language by the first bytes of a program: its executable format, or the interpreter in its first line.
fn language_of_head(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"\x7fELF") || head.starts_with(b"\xcf\xfa\xed\xfe") {
        let go = [&b"\xff Go build ID:"[..], b"Go\0\0"].iter().any(|note| contains_bytes(head, note));
        return Some(if go { "go" } else { "c++" });
    }
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let words = line.split([' ', '/', '\t', '\r']);
    let known = |word: &str| match word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "python" | "pypy" => Some("python"),
        "node" | "nodejs" => Some("javascript"),
        "ruby" => Some("ruby"),
        _ => None,
    };
    words.filter_map(known).next_back()
}

fn contains_bytes(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|window| window == part)
}
