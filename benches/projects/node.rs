//! Node: packages that are linked to each other, and a bundle with its map.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use procfs::process::Process;
use serde_json::json;

use crate::client::sandbox::Sandbox;
use crate::{call, in_turns, open, run, tell, tools, workspace, write};

const PACKAGES: usize = 40;
/// Of the bundle, in bytes.
const BUNDLE: usize = 20 << 20;

fn esbuild(folder: &Path, arguments: &[&str]) {
    let program = tools().join("template-esbuild/node_modules/@esbuild/linux-x64/bin/esbuild");
    let mut command = Command::new(program);
    command.args(arguments).args(["--bundle", "--platform=node", "--sourcemap", "--log-level=error"]);
    run(command.current_dir(folder));
}

/// As pnpm lays them out: each package has links to those that it depends on.
pub fn monorepo(tether: &Path, runs: usize) {
    let sandbox = workspace(tether);
    write(&sandbox, "pnpm-workspace.yaml", "packages: ['apps/*', 'packages/*']\n");
    for number in 0..PACKAGES {
        let folder = format!("packages/p{number}");
        let manifest = format!(r#"{{"name": "@mono/p{number}", "main": "dist/index.js"}}"#);
        write(&sandbox, &format!("{folder}/package.json"), &manifest);
        let next = number + 1;
        let (import, value) = match next < PACKAGES {
            true => (format!("import {{ total as next }} from '@mono/p{next}';\n"), "next(order) + 1"),
            false => (String::new(), "order.id * 2"),
        };
        let padding: String = (0..200)
            .map(|line| format!("export function unused{line}(id: number): number {{\n  return id + {line};\n}}\n"))
            .collect();
        let text = format!(
            "{import}interface Order {{ id: number }}\nexport function total(order: Order): number {{\n  return {value};\n}}\n{padding}"
        );
        write(&sandbox, &format!("{folder}/src/index.ts"), &text);
        if next < PACKAGES {
            link(&sandbox, &format!("{folder}/node_modules/@mono"), next);
        }
        esbuild(&sandbox.workspace.join(&folder), &["src/index.ts", "--packages=external", "--outfile=dist/index.js"]);
    }
    write(&sandbox, "apps/web/package.json", r#"{"name": "web"}"#);
    write(&sandbox, "apps/web/app.js", "console.log(require('@mono/p0').total({ id: 21 }));\n");
    link(&sandbox, "apps/web/node_modules/@mono", 0);
    // At the top: js-debug finds no maps outside of the folder that is opened.
    let mut client = open(&sandbox, ".");
    let client = std::cell::RefCell::new(&mut client);
    let at = format!("packages/p{}/src/index.ts:3", PACKAGES - 1);
    let stops = |adapter: &str| {
        let client = &mut **client.borrow_mut();
        let launch = json!({"program": "apps/web/app.js", "adapter": adapter, "breakpoints": [at], "wait": 60});
        let (took, stop) = call(client, "debug_launch", launch);
        let place = &stop["stopReason"]["location"];
        let is_there =
            place["sourcePath"].as_str().is_some_and(|path| path.ends_with(".ts")) && place["lineNumber"] == 3;
        assert!(is_there, "{adapter}: {stop:#}");
        call(client, "debug_stop", json!({}));
        call(client, "breakpoint_remove", json!({"all": true}));
        took
    };
    let [ours, theirs] = in_turns(runs, || stops("node"), || stops("js-debug"));
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    let figure = format!("{ratio:.2} ({ours:.2?} to {theirs:.2?})");
    tell(
        &format!("a monorepo of {PACKAGES} packages: launch → first stop, to js-debug"),
        &figure,
        "≤ 0.35",
        ratio <= 0.35,
    );
}

fn link(sandbox: &Sandbox, folder: &str, number: usize) {
    let folder = sandbox.workspace.join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    symlink(sandbox.workspace.join(format!("packages/p{number}")), folder.join(format!("p{number}"))).unwrap();
}

/// A bundle of many modules, the last of which is stopped in.
pub fn bundle(tether: &Path, runs: usize) {
    let sandbox = workspace(tether);
    let function = |number: usize| {
        format!(
            "export function order{number}(price: number, count: number): number {{\n  const total = price * count + {number};\n  if (total > 100) {{\n    return Math.max(total - price, count);\n  }}\n  return [total, price, count].map((it) => it + 1).reduce((a, b) => a + b, 0);\n}}\n"
        )
    };
    let (mut written, mut module, mut imports, mut calls) = (0, 0, String::new(), String::new());
    while written < BUNDLE {
        let text: String = (0..500).map(|number| function(module * 500 + number)).collect();
        written += text.len();
        write(&sandbox, &format!("src/m{module}.ts"), &text);
        imports += &format!("import * as m{module} from './m{module}';\n");
        // A namespace that is passed on is bundled whole.
        calls += &format!("use(m{module});\n");
        module += 1;
    }
    let main = format!(
        "{imports}let count = 0;\nfunction use(module: object): void {{\n  count += Object.keys(module).length;\n}}\n{calls}console.log(count);\n"
    );
    let line = main.lines().count();
    write(&sandbox, "src/main.ts", &main);
    esbuild(&sandbox.workspace, &["src/main.ts", "--outfile=dist/main.js"]);
    let size = |name: &str| std::fs::metadata(sandbox.workspace.join(name)).unwrap().len();
    let (script, map) = (size("dist/main.js"), size("dist/main.js.map"));
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);

    let mut client = open(&sandbox, ".");
    let at = format!("src/main.ts:{line}");
    let mut most = 0;
    let stops = || {
        let launch = json!({"program": "dist/main.js", "adapter": "node", "breakpoints": [at], "wait": 60});
        let (took, stop) = call(&mut client, "debug_launch", launch);
        assert_eq!(stop["stopReason"]["location"]["lineNumber"], line, "{stop:#}");
        most = most.max(host_peak(sandbox.home().to_str().unwrap()));
        call(&mut client, "debug_stop", json!({}));
        call(&mut client, "breakpoint_remove", json!({"all": true}));
        took
    };
    let bare = || run(Command::new("node").arg("dist/main.js").current_dir(&sandbox.workspace));
    let [ours, bare] = in_turns(runs, stops, bare);
    let ratio = ours.as_secs_f64() / bare.as_secs_f64();
    let what = format!("a bundle of {:.0} MiB with a map of {:.0} MiB", mib(script), mib(map));
    let figure = format!("{ratio:.2} ({ours:.2?} to {bare:.2?})");
    tell(&format!("{what}: launch → first stop, to node alone"), &figure, "≤ 1.30", ratio <= 1.3);
    let times = most as f64 / map as f64;
    let figure = format!("{times:.2} × the map ({:.0} MiB)", mib(most));
    tell(&format!("{what}: the most that the session host held"), &figure, "≤ 3 ×", times <= 3.0);
}

/// The most memory that the newest session host of a sandbox has held, in bytes.
fn host_peak(home: &str) -> u64 {
    let is_host = |process: &Process| {
        let words = process.cmdline().unwrap_or_default();
        words.get(1).is_some_and(|word| word == "session-host") && words.iter().any(|word| word.starts_with(home))
    };
    let hosts = procfs::process::all_processes().unwrap().flatten().filter(is_host);
    let host = hosts.max_by_key(|host| host.stat().unwrap().starttime).unwrap();
    host.status().unwrap().vmhwm.unwrap() << 10
}
