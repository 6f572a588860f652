//! Our own adapter for Node, and js-debug: programs, attaching to them, compiled sources.

use std::path::{Path, PathBuf};

use devtether::adapters::{Address, DebugTargetKind};
use devtether::vocabulary::{RunState, StopKind};

use crate::adapters::adapter_session::{AdapterSession, LONG, ProgramFolder, found, stops_and_ends};
use crate::listed_page::listed_page;
use crate::support::eventually;

const ADAPTERS: [&str; 2] = ["node", "js-debug"];

const APP: &str = "\
function double(order) {
  const total = order * 2;
  return total; // STOP
}
console.log(double(21));
";

#[tokio::test]
async fn a_program_is_debugged() {
    let place = ProgramFolder::new();
    let (app, line) = place.file("äpp one.js", APP);
    for adapter in ADAPTERS {
        stops_and_ends(adapter, &place.wants(DebugTargetKind::Program(app.clone())), (&app, line), "total = 42").await;
    }
}

#[tokio::test]
async fn a_program_with_an_inspector_keeps_running_after_detach() {
    let place = ProgramFolder::new();
    let text = "let total = 0;\nsetInterval(() => {\n  total += 1; // STOP\n}, 10);\n";
    let (app, line) = place.file("sërver.js", text);
    is_attached_to(&place, &app, (&app, line), "total").await;
}

#[tokio::test]
async fn a_process_without_an_inspector_is_attached_to_by_its_id() {
    let Some((row, found)) = found("node") else { return };
    let Some(node) = on_path("node") else { return };
    let place = ProgramFolder::new();
    let text = "let total = 0;\nsetInterval(() => {\n  total += 1; // STOP\n}, 10);\nconsole.log('up');\n";
    let (app, line) = place.file("sërver.js", text);
    // On any free port: the one that Node takes by itself may be taken.
    let argv = [node.as_os_str(), "--inspect-port=0".as_ref(), app.as_os_str()];
    let mut running = crate::adapters::start_failures::Started::of(&argv, &[]);
    running.line(|line| (line == "up").then_some(())).await;
    let target = place.wants(DebugTargetKind::Pid(running.pid()));
    // The second time it has an inspector.
    for _ in 0..2 {
        let play = AdapterSession::open(row, &found, &target, &[(&app, line)]).await;
        assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)));
        assert!(play.evaluate("total").await.parse::<u64>().is_ok());
        play.let_go().await;
        assert!(running.is_alive());
    }
}

/// The output of `tsc` for a source below `src`, with a relative source map.
const COMPILED: &str = "\
\"use strict\";
const ticks = [];
setInterval(() => {
    const tick = { total: ticks.length };
    ticks.push(tick);
}, 20);
//# sourceMappingURL=ticks.js.map";
const MAP: &str = r#"{"version":3,"file":"ticks.js","sourceRoot":"","sources":["../src/ticks.ts"],"names":[],"mappings":";AAIA,MAAM,KAAK,GAAW,EAAE,CAAC;AACzB,WAAW,CAAC,GAAG,EAAE;IACf,MAAM,IAAI,GAAS,EAAE,KAAK,EAAE,KAAK,CAAC,MAAM,EAAE,CAAC;IAC3C,KAAK,CAAC,IAAI,CAAC,IAAI,CAAC,CAAC;AACnB,CAAC,EAAE,EAAE,CAAC,CAAC"}"#;
const SOURCE: &str = "\
interface Tick {
  total: number;
}

const ticks: Tick[] = [];
setInterval(() => {
  const tick: Tick = { total: ticks.length };
  ticks.push(tick); // STOP
}, 20);
";

/// The source with its line `STOP`, and what was compiled from it.
fn compiled_program(place: &ProgramFolder) -> (PathBuf, u32, PathBuf) {
    for folder in ["src", "out"] {
        std::fs::create_dir(place.path().join(folder)).unwrap();
    }
    let (source, line) = place.file("src/ticks.ts", SOURCE);
    std::fs::write(place.path().join("out/ticks.js.map"), MAP).unwrap();
    let compiled = place.path().join("out/ticks.js");
    std::fs::write(&compiled, COMPILED).unwrap();
    (source, line, compiled)
}

#[tokio::test]
async fn a_compiled_program_stops_in_its_source() {
    let place = ProgramFolder::new();
    let (source, line, compiled) = compiled_program(&place);
    is_attached_to(&place, &compiled, (&source, line), "tick.total").await;
    // A launched program stops in code that runs at once, too.
    let first = 5;
    for (row, found) in ADAPTERS.iter().filter_map(|adapter| found(adapter)) {
        let program = place.wants(DebugTargetKind::Program(compiled.clone()));
        let play = AdapterSession::open(row, &found, &program, &[(&source, first)]).await;
        assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(first)));
        play.end().await;
    }
}

/// Attaches to a running program, stops it at a line, evaluates a number, and detaches.
async fn is_attached_to(place: &ProgramFolder, program: &Path, at: (&Path, u32), number: &str) {
    for adapter in ADAPTERS {
        is_attached_to_by(adapter, place, program, at, number).await;
    }
}

async fn is_attached_to_by(adapter: &str, place: &ProgramFolder, program: &Path, at: (&Path, u32), number: &str) {
    let Some((row, found)) = found(adapter) else { return };
    let Some(node) = on_path("node") else { return };
    let argv = [node.as_os_str(), "--inspect=127.0.0.1:0".as_ref(), program.as_os_str()];
    let mut running = crate::adapters::start_failures::Started::of(&argv, &[]);
    let port: u16 = running.line(|line| line.split("ws://127.0.0.1:").nth(1)?.split('/').next()?.parse().ok()).await;
    let play =
        AdapterSession::open(row, &found, &place.wants(DebugTargetKind::Listener(Address::loopback(port))), &[at])
            .await;
    assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(at.1)));
    assert!(play.evaluate(number).await.parse::<u64>().is_ok());
    play.let_go().await;
    assert!(running.is_alive());
}

/// The module is loaded long after the program was attached to, and runs as it is loaded.
#[tokio::test]
async fn a_module_that_an_attached_program_loads_stops_in_its_first_line() {
    let Some((row, found)) = found("node") else { return };
    let Some(node) = on_path("node") else { return };
    let place = ProgramFolder::new();
    let (source, ..) = compiled_program(&place);
    let first = 5;
    let text = "const { existsSync, writeFileSync } = require('node:fs');
const { Module } = require('node:module');
const loading = setInterval(() => {
  if (!existsSync(`${__dirname}/load`)) return;
  clearInterval(loading);
  require('./out/ticks.js');
}, 10);
setInterval(() => {
  if (!existsSync(`${__dirname}/left`)) return;
  const { value } = Object.getOwnPropertyDescriptor(Module.prototype, '_compile');
  writeFileSync(`${__dirname}/compile`, typeof value);
}, 10);
";
    let (app, _) = place.file("app.js", text);
    let argv = [node.as_os_str(), "--inspect=127.0.0.1:0".as_ref(), app.as_os_str()];
    let mut running = crate::adapters::start_failures::Started::of(&argv, &[]);
    let port: u16 = running.line(|line| line.split("ws://127.0.0.1:").nth(1)?.split('/').next()?.parse().ok()).await;
    let listener = place.wants(DebugTargetKind::Listener(Address::loopback(port)));
    let play = AdapterSession::open(row, &found, &listener, &[(&source, first)]).await;
    assert_eq!(play.session.wait_for_start(0, LONG).await, RunState::Running);
    std::fs::write(place.path().join("load"), "").unwrap();
    assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(first)));
    play.let_go().await;
    std::fs::write(place.path().join("left"), "").unwrap();
    let compile = eventually("the program says what compiles", || {
        std::fs::read_to_string(place.path().join("compile")).ok().filter(|text| !text.is_empty())
    });
    assert_eq!(compile, "function", "the program is left as it was");
    assert!(running.is_alive());
}

#[tokio::test]
async fn a_page_of_a_browser_is_attached_to() {
    let Some(chromium) = on_path("chromium") else { return };
    let place = ProgramFolder::new();
    let text = "let total = 0;\nsetInterval(() => {\n  total += 1; // STOP\n}, 10);\n";
    let (app, line) = place.file("päge.js", text);
    place.file("index.html", "<meta charset=utf-8><script src='päge.js'></script>");
    let profile = format!("--user-data-dir={}", place.path().join("profile").display());
    let url = format!("file://{}/index.html", place.path().display()).replace(' ', "%20").replace('ä', "%C3%A4");
    let words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0"];
    let mut argv = vec![chromium.as_os_str()];
    argv.extend(words.map(std::ffi::OsStr::new));
    argv.extend([&profile, &url].map(std::ffi::OsStr::new));
    let mut browser = crate::adapters::start_failures::Started::of(&argv, &[]);
    let port: u16 = browser.line(|line| line.split("ws://127.0.0.1:").nth(1)?.split('/').next()?.parse().ok()).await;
    // The browser's port answers before its first page is listed.
    listed_page(port, |page| page.url.ends_with("/index.html")).await;
    for (row, found) in ADAPTERS.iter().filter_map(|adapter| found(adapter)) {
        let page = place.wants(DebugTargetKind::Page { url: url.clone(), port });
        let play = AdapterSession::open(row, &found, &page, &[(&app, line)]).await;
        assert_eq!(play.stopped().await, (StopKind::BreakpointHit, i64::from(line)), "{}", row.name);
        assert!(play.evaluate("total").await.parse::<u64>().is_ok());
        play.let_go().await;
        assert!(browser.is_alive());
    }
}

fn on_path(program: &str) -> Option<std::path::PathBuf> {
    let found = tether_tools::find_on_path(&[program], std::env::var_os("PATH").as_deref());
    assert!(found.is_some() || std::env::var_os("CI").is_none(), "there is no {program}");
    found
}
