//! What a scripted inspector says: results of commands, and events. Objects have properties that are objects again.

use serde_json::{Value, json};

use super::choices::Choices;

/// Scripts by their id, with the address of a source map: none, inline, missing, broken, and one with lines far away.
const SCRIPTS: [(&str, &str); 8] = [
    ("file:///nonexistent-workspace/main.js", ""),
    (
        "file:///nonexistent-workspace/a.ts",
        "data:application/json,{\"version\":3,\"sources\":[\"a.ts\"],\"mappings\":\"AAAA;AACA\"}",
    ),
    ("file:///nonexistent-workspace/b.js", "b.js.map"),
    ("node:internal/timers", ""),
    ("", ""),
    ("file:///nonexistent-workspace/ä%20b.js", "data:application/json;base64,AAAA"),
    (
        "file:///nonexistent-workspace/c.js",
        "data:application/json,{\"version\":3,\"sources\":[\"c.ts\",\"\"],\"names\":[\"n\"],\"sourcesContent\":[\"x\\ny\"],\"mappings\":\"+++++/BgggggEA,AAAAA;;ADDD\"}",
    ),
    ("evalmachine.<anonymous>", "data:,"),
];
const REASONS: [&str; 12] = [
    "other",
    "other",
    "other",
    "other",
    "exception",
    "promiseRejection",
    "debugCommand",
    "instrumentation",
    "step",
    "OOM",
    "assert",
    "ambiguous",
];

pub fn result_of(method: &str, params: &Value, choices: &Choices) -> Value {
    match method {
        "Debugger.setBreakpointByUrl" => {
            let count = choices.below(3);
            let locations: Vec<Value> = (0..count).map(|_| location(choices)).collect();
            json!({"breakpointId": breakpoint_id(params, choices), "locations": locations})
        }
        "Debugger.setBreakpoint" => {
            json!({"breakpointId": breakpoint_id(params, choices), "actualLocation": location(choices)})
        }
        "Debugger.setBreakpointOnFunctionCall" => json!({"breakpointId": breakpoint_id(params, choices)}),
        "Debugger.getScriptSource" => json!({"scriptSource": choices.text()}),
        "Runtime.getProperties" => properties(choices),
        "Runtime.evaluate" | "Debugger.evaluateOnCallFrame" | "Runtime.callFunctionOn" => evaluated(choices),
        "Runtime.globalLexicalScopeNames" => json!({"names": ["main", "ä", choices.text()]}),
        "Network.loadNetworkResource" => json!({"resource": {"success": true, "stream": "1"}}),
        "IO.read" => {
            json!({"data": choices.text(), "eof": choices.is_one_in(2), "base64Encoded": choices.is_one_in(2)})
        }
        _ => json!({}),
    }
}

pub fn any_result(choices: &Choices) -> Value {
    match choices.below(6) {
        0 => properties(choices),
        1 => evaluated(choices),
        2 => json!([]),
        3 => json!(choices.number()),
        4 => json!({"breakpointId": choices.number(), "locations": [location(choices)]}),
        _ => paused(choices, &[])["params"].clone(),
    }
}

pub fn event(choices: &Choices, breakpoints: &[Value]) -> Value {
    match choices.below(16) {
        0..=3 => script_parsed(choices),
        4..=9 => paused(choices, breakpoints),
        10 => json!({"method": "Debugger.resumed", "params": {}}),
        11 => {
            let id = pick_breakpoint(choices, breakpoints);
            json!({"method": "Debugger.breakpointResolved", "params": {"breakpointId": id, "location": location(choices)}})
        }
        12 => {
            let kind = choices.pick(&["log", "error", "x"]);
            let arguments: Vec<Value> = (0..choices.below(4)).map(|_| object(choices, 2)).collect();
            json!({"method": "Runtime.consoleAPICalled", "params": {"type": kind, "args": arguments, "timestamp": 1.0}})
        }
        13 => {
            json!({"method": "Runtime.exceptionThrown", "params": {"timestamp": 1.0, "exceptionDetails": details(choices)}})
        }
        14 => match choices.below(4) {
            0 => json!({"method": "Runtime.executionContextsCleared", "params": {}}),
            1 => json!({"method": "NodeRuntime.waitingForDisconnect", "params": {}}),
            2 => {
                json!({"method": "Runtime.bindingCalled", "params": {"name": "x", "payload": choices.text(), "executionContextId": 1}})
            }
            _ => json!({"method": choices.text(), "params": choices.number()}),
        },
        _ => paused(choices, breakpoints),
    }
}

/// One part of it is another kind of value, or missing.
pub fn distort(mut value: Value, choices: &Choices) -> Value {
    let count = count_parts(&value);
    distort_part(&mut value, &mut choices.below(count.clamp(1, 256)), choices);
    value
}

fn count_parts(value: &Value) -> usize {
    match value {
        Value::Array(parts) => 1 + parts.iter().map(count_parts).sum::<usize>(),
        Value::Object(parts) => 1 + parts.values().map(count_parts).sum::<usize>(),
        _ => 1,
    }
}

/// Whether the part was reached.
fn distort_part(value: &mut Value, left: &mut usize, choices: &Choices) -> bool {
    if *left == 0 {
        *value = match choices.below(6) {
            0 => Value::Null,
            1 => json!(choices.number()),
            2 => json!(choices.text()),
            3 => json!([]),
            4 => json!({}),
            _ => json!(1.5),
        };
        return true;
    }
    *left -= 1;
    match value {
        Value::Array(parts) => parts.iter_mut().any(|part| distort_part(part, left, choices)),
        Value::Object(parts) => parts.values_mut().any(|part| distort_part(part, left, choices)),
        _ => false,
    }
}

fn breakpoint_id(params: &Value, choices: &Choices) -> Value {
    match choices.is_one_in(6) {
        true => json!(choices.text()),
        false => json!(format!("{}:{}", params["url"], params["lineNumber"])),
    }
}

fn pick_breakpoint(choices: &Choices, breakpoints: &[Value]) -> Value {
    match breakpoints.len() {
        count if count > 0 && !choices.is_one_in(5) => breakpoints[choices.below(count)].clone(),
        _ => json!(choices.text()),
    }
}

fn script_parsed(choices: &Choices) -> Value {
    let at = choices.below(SCRIPTS.len());
    let (url, map) = SCRIPTS[at];
    let params = json!({"scriptId": at.to_string(), "url": url, "sourceMapURL": map, "startLine": 0, "endLine": 9});
    json!({"method": "Debugger.scriptParsed", "params": params})
}

fn location(choices: &Choices) -> Value {
    json!({"scriptId": choices.below(SCRIPTS.len() + 1).to_string(), "lineNumber": choices.number(),
        "columnNumber": choices.number()})
}

fn paused(choices: &Choices, breakpoints: &[Value]) -> Value {
    let frames: Vec<Value> = (0..choices.below(6))
        .map(|depth| {
            let scopes: Vec<Value> = (0..choices.below(4))
                .map(|_| {
                    let kind = choices.pick(&["local", "block", "closure", "global", "module", "x"]);
                    json!({"type": kind, "object": object(choices, 0), "name": choices.text()})
                })
                .collect();
            json!({"callFrameId": format!("{{\"ordinal\":{depth}}}"), "functionName": choices.text(),
                "location": location(choices), "url": "", "scopeChain": scopes, "this": object(choices, 0)})
        })
        .collect();
    let mut params = json!({"callFrames": frames, "reason": choices.pick(&REASONS)});
    if choices.is_one_in(3) {
        params["hitBreakpoints"] = json!([pick_breakpoint(choices, breakpoints)]);
    }
    if choices.is_one_in(3) {
        params["data"] = object(choices, 1);
        params["data"]["uncaught"] = json!(true);
    }
    if choices.is_one_in(4) {
        params["asyncStackTrace"] = trace(choices, 3);
    }
    json!({"method": "Debugger.paused", "params": params})
}

fn trace(choices: &Choices, depth: usize) -> Value {
    let frame = json!({"functionName": choices.text(), "scriptId": "1", "url": "file:///x.js", "lineNumber": choices.number(),
        "columnNumber": choices.number()});
    let mut trace = json!({"description": choices.pick(&["await", "Promise.then", ""]), "callFrames": [frame]});
    if depth > 0 {
        trace["parent"] = self::trace(choices, depth - 1);
    }
    trace
}

fn details(choices: &Choices) -> Value {
    json!({"exceptionId": 1, "text": choices.text(), "lineNumber": choices.number(), "columnNumber": choices.number(),
        "exception": object(choices, 1), "stackTrace": trace(choices, 1)})
}

fn evaluated(choices: &Choices) -> Value {
    match choices.is_one_in(5) {
        true => json!({"result": object(choices, 1), "exceptionDetails": details(choices)}),
        false => json!({"result": object(choices, 2)}),
    }
}

fn properties(choices: &Choices) -> Value {
    let list = |count: usize| -> Vec<Value> {
        let one = |at: usize| {
            let name = if choices.is_one_in(3) { choices.text() } else { at.to_string() };
            let mut property =
                json!({"name": name, "configurable": true, "enumerable": true, "value": object(choices, 1)});
            if choices.is_one_in(8) {
                property["get"] = object(choices, 0);
            }
            property
        };
        (0..count).map(one).collect()
    };
    json!({"result": list(choices.below(8)), "internalProperties": list(choices.below(3)),
        "privateProperties": list(choices.below(2))})
}

fn object(choices: &Choices, depth: usize) -> Value {
    let kind = choices.pick(&[
        "object",
        "object",
        "object",
        "function",
        "string",
        "number",
        "bigint",
        "undefined",
        "symbol",
        "x",
    ]);
    let mut object = json!({"type": kind});
    match kind {
        "object" | "function" | "symbol" => {
            object["objectId"] = json!(choices.below(20).to_string());
            object["className"] = json!(choices.pick(&["Object", "Array", "Map", "Set", "Error", ""]));
            object["subtype"] =
                json!(choices.pick(&["array", "map", "set", "null", "error", "proxy", "typedarray", "x"]));
            object["description"] = json!(choices.pick(&[
                "Object",
                "Array(3)",
                "Array(99999999999)",
                "Map(-1)",
                "Set()",
                "Array(",
                "ä(1)",
                ""
            ]));
        }
        "number" => match choices.is_one_in(3) {
            true => object["unserializableValue"] = json!(choices.pick(&["NaN", "-0", "Infinity", "x"])),
            false => object["value"] = json!(choices.number()),
        },
        "string" => object["value"] = json!(choices.text()),
        _ => object["unserializableValue"] = json!("12345678901234567890n"),
    }
    if depth > 0 && choices.is_one_in(2) {
        let property = json!({"name": choices.text(), "type": "object", "value": choices.text(),
            "valuePreview": {"type": "object", "overflow": false, "properties": []}});
        object["preview"] = json!({"type": kind, "description": choices.text(), "overflow": choices.is_one_in(2),
            "properties": [property], "entries": [{"key": {"type": "x", "overflow": true, "properties": []},
                "value": {"type": "object", "overflow": true, "properties": []}}]});
    }
    object
}
