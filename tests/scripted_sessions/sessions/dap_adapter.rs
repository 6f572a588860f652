//! A scripted debug adapter: speaks DAP, answers late, twice, wrong or not at all, and sends events and requests of its own.

use std::sync::Mutex;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, split};
use tokio::sync::mpsc;

use super::choices::Choices;
use super::js_world::distort;
use super::peer_loop::{PeerManner, ScriptedPeer, choose_calm, serve_requests};

struct ScriptedAdapter {
    manner: PeerManner,
    out: mpsc::UnboundedSender<Option<Vec<u8>>>,
    /// `launch` is answered after `configurationDone`.
    launch: Mutex<Option<Value>>,
}

/// Serves one client.
pub async fn serve_adapter(stream: DuplexStream, choices: Choices) {
    let (read, mut write) = split(stream);
    let (out, mut queue) = mpsc::unbounded_channel::<Option<Vec<u8>>>();
    let writing = async move {
        while let Some(Some(bytes)) = queue.recv().await {
            if write.write_all(&bytes).await.is_err() {
                return;
            }
        }
        // Fails when the client has left.
        let _ = write.shutdown().await;
    };
    let (tell, requests) = mpsc::unbounded_channel();
    let mut read = BufReader::new(read);
    let reading = async move {
        while let Some(request) = read_message(&mut read).await {
            if tell.send(request).is_err() {
                return;
            }
        }
    };
    let calm = choose_calm(&choices, 9);
    let adapter = ScriptedAdapter { manner: PeerManner::choose(choices, calm), out, launch: Mutex::default() };
    // Both end with the connection.
    tokio::select! {
        ((), ()) = async { tokio::join!(writing, reading) } => {}
        () = serve_requests(adapter, requests) => {}
    }
}

/// `None`: the client has left.
async fn read_message(read: &mut (impl AsyncBufReadExt + Unpin)) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if read.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some((_, value)) => length = value.parse::<usize>().ok(),
            None => break,
        }
    }
    let mut body = vec![0; length.expect("the client sends a length")];
    read.read_exact(&mut body).await.ok()?;
    Some(serde_json::from_slice(&body).expect("the client sends JSON"))
}

impl ScriptedPeer for ScriptedAdapter {
    type Request = Value;

    fn manner(&self) -> &PeerManner {
        &self.manner
    }

    fn close(&self) {
        self.send_bytes(None);
    }

    /// Answers to our own requests need none.
    fn is_answered(&self, request: &Value) -> bool {
        request["type"] == "request"
    }

    fn send_reply(&self, request: &Value) {
        let command = request["command"].as_str().unwrap_or_default();
        if matches!(command, "launch" | "attach") {
            *self.launch.lock().unwrap() = Some(request.clone());
            return self.send_event_named("initialized", json!({}));
        }
        self.send(&respond(request, self.plausible_body(command)));
        if command == "configurationDone"
            && let Some(launch) = self.launch.lock().unwrap().take()
        {
            self.send(&respond(&launch, json!({})));
            let stopped = json!({"reason": "entry", "threadId": 1, "allThreadsStopped": true});
            self.send_event_named("stopped", stopped);
        }
        if command == "disconnect" {
            self.send_event_named("terminated", json!({}));
        }
    }

    fn send_wrong(&self, request: &Value) {
        let choices = &self.manner.choices;
        let command = request["command"].as_str().unwrap_or_default();
        let good = respond(request, self.plausible_body(command));
        match choices.below(6) {
            0 => {
                let error = json!({"id": choices.number(), "format": "{a} {", "variables": {"a": choices.text()}});
                self.send(&json!({"seq": 1, "type": "response", "request_seq": request["seq"], "command": command,
                    "success": false, "message": choices.text(), "body": {"error": error}}));
            }
            1 | 2 => self.send(&distort(good, choices)),
            3 => {
                self.send(&respond(request, self.plausible_body(choices.pick(&["variables", "stackTrace", "threads"]))))
            }
            4 => self.send(&respond(request, Value::Null)),
            _ => {
                let length = choices.number();
                let junk: Vec<u8> = (0..choices.below(40)).map(|_| choices.byte()).collect();
                let mut bytes = format!("Content-Length: {length}\r\n\r\n").into_bytes();
                bytes.extend(junk);
                self.send_bytes(Some(bytes));
            }
        }
    }

    fn send_event(&self) {
        let choices = &self.manner.choices;
        if choices.is_at_end() {
            return;
        }
        let thread = 1 + choices.below(4);
        let (event, body) = match choices.below(14) {
            0..=4 => {
                let reason =
                    choices.pick(&["breakpoint", "step", "exception", "pause", "entry", "data breakpoint", "x"]);
                let hit: Vec<i64> = (0..choices.below(3)).map(|_| choices.number()).collect();
                (
                    "stopped",
                    json!({"reason": reason, "threadId": thread, "allThreadsStopped": choices.is_one_in(2),
                    "text": choices.text(), "description": choices.text(), "hitBreakpointIds": hit}),
                )
            }
            5 => ("continued", json!({"threadId": thread, "allThreadsContinued": choices.is_one_in(2)})),
            6 => {
                let category = choices.pick(&["stdout", "stderr", "console", "telemetry", "important", "x"]);
                (
                    "output",
                    json!({"output": choices.text(), "category": category, "variablesReference": choices.number()}),
                )
            }
            7 => ("thread", json!({"reason": choices.pick(&["started", "exited"]), "threadId": thread})),
            8 => {
                let breakpoint =
                    json!({"id": choices.number(), "verified": choices.is_one_in(2), "line": choices.number()});
                (
                    "breakpoint",
                    json!({"reason": choices.pick(&["changed", "new", "removed"]), "breakpoint": breakpoint}),
                )
            }
            9 => ("loadedSource", json!({"reason": "new", "source": source(choices)})),
            10 => ("initialized", json!({})),
            11 => ("process", json!({"name": choices.text(), "systemProcessId": choices.number()})),
            12 if choices.is_one_in(4) => ("terminated", json!({"restart": choices.is_one_in(2)})),
            12 => ("exited", json!({"exitCode": choices.number()})),
            _ => return self.send_request(),
        };
        let message = json!({"seq": choices.number(), "type": "event", "event": event, "body": body});
        self.send(&if choices.is_one_in(20) { distort(message, choices) } else { message });
    }
}

impl ScriptedAdapter {
    fn send_bytes(&self, bytes: Option<Vec<u8>>) {
        // Fails when the connection has ended.
        let _ = self.out.send(bytes);
    }

    fn send(&self, message: &Value) {
        let body = message.to_string();
        self.send_bytes(Some(format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()));
    }

    fn send_event_named(&self, event: &str, body: Value) {
        self.send(&json!({"seq": 1, "type": "event", "event": event, "body": body}));
    }

    /// Requests of the adapter: a child target, a terminal, something unknown.
    fn send_request(&self) {
        let choices = &self.manner.choices;
        let (command, arguments) = match choices.below(4) {
            0 | 1 => {
                let configuration = json!({"name": choices.text(), "__pendingTargetId": choices.text()});
                (
                    "startDebugging",
                    json!({"request": choices.pick(&["launch", "attach", "x"]), "configuration": configuration}),
                )
            }
            2 => ("runInTerminal", json!({"cwd": "/", "args": ["true"]})),
            _ => ("unknownRequest", json!({})),
        };
        let seq = choices.number();
        self.send(&json!({"seq": seq, "type": "request", "command": command, "arguments": arguments}));
    }

    fn plausible_body(&self, command: &str) -> Value {
        let choices = &self.manner.choices;
        match command {
            "initialize" => capabilities(),
            "threads" => {
                let threads: Vec<Value> =
                    (1..=choices.below(5)).map(|id| json!({"id": id, "name": choices.text()})).collect();
                json!({"threads": threads})
            }
            "stackTrace" => {
                let frames: Vec<Value> = (0..choices.below(8)).map(|_| frame(choices)).collect();
                match choices.is_one_in(2) {
                    true => json!({"stackFrames": frames, "totalFrames": choices.number()}),
                    false => json!({"stackFrames": frames}),
                }
            }
            "scopes" => {
                let scope = |name: &str| {
                    json!({"name": name, "variablesReference": 1 + choices.below(9),
                    "expensive": choices.is_one_in(4), "indexedVariables": choices.number()})
                };
                json!({"scopes": [scope("Locals"), scope("Globals")]})
            }
            "variables" => {
                let variables: Vec<Value> = (0..choices.below(8)).map(|at| variable(choices, at)).collect();
                json!({"variables": variables})
            }
            "evaluate" | "setVariable" | "setExpression" => {
                let mut body = variable(choices, 0);
                body["result"] = body["value"].clone();
                body
            }
            "setBreakpoints" | "setFunctionBreakpoints" | "setDataBreakpoints" | "setExceptionBreakpoints" => {
                let one = |_| {
                    json!({"id": choices.number(), "verified": choices.is_one_in(2), "line": choices.number(),
                    "message": choices.text()})
                };
                let breakpoints: Vec<Value> = (0..choices.below(4)).map(one).collect();
                json!({"breakpoints": breakpoints})
            }
            "exceptionInfo" => {
                let details =
                    json!({"message": choices.text(), "typeName": choices.text(), "stackTrace": choices.text()});
                json!({"exceptionId": choices.text(), "breakMode": "always", "description": choices.text(), "details": details})
            }
            "source" => json!({"content": choices.text()}),
            "continue" => json!({"allThreadsContinued": choices.is_one_in(2)}),
            _ => json!({}),
        }
    }
}

fn respond(request: &Value, body: Value) -> Value {
    json!({"seq": 1, "type": "response", "request_seq": request["seq"], "command": request["command"], "success": true,
        "body": body})
}

fn capabilities() -> Value {
    let able = [
        "supportsConfigurationDoneRequest",
        "supportsFunctionBreakpoints",
        "supportsConditionalBreakpoints",
        "supportsExceptionInfoRequest",
        "supportsSetVariable",
        "supportsSetExpression",
        "supportsDataBreakpoints",
        "supportsDelayedStackTraceLoading",
        "supportTerminateDebuggee",
    ];
    let mut capabilities: Value = able.into_iter().map(|name| (name.to_owned(), json!(true))).collect();
    capabilities["exceptionBreakpointFilters"] = json!([{"filter": "uncaught", "label": "Uncaught", "default": true}]);
    capabilities
}

fn source(choices: &Choices) -> Value {
    json!({"name": choices.text(), "path": choices.pick(&["/nonexistent-workspace/a.py", "", "<string>", "/proc/self/mem"]),
        "sourceReference": choices.number()})
}

fn frame(choices: &Choices) -> Value {
    let mut frame = json!({"id": choices.number(), "name": choices.text(), "line": choices.number(),
        "column": choices.number()});
    if !choices.is_one_in(3) {
        frame["source"] = source(choices);
    }
    if choices.is_one_in(4) {
        frame["presentationHint"] = json!(choices.pick(&["label", "subtle", "normal"]));
    }
    frame
}

fn variable(choices: &Choices, at: usize) -> Value {
    let name = choices.pick(&["value", "special variables", "[0]", "len()", "...", ""]);
    json!({"name": format!("{name}{at}"), "value": choices.text(), "type": choices.text(),
        "variablesReference": choices.number(), "indexedVariables": choices.number(), "namedVariables": choices.number(),
        "evaluateName": choices.text()})
}
