//! rdbg: Ruby, with the gem `debug`, which comes with Ruby 3.1 and newer.
//!
//! It is the program itself that serves: on a Unix socket of the session's own, where no other user comes near.

use std::ffi::OsString;
use std::path::Path;

use serde_json::json;

use super::places::{Search, Trail};
use super::wanted::{Address, Wanted, What};
use super::{Adapter, Begin, Found, Program, Quirks, Reach};
use crate::dap::types::Start;
use crate::error::{Error, Result};
use crate::tools::is_program;

pub const ROW: Adapter = Adapter {
    name: "rdbg",
    id: "rdbg",
    languages: &["ruby", "rb"],
    extensions: &["rb", "rake", "ru"],
    types: &["rdbg", "ruby", "ruby_lsp"],
    quirks: Quirks { opens_with_a_pause: true, closing_is_the_end: true, keeps_breakpoints: true, ..Quirks::NONE },
    install: "`apt-get install ruby` or `gem install debug` installs it",
    find,
    begin,
};

/// Debian puts the version of Ruby behind the name.
const NAMES: &[&str] = &["rdbg", "rdbg4.0", "rdbg3.5", "rdbg3.4", "rdbg3.3", "rdbg3.2", "rdbg3.1"];

fn find(search: &Search) -> Result<Found> {
    let gems = search.home().map(|home| home.join(".local/share/gem/ruby"));
    let versions = gems.and_then(|gems| std::fs::read_dir(gems).ok()).into_iter().flatten().flatten();
    let mut trail = Trail::of(search, |path| is_program(path).then(|| path.to_owned()))
        .look(Some(search.workspace.join("bin/rdbg")), "the workspace's bin", is_program)
        .look_on_path(NAMES);
    for version in versions {
        trail = trail.look(Some(version.path().join("bin/rdbg")), "your gems", is_program);
    }
    trail.end(ROW.name, ROW.install)
}

fn begin(found: &Found, wanted: &Wanted) -> Result<Begin> {
    if let Some(address) = listening(wanted)? {
        let start = Start::Attach(wanted.over(json!({"localfs": true})));
        return Ok(Begin { run: None, reach: Reach::At(address), start, is_program: false, output_by_pipe: false });
    }
    if wanted.is_attach() {
        return Err(wanted
            .refused(ROW.name, "it gets into no process that does not listen")
            .hint("start it with `rdbg --open --port 12345 -- app.rb`, and attach to that port"));
    }
    let mut argv: Vec<OsString> = vec![found.path.clone().into(), "--open".into(), "--sock-path".into()];
    argv.push("{socket}".into());
    // Into a pipe it would print only when its buffer is full.
    argv.extend(["-e", "eval $stdout.sync = true"].map(OsString::from));
    argv.extend(target(wanted)?);
    argv.extend(wanted.args()?.into_iter().map(OsString::from));
    let start = wanted.over(json!({"localfs": true, "nonstop": !wanted.stop_on_entry()}));
    Ok(Begin {
        run: Some(Program { argv, cwd: wanted.cwd(), env: wanted.env() }),
        // It says before that it can be attached to. But until its main thread waits, that thread takes any connection for
        // one of its own console's, and writes plain text into it.
        reach: Reach::Socket { ready: |line| line.contains("wait for debugger connection") },
        start: Start::Attach(start),
        is_program: true,
        output_by_pipe: true,
    })
}

/// A script, or the command that a configuration names, such as `bundle exec rails`.
fn target(wanted: &Wanted) -> Result<Vec<OsString>> {
    let script = wanted.text("script").map(|script| wanted.cwd().join(script)).or_else(|| wanted.program());
    let command: Vec<OsString> =
        wanted.text("command").into_iter().flat_map(str::split_whitespace).map(OsString::from).collect();
    let bundler = wanted.flag("useBundler") == Some(true);
    if command.is_empty() && script.is_none() {
        return Err(Error::usage("cannot tell what Ruby shall run")
            .because("there is no `script` or `program`, and no `command`")
            .hint("`tether debug launch app.rb` debugs a file"));
    }
    let mut words: Vec<OsString> = Vec::new();
    if bundler || !command.is_empty() {
        words.push("-c".into());
    }
    words.push("--".into());
    if bundler {
        words.extend(["bundle", "exec"].map(OsString::from));
    }
    if bundler && command.is_empty() {
        words.push("ruby".into());
    }
    words.extend(command);
    // A command's script need not be a file: `rails server`.
    let script = script.map(|path| match path.exists() || wanted.text("command").is_none() {
        true => wanted.existing(&path),
        false => Ok(Path::new(wanted.text("script").unwrap_or_default()).to_owned()),
    });
    words.extend(script.transpose()?.map(OsString::from));
    Ok(words)
}

/// `debugPort`: `12345` or `localhost:12345`.
fn listening(wanted: &Wanted) -> Result<Option<Address>> {
    if let What::Listening(address) = &wanted.what {
        return Ok(Some(address.clone()));
    }
    let Some(port) = wanted.fields.get("debugPort").filter(|_| wanted.is_attach()) else { return Ok(None) };
    let text = port.as_str().map_or_else(|| port.to_string(), str::to_owned);
    let (host, port) = text.rsplit_once(':').unwrap_or(("127.0.0.1", &text));
    match port.parse() {
        Ok(port) => Ok(Some(Address { host: host.to_owned(), port })),
        Err(_) => Err(Error::usage(format!("cannot attach to `debugPort` {text:?}"))
            .because("it is no port, and no host and port")
            .hint("write `\"debugPort\": \"localhost:12345\"`")),
    }
}
