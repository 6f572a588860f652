//! The layer table: which module may use which, and which re-exports may cross modules.
//!
//! The modules and the reasons are those of the design. A re-export of another module's item would let its users reach
//! around the table, so each one is listed with its reason.

use crate::crate_items::{ReExport, items_of};
use crate::paths::{Mention, mentions, module_of};
use crate::sources::File;

/// What a module may use besides itself. A path such as `supervisor::connect` allows only that part of a module.
struct Row {
    /// A folder or file of `src/`, or a part of one; the most precise row counts.
    module: &'static str,
    may: &'static [&'static str],
}

const fn row(module: &'static str, may: &'static [&'static str]) -> Row {
    Row { module, may }
}

const TABLE: &[Row] = &[
    row("frontends", &["api", "wire", "supervisor::connect", "config", "tools", "doctor", "error"]),
    // Serves our own adapters to an editor.
    row("frontends::cli::dap_adapters", &["adapters", "dap", "error"]),
    // Reads the facts of every module; only front ends use it.
    row(
        "doctor",
        &[
            "api",
            "supervisor::connect",
            "supervisor::deleted_workspaces",
            "supervisor::lock",
            "window",
            "changes",
            // Which programs keep running on purpose after their session.
            "debug::host::store",
            // Whether the stored breakpoints can be read.
            "debug::breakpoints",
            "adapters",
            "process",
            "config",
            "tools",
            "workspace_dir",
            "workspace_programs",
            "error",
        ],
    ),
    row(
        "supervisor",
        &["api", "wire", "window", "debug", "config", "task_runner", "background_tasks", "process", "ring", "error"],
    ),
    row(
        "window",
        &[
            "changes",
            "cdp",
            "process",
            "config",
            "task_runner",
            "background_tasks",
            "tools",
            "workspace_dir",
            "ring",
            "error",
        ],
    ),
    row("debug", &["adapters", "dap", "process", "workspace_dir", "workspace_programs", "ring", "error"]),
    row("adapters", &["dap", "cdp", "jdwp", "process", "tools", "workspace_programs", "error"]),
    row("dap", &["wire", "error"]),
    row("api", &["error"]),
    // One reader and one matcher of ignore files.
    row("config", &["changes::GitignoreChain", "changes::IgnoreRules", "workspace_programs", "error"]),
    row("task_runner", &["config", "background_tasks", "process", "error"]),
    row("background_tasks", &["process", "workspace_dir", "error"]),
    row("tools", &["config", "process", "error"]),
    row("wire", &["error"]),
    // Every connection to a debuggee uses the low-latency TCP stream.
    row("cdp", &["wire", "error"]),
    row("jdwp", &["wire", "error"]),
    row("changes", &["error"]),
    row("process", &["error"]),
    row("workspace_dir", &["error"]),
    row("workspace_programs", &[]),
    row("ring", &["error"]),
    row("error", &[]),
    row("secret_values", &["error"]),
    row("bounded_file", &[]),
    row("clipped_text", &[]),
    row("clock", &[]),
    row("file_owner", &[]),
    row("display_text", &[]),
    row("path_lookup", &[]),
    row("sync", &[]),
];

/// Small leaf modules that every module may use.
const LEAVES: [&str; 8] =
    ["bounded_file", "clipped_text", "clock", "sync", "file_owner", "display_text", "path_lookup", "secret_values"];

/// Re-exports of another module's items: the file, the item or module, and why.
const RE_EXPORTS: &[(&str, &str, &str)] = &[
    ("src/debug/mod.rs", "adapters::Address", "where to attach is part of a request for a session"),
    ("src/debug/mod.rs", "adapters::DebugTarget", "what to debug is part of a request for a session"),
    ("src/debug/mod.rs", "adapters::DebugTargetKind", "what to debug is part of a request for a session"),
    ("src/debug/inspect/variables.rs", "dap::types::DapVariable", "the supervisor converts variables to the API's"),
    ("src/tools/mod.rs", "path_lookup::find_on_path", "finding outside programs is what the module is for"),
    ("src/tools/mod.rs", "path_lookup::is_program", "finding outside programs is what the module is for"),
    ("src/window/mod.rs", "changes", "what has changed is part of the window's status"),
];

/// The roots of the crate may use every module.
const ROOTS: [&str; 2] = ["src/main.rs", "src/lib.rs"];

pub fn complaints(file: &File) -> Vec<String> {
    if ROOTS.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let place = file.path.trim_start_matches("src/").trim_end_matches(".rs").replace('/', "::");
    let Some(row) = row_of(&place) else {
        return vec![format!("{}: no row for this module in the layer table (tests/tidy/layers.rs)", file.path)];
    };
    let own = row.module.split("::").next().unwrap_or_default();
    match (mentions(file), crossing_re_exports(file, own)) {
        (Ok(found), Ok(re_exports)) => {
            found.iter().filter_map(|mention| complaint(file, row, mention)).chain(re_exports).collect()
        }
        (Err(unreadable), _) | (_, Err(unreadable)) => vec![unreadable],
    }
}

/// Rows of the table, and of what they allow, whose module has no file.
pub fn missing_modules(files: &[File]) -> Vec<String> {
    let existing: Vec<String> = files.iter().map(|file| module_of(&file.path).join("::")).collect();
    let named = TABLE.iter().flat_map(|row| row.may.iter().copied().chain([row.module]));
    // An allowed item: the module that declares it counts.
    let module_of_item = |path: &'static str| match path.rsplit_once("::") {
        Some((module, item)) if item.starts_with(char::is_uppercase) => module,
        _ => path,
    };
    let missing = named.map(module_of_item).filter(|module| !existing.iter().any(|it| is_within(it, module)));
    missing.map(|module| format!("`{module}` of the layer table has no file in src/")).collect()
}

/// Complains of `pub use` of another top-level module's item that is not listed.
fn crossing_re_exports(file: &File, own: &str) -> Result<Vec<String>, String> {
    let crossing = items_of(file)?.re_exports.into_iter().filter(|it| it.origin.first().is_some_and(|to| to != own));
    let is_of_the_crate =
        |it: &ReExport| TABLE.iter().any(|row| it.origin.first().is_some_and(|to| is_within(row.module, to)));
    let unlisted = crossing.filter(is_of_the_crate).filter(|it| {
        let origin = it.origin.join("::");
        !RE_EXPORTS.iter().any(|(path, allowed, _)| *path == file.path && is_within(&origin, allowed))
    });
    let line = |it: ReExport| {
        format!(
            "{}:{}: re-exports `{}`, which lets others reach around the layer table",
            file.path,
            it.line,
            it.origin.join("::")
        )
    };
    Ok(unlisted.map(line).collect())
}

fn row_of(place: &str) -> Option<&'static Row> {
    TABLE.iter().filter(|row| is_within(place, row.module)).max_by_key(|row| row.module.len())
}

fn complaint(file: &File, row: &Row, mention: &Mention) -> Option<String> {
    let (first, rest) = mention.segments.split_first()?;
    let target = rest.join("::");
    let own = row.module.split("::").next()?;
    let allowed =
        first != "crate" || [&[own], &LEAVES[..], row.may].concat().iter().any(|open| is_within(&target, open));
    let File { path, .. } = file;
    (!allowed).then(|| {
        format!("{path}:{}: `{}` may not use `{target}`; it may use: {}", mention.line, row.module, row.may.join(", "))
    })
}

/// Whether the module path `inner` is `outer` or lies in it.
fn is_within(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, code: &str, holds: bool) {
        let found = complaints(&File::of(path, code));
        assert_eq!(found.is_empty(), holds, "{path}: {code}: {found:?}");
    }

    #[test]
    fn only_the_allowed_modules_may_be_used() {
        for (path, code, holds) in [
            ("src/window/actor.rs", "use crate::changes::scan; use crate::window::page; use std::fs;", true),
            ("src/window/actor.rs", "use crate::debug::session;", false),
            ("src/window/actor.rs", "use crate::{changes, api::Status};", false),
            ("src/window/mod.rs", "use super::debug;", false),
            ("src/window/launch/node.rs", "use super::super::super::debug;", false),
            ("src/window/launch/node.rs", "use super::super::page;", true),
            ("src/cdp/client.rs", "fn f() { crate::process::spawn() }", false),
            ("src/cdp/client.rs", "use crate::cdpx;", false),
            ("src/frontends/mcp.rs", "use crate::supervisor::connect::Connection;", true),
            ("src/frontends/mcp.rs", "use crate::supervisor::server;", false),
            ("src/frontends/mcp.rs", "use crate::supervisor::{connect, claim};", false),
            ("src/frontends/mcp.rs", "use crate::dap::client;", false),
            ("src/error.rs", "use crate::api;", false),
            ("src/wire/frame.rs", "use crate::*;", false),
            ("src/main.rs", "use devtether::window;", true),
            ("src/unknown/mod.rs", "", false),
            ("src/wire/frame.rs", "fn (", false),
        ] {
            check(path, code, holds);
        }
    }
}
