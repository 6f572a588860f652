//! MCP notifications, progress and cancellation, in both eras of the protocol.

// The newer era deprecates the older one's way to subscribe.
#![allow(deprecated)]

use std::process::Stdio;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, ClientRequest, NumberOrString, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    ReadResourceRequestParams, Request, RequestMetaObject, RequestParamsMeta, ResourceContents,
    ResourceUpdatedNotificationParam, ServerNotification, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, PeerRequestOptions, RoleClient, RunningService,
};
use rmcp::{ClientHandler, ServiceError};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::support::{Sandbox, TEST_TIMEOUT};

const STATE: &str = "tether://window/state";
const BUILD: &str = "tether://window/build";
const SESSIONS: &str = "tether://debug/sessions";
const CONSOLE: &str = "tether://window/console";
/// The state of a window whose page has not responded in time: read on request, never sent as a notification.
const BUSY: &str = "unresponsive";
/// The interval after which it is read again.
const SOON: Duration = Duration::from_millis(100);

/// A client that stores the notifications that it receives.
struct Listener {
    updated: mpsc::UnboundedSender<String>,
    progress: mpsc::UnboundedSender<String>,
}

impl ClientHandler for Listener {
    async fn on_resource_updated(
        &self,
        reported: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.updated.send(reported.uri);
    }

    async fn on_progress(&self, reported: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self.progress.send(reported.message.unwrap_or_default());
    }
}

struct Client {
    service: RunningService<RoleClient, Listener>,
    updated: mpsc::UnboundedReceiver<String>,
    progress: mpsc::UnboundedReceiver<String>,
    _child: Child,
}

impl Client {
    async fn start(sandbox: &Sandbox, lifecycle: ClientLifecycleMode) -> Client {
        let mut command = Command::from(sandbox.command(["mcp"]));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("tether mcp");
        let stdio = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let (updated_in, updated) = mpsc::unbounded_channel();
        let (progress_in, progress) = mpsc::unbounded_channel();
        let listener = Listener { updated: updated_in, progress: progress_in };
        let service = timeout(TEST_TIMEOUT, listener.serve_with_lifecycle(stdio, lifecycle)).await;
        Client { service: service.expect("no handshake").unwrap(), updated, progress, _child: child }
    }

    async fn read(&self, uri: &str) -> Result<String, ServiceError> {
        let read = self.service.read_resource(ReadResourceRequestParams::new(uri));
        match timeout(TEST_TIMEOUT, read).await.expect("no answer")?.contents.into_iter().next() {
            Some(ResourceContents::TextResourceContents { text, .. }) => Ok(text),
            other => panic!("{other:?}"),
        }
    }

    async fn state(&self) -> Value {
        serde_json::from_str(&self.read(STATE).await.unwrap()).unwrap()
    }

    /// Waits for a notification for `uri`.
    async fn told_of(&mut self, uri: &str) {
        while timeout(TEST_TIMEOUT, self.updated.recv()).await.expect("never told").unwrap() != uri {}
    }

    /// Waits for a notification with this window state.
    async fn told_state(&mut self, requested: &str) {
        loop {
            let state = self.state().await["state"].clone();
            if state == requested {
                return;
            }
            match state == BUSY {
                true => drop(timeout(SOON, self.told_of(STATE)).await),
                false => self.told_of(STATE).await,
            }
        }
    }
}

fn legacy() -> ClientLifecycleMode {
    ClientLifecycleMode::Initialize
}

fn stateless() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_is_notified_of_each_state_change_and_each_build() {
    let sandbox = crate::support::node_with_build("echo built it");
    let mut client = Client::start(&sandbox, legacy()).await;
    let listed = client.service.list_all_resources().await.unwrap();
    let uris: Vec<_> = listed.iter().map(|resource| resource.uri.as_str()).collect();
    assert!(uris.contains(&STATE) && uris.contains(&BUILD), "{uris:?}");
    assert_eq!(client.state().await["state"], "absent");
    assert_eq!(client.read(BUILD).await.unwrap(), "nothing has been built yet");
    for uri in [STATE, BUILD] {
        client.service.subscribe(SubscribeRequestParams::new(uri)).await.unwrap();
    }
    sandbox.json(&["start"]);
    client.told_of(BUILD).await;
    assert_eq!(client.read(BUILD).await.unwrap(), "built it");
    // Without a request, a saved file makes the window stale: a notification is sent.
    client.told_state("ready").await;
    sandbox.write("server.js", &crate::support::NODE_SERVICE.replace("42", "43"));
    client.told_state("stale").await;
    // The program's own output is notified too.
    client.service.subscribe(SubscribeRequestParams::new(CONSOLE)).await.unwrap();
    sandbox.json(&["evaluate", "setTimeout(() => console.log('by itself'), 50)"]);
    while !client.read(CONSOLE).await.unwrap().contains("by itself") {
        client.told_of(CONSOLE).await;
    }
    client.service.unsubscribe(UnsubscribeRequestParams::new(CONSOLE)).await.unwrap();
    // After unsubscribing no notification is sent.
    client.service.unsubscribe(UnsubscribeRequestParams::new(STATE)).await.unwrap();
    for round in 0..3 {
        sandbox.json(&["stop"]);
        sandbox.json(&["start"]);
        let mut others = 0;
        while timeout(TEST_TIMEOUT, client.updated.recv()).await.expect("never told").unwrap() != BUILD {
            others += 1;
        }
        // The build of the relaunch above may end the first round: what was sent before the unsubscription then
        // arrives in the second one.
        assert!(round < 2 || others == 0, "{others}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_is_notified_when_a_debug_session_starts_stops_resumes_and_ends() {
    let sandbox = Sandbox::with(&[("app.js", "let n = 0;\nsetInterval(() => {\n  n += 1;\n}, 1000);\n")]);
    let mut client = Client::start(&sandbox, legacy()).await;
    client.service.subscribe(SubscribeRequestParams::new(SESSIONS)).await.unwrap();
    let reached = async |client: &mut Client, key: &str, value: Value| loop {
        let reported: Value = serde_json::from_str(&client.read(SESSIONS).await.unwrap()).unwrap();
        let session = reported["sessions"].as_array().map_or(&reported, |all| all.first().unwrap_or(&Value::Null));
        if session[key] == value {
            return;
        }
        client.told_of(SESSIONS).await;
    };
    sandbox.json(&["debug", "launch", "app.js", "--break", "app.js:3"]);
    reached(&mut client, "state", json!("STOPPED")).await;
    sandbox.json(&["break", "remove", "--all"]);
    sandbox.json(&["debug", "continue"]);
    reached(&mut client, "state", json!("RUNNING")).await;
    sandbox.json(&["debug", "stop"]);
    // Whether js-debug still responds to `disconnect` varies.
    reached(&mut client, "connected", json!(false)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stateless_era_listens_on_one_stream() {
    let sandbox = crate::support::node();
    let client = Client::start(&sandbox, stateless()).await;
    let requested = SubscriptionFilter::builder().resource_subscriptions([STATE, "tether://no/such"]).build();
    let mut stream = timeout(TEST_TIMEOUT, client.service.listen(requested)).await.unwrap().unwrap();
    let accepted = stream.acknowledged().resource_subscriptions.clone();
    assert_eq!(accepted, Some(vec![STATE.to_owned()]));
    sandbox.json(&["start"]);
    loop {
        let state = client.state().await["state"].clone();
        if state == "ready" {
            break;
        }
        let busy = state == BUSY;
        match timeout(if busy { SOON } else { TEST_TIMEOUT }, stream.next()).await {
            Ok(Ok(Some(ServerNotification::ResourceUpdatedNotification(reported)))) => {
                assert_eq!(reported.params.uri, STATE)
            }
            Err(_) if busy => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_resource_is_refused_with_the_names_of_those_that_are() {
    let sandbox = crate::support::node();
    let client = Client::start(&sandbox, legacy()).await;
    let read = client.read("tether://window/nothing").await.unwrap_err().to_string();
    assert!(read.contains("tether://window/nothing") && read.contains(STATE), "{read}");
    let subscribed = client.service.subscribe(SubscribeRequestParams::new("x:y")).await.unwrap_err().to_string();
    assert!(subscribed.contains(STATE), "{subscribed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_reports_its_progress_to_clients_that_request_it() {
    let sandbox = crate::support::node_with_build("true");
    for lifecycle in [legacy(), stateless()] {
        let mut client = Client::start(&sandbox, lifecycle).await;
        timeout(TEST_TIMEOUT, client.service.call_tool(with_progress())).await.unwrap().unwrap();
        let mut reported = vec![];
        while let Ok(Some(message)) = timeout(TEST_TIMEOUT, client.progress.recv()).await {
            reported.push(message);
            if reported.iter().any(|it| it.contains("building")) && reported.iter().any(|it| it.contains("starting")) {
                break;
            }
        }
        assert!(reported.iter().any(|it| it.contains("building")), "{reported:?}");
        sandbox.json(&["stop"]);
    }
}

/// `window_start` with a progress token.
fn with_progress() -> CallToolRequestParams {
    let mut meta = RequestMetaObject::new();
    meta.set_progress_token(ProgressToken(NumberOrString::String("t".into())));
    let mut params = CallToolRequestParams::new("window_start");
    params.set_meta(meta);
    params
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_whose_only_request_was_cancelled_ends_with_all_its_processes_at_its_time_limit() {
    let build = "mkdir -p .devtools; echo $$ > .devtools/build; mkfifo .devtools/never; cat .devtools/never";
    let toml = format!(
        "[window]\nkind = \"node\"\nprogram = \"server.js\"\n\
         [build]\ncommand = [\"sh\", \"-c\", \"{build}\"]\ntimeout = \"3s\"\n"
    );
    let sandbox = Sandbox::with(&[("server.js", crate::support::NODE_SERVICE), ("devtools.toml", &toml)]);
    let client = Client::start(&sandbox, legacy()).await;
    let call = ClientRequest::CallToolRequest(Request::new(CallToolRequestParams::new("window_start")));
    let handle = client.service.send_cancellable_request(call, PeerRequestOptions::no_options()).await.unwrap();
    let build: u32 = crate::support::eventually("the build runs", || {
        std::fs::read_to_string(sandbox.path(".devtools/build")).ok()?.trim().parse().ok()
    });
    handle.cancel(Some("enough".into())).await.unwrap();
    crate::support::wait_for_end(build);
    crate::support::eventually("the window is absent again", || (sandbox.status()["state"] == "absent").then_some(()));
    // The next request is not blocked.
    std::fs::write(sandbox.path("devtools.toml"), "[window]\nkind = 'node'\nprogram = 'server.js'\n").unwrap();
    sandbox.tether(&["trust", "--yes"]).ok();
    assert_eq!(sandbox.once_it_answers(sandbox.json(&["start"]))["state"], "ready");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_build_continues_when_one_client_cancels_or_is_killed() {
    let sandbox = crate::support::node_with_build("mkdir -p .devtools; mkfifo .devtools/go; cat .devtools/go");
    let call = || ClientRequest::CallToolRequest(Request::new(CallToolRequestParams::new("window_start")));
    let one = Client::start(&sandbox, legacy()).await;
    let two = Client::start(&sandbox, stateless()).await;
    let first = one.service.send_cancellable_request(call(), PeerRequestOptions::no_options()).await.unwrap();
    crate::support::eventually("the build runs", || sandbox.path(".devtools/go").exists().then_some(()));
    let Client { service, mut progress, .. } = two;
    let second = tokio::spawn(async move {
        let answer = timeout(TEST_TIMEOUT, service.call_tool(with_progress())).await;
        (service, answer.expect("no answer").unwrap())
    });
    // It waits for the build once it receives its progress.
    timeout(TEST_TIMEOUT, progress.recv()).await.expect("the second one does not wait").unwrap();
    first.cancel(None).await.unwrap();
    drop(one);
    std::fs::write(sandbox.path(".devtools/go"), "").unwrap();
    let (_service, answer) = second.await.unwrap();
    assert_eq!(sandbox.once_it_answers(answer.structured_content.unwrap())["state"], "ready");
}
