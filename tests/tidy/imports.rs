//! The import table: which room may use which.
//!
//! The rooms and the reasons are the design's; here they are only held.

use crate::paths::{Mention, mentions};
use crate::sources::File;

/// What a room may use besides itself. A path such as `supervisor::connect` opens only that part of a room.
struct Row {
    /// A folder or file of `src/`, or a part of one; the most precise row counts.
    room: &'static str,
    may: &'static [&'static str],
}

const fn row(room: &'static str, may: &'static [&'static str]) -> Row {
    Row { room, may }
}

const TABLE: &[Row] = &[
    row("frontends", &["api", "wire", "supervisor::connect", "config", "tools", "doctor", "error"]),
    // Looks at everything, and is looked at by front ends only; what it ends, it ends by window::stop.
    row(
        "doctor",
        &[
            "api",
            "supervisor::connect",
            "supervisor::lock",
            "window",
            "changes",
            // Which programs were let go on purpose.
            "debug::host::store",
            "adapters",
            "process",
            "config",
            "tools",
            "workspace_dir",
            "error",
        ],
    ),
    row("frontends::dap", &["api", "wire", "supervisor::connect", "config", "error", "adapters", "dap"]),
    row("supervisor", &["api", "wire", "window", "debug", "config", "task_runner", "process", "ring", "error"]),
    row("window", &["changes", "cdp", "process", "config", "task_runner", "tools", "workspace_dir", "ring", "error"]),
    row("debug", &["adapters", "dap", "process", "workspace_dir", "ring", "error"]),
    row("adapters", &["dap", "cdp", "jdwp", "process", "tools", "error"]),
    row("dap", &["wire", "error"]),
    row("api", &["error"]),
    // One reader and one matcher of ignore files.
    row("config", &["changes::GitignoreChain", "changes::IgnoreRules", "error"]),
    row("task_runner", &["config", "process", "error"]),
    row("tools", &["config", "process", "error"]),
    row("wire", &["error"]),
    // The TCP stream without delays is shared by all who speak to debuggees.
    row("cdp", &["wire", "error"]),
    row("jdwp", &["error"]),
    row("changes", &["error"]),
    row("process", &["error"]),
    row("workspace_dir", &["error"]),
    row("ring", &["error"]),
    row("error", &[]),
    row("clock", &[]),
    row("sync", &[]),
];

/// Small leaf modules that every other one may use.
const LEAVES: [&str; 2] = ["clock", "sync"];

/// The crate's roots put the house together and may use every room.
const ROOTS: [&str; 2] = ["src/main.rs", "src/lib.rs"];

pub fn complaints(file: &File) -> Vec<String> {
    if ROOTS.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let place = file.path.trim_start_matches("src/").trim_end_matches(".rs").replace('/', "::");
    let Some(row) = row_of(&place) else {
        return vec![format!("{}: no row for this room in the import table (tests/tidy/imports.rs)", file.path)];
    };
    match mentions(file) {
        Ok(found) => found.iter().filter_map(|mention| complaint(file, row, mention)).collect(),
        Err(unreadable) => vec![unreadable],
    }
}

fn row_of(place: &str) -> Option<&'static Row> {
    TABLE.iter().filter(|row| is_within(place, row.room)).max_by_key(|row| row.room.len())
}

fn complaint(file: &File, row: &Row, mention: &Mention) -> Option<String> {
    let (first, rest) = mention.segments.split_first()?;
    let target = rest.join("::");
    let own = row.room.split("::").next()?;
    let allowed =
        first != "crate" || [&[own], &LEAVES[..], row.may].concat().iter().any(|open| is_within(&target, open));
    let File { path, .. } = file;
    (!allowed).then(|| {
        format!("{path}:{}: `{}` may not use `{target}`; it may use: {}", mention.line, row.room, row.may.join(", "))
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
    fn only_the_open_rooms_may_be_used() {
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
            ("src/frontends/dap.rs", "use crate::dap::client;", true),
            ("src/frontends/dap.rs", "use crate::window;", false),
            ("src/error.rs", "use crate::api;", false),
            ("src/wire/frame.rs", "use crate::*;", false),
            ("src/main.rs", "use devtether::window;", true),
            ("src/cellar/mod.rs", "", false),
            ("src/wire/frame.rs", "fn (", false),
        ] {
            check(path, code, holds);
        }
    }
}
