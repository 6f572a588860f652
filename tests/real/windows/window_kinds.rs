//! Launch → identity → page → stop → nothing left, on each kind of window.

use std::path::Path;
use std::time::{Duration, Instant};

use devtether::config::{WindowKind, WindowSettings};
use devtether::window::identity::{IdentityError, verify_launch_port, verify_window};
use devtether::window::launch_id::scratch_dir_of;
use devtether::window::page::{
    ExpressionResult, PageConnection, ScreenshotRequest, capture_screenshot, evaluate_on_page,
};
use devtether::window::{cleanup, session_file};
use serde_json::json;
use tether_base::error::ErrorKind;
use tether_cdp::list_targets;
use tether_process::{ProcessExit, StopOutcome};

use super::{WindowFolder, hold, session_of, settings};
use crate::support::requirements::{has_code_server, has_program};

const SECONDS: fn(u64) -> Duration = Duration::from_secs;

async fn value(page: &PageConnection, expression: &str) -> serde_json::Value {
    match evaluate_on_page(page, expression, SECONDS(10), None).await.unwrap() {
        ExpressionResult::Value(value) => value,
        ExpressionResult::Exception(text) => panic!("{expression}: {text}"),
    }
}

/// Resolves when the console has an entry with `text`; each round trip delivers the events before it.
async fn console_says(page: &PageConnection, text: &str) {
    let looking = async {
        while !page.history().last_messages(200, 0).iter().any(|entry| entry.text.contains(text)) {
            value(page, "1").await;
        }
    };
    tokio::time::timeout(SECONDS(10), looking)
        .await
        .unwrap_or_else(|_| panic!("{text:?} is not in {:?}", page.history().last_messages(200, 0)));
}

#[tokio::test]
async fn a_browser_is_launched_inspected_and_stopped() {
    if !has_program("chromium") {
        return;
    }
    let place = WindowFolder::fresh();
    let file =
        place.file("pägé 1.html", "<title>hello</title><h1>hello</h1><script>console.log('loaded', 42)</script>");
    let url = format!("file://{}", file.display()).replace(' ', "%20");
    let launched = place.launch(WindowKind::Browser, WindowSettings { url: Some(url), ..settings() }).await.unwrap();

    let session = session_of(&launched, &place);
    session_file::save_session(&place.workspace, &session).unwrap();
    assert_eq!(session_file::load_session(&place.workspace).unwrap().unwrap(), session);
    let proof = verify_window(&session).await.unwrap();
    assert_eq!(proof.process.pid(), launched.process.pid());
    assert_eq!(proof.endpoint, launched.endpoint);

    let page = PageConnection::open(launched.cdp_port).await.unwrap();
    assert_eq!(value(&page, "document.title").await, json!("hello"));
    console_says(&page, "loaded 42").await;
    assert_eq!(value(&page, "await Promise.resolve({a: [1, 2]})").await, json!({"a": [1, 2]}));
    assert!(
        capture_screenshot(&page, &ScreenshotRequest::default()).await.unwrap().data.starts_with("iVBORw0KGgo"),
        "it is no PNG"
    );
    assert!(page.ping(SECONDS(5)).await);

    // After a navigation the same connection sees the new page.
    place.file("second.html", "<title>second</title>");
    value(&page, "void (location.href = 'second.html')").await;
    let arrived = async {
        while evaluate_on_page(&page, "document.title", SECONDS(5), None).await.ok()
            != Some(ExpressionResult::Value(json!("second")))
        {}
    };
    tokio::time::timeout(SECONDS(10), arrived).await.unwrap();

    let ended = place.stop(&launched, Some(&page)).await;
    assert_eq!(ended, StopOutcome::OnRequest(ProcessExit::Code(0)));
    page.wait_closed().await;
    assert!(evaluate_on_page(&page, "1", SECONDS(5), None).await.is_err());
    assert!(verify_window(&session).await.unwrap_err().to_string().contains("its window has ended"));
}

#[tokio::test]
async fn a_browser_loads_no_hidden_pages_unless_the_user_enables_them() {
    if !has_program("chromium") {
        return;
    }
    let (quiet, enabled) = (WindowFolder::fresh(), WindowFolder::fresh());
    let without = quiet.launch(WindowKind::Browser, settings()).await.unwrap();
    let args = vec!["--enable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup".to_owned()];
    let with = enabled.launch(WindowKind::Browser, WindowSettings { args, ..settings() }).await.unwrap();
    let hidden_pages = |port: u16| async move {
        let targets = list_targets(port).await.unwrap();
        targets.into_iter().filter(|target| target.url.starts_with("chrome://")).count()
    };
    // The browser that was started later has loaded them: so would have the other one.
    let loaded = async { while hidden_pages(with.cdp_port).await == 0 {} };
    tokio::time::timeout(SECONDS(20), loaded).await.expect("this Chromium has such pages no longer");
    assert_eq!(hidden_pages(without.cdp_port).await, 0);
    quiet.stop(&without, None).await;
    enabled.stop(&with, None).await;
}

#[tokio::test]
async fn every_kind_of_expression_result_is_returned() {
    if !has_program("chromium") {
        return;
    }
    let place = WindowFolder::fresh();
    let launched = place.launch(WindowKind::Browser, settings()).await.unwrap();
    let page = PageConnection::open(launched.cdp_port).await.unwrap();
    for (expression, expect) in [
        ("1 + 1", json!(2)),
        ("undefined", json!(null)),
        ("null", json!(null)),
        ("0/0", json!("NaN")),
        ("10n", json!("10n")),
        ("'ü' + String.fromCodePoint(0x1F600)", json!("ü😀")),
        ("Promise.resolve({a: [1, 2]})", json!({"a": [1, 2]})),
        ("new Promise(done => setTimeout(() => done('late'), 20))", json!("late")),
        ("({a: 1, b: [true, null]})", json!({"a": 1, "b": [true, null]})),
        ("[]", json!([])),
        ("document.body", json!("body")),
        ("Symbol('s')", json!("Symbol(s)")),
        ("(x) => x", json!("(x) => x")),
        ("/a/g", json!("/a/g")),
        ("let a = {}; a.a = a; a", json!("Object")),
        ("let x = 1; x", json!(1)),
        ("let x = 2; x", json!(2)),
        // Dialogs are dismissed, so that nothing blocks on them.
        ("alert('blocked?'); confirm('sure?')", json!(false)),
    ] {
        assert_eq!(value(&page, expression).await, expect, "{expression}");
    }
    for (expression, expect) in [
        ("throw new TypeError('oh no')", "TypeError: oh no"),
        ("await Promise.reject(new Error('later'))", "Error: later"),
        ("Promise.reject(new Error('rejected'))", "Error: rejected"),
        ("no_such_name", "ReferenceError"),
        ("}{", "SyntaxError"),
    ] {
        match evaluate_on_page(&page, expression, SECONDS(5), None).await.unwrap() {
            ExpressionResult::Exception(text) => assert!(text.contains(expect), "{expression}: {text}"),
            ExpressionResult::Value(value) => panic!("{expression} came to {value}"),
        }
    }
    place.stop(&launched, Some(&page)).await;
}

#[tokio::test]
async fn endless_scripts_are_stopped_and_the_page_continues() {
    if !has_program("chromium") || !has_program("node") {
        return;
    }
    let browser = WindowFolder::fresh();
    let window = browser.launch(WindowKind::Browser, settings()).await.unwrap();
    let node = WindowFolder::fresh();
    let service = launch_node(&node, "setInterval(() => {}, 1000)").await;
    for port in [window.cdp_port, service.cdp_port] {
        let page = PageConnection::open(port).await.unwrap();
        for forever in ["while (true) {}", "await new Promise(() => {})"] {
            let error = evaluate_on_page(&page, forever, Duration::from_millis(300), None).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::TimedOut, "{forever}: {error}");
            assert_eq!(value(&page, "6 * 7").await, json!(42), "after {forever}");
        }
    }
    browser.stop(&window, None).await;
    node.stop(&service, None).await;
}

#[tokio::test]
async fn a_frozen_page_is_distinguished_from_a_crashed_one() {
    if !has_program("chromium") {
        return;
    }
    let place = WindowFolder::fresh();
    let launched = place.launch(WindowKind::Browser, settings()).await.unwrap();
    let page = PageConnection::open(launched.cdp_port).await.unwrap();
    value(&page, "void setTimeout(() => { while (true) {} }, 0)").await;
    // The page is busy for ever, the browser responds.
    assert!(!page.ping(Duration::from_millis(300)).await);
    assert!(tether_cdp::discover_endpoint(launched.cdp_port).await.is_ok());
    assert!(verify_window(&session_of(&launched, &place)).await.is_ok());
    // It can still be connected to and stopped.
    let again = PageConnection::open(launched.cdp_port).await.unwrap();
    assert!(!again.ping(Duration::from_millis(300)).await);
    place.stop(&launched, Some(&page)).await;
}

#[tokio::test]
async fn when_the_tab_is_closed_another_tab_becomes_the_page() {
    if !has_program("chromium") {
        return;
    }
    let place = WindowFolder::fresh();
    let launched = place.launch(WindowKind::Browser, settings()).await.unwrap();
    let page = PageConnection::open(launched.cdp_port).await.unwrap();
    let url = "data:text/html,<title>other</title>";
    let (client, connection) =
        tether_cdp::open_connection(launched.cdp_port, &launched.endpoint.path, SECONDS(5)).await.unwrap();
    let connection = tokio::spawn(connection);
    let new = json!({"url": url});
    client.call_raw(None, "Target.createTarget", &new, SECONDS(5)).await.unwrap();
    let targets = tether_cdp::list_targets(launched.cdp_port).await.unwrap();
    for target in targets.iter().filter(|target| target.kind == "page" && !target.url.starts_with("data:")) {
        let close = json!({"targetId": target.id});
        client.call_raw(None, "Target.closeTarget", &close, SECONDS(5)).await.unwrap();
    }
    let arrived = async {
        while evaluate_on_page(&page, "document.title", SECONDS(5), None).await.ok()
            != Some(ExpressionResult::Value(json!("other")))
        {}
    };
    tokio::time::timeout(SECONDS(10), arrived).await.unwrap();
    place.stop(&launched, Some(&page)).await;
    connection.await.unwrap();
}

#[tokio::test]
async fn the_exit_of_a_window_is_noticed_at_once_and_cleaned_up() {
    if !has_program("chromium") {
        return;
    }
    let place = WindowFolder::fresh();
    let launched = place.launch(WindowKind::Browser, settings()).await.unwrap();
    let page = PageConnection::open(launched.cdp_port).await.unwrap();
    let tree = tether_process::list_tree(&launched.process).unwrap();
    // As for a reconnected supervisor: the process is not a child.
    let held = hold(launched.process.pid());
    // The kernel needs 4–40 ms, and more on a busy machine, to tear down a browser; what is asserted is that we notice
    // it by its notification, not when something looks for it the next time.
    let pid = rustix::process::Pid::from_raw(held.pid() as i32).unwrap();
    let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
    let kernel = std::thread::spawn(move || {
        let mut fds = [rustix::event::PollFd::new(&pidfd, rustix::event::PollFlags::IN)];
        rustix::io::retry_on_intr(|| rustix::event::poll(&mut fds, None)).unwrap();
        Instant::now()
    });
    held.signal(rustix::process::Signal::KILL).unwrap();
    tokio::join!(held.wait_for_exit(), page.wait_closed());
    let noticed = Instant::now().saturating_duration_since(kernel.join().unwrap());
    assert!(noticed < Duration::from_secs(2), "{noticed:?}");
    assert_eq!(launched.process.wait_for_exit().await, ProcessExit::Signal(9));
    cleanup::clean_up_launch(&place.launch_id, &place.state).await.unwrap();
    place.nothing_left().await;
    for process in tree {
        tokio::time::timeout(SECONDS(5), process.wait_for_exit()).await.expect("a process of the tree is left");
    }
}

#[tokio::test]
async fn a_hanging_window_is_unresponsive_and_can_be_stopped() {
    if !has_program("node") {
        return;
    }
    let place = WindowFolder::fresh();
    let launched = launch_node(&place, "setInterval(() => {}, 1000)").await;
    let page = PageConnection::open(launched.cdp_port).await.unwrap();
    launched.process.signal(rustix::process::Signal::STOP).unwrap();
    assert!(!page.ping(Duration::from_millis(200)).await);
    let doubt = verify_window(&session_of(&launched, &place)).await.unwrap_err();
    assert!(matches!(doubt, IdentityError::Unresponsive { .. }), "{doubt}");
    let ask = page.request_close();
    let grace = Duration::from_millis(200);
    let ended = cleanup::stop_window(&launched.process, ask, &place.launch_id, &place.state, grace).await.unwrap();
    assert_eq!(ended, StopOutcome::Killed(ProcessExit::Signal(9)));
    place.nothing_left().await;
}

#[tokio::test]
async fn a_window_that_is_a_child_of_the_command_is_proven_and_stopped_with_it() {
    if !has_program("node") {
        return;
    }
    let place = WindowFolder::fresh();
    place.file("server.js", "globalThis.answer = 42; setInterval(() => {}, 1000); console.log('up')");
    let words = ["sh", "-c", "node --inspect=127.0.0.1:${cdpPort} server.js & wait"];
    let command = words.map(str::to_owned).to_vec();
    let launched = place.launch(WindowKind::Command, WindowSettings { command, ..settings() }).await.unwrap();
    let proof = verify_window(&session_of(&launched, &place)).await.unwrap();
    assert_eq!(proof.process.pid(), launched.process.pid());
    let page = PageConnection::open(launched.cdp_port).await.unwrap();
    console_says(&page, "up").await;
    assert_eq!(value(&page, "answer").await, json!(42));
    assert_eq!(place.stop(&launched, Some(&page)).await, StopOutcome::Terminated(ProcessExit::Signal(15)));
    page.wait_closed().await;
}

async fn launch_node(place: &WindowFolder, script: &str) -> devtether::window::launch::LaunchedWindow {
    place.file("sérver 1.js", script);
    let program = Some(Path::new("sérver 1.js").to_owned());
    place.launch(WindowKind::Node, WindowSettings { program, ..settings() }).await.unwrap()
}

/// A program, what it forks and its workers see no flag of ours; a module runs too.
#[tokio::test]
async fn node_programs_and_modules_are_ready_after_their_first_turn() {
    if !has_program("node") {
        return;
    }
    let common = "const { Worker, isMainThread } = require('worker_threads');
        if (process.send) { process.send(process.execArgv); }
        else if (isMainThread) {
            setInterval(() => {}, 1000);
            globalThis.own = process.execArgv.length;
            globalThis.forked = new Promise((done) => require('child_process').fork(__filename).on('message', done));
            globalThis.worker = new Promise((done) => new Worker(__filename).on('message', done));
        } else require('worker_threads').parentPort.postMessage('works');";
    let module = "import 'node:http'; import './imported.mjs';
        globalThis.own = process.execArgv.length; setInterval(() => {}, 1000);";
    let waits = "import './imported.mjs'; globalThis.own = 1; await new Promise(() => setInterval(() => {}, 1000));";
    // Its thread answers 50 ms later for each module.
    let slow_loader = "import { register } from 'node:module';
        const load = 'export async function load(url, context, next) { \
            await new Promise((done) => setTimeout(done, 50)); return next(url, context); }';
        register('data:text/javascript,' + encodeURIComponent(load));";
    // The script that Node loads before cannot write its file then, which must not end the program.
    let takes_the_file = "setInterval(() => {}, 1000); globalThis.own = 1;
        const script = Object.keys(require.cache).find((file) => file.endsWith('node-turn.cjs'));
        require('fs').mkdirSync(require('path').join(script, '..', 'turn-over'));";
    let programs = [
        ("common.js", common, None),
        ("takes_the_file.js", takes_the_file, None),
        ("module.mjs", module, None),
        ("waits.mjs", waits, None),
        (
            "loaded.mjs",
            "import './imported.mjs'; globalThis.own = 1; setInterval(() => {}, 1000);",
            Some("./loader.mjs"),
        ),
    ];
    for (name, script, loader) in programs {
        let place = WindowFolder::fresh();
        place.file(name, script);
        place.file("imported.mjs", "import './last.mjs'; export default 1;");
        place.file("last.mjs", "export default 2;");
        place.file("loader.mjs", slow_loader);
        let runtime_args = loader.map(|loader| format!("--import={loader}")).into_iter().collect();
        let node = WindowSettings { program: Some(name.into()), runtime_args, ..settings() };
        let launched = place.launch(WindowKind::Node, node).await.unwrap();
        let reported = scratch_dir_of(&place.state, &place.launch_id).join("turn-over");
        assert!(reported.exists(), "{name}: only the time limit has ended the wait");
        let page = PageConnection::open(launched.cdp_port).await.unwrap();
        assert_eq!(value(&page, "own").await, json!(1), "{name}");
        if name == "common.js" {
            let forked = value(&page, "forked").await;
            assert!(!forked.to_string().contains("--require"), "{forked}");
            assert_eq!(value(&page, "worker").await, json!("works"));
        }
        drop(page);
        place.stop(&launched, None).await;
    }
}

#[tokio::test]
async fn a_node_service_is_launched_inspected_and_stopped() {
    if !has_program("node") {
        return;
    }
    let place = WindowFolder::fresh();
    let script = "globalThis.answer = 42; console.log('up', answer); setInterval(() => {}, 1000); process.on('SIGTERM', () => process.exit(7))";
    let launched = launch_node(&place, script).await;
    assert_eq!(launched.inspector_port, Some(launched.cdp_port));
    let session = session_of(&launched, &place);
    verify_window(&session).await.unwrap();

    let page = PageConnection::open(launched.cdp_port).await.unwrap();
    console_says(&page, "up 42").await;
    assert_eq!(value(&page, "answer").await, json!(42));
    assert_eq!(value(&page, "await Promise.resolve(answer + 1)").await, json!(43));
    assert!(page.ping(SECONDS(5)).await);
    let no_page = capture_screenshot(&page, &ScreenshotRequest::default()).await.unwrap_err().to_string();
    assert!(no_page.contains("node.js") && no_page.contains("no page"), "{no_page}");

    assert!(!page.request_close().await);
    drop(page);
    assert_eq!(place.stop(&launched, None).await, StopOutcome::Terminated(ProcessExit::Code(7)));
}

#[tokio::test]
async fn our_connection_does_not_keep_a_node_service_from_exiting() {
    if !has_program("node") {
        return;
    }
    let place = WindowFolder::fresh();
    let launched = launch_node(
        &place,
        "globalThis.finish = () => { clearInterval(t); process.exitCode = 9 }; const t = setInterval(() => {}, 1000); console.log('up')",
    )
    .await;
    let page = PageConnection::open(launched.cdp_port).await.unwrap();
    console_says(&page, "up").await;
    value(&page, "void finish()").await;
    let ended =
        tokio::time::timeout(SECONDS(10), launched.process.wait_for_exit()).await.expect("it waits for us to leave");
    assert_eq!(ended, ProcessExit::Code(9));
    page.wait_closed().await;
    place.stop(&launched, None).await;
}

#[tokio::test]
async fn an_extension_development_host_is_launched_inspected_and_stopped() {
    if !has_program("chromium") || !has_code_server() {
        return;
    }
    let place = WindowFolder::fresh();
    let extension = Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/extension"));
    let settings = WindowSettings { extension, ..settings() };
    let launched = place.launch(WindowKind::WebExtensionHost, settings).await.unwrap();
    verify_window(&session_of(&launched, &place)).await.unwrap();

    let page = PageConnection::open(launched.cdp_port).await.unwrap();
    let title = value(&page, "document.title").await;
    assert!(title.as_str().unwrap().starts_with("[Extension Development Host]"), "{title}");
    assert!(capture_screenshot(&page, &ScreenshotRequest::default()).await.unwrap().data.len() > 1000);
    let text = value(&page, "document.body.innerText").await;
    assert!(!text.as_str().unwrap().contains("Welcome"), "the settings of a fresh profile are not in force: {text}");

    let inspector_port = launched.inspector_port.unwrap();
    verify_launch_port(&place.launch_id, inspector_port).unwrap();
    assert!(verify_launch_port("another-launch", inspector_port).is_err());
    let host = PageConnection::open(inspector_port).await.unwrap();
    let activated = async { while value(&host, "globalThis.fixture?.mode ?? null").await != json!(2) {} };
    tokio::time::timeout(SECONDS(20), activated).await.expect("the extension was not activated in development mode");
    drop(host);
    assert_eq!(place.stop(&launched, Some(&page)).await, StopOutcome::OnRequest(ProcessExit::Code(0)));
}
