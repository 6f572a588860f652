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
    json(sandbox, workspace, &["break", "remove", "--all"]);
    json(sandbox, workspace, &["break", "set", sandbox.path(at).to_str().unwrap()]);
    let program = sandbox.path(workspace).join(program);
    let stop =
        json(sandbox, workspace, &["debug", "launch", program.to_str().unwrap(), "--adapter", "node", "--wait", "60"]);
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
