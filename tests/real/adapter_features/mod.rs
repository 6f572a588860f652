//! What each adapter can do, found out by one script with real programs and real adapters. The table of it,
//! `src/adapters/abilities.md`, is written and checked by these tests.
//!
//! `UPDATE_ABILITIES=1 cargo test --test real adapter_features` writes the table again.

mod attaching;
mod children;
mod columns;
pub mod debuggees;
mod feature_script;
mod feature_table;
mod hit_conditions;
mod links;
mod project;
mod reloads;
mod sessions;

use feature_table::FeatureResults;

/// Runs the script with one adapter. `None`, reported, when it is not installed.
async fn report(adapter: &'static str) -> Option<FeatureResults> {
    let subject = debuggees::of(adapter)?;
    let mut report = feature_script::tell(&subject).await;
    report.says("version", feature_table::pinned_version(adapter));
    report.can("attach", attaching::attaches(&subject).await);
    let [in_line, in_lambda] = columns::stops_at_columns(adapter).await;
    report.can("column", in_line);
    report.can("column in a lambda", in_lambda);
    report.says("children that stop", children::stop_in_children(adapter).await);
    report.says("breakpoint over a link", links::stop_over_links(adapter).await);
    report.says("breakpoint after a reload", reloads::stop_after_reload(adapter).await);
    Some(report)
}

macro_rules! adapters {
    ($($test:ident: $adapter:literal,)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            if let Some(report) = report($adapter).await {
                feature_table::hold($adapter, &report);
            }
        })*
    };
}

adapters! {
    debugpy_tells_its_story: "debugpy",
    node_tells_its_story: "node",
    js_debug_tells_its_story: "js-debug",
    rdbg_tells_its_story: "rdbg",
    delve_tells_its_story: "dlv",
    lldb_dap_tells_its_story: "lldb-dap",
    codelldb_tells_its_story: "codelldb",
    gdb_tells_its_story: "gdb",
    java_tells_its_story: "java",
}
