//! Pages of a browser by our own adapter: TypeScript that a dev server compiles or that is bundled, workers, reloads.

use serde_json::{Value, json};

use crate::lifecycle::web_projects::{save, vite_project};
use crate::support::requirements::installed_tool;
use crate::support::{Sandbox, eventually, run_command};

const PAGE: &str = "<!doctype html><title>start</title><script type=module src=/src/main.ts></script>";
const MAIN: &str = "\
import { total } from './total';

interface Order {
  id: number;
}

const order: Order = { id: 21 }; // FIRST
document.title = String(total(order));
const worker = new Worker(new URL('./counter.ts', import.meta.url), { type: 'module' });
worker.onmessage = (event: MessageEvent<string>) => {
  document.title = event.data; // ANSWER
};
worker.postMessage(order.id);
";
const TOTAL: &str = "\
interface Ordered {
  id: number;
}

export function total(order: Ordered): number {
  const twice: number = order.id * 2;
  return twice; // STOP
}
";
const COUNTER: &str = "\
type Count = number;

onmessage = (event: MessageEvent<Count>) => {
  const count: Count = event.data + 1;
  postMessage('counted ' + count); // COUNT
};
";

/// `FILE:LINE` of the line with a comment of that text.
fn place(file: &str, text: &str, mark: &str) -> String {
    let line = text.lines().position(|line| line.ends_with(&format!("// {mark}"))).unwrap();
    format!("{file}:{}", line + 1)
}

/// Where a session has stopped.
fn stopped_at(stop: &Value) -> String {
    let location = &stop["stopReason"]["location"];
    format!("{}:{}", location["sourcePath"].as_str().unwrap_or_default(), location["lineNumber"])
}

fn verified(sandbox: &Sandbox) -> usize {
    let list = sandbox.json(&["break", "list"]);
    list["breakpoints"].as_array().unwrap().iter().filter(|it| it["state"] == "verified").count()
}

/// Runs a statement in the page, which may stop in it.
fn run_in_page(sandbox: &Sandbox, statement: &str) {
    sandbox.tether(&["evaluate", &format!("void setTimeout(() => {{ {statement} }})")]).ok();
}

fn wait_for_stop(sandbox: &Sandbox, session: &str) -> Value {
    sandbox.json(&["debug", "wait", "60", "--session", session])
}

#[test]
fn a_page_that_a_dev_server_compiles_stops_in_its_typescript_and_in_that_of_its_worker() {
    let Some(sandbox) = vite_project("vite --host 127.0.0.1") else { return };
    sandbox.write("index.html", PAGE);
    for (file, text) in [("src/main.ts", MAIN), ("src/total.ts", TOTAL), ("src/counter.ts", COUNTER)] {
        sandbox.write(file, text);
    }
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.json(&["start"]);
    let attached = sandbox.json(&["debug", "attach", "--window", "page"]);
    assert_eq!((&attached["adapter"], &attached["state"]), (&json!("node"), &json!("RUNNING")), "{attached:#}");
    let session = attached["sessionId"].as_str().unwrap();
    for at in [place("src/main.ts", MAIN, "FIRST"), place("src/counter.ts", COUNTER, "COUNT")] {
        sandbox.json(&["break", "set", &at]);
    }
    eventually("the breakpoints are bound", || (verified(&sandbox) == 2).then_some(()));
    for _ in 0..2 {
        // Its first lines hold, after each reload.
        run_in_page(&sandbox, "location.reload()");
        let first = wait_for_stop(&sandbox, session);
        assert_eq!(stopped_at(&first), place("src/main.ts", MAIN, "FIRST"), "{first:#}");
        let next = sandbox.json(&["debug", "step", "over", "--wait", "60"]);
        let inside = sandbox.json(&["debug", "step", "into", "--wait", "60"]);
        assert_eq!(inside["stopReason"]["location"]["sourcePath"], "src/total.ts", "{next:#} {inside:#}");
        let over = sandbox.json(&["debug", "step", "over", "--wait", "60"]);
        assert_eq!(stopped_at(&over), place("src/total.ts", TOTAL, "STOP"), "{over:#}");
        assert_eq!(sandbox.json(&["debug", "evaluate", "twice"])["result"], "42");
        let counted = sandbox.json(&["debug", "continue", "--wait", "60"]);
        assert_eq!(stopped_at(&counted), place("src/counter.ts", COUNTER, "COUNT"), "{counted:#}");
        let thread = counted["stopReason"]["threadName"].as_str().unwrap();
        assert!(thread.starts_with("worker counter.ts"), "{thread}");
        sandbox.json(&["debug", "continue"]);
        eventually("the page has its answer", || {
            (sandbox.json(&["evaluate", "document.title"])["value"] == "counted 22").then_some(())
        });
    }
    sandbox.json(&["debug", "stop", session]);
    assert_eq!(sandbox.json(&["evaluate", "1 + 1"])["value"], 2, "the page is left as it was");
    sandbox.json(&["stop"]);
}

#[test]
fn a_bundle_in_a_page_stops_in_its_typescript() {
    let Some(esbuild) = installed_tool("template-esbuild/node_modules/@esbuild/linux-x64/bin/esbuild") else { return };
    let Some(sandbox) = vite_project("vite --host 127.0.0.1") else { return };
    sandbox.write("code/total.ts", TOTAL);
    sandbox.write("code/main.ts", "import { total } from './total';\ndocument.title = String(total({ id: 4 }));\n");
    sandbox.write("public/bundle.html", "<!doctype html><title>bundle</title><script src=/app.js></script>");
    let mut build = std::process::Command::new(&esbuild);
    build.args(["code/main.ts", "--bundle", "--outfile=public/app.js", "--sourcemap"]);
    build.current_dir(&sandbox.workspace);
    run_command(build).ok();
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.json(&["start"]);
    let attached = sandbox.json(&["debug", "attach", "--window", "page"]);
    let session = attached["sessionId"].as_str().unwrap();
    assert_eq!(sandbox.json(&["break", "set", &place("code/total.ts", TOTAL, "STOP")])["state"], "unbound");
    run_in_page(&sandbox, "location.href = '/bundle.html'");
    let stop = wait_for_stop(&sandbox, session);
    assert_eq!(stopped_at(&stop), place("code/total.ts", TOTAL, "STOP"), "{stop:#}");
    assert_eq!(sandbox.json(&["debug", "evaluate", "twice"])["result"], "8");
    // Another document is shown: nothing of the last one is bound any longer.
    sandbox.json(&["debug", "continue"]);
    run_in_page(&sandbox, "location.href = '/'");
    eventually("nothing is bound", || (verified(&sandbox) == 0).then_some(()));
    sandbox.json(&["stop"]);
}

const FRAMED: &str = "\
const frame = document.createElement('iframe');
frame.src = `http://localhost:${location.port}/frame.html`;
document.body.append(frame);
navigator.serviceWorker.register('/service.js');
";
const FRAME: &str = "\
interface Box { size: number }
const box: Box = { size: 3 };
document.title = 'frame ' + box.size; // FRAME
";
const SERVICE: &str = "\
const started = 7;
self.version = started; // SERVICE
";

/// The frame is of another site, and so in another process.
#[test]
fn a_page_stops_in_its_frames_and_in_its_service_worker() {
    let Some(sandbox) = vite_project("vite --host 127.0.0.1") else { return };
    sandbox.write("index.html", "<!doctype html><title>start</title><body></body>");
    sandbox.write("framed.html", "<!doctype html><body><script type=module src=/src/framed.ts></script></body>");
    sandbox.write("frame.html", "<!doctype html><script type=module src=/src/frame.ts></script>");
    for (file, text) in [("src/framed.ts", FRAMED), ("src/frame.ts", FRAME), ("public/service.js", SERVICE)] {
        sandbox.write(file, text);
    }
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.json(&["start"]);
    let attached = sandbox.json(&["debug", "attach", "--window", "page"]);
    let session = attached["sessionId"].as_str().unwrap();
    let places = [place("src/frame.ts", FRAME, "FRAME"), place("public/service.js", SERVICE, "SERVICE")];
    for at in &places {
        sandbox.json(&["break", "set", at]);
    }
    run_in_page(&sandbox, "location.href = '/framed.html'");
    // In either order.
    let mut seen = Vec::new();
    for _ in 0..2 {
        let stop = wait_for_stop(&sandbox, session);
        let thread = stop["stopReason"]["threadName"]
            .as_str()
            .unwrap_or_else(|| panic!("{stop:#} {seen:?} {:#}", sandbox.json(&["debug", "status"])));
        let thread = thread.to_owned();
        let value = if stopped_at(&stop) == places[0] { "box.size" } else { "started" };
        let value = sandbox.json(&["debug", "evaluate", value])["result"].as_str().unwrap().to_owned();
        seen.push((stopped_at(&stop), thread.split(' ').next().unwrap().to_owned(), value));
        sandbox.json(&["debug", "continue"]);
    }
    seen.sort();
    let [frame, service] = places;
    let expected = [(service, "service", "7"), (frame, "frame", "3")];
    assert_eq!(seen, expected.map(|(at, thread, value)| (at, thread.to_owned(), value.to_owned())));
    sandbox.json(&["stop"]);
}

const HOT_PAGE: &str = "<!doctype html><title>start</title><script type=module src=/src/main.js></script>";
const HOT_ORDERS: &str = "\
const rate = 2; // TOP
export const total = (order) => {
  const amount = order * rate; // STOP
  return amount;
};
";

fn hot_main(module: &str) -> String {
    format!(
        "import {{ total }} from './{module}';\nlet current = total;\nwindow.call = (order) => current(order);\n\
         import.meta.hot.accept('./{module}', (next) => {{ current = next.total; }});\n"
    )
}

/// A module that the dev server replaces in the page stops where its code is now, from its first line on.
fn replace_module(module: &str, text: &str) {
    let Some(sandbox) = vite_project("vite --host 127.0.0.1") else { return };
    let file = format!("src/{module}");
    sandbox.write("index.html", HOT_PAGE);
    sandbox.write("src/main.js", &hot_main(module));
    sandbox.write(&file, text);
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.json(&["start"]);
    let attached = sandbox.json(&["debug", "attach", "--window", "page"]);
    let session = attached["sessionId"].as_str().unwrap();
    for mark in ["TOP", "STOP"] {
        sandbox.json(&["break", "set", &place(&file, text, mark)]);
    }
    eventually("the breakpoints are bound", || (verified(&sandbox) == 2).then_some(()));
    let mut before = text.to_owned();
    for edit in 1..=3 {
        let edited = format!("{}{text}", "debug: 0;\n".repeat(11 * edit));
        save(&sandbox, &file, &edited);
        let mut top = wait_for_stop(&sandbox, session);
        // A call of before.
        while stopped_at(&top) == place(&file, &before, "STOP") {
            sandbox.json(&["debug", "continue"]);
            top = wait_for_stop(&sandbox, session);
        }
        assert_eq!(stopped_at(&top), place(&file, &edited, "TOP"), "{top:#}");
        loop {
            sandbox.json(&["debug", "continue"]);
            // Refused where the page has stopped again by then.
            sandbox.tether(&["evaluate", "void setTimeout(() => call(21))"]);
            let stop = wait_for_stop(&sandbox, session);
            if stopped_at(&stop) == place(&file, &edited, "STOP") {
                break;
            }
            // The page has not taken the module up yet; or the server has sent it twice, which it may.
            let others = [place(&file, &before, "STOP"), place(&file, &edited, "TOP")];
            assert!(others.contains(&stopped_at(&stop)), "{stop:#}");
        }
        sandbox.json(&["debug", "continue"]);
        before = edited;
    }
    sandbox.json(&["debug", "stop", session]);
    sandbox.json(&["stop"]);
}

#[test]
fn a_script_that_is_replaced_in_a_page_stops_where_its_code_is_now() {
    replace_module("orders.js", HOT_ORDERS);
}

#[test]
fn typescript_that_is_replaced_in_a_page_stops_where_its_code_is_now() {
    let text = HOT_ORDERS.replace("(order)", "(order: number)").replace("const rate", "const rate: number");
    replace_module("orders.ts", &text);
}

const SHARED: &str = "\
let asked = 0;
onconnect = (event) => {
  event.ports[0].onmessage = () => {
    asked += 1; // ASKED
  };
};
";

/// It belongs to no page.
#[test]
fn a_breakpoint_in_a_shared_worker_says_what_debugs_it_and_that_stops_there() {
    let Some(sandbox) = vite_project("vite --host 127.0.0.1") else { return };
    sandbox.write("public/shared.js", SHARED);
    let script = "const { port } = new SharedWorker('/shared.js');\nport.start();\nsetInterval(() => port.postMessage(1), 100);\n";
    sandbox.write("public/shared.html", &format!("<!doctype html><title>shared</title><script>{script}</script>"));
    sandbox.tether(&["trust", "--yes"]).ok();
    let port = sandbox.json(&["start"])["cdpPort"].to_string();
    sandbox.json(&["debug", "attach", "--window", "page"]);
    run_in_page(&sandbox, "location.href = '/shared.html'");
    let at = place("public/shared.js", SHARED, "ASKED");
    // The worker is listed once it runs.
    let command = eventually("the worker is named", || {
        sandbox.json(&["break", "remove", "--all"]);
        let set = sandbox.json(&["break", "set", &at]);
        let message = set["message"].as_str().unwrap_or_default();
        let (_, command) = message.split_once("belongs to no page: `tether ")?;
        Some(command.split('`').next().unwrap().to_owned())
    });
    assert!(command.starts_with(&format!("debug attach {port} --url http")), "{command}");
    let words: Vec<&str> = command.split(' ').chain(["--wait", "60"]).collect();
    let stop = sandbox.json(&words);
    assert_eq!(stopped_at(&stop), at, "{stop:#}");
    let session = stop["sessionId"].as_str().unwrap();
    let asked = sandbox.json(&["debug", "evaluate", "asked", "--session", session]);
    assert!(asked["result"].as_str().unwrap().parse::<u32>().is_ok(), "{asked:#}");
    sandbox.json(&["debug", "stop", session]);
    sandbox.json(&["stop"]);
}
