//! The events that a joined editor is sent: the state of the session, output, breakpoints, and what is forwarded.
//!
//! Output comes before the stop that follows it. Everybody sees every stop, and who has resumed the program before.

use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tether_base::display_text::break_links;
use tether_base::ring::RingQuery;
use tether_base::sync::lock;
use tether_dap::types::{ExitedEvent, OutputEvent, TerminatedEvent, ThreadEvent, set_field};
use tether_dap::{DapError, RawEvent};
use tokio::time::timeout;

use super::conversation::EditorConversation;
use super::editor_ids::{EditorIds, IdKind};
use super::id_rewrite::rewrite_for_editor;
use super::session_feed::FeedChange;
use super::state_events::{StateChange, state_changes, stop_reason_word};
use crate::debug::breakpoints::BreakpointSpec;
use crate::debug::inspect;
use crate::debug::inspect::ScopedId;
use crate::debug::session::session_shared::ForwardedEvent;
use crate::debug::session::stop::ThreadStop;
use crate::debug::session::target_state::ProgramExit;

/// How much of the output before it joined an editor is sent, in pieces.
const EARLIER_OUTPUT: usize = 200;
/// How long the threads of several targets may take to be listed when an editor joins.
const THREADS_TIMEOUT: Duration = Duration::from_secs(2);

impl EditorConversation {
    /// Sends what is known of the session when the editor has joined it.
    pub(super) async fn report_joined_session(&mut self) -> Result<(), DapError> {
        let Some(joined) = &self.joined else { return Ok(()) };
        let managed = joined.managed.clone();
        let snapshot = managed.session.snapshot();
        if snapshot.targets.len() > 1 {
            // Which threads a stop is of can only be said when those of the other targets are known.
            let threads = timeout(THREADS_TIMEOUT, inspect::list_threads(&managed.session)).await.unwrap_or_default();
            let mut ids = lock(&self.context.ids);
            for thread in threads {
                ids.give(IdKind::Thread, thread.id);
            }
        }
        let others = snapshot.editors.iter().filter(|it| it.id != self.context.owner.editor);
        let others = others.map(|it| format!("; joined too: {}", it.name)).collect::<String>();
        let (id, name, adapter) = (&managed.id, &managed.request.name, managed.adapter.name);
        self.send_console(format!("joined {id}: {name}, debugged with {adapter}{others}")).await?;
        let start_method = if managed.is_attached() { "attach" } else { "launch" };
        let process = json!({"name": name, "startMethod": start_method, "isLocalProcess": true});
        self.send_json("process", with_field(process, "systemProcessId", managed.program_pid().map(Value::from)))
            .await?;
        self.report_breakpoints().await?;
        self.report_state().await
    }

    /// Sends what has changed.
    pub(super) async fn report_change(&mut self, change: FeedChange) -> Result<(), DapError> {
        match change {
            FeedChange::State => self.report_state().await,
            FeedChange::Output => self.report_output().await,
            FeedChange::Breakpoints => self.report_breakpoints().await,
            FeedChange::Event(event) => self.report_event(event).await,
        }
    }

    async fn report_state(&mut self) -> Result<(), DapError> {
        self.report_output().await?;
        let Some(joined) = &mut self.joined else { return Ok(()) };
        let now = joined.feed.take_state();
        let changes = state_changes(&joined.told, &now);
        joined.told = now;
        for change in changes {
            self.send_change(change).await?;
        }
        Ok(())
    }

    async fn send_change(&self, change: StateChange) -> Result<(), DapError> {
        match change {
            StateChange::Resumed(resume) if resume.by == self.context.owner.name => Ok(()),
            StateChange::Resumed(resume) => {
                self.send_console(format!("resumed by {} ({})", resume.by, resume.how.name())).await
            }
            StateChange::Continued { target, thread } => {
                let bodies = continued_bodies(&mut lock(&self.context.ids), target, thread);
                self.send_each("continued", bodies).await
            }
            StateChange::Stopped { target, stop } => {
                let body = stopped_body(&mut lock(&self.context.ids), target, &stop);
                self.send_json("stopped", body).await
            }
            StateChange::Exited(exit) => {
                // DAP has codes only: a signal is the code by which shells report it.
                let exit_code = match exit {
                    ProgramExit::Code(code) => code,
                    ProgramExit::Signal(signal) => i64::from(signal).saturating_add(128),
                };
                self.server.send_event(&ExitedEvent { exit_code, pydevd_reason: None }).await
            }
            StateChange::TargetEnded(target) => {
                let bodies = exited_bodies(&mut lock(&self.context.ids), target);
                self.send_each("thread", bodies).await
            }
            StateChange::Ended(reason) => {
                if let Some(reason) = reason {
                    self.send_console(format!("the connection to the debugger ended: {reason}")).await?;
                }
                self.server.send_event(&TerminatedEvent::default()).await
            }
        }
    }

    async fn report_output(&mut self) -> Result<(), DapError> {
        let Some(joined) = &mut self.joined else { return Ok(()) };
        let limit = joined.output_cursor.map_or(EARLIER_OUTPUT, |_| usize::MAX);
        let query = RingQuery { since: joined.output_cursor, limit, ..RingQuery::default() };
        let read = joined.managed.session.event_log().read_output(&query);
        joined.output_cursor = Some(read.cursor);
        if read.dropped > 0 {
            self.send_console(format!("{} pieces of output came faster than they were read", read.dropped)).await?;
        }
        for entry in read.entries {
            // What the adapter itself prints is no output of the program.
            let category = if entry.kind == "adapter" { "console".to_owned() } else { entry.kind };
            // An editor shows what is important as a notification.
            let output = if category == "important" { break_links(&entry.text) } else { entry.text };
            self.server.send_event(&OutputEvent { output, category: Some(category), data: None }).await?;
        }
        Ok(())
    }

    async fn report_breakpoints(&mut self) -> Result<(), DapError> {
        let Some(joined) = &self.joined else { return Ok(()) };
        let session = &joined.managed.session;
        let list = self.context.sessions.current_breakpoints();
        let file =
            |spec: &BreakpointSpec| lock(&self.context.paths).of_breakpoint(spec, self.context.sessions.file_names());
        let status = |id| session.binding_status(id);
        let events = lock(&self.context.view).take_events(&self.context.owner, &list, status, file);
        self.send_each("breakpoint", events).await
    }

    async fn report_event(&self, forwarded: ForwardedEvent) -> Result<(), DapError> {
        let ForwardedEvent { target, event, except } = forwarded;
        let is_understood = event.name != "invalidated" || self.accepts_invalidated;
        if except == Some(self.context.owner.editor) || !is_understood {
            return Ok(());
        }
        let body = event.body.as_ref().and_then(|body| serde_json::from_str::<Value>(body.get()).ok());
        let Some(mut body) = body else { return Ok(()) };
        rewrite_for_editor(&mut body, target, &mut lock(&self.context.ids));
        lock(&self.context.paths).rename_sources(&mut body, self.context.sessions.file_names());
        self.send_json(&event.name, body).await?;
        if let Some(thread) = event.read_body::<ThreadEvent>().filter(|thread| thread.reason == "exited") {
            lock(&self.context.ids).forget_thread(ScopedId { target, id: thread.thread_id });
        }
        Ok(())
    }

    /// A line of ours in the editor's debug console.
    async fn send_console(&self, text: String) -> Result<(), DapError> {
        let category = Some("console".to_owned());
        self.server.send_event(&OutputEvent { output: format!("tether: {text}\n"), category, data: None }).await
    }

    async fn send_each(&self, name: &str, bodies: Vec<Value>) -> Result<(), DapError> {
        for body in bodies {
            self.send_json(name, body).await?;
        }
        Ok(())
    }

    async fn send_json(&self, name: &str, body: Value) -> Result<(), DapError> {
        let body = RawValue::from_string(body.to_string()).ok();
        self.server.forward_event(&RawEvent { name: name.to_owned(), body }).await
    }
}

fn with_field(mut body: Value, name: &str, value: Option<Value>) -> Value {
    if let Some(value) = value {
        set_field(&mut body, name, value);
    }
    body
}

/// The body of the `stopped` event of a stop. It stands for all threads only where the editor knows none of another target.
/// The other threads get no events of their own: nvim-dap resumes a thread that stops while another one is stopped.
fn stopped_body(ids: &mut EditorIds, target: usize, stop: &ThreadStop) -> Value {
    let own = stop.thread_id.map(|id| ids.give(IdKind::Thread, ScopedId { target, id }));
    let stands_for_all = stop.all_threads && ids.has_only_threads_of(target);
    let hits: Vec<u32> = stop.hits.iter().map(|(id, _)| *id).collect();
    let body = json!({
        "reason": stop_reason_word(stop.kind), "allThreadsStopped": stands_for_all, "hitBreakpointIds": hits,
    });
    let body = with_field(body, "text", stop.text.clone().map(Value::from));
    with_field(body, "threadId", own.map(Value::from))
}

/// The bodies of the `continued` events of a target; its frames and values are no longer valid.
fn continued_bodies(ids: &mut EditorIds, target: usize, thread: Option<i64>) -> Vec<Value> {
    let is_all = thread.is_none() && ids.has_only_threads_of(target);
    let mut threads = thread.map_or_else(|| ids.threads_of(target), |thread| vec![thread]);
    if is_all {
        threads.truncate(1);
    }
    if thread.is_none() {
        ids.forget_stop(target);
    }
    let body =
        |id| json!({"threadId": ids.give(IdKind::Thread, ScopedId { target, id }), "allThreadsContinued": is_all});
    threads.into_iter().map(body).collect()
}

/// The bodies of the `thread` events of a target that has ended; its ids are no longer valid.
fn exited_bodies(ids: &mut EditorIds, target: usize) -> Vec<Value> {
    let threads = ids.threads_of(target);
    let body = |id| json!({"reason": "exited", "threadId": ids.give(IdKind::Thread, ScopedId { target, id })});
    let bodies = threads.into_iter().map(body).collect();
    ids.forget_target(target);
    bodies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::StopKind;

    fn stop(thread: i64) -> ThreadStop {
        let (kind, hits) = (StopKind::BreakpointHit, vec![(7, 1)]);
        ThreadStop {
            kind,
            thread_id: Some(thread),
            thread_name: None,
            all_threads: true,
            text: None,
            breakpoints: Vec::new(),
            data_change: None,
            hits,
            is_panic: false,
            condition_failure: None,
        }
    }

    #[test]
    fn a_stop_stands_for_all_threads_only_where_no_other_target_has_any() {
        let mut ids = EditorIds::default();
        let all = json!({"reason": "breakpoint", "threadId": 1, "allThreadsStopped": true, "hitBreakpointIds": [7]});
        assert_eq!(stopped_body(&mut ids, 0, &stop(5)), all);
        ids.give(IdKind::Thread, ScopedId { target: 1, id: 5 });
        assert_eq!(stopped_body(&mut ids, 0, &stop(5))["allThreadsStopped"], false);
    }

    #[test]
    fn a_target_that_is_resumed_or_ends_takes_its_ids_along() {
        let mut ids = EditorIds::default();
        stopped_body(&mut ids, 0, &stop(5));
        let frame = ids.give(IdKind::Frame, ScopedId { target: 0, id: 9 });
        assert_eq!(continued_bodies(&mut ids, 0, None), [json!({"threadId": 1, "allThreadsContinued": true})]);
        assert_eq!(ids.find(IdKind::Frame, frame), None);
        ids.give(IdKind::Thread, ScopedId { target: 1, id: 5 });
        assert_eq!(continued_bodies(&mut ids, 0, None), [json!({"threadId": 1, "allThreadsContinued": false})]);
        assert_eq!(exited_bodies(&mut ids, 0), [json!({"reason": "exited", "threadId": 1})]);
        assert!(ids.has_only_threads_of(1));
    }
}
