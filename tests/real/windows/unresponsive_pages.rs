//! Pages that crash, freeze, flood or do not respond: every tool returns within its deadline with the cause.

use std::time::Duration;

use devtether::window::page::{
    ActionKind, ConsoleSource, ExpressionResult, InputAction, ScreenshotRequest, capture_screenshot, evaluate_on_page,
    run_actions, take_snapshot,
};
use serde_json::{Value, json};
use tether_base::error::{Error, ErrorKind};
use tether_base::ring::RingQuery;

use super::browser_fixture::{BrowserFixture, all, click, look, press, without_ref};
use crate::support::requirements::has_program;

/// The result of each page tool, asserting its deadline.
async fn told_by_all(visit: &BrowserFixture, name: &str) -> Vec<Error> {
    let limit = Duration::from_secs(30);
    let quick = |does: ActionKind| [InputAction { kind: does, timeout: Duration::from_millis(500) }];
    let (keys, clicks, shot, tree) = (quick(press("a")), quick(click(name)), ScreenshotRequest::default(), look(1000));
    let page = &visit.page;
    let answers = async {
        tokio::join!(
            async { take_snapshot(page, &tree).await.map(drop) },
            async { capture_screenshot(page, &shot).await.map(drop) },
            async { run_actions(page, &keys, None, None, |_| {}).await.map(drop) },
            async { run_actions(page, &clicks, None, None, |_| {}).await.map(drop) },
        )
    };
    let (a, b, c, d) = tokio::time::timeout(limit, answers).await.expect("a tool hangs");
    [a, b, c, d].into_iter().map(|answer| answer.expect_err("it cannot have been done")).collect()
}

#[tokio::test]
async fn every_tool_reports_a_crashed_page_at_once() {
    if !has_program("chromium") {
        return;
    }
    let visit = BrowserFixture::to(&[("/", "<button>B</button>")]).await;
    let button = visit.find("\"B\"").await;
    // In flight during the crash.
    let waiting = evaluate_on_page(&visit.page, "new Promise(() => {})", Duration::from_secs(60), None);
    let crash = async {
        // Only the crash ends it.
        let _ =
            evaluate_on_page(&visit.page, "location.href = 'chrome://crash'; 0", Duration::from_secs(2), None).await;
        lead_to_crash(&visit).await;
    };
    let (waited, ()) = tokio::join!(waiting, crash);
    let waited = waited.unwrap_err();
    assert!(waited.to_string().contains("the page crashed"), "{waited}");
    for (index, error) in told_by_all(&visit, &button).await.into_iter().enumerate() {
        let reported = error.to_string();
        assert!(reported.contains("the page crashed") && reported.contains("tether restart"), "{index}: {reported}");
    }
    let error = evaluate_on_page(&visit.page, "1", Duration::from_secs(60), None).await.unwrap_err();
    assert!(error.to_string().contains("the page crashed"), "{error}");
    assert_eq!(visit.console("the page crashed").len(), 1);
    visit.end().await;
}

/// A page cannot navigate itself to `chrome://crash`, so the browser does, as for a typed address.
async fn lead_to_crash(visit: &BrowserFixture) {
    let endpoint = visit.page.endpoint();
    let connected = tether_cdp::open_connection(endpoint.port, &endpoint.path, Duration::from_secs(5)).await;
    let (client, connection) = connected.unwrap();
    let connection = tokio::spawn(connection);
    let targets = client.call(None, &tether_cdp::types::GetTargets {}, Duration::from_secs(5)).await.unwrap();
    let target_id = targets.target_infos.into_iter().find(|it| it.kind == "page").unwrap().target_id;
    let attach = tether_cdp::types::AttachToTarget { target_id, flatten: true };
    let session = client.call(None, &attach, Duration::from_secs(5)).await.unwrap().session_id;
    let to = json!({"url": "chrome://crash"});
    // Gets no response: the renderer is gone.
    let _ = client.call_raw(Some(&session), "Page.navigate", &to, Duration::from_secs(2)).await;
    client.close();
    connection.await.unwrap();
}

#[tokio::test]
async fn every_tool_reports_a_frozen_page_within_its_deadline() {
    if !has_program("chromium") {
        return;
    }
    let visit = BrowserFixture::to(&[("/", "<button>B</button>")]).await;
    let button = visit.find("\"B\"").await;
    visit.value("console.log('last words'); setTimeout(() => { while (true) {} }, 0); 0").await;
    for (index, error) in told_by_all(&visit, &button).await.into_iter().enumerate() {
        assert_eq!(error.kind, ErrorKind::TimedOut, "{index}: {error}");
        assert!(!error.hints.is_empty(), "{index}: {error}");
    }
    assert_eq!(visit.console("last words").len(), 1);
    // An evaluation terminates the running script at its own deadline; then the page responds again.
    let error = evaluate_on_page(&visit.page, "1", Duration::from_millis(500), None).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TimedOut, "{error}");
    assert_eq!(visit.value("1 + 1").await, json!(2));
    visit.end().await;
}

#[tokio::test]
async fn a_script_of_a_cancelled_request_is_stopped() {
    if !has_program("chromium") {
        return;
    }
    let visit = BrowserFixture::to(&[("/", "x")]).await;
    let evaluate = |expression| evaluate_on_page(&visit.page, expression, Duration::from_secs(600), None);
    visit.gives_up(evaluate("console.log('runs and runs'); while (true) {}"), "runs and runs").await;
    let answers = tokio::time::timeout(Duration::from_secs(60), evaluate("1 + 1")).await;
    assert_eq!(answers.expect("the page is still frozen").unwrap(), ExpressionResult::Value(json!(2)));
    // A script that only awaits blocks nothing: the next evaluation is not terminated in its place.
    visit.gives_up(evaluate("console.log('awaits'); await new Promise(() => {})"), "awaits").await;
    for _ in 0..50 {
        assert_eq!(visit.value("1 + 1").await, json!(2));
    }
    visit.end().await;
}

#[tokio::test]
async fn network_requests_end_with_their_connection() {
    if !has_program("chromium") {
        return;
    }
    let visit = BrowserFixture::to(&[("/", "x")]).await;
    visit.value("fetch('/never'); 0").await;
    let under_way = || visit.records.network(&all("")).1.len();
    let heard = async {
        while under_way() == 0 {
            // The event arrives with one of the next responses.
            visit.page.ping(Duration::from_secs(60)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), heard).await.expect("the request was never heard of");
    tether_process::kill_launch(&visit.place.launch_id);
    let reported = async {
        while under_way() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reported).await.expect("the request is still on its way");
    let never = visit.records.network(&all("/never")).0.entries.remove(0);
    assert_eq!(never.failure.as_deref(), Some("no longer followed: the connection to the window has ended"));
}

/// A hundred thousand messages of ten lines each. A message costs Chromium itself about 60 µs; the environment variable
/// `TETHER_FLOOD_MESSAGES=1000000` sends a million of one line each.
#[test]
fn a_million_lines_cost_bounded_memory_and_block_no_reader() {
    if !has_program("chromium") {
        return;
    }
    // In a process of its own: the memory of this one is that of all tests.
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("{module}::a_page_logs_a_million_lines"), "--nocapture"]).env(FLOODED, "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()));
}

/// Set in the process that measures its memory.
const FLOODED: &str = "DEVTETHER_TEST_FLOODED";

/// Does nothing in a usual run: [`a_million_lines_cost_bounded_memory_and_block_no_reader`] runs it.
#[tokio::test]
async fn a_page_logs_a_million_lines() {
    if std::env::var_os(FLOODED).is_none() {
        return;
    }
    let messages: u64 = std::env::var("TETHER_FLOOD_MESSAGES").map_or(100_000, |count| count.parse().unwrap());
    let lines = 1_000_000 / messages;
    let visit = BrowserFixture::to(&[("/", "<title>loud</title>")]).await;
    let before = visit.records.console(&all("")).cursor;
    let memory = resident();
    // In portions, so that the page responds in between.
    let flood = format!(
        "globalThis.flood = (async () => {{ const more = '\\n'.padEnd(200, 'x').repeat({lines} - 1); \
         for (let i = 0; i < {messages}; i++) {{ console.log('line ' + i + more); \
         if (i % 1000 == 999) await new Promise(done => setTimeout(done)); }} return 'flooded' }})(); 0"
    );
    visit.value(&flood).await;
    let mut flooded = Box::pin(evaluate_on_page(&visit.page, "await globalThis.flood", Duration::from_secs(500), None));
    let reported = loop {
        // The page responds when its queue allows; recorded entries are returned at once.
        let answers = tokio::select! {
            flooded = &mut flooded => break flooded,
            reported = visit.value("1 + 1") => reported,
        };
        assert_eq!(answers, json!(2));
        assert!(!visit.records.console(&all("line")).entries.is_empty());
    };
    drop(flooded);
    assert_eq!(reported.unwrap(), ExpressionResult::Value(json!("flooded")));
    // Half of the size of the lines themselves.
    let grown = resident().saturating_sub(memory);
    assert!(grown < 100 << 20, "{grown} bytes more");
    // A reader from before the flood gets the number of dropped entries, and no entry twice.
    let query = RingQuery { since: Some(before), limit: 100, ..RingQuery::default() };
    let part = visit.records.console(&query);
    // The browser may have logged something too.
    let reported = part.dropped + part.entries.len() as u64 + part.more;
    assert!((messages..messages + 10).contains(&reported), "{reported}");
    let newest = visit.records.console(&RingQuery { limit: 1, ..RingQuery::default() });
    let last = format!("line {}", messages - 1);
    assert_eq!(newest.entries[0].text.lines().next(), Some(last.as_str()));
    visit.end().await;
}

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

const TALK: &str = "<link rel=icon href='data:,'><script>
console.info('%s is %d', 'it', 7); console.error(new Error('bad')); 
setTimeout(() => { throw new TypeError('thrown') });
new Worker('/worker.js');
</script><iframe src=$other/frame></iframe>";

#[tokio::test]
async fn the_console_has_entries_of_page_frames_and_workers() {
    if !has_program("chromium") {
        return;
    }
    let pages = [
        ("/", TALK),
        ("/frame", "<script>console.warn('from the frame')</script>"),
        ("/worker.js", "console.log('from the worker')"),
    ];
    let visit = BrowserFixture::to(&pages).await;
    let check = async |words: &str, source: ConsoleSource, level: &str, place: &str| {
        let entry = visit.console_says(words).await;
        assert_eq!((entry.source, entry.level.as_str()), (source, level), "{entry:?}");
        assert!(entry.location.clone().unwrap_or_default().contains(place), "{entry:?}");
    };
    check("it is 7", ConsoleSource::Page, "info", ":2:9").await;
    check("error: bad", ConsoleSource::Page, "error", "").await;
    // Entries from before our connection come without object previews: V8 keeps none.
    visit.value("console.log({a: [1], b: 'x'})").await;
    check("{a: array(1), b: \"x\"}", ConsoleSource::Page, "log", "").await;
    check("typeerror: thrown", ConsoleSource::Page, "exception", "").await;
    check("from the frame", ConsoleSource::Iframe, "warning", "frame:1").await;
    check("from the worker", ConsoleSource::Worker, "log", "worker.js:1:9").await;
    // A second connection to the same window adds no known entry again.
    let count = visit.console("").len();
    let again =
        devtether::window::page::PageConnection::open_with_history(visit.launched.cdp_port, visit.records.clone())
            .await
            .unwrap();
    evaluate_on_page(&again, "1", Duration::from_secs(5), None).await.unwrap();
    assert_eq!(visit.console("").len(), count, "{:?}", visit.console(""));
    visit.end().await;
}

#[tokio::test]
async fn the_network_log_has_the_outcome_of_each_request() {
    if !has_program("chromium") {
        return;
    }
    let visit = BrowserFixture::to(&[("/", "<title>net</title>"), ("/data.json", "{\"a\":1}")]).await;
    let ask = "await Promise.allSettled(['/data.json', '/missing', '/redirect', 'http://127.0.0.1:1/'].map(url => fetch(url, {method: url === '/missing' ? 'POST' : 'GET'}).then(it => it.text()))); fetch('/never'); 0";
    visit.value(ask).await;
    let ended = |filter: &str| visit.records.network(&all(filter)).0.entries;
    for round in 0.. {
        if ended("fetch").len() >= 5 && !visit.records.network(&all("")).1.is_empty() {
            break;
        }
        // The event arrives with one of the next responses.
        assert!(round < 100_000 && visit.page.ping(Duration::from_secs(60)).await, "{:?}", ended(""));
    }
    let reported: Vec<_> = ended("fetch")
        .into_iter()
        .map(|it| (it.method, it.url.rsplit('/').next().unwrap_or_default().to_owned(), it.status, it.failure))
        .collect();
    let has = |method: &str, path: &str, status: Option<u16>, failure: Option<&str>| {
        let requested = (method.to_owned(), path.to_owned(), status, failure.map(str::to_owned));
        assert!(reported.contains(&requested), "{requested:?} is not in {reported:?}");
    };
    has("GET", "data.json", Some(200), None);
    has("POST", "missing", Some(404), None);
    has("GET", "redirect", Some(302), None);
    assert!(reported.iter().any(|it| it.3.as_deref().is_some_and(|why| why.starts_with("net::ERR_"))), "{reported:?}");
    let data = ended("data.json").remove(0);
    assert!(data.bytes > 7 && data.duration_ms.is_some() && data.mime == "application/json", "{data:?}");
    assert!(ended("failed").len() >= 2);
    let under_way: Vec<String> = visit.records.network(&all("")).1.into_iter().map(|it| it.url).collect();
    assert_eq!(under_way, [visit.site.url("/never")]);
    // A reader with a cursor gets each new entry once.
    let (first, _) = visit.records.network(&all(""));
    visit.value("await fetch('/data.json').then(it => it.text())").await;
    let new = |since| visit.records.network(&RingQuery { since: Some(since), ..all("") }).0;
    let mut later = new(first.cursor);
    while later.entries.is_empty() {
        visit.page.ping(Duration::from_secs(5)).await;
        later = new(first.cursor);
    }
    assert_eq!((later.entries.len(), later.dropped), (1, 0));
    assert!(new(later.cursor).entries.is_empty());
    visit.end().await;
}

/// Width and height of an image, and the colour of its pixel at 60, 25.
async fn measured(visit: &BrowserFixture, data: &str) -> Value {
    let of = format!("new Promise(done => {{ const i = new Image(); i.onload = () => {{
        const c = document.createElement('canvas').getContext('2d'); c.drawImage(i, -60, -25, i.width, i.height);
        done([i.width, i.height, Array.from(c.getImageData(0, 0, 1, 1).data).join()]) }}; i.src = 'data:image/png;base64,{data}' }})");
    visit.value(&of).await
}

#[tokio::test]
async fn a_screenshot_of_a_larger_element_starts_at_its_corner() {
    if !has_program("chromium") {
        return;
    }
    let pages = [
        (
            "/",
            "<style>body{margin:0}</style><div style='height:300px'></div><iframe src=$other/far style='border:0;width:600px;height:3000px'></iframe>",
        ),
        (
            "/far",
            "<style>body{margin:0}</style><div role=img aria-label=Tall style='width:200px;height:2000px;background:blue'><div style='width:120px;height:50px;background:red'></div></div>",
        ),
    ];
    let visit = BrowserFixture::to(&pages).await;
    visit.value("scrollTo(0, 1500)").await;
    let tall = loop {
        let text = visit.snapshot().await;
        if text.contains("Tall") {
            break visit.find("Tall").await;
        }
    };
    let taken =
        capture_screenshot(&visit.page, &ScreenshotRequest { element: Some(tall), ..ScreenshotRequest::default() })
            .await
            .unwrap()
            .data;
    assert_eq!(measured(&visit, &taken).await, json!([200, 2000, "255,0,0,255"]));
    visit.end().await;
}

#[tokio::test]
async fn a_screenshot_shows_the_requested_element() {
    if !has_program("chromium") {
        return;
    }
    let visit = BrowserFixture::to(&[("/", "<style>body{margin:0}</style><div style='height:3000px'></div><div id=d role=img aria-label=Red style='width:120px;height:50px;background:red'></div><div style='height:3000px'>")]).await;
    let red = visit.find("Red").await;
    let take = async |shot: ScreenshotRequest| capture_screenshot(&visit.page, &shot).await.unwrap().data;
    let element = ScreenshotRequest { element: Some(red.clone()), ..ScreenshotRequest::default() };
    let whole = ScreenshotRequest { full_page: true, scale: Some(1.0), ..ScreenshotRequest::default() };
    let size = async |data: String| measured(&visit, &data).await;
    assert_eq!(size(take(element).await).await, json!([120, 50, "255,0,0,255"]));
    let seen = visit.value("[innerWidth, document.documentElement.scrollHeight]").await;
    let all_of_it = size(take(whole).await).await;
    assert_eq!((&all_of_it[0], &all_of_it[1]), (&seen[0], &seen[1]));
    assert_eq!(size(take(ScreenshotRequest::default()).await).await[1], visit.value("innerHeight").await);
    for (format, magic) in
        [(devtether::vocabulary::ImageFormat::Jpeg, "/9j/"), (devtether::vocabulary::ImageFormat::Webp, "UklGR")]
    {
        assert!(
            take(ScreenshotRequest { format, ..ScreenshotRequest::default() }).await.starts_with(magic),
            "{format:?}"
        );
    }
    visit.value("d.style.display = 'none'").await;
    let hidden = capture_screenshot(
        &visit.page,
        &ScreenshotRequest { element: Some(red.clone()), ..ScreenshotRequest::default() },
    )
    .await
    .unwrap_err();
    assert!(hidden.to_string().contains(&format!("{red} img \"Red\" is hidden")), "{hidden}");
    let both = capture_screenshot(
        &visit.page,
        &ScreenshotRequest { element: Some(red), full_page: true, ..ScreenshotRequest::default() },
    )
    .await
    .unwrap_err();
    assert_eq!(both.kind, ErrorKind::Usage);
    assert_eq!(without_ref("  e12 button \"x\""), "  button \"x\"");
    visit.end().await;
}
