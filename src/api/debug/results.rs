//! Results that several operations share: a stop and its snapshot, a value, the state of a session.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::breakpoints::BreakpointReport;
use crate::vocabulary::{RunState, StopKind};

/// One stop of one thread.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopReason {
    #[serde(rename = "type")]
    pub kind: StopKind,
    pub thread_id: Option<i64>,
    pub thread_name: Option<String>,
    pub location: Option<StopLocation>,
    #[serde(default, skip_serializing_if = "StopDetails::is_empty")]
    pub details: StopDetails,
}

/// Where a thread stopped.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopLocation {
    pub class_name: Option<String>,
    pub method_name: String,
    pub line_number: u32,
    /// None for code without a file.
    pub source_path: Option<String>,
    /// Where `sourcePath` leads to over a link, if it does.
    pub real_path: Option<String>,
}

/// A debug session that is stopped in the window.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoppedSession {
    pub session_id: String,
    pub location: Option<StopLocation>,
}

/// Details of a stop, by its type.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StopDetails {
    pub breakpoint_id: Option<u32>,
    pub hit_count: Option<u64>,
    pub exception_type: Option<String>,
    pub exception_message: Option<String>,
    /// What a watchpoint watches.
    pub field_name: Option<String>,
    pub old_value: Option<String>,
    pub new_value: Option<String>,
    /// The adapter's own description.
    pub text: Option<String>,
}

impl StopDetails {
    fn is_empty(&self) -> bool {
        *self == StopDetails::default()
    }
}

/// The state of a session after an operation, or after a wait.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopReport {
    pub session_id: String,
    pub stopped: bool,
    pub state: RunState,
    /// Of the first thread that stopped.
    pub stop_reason: Option<StopReason>,
    /// Of the other threads that have stopped by themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_stopped: Vec<StopReason>,
    #[serde(default)]
    pub waited_ms: u64,
    pub exit_code: Option<i64>,
    /// Why a wait timed out, or how the session ended.
    pub message: Option<String>,
    pub snapshot: Option<StopSnapshot>,
    /// Where nothing has stopped: the breakpoints that could have, and why they have not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_reached: Vec<UnreachedReport>,
    /// Remarks: breakpoints that are not on the requested line, output that was dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A breakpoint that has not stopped a session.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnreachedReport {
    pub breakpoint_id: u32,
    /// `app.py:12`, a function, or what it watches.
    pub place: String,
    /// Where the file leads to over a link, if it does.
    pub real_path: Option<String>,
    /// In one sentence.
    pub reason: String,
}

/// A session that has begun.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LaunchReport {
    #[serde(flatten)]
    pub stopped: StopReport,
    /// As `tether adapters` lists it.
    pub adapter: String,
    /// The program's process, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The adapter's process, where one was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapter_pid: Option<u32>,
    /// What runs the program: the name and version of its virtual machine, or the executable of its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// The breakpoints that the launch set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breakpoints: Vec<BreakpointReport>,
}

/// A stop's frames, locals, source and output, within a budget.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopSnapshot {
    /// The innermost first; neighbours that belong to a runtime are one entry.
    pub frames: Vec<FrameEntry>,
    /// The frame that `locals` and `source` are of, if it is not the top one: at an exception, the first of the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_id: Option<i64>,
    /// Of the top frame, or that of `frame_id`.
    pub locals: Vec<VariableEntry>,
    /// Around the line of the same frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceExcerpt>,
    /// What was printed since the last stop.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// What was left out, and how to get it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<String>,
}

/// One stack frame.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrameEntry {
    pub frame_id: i64,
    pub name: String,
    pub file: Option<String>,
    /// Where `file` leads to over a link, if it does.
    pub real_path: Option<String>,
    /// Code without a file: `debug_source` shows it.
    pub source_reference: Option<i64>,
    pub line: u32,
    /// Counted in UTF-16 code units, as the Debug Adapter Protocol does.
    pub column: Option<u32>,
    /// How many frames of a runtime (`name`: whose) this one stands for; the first has the `frameId`.
    pub folded: Option<u32>,
}

/// One variable.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VariableEntry {
    pub name: String,
    pub value: String,
    #[serde(rename = "type")]
    pub of: Option<String>,
    /// When there are variables inside.
    pub variables_reference: Option<i64>,
}

/// The value of an expression.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvaluatedValue {
    pub result: String,
    #[serde(rename = "type")]
    pub of: Option<String>,
    /// When there are variables inside.
    pub variables_reference: Option<i64>,
    /// What a value that was set may not change.
    pub note: Option<String>,
}

/// Lines of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceExcerpt {
    /// The path, or a name for code without a file.
    pub file: String,
    /// The marked line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Each with its number; the marked one has an arrow: `→ 22  return total`.
    pub text: String,
    /// That the file has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl SourceExcerpt {
    /// Writes lines with their numbers, and marks one of them.
    pub fn with_line_numbers(file: &str, lines: &[(i64, String)], line: Option<i64>) -> SourceExcerpt {
        let width = lines.last().map_or(1, |(number, _)| number.to_string().len());
        let mut text = String::new();
        for (number, code) in lines {
            let mark = if Some(*number) == line { '→' } else { ' ' };
            let _ = writeln!(text, "{}", format!("{mark} {number:>width$}  {code}").trim_end());
        }
        SourceExcerpt { file: file.to_owned(), line: line.and_then(|line| line.try_into().ok()), text, note: None }
    }
}

/// One session, or several.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DebugStatus {
    /// The requested session, or the only active one.
    #[serde(flatten)]
    pub session: Option<DebugSessionStatus>,
    /// Without a requested session, unless exactly one is active: all, ended ones last.
    pub sessions: Option<Vec<DebugSessionStatus>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The status of one session.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DebugSessionStatus {
    pub session_id: String,
    /// What is debugged: a program, a configuration, a test.
    pub name: String,
    /// As `tether adapters` lists it.
    pub adapter: String,
    /// Whether the adapter is connected.
    pub connected: bool,
    pub vm_name: Option<String>,
    pub state: RunState,
    /// Of the first thread that stopped.
    pub stop_reason: Option<StopReason>,
    #[serde(default)]
    pub suspended_threads: Vec<ThreadStatus>,
    #[serde(default)]
    pub running_threads: Vec<ThreadStatus>,
    /// Of Java: how many threads there are beside these, most of them virtual ones.
    pub unlisted_threads: Option<usize>,
    #[serde(default)]
    pub targets: Vec<TargetStatus>,
    /// The one that stopped it.
    pub exception: Option<ExceptionReport>,
    /// A source file has changed since the session began.
    #[serde(default)]
    pub stale: bool,
    /// The program's process, where it is known.
    pub pid: Option<u32>,
    /// The adapter's process, where one was started.
    pub adapter_pid: Option<u32>,
    pub started_at: u64,
    pub ended_at: Option<u64>,
    pub exit_code: Option<i64>,
    /// How it ended, or what is wrong with it.
    pub message: Option<String>,
    /// The editors that have joined it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub editors: Vec<String>,
    /// Who has resumed the program last, and how.
    pub resumed_by: Option<String>,
    /// Once it has ended: the breakpoints that have not stopped it, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_reached: Vec<UnreachedReport>,
}

/// One thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadStatus {
    pub thread_id: i64,
    pub name: String,
    /// When it has stopped by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Of Java: `running`, `sleeping`, `waiting`, `blocked`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Of Java: the monitors that a suspended thread holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<String>,
    /// Of Java: the monitor that a suspended thread waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
}

/// One program of a session: its first, a worker, a forked child.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetStatus {
    /// Its number in the session, from 0.
    #[serde(default)]
    pub target_id: usize,
    /// The target that has started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<usize>,
    pub name: String,
    pub state: RunState,
    /// Its process, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    #[serde(default)]
    pub thread_ids: Vec<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

/// The exception that stopped a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExceptionReport {
    pub class: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stack: String,
}

/// How a session ended.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionEndReport {
    pub session_id: String,
    pub state: RunState,
    pub exit_code: Option<i64>,
    pub message: Option<String>,
}

/// The result of a probe, whose program has exited.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbeReport {
    /// Whether the line was reached.
    pub stopped: bool,
    pub state: RunState,
    pub stop_reason: Option<StopReason>,
    pub waited_ms: u64,
    pub exit_code: Option<i64>,
    /// Why the line was not reached.
    pub message: Option<String>,
    #[serde(flatten)]
    pub snapshot: StopSnapshot,
    /// Of the expressions, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ProbeValue>,
    /// Where more than one was asked for: each hit, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hits: Vec<ProbeHit>,
    /// The lines that were not reached before the program has ended, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_reached: Vec<UnreachedReport>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One hit of a probe that collects several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbeHit {
    /// `app.py:22`
    pub at: String,
    /// Of the expressions, or of the local variables.
    pub values: Vec<ProbeValue>,
}

/// One expression of a probe: `value` or `error`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbeValue {
    pub expression: String,
    #[serde(flatten)]
    pub value: Option<EvaluatedValue>,
    pub error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn source_lines_are_numbered_and_the_current_one_is_marked() {
        let lines: Vec<_> = (9..=11).map(|n| (n, format!("line {n}  "))).chain([(12, String::new())]).collect();
        let check = |line: Option<i64>, expect: &str| {
            let excerpt = SourceExcerpt::with_line_numbers("a", &lines, line);
            assert_eq!((excerpt.text.as_str(), excerpt.line.map(i64::from)), (expect, line));
        };
        check(Some(10), "   9  line 9\n→ 10  line 10\n  11  line 11\n  12\n");
        check(Some(12), "   9  line 9\n  10  line 10\n  11  line 11\n→ 12\n");
        check(None, "   9  line 9\n  10  line 10\n  11  line 11\n  12\n");
        assert_eq!(SourceExcerpt::with_line_numbers("a", &[], Some(1)).text, "");
    }

    #[test]
    fn a_stop_reason_has_the_documented_fields() {
        let reason = StopReason {
            kind: StopKind::BreakpointHit,
            thread_id: Some(1),
            thread_name: Some("MainThread".into()),
            location: Some(StopLocation {
                method_name: "total".into(),
                line_number: 22,
                source_path: Some("app.py".into()),
                ..StopLocation::default()
            }),
            details: StopDetails { breakpoint_id: Some(1), hit_count: Some(2), ..StopDetails::default() },
        };
        let text_read = json!({
            "type": "BREAKPOINT_HIT", "threadId": 1, "threadName": "MainThread",
            "location": {"methodName": "total", "lineNumber": 22, "sourcePath": "app.py"},
            "details": {"breakpointId": 1, "hitCount": 2},
        });
        assert_eq!(serde_json::to_value(&reason).unwrap(), text_read);
        assert_eq!(serde_json::from_value::<StopReason>(text_read).unwrap(), reason);
    }

    #[test]
    fn the_status_of_one_session_differs_from_that_of_several() {
        let check = |status: &DebugStatus, keys: &[&str]| {
            let value = serde_json::to_value(status).unwrap();
            for key in ["sessionId", "sessions"] {
                assert_eq!(value.get(key).is_some(), keys.contains(&key), "{value}");
            }
            assert_eq!(&serde_json::from_value::<DebugStatus>(value).unwrap(), status);
        };
        check(&DebugStatus { sessions: Some(Vec::new()), ..DebugStatus::default() }, &["sessions"]);
        check(&DebugStatus { session: Some(DebugSessionStatus::default()), ..DebugStatus::default() }, &["sessionId"]);
        check(
            &DebugStatus { sessions: Some(vec![DebugSessionStatus::default(); 2]), ..DebugStatus::default() },
            &["sessions"],
        );
    }
}
