//! Files and folders as projects have them: packages that are linked beside the opened folder, names with brackets, modules
//! with a query.

use serde_json::Value;

use crate::support::requirements::{has_program, installed_tool};
use crate::support::{Sandbox, run_command};

fn json(sandbox: &Sandbox, workspace: &str, arguments: &[&str]) -> Value {
    let folder = sandbox.path(workspace);
    let common = ["--json", "--workspace", folder.to_str().unwrap()];
    run_command(sandbox.command([&common[..], arguments].concat())).ok().json()
}

/// Launches with a breakpoint, and stops there.
fn stops(sandbox: &Sandbox, workspace: &str, program: &str, at: &str) -> Value {
    let program = sandbox.path(workspace).join(program);
    stops_in(sandbox, workspace, &[program.to_str().unwrap(), "--adapter", "node"], at)
}

fn stops_in(sandbox: &Sandbox, workspace: &str, launch: &[&str], at: &str) -> Value {
    json(sandbox, workspace, &["break", "remove", "--all"]);
    json(sandbox, workspace, &["break", "set", sandbox.path(at).to_str().unwrap()]);
    let stop = json(sandbox, workspace, &[&["debug", "launch"], launch, &["--wait", "60"]].concat());
    assert_eq!(stop["stopReason"]["type"], "BREAKPOINT_HIT", "{at}: {stop:#}");
    let location = &stop["stopReason"]["location"];
    let (path, line) = (location["sourcePath"].as_str().unwrap(), location["lineNumber"].to_string());
    let (file, wanted) = at.rsplit_once(':').unwrap();
    assert!(path.ends_with(file.rsplit('/').next().unwrap()) && line == wanted, "{at}: {stop:#}");
    json(sandbox, workspace, &["debug", "stop"]);
    stop
}

#[test]
fn typescript_of_a_linked_package_beside_the_opened_folder_stops() {
    let Some(esbuild) = installed_tool("template-esbuild/node_modules/@esbuild/linux-x64/bin/esbuild") else { return };
    for (marker, text) in
        [("pnpm-workspace.yaml", "packages: ['*/*']\n"), ("package.json", r#"{"workspaces": ["*/*"]}"#)]
    {
        let sandbox = Sandbox::new();
        sandbox.write(marker, text);
        sandbox.write("packages/lib/package.json", r#"{"name": "lib", "main": "dist/index.js"}"#);
        sandbox.write(
            "packages/lib/src/index.ts",
            "interface Order { id: number }\n\nexport function total(order: Order): number {\n  return order.id * 2;\n}\n",
        );
        let mut build = std::process::Command::new(&esbuild);
        build.args(["src/index.ts", "--bundle", "--platform=node", "--outfile=dist/index.js", "--sourcemap"]);
        build.current_dir(sandbox.path("packages/lib"));
        run_command(build).ok();
        sandbox.write("apps/web/app.js", "const { total } = require('lib');\nconsole.log(total({ id: 21 }));\n");
        std::fs::create_dir(sandbox.path("apps/web/node_modules")).unwrap();
        std::os::unix::fs::symlink("../../../packages/lib", sandbox.path("apps/web/node_modules/lib")).unwrap();
        stops(&sandbox, "apps/web", "app.js", "packages/lib/src/index.ts:4");
        json(&sandbox, "apps/web", &["shutdown", "--all"]);
    }
}

#[test]
fn modules_below_brackets_and_with_queries_stop() {
    if !has_program("node") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("app/[id]/page 1.mjs", "export const page = (id) => {\n  return `page ${id}`;\n};\n");
    sandbox.write("app/ä,b/plain.js", "exports.plain = () => {\n  return 'plain';\n};\n");
    let main = "import { createRequire } from 'node:module';\n\
                const { page } = await import('./app/[id]/page 1.mjs?v=1#top');\nconsole.log(page(1));\n\
                console.log(createRequire(import.meta.url)('./app/ä,b/plain.js').plain());\n";
    sandbox.write("main.mjs", main);
    stops(&sandbox, ".", "main.mjs", "app/[id]/page 1.mjs:2");
    stops(&sandbox, ".", "main.mjs", "app/ä,b/plain.js:2");
}

const TOTAL: &str = "\
interface Order { id: number }

const rate: number = 2;
export function total(order: Order): number {
  return order.id * rate;
}
";
const CALL: &str = "const { total } = require('lib');\nconsole.log(total({ id: 21 }));\n";

/// Compiles a file with a map beside it.
fn compile(sandbox: &Sandbox, folder: &str, arguments: &[&str]) -> Option<()> {
    let esbuild = installed_tool("template-esbuild/node_modules/@esbuild/linux-x64/bin/esbuild")?;
    let mut build = std::process::Command::new(&esbuild);
    build.args(["src/index.ts", "--format=cjs", "--platform=node", "--sourcemap"]).args(arguments);
    build.current_dir(sandbox.path(folder));
    run_command(build).ok();
    Some(())
}

#[test]
fn typescript_inside_of_node_modules_stops_where_it_has_breakpoints() {
    let sandbox = Sandbox::new();
    for package in ["node_modules/lib", "node_modules/.pnpm/other@1/node_modules/@scope/other"] {
        sandbox.write(&format!("{package}/package.json"), r#"{"main": "dist/index.js"}"#);
        sandbox.write(&format!("{package}/src/index.ts"), TOTAL);
        if compile(&sandbox, package, &["--outdir=dist"]).is_none() {
            return;
        }
    }
    std::fs::create_dir_all(sandbox.path("node_modules/@scope")).unwrap();
    let linked = "../.pnpm/other@1/node_modules/@scope/other";
    std::os::unix::fs::symlink(linked, sandbox.path("node_modules/@scope/other")).unwrap();
    sandbox.write("app.js", CALL);
    // In its first line, too, and over a link.
    stops(&sandbox, ".", "app.js", "node_modules/lib/src/index.ts:5");
    stops(&sandbox, ".", "app.js", "node_modules/lib/src/index.ts:3");
    sandbox.write("other.js", &CALL.replace("'lib'", "'@scope/other'"));
    stops(&sandbox, ".", "other.js", "node_modules/@scope/other/src/index.ts:3");
    // Set while it runs.
    sandbox
        .write("later.js", &CALL.replace("console.log", "setInterval(() => {\n  rest();\n}, 20); const rest = () => "));
    json(&sandbox, ".", &["break", "remove", "--all"]);
    let program = sandbox.path("later.js");
    json(&sandbox, ".", &["debug", "launch", program.to_str().unwrap(), "--adapter", "node"]);
    json(&sandbox, ".", &["break", "set", "node_modules/lib/src/index.ts:5"]);
    let stop = json(&sandbox, ".", &["debug", "wait", "60"]);
    assert_eq!(stop["stopReason"]["location"]["lineNumber"], 5, "{stop:#}");
}

#[test]
fn maps_beside_the_opened_folder_are_read() {
    let sandbox = Sandbox::new();
    sandbox.write("app/src/index.ts", TOTAL);
    sandbox.write("app/main.js", &CALL.replace("'lib'", "'../built/js/index.js'"));
    if compile(&sandbox, "app", &["--outdir=../built/js"]).is_none() {
        return;
    }
    // The map is in a folder of its own, and the script in one that only the configuration names.
    std::fs::create_dir(sandbox.path("built/maps")).unwrap();
    let map = std::fs::read_to_string(sandbox.path("built/js/index.js.map")).unwrap();
    std::fs::remove_file(sandbox.path("built/js/index.js.map")).unwrap();
    sandbox.write("built/maps/index.js.map", &map);
    let script = std::fs::read_to_string(sandbox.path("built/js/index.js")).unwrap();
    sandbox.write("built/js/index.js", &script.replace("=index.js.map", "=../maps/index.js.map"));
    let configuration = r#"{"configurations": [{"type": "node", "request": "launch", "name": "it",
        "program": "${workspaceFolder}/main.js", "outFiles": ["${workspaceFolder}/../built/js/**/*.js"]}]}"#;
    sandbox.write("app/.vscode/launch.json", configuration);
    let folder = sandbox.path("app");
    sandbox.tether(&["trust", "--yes", "--config", "it", "--workspace", folder.to_str().unwrap()]).ok();
    stops_in(&sandbox, "app", &["--config", "it"], "app/src/index.ts:3");
    json(&sandbox, "app", &["shutdown", "--all"]);
}

#[test]
fn modules_that_are_named_over_links_stop_with_preserve_symlinks() {
    let sandbox = Sandbox::new();
    sandbox.write("packages/lib/package.json", r#"{"main": "dist/index.js"}"#);
    sandbox.write("packages/lib/src/index.ts", TOTAL);
    sandbox.write("packages/plain/index.js", "const rate = 2;\nexports.total = (order) => order.id * rate;\n");
    if compile(&sandbox, "packages/lib", &["--outdir=dist"]).is_none() {
        return;
    }
    std::fs::create_dir(sandbox.path("node_modules")).unwrap();
    for name in ["lib", "plain"] {
        std::os::unix::fs::symlink(format!("../packages/{name}"), sandbox.path("node_modules").join(name)).unwrap();
    }
    sandbox.write("app.js", CALL);
    sandbox.write("plain.js", &CALL.replace("'lib'", "'plain'"));
    for (program, at) in [
        ("app.js", "packages/lib/src/index.ts:3"),
        ("app.js", "packages/lib/src/index.ts:5"),
        ("plain.js", "packages/plain/index.js:1"),
        ("plain.js", "packages/plain/index.js:2"),
    ] {
        let configuration = serde_json::json!({"configurations": [{"type": "node", "request": "launch", "name": "it",
            "program": program, "runtimeArgs": ["--preserve-symlinks"]}]});
        sandbox.write(".vscode/launch.json", &configuration.to_string());
        sandbox.tether(&["trust", "--yes", "--config", "it"]).ok();
        stops_in(&sandbox, ".", &["--config", "it"], at);
    }
}
