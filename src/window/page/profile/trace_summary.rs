//! What an engineer wants of a trace: LCP, CLS and INP with their elements, long tasks, forced layouts, render-blocking requests.
//!
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tether_base::clipped_text::clip_bytes;
use tether_cdp::types::CallFrame;

/// Longer tasks keep a page from answering, in ms.
const LONG_TASK: f64 = 50.0;
const MAX_TASKS: usize = 8;
const MAX_BLOCKING: usize = 10;
const MAX_TEXT: usize = 200;

/// A trace, of which only what is needed is read.
#[derive(Deserialize)]
struct Trace<'a> {
    #[serde(rename = "traceEvents", borrow)]
    events: Vec<TraceEvent<'a>>,
}

#[derive(Deserialize)]
struct TraceEvent<'a> {
    #[serde(default, borrow)]
    name: std::borrow::Cow<'a, str>,
    /// In microseconds.
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    dur: f64,
    #[serde(default)]
    pid: i64,
    #[serde(default)]
    tid: i64,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

impl TraceEvent<'_> {
    fn args(&self) -> Value {
        self.args.and_then(|args| serde_json::from_str(args.get()).ok()).unwrap_or_default()
    }

    fn is_within(&self, outer: &TraceEvent<'_>) -> bool {
        self.pid == outer.pid
            && self.tid == outer.tid
            && self.ts >= outer.ts
            && self.ts + self.dur <= outer.ts + outer.dur
    }
}

/// What a trace says.
pub struct TraceSummary {
    pub lines: Vec<String>,
    /// The longest first.
    pub long_tasks: Vec<LongTask>,
}

/// A task that kept the main thread.
pub struct LongTask {
    pub ms: f64,
    /// From the navigation, or the beginning of the trace.
    pub at_ms: f64,
    /// The longest call in it.
    pub call: Option<CallFrame>,
}

/// Sums a trace up; one that cannot be read says so.
pub fn summarize(text: &[u8]) -> TraceSummary {
    match serde_json::from_slice::<Trace<'_>>(text) {
        Ok(trace) => summarize_events(&trace.events),
        Err(cause) => {
            TraceSummary { lines: vec![format!("the trace cannot be read: {cause}")], long_tasks: Vec::new() }
        }
    }
}

fn summarize_events<'a>(events: &'a [TraceEvent<'a>]) -> TraceSummary {
    let named = |name: &'static str| events.iter().filter(move |event| event.name == name);
    let navigation = named("navigationStart").rfind(|event| is_page(&event.args()["data"]));
    let first = events.iter().map(|event| event.ts).filter(|ts| *ts > 0.0).fold(f64::INFINITY, f64::min);
    let start = navigation.map_or(first, |event| event.ts);
    let ms = |ts: f64| (ts - start) / 1000.0;
    let in_page = |event: &&TraceEvent<'_>| event.ts >= start && navigation.is_none_or(|it| it.pid == event.pid);
    let mut lines = Vec::new();
    for (name, shown) in [("firstContentfulPaint", "FCP"), ("MarkDOMContent", "DOMContentLoaded"), ("MarkLoad", "load")]
    {
        lines.extend(
            named(name).find(in_page).filter(|_| navigation.is_some()).map(|it| format!("{shown} {:.0} ms", ms(it.ts))),
        );
    }
    if let Some(paint) = named("largestContentfulPaint::Candidate").rfind(in_page).filter(|_| navigation.is_some()) {
        let args = paint.args();
        lines.push(format!("LCP {:.0} ms: {}", ms(paint.ts), describe_node(&args["data"])));
    }
    lines.extend(describe_shifts(named("LayoutShift").filter(in_page)));
    lines.extend(describe_interactions(named("EventTiming").filter(in_page)));
    let forced = |name| named(name).filter(in_page).filter(|event| is_forced(&event.args()));
    let layouts: Vec<f64> =
        forced("Layout").chain(forced("UpdateLayoutTree")).map(|event| event.dur / 1000.0).collect();
    if !layouts.is_empty() {
        lines.push(format!("{} layouts forced by scripts took {:.0} ms", layouts.len(), layouts.iter().sum::<f64>()));
    }
    let blocking = named("ResourceSendRequest").filter(in_page).map(TraceEvent::args);
    let blocking = blocking.filter(|args| args["data"]["renderBlocking"] == "blocking");
    let mut urls: Vec<String> =
        blocking.filter_map(|args| Some(clip_bytes(args["data"]["url"].as_str()?, MAX_TEXT))).collect();
    urls.dedup();
    if !urls.is_empty() {
        let more = urls.len().saturating_sub(MAX_BLOCKING);
        urls.truncate(MAX_BLOCKING);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("render-blocking: {}{more}", urls.join(", ")));
    }
    TraceSummary { lines, long_tasks: long_tasks(events, start, navigation.map(|event| event.pid)) }
}

/// Of a navigation: whether it is that of a page, not of a frame or of an empty document.
fn is_page(data: &Value) -> bool {
    let url = data["documentLoaderURL"].as_str().unwrap_or_default();
    let is_main = data["isOutermostMainFrame"].as_bool().or(data["isLoadingMainFrame"].as_bool()).unwrap_or(true);
    is_main && !url.is_empty() && url != "about:blank"
}

fn describe_node(data: &Value) -> String {
    let text = |name: &str| data[name].as_str().map(|text| clip_bytes(text, MAX_TEXT));
    let parts = [text("nodeName"), text("type"), text("url")];
    let mut said: Vec<String> = parts.into_iter().flatten().filter(|it| !it.is_empty()).collect();
    said.extend(data["size"].as_f64().map(|size| format!("{size} px²")));
    said.join(", ")
}

fn describe_shifts<'a>(shifts: impl Iterator<Item = &'a TraceEvent<'a>>) -> Option<String> {
    let (mut sum, mut largest, mut what) = (0.0, 0.0, String::new());
    for args in shifts.map(TraceEvent::args) {
        let data = &args["data"];
        let score = data["weighted_score_delta"].as_f64().or(data["score"].as_f64()).unwrap_or_default();
        if data["had_recent_input"] == true {
            continue;
        }
        sum += score;
        if score > largest {
            let nodes = data["impacted_nodes"].as_array().into_iter().flatten();
            let names: Vec<String> =
                nodes.take(3).filter_map(|it| Some(clip_bytes(it["debug_name"].as_str()?, MAX_TEXT))).collect();
            (largest, what) = (score, names.join(", "));
        }
    }
    let what = if what.is_empty() { what } else { format!(": {what}") };
    (sum > 0.0).then(|| format!("CLS {sum:.3}{what}"))
}

fn describe_interactions<'a>(events: impl Iterator<Item = &'a TraceEvent<'a>>) -> Option<String> {
    let data = events.map(|event| event.args().get_mut("data").map(Value::take).unwrap_or_default());
    let interactions = data.filter(|data| data["interactionId"].as_f64().is_some_and(|id| id > 0.0));
    let slowest = interactions.max_by(|a, b| {
        a["duration"].as_f64().unwrap_or_default().total_cmp(&b["duration"].as_f64().unwrap_or_default())
    })?;
    let number = |name: &str| slowest[name].as_f64().unwrap_or_default();
    let kind = clip_bytes(slowest["type"].as_str().unwrap_or_default(), 50);
    let handlers = number("processingEnd") - number("processingStart");
    Some(format!("INP {:.0} ms: {kind}, of which its handlers {handlers:.0} ms", number("duration")))
}

/// Whether a script has caused it, and waited for it.
fn is_forced(args: &Value) -> bool {
    args["beginData"]["stackTrace"].as_array().is_some_and(|stack| !stack.is_empty())
}

fn long_tasks(events: &[TraceEvent<'_>], start: f64, pid: Option<i64>) -> Vec<LongTask> {
    let is_task = |event: &&TraceEvent<'_>| {
        matches!(&*event.name, "RunTask" | "ThreadControllerImpl::RunTask")
            && event.dur / 1000.0 > LONG_TASK
            && event.ts + event.dur >= start
            && pid.is_none_or(|pid| pid == event.pid)
    };
    let is_call = |event: &&TraceEvent<'_>| {
        matches!(&*event.name, "FunctionCall" | "EvaluateScript" | "v8.compile" | "V8.GCScavenger")
    };
    let calls: Vec<&TraceEvent<'_>> = events.iter().filter(is_call).collect();
    let mut tasks: Vec<&TraceEvent<'_>> = events.iter().filter(is_task).collect();
    tasks.sort_by(|a, b| b.dur.total_cmp(&a.dur));
    tasks.dedup_by(|a, b| a.ts == b.ts && a.tid == b.tid);
    // Of a thread that runs no script, it is nobody's wait.
    let with_call = tasks.iter().filter_map(|task| {
        let longest = calls.iter().filter(|call| call.is_within(task)).max_by(|a, b| a.dur.total_cmp(&b.dur));
        (longest.is_some() || pid.is_some()).then_some((task, longest))
    });
    with_call
        .take(MAX_TASKS)
        .map(|(task, call)| LongTask {
            ms: task.dur / 1000.0,
            at_ms: ((task.ts - start) / 1000.0).max(0.0),
            call: call.and_then(|call| call_frame(&call.args()["data"])),
        })
        .collect()
}

/// The place of a call; the lines and columns of a trace are 1-based.
fn call_frame(data: &Value) -> Option<CallFrame> {
    let number = |name: &str| data[name].as_i64().unwrap_or(1) - 1;
    Some(CallFrame {
        function_name: data["functionName"].as_str().unwrap_or_default().to_owned(),
        script_id: String::new(),
        url: data["url"].as_str().filter(|url| !url.is_empty())?.to_owned(),
        line_number: number("lineNumber"),
        column_number: number("columnNumber"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_load_is_summed_up() {
        let event = |name: &str, ts: f64, dur: f64, args: Value| json!({"name": name, "ts": ts * 1000.0, "dur": dur * 1000.0, "pid": 1, "tid": 2, "args": args});
        let page = json!({"data": {"documentLoaderURL": "http://x/", "isOutermostMainFrame": true}});
        let events = [
            event("navigationStart", 100.0, 0.0, page),
            event("firstContentfulPaint", 150.0, 0.0, json!({})),
            event("largestContentfulPaint::Candidate", 160.0, 0.0, json!({"data": {"nodeName": "P", "size": 5}})),
            event(
                "largestContentfulPaint::Candidate",
                300.0,
                0.0,
                json!({"data": {"nodeName": "IMG", "type": "image", "size": 900}}),
            ),
            event(
                "LayoutShift",
                310.0,
                0.0,
                json!({"data": {"weighted_score_delta": 0.25, "impacted_nodes": [{"debug_name": "DIV id='ad'"}]}}),
            ),
            event("LayoutShift", 320.0, 0.0, json!({"data": {"weighted_score_delta": 1.0, "had_recent_input": true}})),
            event(
                "EventTiming",
                400.0,
                0.0,
                json!({"data": {"interactionId": 7, "duration": 208.0, "type": "click", "processingStart": 10.0, "processingEnd": 190.0}}),
            ),
            event("RunTask", 200.0, 120.0, json!({})),
            event(
                "FunctionCall",
                201.0,
                100.0,
                json!({"data": {"functionName": "work", "url": "http://x/a.js", "lineNumber": 3, "columnNumber": 5}}),
            ),
            event("Layout", 210.0, 8.0, json!({"beginData": {"stackTrace": [{}]}})),
            event("Layout", 220.0, 8.0, json!({"beginData": {}})),
            event(
                "ResourceSendRequest",
                110.0,
                0.0,
                json!({"data": {"url": "http://x/a.css", "renderBlocking": "blocking"}}),
            ),
        ];
        let summary = summarize(json!({"traceEvents": events}).to_string().as_bytes());
        assert_eq!(
            summary.lines,
            [
                "FCP 50 ms",
                "LCP 200 ms: IMG, image, 900 px²",
                "CLS 0.250: DIV id='ad'",
                "INP 208 ms: click, of which its handlers 180 ms",
                "1 layouts forced by scripts took 8 ms",
                "render-blocking: http://x/a.css",
            ]
        );
        let task = &summary.long_tasks[0];
        assert_eq!((task.ms, task.at_ms, task.call.as_ref().unwrap().line_number), (120.0, 100.0, 2));
        assert!(summarize(b"nothing").lines[0].contains("cannot be read"));
    }
}
