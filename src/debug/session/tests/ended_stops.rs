//! Stops that end though nobody resumes them: their thread, their target or their connection is gone.

use tether_dap::types::ThreadEvent;

use super::*;
use crate::vocabulary::RunState;

const GONE: &str = "thread 7 of target 0 main has ended while it was stopped";

impl Adapter {
    async fn thread_exits(&self, thread_id: i64) {
        self.server.send_event(&ThreadEvent { reason: "exited".to_owned(), thread_id }).await.unwrap();
    }
}

/// A session that is stopped in that thread.
async fn stopped_in(thread: i64) -> (Scene, Adapter) {
    let (scene, adapter) = Scene::running().await;
    adapter.stops(thread, "breakpoint", "").await;
    scene.until(|it| it.stops().len() == 1).await;
    (scene, adapter)
}

#[tokio::test]
async fn a_stop_ends_with_its_thread() {
    let (scene, adapter) = stopped_in(7).await;
    adapter.stops(8, "breakpoint", "").await;
    scene.until(|it| it.stops().len() == 2).await;
    adapter.thread_exits(9).await;
    adapter.thread_exits(7).await;
    let snapshot = scene.until(|it| it.stops().len() == 1).await;
    assert_eq!(snapshot.stops()[0].1.thread_id, Some(8), "that of the other thread stays");
    assert_eq!(scene.session.event_log().take_notices(), [GONE]);
    adapter.thread_exits(8).await;
    let snapshot = scene.until(|it| it.stops().is_empty()).await;
    assert_eq!(snapshot.run_state(), RunState::Running);
    let error = scene.session.resume(Resume::Continue, None).await.unwrap_err();
    let expect = "thread 8 of target 0 main has ended while it was stopped; its state is RUNNING";
    assert_eq!((error.kind, error.causes().first()), (ErrorKind::Usage, Some(&expect.to_owned())));
    let waited = scene.session.wait_for_stop(SHORT).await;
    assert_eq!((waited.stop, waited.state), (None, RunState::Running));
    // The next stop is a new one, and nothing of the old is said of it.
    adapter.stops(10, "breakpoint", "").await;
    let snapshot = scene.until(|it| it.run_state() == RunState::Stopped).await;
    assert_eq!(snapshot.ended_stop, None);
}

#[tokio::test]
async fn a_resume_that_is_refused_because_the_thread_is_gone_says_so() {
    let (scene, mut adapter) = stopped_in(7).await;
    let script = async {
        adapter.requested("continue").await.respond_error(ErrorResponse::new("there is no thread 7"));
        adapter.requested("threads").await.respond(&json!({"threads": [{"id": 1, "name": "main"}]}));
    };
    let (resumed, ()) = tokio::join!(scene.session.resume(Resume::Continue, None), script);
    let error = resumed.unwrap_err();
    assert_eq!(error.causes(), [format!("{GONE}; its state is RUNNING")]);
    assert!(scene.session.snapshot().stops().is_empty(), "the stop has ended");
}

#[tokio::test]
async fn a_resume_that_is_refused_for_another_reason_leaves_the_stop() {
    let (scene, mut adapter) = stopped_in(7).await;
    let threads = [json!([{"id": 7, "name": "main"}]), json!([])];
    for threads in threads {
        let script = async {
            adapter.requested("next").await.respond_error(ErrorResponse::new("not now"));
            adapter.requested("threads").await.respond(&json!({ "threads": threads }));
        };
        let (resumed, ()) = tokio::join!(scene.session.resume(Resume::Over, None), script);
        assert!(resumed.unwrap_err().to_string().contains("not now"));
        assert_eq!(scene.session.snapshot().run_state(), RunState::Stopped);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_resume_is_reported_soon_though_the_adapter_does_not_list_its_threads() {
    let (scene, mut adapter) = stopped_in(7).await;
    let began = tokio::time::Instant::now();
    let script = async {
        adapter.requested("next").await.respond_error(ErrorResponse::new("not now"));
        adapter.requested("threads").await
    };
    let (resumed, unanswered) = tokio::join!(scene.session.resume(Resume::Over, None), script);
    assert!(resumed.unwrap_err().to_string().contains("not now"));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(scene.session.snapshot().run_state(), RunState::Stopped);
    drop(unanswered);
}

#[tokio::test]
async fn a_stop_that_is_looked_into_while_its_thread_exits_is_not_published() {
    let (scene, mut adapter) = Scene::running().await;
    // No breakpoint is named: the stack is read before the stop is published.
    let stopped = StoppedEvent { reason: "breakpoint".to_owned(), thread_id: Some(7), ..StoppedEvent::default() };
    adapter.server.send_event(&stopped).await.unwrap();
    let stack = adapter.requested("stackTrace").await;
    adapter.thread_exits(7).await;
    stack.respond(&json!({"stackFrames": []}));
    // One that is published after it.
    adapter.stops(8, "step", "").await;
    let snapshot = scene.until(|it| !it.stops().is_empty()).await;
    let threads: Vec<_> = snapshot.stops().into_iter().map(|(_, stop)| stop.thread_id).collect();
    assert_eq!(threads, [Some(8)]);
}

#[tokio::test]
async fn a_stop_ends_with_its_target_and_with_its_connection_while_the_others_run() {
    for by_event in [true, false] {
        let (mut scene, parent) = Scene::running().await;
        parent.starts_child("worker").await;
        let mut worker = scene.adapter().await;
        worker.started().await;
        worker.stops(9, "breakpoint", "").await;
        scene.until(|it| it.stops().len() == 1).await;
        match by_event {
            true => {
                worker.server.send_event(&TerminatedEvent::default()).await.unwrap();
                worker.answer_requests().await;
            }
            false => drop(worker),
        }
        let snapshot = scene.until(|it| it.stops().is_empty()).await;
        assert_eq!(snapshot.run_state(), RunState::Running);
        let ended = "target 1 worker has ended while it was stopped in thread 9";
        assert_eq!(scene.session.event_log().take_notices(), [ended]);
        let error = scene.session.resume(Resume::Continue, None).await.unwrap_err();
        assert_eq!(error.causes(), [format!("{ended}; its state is RUNNING")]);
    }
}

#[tokio::test]
async fn a_stop_that_is_ended_on_request_is_not_reported() {
    let (scene, adapter) = stopped_in(7).await;
    tokio::join!(scene.session.stop(true), adapter.answer_requests());
    assert_eq!(scene.session.event_log().take_notices(), [""; 0]);
}

#[tokio::test]
async fn a_target_that_is_added_during_a_start_does_not_disturb_the_wait() {
    let (scene, _adapter) = Scene::running().await;
    let shared = Arc::clone(&scene.session.shared);
    let adding = tokio::task::spawn_blocking(move || {
        for _ in 0..3000 {
            shared.add_target(TargetSnapshot::default());
        }
    });
    while !adding.is_finished() {
        scene.session.wait_for_start(0, Duration::ZERO).await;
        tokio::task::yield_now().await;
    }
    adding.await.unwrap();
}

#[tokio::test]
async fn a_program_that_ends_before_its_resume_is_answered_was_resumed() {
    let (scene, mut adapter) = stopped_in(7).await;
    let script = async {
        let unanswered = adapter.requested("continue").await;
        drop(adapter);
        drop(unanswered);
    };
    let (resumed, ()) = tokio::join!(scene.session.resume(Resume::Continue, None), script);
    resumed.unwrap();
    assert_eq!(scene.session.wait_for_stop(LONG).await.state, RunState::Disconnected);
    assert_eq!(scene.session.event_log().take_notices(), [""; 0], "it was not stopped");
}
