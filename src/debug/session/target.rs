//! One connection to an adapter: its start in an order that suits every adapter, its events, its end.
//!
//! ```text
//! initialize ─▶ launch / attach ──────────────── its response, at any time ─▶ Started
//!                   └▶ initialized ─▶ breakpoints ─▶ configurationDone (once; breakpoints each time)
//! ```
//! Requests run beside the reading of events and end with the target. Does not depend on other targets.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use serde_json::Value;
use tether_backend::exits_after_close;
use tether_dap::types::{
    AttachArguments, BreakpointEvent, CapabilitiesEvent, ContinuedEvent, DapCapabilities, ExitedEvent,
    InitializeArguments, InitializedEvent, InvalidatedEvent, LaunchArguments, LoadedSourceEvent, ModuleEvent,
    OutputEvent, ProcessEvent, SetDebuggerPropertyArguments, StartRequest, StoppedEvent, TerminatedEvent, ThreadEvent,
    VIRTUAL_MACHINE,
};
use tether_dap::{DapClient, DapError, DapInbox, DapIncoming, Driver, IncomingRequest, RawEvent};
use tether_process::{Process, ProcessExit};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tracing::warn;

use super::command::SessionCommand;
use super::detach_hook::install_detach_hook;
use super::disconnect::{log_error, send_disconnect};
use super::output_flush::OutputFlush;
use super::resume::Resume;
use super::run_in_terminal::run_in_terminal;
use super::snapshot::SessionSnapshot;
use super::stop::ThreadStop;
use super::stop_filter::{StopDecision, Undecided, decide_with_requests, decide_without_requests};
use super::target_handle::TargetGuard;
use super::target_state::{ProgramExit, TargetEffect, TargetInput, TargetPhase};
use super::undebugged_processes::UndebuggedProcess;
use crate::adapters::{DetachHook, Quirks};
use crate::debug::breakpoints::sync::send_all_breakpoints;

/// The reason of gdb's stop after an evaluation has called a function of the program: it is stopped where it was.
const FUNCTION_CALL: &str = "function call";

/// The reason of an `exited` event before an `exec` (debugpy).
const PROCESS_REPLACED: &str = "processReplaced";

/// Events of a program whose scripts are being read.
const LOADING_EVENTS: [&str; 4] = ["initialized", "thread", "loadedSource", "breakpoint"];

/// Events that only joined editors need as they are.
const FORWARDED_EVENTS: [&str; 3] = ["thread", "module", "invalidated"];

/// How long a process may take to exit once it has closed its connection; then it runs on without its debugger.
const EXIT_AFTER_CLOSE: Duration = Duration::from_secs(1);

/// How long breakpoints may wait for the first stop of a program that was attached to.
const FIRST_STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the requests of a target may outlive its connection.
const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// What every target of a session is started with.
#[derive(Clone, Debug)]
pub struct TargetPlan {
    /// The first request.
    pub initialize: InitializeArguments,
    /// For readers, where the start request has no name.
    pub name: String,
    /// `launch` or `attach`.
    pub start: StartRequest,
    /// It is a child of the program that has connected by itself: its connection ends with it, without `terminated`.
    pub is_child_process: bool,
    /// How the adapter deviates from the protocol.
    pub quirks: Quirks,
    /// Whether the program ran before: it was attached to.
    pub is_attached: bool,
    /// Its process then, where it is known.
    pub process: Option<Process>,
    /// Whether the first stop, at the program's entry, is reported.
    pub stop_on_entry: bool,
    /// For the response to `initialize`, before which an adapter may load much.
    pub initialize_deadline: Duration,
    /// For each single request.
    pub deadline: Duration,
    /// For the response to `launch` or `attach`, before which an adapter may compile.
    pub start_deadline: Duration,
    /// The launch id of the processes that are started for the session.
    pub launch_id: String,
    /// Whether `runInTerminal` is carried out: it runs any command.
    pub allows_run_in_terminal: bool,
}

impl TargetPlan {
    /// The name in the start request, for readers; else the plan's own.
    pub fn target_name(&self) -> String {
        let (StartRequest::Launch(fields) | StartRequest::Attach(fields)) = &self.start;
        fields.get("name").and_then(Value::as_str).unwrap_or(&self.name).to_owned()
    }
}

/// The result of a request that ran beside the events.
enum CallResult {
    Started(Result<(), DapError>),
    Decided(StopDecision),
    Other,
}

struct TargetTask {
    guard: Arc<TargetGuard>,
    plan: TargetPlan,
    client: DapClient,
    calls: JoinSet<CallResult>,
    /// `initialized` has come.
    is_initialized: bool,
    /// The first stop has come.
    has_stopped: bool,
    /// Another program takes its place in the same process, and connects anew if it can be debugged.
    is_replaced: bool,
    /// The adapter has said that the program has ended, and not yet how.
    awaits_exit: bool,
    flush: Arc<OutputFlush>,
    /// The program's process, where the adapter does not tell a signal that ends it from a code.
    debuggee: Option<Process>,
    /// Stops that the filter classifies by requests.
    undecided_stops: usize,
    /// The threads that have exited meanwhile: a stop of theirs has ended before it is published.
    exited_threads: BTreeSet<i64>,
    /// The stops that the target was in when it continued without a request, perhaps to call a function of the program.
    stops_before_call: Vec<ThreadStop>,
}

/// A connection that is open: its client, its inbox, and what drives both.
pub type OpenConnection = (DapClient, DapInbox, Driver);

/// Drives a target for as long as its connection. However it ends, the target has ended when this returns.
pub async fn drive_target(guard: TargetGuard, plan: TargetPlan, (client, inbox, driver): OpenConnection) {
    guard.with_channel(|channel| channel.quirks = plan.quirks);
    // Closed at once if the session is stopping.
    if guard.shared.with_state(|state| state.set_client(guard.id, &client)) {
        client.close();
    }
    let debuggee = plan.process.clone().filter(|_| plan.quirks.signals_as_codes);
    let mut target = TargetTask {
        guard: Arc::new(guard),
        plan,
        client,
        calls: JoinSet::new(),
        is_initialized: false,
        has_stopped: false,
        is_replaced: false,
        awaits_exit: false,
        flush: Arc::default(),
        debuggee,
        undecided_stops: 0,
        exited_threads: BTreeSet::new(),
        stops_before_call: Vec::new(),
    };
    target.spawn_call(async move { drop(driver.await) });
    let ((client, guard), plan) = (target.connection(), target.plan.clone());
    target.calls.spawn(async move { CallResult::Started(send_start(&guard, &client, &plan).await) });
    target.run_event_loop(inbox).await;
    let reason = target.client.wait_closed().await;
    if target.may_outlive_connection() {
        wait_for_replacement(&target.guard, target.is_replaced).await;
    }
    let input = target.closed_input(reason).await;
    target.guard.apply_and_clean_up(input);
    // Requests under way are written and their responses read. What has no end of its own (a program that runs for the
    // adapter) is cut off.
    let rest = async { while target.calls.join_next().await.is_some() {} };
    let _ = timeout(CLOSE_GRACE, rest).await;
}

/// Resolves when a newer target is the same process, the process has exited, or the target is ended on request: the program that
/// has taken the place of a debugged one need not be one that can be debugged. `is_expected`: the adapter has said that it comes.
async fn wait_for_replacement(guard: &TargetGuard, is_expected: bool) {
    let mut snapshots = guard.shared.snapshot.subscribe();
    let Some(pid) = snapshots.borrow().targets.get(guard.id).and_then(|target| target.pid) else { return };
    // Its stop has ended with the connection.
    guard.apply_and_clean_up(TargetInput::Continued(None));
    let is_over = |it: &SessionSnapshot| {
        it.find_process(pid) != Some(guard.id)
            || it.targets.get(guard.id).is_none_or(|target| matches!(target.state.phase, TargetPhase::Ended(_)))
    };
    let exited = async {
        if let Ok(process) = Process::open(pid) {
            if !is_expected && timeout(EXIT_AFTER_CLOSE, process.wait_for_exit()).await.is_err() {
                let process = UndebuggedProcess {
                    pid,
                    command: tether_process::command_line(&tether_process::read_arguments(pid).unwrap_or_default()),
                    reason: Some("its debugger has ended, and it continues without it".to_owned()),
                    runtime: None,
                };
                guard.shared.report_undebugged(process, true);
            }
            process.wait_for_exit().await;
        }
    };
    tokio::select! {
        _ = snapshots.wait_for(is_over) => {}
        () = exited => {}
    }
}

impl TargetTask {
    /// Whether its process may go on when its connection has ended, as another program or without its debugger.
    fn may_outlive_connection(&self) -> bool {
        self.is_replaced || (self.plan.quirks.close_means_terminated && self.is_initialized)
    }

    /// What the end of the connection means. The process of a program that was attached to is looked at; while it was being
    /// attached to, it was not attached to.
    async fn closed_input(&self, reason: String) -> TargetInput {
        let is_end = self.plan.quirks.close_means_terminated && self.is_initialized;
        let is_known = is_end || self.is_replaced || self.awaits_exit || self.plan.is_child_process;
        if is_known || (self.guard.is_active() && exits_after_close(self.plan.process.as_ref()).await) {
            TargetInput::Terminated
        } else {
            TargetInput::Closed(reason)
        }
    }

    async fn run_event_loop(&mut self, mut inbox: DapInbox) {
        loop {
            tokio::select! {
                biased; // the adapter's events come before the consequences of its responses
                incoming = inbox.next() => match incoming {
                    Some(DapIncoming::Event(event)) => self.handle_event(&event),
                    Some(DapIncoming::Request(request)) => self.handle_request(request),
                    Some(DapIncoming::Lost(lost)) => self.guard.shared.event_log.push_event("lost", lost.to_string()),
                    None => return,
                },
                Some(result) = self.calls.join_next() => match result {
                    Ok(CallResult::Started(Ok(()))) => drop(self.guard.apply_and_clean_up(TargetInput::Started)),
                    Ok(CallResult::Started(Err(error))) => {
                        self.report_unreached(&error);
                        let input = self.closed_input(error.to_string()).await;
                        self.guard.apply_and_clean_up(input);
                        self.disconnect();
                    }
                    Ok(CallResult::Decided(decision)) => self.apply_late_decision(decision),
                    Ok(CallResult::Other) | Err(_) => {}
                },
            }
        }
    }

    fn handle_request(&mut self, request: IncomingRequest) {
        match request.command.as_str() {
            "startDebugging" => {
                self.guard.send_command(SessionCommand::SpawnChild { parent: self.guard.id, request });
            }
            "runInTerminal" if self.plan.allows_run_in_terminal => {
                let (event_log, launch_id) = (Arc::clone(&self.guard.shared.event_log), self.plan.launch_id.clone());
                self.spawn_call(run_in_terminal(request, event_log, launch_id));
            }
            // Dropping a request refuses it.
            command => warn!("refused to {command}"),
        }
    }

    fn handle_event(&mut self, event: &RawEvent) {
        if let Some(output) = self.flush.take_marker(event) {
            return self.guard.shared.event_log.push_output("stdout", &output);
        }
        self.guard.shared.event_log.record_event(event);
        if FORWARDED_EVENTS.contains(&event.name.as_str()) {
            self.guard.shared.forward_event(self.guard.id, event, None);
        }
        if event.read_body::<InvalidatedEvent>().is_some() {
            self.guard.shared.with_state(|state| state.stop_cache.clear_frames());
        }
        if LOADING_EVENTS.contains(&event.name.as_str()) {
            self.guard.shared.loading.send_replace(Instant::now());
        }
        if let Some(stopped) = event.read_body::<StoppedEvent>() {
            self.handle_stopped_event(stopped);
        } else if let Some(continued) = event.read_body::<ContinuedEvent>() {
            // gdb may send it twice: the second one finds no stops.
            let stops = self.guard.stops();
            if !stops.is_empty() {
                self.stops_before_call = stops;
            }
            let one_thread = continued.all_threads_continued == Some(false);
            self.apply(TargetInput::Continued(one_thread.then_some(continued.thread_id)));
        } else if let Some(thread) = event.read_body::<ThreadEvent>().filter(|thread| thread.reason == "exited") {
            if self.undecided_stops > 0 {
                self.exited_threads.insert(thread.thread_id);
            }
            self.apply(TargetInput::ThreadExited(thread.thread_id));
        } else if let Some(exited) = event.read_body::<ExitedEvent>() {
            match exited.pydevd_reason.as_deref() {
                Some(PROCESS_REPLACED) => self.is_replaced = true,
                _ => self.apply(TargetInput::Exited(self.read_exit(exited.exit_code))),
            }
        } else if let Some(code) = self.read_printed_exit(event) {
            self.apply(TargetInput::Exited(ProgramExit::Code(code)));
        } else if let Some(ended) = event.read_body::<TerminatedEvent>() {
            match ended.connection_lost {
                // Its console says the exit code once it was disconnected from, and then it says again that this is the end.
                None if self.plan.quirks.exit_words.is_some() && !std::mem::replace(&mut self.awaits_exit, true) => {
                    self.disconnect();
                }
                None => self.apply(TargetInput::Terminated),
                Some(reason) => {
                    self.apply(TargetInput::Closed(reason));
                    self.disconnect();
                }
            }
        } else if event.read_body::<InitializedEvent>().is_some() {
            self.send_breakpoints();
        } else if let Some(loaded) = event.read_body::<LoadedSourceEvent>() {
            self.record_loaded_source(loaded);
        } else if let Some(changed) = event.read_body::<BreakpointEvent>() {
            self.guard.change_bindings(|state| state.bindings.record_event(self.guard.id, changed.breakpoint));
        } else if let Some(process) = event.read_body::<ProcessEvent>() {
            let pid = process.system_process_id.and_then(|pid| u32::try_from(pid).ok());
            if process.is_child == Some(true) {
                return self.guard.shared.with_state(|state| state.debugged.extend(pid));
            }
            if self.plan.quirks.signals_as_codes && !self.plan.is_attached {
                self.debuggee = pid.and_then(|pid| Process::open(pid).ok());
            }
            self.guard.shared.set_target_pid(self.guard.id, pid);
        } else if let Some(ModuleEvent { module, .. }) = event.read_body() {
            if module.id == VIRTUAL_MACHINE {
                let name = [module.name, module.version.unwrap_or_default()].join(" ").trim_end().to_owned();
                self.guard.shared.set_target_vm(self.guard.id, name);
            }
        } else if let Some(changed) = event.read_body::<CapabilitiesEvent>() {
            self.guard.with_channel(|channel| {
                channel.capabilities.send_modify(|known| known.get_or_insert_default().change(changed.capabilities));
            });
        }
    }

    /// The exit code that the adapter prints, if it reports none otherwise; one of a program that a signal has ended is none.
    fn read_printed_exit(&self, event: &RawEvent) -> Option<i64> {
        let words = self.plan.quirks.exit_words?;
        let output = event.read_body::<OutputEvent>().filter(|it| it.category.as_deref() == Some("console"))?;
        let (before, code) = output.output.trim_end().split_once(words)?;
        before.strip_prefix("Process ")?.parse::<u32>().ok()?;
        code.parse().ok().filter(|code| *code >= 0)
    }

    /// How the program has ended whose adapter says that code.
    fn read_exit(&self, code: i64) -> ProgramExit {
        match self.debuggee.as_ref().and_then(Process::exit) {
            Some(ProcessExit::Signal(signal)) => ProgramExit::Signal(signal),
            _ => ProgramExit::Code(code),
        }
    }

    fn record_loaded_source(&mut self, loaded: LoadedSourceEvent) {
        let path = loaded.source.path.filter(|_| loaded.reason != "removed").map(PathBuf::from);
        let sources = self.guard.shared.sources.clone();
        if let Some(path) = path.filter(|path| path.is_absolute() && sources.record_loaded(path)) {
            self.spawn_call(async move { sources.refresh(path).await });
        }
    }

    /// Reports that a child's start has failed before the adapter was ready. A connection that closes is none: a short
    /// program may have ended.
    fn report_unreached(&self, cause: &DapError) {
        if !self.is_initialized && !matches!(cause, DapError::Closed(_)) {
            self.guard.report_unreached(&cause.to_string());
        }
    }

    fn apply(&mut self, input: TargetInput) {
        if self.guard.apply_and_clean_up(input) == TargetEffect::Disconnect {
            self.disconnect();
        }
    }

    /// A stop is published at once, unless the filter has to send requests first.
    fn handle_stopped_event(&mut self, stopped: StoppedEvent) {
        let before = std::mem::take(&mut self.stops_before_call);
        if stopped.reason == FUNCTION_CALL && !(before.is_empty() && self.guard.stops().is_empty()) {
            for stop in before {
                self.guard.apply_and_clean_up(TargetInput::Stopped(stop));
            }
            return;
        }
        let is_first = !std::mem::replace(&mut self.has_stopped, true);
        let is_initial = is_first && (self.plan.quirks.sends_initial_pause || self.plan.stop_on_entry);
        let initial = is_initial.then_some(self.plan.stop_on_entry);
        let thread = stopped.thread_id;
        let hook = self.plan.quirks.detach_hook.filter(|_| !self.guard.is_detach_ready()).zip(thread);
        let stop = ThreadStop::from_event(stopped).with_condition_stop(self.plan.quirks.condition_stop);
        let decided = decide_without_requests(&self.guard, stop, initial);
        match decided {
            Ok(decision) if hook.is_none() => self.apply_decision(decision),
            decided => self.decide_later(decided, hook),
        }
    }

    /// Sends the requests that a stop needs before it is published. Until the hook has been evaluated, each stop evaluates it.
    fn decide_later(&mut self, decided: Result<StopDecision, Box<Undecided>>, hook: Option<(DetachHook, i64)>) {
        let accumulates = self.plan.quirks.breakpoints_accumulate;
        let (client, guard) = self.connection();
        self.undecided_stops = self.undecided_stops.saturating_add(1);
        self.calls.spawn(async move {
            if let Some((hook, thread)) = hook {
                install_detach_hook(&client, &guard, hook, thread).await;
            }
            CallResult::Decided(match decided {
                Ok(decision) => decision,
                Err(undecided) => decide_with_requests(&client, &guard, *undecided, accumulates).await,
            })
        });
    }

    /// A decision that took requests: its thread may be gone.
    fn apply_late_decision(&mut self, decision: StopDecision) {
        let (StopDecision::Stop(stop) | StopDecision::AutoContinue(stop) | StopDecision::StepOn(stop, _)) = &decision;
        let is_gone = stop.thread_id.is_some_and(|thread| self.exited_threads.contains(&thread));
        self.undecided_stops = self.undecided_stops.saturating_sub(1);
        if self.undecided_stops == 0 {
            self.exited_threads.clear();
        }
        if !is_gone {
            self.apply_decision(decision);
        }
    }

    fn apply_decision(&mut self, decision: StopDecision) {
        match decision {
            StopDecision::Stop(stop) => drop(self.guard.apply_and_clean_up(TargetInput::Stopped(stop))),
            StopDecision::AutoContinue(stop) => self.resume_passed(&stop, Resume::Continue),
            StopDecision::StepOn(stop, how) => self.resume_passed(&stop, how),
        }
    }

    fn resume_passed(&mut self, stop: &ThreadStop, how: Resume) {
        let ((client, guard), thread) = (self.connection(), stop.thread_id.unwrap_or_default());
        self.spawn_call(async move {
            // All breakpoints are sent first.
            guard.wait_until_configured().await;
            log_error(how.send(&client, thread, guard.shared.request_timeout).await);
        });
    }

    /// On each `initialized`: js-debug's children send it twice.
    fn send_breakpoints(&mut self) {
        let (client, guard) = self.connection();
        let is_first = !std::mem::replace(&mut self.is_initialized, true);
        let hides_name_errors = self.plan.quirks.hides_name_errors && is_first;
        // Without the hook, rdbg 1.4 may end the program at a breakpoint that is reached in its first stop.
        let awaits_hook = is_first && self.plan.is_attached && self.plan.quirks.detach_hook.is_some();
        self.spawn_call(async move {
            if awaits_hook {
                let _ = timeout(FIRST_STOP_TIMEOUT, guard.wait_until_detach_ready()).await;
            }
            // Before the breakpoints; its response is not waited for.
            let report_all = SetDebuggerPropertyArguments::default();
            let sent = OptionFuture::from(hides_name_errors.then(|| client.send_request(&report_all))).await;
            send_all_breakpoints(&client, &guard, is_first).await;
            if let Some(sent) = sent.and_then(log_error) {
                log_error(sent.response(guard.shared.request_timeout).await);
            }
        });
    }

    fn disconnect(&mut self) {
        if !self.guard.claim_disconnect() {
            return;
        }
        let (client, flush, quirks) = (self.client.clone(), Arc::clone(&self.flush), self.plan.quirks);
        self.spawn_call(async move {
            if let Some(command) = quirks.drain_command {
                flush.flush(&client, command).await;
            }
            send_disconnect(&client, !quirks.ends_children).await;
            client.close();
        });
    }

    fn connection(&self) -> (DapClient, Arc<TargetGuard>) {
        (self.client.clone(), Arc::clone(&self.guard))
    }

    fn spawn_call(&mut self, call: impl Future<Output = ()> + Send + 'static) {
        self.calls.spawn(async move {
            call.await;
            CallResult::Other
        });
    }
}

async fn send_start(guard: &TargetGuard, client: &DapClient, plan: &TargetPlan) -> Result<(), DapError> {
    let capabilities: DapCapabilities = client.request(&plan.initialize, plan.initialize_deadline).await?;
    // Sent before breakpoints can be: many adapters refuse them before it.
    match &plan.start {
        StartRequest::Launch(fields) => {
            let launch = client.send_request(&LaunchArguments(fields.clone())).await?;
            guard.set_capabilities(capabilities);
            launch.response(plan.start_deadline).await.map(drop)
        }
        StartRequest::Attach(fields) => {
            let attach = client.send_request(&AttachArguments(fields.clone())).await?;
            guard.set_capabilities(capabilities);
            attach.response(plan.start_deadline).await.map(drop)
        }
    }
}
