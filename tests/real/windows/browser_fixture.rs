//! A browser on a page of a test's site, with helpers to act on it and read it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use devtether::config::{WindowKind, WindowSettings};
use devtether::vocabulary::MouseButton;
use devtether::window::launch::LaunchedWindow;
use devtether::window::page::{
    ActionKind, ActionTarget, BatchOutcome, ConsoleMessage, ExpressionResult, InputAction, PageConnection, PageHistory,
    SnapshotRequest, WaitCondition, evaluate_on_page, run_actions, take_snapshot,
};
use serde_json::Value;
use tether_base::error::Error;
use tether_base::ring::RingQuery;

use super::web_site::WebSite;
use super::{WindowFolder, settings};

/// Longer than any step takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

pub struct BrowserFixture {
    pub place: WindowFolder,
    pub site: WebSite,
    pub launched: LaunchedWindow,
    pub page: PageConnection,
    pub records: Arc<PageHistory>,
}

impl BrowserFixture {
    /// Opens `/`.
    pub async fn to(pages: &[(&str, &str)]) -> BrowserFixture {
        let place = WindowFolder::fresh();
        let site = WebSite::serve(pages).await;
        // Downloads go into the test's folder.
        let home = [("HOME".to_owned(), place.workspace.display().to_string())].into();
        let settings = WindowSettings { url: Some(site.url("/")), env: home, ..settings() };
        let launched = place.launch(WindowKind::Browser, settings).await.unwrap();
        let records = Arc::new(PageHistory::new(None));
        let page = PageConnection::open_with_history(launched.cdp_port, Arc::clone(&records)).await.unwrap();
        let visit = BrowserFixture { place, site, launched, page, records };
        visit.arrive().await;
        visit
    }

    /// Waits for the page. A Chromium that starts from a cold disk was seen to stay on `about:blank` for two minutes:
    /// the navigation is then repeated, and the test prints that.
    async fn arrive(&self) {
        let there = "document.readyState === 'complete' && location.protocol !== 'about:'";
        let (since, mut next) = (Instant::now(), Duration::from_secs(15));
        while !matches!(
            evaluate_on_page(&self.page, there, TEST_TIMEOUT, None).await,
            Ok(ExpressionResult::Value(Value::Bool(true)))
        ) {
            assert!(since.elapsed() < 2 * TEST_TIMEOUT, "the page never came");
            if since.elapsed() > next {
                next += Duration::from_secs(15);
                let where_now =
                    evaluate_on_page(&self.page, "[location.href, document.readyState]", TEST_TIMEOUT, None).await;
                eprintln!("not there after {:?}, but at {where_now:?}: asked again", since.elapsed());
                let again = format!("location.href = {:?}; 0", self.site.url("/"));
                let _ = evaluate_on_page(&self.page, &again, TEST_TIMEOUT, None).await;
            }
        }
    }

    pub async fn end(self) {
        self.place.stop(&self.launched, Some(&self.page)).await;
    }

    pub async fn value(&self, expression: &str) -> Value {
        match evaluate_on_page(&self.page, expression, TEST_TIMEOUT, None).await.unwrap() {
            ExpressionResult::Value(value) => value,
            ExpressionResult::Exception(text) => panic!("{expression}: {text}"),
        }
    }

    /// Evaluates until the value is this one.
    pub async fn becomes(&self, expression: &str, expect: Value) {
        let since = Instant::now();
        loop {
            let last = evaluate_on_page(&self.page, expression, TEST_TIMEOUT, None).await;
            if matches!(&last, Ok(ExpressionResult::Value(value)) if *value == expect) {
                return;
            }
            assert!(since.elapsed() < TEST_TIMEOUT, "{expression} is {last:?}, never {expect}");
        }
    }

    pub async fn snapshot(&self) -> String {
        take_snapshot(&self.page, &look(40_000)).await.unwrap().text
    }

    /// The snapshot without refs and without its first line.
    pub async fn tree(&self) -> Vec<String> {
        let text = self.snapshot().await;
        text.lines().skip(1).map(without_ref).collect()
    }

    /// The ref of the one line with these words.
    pub async fn find(&self, words: &str) -> String {
        let text = self.snapshot().await;
        let lines: Vec<&str> = text.lines().skip(1).filter(|line| line.contains(words)).collect();
        assert_eq!(lines.len(), 1, "{words:?} in:\n{text}");
        lines[0].trim().split(' ').next().unwrap().to_owned()
    }

    pub async fn act(&self, actions: Vec<ActionKind>) -> BatchOutcome {
        let actions: Vec<InputAction> = actions.into_iter().map(action).collect();
        run_actions(&self.page, &actions, None, None, |_| {}).await.unwrap_or_else(|error| panic!("{error}"))
    }

    pub async fn click(&self, words: &str) -> BatchOutcome {
        let name = self.find(words).await;
        self.act(vec![click(&name)]).await
    }

    /// The error of one action with this timeout.
    pub async fn refused(&self, does: ActionKind, ms: u64) -> Error {
        let timeout = Duration::from_millis(ms);
        match run_actions(&self.page, &[InputAction { kind: does, timeout }], None, None, |_| {}).await {
            Ok(acted) => panic!("it was done: {acted:?}"),
            Err(error) => error,
        }
    }

    pub fn console(&self, filter: &str) -> Vec<ConsoleMessage> {
        self.records.console(&all(filter)).entries
    }

    /// Resolves when the console has an entry with these words, without a request to the page, which may be busy.
    pub async fn hears(&self, words: &str) {
        let mut output = self.records.watch_console();
        while self.console(words).is_empty() {
            output.changed().await.unwrap();
        }
    }

    /// Starts the actions, and cancels them once the console has these words.
    pub async fn gives_up<T: std::fmt::Debug>(&self, doing: impl Future<Output = T>, words: &str) {
        tokio::select! {
            biased;
            () = self.hears(words) => {}
            done = doing => panic!("it was done: {done:?}"),
        }
    }

    /// Resolves when the console has an entry with these words; each round trip delivers earlier events.
    pub async fn console_says(&self, words: &str) -> ConsoleMessage {
        let since = Instant::now();
        loop {
            if let Some(entry) = self.console(words).pop() {
                return entry;
            }
            self.page.ping(TEST_TIMEOUT).await;
            assert!(since.elapsed() < TEST_TIMEOUT, "{words:?} is not in {:?}", self.console(""));
        }
    }
}

pub fn look(max: usize) -> SnapshotRequest {
    SnapshotRequest { max_bytes: max, root: None, page: None }
}

pub fn all(filter: &str) -> RingQuery {
    RingQuery { limit: 10_000, filter: Some(filter.to_owned()), ..RingQuery::default() }
}

pub fn without_ref(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let rest = line.trim_start();
    let (first, after) = rest.split_once(' ').unwrap_or((rest, ""));
    let is_ref = first.strip_prefix('e').is_some_and(|it| it.parse::<u32>().is_ok());
    format!("{}{}", &line[..indent], if is_ref { after } else { rest })
}

pub fn action(does: ActionKind) -> InputAction {
    InputAction { kind: does, timeout: Duration::from_secs(5) }
}

pub fn at(name: &str) -> ActionTarget {
    ActionTarget::Ref(name.to_owned())
}

pub fn click(name: &str) -> ActionKind {
    ActionKind::Click { at: at(name), button: MouseButton::Left, count: 1 }
}

pub fn press(keys: &str) -> ActionKind {
    ActionKind::Press { at: None, keys: keys.into(), count: 1 }
}

pub fn typed(text: &str) -> ActionKind {
    ActionKind::Type { into: None, text: text.into() }
}

pub fn typed_into(name: &str, text: &str) -> ActionKind {
    ActionKind::Type { into: Some(name.into()), text: text.into() }
}

pub fn shows(text: &str) -> ActionKind {
    ActionKind::Wait(WaitCondition::TextShown(text.into()))
}
