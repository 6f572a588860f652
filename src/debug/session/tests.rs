//! Scripted adapters behind real connections: stops and waiting, targets that start child targets.

mod ended_stops;
mod starts;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use serde_json::json;
use tether_base::error::ErrorKind;
use tether_base::ring::RingQuery;
use tether_dap::types::*;
use tether_dap::{DapConnection, DapError, DapInbox, DapIncoming, DapServer, ErrorResponse, IncomingRequest};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::debug_session::DebugSession;
use super::resume::Resume;
use super::snapshot::{SessionSnapshot, TargetSnapshot, WaitOutcome};

use super::target::TargetPlan;
use super::target_state::{ProgramExit, TargetEnd, TargetPhase};
use super::task::{MAX_CONNECTED_TARGETS, SessionProgram};
use crate::adapters::{Connector, Quirks};
use crate::debug::breakpoints::{BreakpointConditions, BreakpointStore};
use crate::debug::inspect;
use crate::debug::inspect::{ScopedId, VariableParent};
use crate::vocabulary::{RunState, StopKind};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(100);

/// The other end of one connection.
struct Adapter {
    server: DapServer,
    inbox: DapInbox,
}

impl Adapter {
    fn over(connection: DapConnection) -> Adapter {
        let (server, inbox, driver) = DapServer::over(connection);
        tokio::spawn(driver);
        Adapter { server, inbox }
    }

    /// The next request; `None` when the session has left.
    async fn next(&mut self) -> Option<IncomingRequest> {
        match self.inbox.next().await? {
            DapIncoming::Request(requested) => Some(requested),
            other => panic!("{other:?}"),
        }
    }

    /// The next request, which must be this one.
    async fn requested(&mut self, command: &str) -> IncomingRequest {
        let requested = self.next().await.unwrap_or_else(|| panic!("the session left before {command}"));
        assert_eq!(requested.command, command);
        requested
    }

    async fn grant(&mut self, command: &str) {
        let able = json!({"breakpoints": [{"id": 99, "verified": true, "line": 2}], "supportsConfigurationDoneRequest": true,
            "exceptionBreakpointFilters": [{"filter": "all", "label": "All"}]});
        self.requested(command).await.respond(&able);
    }

    async fn configured(&mut self) {
        self.server.send_event(&InitializedEvent {}).await.unwrap();
        for command in ["setBreakpoints", "setExceptionBreakpoints", "configurationDone"] {
            self.grant(command).await;
        }
    }

    /// A whole start, its answer last of all.
    async fn started(&mut self) {
        self.grant("initialize").await;
        let launch = self.requested("launch").await;
        self.configured().await;
        launch.respond(&EmptyResponse {});
    }

    async fn stops(&self, thread: i64, reason: &str, text: &str) {
        let (reason, text, thread_id) = (reason.to_owned(), Some(text.to_owned()), Some(thread));
        // A breakpoint that nobody has set would be looked into first.
        let hit_breakpoint_ids = vec![99];
        let stopped = StoppedEvent {
            reason,
            text,
            thread_id,
            all_threads_stopped: true,
            hit_breakpoint_ids,
            ..StoppedEvent::default()
        };
        self.server.send_event(&stopped).await.unwrap();
    }

    async fn starts_child(&self, name: &str) {
        let configuration = Fields::from_iter([("name".to_owned(), json!(name))]);
        let spec = StartDebuggingArguments { configuration, request: "launch".to_owned() };
        self.server.request(&spec, LONG).await.unwrap();
    }

    /// Grants everything that comes until the session leaves; what that was.
    async fn answer_requests(mut self) -> Vec<String> {
        let mut commands = Vec::new();
        while let Some(requested) = self.next().await {
            commands.push(requested.command.clone());
            requested.respond(&EmptyResponse {});
        }
        commands
    }
}

struct Scene {
    session: DebugSession,
    running: JoinHandle<()>,
    dialled: mpsc::UnboundedReceiver<DapConnection>,
    _workspace: tempfile::TempDir,
}

impl Scene {
    async fn open() -> Scene {
        let (tell, dialled) = mpsc::unbounded_channel();
        let dial: Connector = Arc::new(move || {
            let (ours, theirs) = DapConnection::pair();
            let reported = tell.send(theirs);
            async move { reported.map(|()| ours).map_err(|_| DapError::Closed("no adapter".to_owned())) }.boxed()
        });
        let workspace = tempfile::tempdir().unwrap();
        let file = workspace.path().join("ä b.py");
        std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
        let breakpoints = BreakpointStore::open(workspace.path());
        breakpoints.set_line(&file, 2, BreakpointConditions::default()).await.unwrap();
        let plan = TargetPlan {
            initialize: InitializeArguments { adapter_id: "x".to_owned(), ..InitializeArguments::default() },
            name: String::new(),
            is_child_process: false,
            start: StartRequest::Launch(Fields::from_iter([("name".to_owned(), json!("main"))])),
            quirks: Quirks::default(),
            is_attached: false,
            process: None,
            stop_on_entry: false,
            launch_id: "test".to_owned(),
            allows_run_in_terminal: false,
            initialize_deadline: LONG,
            deadline: LONG,
            start_deadline: LONG,
        };
        let program =
            SessionProgram { plan, connector: dial, children: None, process_reports: None, is_core: false, pid: None };
        let (session, driver) = DebugSession::open(program, breakpoints, Arc::default());
        Scene { session, running: tokio::spawn(driver), dialled, _workspace: workspace }
    }

    async fn adapter(&mut self) -> Adapter {
        Adapter::over(self.dialled.recv().await.unwrap())
    }

    /// A session that runs, and its adapter.
    async fn running() -> (Scene, Adapter) {
        let mut scene = Scene::open().await;
        let mut adapter = scene.adapter().await;
        adapter.started().await;
        scene.until(|snapshot| snapshot.run_state() == RunState::Running).await;
        (scene, adapter)
    }

    /// The events of targets, as `kind text`.
    fn target_events(&self) -> Vec<String> {
        let kinds = ["targetStarted", "targetEnded"].map(str::to_owned);
        let events = self.session.event_log().read_events(&RingQuery::default(), &kinds).entries;
        events.into_iter().map(|it| format!("{} {}", it.kind, it.text)).collect()
    }

    async fn until(&self, holds: impl FnMut(&SessionSnapshot) -> bool) -> SessionSnapshot {
        let mut seen = self.session.watch();
        tokio::time::timeout(LONG, seen.wait_for(holds)).await.unwrap().unwrap().clone()
    }
}

fn text(waited: &WaitOutcome) -> &str {
    waited.stop.as_ref().and_then(|(_, stop)| stop.text.as_deref()).unwrap_or_default()
}

#[tokio::test]
async fn a_wait_ends_with_the_stop_or_in_time_or_at_once() {
    let (scene, adapter) = Scene::running().await;
    let waited = scene.session.wait_for_stop(SHORT).await;
    assert!(waited.stop.is_none() && waited.state == RunState::Running && waited.waited >= SHORT, "{waited:?}");
    assert!(waited.message.as_ref().unwrap().contains("nothing stopped within"), "{waited:?}");
    let (waited, ()) = tokio::join!(scene.session.wait_for_stop(LONG), adapter.stops(7, "breakpoint", "here"));
    let (target, stop) = waited.stop.clone().unwrap();
    assert_eq!((target, stop.kind, stop.thread_id), (0, StopKind::BreakpointHit, Some(7)));
    let waited = scene.session.wait_for_stop(Duration::ZERO).await;
    assert_eq!((text(&waited), waited.state), ("here", RunState::Stopped));
}

#[tokio::test]
async fn the_end_of_the_program_or_of_the_connection_ends_a_wait_and_says_which() {
    let (scene, adapter) = Scene::running().await;
    let ending = async {
        adapter.server.send_event(&ExitedEvent { exit_code: 3, ..ExitedEvent::default() }).await.unwrap();
        adapter.server.send_event(&TerminatedEvent::default()).await.unwrap();
        adapter.answer_requests().await
    };
    let (waited, _) = tokio::join!(scene.session.wait_for_stop(LONG), ending);
    assert_eq!((waited.state, waited.message), (RunState::Terminated, None));
    assert_eq!(scene.target_events(), ["targetStarted target 0 main", "targetEnded target 0 main: ended with code 3"]);
    let phase = scene.session.snapshot().targets[0].state.phase.clone();
    assert_eq!(phase, TargetPhase::Ended(TargetEnd::Terminated { exit: Some(ProgramExit::Code(3)) }));
    scene.running.await.unwrap();

    let (scene, adapter) = Scene::running().await;
    let (waited, ()) = tokio::join!(scene.session.wait_for_stop(LONG), async { drop(adapter) });
    assert_eq!(waited.state, RunState::Disconnected);
    assert!(scene.target_events()[1].starts_with("targetEnded target 0 main: its connection ended: "));
    let error = scene.session.resume(Resume::Over, None).await.unwrap_err().to_string();
    assert!(error.contains("DISCONNECTED"), "{error}");
}

#[tokio::test]
async fn of_several_stopped_threads_the_first_is_primary_and_each_keeps_its_reason() {
    let (scene, mut adapter) = Scene::running().await;
    adapter.stops(1, "breakpoint", "one").await;
    adapter.stops(2, "exception", "two").await;
    let snapshot = scene.until(|snapshot| snapshot.stops().len() == 2).await;
    let stops: Vec<_> = snapshot.stops().into_iter().map(|(_, stop)| (stop.thread_id, stop.kind)).collect();
    assert_eq!(stops, [(Some(1), StopKind::BreakpointHit), (Some(2), StopKind::Exception)]);
    let stepped = async {
        assert_eq!(adapter.requested("stepIn").await.read_arguments::<StepInArguments>().unwrap().thread_id, 2);
        // The session looks whether the thread is gone.
        let threads = json!({"threads": [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]});
        adapter.requested("threads").await.respond(&threads);
    };
    let (refused, ()) = tokio::join!(scene.session.resume(Resume::Into, Some((0, 2))), stepped);
    assert!(refused.unwrap_err().to_string().contains("stepIn is not supported here"));
    assert_eq!(scene.session.snapshot().stops().len(), 2, "a refused step has resumed something");
    adapter.server.send_event(&ContinuedEvent { thread_id: 1, all_threads_continued: Some(false) }).await.unwrap();
    let snapshot = scene.until(|snapshot| snapshot.stops().len() == 1).await;
    assert_eq!(snapshot.stops()[0].1.thread_id, Some(2));
}

#[tokio::test]
async fn a_thousand_resumes_and_waits_never_see_the_old_stop_and_never_lose_one() {
    let (scene, mut adapter) = Scene::running().await;
    adapter.stops(1, "breakpoint", "0").await;
    assert_eq!(text(&scene.session.wait_for_stop(LONG).await), "0");
    let script = async {
        for number in 1..=1000 {
            let requested = adapter.requested("continue").await;
            // Adapters tell the next stop before and after their answer, with or without an echo.
            match number % 3 {
                0 => requested.respond(&ContinueResponse::default()),
                1 => {
                    adapter
                        .server
                        .send_event(&ContinuedEvent { thread_id: 1, ..ContinuedEvent::default() })
                        .await
                        .unwrap();
                    requested.respond(&ContinueResponse::default());
                }
                _ => {
                    adapter.stops(1, "step", &number.to_string()).await;
                    requested.respond(&ContinueResponse::default());
                    continue;
                }
            }
            adapter.stops(1, "breakpoint", &number.to_string()).await;
        }
    };
    let resumes = async {
        for number in 1..=1000 {
            scene.session.resume(Resume::Continue, None).await.unwrap();
            assert_eq!(text(&scene.session.wait_for_stop(LONG).await), number.to_string());
        }
    };
    tokio::join!(resumes, script);
}

#[tokio::test]
async fn of_two_clients_that_step_at_once_one_steps_and_the_other_is_told() {
    let (scene, mut adapter) = Scene::running().await;
    let error = scene.session.resume(Resume::Over, None).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
    assert!(error.to_string().contains("its state is RUNNING") && error.hints[0].contains("pause"), "{error}");
    adapter.stops(1, "breakpoint", "").await;
    scene.session.wait_for_stop(LONG).await;
    let script = async { adapter.grant("next").await };
    let step = || scene.session.resume(Resume::Over, None);
    let (one, other, ()) = tokio::join!(step(), step(), script);
    assert!(one.is_ok() != other.is_ok());
    // A front end that goes away in the middle takes nothing back.
    adapter.stops(1, "step", "").await;
    scene.session.wait_for_stop(LONG).await;
    assert!(step().now_or_never().is_none());
    adapter.grant("next").await;
    assert_eq!(scene.session.snapshot().run_state(), RunState::Running);
}

#[tokio::test]
async fn child_targets_all_end_in_time_though_one_never_answers_disconnect() {
    let (mut scene, parent) = Scene::running().await;
    parent.starts_child("child").await;
    let mut child = scene.adapter().await;
    child.started().await;
    child.starts_child("worker").await;
    let mut worker = scene.adapter().await;
    worker.started().await;
    worker.stops(9, "breakpoint", "in the worker").await;
    assert_eq!(text(&scene.session.wait_for_stop(LONG).await), "in the worker");
    let snapshot = scene.session.snapshot();
    let tree: Vec<_> = snapshot.targets.iter().map(|target| (target.name.as_str(), target.parent)).collect();
    assert_eq!(tree, [("main", None), ("child", Some(0)), ("worker", Some(1))]);
    // The one that is stopped goes on, and no other.
    let (resumed, ()) = tokio::join!(scene.session.resume(Resume::Out, None), worker.grant("stepOut"));
    resumed.unwrap();

    let silent = async {
        let disconnect = child.requested("disconnect").await;
        // Not answered, and read to its end.
        assert!(child.next().await.is_none());
        drop(disconnect);
    };
    let began = Instant::now();
    let answered = async { tokio::join!(worker.answer_requests(), parent.answer_requests(), silent) };
    let (state, (to_worker, to_parent, ())) = tokio::join!(scene.session.stop(true), answered);
    assert_eq!((to_worker, to_parent), (vec!["disconnect".to_owned()], vec!["disconnect".to_owned()]));
    assert!(state == RunState::Terminated && began.elapsed() < Duration::from_secs(20));
    scene.running.await.unwrap();
}

/// As debugpy does it, whose `terminated` comes before its answer.
#[tokio::test]
async fn disconnect_is_sent_once_by_whichever_side_ends_first() {
    let (scene, mut adapter) = Scene::running().await;
    let ends = async {
        let disconnect = adapter.requested("disconnect").await;
        adapter.server.send_event(&TerminatedEvent::default()).await.unwrap();
        scene.until(SessionSnapshot::is_ended).await;
        disconnect.respond(&EmptyResponse {});
        adapter.answer_requests().await
    };
    let (_, more) = tokio::join!(scene.session.stop(false), ends);
    assert_eq!(more, [""; 0], "after a stop");
    scene.running.await.unwrap();

    let (scene, mut adapter) = Scene::running().await;
    adapter.server.send_event(&TerminatedEvent::default()).await.unwrap();
    let disconnect = adapter.requested("disconnect").await;
    let answers = async {
        disconnect.respond(&EmptyResponse {});
        adapter.answer_requests().await
    };
    let (_, more) = tokio::join!(scene.session.stop(true), answers);
    assert_eq!(more, [""; 0], "after an end");
    scene.running.await.unwrap();
}

#[tokio::test]
async fn the_last_handle_takes_the_session_along() {
    let (scene, adapter) = Scene::running().await;
    let Scene { session, running, .. } = scene;
    drop(session.clone());
    drop(session);
    let (commands, ended) = tokio::join!(adapter.answer_requests(), running);
    ended.unwrap();
    assert_eq!(commands, ["disconnect"]);
}

#[tokio::test]
async fn more_children_than_the_limit_are_refused() {
    let mut scene = Scene::open().await;
    let mut parent = scene.adapter().await;
    parent.started().await;
    let request = StartDebuggingArguments { configuration: Fields::new(), request: "attach".to_owned() };
    let mut children = Vec::new();
    for _ in 1..MAX_CONNECTED_TARGETS {
        parent.server.request(&request, LONG).await.unwrap();
        children.push(scene.dialled.recv().await.unwrap());
    }
    for _ in 0..2 {
        let refused = parent.server.request(&request, LONG).await.unwrap_err();
        assert!(refused.to_string().contains("at most 128 targets at one time"), "{refused}");
    }
    assert!(scene.dialled.try_recv().is_err(), "nothing was connected for a refused child");
    let notices = scene.session.event_log().take_notices();
    assert!(notices.len() == 1 && notices[0].contains("it is not debugged"), "{notices:?}");
    // A child that has gone makes room for another one.
    drop(children.pop());
    let room = async {
        while parent.server.request(&request, LONG).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, room).await.unwrap();
}

/// A child's adapter accepts its connection, and never responds, or cannot be connected to.
#[tokio::test(start_paused = true)]
async fn a_child_that_is_not_reached_in_time_is_reported_with_the_cause() {
    let (mut scene, parent) = Scene::running().await;
    parent.starts_child("silent").await;
    let silent = scene.adapter().await;
    scene.until(|snapshot| matches!(snapshot.targets[1].state.phase, TargetPhase::Ended(_))).await;
    let notices = scene.session.event_log().take_notices();
    let expect = "target 1 silent is not debugged, it was not reached: no response to initialize within 10s";
    assert_eq!(notices, [expect]);
    drop(silent);
    drop(std::mem::replace(&mut scene.dialled, mpsc::unbounded_channel().1));
    let configuration = Fields::from_iter([("name".to_owned(), json!("gone"))]);
    let request = StartDebuggingArguments { configuration, request: "launch".to_owned() };
    assert!(parent.server.request(&request, LONG).await.is_err());
    scene.until(|snapshot| matches!(&snapshot.targets[..], [.., last] if last.name == "gone" && last.state.phase != TargetPhase::Starting)).await;
    let notices = scene.session.event_log().take_notices();
    assert!(notices.len() == 1 && notices[0].contains("target 2 gone is not debugged"), "{notices:?}");
    // What a stop cuts off was not lost.
    assert_eq!(scene.session.snapshot().run_state(), RunState::Running);
}

#[tokio::test]
async fn a_connection_that_closes_during_a_stop_is_its_end() {
    let (scene, mut adapter) = Scene::running().await;
    let closes = async {
        let disconnect = adapter.requested("disconnect").await;
        drop(adapter);
        drop(disconnect);
    };
    let (state, ()) = tokio::join!(scene.session.stop(true), closes);
    assert_eq!((state, scene.session.snapshot().disconnect_reason(0)), (RunState::Terminated, None));
    scene.running.await.unwrap();
}

/// As lldb-dap 19 responds.
#[tokio::test]
async fn a_variable_is_set_though_the_adapter_returns_no_value() {
    let mut scene = Scene::open().await;
    let mut adapter = scene.adapter().await;
    adapter.requested("initialize").await.respond(&json!({"supportsSetVariable": true}));
    adapter.requested("launch").await.respond(&EmptyResponse {});
    adapter.stops(1, "step", "").await;
    scene.session.wait_for_stop(LONG).await;
    let parent = VariableParent { reference: Some(ScopedId { target: 0, id: 5 }), frame: None };
    let listed = json!([{"name": "x", "value": "7", "variablesReference": 0}]);
    for (variables, expect) in [(listed, "7"), (json!([]), "3 + 4")] {
        let answered = async {
            adapter.requested("setVariable").await.respond(&json!({}));
            adapter.requested("variables").await.respond(&json!({ "variables": variables }));
        };
        let (set, ()) = tokio::join!(inspect::set_variable(&scene.session, "x", "3 + 4", &parent), answered);
        assert_eq!(set.unwrap().1.result, expect);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_pause_is_requested_again_while_the_program_runs() {
    let (scene, mut adapter) = Scene::running().await;
    let answering = async {
        adapter.requested("threads").await.respond(&json!({"threads": []}));
        for _ in 0..2 {
            adapter.requested("pause").await.respond_error(ErrorResponse::new("Process is not running"));
        }
        adapter.grant("pause").await;
    };
    let (paused, ()) = tokio::join!(inspect::pause_thread(&scene.session, None), answering);
    paused.unwrap();
    let answering = async {
        adapter.requested("threads").await.respond(&json!({"threads": []}));
        for _ in 0..4 {
            adapter.requested("pause").await.respond_error(ErrorResponse::new("Process is not running"));
        }
    };
    let (paused, ()) = tokio::join!(inspect::pause_thread(&scene.session, None), answering);
    assert!(paused.unwrap_err().to_string().contains("cannot pause the program"));
}

#[tokio::test(start_paused = true)]
async fn a_variable_that_keeps_its_value_was_not_set() {
    let mut scene = Scene::open().await;
    let mut adapter = scene.adapter().await;
    adapter.requested("initialize").await.respond(&json!({"supportsSetExpression": true}));
    adapter.requested("launch").await.respond(&EmptyResponse {});
    adapter.stops(1, "step", "").await;
    scene.session.wait_for_stop(LONG).await;
    let parent = VariableParent { reference: None, frame: Some(ScopedId { target: 0, id: 5 }) };
    for now in ["7", "8"] {
        let answered = async {
            adapter.requested("scopes").await.respond(&json!({"scopes": []}));
            adapter.requested("evaluate").await.respond(&json!({"result": "7", "variablesReference": 0}));
            adapter.requested("setExpression").await.respond(&json!({"value": "8"}));
            adapter.requested("evaluate").await.respond(&json!({"result": now, "variablesReference": 0}));
        };
        let (set, ()) = tokio::join!(inspect::set_variable(&scene.session, "x", "8", &parent), answered);
        match set {
            Ok((_, set)) => assert_eq!((set.result.as_str(), now), ("8", "8")),
            Err(error) => assert!(now == "7" && error.to_string().contains("it is still `7`"), "{error}"),
        }
    }
}
