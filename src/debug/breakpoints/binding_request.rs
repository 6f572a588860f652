//! One request with breakpoints: sends it, and records how the target has bound them.

use std::path::Path;

use tether_dap::types::{
    DapBreakpoint, DapRequest, DapSource, SetBreakpointsArguments, SetBreakpointsResponse,
    SetFunctionBreakpointsArguments, SourceBreakpoint,
};
use tether_dap::{DapClient, DapError};

use super::binding::BindingTable;
use super::spec::{BreakpointConditions, BreakpointKind, BreakpointSpec};
use crate::debug::session::target_handle::TargetHandle;

/// Why an adapter does not take breakpoints on functions.
pub const NO_FUNCTIONS: &str = "this adapter has no function breakpoints: set one on a line";

/// The request that sets these in a file, by that path.
pub fn line_request<'a>(path: &Path, specs: impl Iterator<Item = &'a BreakpointSpec>) -> SetBreakpointsArguments {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let source = DapSource { name, path: Some(path.to_string_lossy().into_owned()), ..DapSource::default() };
    SetBreakpointsArguments { source, breakpoints: specs.filter_map(source_breakpoint).collect() }
}

/// A line breakpoint as it is sent.
pub fn source_breakpoint(spec: &BreakpointSpec) -> Option<SourceBreakpoint> {
    let BreakpointKind::Line { line, column, .. } = &spec.kind else { return None };
    let BreakpointConditions { condition, hit_condition, log_message } = spec.conditions.clone();
    Some(SourceBreakpoint {
        line: i64::from(*line),
        column: column.map(i64::from),
        condition,
        hit_condition,
        log_message,
        line_anchor: None,
    })
}

/// Of an adapter whose response is in the order of the request. Each breakpoint of it stands for those with its `ids`.
pub async fn request_bindings<R: DapRequest<Response = SetBreakpointsResponse>>(
    client: &DapClient,
    target: &TargetHandle,
    ids: &[Vec<u32>],
    request: &R,
) {
    send_and_record(client, target, ids, request, |bindings, response| {
        let bound = ids.iter().zip(response);
        let (ids, bound): (Vec<u32>, Vec<DapBreakpoint>) =
            bound.flat_map(|(ids, bound)| ids.iter().map(|id| (*id, bound.clone()))).unzip();
        bindings.record_response(target.id, &ids, &bound);
    })
    .await;
}

/// As [`request_bindings`], of an adapter whose response is in no order; at most one breakpoint is new to it.
pub async fn request_unordered_bindings<R: DapRequest<Response = SetBreakpointsResponse>>(
    client: &DapClient,
    target: &TargetHandle,
    ids: &[Vec<u32>],
    request: &R,
) {
    let record =
        |bindings: &mut BindingTable, response: &[_]| bindings.record_unordered_response(target.id, ids, response);
    send_and_record(client, target, ids, request, record).await;
}

async fn send_and_record<R: DapRequest<Response = SetBreakpointsResponse>>(
    client: &DapClient,
    target: &TargetHandle,
    ids: &[Vec<u32>],
    request: &R,
    record: impl FnOnce(&mut BindingTable, &[DapBreakpoint]),
) {
    target.shared.with_state(|state| state.bindings.begin_request(target.id));
    match client.request(request, target.shared.request_timeout).await {
        Ok(it) => target.change_bindings(|state| record(&mut state.bindings, &it.breakpoints)),
        // rdbg offers function breakpoints, and responds without any.
        Err(DapError::Unexpected { .. }) if R::COMMAND == SetFunctionBreakpointsArguments::COMMAND => {
            target.record_refusal(&ids.concat(), NO_FUNCTIONS);
        }
        Err(error) => target.record_refusal(&ids.concat(), &error.to_string()),
    }
}
