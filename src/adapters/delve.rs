//! Delve: Go, from sources, tests and programs that are built already.
//!
//! It dials us, and serves that one connection.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::places::{Search, Trail};
use super::wanted::{Address, Wanted, What};
use super::{Adapter, Begin, Found, Program, Quirks, Reach};
use crate::dap::types::Start;
use crate::error::Result;
use crate::tools::is_program;

pub const ROW: Adapter = Adapter {
    name: "dlv",
    id: "go",
    languages: &["go", "golang"],
    extensions: &["go"],
    types: &["go", "delve"],
    quirks: Quirks::NONE,
    install: "`apt-get install delve golang-go` or `go install github.com/go-delve/delve/cmd/dlv@latest` installs it",
    find,
    begin,
};

fn find(search: &Search) -> Result<Found> {
    let below = |variable: &str, folder: &str| search.var(variable).map(|path| PathBuf::from(path).join(folder));
    Trail::of(search, |path| is_program(path).then(|| path.to_owned()))
        .look_on_path(&["dlv"])
        .look(below("GOBIN", "dlv"), "GOBIN", is_program)
        .look(below("GOPATH", "bin/dlv"), "GOPATH", is_program)
        .look(search.home().map(|home| home.join("go/bin/dlv")), "go install", is_program)
        .look(search.mason("delve/dlv"), "mason", is_program)
        .end(ROW.name, ROW.install)
}

fn begin(found: &Found, wanted: &Wanted) -> Result<Begin> {
    if let Some(address) = listening(wanted) {
        let start = Start::Attach(wanted.over(json!({"mode": "remote"})));
        return Ok(Begin { run: None, reach: Reach::At(address), start, is_program: false, output_by_pipe: false });
    }
    let (start, cwd) = match &wanted.what {
        What::Pid(pid) => (Start::Attach(wanted.over(json!({"mode": "local", "processId": pid}))), wanted.cwd()),
        What::Fields if wanted.is_attach() => (Start::Attach(wanted.over(json!({"mode": "local"}))), wanted.cwd()),
        What::Module(_) | What::Page { .. } => {
            return Err(wanted.refused(ROW.name, "it debugs Go packages, programs and processes"));
        }
        _ => launch(wanted)?,
    };
    let argv = [found.path.as_os_str(), "dap".as_ref(), "--client-addr".as_ref(), "{address}".as_ref()];
    let argv = argv.into_iter().map(OsString::from).collect();
    Ok(Begin {
        // The environment is the compiler's, too (GOFLAGS, CGO_ENABLED).
        run: Some(Program { argv, cwd, env: wanted.env() }),
        reach: Reach::DialsUs,
        start,
        is_program: false,
        output_by_pipe: true,
    })
}

/// Where a headless Delve listens that is to be attached to.
fn listening(wanted: &Wanted) -> Option<Address> {
    match &wanted.what {
        What::Listening(address) => Some(address.clone()),
        What::Fields if wanted.is_attach() => Address::of(&wanted.fields),
        _ => None,
    }
}

/// The request, and the folder in which is compiled.
fn launch(wanted: &Wanted) -> Result<(Start, PathBuf)> {
    let program = wanted.existing(&wanted.program().unwrap_or_else(|| wanted.cwd()))?;
    let given = wanted.text("mode").filter(|mode| *mode != "auto");
    let test = program.to_string_lossy().ends_with("_test.go");
    let is_source = program.is_dir() || program.extension().is_some_and(|extension| extension == "go");
    let mode = given.unwrap_or(match () {
        () if test => "test",
        () if is_source => "debug",
        () => "exec",
    });
    let target = if is_source { package(&program, mode == "test") } else { program };
    let folder = if target.is_dir() { target.clone() } else { target.parent().unwrap_or(Path::new("/")).to_owned() };
    // In a configuration that says none, the program runs in its own folder, as in VS Code.
    let cwd = match (wanted.text("cwd"), &wanted.what) {
        (None, What::Fields) => folder.clone(),
        _ => wanted.cwd(),
    };
    let mut ours = wanted.launch(&target)?;
    ours["mode"] = mode.into();
    ours["hideSystemGoroutines"] = true.into();
    // `null` takes a variable away: from the program, too.
    ours["env"] = wanted.env().into_iter().map(|(name, value)| (name, Value::from(value))).collect();
    if is_source {
        // Beside the sources it would make the window stale.
        ours["output"] = "{scratch}/debug".into();
    }
    let mut fields = wanted.over(ours);
    for (name, value) in [("program", json!(target)), ("mode", json!(mode)), ("cwd", json!(cwd))] {
        fields.insert(name.to_owned(), value);
    }
    Ok((Start::Launch(fields), if is_source { folder } else { cwd }))
}

/// A file of a module stands for its package. A file without a module is a program of its own.
fn package(source: &Path, test: bool) -> PathBuf {
    let in_module = source.ancestors().skip(1).any(|folder| folder.join("go.mod").is_file());
    match source.parent() {
        Some(folder) if source.is_file() && (in_module || test) => folder.to_owned(),
        _ => source.to_owned(),
    }
}
