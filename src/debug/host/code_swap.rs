//! Swaps changed code into the running program of a session, where its adapter can.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tether_base::clock::now_ms;
use tether_base::error::{Error, Result};
use tether_dap::types::{RedefineClassesArguments, RedefineClassesResponse};

use super::managed_session::ManagedSession;
use super::registry::SessionRegistry;
use crate::debug::breakpoints::sync::ChangedBreakpoints;

use crate::debug::session::target_handle::TargetHandle;
use crate::vocabulary::RunState;

/// The capability of an adapter that has the request `redefineClasses`.
const REDEFINE_CLASSES: &str = "supportsRedefineClasses";
/// It may compile first.
const SWAP_TIMEOUT: Duration = Duration::from_secs(120);

/// What became of changed code. Of several programs each is named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CodeSwap {
    /// The names of the classes whose code is new.
    Swapped(Vec<String>),
    /// Nothing that runs has changed.
    Unchanged,
    /// The program cannot take the change; why.
    Refused(String),
}

/// What became of it in one program.
struct ProgramSwap {
    name: String,
    swap: CodeSwap,
}

/// Swaps the changed code of a session's programs into each of them. Errors: the changed code does not compile.
pub async fn swap_code(sessions: &SessionRegistry, managed: &ManagedSession) -> Result<CodeSwap> {
    if matches!(managed.run_state(), RunState::Terminated | RunState::Disconnected) {
        return Ok(CodeSwap::Refused("it has ended".to_owned()));
    }
    let began = now_ms();
    let mut swaps: Vec<ProgramSwap> = Vec::new();
    for (name, target) in running_programs(managed) {
        let client = target.client().filter(|_| target.capabilities().can(REDEFINE_CLASSES));
        let swap = match client {
            None => CodeSwap::Refused(format!("the adapter of {name} cannot")),
            Some(client) => match client.request(&RedefineClassesArguments {}, SWAP_TIMEOUT).await {
                Ok(swapped) => program_swap(swapped),
                Err(cause) => return Err(swap_error(managed, &name, cause.to_string(), &swaps)),
            },
        };
        swaps.push(ProgramSwap { name, swap });
    }
    let swap = join_swaps(&swaps);
    if !matches!(swap, CodeSwap::Refused(_)) {
        managed.code_swapped_at.store(began, Ordering::Release);
    }
    if swaps.iter().any(|it| matches!(it.swap, CodeSwap::Swapped(_))) {
        // Breakpoints move with their code.
        sessions.0.breakpoints.follow_source_changes().await;
        for file in sessions.0.breakpoints.current().files() {
            managed.session.send_breakpoints(ChangedBreakpoints::File(&file)).await;
        }
    }
    Ok(swap)
}

/// The programs of a session that have not ended, and their names.
fn running_programs(managed: &ManagedSession) -> Vec<(String, TargetHandle)> {
    let targets = managed.session.shared.targets();
    let snapshot = managed.session.snapshot();
    let running = targets.into_iter().filter_map(|target| {
        let published = snapshot.targets.get(target.id)?;
        let has_ended = matches!(published.state.phase.run_state(), RunState::Terminated | RunState::Disconnected);
        (published.parent.is_none() && !has_ended).then(|| (published.name.clone(), target))
    });
    running.collect()
}

fn program_swap(swapped: RedefineClassesResponse) -> CodeSwap {
    match swapped.error_message {
        Some(reason) => CodeSwap::Refused(reason),
        None if swapped.changed_classes.is_empty() => CodeSwap::Unchanged,
        None => CodeSwap::Swapped(swapped.changed_classes),
    }
}

fn swap_error(managed: &ManagedSession, name: &str, cause: String, before: &[ProgramSwap]) -> Error {
    let error = Error::other(format!("cannot swap the changed code into {}", managed.id)).because(cause);
    let swapped: Vec<&str> = swapped_programs(before).collect();
    let state = match swapped[..] {
        [] => "the program continues unchanged".to_owned(),
        _ => format!("{name} continues unchanged, and {} with the new code", swapped.join(", ")),
    };
    error.hint(format!("{state}; `tether debug launch --restart {}` launches it again", managed.id))
}

fn swapped_programs(swaps: &[ProgramSwap]) -> impl Iterator<Item = &str> {
    swaps.iter().filter(|it| matches!(it.swap, CodeSwap::Swapped(_))).map(|it| it.name.as_str())
}

/// What became of a session: swapped is what is current in each of its programs. Of several, each is named.
fn join_swaps(swaps: &[ProgramSwap]) -> CodeSwap {
    let is_one = swaps.len() == 1;
    let refused: Vec<String> = swaps
        .iter()
        .filter_map(|it| match &it.swap {
            CodeSwap::Refused(reason) if is_one => Some(reason.clone()),
            CodeSwap::Refused(reason) => Some(format!("{}: {reason}", it.name)),
            _ => None,
        })
        .collect();
    if !refused.is_empty() || swaps.is_empty() {
        let taken: Vec<&str> = swapped_programs(swaps).collect();
        let reason = if swaps.is_empty() { "none of its programs runs".to_owned() } else { refused.join("; ") };
        return CodeSwap::Refused(match taken[..] {
            [] => reason,
            _ => format!("{reason}; {} took it", taken.join(", ")),
        });
    }
    let classes: Vec<String> = swaps
        .iter()
        .flat_map(|it| match &it.swap {
            CodeSwap::Swapped(names) if is_one => names.clone(),
            CodeSwap::Swapped(names) => vec![format!("{} ({})", names.join(", "), it.name)],
            _ => Vec::new(),
        })
        .collect();
    if classes.is_empty() { CodeSwap::Unchanged } else { CodeSwap::Swapped(classes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_of_several_programs_says_what_became_of_each() {
        let swapped = |names: &[&str]| CodeSwap::Swapped(names.iter().map(|name| (*name).to_owned()).collect());
        let refused = |reason: &str| CodeSwap::Refused(reason.to_owned());
        let check = |swaps: &[(&str, CodeSwap)], expect: CodeSwap| {
            let swaps: Vec<ProgramSwap> =
                swaps.iter().map(|(name, swap)| ProgramSwap { name: (*name).to_owned(), swap: swap.clone() }).collect();
            assert_eq!(join_swaps(&swaps), expect);
        };
        check(&[("A.java", swapped(&["A", "B"]))], swapped(&["A", "B"]));
        check(&[("A.java", refused("why"))], refused("why"));
        check(
            &[("A.java", swapped(&["A", "B"])), ("C.java", swapped(&["C"]))],
            swapped(&["A, B (A.java)", "C (C.java)"]),
        );
        check(&[("A.java", swapped(&["A"])), ("C.java", CodeSwap::Unchanged)], swapped(&["A (A.java)"]));
        check(&[("A.java", CodeSwap::Unchanged), ("C.java", CodeSwap::Unchanged)], CodeSwap::Unchanged);
        check(&[("A.java", swapped(&["A"])), ("C.java", refused("why"))], refused("C.java: why; A.java took it"));
        check(&[], refused("none of its programs runs"));
    }
}
