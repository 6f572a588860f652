//! The settings of `[window]` that name a program: which file each of them runs.
//!
//! The window is started with what is found here, and consent is asked for the same.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::json;
use tether_base::path_lookup::{find_on_path, is_program};

use crate::config::devtools_toml::settings::{WindowKind, WindowSettings};

/// The program of a setting: a path relative to the workspace, or a name in `node_modules/.bin` or on `path` (the value
/// of PATH).
pub fn resolve_program(workspace: &Path, setting: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    let on_path = || find_on_path(&[setting.to_str().filter(|_| is_bare(setting))?], path);
    find_in_workspace(workspace, setting).or_else(on_path)
}

/// What a setting of this name runs, for the user's consent; `None` when that is the setting itself. The user's own
/// PATH is not looked at: it differs from terminal to terminal.
pub fn describe_program(workspace: &Path, window: &WindowSettings, name: &str) -> Option<String> {
    let (setting, is_name) = match name {
        "browser" => (window.browser.as_deref()?, true),
        "node" => (window.node.as_deref()?, window.kind != Some(WindowKind::WebExtensionHost)),
        "vscode" => (window.vscode.as_deref()?, false),
        "codeServer" => (window.code_server.as_deref()?, false),
        _ => return None,
    };
    let given = window.env.get("PATH").map(OsStr::new);
    let found = match is_name {
        true => find_in_workspace(workspace, setting).or_else(|| resolve_program(workspace, setting, given)),
        false => Some(workspace.join(setting)),
    };
    let found = match found {
        Some(found) => found.canonicalize().unwrap_or(found),
        None if is_bare(setting) && given.is_none() => return Some("from PATH".to_owned()),
        None => workspace.join(setting),
    };
    (found != setting).then(|| json!(found).to_string())
}

fn find_in_workspace(workspace: &Path, setting: &Path) -> Option<PathBuf> {
    let local = Some(workspace.join("node_modules/.bin").join(setting)).filter(|_| is_bare(setting));
    [Some(workspace.join(setting)), local].into_iter().flatten().find(|path| is_program(path))
}

/// Whether it may be the name of a program, and not only a path.
fn is_bare(setting: &Path) -> bool {
    setting.components().count() == 1
}
