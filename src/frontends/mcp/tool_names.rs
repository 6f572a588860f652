//! Which operations are tools; and hints and notes for an agent: a command that is an operation is written as the tool that does the same.
//!
//! "`tether debug attach --pid PID`" becomes "`debug_attach {"pid":"PID"}`". A command that is no tool ("`tether trust`")
//! stays as it is. Texts are written once, with commands; does not depend on what a text is about.

use clap::builder::ValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Map, Value};
use tether_base::error::{Error, ErrorData};

use crate::api::debug::breakpoints::{BreakpointExportParams, BreakpointImportParams};
use crate::api::timeline::TimelineReadParams;
use crate::api::{OPERATIONS, Operation, OperationParams};

/// Operations that are no tools: files with breakpoints are exchanged by people, on the command line; the timeline is a
/// resource.
const NOT_OFFERED: [&str; 3] =
    [BreakpointExportParams::METHOD, BreakpointImportParams::METHOD, TimelineReadParams::METHOD];

/// The operations that are tools.
pub fn offered_operations() -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter().filter(|operation| !NOT_OFFERED.contains(&operation.method))
}

/// Fields of results with hints and notes of ours.
const HINT_FIELDS: [&str; 3] = ["notes", "cut", "message"];

/// The error, with the tools in its hints.
pub fn error_with_tools(error: &Error) -> Error {
    let mut data = ErrorData::from(error);
    data.hints.iter_mut().for_each(|hint| *hint = text_with_tools(hint));
    data.into()
}

/// Writes the tools into the hints and notes of a result.
pub fn name_tools(result: &mut Value) {
    for field in HINT_FIELDS {
        match result.get_mut(field) {
            Some(Value::String(text)) => *text = text_with_tools(text),
            Some(Value::Array(texts)) => {
                for text in texts {
                    if let Value::String(text) = text {
                        *text = text_with_tools(text);
                    }
                }
            }
            _ => {}
        }
    }
    if let Some(snapshot) = result.get_mut("snapshot") {
        name_tools(snapshot);
    }
}

/// The text, with each command between backquotes as a tool, and each option that stands alone as its parameter.
fn text_with_tools(text: &str) -> String {
    let mut named_a_tool = false;
    let parts = text.split('`').enumerate().map(|(index, part)| {
        if index % 2 == 0 {
            return part.to_owned();
        }
        match (tool_call(part), part.strip_prefix("--")) {
            (Some(call), _) => {
                named_a_tool = true;
                call
            }
            (None, Some(option)) if named_a_tool && !option.contains(' ') => camel_case(option),
            _ => part.to_owned(),
        }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// The tool and its arguments; `None`: the command is not an operation that is offered.
fn tool_call(command: &str) -> Option<String> {
    let words = shlex::split(command.strip_prefix("tether ")?)?;
    let operation = offered_operations().filter(|it| starts_with(&words, it.words)).max_by_key(|it| it.words.len())?;
    // Without the arguments when they cannot be read.
    let arguments = parse_arguments(operation, &words[operation.words.len()..]).unwrap_or_default();
    let name = operation.tool_name();
    Some(if arguments.is_empty() { name } else { format!("{name} {}", Value::Object(arguments)) })
}

fn starts_with(words: &[String], prefix: &[&str]) -> bool {
    words.len() >= prefix.len() && words.iter().zip(prefix).all(|(word, expected)| word == expected)
}

/// The arguments under the names of the parameters. Placeholders (`--pid PID`) are taken as they are.
fn parse_arguments(operation: &Operation, words: &[String]) -> Option<Map<String, Value>> {
    let as_text = |arg: Arg| {
        let arg = arg.required(false);
        match arg.get_action() {
            ArgAction::Set | ArgAction::Append => arg.value_parser(ValueParser::os_string()),
            _ => arg,
        }
    };
    let declared = (operation.augment)(Command::new("tool"));
    let known: Vec<KnownArgument> = declared.get_arguments().map(KnownArgument::new).collect();
    let command = declared.no_binary_name(true).mut_args(as_text);
    let matches = command.try_get_matches_from(words).ok()?;
    let given = known.iter().filter(|it| matches.value_source(&it.id) == Some(ValueSource::CommandLine));
    let argument = |it: &KnownArgument| {
        let mut values = argument_values(&matches, &it.id).into_iter().map(|value| it.tool_value(value));
        let value = if it.takes_several { values.collect() } else { values.next()? };
        Some((camel_case(&it.id), value))
    };
    Some(given.filter_map(argument).collect())
}

/// An argument of a command, as it is declared.
struct KnownArgument {
    id: String,
    takes_several: bool,
    /// Its values are names of ours: a command writes `extension-host`, a tool `extensionHost`.
    is_choice: bool,
}

impl KnownArgument {
    fn new(arg: &Arg) -> KnownArgument {
        let takes_several = matches!(arg.get_action(), ArgAction::Append) || arg.is_last_set();
        let is_choice = !arg.get_possible_values().is_empty();
        KnownArgument { id: arg.get_id().to_string(), takes_several, is_choice }
    }

    fn tool_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) if self.is_choice => Value::String(camel_case(&text)),
            value => value,
        }
    }
}

fn argument_values(matches: &ArgMatches, id: &str) -> Vec<Value> {
    let text = |value: &std::ffi::OsStr| {
        let text = value.to_string_lossy();
        // A number or `true` is itself; everything else is a text.
        serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.into_owned()))
    };
    matches.get_raw(id).into_iter().flatten().map(text).collect()
}

/// `stop-on-entry` and `stop_on_entry` as `stopOnEntry`.
fn camel_case(name: &str) -> String {
    let mut words = name.split(['-', '_']);
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (head, tail) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        name + &head.to_uppercase() + tail
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn commands_become_tools_and_other_commands_stay() {
        let check = |text: &str, expected: &str| assert_eq!(text_with_tools(text), expected);
        check("`tether start` builds one", "`window_start` builds one");
        check("`tether debug wait` waits", "`wait_for_stop` waits");
        check("`tether trust` shows them", "`tether trust` shows them");
        check("`tether break export` writes it", "`tether break export` writes it");
        check("`tether doctor --reap`, and with `--yes`", "`tether doctor --reap`, and with `--yes`");
        check("`tether debug launch PROGRAM` does", r#"`debug_launch {"program":"PROGRAM"}` does"#);
        check(
            "`tether debug launch PROGRAM -- ARGUMENTS`",
            r#"`debug_launch {"args":["ARGUMENTS"],"program":"PROGRAM"}`"#,
        );
        check("`tether debug attach --pid PID`", r#"`debug_attach {"pid":"PID"}`"#);
        check("`tether debug attach --window extension-host`", r#"`debug_attach {"window":"extensionHost"}`"#);
        check("`tether debug evaluate 'a = 1'`", r#"`debug_evaluate {"expression":"a = 1"}`"#);
        check("`tether break remove --all`", r#"`breakpoint_remove {"all":true}`"#);
        check("`tether start --rebuild always`", r#"`window_start {"rebuild":"always"}`"#);
        check("`tether debug status` shows it; a longer `--wait`", "`debug_status` shows it; a longer `wait`");
        check("`tether start", "`window_start");
        check("no command, `x`", "no command, `x`");
    }

    #[test]
    fn only_hints_and_notes_of_a_result_are_changed() {
        let text = "`tether start`";
        let mut result =
            json!({"notes": [text], "message": text, "value": text, "snapshot": {"cut": [text], "output": text}});
        name_tools(&mut result);
        let tool = "`window_start`";
        let expected =
            json!({"notes": [tool], "message": tool, "value": text, "snapshot": {"cut": [tool], "output": text}});
        assert_eq!(result, expected);
    }

    #[test]
    fn every_operation_is_named_by_its_words() {
        for operation in offered_operations() {
            let command = format!("tether {}", operation.words.join(" "));
            assert_eq!(tool_call(&command), Some(operation.tool_name()), "{command}");
        }
    }
}
