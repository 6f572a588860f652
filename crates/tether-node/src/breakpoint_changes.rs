//! What a client changes of the breakpoints: those that are wanted again stay, also where their code has moved; the others are
//! removed and bound in every isolate.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use tether_backend::Answer;
use tether_cdp::debugger::EvaluateInGlobalScope;
use tether_dap::types::{ConditionFailure, DapBreakpoint, OutputEvent};
use tokio::time::timeout;

use super::breakpoint_table::{NodeBreakpoint, NodeBreakpointPlace, NodeBreakpointTable, WantedBreakpoint};
use super::breakpoints::{bind, bind_in_versions, remove_bound, report_change};
use super::dependency_packages::announce_packages;
use super::isolate::Isolate;
use super::lane::{LANES_TIMEOUT, wait_for_all};
use super::map_loading::load_package_maps;
use super::package_manifest::package_folder;
use super::session::NodeSession;

/// How long all of them are waited for where one has bound them already.
const PROMPT_TIMEOUT: Duration = Duration::from_millis(300);
/// How long an isolate may take to compile a condition.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(1);

/// What changes of the breakpoints, in each isolate.
struct BreakpointChange {
    removed: Vec<NodeBreakpoint>,
    added: Vec<i64>,
    /// Those that are wanted on another line, to which their code has moved.
    moved: Vec<i64>,
    /// The client has its answer: what is bound from now on is reported.
    is_answered: AtomicBool,
}

impl BreakpointChange {
    fn is_bound_in(&self, breakpoints: &NodeBreakpointTable) -> bool {
        self.added.iter().all(|id| breakpoints.entries.get(id).is_none_or(|entry| entry.place.is_some()))
    }
}

/// Replaces the breakpoints that `is_replaced`; those that are wanted again stay as they are. An error instead of what
/// is wanted refuses it.
pub(crate) async fn replace_breakpoints(
    session: &Arc<NodeSession>,
    is_replaced: impl Fn(&NodeBreakpointPlace) -> bool,
    wanted: Vec<Result<WantedBreakpoint, String>>,
) -> Answer<Vec<DapBreakpoint>> {
    let mut old: Vec<NodeBreakpoint> = session.with_breakpoints(|breakpoints| {
        let mut old: Vec<NodeBreakpoint> = breakpoints.entries.values().cloned().collect();
        old.retain(|entry| is_replaced(&entry.wanted.place));
        old
    });
    let kept: Vec<Option<i64>> = wanted.iter().map(|one| take_same(&mut old, |it| one.as_ref() == Ok(it))).collect();
    let (mut ids, mut added, mut moved) = (Vec::new(), Vec::new(), Vec::new());
    for (one, kept) in wanted.into_iter().zip(kept) {
        ids.push(match (one, kept) {
            (Err(refused), _) => Err(refused),
            (Ok(_), Some(id)) => Ok(id),
            (Ok(one), None) => match take_same(&mut old, |it| it.has_moved_to(&one)) {
                Some(id) => {
                    if session.with_breakpoints(|breakpoints| breakpoints.change_wanted(id, one)) {
                        moved.push(id);
                    }
                    Ok(id)
                }
                None => match find_syntax_error(session, &one).await {
                    Some(refused) => Err(refused),
                    None => {
                        let id = session.with_breakpoints(|breakpoints| breakpoints.add(one));
                        added.push(id);
                        Ok(id)
                    }
                },
            },
        });
    }
    session.with_breakpoints(|breakpoints| old.iter().for_each(|entry| drop(breakpoints.entries.remove(&entry.id))));
    apply_change(session, BreakpointChange { removed: old, added, moved, is_answered: AtomicBool::new(false) }).await;
    Ok(ids.into_iter().map(|id| report_breakpoint(session, id)).collect())
}

/// The id of a breakpoint that stays; it is taken out.
fn take_same(old: &mut Vec<NodeBreakpoint>, is_same: impl Fn(&WantedBreakpoint) -> bool) -> Option<i64> {
    let index = old.iter().position(|entry| is_same(&entry.wanted))?;
    Some(old.swap_remove(index).id)
}

/// Has all isolates take up a change, within [`LANES_TIMEOUT`]; one that answers later reports what it has bound.
async fn apply_change(session: &Arc<NodeSession>, change: BreakpointChange) {
    let change = Arc::new(change);
    let isolates = session.isolates().into_iter().filter(|isolate| !isolate.is_unprepared());
    let binding = isolates.map(|isolate| {
        let (session, own, change) = (Arc::clone(session), Arc::clone(&isolate), Arc::clone(&change));
        isolate.lane.request(async move { apply_in_isolate(&session, &own, &change).await })
    });
    let mut binding = pin!(wait_for_all(binding));
    let mut bound = timeout(PROMPT_TIMEOUT, &mut binding).await.ok();
    // One that is busy delays no answer where another one has bound them all.
    if bound.is_none() && !session.with_breakpoints(|breakpoints| change.is_bound_in(breakpoints)) {
        bound = Some(binding.await);
    }
    change.is_answered.store(true, Ordering::Release);
    if bound.flatten().is_none() {
        let late = format!("a thread has not answered within {LANES_TIMEOUT:?}: it is set there once it does");
        session.with_breakpoints(|breakpoints| {
            for id in &change.added {
                if let Some(entry) = breakpoints.entries.get_mut(id) {
                    entry.message.get_or_insert_with(|| late.clone());
                }
            }
        });
    }
}

async fn apply_in_isolate(session: &NodeSession, isolate: &Isolate, change: &BreakpointChange) {
    // First, since the engine has one breakpoint at each place.
    let removed = change.removed.iter().flat_map(|entry| &entry.bound).filter(|bound| bound.isolate == isolate.id);
    join_all(removed.map(|bound| remove_bound(isolate, bound))).await;
    let packages: BTreeSet<PathBuf> = session.with_breakpoints(|breakpoints| {
        let added = change.added.iter().filter_map(|id| breakpoints.entries.get(id)?.file().and_then(package_folder));
        added.collect()
    });
    if !packages.is_empty() {
        announce_packages(session, isolate).await;
    }
    for package in packages {
        load_package_maps(session, isolate, &package).await;
    }
    let changed: Vec<i64> = change.moved.iter().chain(&change.added).copied().collect();
    bind_in_versions(session, isolate, &changed).await;
    let binding = changed.iter().map(|id| async move {
        bind(session, isolate, *id).await;
        remove_from_former_lines(session, isolate, *id).await;
    });
    join_all(binding).await;
    for id in &changed {
        if change.is_answered.load(Ordering::Acquire) {
            report_change(session, *id, None).await;
        }
    }
}

/// After it is bound on its line: the program runs meanwhile. In the versions of its file that the former line is right for, it
/// is bound in these scripts by now.
async fn remove_from_former_lines(session: &NodeSession, isolate: &Isolate, id: i64) {
    let former = session.with_breakpoints(|breakpoints| {
        breakpoints.entries.get_mut(&id).map(|entry| entry.take_former_lines(isolate.id)).unwrap_or_default()
    });
    join_all(former.iter().map(|bound| remove_bound(isolate, bound))).await;
}

fn report_breakpoint(session: &NodeSession, id: Result<i64, String>) -> DapBreakpoint {
    match id {
        Ok(id) => session.with_breakpoints(|breakpoints| breakpoints.describe(id).unwrap_or_default()),
        Err(reason) => DapBreakpoint { message: Some(reason), ..DapBreakpoint::default() },
    }
}

/// Why a condition is no JavaScript; the engine would take it as false.
async fn find_syntax_error(session: &NodeSession, wanted: &WantedBreakpoint) -> Option<String> {
    let condition = wanted.condition.as_deref()?;
    let isolate = session.isolates().into_iter().next()?;
    // Compiles it, and does not run it.
    let evaluate = EvaluateInGlobalScope {
        expression: format!("(function(){{if({condition}\n);}})"),
        ..EvaluateInGlobalScope::default()
    };
    let text = isolate.call_within(&evaluate, COMPILE_TIMEOUT).await.ok()?.exception_details?.text();
    let error = text.lines().next().unwrap_or_default().to_owned();
    let said = format!("Syntax error setting breakpoint with condition `{condition}`: {error}\n");
    let failure = ConditionFailure {
        condition: condition.to_owned(),
        reason: error.clone(),
        is_lasting: true,
        ..ConditionFailure::default()
    };
    // Fails when the client has gone, which ends the session.
    let _ = session.dap.send_event(&OutputEvent::new("stderr", said).with_condition_failure(&failure)).await;
    Some(format!("the condition `{condition}` is not an expression: {error}"))
}
