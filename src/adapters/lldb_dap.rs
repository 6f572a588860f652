//! lldb-dap, LLVM's own adapter: C, C++, Rust, and what else LLDB knows.

use std::path::Path;

use serde_json::json;

use super::native::{self, Words};
use super::places::{Search, Trail};
use super::wanted::Wanted;
use super::{Adapter, Begin, Found, Program, Quirks, Reach};
use crate::dap::types::{Fields, Start};
use crate::error::Result;
use crate::tools::is_program;

pub const ROW: Adapter = Adapter {
    name: "lldb-dap",
    id: "lldb-dap",
    languages: native::LANGUAGES,
    extensions: native::EXTENSIONS,
    types: &["lldb-dap", "lldb-vscode", "swift-lldb", "cppdbg"],
    quirks: Quirks::NONE,
    install: "`tether adapters install lldb-dap` or `apt-get install lldb` installs it",
    find,
    begin,
};

/// Distributions put the version behind the name; before version 18 it was called lldb-vscode.
const NAMES: &[&str] =
    &["lldb-dap", "lldb-dap-22", "lldb-dap-21", "lldb-dap-20", "lldb-dap-19", "lldb-dap-18", "lldb-vscode"];

const WORDS: Words = Words {
    adapter: ROW.name,
    launch: |_| json!({}),
    remote: |address, program| {
        let connect = format!("gdb-remote {}:{}", address.host, address.port);
        let mut fields = Fields::from_iter([("attachCommands".to_owned(), json!([native::PATIENT, connect]))]);
        fields.extend(program.map(|program| ("program".to_owned(), json!(program))));
        Start::Attach(fields)
    },
};

/// As `rust-lldb` does it.
fn rust(formatters: &Path) -> Vec<String> {
    let quoted = |file: &str| format!("{:?}", formatters.join(file).display().to_string());
    vec![
        format!("command script import {}", quoted("lldb_lookup.py")),
        format!("command source -s 1 {}", quoted("lldb_commands")),
    ]
}

fn find(search: &Search) -> Result<Found> {
    Trail::of(search, native::set(&["lldb-dap", "bin/lldb-dap"]))
        .look_on_path(NAMES)
        .look_at_ours("lldb-dap", |entry| entry.to_owned(), is_program)
        .look(search.mason("lldb-dap/lldb-dap"), "mason", is_program)
        .look_at_extensions("llvm-vs-code-extensions.lldb-dap", "bin/lldb-dap", is_program)
        .end(ROW.name, ROW.install)
        .map(|found| native::with_formatters(found, search))
}

fn begin(found: &Found, wanted: &Wanted) -> Result<Begin> {
    let mut start = native::start(wanted, &WORDS)?;
    if let Some(formatters) = found.formatters.as_deref().filter(|_| native::is_rust(wanted)) {
        let (Start::Launch(fields) | Start::Attach(fields)) = &mut start;
        let mut commands = rust(formatters);
        commands.extend(wanted.texts("initCommands")?);
        fields.insert("initCommands".to_owned(), json!(commands));
    }
    let argv = vec![found.path.clone().into()];
    Ok(Begin {
        run: Some(Program { argv, cwd: wanted.cwd.clone(), env: Default::default() }),
        reach: Reach::Pipes,
        start,
        is_program: false,
        output_by_pipe: false,
    })
}
