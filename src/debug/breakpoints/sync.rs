//! Sends breakpoints to a target: all of them on `initialized`, and each kind again when it has changed.
//!
//! One request at a time for each target: `setBreakpoints` replaces all of a file, so the last one that is sent must be
//! the complete one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use tether_dap::DapClient;
use tether_dap::types::{
    ConfigurationDoneArguments, DapCapabilities, ExceptionFilterOptions, SetExceptionBreakpointsArguments,
};

use super::binding_request::{line_request, request_bindings, source_breakpoint};
use super::data_sync::{send_data_breakpoints, send_stored_data_breakpoints};
use super::function_sync::{has_no_panic_filter, send_function_breakpoints};
use super::hit_count::{self, as_sent};
use super::merge::merge_specs;
use super::named_sync::send_by_name;
use super::spec::{BreakpointConditions, BreakpointSpec, EditorExceptions, ExceptionSpec};
use crate::adapters::Quirks;
use crate::debug::session::disconnect::log_error;
use crate::debug::session::target_handle::TargetHandle;

/// A kind of breakpoints that has changed.
#[derive(Clone, Copy, Debug)]
pub enum ChangedBreakpoints<'a> {
    /// The line breakpoints of a file.
    File(&'a Path),
    /// Function breakpoints; whether one was removed.
    Functions(bool),
    /// On which exceptions to stop.
    Exceptions,
    /// Data breakpoints, of which none is new.
    Data,
    /// Data breakpoints, of which some have not been looked for yet.
    NewData,
}

impl ChangedBreakpoints<'_> {
    /// Whether sending this sends the other, too.
    pub fn covers(&self, other: &ChangedBreakpoints<'_>) -> bool {
        match (self, other) {
            (ChangedBreakpoints::File(one), ChangedBreakpoints::File(other)) => one == other,
            (ChangedBreakpoints::Functions(_), ChangedBreakpoints::Functions(_)) => true,
            (ChangedBreakpoints::Exceptions, ChangedBreakpoints::Exceptions) => true,
            (ChangedBreakpoints::NewData, ChangedBreakpoints::Data) => true,
            _ => false,
        }
    }
}

/// Sends all breakpoints, and the first time `configurationDone`.
pub async fn send_all_breakpoints(client: &DapClient, target: &TargetHandle, first: bool) {
    target.wait_for_capabilities().await;
    {
        let _turn = target.lock_breakpoint_requests().await;
        // Each later change must be sent too, in its own turn.
        target.with_channel(|channel| channel.are_breakpoints_sent = true);
        target.shared.breakpoints.follow_source_changes().await;
        let stored = target.shared.breakpoints.current();
        let mut files: BTreeSet<PathBuf> = stored.files();
        target.shared.with_state(|state| files.extend(state.temporary.iter().filter_map(BreakpointSpec::owned_file)));
        let remembered = target.shared.sources.remember(files.iter().cloned());
        let sent = async {
            for file in &files {
                send_line_breakpoints(client, target, file).await;
            }
        };
        tokio::join!(remembered, sent);
        send_function_breakpoints(client, target, false).await;
        send_exception_filters(client, target).await;
        send_stored_data_breakpoints(client, target, &stored.breakpoints).await;
        if first && target.capabilities().can("supportsConfigurationDoneRequest") {
            log_error(client.request(&ConfigurationDoneArguments {}, target.shared.request_timeout).await);
        }
    }
    target.with_channel(|channel| channel.configured.send_replace(true));
}

/// Sends the breakpoints of one kind to every target that has been sent breakpoints before, and waits for the responses.
pub async fn send_changed_breakpoints(targets: &[TargetHandle], changed: ChangedBreakpoints<'_>) {
    let connected = targets.iter().filter(|target| target.are_breakpoints_sent());
    let calls = connected.filter_map(|target| Some((target, target.client()?))).map(|(target, client)| async move {
        let _turn = target.lock_breakpoint_requests().await;
        match changed {
            ChangedBreakpoints::File(file) => {
                target.shared.sources.remember([file.to_owned()]).await;
                send_line_breakpoints(&client, target, file).await;
            }
            ChangedBreakpoints::Functions(removed) => send_function_breakpoints(&client, target, removed).await,
            ChangedBreakpoints::Exceptions => {
                send_exception_filters(&client, target).await;
                if has_no_panic_filter(&target.capabilities()) {
                    send_function_breakpoints(&client, target, true).await;
                }
            }
            ChangedBreakpoints::Data => send_data_breakpoints(&client, target).await,
            ChangedBreakpoints::NewData => {
                let stored = target.shared.breakpoints.current();
                send_stored_data_breakpoints(&client, target, &stored.breakpoints).await;
            }
        }
    });
    join_all(calls.collect::<Vec<_>>()).await;
}

/// Sends the line breakpoints of one file.
async fn send_line_breakpoints(client: &DapClient, target: &TargetHandle, file: &Path) {
    let able = target.capabilities();
    // The line to run to stops the program, whatever the conditions of another breakpoint there.
    let temporary = target.shared.with_state(|state| state.temporary_in(file));
    let lines: Vec<i64> = temporary.iter().filter_map(|it| Some(source_breakpoint(it)?.line)).collect();
    let is_replaced =
        |spec: &BreakpointSpec| spec.has_line() && source_breakpoint(spec).is_some_and(|it| lines.contains(&it.line));
    let stored = target.shared.breakpoints.current();
    let specs = stored.in_file(file).filter(|spec| !is_replaced(spec)).chain(&temporary);
    let quirks = target.quirks();
    let (refused, sent): (Vec<_>, Vec<_>) = specs.partition(|spec| refusal_reason(spec, &able, &quirks).is_some());
    let without_column = sent.iter().filter(|spec| quirks.ignores_columns && spec.column().is_some());
    let without_column: Vec<u32> = without_column.map(|spec| spec.id).collect();
    let sent: Vec<_> = sent.into_iter().map(|spec| as_sent(spec, &quirks)).collect();
    let merged = merge_specs(&sent);
    let mut request = line_request(file, merged.iter().map(|it| it.sent));
    if quirks.finds_lines_by_anchor {
        let anchors = merged.iter().map(|it| it.sent.anchor().cloned());
        request.breakpoints.iter_mut().zip(anchors).for_each(|(breakpoint, anchor)| breakpoint.line_anchor = anchor);
    }
    let lines: Vec<i64> = request.breakpoints.iter().map(|breakpoint| breakpoint.line).collect();
    target.shared.with_state(|state| {
        state.bindings.record_sent_lines(target.id, file, &lines);
        state.bindings.record_ignored_columns(target.id, &without_column);
    });
    let ids: Vec<Vec<u32>> = merged.iter().map(|it| it.ids.clone()).collect();
    request_bindings(client, target, &ids, &request).await;
    if quirks.compares_path_texts {
        send_by_name(client, target, file, &merged).await;
    }
    for spec in refused {
        target.record_refusal(&[spec.id], &refusal_reason(spec, &able, &quirks).unwrap_or_default());
    }
}

/// Sends on which exceptions to stop.
async fn send_exception_filters(client: &DapClient, target: &TargetHandle) {
    let able = target.capabilities();
    let stored = target.shared.breakpoints.current();
    let test_failure = target.quirks().test_failure_filter;
    let (mut filters, mut filter_options) = choose_filters(&stored.exceptions, &able, test_failure);
    if stored.has_default_exceptions() && target.shared.with_state(|state| state.stops_at_uncaught) {
        let mut proven = offered_filters(PROVEN_UNCAUGHT, &able);
        proven.extend(test_failure.filter(|filter| !proven.contains(filter)));
        (filters, filter_options) = as_request(proven, &able);
    }
    add_editor_filters(&stored.editor_exceptions, &able, &mut filters, &mut filter_options);
    // Some adapters have no exceptions at all, and refuse even an empty list.
    if able.exception_breakpoint_filters.is_empty() && filters.is_empty() && filter_options.is_empty() {
        return;
    }
    let request = SetExceptionBreakpointsArguments { filters, filter_options };
    log_error(client.request(&request, target.shared.request_timeout).await);
}

/// Why a line breakpoint is not sent. An adapter that does not support a condition would stop every time.
fn refusal_reason(spec: &BreakpointSpec, able: &DapCapabilities, quirks: &Quirks) -> Option<String> {
    if !spec.has_line() {
        return Some("its code is no longer where it was: set it again".to_owned());
    }
    let BreakpointConditions { condition, log_message, .. } = &spec.conditions;
    let needs =
        [(condition, "supportsConditionalBreakpoints", "conditions"), (log_message, "supportsLogPoints", "log points")];
    let missing = needs.into_iter().find(|(needed, capability, _)| needed.is_some() && !able.can(capability));
    let missing = missing.map(|(_, _, what)| format!("this adapter has no {what}"));
    missing.or_else(|| hit_count::refusal_reason(&spec.conditions, quirks))
}

/// The exceptions of a spec at which an adapter cannot stop.
pub fn unsupported_exceptions(spec: &ExceptionSpec, able: &DapCapabilities) -> Option<&'static str> {
    let lacks = |kinds| offered_filters(kinds, able).is_empty();
    match (spec.needs_caught() && lacks(CAUGHT), spec.uncaught && lacks(UNCAUGHT)) {
        (true, true) => Some("exceptions"),
        (true, false) => Some("caught exceptions"),
        (false, true) => Some("uncaught exceptions"),
        (false, false) => None,
    }
}

/// The filters of the first group of which an adapter offers one.
fn offered_filters(kinds: &[&[&'static str]], able: &DapCapabilities) -> Vec<&'static str> {
    let is_offered = |name: &&str| able.exception_breakpoint_filters.iter().any(|it| it.filter == *name);
    let mut groups = kinds.iter().map(|group| group.iter().copied().filter(is_offered).collect::<Vec<_>>());
    groups.find(|group| !group.is_empty()).unwrap_or_default()
}

/// The filters of an adapter for a spec: every adapter has its own. `test_failure` is that which stops where a test fails,
/// too.
fn choose_filters(
    spec: &ExceptionSpec,
    able: &DapCapabilities,
    test_failure: Option<&str>,
) -> (Vec<String>, Vec<ExceptionFilterOptions>) {
    let mut chosen: Vec<String> = Vec::new();
    for (is_set, kinds) in [(spec.needs_caught(), CAUGHT), (spec.uncaught, UNCAUGHT)] {
        chosen.extend(offered_filters(kinds, able).into_iter().filter(|_| is_set).map(str::to_owned));
    }
    let more = spec.filters.iter().map(String::as_str).chain(test_failure.filter(|_| spec.uncaught));
    for filter in more {
        if !chosen.iter().any(|it| it == filter) {
            chosen.push(filter.to_owned());
        }
    }
    as_request(chosen, able)
}

/// In the form that the adapter takes.
fn as_request(chosen: Vec<impl Into<String>>, able: &DapCapabilities) -> (Vec<String>, Vec<ExceptionFilterOptions>) {
    let chosen: Vec<String> = chosen.into_iter().map(Into::into).collect();
    if able.can("supportsExceptionFilterOptions") {
        let option = |filter_id: String| ExceptionFilterOptions { filter_id, ..ExceptionFilterOptions::default() };
        return (Vec::new(), chosen.into_iter().map(option).collect());
    }
    (chosen, Vec::new())
}

/// Adds what joined editors want: filters that the adapter offers, and what `caught` and `uncaught` mean for it.
fn add_editor_filters(
    editors: &[EditorExceptions],
    able: &DapCapabilities,
    filters: &mut Vec<String>,
    options: &mut Vec<ExceptionFilterOptions>,
) {
    for requested in editors.iter().flat_map(|it| &it.filters) {
        let is_offered = able.exception_breakpoint_filters.iter().any(|it| it.filter == requested.filter_id);
        let ids = match requested.filter_id.as_str() {
            own if is_offered => vec![own],
            "caught" => offered_filters(CAUGHT, able),
            "uncaught" => offered_filters(UNCAUGHT, able),
            _ => Vec::new(),
        };
        for id in ids {
            let option = ExceptionFilterOptions { filter_id: id.to_owned(), condition: requested.condition.clone() };
            if !able.can("supportsExceptionFilterOptions") {
                filters.extend(Some(id.to_owned()).filter(|id| !filters.contains(id)));
            } else if options.iter().all(|it| it.filter_id != option.filter_id || it.condition.is_some()) {
                options.push(option);
            }
        }
    }
}

/// debugpy, js-debug, rdbg, netcoredbg, lldb-dap, CodeLLDB, gdb.
const CAUGHT: &[&[&str]] = &[&["raised"], &["all"], &["any"], &["caught"], &["cpp_throw", "rust_panic"], &["throw"]];
const UNCAUGHT: &[&[&str]] =
    &[&["uncaught"], &["unhandled"], &["user-unhandled"], &["userUnhandled"], &["rust_panic", "cpp_throw"], &["throw"]];

/// Those that stop at no exception that the program catches: C++'s are reported when they are thrown, and Rust's panics may be
/// caught.
const PROVEN_UNCAUGHT: &[&[&str]] = &[&["uncaught"], &["unhandled"], &["user-unhandled"], &["userUnhandled"]];

#[cfg(test)]
mod tests {
    use super::super::spec::{BreakpointKind, BreakpointOwner};
    use super::*;
    use tether_dap::types::ExceptionBreakpointsFilter;

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
            assert_eq!(choose_filters(&spec, &able, None).0, expect, "{offered:?}");
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
    fn an_uncaught_exception_of_a_test_leaves_the_users_code() {
        let check = |uncaught: bool, expect: &[&str]| {
            let filter = |name: &str| ExceptionBreakpointsFilter { filter: name.to_owned(), ..Default::default() };
            let able = DapCapabilities {
                exception_breakpoint_filters: vec![filter("raised"), filter("uncaught"), filter("userUnhandled")],
                ..DapCapabilities::default()
            };
            let spec = ExceptionSpec { uncaught, ..ExceptionSpec::default() };
            assert_eq!(choose_filters(&spec, &able, Some("userUnhandled")).0, expect);
        };
        check(true, &["uncaught", "userUnhandled"]);
        check(false, &[]);
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
    fn what_editors_want_is_added_in_the_words_of_the_adapter() {
        let check = |offered: &[&str], wanted: &[&str], expect: &[&str]| {
            let filter = |name: &&str| ExceptionBreakpointsFilter { filter: (*name).to_owned(), ..Default::default() };
            let able = DapCapabilities {
                exception_breakpoint_filters: offered.iter().map(filter).collect(),
                ..DapCapabilities::default()
            };
            let option = |id: &&str| ExceptionFilterOptions { filter_id: (*id).to_owned(), condition: None };
            let owner = BreakpointOwner { editor: 1, name: "an editor".into(), host: None };
            let editors = [EditorExceptions { owner, filters: wanted.iter().map(option).collect() }];
            let (mut filters, mut options) = (vec!["raised".to_owned()], Vec::new());
            add_editor_filters(&editors, &able, &mut filters, &mut options);
            assert_eq!(filters, expect, "{wanted:?} of {offered:?}");
        };
        let debugpy = &["raised", "uncaught", "userUnhandled"];
        check(debugpy, &["userUnhandled", "raised"], &["raised", "userUnhandled"]);
        check(debugpy, &["caught", "uncaught"], &["raised", "uncaught"]);
        check(&["cpp_throw", "raised"], &["uncaught", "swift_throw"], &["raised", "cpp_throw"]);
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
            owner: None,
        };
        let able = DapCapabilities::default();
        assert_eq!(refusal_reason(&spec(1, None), &able, &Quirks::default()), None);
        let refused = refusal_reason(&spec(2, Some("x")), &able, &Quirks::default());
        assert_eq!(refused.as_deref(), Some("this adapter has no conditions"));
    }
}
