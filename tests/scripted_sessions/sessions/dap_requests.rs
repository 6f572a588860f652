//! Random requests of DAP, with the ids that the adapter has given out, with others, and with arguments that are missing.

use serde_json::{Value, json};

use super::choices::Choices;

/// Ids that were seen in what the adapter has sent.
#[derive(Default)]
pub struct KnownIds {
    pub threads: Vec<i64>,
    frames: Vec<i64>,
    references: Vec<i64>,
    sources: Vec<i64>,
    data: Vec<Value>,
    /// Something has stopped, and was not resumed since.
    pub is_stopped: bool,
}

/// How many of each kind are remembered, the oldest of which are mostly stale.
const MAX_KNOWN: usize = 12;

const EXPRESSIONS: [&str; 24] = [
    "value",
    "this",
    "a.b.c",
    "this.value.value",
    "x[0]",
    "x[-1]",
    "x[2147483647]",
    "1/0",
    "-2147483648 % -1",
    "-9223372036854775808L / -1",
    "(byte) 300 + 'a'",
    "new int[3][-1]",
    "\"ä\" + value + 1.0e300f",
    "a ? b : c",
    "Main.run(1, 2)",
    "new Main()",
    "Main.class",
    "(Main) value",
    "value instanceof Main",
    "x = 5",
    "1 << 65",
    "a && (b || !c)",
    "Main[].class",
    "value.toString().length()",
];

const CONDITIONS: [&str; 8] = ["", "value > 1", "1 +", "true", "(", "Main.run()", "%3", ">= 2"];
const FILES: [&str; 6] = ["/app/Main.java", "/app/ä b.js", "Main.java", "", "/", "file:///app/main.js"];
const FUNCTIONS: [&str; 8] =
    ["app.Main.run", "run", "app.Main.run:exit", "app.Main:3", "", "*", "Main$Inner.<init>", "a.b(int)"];

/// A request and its arguments.
pub struct PlannedRequest {
    pub command: &'static str,
    pub arguments: Option<Value>,
}

const READS: [&str; 8] =
    ["stackTrace", "stackTrace", "scopes", "scopes", "variables", "variables", "variables", "evaluate"];

const COMMANDS: [&str; 26] = [
    "threads",
    "stackTrace",
    "scopes",
    "variables",
    "evaluate",
    "setVariable",
    "setExpression",
    "stepInTargets",
    "completions",
    "exceptionInfo",
    "dataBreakpointInfo",
    "setDataBreakpoints",
    "setBreakpoints",
    "setFunctionBreakpoints",
    "setExceptionBreakpoints",
    "continue",
    "next",
    "stepIn",
    "stepOut",
    "pause",
    "restartFrame",
    "source",
    "captureEvents",
    "redefineClasses",
    "configurationDone",
    "unknownCommand",
];

pub fn plan_request(choices: &Choices, known: &KnownIds) -> PlannedRequest {
    let command = match choices.below(4) {
        // What an editor does at a stop.
        0 | 1 if known.is_stopped => choices.pick(&READS),
        _ => choices.pick(&COMMANDS),
    };
    let arguments = match choices.below(40) {
        37 => None,
        38 => Some(json!({})),
        39 => {
            Some(json!({"threadId": "1", "frameId": -1.5, "variablesReference": [], "expression": 3, "breakpoints": 0}))
        }
        _ => Some(plan_arguments(command, choices, known)),
    };
    PlannedRequest { command, arguments }
}

fn plan_arguments(command: &str, choices: &Choices, known: &KnownIds) -> Value {
    let thread = || pick_id(choices, &known.threads);
    let frame = || pick_id(choices, &known.frames);
    let reference = || pick_id(choices, &known.references);
    let expression = || match choices.is_one_in(6) {
        true => choices.text(),
        false => choices.pick(&EXPRESSIONS).to_owned(),
    };
    match command {
        "stackTrace" => match choices.is_one_in(3) {
            true => json!({"threadId": thread(), "startFrame": choices.number(), "levels": choices.number()}),
            false => json!({"threadId": thread()}),
        },
        "scopes" | "stepInTargets" | "restartFrame" => json!({"frameId": frame()}),
        "variables" => match choices.below(3) {
            0 => json!({"variablesReference": reference()}),
            1 => json!({"variablesReference": reference(), "start": choices.number(), "count": choices.number()}),
            _ => json!({"variablesReference": reference(), "filter": choices.pick(&["indexed", "named"]),
                "start": choices.number(), "count": choices.number()}),
        },
        "evaluate" => {
            let context = choices.pick(&["watch", "hover", "repl", "clipboard"]);
            match choices.is_one_in(5) {
                true => json!({"expression": expression(), "context": context}),
                false => json!({"expression": expression(), "frameId": frame(), "context": context}),
            }
        }
        "setVariable" => json!({"variablesReference": reference(), "name": choices.text(), "value": expression()}),
        "setExpression" => json!({"expression": expression(), "value": expression(), "frameId": frame()}),
        "completions" => {
            json!({"text": expression(), "column": choices.number(), "line": choices.number(), "frameId": frame()})
        }
        "exceptionInfo" | "pause" | "stepOut" => json!({"threadId": thread()}),
        "continue" | "next" | "stepIn" => {
            json!({"threadId": thread(), "singleThread": choices.is_one_in(2), "targetId": choices.number()})
        }
        "dataBreakpointInfo" => json!({"variablesReference": reference(), "name": choices.text(), "frameId": frame()}),
        "setDataBreakpoints" => {
            let data_id = match known.data.len() {
                0 => json!(choices.text()),
                count => known.data[choices.below(count)].clone(),
            };
            json!({"breakpoints": [{"dataId": data_id, "accessType": choices.pick(&["read", "write", "readWrite"]),
                "condition": choices.pick(&CONDITIONS)}]})
        }
        "setBreakpoints" => {
            let count = choices.below(4);
            let lines: Vec<Value> = (0..count).map(|_| plan_breakpoint(choices)).collect();
            json!({"source": {"path": choices.pick(&FILES)}, "breakpoints": lines})
        }
        "setFunctionBreakpoints" => json!({"breakpoints": [{"name": choices.pick(&FUNCTIONS),
            "condition": choices.pick(&CONDITIONS), "hitCondition": choices.pick(&CONDITIONS)}]}),
        "setExceptionBreakpoints" => json!({"filters": [choices.pick(&["caught", "uncaught", "vmDeath", ""])]}),
        "source" => json!({"sourceReference": pick_id(choices, &known.sources), "source": {}}),
        "captureEvents" => json!({"kinds": [choices.pick(&["thread", "class", "monitor", "x", ""])]}),
        _ => json!({}),
    }
}

fn plan_breakpoint(choices: &Choices) -> Value {
    json!({"line": choices.number(), "column": choices.number(), "condition": choices.pick(&CONDITIONS),
        "hitCondition": choices.pick(&["", "3", "%2", ">=9223372036854775807", "%0", "-1"]),
        "logMessage": choices.pick(&["", "", "", "at {value} {", "{", "}{a.b}ä"])})
}

fn pick_id(choices: &Choices, known: &[i64]) -> i64 {
    match known.len() {
        count if count > 0 && !choices.is_one_in(6) => known[choices.below(count)],
        _ => choices.number(),
    }
}

impl KnownIds {
    /// Remembers the ids of a response or an event.
    pub fn learn(&mut self, command: &str, body: &Value) {
        let list = |name: &str| body[name].as_array().cloned().unwrap_or_default();
        let ids = |values: Vec<Value>, key: &str| values.iter().filter_map(|it| it[key].as_i64()).collect::<Vec<_>>();
        match command {
            "threads" => remember(&mut self.threads, ids(list("threads"), "id")),
            "stackTrace" => {
                let frames = list("stackFrames");
                let sources: Vec<Value> = frames.iter().map(|frame| frame["source"].clone()).collect();
                remember(&mut self.sources, ids(sources, "sourceReference"));
                remember(&mut self.frames, ids(frames, "id"));
            }
            "scopes" => remember(&mut self.references, ids(list("scopes"), "variablesReference")),
            "variables" => remember(&mut self.references, ids(list("variables"), "variablesReference")),
            "evaluate" | "setVariable" | "setExpression" => {
                remember(&mut self.references, body["variablesReference"].as_i64().into_iter().collect());
            }
            "dataBreakpointInfo" if !body["dataId"].is_null() => {
                self.data.push(body["dataId"].clone());
                self.data.truncate(MAX_KNOWN);
            }
            "stopped" | "thread" => {
                self.is_stopped |= command == "stopped";
                remember(&mut self.threads, body["threadId"].as_i64().into_iter().collect());
            }
            "continue" | "next" | "stepIn" | "stepOut" | "restartFrame" => self.is_stopped = false,
            _ => {}
        }
    }
}

fn remember(known: &mut Vec<i64>, ids: Vec<i64>) {
    known.extend(ids.into_iter().filter(|id| *id != 0));
    known.drain(..known.len().saturating_sub(MAX_KNOWN));
}
