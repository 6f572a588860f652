//! Names and shapes of the commands and events of the Tracing, Profiler and HeapProfiler domains.

// Names and fields are those of the specification.
#![allow(missing_docs)]

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::types::{CdpCommand, command, received};

command!(
    /// Of the whole browser; the trace is a stream, whose handle `Tracing.tracingComplete` has.
    StartTracing, "Tracing.start", IgnoredAny, { transfer_mode: &'static str, trace_config: TraceConfig });
command!(EndTracing, "Tracing.end", IgnoredAny, {});
command!(EnableProfiler, "Profiler.enable", IgnoredAny, {});
command!(DisableProfiler, "Profiler.disable", IgnoredAny, {});
command!(
    /// In microseconds.
    SetSamplingInterval, "Profiler.setSamplingInterval", IgnoredAny, { interval: u32 });
command!(StartProfiler, "Profiler.start", IgnoredAny, {});
command!(StopProfiler, "Profiler.stop", StopProfilerResult, {});
command!(CollectGarbage, "HeapProfiler.collectGarbage", IgnoredAny, {});
command!(
    /// Its parts come as `HeapProfiler.addHeapSnapshotChunk`, before the response.
    TakeHeapSnapshot, "HeapProfiler.takeHeapSnapshot", IgnoredAny, { report_progress: bool });

/// CDP's `Tracing.TraceConfig`.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceConfig {
    pub included_categories: Vec<&'static str>,
    pub excluded_categories: Vec<&'static str>,
}

received! {
    /// `Tracing.tracingComplete`
    struct TracingComplete {
        data_loss_occurred: bool,
        stream: Option<String>,
    }

    /// Result of `Profiler.stop`; the profile is read as a file is.
    struct StopProfilerResult { profile: Value }

    /// `HeapProfiler.addHeapSnapshotChunk`
    struct HeapSnapshotChunk { chunk: String }
}
