//! What comes from servers: answers, requests and notifications for the client, answers to the proxy itself, and their end.

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tether_base::display_text::escape_line;
use tether_base::error::Result;
use tokio::io::AsyncWriteExt;

use super::calls::{OwnRequest, PendingCall};
use super::messages::{self, Envelope};
use super::proxy::Proxy;
use super::replacement::NextServer;
use super::session_state::LISTS;
use super::wrapped_server::ServerEvent;

/// How much is shown of what is no message, in characters.
const MAX_SHOWN: usize = 200;

impl Proxy {
    /// Errors: the first server does not come up.
    pub async fn handle_event(&mut self, generation: u64, event: ServerEvent) -> Result<()> {
        match event {
            ServerEvent::Line(line) => self.handle_line(generation, line).await,
            ServerEvent::Ended(how) => self.handle_end(generation, &how).await,
            ServerEvent::DebuggerPort(port) => {
                self.attach_debugger(generation, port);
                Ok(())
            }
            ServerEvent::Attached(session) => self.handle_attached(generation, session).await,
            ServerEvent::SessionState { session, stop } => {
                self.handle_stop(|stops| stops.record(session, stop));
                Ok(())
            }
        }
    }

    fn is_current(&self, generation: u64) -> bool {
        self.current.as_ref().is_some_and(|server| server.generation == generation)
    }

    pub fn is_next(&self, generation: u64) -> bool {
        self.next.as_ref().and_then(NextServer::server).is_some_and(|server| server.generation == generation)
    }

    fn is_replaced(&self, generation: u64) -> bool {
        self.replaced.iter().any(|replaced| replaced.server.generation == generation)
    }

    async fn handle_line(&mut self, generation: u64, line: Bytes) -> Result<()> {
        let Some(message) = Envelope::read(&line) else {
            if !line.trim_ascii().is_empty() {
                self.report_stray(&line).await;
            }
            return Ok(());
        };
        match (&message.method, message.id) {
            (None, Some(id)) => return self.handle_response(generation, &line, &message, id).await,
            _ if !self.is_current(generation) && !self.is_next(generation) && !self.is_replaced(generation) => {}
            (Some(_), Some(_)) => {
                let renamed = self.calls.rename_request(generation, &line, &message);
                self.send(&renamed);
            }
            (Some(method), None) => self.handle_server_notification(generation, method, &line, &message),
            (None, None) => {}
        }
        Ok(())
    }

    fn handle_server_notification(&mut self, generation: u64, method: &str, line: &Bytes, message: &Envelope<'_>) {
        let is_of_lists =
            method == "notifications/resources/updated" || LISTS.iter().any(|(.., changed)| *changed == method);
        match method {
            "notifications/cancelled" => {
                if let Some(line) = self.calls.translate_cancel(generation, line, message) {
                    self.send(&line);
                }
            }
            // Of a server that is none any more, or whose lists are compared once it is there.
            _ if is_of_lists && !self.is_current(generation) => {}
            "notifications/progress" => {
                self.calls.record_progress(message);
                self.send(line);
            }
            _ => self.send(line),
        }
    }

    /// What a server prints to stdout and is no message, on stderr and for the next result.
    async fn report_stray(&mut self, line: &[u8]) {
        let text: String = String::from_utf8_lossy(line).chars().take(MAX_SHOWN).collect();
        let told = format!("the server has printed to stdout what is no message: {}", escape_line(&text));
        let _ = tokio::io::stderr().write_all(format!("tether: {told}\n").as_bytes()).await;
        if self.note.is_none() {
            let hint = "stdout is the connection: a server prints to stderr";
            self.report_note("warning", format!("{told}; {hint}"));
        }
    }

    /// Says something to the client: as a log message, where it takes any, and with the next result.
    pub fn report_note(&mut self, level: &str, note: String) {
        self.log(level, &note);
        self.note = Some(note);
    }

    /// Says something to a client that takes log messages.
    pub fn log(&mut self, level: &str, text: &str) {
        if self.state.is_initialized && self.state.capabilities.get("logging").is_some() {
            let params = json!({"level": level, "logger": "tether", "data": text});
            self.send(&messages::notification("notifications/message", params));
        }
    }

    async fn handle_response(
        &mut self,
        generation: u64,
        line: &Bytes,
        message: &Envelope<'_>,
        id: &RawValue,
    ) -> Result<()> {
        let key = messages::id_key(id);
        if self.next.as_ref().is_some_and(|next| next.awaits(generation, &key)) {
            return self.handle_handshake(message).await;
        }
        if let Some(own) = self.calls.own.remove(&key) {
            self.compare_list(&own, message);
            return Ok(());
        }
        // Of a call that was cancelled, or that the next server has taken over.
        if self.calls.pending.get(&key).is_none_or(|call| call.generation != generation) {
            return Ok(());
        }
        let Some(call) = self.calls.pending.remove(&key) else { return Ok(()) };
        let answer = self.read_answer(&call.method, message, line);
        self.send(&answer);
        if !self.is_current(generation) {
            self.end_idle_servers();
        }
        Ok(())
    }

    /// An answer as the client gets it.
    fn read_answer(&mut self, method: &str, message: &Envelope<'_>, line: &Bytes) -> Bytes {
        let Some(result) = message.result else { return line.clone() };
        if ["initialize", "server/discover"].contains(&method) {
            let told = self.state.take_initialize_result(method, result);
            return messages::with_parts(line, &[(result, &told)]);
        }
        self.state.record_list(method, result);
        match self.note.take() {
            Some(note) => messages::with_note(line, result, &note),
            None => line.clone(),
        }
    }

    fn compare_list(&mut self, own: &OwnRequest, message: &Envelope<'_>) {
        let (Some(list), Some(result)) = (own.list, message.result) else { return };
        let changed = LISTS.iter().find(|(method, ..)| *method == list).map(|(.., changed)| *changed);
        if self.state.record_list(list, result)
            && let Some(changed) = changed
        {
            self.send(&messages::notification(changed, Value::Null));
        }
    }

    /// Answers the calls of a server that has ended.
    async fn handle_end(&mut self, generation: u64, how: &str) -> Result<()> {
        if self.is_next(generation) {
            return self.fail_next(how.to_owned()).await;
        }
        let server = if self.is_current(generation) {
            self.current.take()
        } else {
            let at = self.replaced.iter().position(|replaced| replaced.server.generation == generation);
            at.map(|at| self.replaced.remove(at).server)
        };
        let Some(server) = server else { return Ok(()) };
        self.fail_calls(generation, how, &server.last_lines());
        tokio::spawn(server.stop());
        Ok(())
    }

    pub fn fail_calls(&mut self, generation: u64, how: &str, last: &str) {
        for PendingCall { id, method, .. } in self.calls.take_of(generation) {
            let text = format!("{how} during `{method}`, which was not repeated; the next request starts it again");
            self.send(&messages::error_response(&id, &text, last));
        }
    }
}
