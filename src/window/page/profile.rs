//! Why a page is slow, and why it grows: a trace of a load or a span, a CPU profile, a heap snapshot. Each as a summary, and as the
//! file that DevTools (and Perfetto, for a trace) opens.
//!
//! | file | owns |
//! |---|---|
//! | `trace_summary` | what an engineer wants of a trace |
//! | `heap_summary` | what is on a heap by class, and what has grown |

pub mod heap_summary;
pub mod trace_summary;

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use tether_base::error::{Error, ErrorKind, Result};
use tether_cdp::debugger::{CloseStream, ReadStream};
use tether_cdp::profiling::{
    CollectGarbage, DisableProfiler, EnableProfiler, EndTracing, SetSamplingInterval, StartProfiler, StartTracing,
    StopProfiler, TakeHeapSnapshot, TraceConfig,
};
use tether_cdp::types::CallFrame;
use tokio::time::{Instant, timeout};

use super::network::initiator_places::describe_calls;
use super::page_client::{EVENT_TIMEOUT, PageClient, PageSession};
use super::tabs::go_to;

/// How long a load may take, and what follows it.
const LOAD_TIMEOUT: Duration = Duration::from_secs(60);
const AFTER_LOAD: Duration = Duration::from_millis(1000);
/// Deadline for the end of a trace, a profile or a snapshot.
const END_TIMEOUT: Duration = Duration::from_secs(60);
const READ_PART: usize = 1 << 20;
/// The largest trace and the largest heap snapshot, in bytes.
const MAX_TRACE: usize = 200 << 20;
pub const MAX_HEAP: usize = 512 << 20;
/// In microseconds.
const SAMPLING_INTERVAL: u32 = 500;
const MAX_FUNCTIONS: usize = 12;
/// Those that the Performance panel of DevTools records.
const CATEGORIES: &[&str] = &[
    "devtools.timeline",
    "v8.execute",
    "blink.user_timing",
    "loading",
    "latencyInfo",
    "toplevel",
    "disabled-by-default-devtools.timeline",
    "disabled-by-default-devtools.timeline.frame",
    "disabled-by-default-devtools.timeline.stack",
    "disabled-by-default-v8.cpu_profiler",
];

/// What to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileKind {
    Trace,
    Cpu,
    Heap,
}

/// A recording.
#[derive(Clone, Debug)]
pub struct ProfileRequest {
    pub kind: ProfileKind,
    /// Of the load of this URL.
    pub url: Option<String>,
    /// Of this span.
    pub span: Duration,
    pub page: Option<String>,
}

/// What was recorded.
pub struct ProfileOutcome {
    /// A summary, a line each.
    pub lines: Vec<String>,
    /// The ending of the file's name, and its content.
    pub file: (&'static str, Vec<u8>),
}

/// Records a page. Errors: it does not load; the browser does not end the recording.
pub async fn record_profile(client: &PageClient, request: &ProfileRequest) -> Result<ProfileOutcome> {
    let _one = client.state.profile_lock.lock().await;
    let page = client.select_page(request.page.as_deref(), "cannot record a page").await?;
    match request.kind {
        ProfileKind::Trace => record_trace(&page, request).await,
        ProfileKind::Cpu => record_cpu(&page, request).await,
        ProfileKind::Heap => take_heap_snapshot(&page).await,
    }
}

/// The load, or the span.
async fn wait_recorded(page: &PageSession, request: &ProfileRequest) -> Result<()> {
    if let Some(url) = &request.url {
        go_to(page, url, Instant::now() + LOAD_TIMEOUT).await?;
    }
    let span = if request.url.is_some() { request.span.max(AFTER_LOAD) } else { request.span };
    let lost = page.client.state.wait_for_targets(|targets| targets.session_error(&page.id));
    match timeout(span, lost).await {
        Ok(error) => Err(page.client.user_error(error)),
        Err(_) => Ok(()),
    }
}

async fn record_trace(page: &PageSession, request: &ProfileRequest) -> Result<ProfileOutcome> {
    let client = &page.client;
    client.state.targets().finished_trace = None;
    let trace_config = TraceConfig { included_categories: CATEGORIES.to_vec(), excluded_categories: vec!["*"] };
    let start = StartTracing { transfer_mode: "ReturnAsStream", trace_config };
    client.call(None, &start, EVENT_TIMEOUT).await.map_err(|error| client.user_error(error))?;
    let recorded = wait_recorded(page, request).await;
    client.call(None, &EndTracing {}, EVENT_TIMEOUT).await.map_err(|error| client.user_error(error))?;
    let finished = client.state.wait_for_targets(|targets| targets.finished_trace.take());
    let late = |_| Error::new(ErrorKind::TimedOut, "the browser does not end the trace");
    let handle = timeout(END_TIMEOUT, finished).await.map_err(late)?;
    let trace = read_stream(client, handle).await?;
    recorded?;
    let (summary, trace) = tokio::task::spawn_blocking(move || (trace_summary::summarize(&trace), trace))
        .await
        .map_err(|cause| Error::other("cannot read the trace").because(cause))?;
    let mut lines = summary.lines;
    let calls: Vec<CallFrame> = summary.long_tasks.iter().filter_map(|task| task.call.clone()).collect();
    let mut places = describe_calls(client, Some(&page.id), &calls).await.into_iter();
    lines.extend(summary.long_tasks.iter().map(|task| {
        let place = task.call.as_ref().and_then(|_| places.next()).map(|place| format!(" in {place}"));
        format!("long task of {:.0} ms at {:.0} ms{}", task.ms, task.at_ms, place.unwrap_or_default())
    }));
    Ok(ProfileOutcome { lines, file: ("json", trace) })
}

async fn read_stream(client: &PageClient, handle: String) -> Result<Vec<u8>> {
    let read = ReadStream { handle: handle.clone(), size: READ_PART };
    let mut content = Vec::new();
    loop {
        let part = client.call(None, &read, END_TIMEOUT).await.map_err(|error| client.user_error(error))?;
        match part.base64_encoded {
            true => content.extend(STANDARD.decode(&part.data).unwrap_or_default()),
            false => content.extend_from_slice(part.data.as_bytes()),
        }
        if part.eof {
            break;
        }
        if content.len() > MAX_TRACE {
            client.cdp.send_nowait(None, &CloseStream { handle });
            return Err(Error::other("the trace is too large").because(format!("it has more than {MAX_TRACE} bytes")));
        }
    }
    client.cdp.send_nowait(None, &CloseStream { handle });
    Ok(content)
}

/// CDP's profile, as far as it is summed up.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CpuProfile {
    nodes: Vec<ProfileNode>,
    #[serde(default)]
    samples: Vec<i64>,
    #[serde(default)]
    time_deltas: Vec<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProfileNode {
    id: i64,
    call_frame: CallFrame,
}

async fn record_cpu(page: &PageSession, request: &ProfileRequest) -> Result<ProfileOutcome> {
    let client = &page.client;
    let failed = |error| client.user_error(error);
    page.call(&EnableProfiler {}, EVENT_TIMEOUT).await.map_err(failed)?;
    page.call(&SetSamplingInterval { interval: SAMPLING_INTERVAL }, EVENT_TIMEOUT).await.map_err(failed)?;
    page.call(&StartProfiler {}, EVENT_TIMEOUT).await.map_err(failed)?;
    let recorded = wait_recorded(page, request).await;
    let stopped = page.call(&StopProfiler {}, END_TIMEOUT).await;
    client.cdp.send_nowait(Some(&page.id), &DisableProfiler {});
    recorded?;
    let profile = stopped.map_err(failed)?.profile;
    let content = serde_json::to_vec(&profile).unwrap_or_default();
    let unreadable = |cause| Error::other("cannot read the profile").because(cause);
    let read: CpuProfile = serde_json::from_value(profile).map_err(unreadable)?;
    let mut by_node: HashMap<i64, i64> = HashMap::new();
    for (sample, delta) in read.samples.iter().zip(&read.time_deltas) {
        *by_node.entry(*sample).or_default() += (*delta).max(0);
    }
    let total: i64 = by_node.values().sum();
    let mut by_function: HashMap<(String, String, i64), (i64, CallFrame)> = HashMap::new();
    for ProfileNode { id, call_frame } in read.nodes {
        let key = (call_frame.function_name.clone(), call_frame.url.clone(), call_frame.line_number);
        let time = by_node.get(&id).copied().unwrap_or_default();
        by_function.entry(key).or_insert((0, call_frame)).0 += time;
    }
    let idle = by_function.iter().filter(|(key, _)| key.0 == "(idle)").map(|(_, (time, _))| *time).sum::<i64>();
    let mut functions: Vec<(i64, CallFrame)> = by_function.into_values().filter(|(time, _)| *time > 0).collect();
    functions.retain(|(_, call)| call.function_name != "(idle)");
    functions.sort_by_key(|(time, _)| -time);
    functions.truncate(MAX_FUNCTIONS);
    let calls: Vec<CallFrame> = functions.iter().map(|(_, call)| call.clone()).collect();
    let places = describe_calls(client, Some(&page.id), &calls).await;
    let ms = |time: i64| time as f64 / 1000.0;
    let mut lines = vec![format!("{:.0} ms, of which {:.0} ms busy; by self time:", ms(total), ms(total - idle))];
    lines.extend(functions.iter().zip(places).map(|((time, _), place)| format!("{:.1} ms {place}", ms(*time))));
    Ok(ProfileOutcome { lines, file: ("cpuprofile", content) })
}

async fn take_heap_snapshot(page: &PageSession) -> Result<ProfileOutcome> {
    let client = &page.client;
    let failed = |error| client.user_error(error);
    page.call(&CollectGarbage {}, END_TIMEOUT).await.map_err(failed)?;
    client.state.targets().heap_parts = Some((page.id.clone(), String::new()));
    let taken = page.call(&TakeHeapSnapshot { report_progress: false }, END_TIMEOUT).await;
    let parts = client.state.targets().heap_parts.take();
    taken.map_err(failed)?;
    let snapshot = parts.map(|(_, text)| text).unwrap_or_default();
    if snapshot.len() > MAX_HEAP {
        return Err(
            Error::other("the heap is too large").because(format!("its snapshot has more than {MAX_HEAP} bytes"))
        );
    }
    let (summary, snapshot) =
        tokio::task::spawn_blocking(move || (heap_summary::HeapSummary::read(&snapshot), snapshot))
            .await
            .map_err(|cause| Error::other("cannot read the heap snapshot").because(cause))?;
    let summary = summary.map_err(|cause| Error::other("cannot read the heap snapshot").because(cause))?;
    let lines = summary.describe(client.history().last_heap().as_ref());
    client.history().set_last_heap(summary);
    Ok(ProfileOutcome { lines, file: ("heapsnapshot", snapshot.into_bytes()) })
}
