//! A scripted browser, for assertions about the exact CDP requests.

use std::time::Duration;

use devtether::vocabulary::MouseButton;
use devtether::window::page::{
    ActionKind, ActionTarget, InputAction, PageConnection, PageHistory, ScreenshotRequest, SnapshotRequest,
    capture_screenshot, run_actions, take_snapshot,
};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tether_cdp::Endpoint;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// One page, with one button.
struct Scripted {
    page: PageConnection,
    /// The received requests in order.
    requested: mpsc::UnboundedReceiver<Value>,
}

impl Scripted {
    /// A request for which `instead` returns messages gets these, and no response of [`result`].
    async fn start(instead: fn(&Value) -> Option<Vec<Value>>) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, requested) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            play(tokio_tungstenite::accept_async(stream).await.unwrap(), instead, tell).await;
        });
        let (product, browser_id, path) = ("Chrome/1".into(), "scripted".into(), "/browser".into());
        let endpoint = Endpoint { port, product, browser_id, path, is_browser: true };
        let page = PageConnection::open_endpoint(endpoint, PageHistory::new(None).into()).await.unwrap();
        Scripted { page, requested }
    }

    /// The next request for which `like` returns true.
    async fn asked_for(&mut self, like: impl Fn(&Value) -> bool) -> Value {
        let next = async {
            loop {
                let request = self.requested.recv().await.expect("the connection has ended");
                if like(&request) {
                    return request;
                }
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, next).await.expect("it was never asked for")
    }
}

async fn play(
    mut socket: WebSocketStream<TcpStream>,
    instead: fn(&Value) -> Option<Vec<Value>>,
    tell: mpsc::UnboundedSender<Value>,
) {
    let target = json!({"targetId": "T", "type": "page", "title": "t", "url": "http://x/"});
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        let request: Value = serde_json::from_str(&text).unwrap();
        let mut messages = Vec::new();
        if request["method"] == "Target.attachToTarget" {
            let params = json!({"sessionId": "S", "targetInfo": target});
            messages.push(json!({"method": "Target.attachedToTarget", "params": params}));
        }
        let respond = || vec![json!({"id": request["id"], "result": result(&request, &target)})];
        messages.extend(instead(&request).unwrap_or_else(respond));
        // Fails once the test has dropped its receiver.
        let _ = tell.send(request);
        for message in messages {
            socket.send(Message::text(message.to_string())).await.unwrap();
        }
    }
}

fn result(request: &Value, target: &Value) -> Value {
    let viewport = json!({"pageX": 0, "pageY": 0, "clientWidth": 800, "clientHeight": 600});
    match request["method"].as_str().unwrap() {
        "Target.getTargets" => json!({"targetInfos": [target]}),
        "Target.attachToTarget" => json!({"sessionId": "S"}),
        "Page.getFrameTree" => json!({"frameTree": {"frame": {"id": "T"}}}),
        "Page.createIsolatedWorld" => json!({"executionContextId": 7}),
        "Page.getLayoutMetrics" => {
            json!({"cssVisualViewport": viewport, "cssContentSize": {"width": 800, "height": 600}})
        }
        "Page.captureScreenshot" => json!({"data": "AAAA"}),
        "Runtime.evaluate" => json!({"result": {"type": "object", "value": inside(&request["params"]["expression"])}}),
        _ => json!({}),
    }
}

/// The results of the injected script.
fn inside(expression: &Value) -> Value {
    let call = expression.as_str().unwrap();
    let seen = json!({"lines": [[0, "button \"Go\"", 3, 0]], "cut": false, "title": "t", "url": "http://x/"});
    match call.split('(').next().unwrap() {
        "tether.takeSnapshot" => json!(seen.to_string()),
        "tether.waitUntilActionable" | "tether.rectangle" => {
            json!({"x": 1, "y": 2, "width": 30, "height": 40, "target": "button"})
        }
        "tether.checkNativeDrag" => json!(false),
        _ => json!(true),
    }
}

fn is_event(request: &Value, kind: &str) -> bool {
    request["method"] == "Input.dispatchMouseEvent" && request["params"]["type"] == kind
}

#[tokio::test]
async fn a_cancelled_drag_releases_the_button_and_restores_the_browsers_own_dragging() {
    fn held(request: &Value) -> bool {
        is_event(request, "mouseMoved") && request["params"]["buttons"] == 1
    }
    let mut scripted = Scripted::start(|request| held(request).then(Vec::new)).await;
    let drag = [InputAction {
        kind: ActionKind::Drag { from: ActionTarget::Point(10.0, 20.0), to: ActionTarget::Point(300.0, 20.0) },
        timeout: Duration::from_secs(5),
    }];
    {
        let Scripted { page, requested } = &mut scripted;
        let begun = async { while !requested.recv().await.is_some_and(|request| held(&request)) {} };
        tokio::select! {
            () = begun => {}
            done = run_actions(page, &drag, None, None, |_| {}) => panic!("it was done: {done:?}"),
        }
    }
    let mut next =
        async |kind: &str| scripted.asked_for(|request| request["params"]["type"] == kind).await["params"].clone();
    // The browser's drag ends where it began; a page that handles dragging itself receives its mouse move.
    for kind in ["dragOver", "dragCancel", "mouseMoved"] {
        let event = next(kind).await;
        assert_eq!((&event["x"], &event["y"]), (&json!(10.0), &json!(20.0)), "{event}");
    }
    assert_eq!(next("mouseReleased").await["button"], "left");
    let off = scripted.asked_for(|request| request["method"] == "Input.setInterceptDrags").await;
    assert_eq!(off["params"], json!({"enabled": false}));
}

/// The page is closed at a mouse event of this kind, and responds to neither it nor those behind it.
fn close_at(kind: &str, request: &Value) -> Option<Vec<Value>> {
    let error = json!({"code": -32001, "message": "Session with given id not found."});
    let detached = json!({"method": "Target.detachedFromTarget", "params": {"sessionId": "S", "targetId": "T"}});
    let is_later = request["method"] == "Input.dispatchMouseEvent" && !is_event(request, "mouseMoved");
    match is_event(request, kind) {
        true => Some(vec![detached]),
        false => is_later.then(|| vec![json!({"id": request["id"], "error": error})]),
    }
}

async fn notes_of_a_click(scripted: &Scripted) -> Vec<String> {
    let kind = ActionKind::Click { at: ActionTarget::Point(10.0, 20.0), button: MouseButton::Left, count: 1 };
    let click = [InputAction { kind, timeout: Duration::from_secs(5) }];
    let mut done = run_actions(&scripted.page, &click, None, None, |_| {}).await.expect("the click is done");
    done.steps.remove(0).notes
}

#[tokio::test]
async fn a_click_that_closes_the_page_is_done_and_says_whether_the_page_confirmed_it() {
    let confirmed = Scripted::start(|request| close_at("mousePressed", request)).await;
    assert_eq!(notes_of_a_click(&confirmed).await, ["the page was closed"]);
    let unconfirmed = Scripted::start(|request| close_at("mouseMoved", request)).await;
    let notes = notes_of_a_click(&unconfirmed).await;
    assert_eq!(notes, ["the page was closed before it confirmed the input", "the page was closed"]);
}

#[tokio::test]
async fn the_injected_script_receives_the_screenshot_deadline() {
    let mut scripted = Scripted::start(|_| None).await;
    let tree =
        take_snapshot(&scripted.page, &SnapshotRequest { max_bytes: 1000, root: None, page: None }).await.unwrap().text;
    let go = tree.lines().find_map(|line| line.strip_suffix(" button \"Go\"")).unwrap();
    capture_screenshot(&scripted.page, &ScreenshotRequest { element: Some(go.into()), ..ScreenshotRequest::default() })
        .await
        .unwrap();
    let is_rectangle = |request: &Value| {
        request["params"]["expression"].as_str().is_some_and(|call| call.starts_with("tether.rectangle("))
    };
    let requested = scripted.asked_for(is_rectangle).await;
    assert_eq!(requested["params"]["expression"], "tether.rectangle(3, 5000)");
}
