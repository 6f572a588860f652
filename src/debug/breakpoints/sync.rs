//! Telling a target which breakpoints are wanted: all of them on `initialized`, and each kind anew when it has changed.
//!
//! One target is told one thing at a time: `setBreakpoints` replaces all of a file, so the last one that is sent must be
//! the one that knows all.

use std::path::Path;
use std::time::Duration;

use crate::dap::types::{
    ConfigurationDoneArguments, DapBreakpoint, DapCapabilities, DapSource, DataBreakpoint, ExceptionFilterOptions,
    FunctionBreakpoint, SetBreakpointsArguments, SetDataBreakpointsArguments, SetExceptionBreakpointsArguments,
    SetFunctionBreakpointsArguments, SourceBreakpoint,
};
use crate::dap::{DapClient, DapError};
use crate::debug::breakpoints::{BreakpointConditions, BreakpointKind, BreakpointSpec, ExceptionSpec};
use crate::debug::session::target::log_error;
use crate::debug::session::target_handle::TargetHandle;

/// Everything that is wanted, and, the first time, that this was all.
pub async fn send_all_breakpoints(client: &DapClient, member: &TargetHandle, deadline: Duration, first: bool) {
    let capabilities = member.wait_for_capabilities().await;
    {
        let _turn = member.lock_breakpoint_requests().await;
        member.mark_breakpoints_sent();
        member.follow_source_changes();
        for file in member.breakpoint_files() {
            send_line_breakpoints(client, member, &capabilities, &file, deadline).await;
        }
        send_function_breakpoints(client, member, &capabilities, false, deadline).await;
        send_exception_filters(client, member, &capabilities, deadline).await;
        for wanted in member.unresolved_data_breakpoints() {
            member.record_refusal(&[wanted], "data is found in a stopped frame only: set it again there");
        }
        if first && capabilities.can("supportsConfigurationDoneRequest") {
            log_error(client.request(&ConfigurationDoneArguments {}, deadline).await);
        }
    }
    member.mark_configured();
}

/// The line breakpoints of one file.
pub async fn send_line_breakpoints(
    client: &DapClient,
    member: &TargetHandle,
    able: &DapCapabilities,
    file: &Path,
    deadline: Duration,
) {
    let (mut known, unknown): (Vec<BreakpointSpec>, Vec<BreakpointSpec>) =
        member.line_breakpoints(file).into_iter().partition(has_line);
    // Where the program is to run to, it stops whatever the conditions of others.
    let goals = member.temporary_breakpoints(file);
    let lines: Vec<i64> = goals.iter().filter_map(|it| Some(source_breakpoint(it)?.line)).collect();
    known.retain(|it| source_breakpoint(it).is_none_or(|it| !lines.contains(&it.line)));
    known.extend(goals);
    let (known, unable) = split_by_capability(known, able);
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
    let source = DapSource { name, path: Some(file.to_string_lossy().into_owned()), ..DapSource::default() };
    let breakpoints: Vec<SourceBreakpoint> = known.iter().filter_map(source_breakpoint).collect();
    member.record_sent_lines(file, breakpoints.iter().map(|breakpoint| breakpoint.line));
    let request = SetBreakpointsArguments { source, breakpoints, ..SetBreakpointsArguments::default() };
    let ids: Vec<u32> = known.iter().map(|wanted| wanted.id).collect();
    member.begin_breakpoint_request();
    let answer = client.request(&request, deadline).await.map(|answer| answer.breakpoints);
    record_response(member, &ids, answer);
    for (id, reason) in unable {
        member.record_refusal(&[id], &reason);
    }
    for wanted in unknown {
        member.record_refusal(&[wanted.id], "its code is no longer where it was: set it again");
    }
}

/// The function breakpoints; none and never any is not worth a request.
pub async fn send_function_breakpoints(
    client: &DapClient,
    member: &TargetHandle,
    able: &DapCapabilities,
    removed: bool,
    deadline: Duration,
) {
    let wanted = member.function_breakpoints();
    if wanted.is_empty() && !removed {
        return;
    }
    let ids: Vec<u32> = wanted.iter().map(|wanted| wanted.id).collect();
    if !able.can("supportsFunctionBreakpoints") {
        return member.record_refusal(&ids, "this adapter has no function breakpoints: set one on a line");
    }
    let function = |wanted: &BreakpointSpec| match &wanted.kind {
        BreakpointKind::Function { name } => {
            let BreakpointConditions { condition, hit_condition, .. } = wanted.conditions.clone();
            Some(FunctionBreakpoint { name: name.clone(), condition, hit_condition })
        }
        _ => None,
    };
    let request = SetFunctionBreakpointsArguments { breakpoints: wanted.iter().filter_map(function).collect() };
    member.begin_breakpoint_request();
    let answer = client.request(&request, deadline).await.map(|answer| answer.breakpoints);
    record_response(member, &ids, answer);
}

/// On which exceptions to stop.
pub async fn send_exception_filters(
    client: &DapClient,
    member: &TargetHandle,
    able: &DapCapabilities,
    deadline: Duration,
) {
    let wanted = member.exception_spec();
    let (filters, filter_options) = choose_filters(&wanted, able);
    // Some have no exceptions at all, and refuse even to be asked for none.
    if able.exception_breakpoint_filters.is_empty() && filters.is_empty() && filter_options.is_empty() {
        return;
    }
    let request =
        SetExceptionBreakpointsArguments { filters, filter_options, ..SetExceptionBreakpointsArguments::default() };
    log_error(client.request(&request, deadline).await);
}

/// The data breakpoints that the target has given ids for.
pub async fn send_data_breakpoints(client: &DapClient, member: &TargetHandle, deadline: Duration) {
    let data: Vec<(u32, DataBreakpoint)> = member.data_breakpoints();
    let (ids, breakpoints): (Vec<u32>, Vec<DataBreakpoint>) = data.into_iter().unzip();
    // Asked for what it does not know, an adapter may end (rdbg).
    if !member.capabilities().can("supportsDataBreakpoints") {
        return member.record_refusal(&ids, "this adapter has no data breakpoints");
    }
    let request = SetDataBreakpointsArguments { breakpoints };
    member.begin_breakpoint_request();
    let answer = client.request(&request, deadline).await.map(|answer| answer.breakpoints);
    record_response(member, &ids, answer);
}

fn record_response(member: &TargetHandle, ids: &[u32], answer: Result<Vec<DapBreakpoint>, DapError>) {
    match answer {
        Ok(answer) => member.record_bindings(ids, &answer),
        Err(error) => member.record_refusal(ids, &error.to_string()),
    }
}

fn has_line(wanted: &BreakpointSpec) -> bool {
    match &wanted.kind {
        BreakpointKind::Line { anchor_status: whereabouts, .. } => whereabouts.has_line(),
        _ => true,
    }
}

/// An adapter that does not know conditions would stop every time: it is told nothing, and that is said.
fn split_by_capability(
    wanted: Vec<BreakpointSpec>,
    able: &DapCapabilities,
) -> (Vec<BreakpointSpec>, Vec<(u32, String)>) {
    let lacks = |wanted: &BreakpointSpec| {
        let needs = [
            (wanted.conditions.condition.is_some(), "supportsConditionalBreakpoints", "conditions"),
            (wanted.conditions.hit_condition.is_some(), "supportsHitConditionalBreakpoints", "hit conditions"),
            (wanted.conditions.log_message.is_some(), "supportsLogPoints", "log points"),
        ];
        let missing = needs.into_iter().find(|(needed, capability, _)| *needed && !able.can(capability));
        missing.map(|(_, _, what)| format!("this adapter has no {what}"))
    };
    let (mut able, mut unable) = (Vec::new(), Vec::new());
    for wanted in wanted {
        match lacks(&wanted) {
            Some(reason) => unable.push((wanted.id, reason)),
            None => able.push(wanted),
        }
    }
    (able, unable)
}

fn source_breakpoint(wanted: &BreakpointSpec) -> Option<SourceBreakpoint> {
    let BreakpointKind::Line { line, .. } = &wanted.kind else { return None };
    let BreakpointConditions { condition, hit_condition, log_message } = wanted.conditions.clone();
    Some(SourceBreakpoint {
        line: i64::from(*line),
        condition,
        hit_condition,
        log_message,
        ..SourceBreakpoint::default()
    })
}

/// Which of the exceptions that are wanted an adapter cannot stop at.
pub fn unsupported_exceptions(wanted: &ExceptionSpec, able: &DapCapabilities) -> Option<&'static str> {
    let offers = |kinds: &[&[&str]]| {
        let offered = &able.exception_breakpoint_filters;
        kinds.iter().any(|group| group.iter().any(|name| offered.iter().any(|it| it.filter == *name)))
    };
    match (needs_caught_filter(wanted) && !offers(CAUGHT), wanted.uncaught && !offers(UNCAUGHT)) {
        (true, true) => Some("exceptions"),
        (true, false) => Some("caught exceptions"),
        (false, true) => Some("uncaught exceptions"),
        (false, false) => None,
    }
}

/// A class may be caught or not: it is looked for among all, and the others are gone on from.
fn needs_caught_filter(wanted: &ExceptionSpec) -> bool {
    wanted.caught || (wanted.class.is_some() && !wanted.uncaught)
}

/// Ours, in the adapter's words: every one has its own filters.
fn choose_filters(wanted: &ExceptionSpec, able: &DapCapabilities) -> (Vec<String>, Vec<ExceptionFilterOptions>) {
    let offered: Vec<&str> = able.exception_breakpoint_filters.iter().map(|it| it.filter.as_str()).collect();
    let mut chosen: Vec<String> = Vec::new();
    for (wants, kinds) in [(needs_caught_filter(wanted), CAUGHT), (wanted.uncaught, UNCAUGHT)] {
        let found = kinds.iter().find(|group| wants && group.iter().any(|name| offered.contains(name)));
        let names = found.into_iter().flat_map(|group| group.iter()).filter(|name| offered.contains(*name));
        chosen.extend(names.map(|name| (*name).to_owned()));
    }
    chosen.extend(wanted.filters.iter().cloned());
    chosen.dedup();
    if able.can("supportsExceptionFilterOptions") {
        let option = |filter_id: String| ExceptionFilterOptions { filter_id, ..ExceptionFilterOptions::default() };
        return (Vec::new(), chosen.into_iter().map(option).collect());
    }
    (chosen, Vec::new())
}

/// The first group of which an adapter offers one is taken. debugpy, js-debug, rdbg, netcoredbg, lldb-dap, CodeLLDB, gdb.
const CAUGHT: &[&[&str]] = &[&["raised"], &["all"], &["any"], &["caught"], &["cpp_throw", "rust_panic"], &["throw"]];
const UNCAUGHT: &[&[&str]] =
    &[&["uncaught"], &["unhandled"], &["user-unhandled"], &["userUnhandled"], &["rust_panic", "cpp_throw"], &["throw"]];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dap::types::ExceptionBreakpointsFilter;

    #[test]
    fn exceptions_are_asked_for_in_each_adapters_own_words() {
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
            let wanted = ExceptionSpec { caught, uncaught, class, ..ExceptionSpec::default() };
            assert_eq!(choose_filters(&wanted, &able).0, expect, "{offered:?}");
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
    fn exceptions_that_an_adapter_cannot_stop_at_are_told() {
        let check = |offered: &[&str], caught: bool, uncaught: bool, expect: Option<&str>| {
            let filter = |name: &&str| ExceptionBreakpointsFilter { filter: (*name).to_owned(), ..Default::default() };
            let able = DapCapabilities {
                exception_breakpoint_filters: offered.iter().map(filter).collect(),
                ..DapCapabilities::default()
            };
            let wanted = ExceptionSpec { caught, uncaught, ..ExceptionSpec::default() };
            assert_eq!(unsupported_exceptions(&wanted, &able), expect, "{offered:?}");
        };
        check(&[], false, false, None);
        check(&[], true, true, Some("exceptions"));
        check(&["all", "uncaught"], true, true, None);
        check(&["any"], true, true, Some("uncaught exceptions"));
        check(&["uncaught"], true, false, Some("caught exceptions"));
    }

    #[test]
    fn what_an_adapter_cannot_do_is_said_and_not_asked() {
        let wanted = |id: u32, condition: Option<&str>| BreakpointSpec {
            id,
            kind: BreakpointKind::Function { name: "f".into() },
            conditions: BreakpointConditions {
                condition: condition.map(str::to_owned),
                ..BreakpointConditions::default()
            },
        };
        let (able, unable) =
            split_by_capability(vec![wanted(1, None), wanted(2, Some("x"))], &DapCapabilities::default());
        assert_eq!(able.iter().map(|it| it.id).collect::<Vec<_>>(), [1]);
        assert_eq!(unable, [(2, "this adapter has no conditions".to_owned())]);
    }
}
