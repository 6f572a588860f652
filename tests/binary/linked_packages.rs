//! An app of a monorepo, opened alone: what it depends on lies outside of the workspace.

use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::support::{NODE_SERVICE, Sandbox, run_command};

const WINDOW: &str = "[window]\nkind = 'node'\nprogram = 'server.js'\n";

#[test]
fn a_linked_package_is_named_and_the_setting_that_is_named_has_its_changes_noticed() {
    let sandbox = Sandbox::new();
    sandbox.write("apps/web/server.js", NODE_SERVICE);
    sandbox.write("apps/web/devtools.toml", WINDOW);
    sandbox.write("packages/lib/index.js", "exports.total = 1;\n");
    std::fs::create_dir(sandbox.path("apps/web/node_modules")).unwrap();
    symlink("../../../packages/lib", sandbox.path("apps/web/node_modules/lib")).unwrap();
    let app = sandbox.path("apps/web");
    let tether = |arguments: &[&str]| {
        run_command(sandbox.command([&["--json", "--workspace", app.to_str().unwrap()], arguments].concat())).ok()
    };
    let json = |arguments: &[&str]| tether(arguments).json();
    tether(&["trust", "--yes"]);
    let notes = json(&["start"])["notes"].to_string();
    assert!(notes.contains("lib in node_modules is a link out of the watched folder"), "{notes}");
    sandbox.write("packages/lib/index.js", "exports.total = 2;\n");
    assert_eq!(json(&["changes"])["stale"], Value::Bool(false));

    let setting = notes.split('`').find(|part| part.starts_with("root = ")).unwrap().replace("\\\"", "'");
    sandbox.write("apps/web/devtools.toml", &format!("{WINDOW}[watch]\n{setting}\n"));
    tether(&["trust", "--yes"]);
    let notes = json(&["restart"])["notes"].to_string();
    assert!(!notes.contains("link out of"), "{notes}");
    sandbox.write("packages/lib/index.js", "exports.total = 3;\n");
    let changes = json(&["changes"]);
    assert_eq!(changes["newest"]["path"], "packages/lib/index.js", "{changes:#}");
    tether(&["stop"]);
    tether(&["shutdown", "--all"]);
}
