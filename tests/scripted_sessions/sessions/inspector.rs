//! A scripted inspector: speaks CDP as Node does, answers late, twice, wrong or not at all, and sends events, also of workers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::Message;

use super::choices::Choices;
use super::js_world;
use super::reply_mode::{Reliability, ReplyMode};

/// The shortest pause before an event without a cause.
const MIN_QUIET: Duration = Duration::from_millis(25);
/// Workers that there may be at one time.
const MAX_WORKERS: usize = 4;

struct ScriptedInspector {
    choices: Choices,
    reliability: Reliability,
    out: mpsc::UnboundedSender<Option<String>>,
    /// Commands that are answered well, whatever the choices say.
    calm: Mutex<usize>,
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
    let calm = if choices.is_one_in(8) { 0 } else { 20 };
    let reliability = Reliability::choose(&choices);
    let inspector = ScriptedInspector {
        choices,
        reliability,
        out,
        calm: Mutex::new(calm),
        workers: Mutex::default(),
        started: Mutex::default(),
        breakpoints: Mutex::default(),
    };
    Arc::new(inspector).serve(commands).await;
}

impl ScriptedInspector {
    async fn serve(self: Arc<ScriptedInspector>, mut commands: mpsc::UnboundedReceiver<Value>) {
        let mut late = JoinSet::new();
        loop {
            let quiet = match self.choices.is_at_end() {
                true => Duration::MAX,
                false => MIN_QUIET * (1 + u32::from(self.choices.byte())),
            };
            let command = tokio::select! {
                command = commands.recv() => command,
                () = sleep(quiet) => {
                    self.send_event();
                    continue;
                }
            };
            let Some(command) = command else { return };
            if let Some(delay) = self.answer(&command) {
                let inspector = Arc::clone(&self);
                late.spawn(async move {
                    sleep(delay).await;
                    inspector.send_reply(&command);
                });
            }
            while late.try_join_next().is_some() {}
        }
    }

    /// Returns after which time the command is to be answered, unless it was.
    fn answer(&self, command: &Value) -> Option<Duration> {
        let is_calm = {
            let mut calm = self.calm.lock().unwrap();
            *calm = calm.saturating_sub(1);
            *calm > 0
        };
        let mode = if is_calm { ReplyMode::AtOnce } else { ReplyMode::choose(self.reliability, &self.choices) };
        match mode {
            ReplyMode::AtOnce => self.send_reply(command),
            ReplyMode::Late(delay) => return Some(delay),
            ReplyMode::Twice => {
                self.send_reply(command);
                self.send_reply(command);
            }
            ReplyMode::Wrong => self.send_wrong(command),
            ReplyMode::Never => {}
            ReplyMode::AfterEvent => {
                self.send_event();
                self.send_reply(command);
            }
            ReplyMode::Close => self.send(None),
        }
        None
    }

    fn send(&self, text: Option<String>) {
        // Fails when the connection has ended.
        let _ = self.out.send(text);
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
        let result = js_world::result_of(method, &command["params"], &self.choices);
        if !result["breakpointId"].is_null() {
            let mut breakpoints = self.breakpoints.lock().unwrap();
            breakpoints.push(result["breakpointId"].clone());
            breakpoints.truncate(16);
        }
        result
    }

    fn send_wrong(&self, command: &Value) {
        let choices = &self.choices;
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
        let choices = &self.choices;
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

    fn start_worker(&self) {
        let mut started = self.started.lock().unwrap();
        *started += 1;
        let session = format!("worker {started}");
        self.workers.lock().unwrap().push(session.clone());
        let info =
            json!({"workerId": "1", "type": "worker", "title": self.choices.text(), "url": "file:///app/worker.js"});
        let params = json!({"sessionId": session, "workerInfo": info, "waitingForDebugger": true});
        self.send(Some(json!({"method": "NodeWorker.attachedToWorker", "params": params}).to_string()));
    }

    fn plan_event(&self) -> Value {
        let breakpoints = self.breakpoints.lock().unwrap().clone();
        let event = js_world::event(&self.choices, &breakpoints);
        match self.choices.is_one_in(24) {
            true => js_world::distort(event, &self.choices),
            false => event,
        }
    }
}
