//! Options that only the command line has: of an operation's subcommand, beside its parameters.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Value, json};

use crate::api::debug::DebugLaunchParams;
use crate::api::extension_tests::TestRunParams;
use crate::api::page::PageScreenshotParams;
use crate::api::timeline::TimelineReadParams;
use crate::api::window::WindowStartParams;
use crate::api::{Operation, OperationParams, find_operation};

/// `tether timeline --trace`
pub const TRACE: &str = "trace";
/// `tether start --print-config`
pub const PRINT_CONFIG: &str = "print-config";
/// `tether test --debug`
const DEBUG: &str = "debug";
const BREAK: &str = "break";
const STOP_ON_FAILURE: &str = "stop-on-failure";
const WAIT: &str = "wait";

/// The subcommand of an operation.
pub fn operation_command(operation: &'static Operation) -> Command {
    let command = (operation.augment)(Command::new(operation.last_word()));
    match operation.method {
        WindowStartParams::METHOD => {
            let help = "Print what would run, and where each setting comes from, without running it";
            command.arg(Arg::new(PRINT_CONFIG).long(PRINT_CONFIG).action(ArgAction::SetTrue).help(help))
        }
        TimelineReadParams::METHOD => {
            let help = "Write all of it into this file as a Chrome trace, which Perfetto opens";
            let parser = clap::value_parser!(PathBuf);
            command.arg(Arg::new(TRACE).long(TRACE).value_name("FILE").value_parser(parser).help(help))
        }
        // The image is part of the result; only the command line writes it to a file.
        PageScreenshotParams::METHOD => command.arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .default_value("screenshot.png")
                .help("File for the picture"),
        ),
        TestRunParams::METHOD => add_debug_options(command),
        _ => command,
    }
}

/// `tether test --debug` is `tether debug launch` of the same tests.
fn add_debug_options(command: Command) -> Command {
    let of_debug = |name: &'static str| Arg::new(name).long(name).requires(DEBUG);
    let waits = clap::value_parser!(crate::api::debug::values::Seconds);
    command
        .arg(Arg::new(DEBUG).long(DEBUG).action(ArgAction::SetTrue).help("Run them under the debugger"))
        .arg(
            of_debug(BREAK)
                .short('b')
                .value_name("FILE:LINE")
                .action(ArgAction::Append)
                .help("With --debug: breakpoint to set first; may be repeated"),
        )
        .arg(of_debug(STOP_ON_FAILURE).action(ArgAction::SetTrue).help("With --debug: stop where a test fails"))
        .arg(of_debug(WAIT).value_name("SECONDS").value_parser(waits).help("With --debug: time to wait for a stop"))
}

/// The operation that a subcommand with these options means, and its parameters.
pub fn meant_operation(
    operation: &'static Operation,
    params: Value,
    matches: &ArgMatches,
    folder: &std::path::Path,
) -> (&'static Operation, Value) {
    let launch = find_operation(DebugLaunchParams::METHOD);
    let is_debugged = operation.method == TestRunParams::METHOD && matches.get_flag(DEBUG);
    let Some(launch) = launch.filter(|_| is_debugged) else { return (operation, params) };
    let absolute = |it: &String| folder.join(it).to_string_lossy().into_owned();
    let breakpoints: Vec<String> = matches.get_many::<String>(BREAK).into_iter().flatten().map(absolute).collect();
    let mut launched = json!({"extensionTests": true});
    if let Some(fields) = launched.as_object_mut() {
        let given = [("test", "name"), ("config", "config")];
        fields.extend(given.iter().filter_map(|(to, from)| Some(((*to).to_owned(), params.get(*from)?.clone()))));
        if !breakpoints.is_empty() {
            fields.insert("breakpoints".to_owned(), json!(breakpoints));
        }
        if matches.get_flag(STOP_ON_FAILURE) {
            fields.insert("stopOnFailure".to_owned(), json!(true));
        }
        if let Some(wait) = matches.get_one::<crate::api::debug::values::Seconds>(WAIT) {
            fields.insert("wait".to_owned(), json!(wait));
        }
    }
    (launch, launched)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(words: &[&str]) -> (&'static str, Value) {
        let operation = find_operation(TestRunParams::METHOD).unwrap();
        let matches = operation_command(operation).try_get_matches_from([&["test"], words].concat()).unwrap();
        let here = std::path::Path::new("/here");
        let params = (operation.from_matches)(&matches, here).unwrap();
        let (operation, params) = meant_operation(operation, params, &matches, here);
        (operation.method, params)
    }

    #[test]
    fn tests_are_run_or_debugged() {
        assert_eq!(meant(&["adds", "--config", "unit"]), ("test/run", json!({"name": "adds", "config": "unit"})));
        let debugged = meant(&["adds", "--debug", "-b", "src/a.ts:3", "--wait", "30", "--stop-on-failure"]);
        let expect = json!({"extensionTests": true, "test": "adds", "breakpoints": ["/here/src/a.ts:3"], "stopOnFailure": true,
                            "wait": 30.0});
        assert_eq!(debugged, ("debug/launch", expect));
        let operation = find_operation(TestRunParams::METHOD).unwrap();
        assert!(operation_command(operation).try_get_matches_from(["test", "--break", "a:1"]).is_err());
    }
}
