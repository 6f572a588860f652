//! Merges `[window]` of devtools.toml with the derived settings, key by key: a written key overrides the derived one.
//!
//! Does not depend on the source of the derived settings.

use crate::config::devtools_toml::settings::{WindowKind, WindowSettings};
use crate::config::vscode::launch_window::WEB_WORKER_KIND;

/// The derived settings with the written ones on top. `is_set`: whether devtools.toml has this key.
pub fn override_window(
    derived: WindowSettings,
    written: WindowSettings,
    is_set: impl Fn(&str) -> bool,
) -> WindowSettings {
    fn pick<T>(is_set: bool, written: T, derived: T) -> T {
        if is_set { written } else { derived }
    }
    // The derived arguments are flags of VS Code; those of a web workbench are passed to its browser, but for one.
    let is_web = written.kind == Some(WindowKind::WebExtensionHost);
    let derived_args = derived.args.into_iter().filter(|arg| !is_web || arg == WEB_WORKER_KIND).collect();
    WindowSettings {
        derived: written.kind.is_none() && derived.kind.is_some(),
        kind: written.kind.or(derived.kind),
        program: written.program.or(derived.program),
        url: written.url.or(derived.url),
        command: pick(is_set("command"), written.command, derived.command),
        args: pick(is_set("args"), written.args, derived_args),
        runtime_args: pick(is_set("runtimeArgs"), written.runtime_args, derived.runtime_args),
        cwd: written.cwd.or(derived.cwd),
        headless: pick(is_set("headless"), written.headless, derived.headless),
        env: pick(is_set("env"), written.env, derived.env),
        browser: written.browser.or(derived.browser),
        node: written.node.or(derived.node),
        vscode: written.vscode.or(derived.vscode),
        code_server: written.code_server.or(derived.code_server),
        extension: written.extension.or(derived.extension),
        more_extensions: pick(is_set("moreExtensions"), written.more_extensions, derived.more_extensions),
        folder: written.folder.or(derived.folder),
        profile: written.profile.or(derived.profile),
        refresh: pick(is_set("refresh"), written.refresh, derived.refresh),
        timeout: written.timeout.or(derived.timeout),
        secrets: derived.secrets,
    }
}
