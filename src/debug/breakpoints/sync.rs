//! Sends breakpoints to a target: all of them on `initialized`, and each kind again when it has changed.
//!
//! One request at a time for each target: `setBreakpoints` replaces all of a file, so the last one that is sent must be
//! the complete one.

use std::path::Path;
use std::time::Duration;

use super::spec::{BreakpointConditions, BreakpointKind, BreakpointSpec, ExceptionSpec};
use crate::dap::types::{
    ConfigurationDoneArguments, DapBreakpoint, DapCapabilities, DapSource, DataBreakpoint, ExceptionFilterOptions,
    FunctionBreakpoint, SetBreakpointsArguments, SetDataBreakpointsArguments, SetExceptionBreakpointsArguments,
    SetFunctionBreakpointsArguments, SourceBreakpoint,
};
use crate::dap::{DapClient, DapError};
use crate::debug::session::requests::log_error;
use crate::debug::session::target_handle::TargetHandle;

/// Sends all breakpoints, and the first time `configurationDone`.
pub async fn send_all_breakpoints(client: &DapClient, target: &TargetHandle, deadline: Duration, first: bool) {
    let capabilities = target.wait_for_capabilities().await;
    {
        let _turn = target.lock_breakpoint_requests().await;
        target.mark_breakpoints_sent();
        target.shared.breakpoints.follow_source_changes().await;
        for file in target.breakpoint_files() {
            send_line_breakpoints(client, target, &capabilities, &file, deadline).await;
        }
        send_function_breakpoints(client, target, &capabilities, false, deadline).await;
        send_exception_filters(client, target, &capabilities, deadline).await;
        for spec in target.unresolved_data_breakpoints() {
            target.record_refusal(&[spec], "data is found in a stopped frame only: set it again there");
        }
        if first && capabilities.can("supportsConfigurationDoneRequest") {
            log_error(client.request(&ConfigurationDoneArguments {}, deadline).await);
        }
    }
    target.mark_configured();
}

/// Sends the line breakpoints of one file.
pub async fn send_line_breakpoints(
    client: &DapClient,
    target: &TargetHandle,
    able: &DapCapabilities,
    file: &Path,
    deadline: Duration,
) {
    let (mut placed, lost): (Vec<BreakpointSpec>, Vec<BreakpointSpec>) =
        target.line_breakpoints(file).into_iter().partition(has_line);
    // The line to run to stops the program, whatever the conditions of another breakpoint there.
    let temporary = target.temporary_breakpoints(file);
    let lines: Vec<i64> = temporary.iter().filter_map(|it| Some(source_breakpoint(it)?.line)).collect();
    placed.retain(|it| source_breakpoint(it).is_none_or(|it| !lines.contains(&it.line)));
    placed.extend(temporary);
    let (placed, unsupported) = split_by_capability(placed, able);
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
    let source = DapSource { name, path: Some(file.to_string_lossy().into_owned()), ..DapSource::default() };
    let breakpoints: Vec<SourceBreakpoint> = placed.iter().filter_map(source_breakpoint).collect();
    target.record_sent_lines(file, &breakpoints.iter().map(|breakpoint| breakpoint.line).collect::<Vec<_>>());
    let request = SetBreakpointsArguments { source, breakpoints, ..SetBreakpointsArguments::default() };
    let ids: Vec<u32> = placed.iter().map(|spec| spec.id).collect();
    target.begin_breakpoint_request();
    let response = client.request(&request, deadline).await.map(|response| response.breakpoints);
    record_response(target, &ids, response);
    for (id, reason) in unsupported {
        target.record_refusal(&[id], &reason);
    }
    for spec in lost {
        target.record_refusal(&[spec.id], "its code is no longer where it was: set it again");
    }
}

/// Sends the function breakpoints. Skipped when the list is empty and none was `removed`.
pub async fn send_function_breakpoints(
    client: &DapClient,
    target: &TargetHandle,
    able: &DapCapabilities,
    removed: bool,
    deadline: Duration,
) {
    let spec = target.function_breakpoints();
    if spec.is_empty() && !removed {
        return;
    }
    let ids: Vec<u32> = spec.iter().map(|spec| spec.id).collect();
    if !able.can("supportsFunctionBreakpoints") {
        return target.record_refusal(&ids, "this adapter has no function breakpoints: set one on a line");
    }
    let function = |spec: &BreakpointSpec| match &spec.kind {
        BreakpointKind::Function { name } => {
            let BreakpointConditions { condition, hit_condition, .. } = spec.conditions.clone();
            Some(FunctionBreakpoint { name: name.clone(), condition, hit_condition })
        }
        _ => None,
    };
    let request = SetFunctionBreakpointsArguments { breakpoints: spec.iter().filter_map(function).collect() };
    target.begin_breakpoint_request();
    let response = client.request(&request, deadline).await.map(|response| response.breakpoints);
    record_response(target, &ids, response);
}

/// Sends on which exceptions to stop.
pub async fn send_exception_filters(
    client: &DapClient,
    target: &TargetHandle,
    able: &DapCapabilities,
    deadline: Duration,
) {
    let spec = target.exception_spec();
    let (filters, filter_options) = choose_filters(&spec, able);
    // Some adapters have no exceptions at all, and refuse even an empty list.
    if able.exception_breakpoint_filters.is_empty() && filters.is_empty() && filter_options.is_empty() {
        return;
    }
    let request =
        SetExceptionBreakpointsArguments { filters, filter_options, ..SetExceptionBreakpointsArguments::default() };
    log_error(client.request(&request, deadline).await);
}

/// Sends the data breakpoints for which the target has returned ids.
pub async fn send_data_breakpoints(client: &DapClient, target: &TargetHandle, deadline: Duration) {
    let data: Vec<(u32, DataBreakpoint)> = target.data_breakpoints();
    let (ids, breakpoints): (Vec<u32>, Vec<DataBreakpoint>) = data.into_iter().unzip();
    // An adapter may exit at a request that it does not support (rdbg).
    if !target.capabilities().can("supportsDataBreakpoints") {
        return target.record_refusal(&ids, "this adapter has no data breakpoints");
    }
    let request = SetDataBreakpointsArguments { breakpoints };
    target.begin_breakpoint_request();
    let response = client.request(&request, deadline).await.map(|response| response.breakpoints);
    record_response(target, &ids, response);
}

fn record_response(target: &TargetHandle, ids: &[u32], response: Result<Vec<DapBreakpoint>, DapError>) {
    match response {
        Ok(response) => target.record_bindings(ids, &response),
        Err(error) => target.record_refusal(ids, &error.to_string()),
    }
}

fn has_line(spec: &BreakpointSpec) -> bool {
    match &spec.kind {
        BreakpointKind::Line { anchor_status, .. } => anchor_status.has_line(),
        _ => true,
    }
}

/// An adapter that does not support a condition would stop every time: the breakpoint is not sent, and the reason is
/// recorded. Returns the supported ones, and the others with their reasons.
fn split_by_capability(spec: Vec<BreakpointSpec>, able: &DapCapabilities) -> (Vec<BreakpointSpec>, Vec<(u32, String)>) {
    let lacks = |spec: &BreakpointSpec| {
        let needs = [
            (spec.conditions.condition.is_some(), "supportsConditionalBreakpoints", "conditions"),
            (spec.conditions.hit_condition.is_some(), "supportsHitConditionalBreakpoints", "hit conditions"),
            (spec.conditions.log_message.is_some(), "supportsLogPoints", "log points"),
        ];
        let missing = needs.into_iter().find(|(needed, capability, _)| *needed && !able.can(capability));
        missing.map(|(_, _, what)| format!("this adapter has no {what}"))
    };
    let (mut able, mut unsupported) = (Vec::new(), Vec::new());
    for spec in spec {
        match lacks(&spec) {
            Some(reason) => unsupported.push((spec.id, reason)),
            None => able.push(spec),
        }
    }
    (able, unsupported)
}

fn source_breakpoint(spec: &BreakpointSpec) -> Option<SourceBreakpoint> {
    let BreakpointKind::Line { line, .. } = &spec.kind else { return None };
    let BreakpointConditions { condition, hit_condition, log_message } = spec.conditions.clone();
    Some(SourceBreakpoint {
        line: i64::from(*line),
        condition,
        hit_condition,
        log_message,
        ..SourceBreakpoint::default()
    })
}

/// The exceptions of a spec at which an adapter cannot stop.
pub fn unsupported_exceptions(spec: &ExceptionSpec, able: &DapCapabilities) -> Option<&'static str> {
    let offers = |kinds: &[&[&str]]| {
        let offered = &able.exception_breakpoint_filters;
        kinds.iter().any(|group| group.iter().any(|name| offered.iter().any(|it| it.filter == *name)))
    };
    match (needs_caught_filter(spec) && !offers(CAUGHT), spec.uncaught && !offers(UNCAUGHT)) {
        (true, true) => Some("exceptions"),
        (true, false) => Some("caught exceptions"),
        (false, true) => Some("uncaught exceptions"),
        (false, false) => None,
    }
}

/// A class may be caught or not: the program is stopped at all, and continued automatically at the others.
fn needs_caught_filter(spec: &ExceptionSpec) -> bool {
    spec.caught || (spec.class.is_some() && !spec.uncaught)
}

/// The filters of an adapter for a spec: every adapter has its own.
fn choose_filters(spec: &ExceptionSpec, able: &DapCapabilities) -> (Vec<String>, Vec<ExceptionFilterOptions>) {
    let offered: Vec<&str> = able.exception_breakpoint_filters.iter().map(|it| it.filter.as_str()).collect();
    let mut chosen: Vec<String> = Vec::new();
    for (wants, kinds) in [(needs_caught_filter(spec), CAUGHT), (spec.uncaught, UNCAUGHT)] {
        let found = kinds.iter().find(|group| wants && group.iter().any(|name| offered.contains(name)));
        let names = found.into_iter().flat_map(|group| group.iter()).filter(|name| offered.contains(*name));
        chosen.extend(names.map(|name| (*name).to_owned()));
    }
    chosen.extend(spec.filters.iter().cloned());
    chosen.dedup();
    if able.can("supportsExceptionFilterOptions") {
        let option = |filter_id: String| ExceptionFilterOptions { filter_id, ..ExceptionFilterOptions::default() };
        return (Vec::new(), chosen.into_iter().map(option).collect());
    }
    (chosen, Vec::new())
}

/// The first group of which an adapter offers one is sent. debugpy, js-debug, rdbg, netcoredbg, lldb-dap, CodeLLDB, gdb.
const CAUGHT: &[&[&str]] = &[&["raised"], &["all"], &["any"], &["caught"], &["cpp_throw", "rust_panic"], &["throw"]];
const UNCAUGHT: &[&[&str]] =
    &[&["uncaught"], &["unhandled"], &["user-unhandled"], &["userUnhandled"], &["rust_panic", "cpp_throw"], &["throw"]];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dap::types::ExceptionBreakpointsFilter;

    #[test]
    fn exceptions_become_the_filters_of_each_adapter() {
        let check = |offered: &[&str], caught: bool, uncaught: bool, class: Option<&str>, expect: &[&str]| {
            let filter = |name: &&str| ExceptionBreakpointsFilter {
                filter: (*name).to_owned(),
                ..ExceptionBreakpointsFilter::default()
            };
            let able = DapCapabilities {
                exception_breakpoint_filters: offered.iter().map(filter).collect(),
                ..DapCapabilities::default()
            };
            let class = class.map(str::to_owned);
            let spec = ExceptionSpec { caught, uncaught, class, ..ExceptionSpec::default() };
            assert_eq!(choose_filters(&spec, &able).0, expect, "{offered:?}");
        };
        let debugpy = &["raised", "uncaught", "userUnhandled"];
        check(debugpy, true, false, None, &["raised"]);
        check(debugpy, true, true, None, &["raised", "uncaught"]);
        check(debugpy, false, false, None, &[]);
        check(debugpy, false, false, Some("ValueError"), &["raised"]);
        check(debugpy, false, true, Some("ValueError"), &["uncaught"]);
        check(&["all", "uncaught"], true, false, None, &["all"]);
        check(&["any", "RuntimeError"], true, false, None, &["any"]);
        check(&["rust_panic", "cpp_throw", "cpp_catch"], false, true, None, &["rust_panic", "cpp_throw"]);
        check(&[], true, true, None, &[]);
    }

    #[test]
    fn exceptions_at_which_an_adapter_cannot_stop_are_named() {
        let check = |offered: &[&str], caught: bool, uncaught: bool, expect: Option<&str>| {
            let filter = |name: &&str| ExceptionBreakpointsFilter { filter: (*name).to_owned(), ..Default::default() };
            let able = DapCapabilities {
                exception_breakpoint_filters: offered.iter().map(filter).collect(),
                ..DapCapabilities::default()
            };
            let spec = ExceptionSpec { caught, uncaught, ..ExceptionSpec::default() };
            assert_eq!(unsupported_exceptions(&spec, &able), expect, "{offered:?}");
        };
        check(&[], false, false, None);
        check(&[], true, true, Some("exceptions"));
        check(&["all", "uncaught"], true, true, None);
        check(&["any"], true, true, Some("uncaught exceptions"));
        check(&["uncaught"], true, false, Some("caught exceptions"));
    }

    #[test]
    fn unsupported_conditions_are_recorded_and_not_sent() {
        let spec = |id: u32, condition: Option<&str>| BreakpointSpec {
            id,
            kind: BreakpointKind::Function { name: "f".into() },
            conditions: BreakpointConditions {
                condition: condition.map(str::to_owned),
                ..BreakpointConditions::default()
            },
        };
        let (able, unsupported) =
            split_by_capability(vec![spec(1, None), spec(2, Some("x"))], &DapCapabilities::default());
        assert_eq!(able.iter().map(|it| it.id).collect::<Vec<_>>(), [1]);
        assert_eq!(unsupported, [(2, "this adapter has no conditions".to_owned())]);
    }
}
