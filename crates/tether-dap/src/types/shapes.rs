//! The structs that requests, responses and events contain.

// Names and fields are those of the specification.
#![allow(missing_docs)]

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tether_base::line_anchor::LineAnchor;

use super::protocol::{Fields, shape};

shape!(DapSource {
    name: Option<String>,
    path: Option<String>,
    /// Above 0: its text is fetched with the `source` request.
    source_reference: Option<i64>,
    presentation_hint: Option<String>,
    origin: Option<String>,
    sources: Vec<DapSource>,
    /// Defined by the adapter, and sent back to it unchanged.
    adapter_data: Option<Value>,
    checksums: Vec<Checksum>,
});
shape!(Checksum { algorithm: String, checksum: String; });

shape!(SourceBreakpoint {
    line: i64;
    column: Option<i64>,
    condition: Option<String>,
    hit_condition: Option<String>,
    log_message: Option<String>,
    /// What the line's code is found by in another text of its file. Not of the protocol: our own adapters read it.
    line_anchor: Option<LineAnchor>,
});
shape!(FunctionBreakpoint {
    name: String;
    condition: Option<String>,
    hit_condition: Option<String>,
    /// Not of the protocol: our own adapter for Java reads it.
    log_message: Option<String>,
});
shape!(DataBreakpoint {
    data_id: String;
    /// `read`, `write`, `readWrite`
    access_type: Option<String>,
    condition: Option<String>,
    hit_condition: Option<String>,
});
shape!(ExceptionFilterOptions {
    filter_id: String;
    condition: Option<String>,
});
shape!(
    /// The state of a breakpoint in the adapter.
    DapBreakpoint {
        verified: bool;
        id: Option<i64>,
        message: Option<String>,
        source: Option<DapSource>,
        line: Option<i64>,
        column: Option<i64>,
        /// Of one that is not verified: `pending` (it may be later) or `failed`.
        reason: Option<String>,
        /// Not of the protocol; our own adapters send it: the file of the code that runs, where it is older than its source.
        older_code: Option<String>,
        /// Not of the protocol; our own adapters send it: the column has chosen no code on the line.
        ignores_column: Option<bool>,
    }
);

shape!(
    /// What a data breakpoint has seen. Not of the protocol: our own adapters send it to our own sessions.
    DataChange {
        name: String;
        old_value: Option<String>,
        new_value: Option<String>,
    }
);

shape!(
    /// A call that can be stepped into.
    StepInTarget { id: i64, label: String; }
);
shape!(CompletionItem {
    label: String;
    /// What is inserted, if it is not the label.
    text: Option<String>,
    detail: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    /// What is replaced, from 0 or 1 as the client counts columns.
    start: Option<i64>,
    length: Option<i64>,
});
shape!(DapThread {
    id: i64,
    name: String;
    /// Not of the protocol, as are the next two; our own adapter for Java sends them: `running`, `sleeping`, `waiting`,
    /// `blocked`, `ended`.
    state: Option<String>,
    /// The monitors that it holds, where it is suspended.
    holds: Vec<String>,
    /// The monitor that it waits for, where it is suspended.
    waits_for: Option<String>,
});
shape!(DapStackFrame {
    id: i64,
    name: String,
    line: i64,
    column: i64;
    source: Option<DapSource>,
    /// `normal`, `label`, `subtle`
    presentation_hint: Option<String>,
});
shape!(DapScope {
    name: String,
    variables_reference: i64,
    expensive: bool;
    /// `arguments`, `locals`, `registers`, …
    presentation_hint: Option<String>,
});
shape!(DapVariable {
    name: String,
    value: String,
    variables_reference: i64;
    #[serde(rename = "type")]
    kind: Option<String>,
    named_variables: Option<i64>,
    indexed_variables: Option<i64>,
});
shape!(DapExceptionDetails {
    message: Option<String>,
    type_name: Option<String>,
    full_type_name: Option<String>,
    stack_trace: Option<String>,
});
shape!(ExceptionBreakpointsFilter {
    filter: String,
    label: String;
    default: bool,
});
shape!(DapModule {
    id: Value,
    name: String;
    path: Option<String>,
    version: Option<String>,
});

/// The id of the module that is the virtual machine of a program.
pub const VIRTUAL_MACHINE: &str = "virtualMachine";

/// What an adapter supports; a missing capability is not supported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DapCapabilities {
    #[serde(deserialize_with = "super::protocol::or_empty", skip_serializing_if = "super::protocol::is_empty")]
    pub exception_breakpoint_filters: Vec<ExceptionBreakpointsFilter>,
    /// All others, not parsed: `supportsConditionalBreakpoints`, …
    #[serde(flatten)]
    pub others: Fields,
}

impl DapCapabilities {
    /// Whether the adapter has the capability: `can("supportsLogPoints")`.
    pub fn can(&self, name: &str) -> bool {
        self.others.get(name) == Some(&Value::Bool(true))
    }

    /// Merges the changed capabilities of a `capabilities` event.
    pub fn change(&mut self, changed: DapCapabilities) {
        if !changed.exception_breakpoint_filters.is_empty() {
            self.exception_breakpoint_filters = changed.exception_breakpoint_filters;
        }
        self.others.extend(changed.others);
    }
}
