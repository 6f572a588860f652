//! netcoredbg: .NET. No registry ships it, so its command line and arguments are from its documentation and are held
//! by tests without it: it has never run here.
//!
//! Source: <https://github.com/Samsung/netcoredbg#readme>

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::native;
use super::places::{Search, Trail};
use super::wanted::{Wanted, What};
use super::{Adapter, Begin, Found, Program, Quirks, Reach};
use crate::dap::types::Start;
use crate::error::{Error, Result};
use crate::tools::is_program;

pub const ROW: Adapter = Adapter {
    name: "netcoredbg",
    id: "coreclr",
    languages: &["c#", "csharp", "f#", "fsharp", "vb", ".net", "dotnet"],
    extensions: &["dll", "cs", "fs", "vb", "csproj", "fsproj", "vbproj"],
    types: &["coreclr", "netcoredbg", "dotnet"],
    quirks: Quirks::NONE,
    install: "its releases are on github.com/Samsung/netcoredbg; `:MasonInstall netcoredbg` in Neovim installs it, too",
    find,
    begin,
};

fn find(search: &Search) -> Result<Found> {
    Trail::of(search, native::set(&["netcoredbg", "netcoredbg/netcoredbg"]))
        .look_on_path(&["netcoredbg"])
        .look(search.mason("netcoredbg/netcoredbg"), "mason", is_program)
        .look(search.mason("netcoredbg/libexec/netcoredbg/netcoredbg"), "mason", is_program)
        .look(Some(PathBuf::from("/usr/local/netcoredbg/netcoredbg")), "/usr/local", is_program)
        .end(ROW.name, ROW.install)
}

fn begin(found: &Found, wanted: &Wanted) -> Result<Begin> {
    let start = match &wanted.what {
        What::Pid(pid) => Start::Attach(wanted.over(json!({"processId": pid}))),
        What::Fields if wanted.is_attach() => Start::Attach(wanted.over(json!({}))),
        What::Program(_) | What::Fields => launch(wanted)?,
        _ => return Err(wanted.refused(ROW.name, "it debugs assemblies and processes")),
    };
    let argv = vec![found.path.clone().into(), "--interpreter=vscode".into()];
    Ok(Begin {
        run: Some(Program { argv, cwd: wanted.cwd.clone(), env: Default::default() }),
        reach: Reach::Pipes,
        start,
        is_program: false,
        output_by_pipe: false,
    })
}

fn launch(wanted: &Wanted) -> Result<Start> {
    let hint = "`dotnet build`, then `tether debug launch bin/Debug/net8.0/NAME.dll`";
    let program = wanted
        .program()
        .ok_or_else(|| Error::usage("cannot tell what .NET shall run").because("there is no `program`").hint(hint))?;
    let program = wanted.existing(&program)?;
    let is_source = |path: &Path| path.extension().is_some_and(|extension| extension != "dll");
    if is_source(&program) {
        let error = Error::usage(format!("cannot debug {} as it is", program.display()));
        return Err(error.because("it is no assembly: it has to be built first").hint(hint));
    }
    let usual = wanted.launch(&program)?;
    let mut fields = wanted.over(json!({"name": ".NET", "type": "coreclr", "request": "launch", "justMyCode": true}));
    for name in ["program", "args", "cwd", "env"] {
        fields.insert(name.to_owned(), usual[name].clone());
    }
    fields.insert("stopAtEntry".to_owned(), Value::from(wanted.stop_on_entry()));
    Ok(Start::Launch(fields))
}
