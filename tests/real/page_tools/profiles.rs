//! Traces, CPU profiles and heap snapshots over MCP, of real pages with a known flaw each.

use serde_json::{Value, json};

use super::page_fixture::PageFixture;
use crate::support::requirements::has_program;

/// The style sheet blocks; a script works for 200 ms, which is `busy` of `src/slow.ts`, and makes the browser lay the page out again
/// and again; the block above the heading comes late.
const SLOW: &str = r#"<!doctype html><link rel=icon href="data:,"><title>Slow</title><link rel=stylesheet href="/style.css">
<div id=late></div><h1 style="font-size:90px">The largest text of this page</h1><script src="/slow.js"></script>
<script>busy(200); setTimeout(() => { late.style.height = '200px' }, 300)</script>"#;
const SCRIPT: &str = "function busy(ms) {\n  const end = performance.now() + ms;\n  while (performance.now() < end) { document.body.style.width = (500 + Math.random()) + 'px'; document.body.offsetWidth; }\n}\n//# sourceMappingURL=slow.js.map\n";
const MAP: &str =
    r#"{"version":3,"file":"slow.js","sources":["../src/slow.ts"],"names":[],"mappings":"AAAA;AACA;AACA;AACA"}"#;
const SITE: &[(&str, &str)] = &[
    ("/", "<!doctype html><link rel=icon href=\"data:,\"><title>Start</title>"),
    ("/slow", SLOW),
    ("/slow.js", SCRIPT),
    ("/slow.js.map", MAP),
    ("/style.css", "h1 { color: red }"),
];

fn findings(report: &Value) -> String {
    let lines = report["findings"].as_array().unwrap().iter().map(|it| it.as_str().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_trace_and_a_profile_name_what_makes_a_page_slow() {
    if !has_program("chromium") {
        return;
    }
    let page = PageFixture::open(SITE).await;
    let traced = page.call("window_profile", json!({"url": "/slow"})).await;
    let said = findings(&traced);
    for expect in
        ["FCP ", "LCP ", "CLS 0.", "layouts forced by scripts took", "render-blocking: ", "/style.css", "long task of "]
    {
        assert!(said.contains(expect), "{expect}: {said}");
    }
    let file = traced["file"].as_str().unwrap();
    assert!(file.starts_with(".devtools/files/trace-") && file.ends_with(".json"), "{file}");
    let trace: Value = serde_json::from_slice(&std::fs::read(page.sandbox.path(file)).unwrap()).unwrap();
    assert!(trace["traceEvents"].as_array().unwrap().len() > 100);
    let profiled = page.call("window_profile", json!({"do": "cpu", "url": page.site.url("/slow")})).await;
    let said = findings(&profiled);
    assert!(said.contains("busy ../src/slow.ts:"), "{said}");
    let file = profiled["file"].as_str().unwrap();
    let profile: Value = serde_json::from_slice(&std::fs::read(page.sandbox.path(file)).unwrap()).unwrap();
    assert!(profile["nodes"].is_array() && file.ends_with(".cpuprofile"), "{file}");
    page.end().await;
}

#[tokio::test]
async fn a_heap_snapshot_names_the_class_that_has_grown() {
    if !has_program("chromium") {
        return;
    }
    let page = PageFixture::open(SITE).await;
    page.value("var kept = []; class LeakedCart { constructor() { this.items = new Array(100).fill(0) } } window.LeakedCart = LeakedCart; 0").await;
    page.call("window_profile", json!({"do": "heap"})).await;
    page.value("for (let at = 0; at < 5000; at++) kept.push(new LeakedCart()); 0").await;
    let grown = page.call("window_profile", json!({"do": "heap"})).await;
    let said = findings(&grown);
    let growth = said.split("grown most:").nth(1).unwrap_or_else(|| panic!("{said}"));
    assert!(growth.contains("in 5000 \"LeakedCart\""), "{said}");
    let file = grown["file"].as_str().unwrap();
    let snapshot = std::fs::read_to_string(page.sandbox.path(file)).unwrap();
    assert!(snapshot.starts_with("{\"snapshot\":") && snapshot.contains("LeakedCart"), "{file}");
    page.end().await;
}
