//! rdbg: Ruby, with the gem `debug`, which comes with Ruby 3.1 and newer.
//!
//! The program itself serves DAP, on a private Unix socket that other users cannot open. rdbg puts itself, and the path of
//! the socket, into the environment: a child that inherited it would take the socket over, and wait there for a debugger. So the
//! program clears its environment before its first line, and its children run as without a debugger. Each Ruby among
//! them reports itself. A child by `fork` shares the program's connection, and is debugged over it: a script of ours sees to it
//! that a breakpoint is set in all of these processes.

use std::ffi::OsString;
use std::path::Path;

use serde_json::{Value, json};
use tether_base::error::{Error, Result};
use tether_tools::is_program;

use crate::adapters::{
    Adapter, AdapterLookup, AdapterSearch, Address, ConnectMethod, DebugTarget, DebugTargetKind, DebuggedChildren,
    DetachHook, FoundAdapter, HitCounting, LaunchPlan, PathMapUse, ProcessPlan, ProcessReporter, Quirks,
};
use crate::workspace::workspace_programs::RDBG;

/// The row of the table.
pub const ADAPTER: Adapter = Adapter {
    name: "rdbg",
    id: "rdbg",
    languages: &["ruby", "rb"],
    extensions: &["rb", "rake", "ru"],
    types: &["rdbg", "ruby", "ruby_lsp"],
    attach_types: &[],
    runtimes: &["ruby"],
    children: |_| DebuggedChildren::ForkedOnly(NOT_DEBUGGED),
    quirks: Quirks {
        path_maps: PathMapUse::Since("1.6"),
        binds_unloaded: true,
        sends_initial_pause: true,
        close_means_terminated: true,
        breakpoints_accumulate: true,
        detach_hook: Some(DetachHook { expression: include_str!("detach_hook.rb"), value: ":ready" }),
        hit_counting: HitCounting::None,
        ignores_columns: true,
        ..Quirks::NONE
    },
    install: "`apt-get install ruby` or `gem install debug` installs it",
    find: find_adapter,
    plan: plan_launch,
};

/// The options of every Ruby, which rdbg overwrites for the program.
const OPTIONS: &str = "RUBYOPT";
/// Carries what the user has set as [`OPTIONS`] to the program, for its children.
const USER_OPTIONS: &str = "DEVTETHER_RUBYOPT";
/// Carries the private folder to the program.
const REPORTS: &str = "DEVTETHER_RUBY_REPORTS";

const PROCESS_REPORTER: ProcessReporter = ProcessReporter {
    script: include_str!("report_child.rb"),
    path: "ruby/rubygems/defaults/ruby.rb",
    others: &[("ruby/share_breakpoints.rb", include_str!("share_breakpoints.rb"))],
    reason: NOT_DEBUGGED,
};
/// Why a child is not debugged.
const NOT_DEBUGGED: &str = "rdbg debugs only the children that a program forks";

/// A command of rdbg's console, which the program runs before its first line. Into a pipe, Ruby prints only when its buffer is
/// full. The environment becomes the user's own, apart from the folder of [`PROCESS_REPORTER`].
const BEFORE_FIRST_LINE: &str = concat!(
    "eval $stdout.sync = true; ",
    "load ENV['DEVTETHER_RUBY_REPORTS'] + '/ruby/share_breakpoints.rb'; ",
    "[ENV['RUBYOPT'].to_s.gsub(%r{-r ?\\S+/lib/debug/open(?!\\S)}, '').strip, ENV.delete('DEVTETHER_RUBYOPT').to_s]",
    ".uniq.reject(&:empty?).then { |it| ENV['RUBYOPT'] = it.empty? ? nil : it.reverse.join(' ') }; ",
    "%w[RUBY_DEBUG_COMMANDS RUBY_DEBUG_SOCK_PATH].each { |it| ENV.delete(it) }; ",
    "ENV.delete('DEVTETHER_RUBY_REPORTS')&.then { |it| ENV['RUBYLIB'] = [ENV['RUBYLIB'], it + '/ruby'].compact.join(':') }"
);

/// Commands of rdbg's console that stop where an assertion of minitest, test-unit or RSpec fails: by the names of classes, which need
/// not be loaded yet. minitest skips a test by an exception of a class below that of its assertions; test-unit raises each a second
/// time, while the first is `$!`.
const FAILED_ASSERTIONS: &[&str] = &[
    "catch Minitest::Assertion if: __method__ != :skip",
    "catch Test::Unit::AssertionFailedError if: $!.class.name != 'Test::Unit::AssertionFailedError'",
    "catch RSpec::Expectations::ExpectationNotMetError",
];

/// Bundler hides the gems that the Gemfile does not have, and the native part of this one.
const EXIT_HINTS: &[(&str, &str)] =
    &[("cannot load such file -- debug/", "`bundle add debug --group development` adds the debugger to the Gemfile")];

/// Debian appends the version of Ruby to the name.
const NAMES: &[&str] = &["rdbg", "rdbg4.0", "rdbg3.5", "rdbg3.4", "rdbg3.3", "rdbg3.2", "rdbg3.1"];

fn find_adapter(search: &AdapterSearch) -> Result<FoundAdapter> {
    let gems = search.home().map(|home| home.join(".local/share/gem/ruby"));
    let versions = gems.and_then(|gems| std::fs::read_dir(gems).ok()).into_iter().flatten().flatten();
    let mut trail = AdapterLookup::new(search, is_program, &[]).try_on_path(NAMES);
    for version in versions {
        trail = trail.try_path(Some(version.path().join("bin/rdbg")), "your gems");
    }
    trail.try_workspace_program(RDBG).finish(ADAPTER.name, ADAPTER.install)
}

fn plan_launch(found: &FoundAdapter, target: &DebugTarget) -> Result<LaunchPlan> {
    if let Some(address) = listener_address(target)? {
        let fields = target.with_configuration(path_fields(target)?);
        return Ok(LaunchPlan::attach_to_listener(address, target, fields));
    }
    if target.is_attach() {
        return Err(target
            .unsupported_error(ADAPTER.name, "it attaches only to a process that listens")
            .hint("start it with `rdbg --open --port 12345 -- app.rb`, and attach to that port"));
    }
    let mut argv: Vec<OsString> = vec![found.path.clone().into()];
    argv.extend(["--open", "--sock-path", "{socket}", "-e", BEFORE_FIRST_LINE].map(OsString::from));
    if target.stops_at_test_failures {
        argv.extend(FAILED_ASSERTIONS.iter().flat_map(|caught| ["-e", caught]).map(OsString::from));
    }
    argv.extend(program_argv(target)?);
    argv.extend(target.args()?.into_iter().map(OsString::from));
    let mut env = target.env();
    if let Some(options) = env.get(OPTIONS).cloned().unwrap_or_else(|| std::env::var(OPTIONS).ok()) {
        env.insert(USER_OPTIONS.to_owned(), Some(options));
    }
    env.insert(REPORTS.to_owned(), Some("{scratch}".to_owned()));
    let process = ProcessPlan { argv, cwd: target.cwd(), env };
    // An earlier line reports that it can be attached to. But until its main thread waits, it treats a connection
    // as its console's, and writes plain text into it.
    let connect = ConnectMethod::UnixSocket { is_ready: |line| line.contains("wait for debugger connection") };
    let start = target.attach_request(json!({"localfs": true, "nonstop": !target.stop_on_entry()}));
    let plan = LaunchPlan::start_program(process, connect, start);
    Ok(LaunchPlan { process_reporter: Some(PROCESS_REPORTER), exit_hints: EXIT_HINTS, ..plan })
}

/// Where the program's files are: on this machine, or in the folders of a map. rdbg heeds `localfs` before `localfsMap`.
fn path_fields(target: &DebugTarget) -> Result<Value> {
    if target.paths.is_empty() {
        return Ok(if target.fields.contains_key("localfsMap") { json!({}) } else { json!({"localfs": true}) });
    }
    let mut maps = Vec::new();
    for map in &target.paths {
        let folders = [&map.remote, &map.local].map(|folder| folder.to_string_lossy().into_owned());
        if folders.iter().any(|folder| folder.contains([':', ','])) {
            return Err(Error::usage(format!("cannot use the path map to {}", map.remote.display()))
                .because("rdbg takes no folders with `:` or `,` in their names"));
        }
        maps.push(folders.join(":"));
    }
    // What is in none of them has the same path here.
    maps.push("/:/".to_owned());
    Ok(json!({"localfsMap": maps.join(",")}))
}

/// A script, or the command of a configuration, such as `bundle exec rails`.
fn program_argv(target: &DebugTarget) -> Result<Vec<OsString>> {
    let script = target.text_field("script").map(|script| target.cwd().join(script)).or_else(|| target.program());
    let command: Vec<OsString> =
        target.text_field("command").into_iter().flat_map(str::split_whitespace).map(OsString::from).collect();
    let bundler = target.bool_field("useBundler") == Some(true);
    if command.is_empty() && script.is_none() {
        return Err(Error::usage("cannot launch Ruby")
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
    let script = script.map(|path| match path.exists() || target.text_field("command").is_none() {
        true => target.require_file(&path),
        false => Ok(Path::new(target.text_field("script").unwrap_or_default()).to_owned()),
    });
    words.extend(script.transpose()?.map(OsString::from));
    Ok(words)
}

/// The address that is attached to; `debugPort` is `12345` or `localhost:12345`.
fn listener_address(target: &DebugTarget) -> Result<Option<Address>> {
    if let DebugTargetKind::Listener(address) = &target.kind {
        return Ok(Some(address.clone()));
    }
    let Some(port) = target.fields.get("debugPort").filter(|_| target.is_attach()) else { return Ok(None) };
    let text = port.as_str().map_or_else(|| port.to_string(), str::to_owned);
    let (host, port) = text.rsplit_once(':').unwrap_or(("127.0.0.1", &text));
    match port.parse() {
        Ok(port) => Ok(Some(Address { host: host.to_owned(), port })),
        Err(_) => Err(Error::usage(format!("cannot attach to `debugPort` {text:?}"))
            .because("it is neither a port nor HOST:PORT")
            .hint("write `\"debugPort\": \"localhost:12345\"`")),
    }
}
