//! How a session starts: in which order, when that is over, and why it fails.

use super::*;
use crate::vocabulary::RunState;

#[tokio::test]
async fn a_start_has_the_order_that_suits_every_adapter_and_a_second_initialized_sends_only_breakpoints() {
    let mut scene = Scene::open().await;
    assert_eq!(scene.session.snapshot().run_state(), RunState::Starting);
    let mut adapter = scene.adapter().await;
    adapter.grant("initialize").await;
    let launch = adapter.requested("launch").await;
    adapter.configured().await;
    adapter.server.send_event(&InitializedEvent {}).await.unwrap();
    adapter.grant("setBreakpoints").await;
    adapter.grant("setExceptionBreakpoints").await;
    assert_eq!(scene.session.snapshot().run_state(), RunState::Starting);
    launch.respond(&EmptyResponse {});
    scene.until(|snapshot| snapshot.run_state() == RunState::Running).await;
    let (state, commands) = tokio::join!(scene.session.stop(true), adapter.answer_requests());
    assert_eq!((state, commands), (RunState::Terminated, vec!["disconnect".to_owned()]));
    scene.running.await.unwrap();
}

#[tokio::test]
async fn a_start_that_an_adapter_answers_before_it_takes_breakpoints_is_over_when_it_has_them() {
    let mut scene = Scene::open().await;
    let mut adapter = scene.adapter().await;
    adapter.grant("initialize").await;
    adapter.requested("launch").await.respond(&EmptyResponse {});
    scene.until(|snapshot| snapshot.run_state() == RunState::Running).await;
    let began = Instant::now();
    assert_eq!(scene.session.wait_for_start(0, SHORT).await, RunState::Running);
    assert!(began.elapsed() < Duration::from_secs(5), "a shorter timeout holds: {:?}", began.elapsed());
    let mut started = std::pin::pin!(scene.session.wait_for_start(0, LONG));
    assert_eq!(started.as_mut().now_or_never(), None, "the adapter has no breakpoints yet");
    adapter.configured().await;
    assert_eq!(started.await, RunState::Running);
}

#[tokio::test]
async fn a_start_that_is_refused_or_cut_short_says_why() {
    let mut scene = Scene::open().await;
    let mut adapter = scene.adapter().await;
    adapter.grant("initialize").await;
    adapter.requested("launch").await.respond_error(ErrorResponse::new("there is no python"));
    let (waited, _) = tokio::join!(scene.session.wait_for_stop(LONG), adapter.answer_requests());
    assert_eq!(waited.state, RunState::Disconnected);
    let reason = |scene: &Scene| scene.session.snapshot().disconnect_reason(0).unwrap_or_default().to_owned();
    assert!(reason(&scene).contains("launch failed: there is no python"), "{}", reason(&scene));

    let mut scene = Scene::open().await;
    drop(scene.adapter().await);
    scene.session.wait_for_stop(LONG).await;
    assert!(reason(&scene).contains("the peer closed it"), "{}", reason(&scene));
    scene.running.await.unwrap();

    let mut scene = Scene::open().await;
    let adapter = scene.adapter().await;
    let (first, second, _) =
        tokio::join!(scene.session.stop(true), scene.session.stop(true), adapter.answer_requests());
    // Whether `disconnect` was sent depends on how far the start had come.
    assert_eq!((first, second), (RunState::Terminated, RunState::Terminated));
    scene.running.await.unwrap();
}
