//! A scripted inspector: speaks CDP as Node does, answers late, twice, wrong or not at all, and sends events, also of workers.

use std::sync::Mutex;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use super::choices::Choices;
use super::js_world;
use super::peer_loop::{PeerManner, ScriptedPeer, choose_calm, serve_requests};

/// Workers that there may be at one time.
const MAX_WORKERS: usize = 4;

struct ScriptedInspector {
    manner: PeerManner,
    out: mpsc::UnboundedSender<Option<String>>,
    /// The names of their sessions.
    workers: Mutex<Vec<String>>,
    started: Mutex<usize>,
    breakpoints: Mutex<Vec<Value>>,
}

/// Serves one debugger.
pub async fn serve_inspector(listener: TcpListener, choices: Choices) {
    let Ok((stream, _)) = listener.accept().await else { return };
    let Ok(socket) = tokio_tungstenite::accept_async(stream).await else { return };
    let (mut sink, mut stream) = socket.split();
    let (out, mut queue) = mpsc::unbounded_channel::<Option<String>>();
    tokio::spawn(async move {
        while let Some(Some(text)) = queue.recv().await {
            if sink.send(Message::text(text)).await.is_err() {
                return;
            }
        }
        let _ = sink.close().await;
    });
    let (tell, commands) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = stream.next().await {
            if let Message::Text(text) = message {
                let command: Value = serde_json::from_str(&text).expect("the adapter sends JSON");
                if tell.send(command).is_err() {
                    return;
                }
            }
        }
    });
    let calm = choose_calm(&choices, 19);
    let inspector = ScriptedInspector {
        manner: PeerManner::choose(choices, calm),
        out,
        workers: Mutex::default(),
        started: Mutex::default(),
        breakpoints: Mutex::default(),
    };
    serve_requests(inspector, commands).await;
}

impl ScriptedPeer for ScriptedInspector {
    type Request = Value;

    fn manner(&self) -> &PeerManner {
        &self.manner
    }

    fn close(&self) {
        self.send(None);
    }

    fn send_reply(&self, command: &Value) {
        let inner =
            (command["method"] == "NodeWorker.sendMessageToWorker").then(|| command["params"]["message"].as_str());
        if let Some(inner) = inner.flatten().and_then(|text| serde_json::from_str::<Value>(text).ok()) {
            let reply = json!({"id": inner["id"], "result": self.plausible_result(&inner)});
            self.send_of_worker(&command["params"]["sessionId"], &reply);
        }
        self.send_result(command, json!({"result": self.plausible_result(command)}));
        if matches!(command["method"].as_str(), Some("Debugger.resume" | "Debugger.stepOver" | "Debugger.stepInto")) {
            self.send(Some(json!({"method": "Debugger.resumed", "params": {}}).to_string()));
        }
    }

    fn send_wrong(&self, command: &Value) {
        let choices = &self.manner.choices;
        let result = self.plausible_result(command);
        match choices.below(6) {
            0 | 1 => self.send_result(command, json!({"error": {"code": choices.number(), "message": choices.text()}})),
            2 => self.send_result(command, json!({"result": js_world::distort(result, choices)})),
            3 => {
                self.send_result(command, json!({"result": js_world::distort(js_world::any_result(choices), choices)}))
            }
            4 => self.send_result(command, json!({})),
            _ => {
                let mut text = json!({"id": command["id"], "result": result}).to_string();
                text.truncate(text.floor_char_boundary(4 * choices.below(256)));
                self.send(Some(text));
            }
        }
    }

    fn send_event(&self) {
        let choices = &self.manner.choices;
        if choices.is_at_end() {
            return;
        }
        let workers = self.workers.lock().unwrap().clone();
        match choices.below(16) {
            0 if workers.len() < MAX_WORKERS => self.start_worker(),
            1 if !workers.is_empty() => {
                let ended = self.workers.lock().unwrap().remove(choices.below(workers.len()));
                let params = json!({"sessionId": ended});
                self.send(Some(json!({"method": "NodeWorker.detachedFromWorker", "params": params}).to_string()));
            }
            2..=5 if !workers.is_empty() => {
                let session = json!(workers[choices.below(workers.len())]);
                self.send_of_worker(&session, &self.plan_event());
            }
            _ => self.send(Some(self.plan_event().to_string())),
        }
    }
}

impl ScriptedInspector {
    fn send(&self, text: Option<String>) {
        // Fails when the connection has ended.
        let _ = self.out.send(text);
    }

    fn send_of_worker(&self, session: &Value, message: &Value) {
        let params = json!({"sessionId": session, "message": message.to_string()});
        self.send(Some(json!({"method": "NodeWorker.receivedMessageFromWorker", "params": params}).to_string()));
    }

    fn send_result(&self, command: &Value, mut outcome: Value) {
        outcome["id"] = command["id"].clone();
        if !command["sessionId"].is_null() {
            outcome["sessionId"] = command["sessionId"].clone();
        }
        self.send(Some(outcome.to_string()));
    }

    fn plausible_result(&self, command: &Value) -> Value {
        let method = command["method"].as_str().unwrap_or_default();
        let result = js_world::result_of(method, &command["params"], &self.manner.choices);
        if !result["breakpointId"].is_null() {
            let mut breakpoints = self.breakpoints.lock().unwrap();
            breakpoints.push(result["breakpointId"].clone());
            breakpoints.truncate(16);
        }
        result
    }

    fn start_worker(&self) {
        let mut started = self.started.lock().unwrap();
        *started += 1;
        let session = format!("worker {started}");
        self.workers.lock().unwrap().push(session.clone());
        let info = json!({"workerId": "1", "type": "worker", "title": self.manner.choices.text(), "url": "file:///app/worker.js"});
        let params = json!({"sessionId": session, "workerInfo": info, "waitingForDebugger": true});
        self.send(Some(json!({"method": "NodeWorker.attachedToWorker", "params": params}).to_string()));
    }

    fn plan_event(&self) -> Value {
        let breakpoints = self.breakpoints.lock().unwrap().clone();
        let event = js_world::event(&self.manner.choices, &breakpoints);
        match self.manner.choices.is_one_in(24) {
            true => js_world::distort(event, &self.manner.choices),
            false => event,
        }
    }
}
