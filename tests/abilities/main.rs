//! What each adapter can do, found out by telling one story with each of them: real programs, real adapters. The table
//! of it, `src/adapters/abilities.md`, is written by these tests and held to them.
//!
//! `UPDATE_ABILITIES=1 cargo test --test abilities` writes the table anew.

mod attach;
#[path = "../common/mod.rs"]
mod common;
mod programs;
mod stage;
mod story;
mod table;

use table::Told;

/// Tells the story with one adapter; `None` when it is not there.
async fn told(adapter: &'static str) -> Option<Told> {
    let subject = programs::of(adapter)?;
    let mut told = story::tell(&subject).await;
    told.can("attach", attach::attaches(&subject).await);
    Some(told)
}

macro_rules! adapters {
    ($($test:ident: $adapter:literal,)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            if let Some(told) = told($adapter).await {
                table::hold($adapter, &told);
            }
        })*
    };
}

adapters! {
    debugpy_tells_its_story: "debugpy",
    js_debug_tells_its_story: "js-debug",
    rdbg_tells_its_story: "rdbg",
    delve_tells_its_story: "dlv",
    lldb_dap_tells_its_story: "lldb-dap",
    codelldb_tells_its_story: "codelldb",
    gdb_tells_its_story: "gdb",
}
