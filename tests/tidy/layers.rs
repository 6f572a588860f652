//! Which modules of the root package may use which others. Between crates, cargo says it.

use crate::sources::File;

/// A module of `src/`, and the other modules, or parts of them, that it may use.
const TABLE: &[(&str, &[&str])] = &[
    ("frontends", &["api", "supervisor::connect", "config", "doctor"]),
    // Reads the facts of every module; only front ends use it.
    ("doctor", &["api", "supervisor", "window", "debug", "adapters", "config", "workspace"]),
    ("supervisor", &["api", "session_host", "window", "debug", "config", "tasks", "timeline"]),
    ("session_host", &["api", "debug", "config", "timeline"]),
    ("window", &["config", "tasks", "timeline", "workspace"]),
    ("debug", &["adapters", "timeline", "workspace"]),
    ("adapters", &["workspace"]),
    ("config", &["workspace"]),
    ("tasks", &["config", "workspace"]),
    ("api", &[]),
    ("timeline", &[]),
    ("workspace", &[]),
    (SHARED, &[]),
];

/// What every module may use.
const SHARED: &str = "vocabulary";

/// Complains of each `crate::` path that the table does not allow.
pub fn complaints(file: &File) -> Vec<String> {
    let Some(place) = file.path.strip_prefix("src/") else { return Vec::new() };
    let module = place.split(['/', '.']).next().unwrap_or_default();
    if ["lib", "main"].contains(&module) {
        return Vec::new();
    }
    let Some((_, may)) = TABLE.iter().find(|(name, _)| *name == module) else {
        return vec![format!("{}: no row for this module in tests/tidy/layers.rs", file.path)];
    };
    let is_allowed = |path: &str| {
        [&[module, SHARED], *may].concat().iter().any(|open| path == *open || path.starts_with(&format!("{open}::")))
    };
    let complain = |(number, line): (usize, &str)| {
        let paths: Vec<&str> = line.split("crate::").skip(1).map(path_of).filter(|path| !is_allowed(path)).collect();
        (!paths.is_empty())
            .then(|| format!("{}:{}: `{module}` may not use {}", file.path, number + 1, paths.join(", ")))
    };
    file.text.lines().enumerate().filter_map(complain).collect()
}

fn path_of(text: &str) -> &str {
    let end = text.find(|it: char| !it.is_alphanumeric() && it != '_' && it != ':').unwrap_or(text.len());
    text[..end].trim_end_matches(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_allowed_modules_may_be_used() {
        for (path, code, holds) in [
            ("src/window/actor.rs", "use crate::tasks::task_runner; use crate::window::page; use std::fs;", true),
            ("src/window/actor.rs", "use crate::debug::session;", false),
            ("src/window/actor.rs", "fn f() { crate::api::page() }", false),
            ("src/window/actor.rs", "use crate::{config, api::Status};", false),
            ("src/frontends/mcp.rs", "use crate::supervisor::connect::Connection;", true),
            ("src/frontends/mcp.rs", "use crate::supervisor::server;", false),
            ("src/main.rs", "use devtether::window;", true),
            ("src/unknown/mod.rs", "", false),
        ] {
            let found = complaints(&File::of(path, code));
            assert_eq!(found.is_empty(), holds, "{path}: {code}: {found:?}");
        }
    }
}
