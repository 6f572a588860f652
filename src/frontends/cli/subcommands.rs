//! The operations as subcommands: `tether status`, `tether debug launch`, `tether break list`.
//!
//! Makes the subcommands from the operation table, and finds the selected row. Does not depend on what an operation does.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use tether_base::error::{Error, Result};

use crate::api::{OPERATIONS, Operation};

/// A subcommand with an operation for each of its own subcommands.
struct SubcommandGroup {
    word: &'static str,
    about: &'static str,
    /// The subcommand that may be left out: `tether break app.py:22` is `tether break set app.py:22`.
    default_verb: Option<&'static str>,
}

const SUBCOMMAND_GROUPS: &[SubcommandGroup] = &[
    SubcommandGroup {
        word: "debug",
        about: "Debug programs: launch or attach, wait, step, inspect",
        default_verb: None,
    },
    SubcommandGroup {
        word: "break",
        about: "Set, list and remove breakpoints and watchpoints; choose which exceptions stop",
        default_verb: Some("set"),
    },
];

/// Adds a subcommand for each operation; `leaf` makes that of a row.
pub fn add_operations(command: Command, leaf: fn(&'static Operation) -> Command) -> Command {
    add_some_operations(command, leaf, |_| true)
}

/// Whether the lines of operations begin with this word.
pub fn is_operation_word(word: &str) -> bool {
    OPERATIONS.iter().any(|operation| operation.words[0] == word)
}

/// As [`add_operations`], for those whose lines begin with this word.
pub fn add_operations_of(word: &str, command: Command, leaf: fn(&'static Operation) -> Command) -> Command {
    add_some_operations(command, leaf, |operation| operation.words[0] == word)
}

fn add_some_operations(
    mut command: Command,
    leaf: fn(&'static Operation) -> Command,
    is_added: impl Fn(&Operation) -> bool,
) -> Command {
    for operation in OPERATIONS.iter().filter(|operation| is_added(operation)) {
        let Some(family) = SUBCOMMAND_GROUPS.iter().find(|family| operation.words[0] == family.word) else {
            command = command.subcommand(leaf(operation));
            continue;
        };
        if command.find_subcommand(family.word).is_none() {
            command = command.subcommand(family.group_command(leaf));
        }
    }
    command
}

/// An operation and its arguments.
type ParsedOperation<'a> = (&'static Operation, &'a ArgMatches);

/// The selected operation; `None`: the subcommand is not an operation.
pub fn find_selected(matches: &ArgMatches) -> Result<Option<ParsedOperation<'_>>> {
    let Some((word, below)) = matches.subcommand() else { return Ok(None) };
    let Some(family) = SUBCOMMAND_GROUPS.iter().find(|family| family.word == word) else {
        return Ok(operation_by_words(&[word]).map(|operation| (operation, below)));
    };
    let default_verb = family.default_verb.and_then(|verb| operation_by_words(&[word, verb]));
    let Some((verb, leaf)) = below.subcommand() else { return Ok(default_verb.map(|operation| (operation, below))) };
    if default_verb.is_some_and(|operation| has_arguments(operation, below)) {
        let doing = format!("`tether {word} {verb}` takes nothing between `{word}` and `{verb}`");
        return Err(Error::usage(doing).hint(format!("`tether {word} --help`")));
    }
    Ok(operation_by_words(&[word, verb]).map(|operation| (operation, leaf)))
}

/// Whether some of the operation's own arguments are present. (clap's `args_conflicts_with_subcommands` would count those
/// that are global, too: `tether break --json list` would set a breakpoint in a file `list`.)
fn has_arguments(operation: &Operation, matches: &ArgMatches) -> bool {
    let own = (operation.augment)(Command::new(operation.last_word()));
    own.get_arguments().any(|it| matches.value_source(it.get_id().as_str()) == Some(ValueSource::CommandLine))
}

fn operation_by_words(words: &[&str]) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.words == words)
}

impl SubcommandGroup {
    fn group_command(&self, leaf: fn(&'static Operation) -> Command) -> Command {
        let members = OPERATIONS.iter().filter(|operation| operation.words[0] == self.word).map(leaf);
        let command = Command::new(self.word).subcommands(members).arg_required_else_help(true);
        let command = match self.default_verb.and_then(|verb| operation_by_words(&[self.word, verb])) {
            Some(operation) => {
                (operation.augment)(command).subcommand_precedence_over_arg(true).subcommand_negates_reqs(true)
            }
            None => command.subcommand_required(true),
        };
        command.about(self.about)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;

    /// The method and the parameters that a line means, said in `/here`.
    fn read(line: &[&str]) -> Result<(&'static str, Value), String> {
        let command = add_operations(Command::new("tether"), |row| (row.augment)(Command::new(row.last_word())))
            .arg(clap::Arg::new("json").long("json").global(true).action(clap::ArgAction::SetTrue));
        let words = ["tether"].iter().chain(line);
        let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
        let (operation, arguments) =
            find_selected(&matches).map_err(|error| error.to_string())?.ok_or("no operation")?;
        let params = (operation.from_matches)(arguments, Path::new("/here")).map_err(|error| error.to_string())?;
        Ok((operation.method, params))
    }

    fn check(line: &[&str], method: &str, params: Value) {
        assert_eq!(read(line), Ok((method, params)), "{line:?}");
    }

    #[test]
    fn every_operation_is_found_by_its_words() {
        let command = add_operations(Command::new("tether"), |row| (row.augment)(Command::new(row.last_word())));
        for row in OPERATIONS {
            let found = row.words.iter().try_fold(&command, |command, word| command.find_subcommand(word));
            assert!(found.is_some(), "{:?}", row.words);
            assert!(
                SUBCOMMAND_GROUPS.iter().any(|family| family.word == row.words[0]) == (row.words.len() == 2),
                "{:?}",
                row.words
            );
        }
    }

    #[test]
    fn debug_commands_are_parsed() {
        check(
            &["debug", "launch", "app.py", "--", "-v", "a b"],
            "debug/launch",
            json!({"program": "/here/app.py", "args": ["-v", "a b"], "cwd": "/here"}),
        );
        check(
            &["debug", "launch", "app.py", "-b", "app.py:22", "-b", "/there/b.py:1", "--wait", "10", "--stop-on-entry"],
            "debug/launch",
            json!({"program": "/here/app.py", "breakpoints": ["/here/app.py:22", "/there/b.py:1"], "wait": 10.0,
                   "stopOnEntry": true, "cwd": "/here"}),
        );
        check(&["debug", "wait", "5"], "debug/wait_for_stop", json!({"timeout": 5.0}));
        check(&["debug", "wait", "--timeout", "5"], "debug/wait_for_stop", json!({"timeout": 5.0}));
        check(&["debug", "step", "in"], "debug/step", json!({"kind": "into"}));
        check(
            &["break", "set", "a.py", "--text", "return y"],
            "breakpoint/set",
            json!({"file": "/here/a.py", "text": "return y"}),
        );
        check(
            &["debug", "launch", "--test", "test_a.py::test_total", "--env", "A=1", "--env", "B=x=y"],
            "debug/launch",
            json!({"test": "test_a.py::test_total", "env": {"A": "1", "B": "x=y"}, "folder": "/here"}),
        );
        check(
            &["debug", "launch", "--test", "adds", "--cwd", "js"],
            "debug/launch",
            json!({"test": "adds", "cwd": "/here/js", "folder": "/here"}),
        );
        check(
            &["debug", "launch", "--programs", "a.py", "b.js"],
            "debug/launch",
            json!({"programs": ["/here/a.py", "/here/b.js"], "cwd": "/here"}),
        );
        check(&["debug", "launch", "--config", "Run"], "debug/launch", json!({"config": "Run"}));
        check(&["debug", "launch", "--restart", "s1"], "debug/launch", json!({"restart": "s1"}));
        check(&["debug", "attach", "5678"], "debug/attach", json!({"port": 5678}));
        check(&["debug", "attach", "--window", "extension-host"], "debug/attach", json!({"window": "extensionHost"}));
        check(&["debug", "wait", "2.5"], "debug/wait_for_stop", json!({"timeout": 2.5}));
        check(&["debug", "status"], "debug/status", json!({}));
        check(&["debug", "stop", "s1", "--detach"], "debug/stop", json!({"sessionId": "s1", "detach": true}));
        check(&["debug", "step"], "debug/step", json!({"kind": "over"}));
        check(&["debug", "step", "into", "--wait", "1"], "debug/step", json!({"kind": "into", "wait": 1.0}));
        check(&["debug", "run-to", "src/a.py:3"], "debug/run_to", json!({"file": "/here/src/a.py:3"}));
    }

    #[test]
    fn breakpoint_commands_are_parsed() {
        check(&["break", "app.py:22"], "breakpoint/set", json!({"file": "/here/app.py:22"}));
        check(
            &["break", "app.py:22", "--condition", "total > 3", "--hits", ">=2"],
            "breakpoint/set",
            json!({"file": "/here/app.py:22", "condition": "total > 3", "hitCondition": ">=2"}),
        );
        check(&["break", "set", "app.py", "--line", "3"], "breakpoint/set", json!({"file": "/here/app.py", "line": 3}));
        check(&["break", "--function", "total"], "breakpoint/set", json!({"function": "total"}));
        check(
            &["break", "set", "app.py:22", "--log", "{total}"],
            "breakpoint/set",
            json!({"file": "/here/app.py:22", "logMessage": "{total}"}),
        );
        check(&["break", "list"], "breakpoint/list", json!({}));
        check(&["break", "--json", "list"], "breakpoint/list", json!({}));
        check(&["break", "--json", "app.py:22"], "breakpoint/set", json!({"file": "/here/app.py:22"}));
        check(&["break", "remove", "3"], "breakpoint/remove", json!({"breakpointId": 3}));
        check(&["break", "remove", "--file", "app.py"], "breakpoint/remove", json!({"file": "/here/app.py"}));
        check(
            &["break", "exceptions", "--uncaught", "--caught=false"],
            "breakpoint/exceptions",
            json!({"caught": false, "uncaught": true}),
        );
        check(
            &["break", "watch", "order.total", "--access", "read-write"],
            "watchpoint/set",
            json!({"expression": "order.total", "access": "readWrite"}),
        );
    }

    #[test]
    fn inspection_commands_are_parsed() {
        check(&["debug", "evaluate", "order.total"], "debug/evaluate", json!({"expression": "order.total"}));
        check(
            &["debug", "evaluate", "--frame", "3", "--", "-x"],
            "debug/evaluate",
            json!({"expression": "-x", "frameId": 3}),
        );
        check(&["debug", "set", "total", "-5"], "debug/set_variable", json!({"name": "total", "value": "-5"}));
        check(&["debug", "variables", "a", "b"], "debug/variables", json!({"names": ["a", "b"]}));
        check(
            &["debug", "variables", "--in", "7", "--count", "3"],
            "debug/variables",
            json!({"variablesReference": 7, "count": 3}),
        );
        check(
            &["debug", "source", "app.py:22", "-C", "2"],
            "debug/source",
            json!({"file": "/here/app.py:22", "context": 2}),
        );
        check(&["debug", "stack", "--levels", "3"], "debug/stack", json!({"levels": 3}));
        check(&["debug", "output", "--since", "9"], "debug/output", json!({"since": 9}));
        check(
            &["probe", "app.py:22", "--expr", "order.total", "-e", "order", "--", "a"],
            "debug/probe",
            json!({"at": "/here/app.py:22", "expressions": ["order.total", "order"], "args": ["a"], "cwd": "/here"}),
        );
        check(
            &["probe", "app.py:22", "main.py"],
            "debug/probe",
            json!({"at": "/here/app.py:22", "program": "/here/main.py", "cwd": "/here"}),
        );
    }

    #[test]
    fn invalid_commands_are_rejected_with_a_reason() {
        let refused = |line: &[&str], words: &str| {
            let reported = read(line).unwrap_err();
            assert!(reported.contains(words), "{line:?}: {reported}");
        };
        refused(&["debug"], "Usage");
        refused(&["debug", "jump"], "jump");
        refused(&["break"], "Usage");
        refused(&["break", "set"], "FILE:LINE");
        refused(&["break", "app.py:22", "--function", "f"], "cannot be used with");
        refused(&["break", "app.py:22", "list"], "nothing between `break` and `list`");
        refused(&["debug", "wait", "soon"], "not a number of seconds");
        refused(&["debug", "wait", "-1"], "-1");
        refused(&["debug", "launch", "a.py", "--env", "A"], "NAME=VALUE");
        refused(&["debug", "step", "back"], "into");
        refused(&["break", "watch", "--class", "Order"], "--field");
        refused(&["probe"], "FILE:LINE");
    }

    /// The words of a line of a transcript: `'…'` holds one together.
    fn split(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        for (index, part) in line.split('\'').enumerate() {
            let mut pieces = if index % 2 == 1 { vec![part] } else { part.split(' ').collect() }.into_iter();
            words.last_mut().unwrap().push_str(pieces.next().unwrap_or_default());
            words.extend(pieces.map(str::to_owned));
        }
        words.retain(|word| !word.is_empty());
        words
    }

    /// The commands that a document names: in code that begins with `tether`, and in lines of a transcript.
    fn documented_commands(text: &str) -> Vec<String> {
        let spans = text.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix("tether "));
        let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("$ tether "));
        let commands = spans.chain(lines).map(|line| line.split(" #").next().unwrap_or_default());
        commands.flat_map(|line| line.split(" && ")).map(|line| line.trim_start_matches("tether ").to_owned()).collect()
    }

    /// Whether the command line, without `tether`, is one of ours. A text may name a command without its arguments.
    fn is_command(line: &str) -> bool {
        use clap::error::ErrorKind as Kind;
        let words = split(line).into_iter().map(|word| if word == "COMMAND" { "status".to_owned() } else { word });
        let parsed = crate::frontends::cli::tether_command()
            .try_get_matches_from(["tether".to_owned()].into_iter().chain(words));
        parsed.err().is_none_or(|error| {
            matches!(
                error.kind(),
                Kind::DisplayHelp
                    | Kind::DisplayVersion
                    | Kind::DisplayHelpOnMissingArgumentOrSubcommand
                    | Kind::MissingRequiredArgument
                    | Kind::MissingSubcommand
                    | Kind::ValueValidation
                    | Kind::InvalidValue
            )
        })
    }

    #[test]
    fn every_command_that_a_document_names_is_ours() {
        let checkout = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let book = std::fs::read_dir(checkout.join("docs/src")).unwrap().map(|entry| entry.unwrap().path());
        let pages = ["README.md", "CONTRIBUTING.md", "extension/README.md", "examples/nvim/README.md"]
            .map(|it| checkout.join(it));
        let mut count = 0;
        for page in book.chain(pages).filter(|page| page.extension().is_some_and(|it| it == "md")) {
            for line in documented_commands(&std::fs::read_to_string(&page).unwrap()) {
                // Optional parts and choices, as in `changes [PATH]`, are those of the help.
                if line.contains(['[', '|', '…', '\n']) {
                    continue;
                }
                count += 1;
                assert!(is_command(&line), "{}: `tether {line}` is not a command", page.display());
            }
        }
        assert!(count > 150, "{count} commands were found");
    }

    /// The Rust files below a folder.
    fn rust_files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries
            .flat_map(|path| match path.is_dir() {
                true => rust_files(&path),
                false => vec![path],
            })
            .filter(|path| path.extension().is_some_and(|it| it == "rs"))
            .collect()
    }

    /// The commands that the code names to its users: between backquotes, on one line, with a word for each `{value}`.
    fn named_commands(code: &str) -> Vec<String> {
        let product = code.split("#[cfg(test)]").next().unwrap_or_default();
        let texts = product.lines().filter(|line| line.contains('"') && !line.trim_start().starts_with("//"));
        let commands = texts.flat_map(|line| line.split("`tether ").skip(1)).filter_map(|rest| rest.split_once('`'));
        // The word of the command itself may be a value.
        let commands = commands.filter(|(command, _)| !command.starts_with('{'));
        commands
            .map(|(command, _)| {
                let parts = command.replace("\\\"", "").replace('}', "{");
                parts.split('{').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "1" }).collect()
            })
            .collect()
    }

    #[test]
    fn every_command_that_a_hint_names_is_ours() {
        let checkout = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut count = 0;
        for file in ["src", "crates"].iter().flat_map(|folder| rust_files(&checkout.join(folder))) {
            for line in named_commands(&std::fs::read_to_string(&file).unwrap()) {
                count += 1;
                assert!(is_command(&line), "{}: `tether {line}` is not a command", file.display());
            }
        }
        assert!(count > 100, "{count} commands were found");
    }

    #[test]
    fn the_commands_of_the_skill_are_ours() {
        let skill = include_str!("../../../examples/skills/tether-debug/SKILL.md");
        let lines: Vec<_> = skill.lines().filter_map(|line| line.strip_prefix("$ tether ")).collect();
        assert!(lines.len() > 20, "{lines:?}");
        for line in lines {
            let words = split(line);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert!(read(&words).is_ok(), "{line}: {:?}", read(&words));
        }
    }
}
