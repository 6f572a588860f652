//! Sends the function breakpoints to a target, and those on Rust's panics: an adapter takes both in one request.

use std::iter;

use tether_dap::DapClient;
use tether_dap::types::{DapCapabilities, FunctionBreakpoint, SetFunctionBreakpointsArguments};

use super::binding_request::{NO_FUNCTIONS, request_bindings, request_unordered_bindings};
use super::hit_count::{self, as_sent};
use super::merge::merge_specs;
use super::spec::{BreakpointConditions, BreakpointKind, BreakpointSpec, ExceptionSpec};
use crate::debug::session::target_handle::TargetHandle;

/// Sends the function breakpoints, and that on panics. Skipped when the list is empty and none was `removed`.
pub async fn send_function_breakpoints(client: &DapClient, target: &TargetHandle, removed: bool) {
    let stored = target.shared.breakpoints.current();
    let is_function = |spec: &&BreakpointSpec| spec.kind.function_name().is_some();
    let all: Vec<&BreakpointSpec> = stored.breakpoints.iter().filter(is_function).collect();
    let able = target.capabilities();
    let panics = panic_breakpoints(&stored.exceptions, &able);
    if all.is_empty() && panics.is_empty() && !removed {
        return;
    }
    if !able.can("supportsFunctionBreakpoints") {
        let ids: Vec<u32> = all.iter().map(|spec| spec.id).collect();
        return target.record_refusal(&ids, NO_FUNCTIONS);
    }
    let quirks = target.quirks();
    let refusal = |spec: &BreakpointSpec| {
        let reason = function_refusal_reason(spec, &able).map(str::to_owned);
        reason.or_else(|| hit_count::refusal_reason(&spec.conditions, &quirks))
    };
    let (refused, all): (Vec<_>, Vec<_>) = all.into_iter().partition(|spec| refusal(spec).is_some());
    let all: Vec<_> = all.into_iter().map(|spec| as_sent(spec, &quirks)).collect();
    let function = |spec: &BreakpointSpec| {
        let BreakpointConditions { condition, hit_condition, log_message } = spec.conditions.clone();
        let name = spec.kind.function_name().unwrap_or_default();
        FunctionBreakpoint { name, condition, hit_condition, log_message }
    };
    let functions: Vec<_> = merge_specs(&all).into_iter().map(|it| (it.ids, function(it.sent))).collect();
    if able.others.contains_key(LLDB_DETAILS) {
        send_one_by_one(client, target, functions, &panics).await;
    } else {
        let (ids, mut breakpoints): (Vec<_>, Vec<_>) = functions.into_iter().unzip();
        // Those on panics are behind the ones that have ids.
        breakpoints.extend(panics);
        request_bindings(client, target, &ids, &SetFunctionBreakpointsArguments { breakpoints }).await;
    }
    for spec in refused {
        target.record_refusal(&[spec.id], &refusal(spec).unwrap_or_default());
    }
}

/// The capability in which lldb-dap up to version 19 describes itself. Its response to `setFunctionBreakpoints` lists those
/// that it had before first, and then the new ones in no order.
const LLDB_DETAILS: &str = "__lldb";

/// Adds the new ones one by one, so that each is known by its id, whatever the order of the responses.
async fn send_one_by_one(
    client: &DapClient,
    target: &TargetHandle,
    functions: Vec<(Vec<u32>, FunctionBreakpoint)>,
    panics: &[FunctionBreakpoint],
) {
    let has_id = |ids: &[u32]| target.shared.with_state(|state| state.bindings.adapter_id(target.id, ids).is_some());
    let (mut sent, added): (Vec<_>, Vec<_>) = functions.into_iter().partition(|(ids, _)| has_id(ids));
    // The first request adds none but those on panics, and removes what is no longer set.
    for next in iter::once(None).chain(added.into_iter().map(Some)) {
        sent.extend(next);
        let ids: Vec<Vec<u32>> = sent.iter().map(|(ids, _)| ids.clone()).collect();
        let breakpoints = sent.iter().map(|(_, function)| function).chain(panics).cloned().collect();
        request_unordered_bindings(client, target, &ids, &SetFunctionBreakpointsArguments { breakpoints }).await;
    }
}

/// The capability of our own adapter for Java: function breakpoints may be `Class:line`, and may have a log message.
pub const CLASS_LINE_BREAKPOINTS: &str = "supportsClassLineBreakpoints";

/// Why a breakpoint among those on functions is not sent.
fn function_refusal_reason(spec: &BreakpointSpec, able: &DapCapabilities) -> Option<&'static str> {
    match &spec.kind {
        _ if able.can(CLASS_LINE_BREAKPOINTS) => None,
        BreakpointKind::ClassLine { .. } => {
            Some("only Java has breakpoints by class and line: set one by file and line")
        }
        _ if spec.conditions.log_message.is_some() => {
            Some("this adapter has no log points on functions: set one on a line")
        }
        _ => None,
    }
}

/// The function in which every panic of a Rust program ends, the caught ones too.
pub const PANIC_FUNCTION: &str = "rust_panic";
/// Its names. LLDB finds it in any namespace, gdb by its debug information (the second), or by its symbol: in Rust 1.95
/// that is in a namespace (the third), before it was in none.
const PANIC_FUNCTIONS: [&str; 3] = [PANIC_FUNCTION, "std::panicking::rust_panic", "__rustc::rust_panic"];

/// Whether an adapter knows C++'s exceptions, and has no filter for Rust's panics: lldb-dap, gdb, and CodeLLDB with a program
/// that it does not take for Rust's.
pub fn has_no_panic_filter(able: &DapCapabilities) -> bool {
    let offers = |name: &str| able.exception_breakpoint_filters.iter().any(|it| it.filter == name);
    (offers("cpp_throw") || offers("throw")) && !offers("rust_panic") && able.can("supportsFunctionBreakpoints")
}

/// Stop at panics where the adapter has no filter for them. In a program without Rust they are never resolved.
fn panic_breakpoints(spec: &ExceptionSpec, able: &DapCapabilities) -> Vec<FunctionBreakpoint> {
    let is_wanted = spec.needs_caught() || spec.uncaught;
    let names = PANIC_FUNCTIONS.iter().filter(|_| is_wanted && has_no_panic_filter(able));
    names.map(|name| FunctionBreakpoint { name: (*name).to_owned(), ..FunctionBreakpoint::default() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tether_dap::types::ExceptionBreakpointsFilter;

    #[test]
    fn panics_stop_at_their_function_where_an_adapter_has_no_filter_for_them() {
        let check = |offered: &[&str], caught: bool, can_set: bool, expect: bool| {
            let filter = |name: &&str| ExceptionBreakpointsFilter { filter: (*name).to_owned(), ..Default::default() };
            let able = DapCapabilities {
                exception_breakpoint_filters: offered.iter().map(filter).collect(),
                others: [("supportsFunctionBreakpoints".to_owned(), can_set.into())].into_iter().collect(),
            };
            let spec = ExceptionSpec { caught, ..ExceptionSpec::default() };
            assert_eq!(!panic_breakpoints(&spec, &able).is_empty(), expect, "{offered:?}");
        };
        check(&["cpp_catch", "cpp_throw"], true, true, true);
        check(&["cpp_catch", "cpp_throw"], false, true, false);
        check(&["catch", "throw"], true, true, true);
        check(&["cpp_throw", "rust_panic"], true, true, false);
        check(&["cpp_throw"], true, false, false);
        check(&["raised", "uncaught"], true, true, false);
    }

    #[test]
    fn breakpoints_that_only_java_has_are_sent_to_its_adapter_alone() {
        let mut spec = BreakpointSpec {
            id: 1,
            kind: BreakpointKind::Function { name: "f".into() },
            conditions: BreakpointConditions::default(),
            owner: None,
        };
        let able = DapCapabilities::default();
        assert_eq!(function_refusal_reason(&spec, &able), None);
        spec.conditions.log_message = Some("hi".to_owned());
        assert!(function_refusal_reason(&spec, &able).unwrap().contains("no log points on functions"));
        spec.kind = BreakpointKind::ClassLine { class_name: "a.B".to_owned(), line: 7 };
        assert!(function_refusal_reason(&spec, &able).unwrap().contains("only Java"));
        let others = [(CLASS_LINE_BREAKPOINTS.to_owned(), true.into())].into_iter().collect();
        let able = DapCapabilities { others, ..DapCapabilities::default() };
        assert_eq!(function_refusal_reason(&spec, &able), None);
    }
}
