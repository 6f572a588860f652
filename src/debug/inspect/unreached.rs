//! Which breakpoints have not stopped a session, and why: what an adapter has said of each, and what has become of its conditions.
//!
//! Says nothing of what the program itself has done: that a line was not reached is all that is known.

use std::path::{Path, PathBuf};

use serde_json::json;
use tether_base::file_age::is_older;

use crate::adapters::{ADAPTERS, Adapter, compiled_elsewhere};
use crate::debug::breakpoints::hit_count::counted_here;
use crate::debug::breakpoints::{BindingStatus, BreakpointKind, BreakpointSpec, NOT_REPORTED};
use crate::debug::host::managed_session::ManagedSession;
use crate::debug::session::undebugged_processes::UndebuggedProcess;

/// How many processes that are not debugged are named for one breakpoint.
const MAX_PROCESSES: usize = 3;

/// A breakpoint that has not stopped the session.
#[derive(Clone, Debug, PartialEq)]
pub struct UnreachedBreakpoint {
    pub spec_id: u32,
    /// Where it is set.
    pub kind: BreakpointKind,
    /// In one sentence.
    pub reason: String,
}

/// The breakpoints of the workspace that could have stopped the session, and have not.
pub fn unreached_breakpoints(managed: &ManagedSession) -> Vec<UnreachedBreakpoint> {
    let session = &managed.session;
    if managed.request.debug_target.core_file().is_some() {
        // Nothing runs.
        return Vec::new();
    }
    let stored = session.shared.breakpoints.current();
    let adapters: Vec<&Adapter> = managed.programs().iter().map(|program| program.adapter).collect();
    let others = UndebuggedNames::of(managed);
    let is_meant = |spec: &&BreakpointSpec| {
        let own = spec.file().is_none_or(|file| may_be_of(&adapters, file));
        spec.owner.is_none() && (own || others.may_run(spec))
    };
    let describe = |spec: &BreakpointSpec| {
        let reason = match spec.file() {
            Some(file) if !may_be_of(&adapters, file) => others.describe(spec)?,
            _ => describe_unreached(managed, &adapters, spec, &others)?,
        };
        Some(UnreachedBreakpoint { spec_id: spec.id, kind: spec.kind.clone(), reason })
    };
    stored.breakpoints.iter().filter(is_meant).filter_map(describe).collect()
}

/// `None`: it has stopped the session, or that is not known.
fn describe_unreached(
    managed: &ManagedSession,
    adapters: &[&Adapter],
    spec: &BreakpointSpec,
    others: &UndebuggedNames,
) -> Option<String> {
    let session = &managed.session;
    let hits = session.hit_count(spec.id);
    if hits > 0 {
        return unmet_hits(adapters, spec, hits);
    }
    let condition = spec.conditions.condition.as_deref();
    let failure = condition.and_then(|condition| session.event_log().condition_failure(condition, 0, false));
    let unnamed = condition.and_then(|_| session.event_log().unnamed_condition_failure(0));
    let (outcome, was_answered) =
        session.shared.with_state(|state| (state.bindings.outcome(spec.id), state.bindings.was_answered(spec.id)));
    let is_bound = matches!(outcome, BindingStatus::Verified { .. });
    if is_bound && !tells_each_pass(spec) {
        return None;
    }
    let mut reason = match &outcome {
        BindingStatus::Pending(None) if was_answered => describe_pending(managed.is_ended()).to_owned(),
        outcome => describe_outcome(spec, outcome, failure.as_deref(), managed.is_ended()),
    };
    let unfollowed = session.shared.with_state(|state| state.undebugged.unfollowed_code().to_vec());
    if is_bound && !unfollowed.is_empty() {
        // Whether the line was reached is not known.
        reason = reason.replace("the line was not reached", "nothing stopped there");
        reason.push_str(&format!("; {}", unfollowed.join("; ")));
    }
    if let Some(unnamed) = unnamed.filter(|_| is_bound && failure.is_none()) {
        reason.push_str(&format!("; a condition, which the adapter does not name, cannot be evaluated: {unnamed}"));
    }
    if let Some(unread) = managed.session.event_log().unread_maps().filter(|_| !is_bound) {
        reason.push_str(&format!("; {unread}"));
    }
    if let Some(stale) = describe_older_code(managed, spec) {
        reason.push_str(&format!("; {stale}"));
    }
    if let Some(elsewhere) = describe_other_path(managed, spec).filter(|_| !is_bound) {
        reason.push_str(&format!("; {elsewhere}"));
    }
    // One that is bound is loaded in a process that is debugged, where the adapter waits for that.
    let is_loaded = is_bound && !adapters.iter().any(|row| row.quirks.binds_unloaded);
    let processes = if is_loaded { others.describe_users(spec) } else { others.describe(spec) };
    processes.into_iter().for_each(|processes| reason.push_str(&format!("; {processes}")));
    Some(reason)
}

/// That the code at a breakpoint which has stopped the session was built before its source was written.
pub fn older_code_note(managed: &ManagedSession, id: u32) -> Option<String> {
    let stored = managed.session.shared.breakpoints.current();
    let older = describe_older_code(managed, stored.get(id)?)?;
    Some(format!("{older}: what runs may be an earlier text of it"))
}

/// "dist/a.js is older than src/a.ts": of what an adapter says of its code, and of a compiled program.
fn describe_older_code(managed: &ManagedSession, spec: &BreakpointSpec) -> Option<String> {
    let file = spec.file()?;
    let said = managed.session.shared.with_state(|state| state.bindings.older_code(spec.id).map(PathBuf::from));
    let is_compiled = |program: &ManagedSession| {
        program.adapter.runtimes.is_empty() && program.adapter.extensions.contains(&&*extension_of(file))
    };
    let programs = || managed.programs().into_iter().filter(is_compiled);
    let built = || programs().filter_map(|it| it.request.debug_target.program()).find(|it| is_build(it, file));
    let code = said.or_else(built)?;
    let workspace = &managed.request.debug_target.cwd;
    let shown = |path: &Path| path.strip_prefix(workspace).unwrap_or(path).display().to_string();
    Some(format!("{} is older than {}", shown(&code), shown(file)))
}

/// That a compiled program names a source of that name by a path that is not on this machine, and the setting that maps it.
fn describe_other_path(managed: &ManagedSession, spec: &BreakpointSpec) -> Option<String> {
    let file = spec.file()?;
    let is_compiled = |program: &ManagedSession| {
        program.adapter.runtimes.is_empty() && program.adapter.extensions.contains(&&*extension_of(file))
    };
    let programs = managed.programs().into_iter().filter(is_compiled);
    let built = programs.filter_map(|it| it.request.debug_target.program());
    let other = built.filter(|program| program.is_file()).find_map(|program| compiled_elsewhere(&program, file))?;
    let folder = |path: &Path| path.parent().unwrap_or(Path::new("/")).display().to_string();
    let map = json!({"sourceMap": {folder(&other): folder(file)}}).to_string();
    let map = map.trim_start_matches('{').strip_suffix('}').unwrap_or_default();
    Some(format!("the program was compiled of {}: in launch.json, `{map}` maps it", other.display()))
}

/// Whether a program is a file that was built before a source was written.
fn is_build(program: &Path, source: &Path) -> bool {
    program.is_file() && program != source && !is_source(program) && is_older(program, source)
}

fn is_source(program: &Path) -> bool {
    let extension = extension_of(program);
    ADAPTERS.iter().any(|row| row.runtimes.is_empty() && row.extensions.contains(&extension.as_str()))
}

/// What is said of a breakpoint that was passed so often, where its hits are counted here, and none of them was asked for.
fn unmet_hits(adapters: &[&Adapter], spec: &BreakpointSpec, hits: u64) -> Option<String> {
    let counted = adapters.iter().find_map(|row| counted_here(spec, row.quirks.hit_counting))?;
    let condition = spec.conditions.hit_condition.as_deref().filter(|_| !counted.was_met(hits))?;
    let times = if hits == 1 { "once".to_owned() } else { format!("{hits} times") };
    Some(format!("it was passed {times}, and it stops at `{condition}`"))
}

/// Whether it is known of a breakpoint that is bound that nothing has passed it: a log point does not stop, and not every adapter
/// says by which function or data a program has stopped.
fn tells_each_pass(spec: &BreakpointSpec) -> bool {
    let has_line = matches!(spec.kind, BreakpointKind::Line { .. } | BreakpointKind::ClassLine { .. });
    has_line && spec.conditions.log_message.is_none()
}

/// Whether a file is of a language of these adapters, or of none that is known.
fn may_be_of(adapters: &[&Adapter], file: &Path) -> bool {
    let extension = extension_of(file);
    let has = |row: &&Adapter| row.extensions.contains(&extension.as_str());
    adapters.iter().any(has) || !ADAPTERS.iter().any(|row| has(&row))
}

/// The adapter has taken it, and has not found its code.
fn describe_pending(is_ended: bool) -> &'static str {
    if is_ended {
        "it was not bound: nothing that the program loaded has code there"
    } else {
        "it was not bound: nothing that the program has loaded has code there yet"
    }
}

fn describe_outcome(spec: &BreakpointSpec, outcome: &BindingStatus, failure: Option<&str>, is_ended: bool) -> String {
    let yet = if is_ended { "" } else { " yet" };
    match outcome {
        BindingStatus::Verified { .. } if failure.is_some() => {
            format!("its condition cannot be evaluated, and counts as false: {}", failure.unwrap_or_default())
        }
        BindingStatus::Verified { line, .. } => {
            let asked = match spec.kind {
                BreakpointKind::Line { line, .. } => Some(line),
                _ => None,
            };
            let moved = line.filter(|line| asked.is_some_and(|asked| asked != *line));
            let moved = moved.map(|line| format!("it was moved to line {line}; ")).unwrap_or_default();
            let conditions = [&spec.conditions.condition, &spec.conditions.hit_condition];
            let conditions: Vec<String> = conditions.into_iter().flatten().map(|it| format!("`{it}`")).collect();
            let unless = match conditions.is_empty() {
                true => String::new(),
                false => format!(", or not while {} held", conditions.join(" and ")),
            };
            format!("{moved}it was bound, and the line was not reached{yet}{unless}")
        }
        // js-debug reports late, and no more once its program has ended.
        BindingStatus::Unbound(reason) if is_ended && reason == NOT_REPORTED => {
            "the adapter had not reported it as bound".to_owned()
        }
        BindingStatus::Unbound(reason) | BindingStatus::Pending(Some(reason)) => {
            // Nothing can be loaded any more.
            let reason = if is_ended {
                reason
                    .trim_end_matches(" yet")
                    .replace(" is loaded yet", " was loaded")
                    .replace(" is loaded", " was loaded")
            } else {
                reason.clone()
            };
            format!("it was not bound: {reason}")
        }
        BindingStatus::Pending(None) if is_ended => "it was not bound: the program has ended before".to_owned(),
        BindingStatus::Pending(None) => "it has not been sent to the program yet".to_owned(),
    }
}

/// The processes of a session that are not debugged.
struct UndebuggedNames {
    processes: Vec<UndebuggedProcess>,
    /// How many there are beside them.
    others: usize,
    /// Why those are not known that have ended before they were looked for.
    blind: Option<String>,
    is_ended: bool,
}

impl UndebuggedNames {
    fn of(managed: &ManagedSession) -> UndebuggedNames {
        managed.session.shared.with_state(|state| {
            let (processes, others) = state.undebugged.list();
            let blind = state.undebugged.blind().map(str::to_owned);
            UndebuggedNames { processes: processes.to_vec(), others, blind, is_ended: managed.is_ended() }
        })
    }

    /// Whether one of them may run the code of a breakpoint.
    fn may_run(&self, spec: &BreakpointSpec) -> bool {
        self.processes.iter().any(|process| may_run(process, spec))
    }

    /// Those that may run the code of a breakpoint, first those whose command has its file. `None`: there are none.
    fn describe(&self, spec: &BreakpointSpec) -> Option<String> {
        let mut found: Vec<&UndebuggedProcess> = self.processes.iter().filter(|it| may_run(it, spec)).collect();
        found.sort_by_key(|process| !names_file(process, spec));
        self.describe_some(&found)
    }

    /// Those whose command has the file of a breakpoint.
    fn describe_users(&self, spec: &BreakpointSpec) -> Option<String> {
        self.describe_some(&self.processes.iter().filter(|it| names_file(it, spec)).collect::<Vec<_>>())
    }

    fn describe_some(&self, found: &[&UndebuggedProcess]) -> Option<String> {
        let mut texts: Vec<String> =
            found.iter().take(MAX_PROCESSES).map(|process| process.describe(self.is_ended)).collect();
        let more = found.len().saturating_sub(MAX_PROCESSES).saturating_add(self.others);
        texts.extend((!texts.is_empty() && more > 0).then(|| format!("{more} more processes are not debugged")));
        let blind = self.blind.as_ref().filter(|_| texts.is_empty());
        texts.extend(
            blind.map(|cause| format!("a process that has ended may have run it, which is not known: {cause}")),
        );
        Some(texts.join("; ")).filter(|text| !text.is_empty())
    }
}

fn may_run(process: &UndebuggedProcess, spec: &BreakpointSpec) -> bool {
    spec.file().is_none_or(|file| process.may_run(&extension_of(file)))
}

fn names_file(process: &UndebuggedProcess, spec: &BreakpointSpec) -> bool {
    let name = spec.file().and_then(Path::file_name).map(|name| name.to_string_lossy());
    name.is_some_and(|name| process.command.contains(&*name))
}

fn extension_of(file: &Path) -> String {
    file.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::debug::breakpoints::BreakpointConditions;

    #[test]
    fn the_reason_is_what_is_known_and_yet_only_while_it_can_still_come() {
        let spec = |condition: Option<&str>| BreakpointSpec {
            id: 1,
            kind: BreakpointKind::Line {
                file: PathBuf::from("/w/a.js"),
                named: None,
                line: 3,
                column: None,
                anchor: Default::default(),
                anchor_status: Default::default(),
            },
            conditions: BreakpointConditions {
                condition: condition.map(str::to_owned),
                ..BreakpointConditions::default()
            },
            owner: None,
        };
        let check = |condition: Option<&str>, outcome: BindingStatus, failure: Option<&str>, is_ended, expect: &str| {
            assert_eq!(describe_outcome(&spec(condition), &outcome, failure, is_ended), expect);
        };
        let bound = |line| BindingStatus::Verified { line: Some(line), column: None, note: None };
        check(None, bound(3), None, true, "it was bound, and the line was not reached");
        check(None, bound(4), None, false, "it was moved to line 4; it was bound, and the line was not reached yet");
        check(
            Some("x > 1"),
            bound(3),
            None,
            true,
            "it was bound, and the line was not reached, or not while `x > 1` held",
        );
        check(Some("x >"), bound(3), Some("bad"), true, "its condition cannot be evaluated, and counts as false: bad");
        let pending = || BindingStatus::Pending(Some("no script of it is loaded yet".to_owned()));
        check(None, pending(), None, true, "it was not bound: no script of it was loaded");
        check(None, pending(), None, false, "it was not bound: no script of it is loaded yet");
        check(None, BindingStatus::Unbound("no".to_owned()), None, true, "it was not bound: no");
        check(None, BindingStatus::Pending(None), None, true, "it was not bound: the program has ended before");
    }

    #[test]
    fn a_file_of_another_language_is_not_meant() {
        let row = |name: &str| ADAPTERS.iter().find(|row| row.name == name).unwrap();
        let check = |adapter: &str, file: &str, expect: bool| {
            assert_eq!(may_be_of(&[row(adapter)], Path::new(file)), expect, "{adapter}: {file}");
        };
        check("debugpy", "a.py", true);
        check("debugpy", "a.js", false);
        check("node", "a.ts", true);
        check("node", "a.svelte", true);
        check("java", "A.java", true);
        check("gdb", "a.rs", true);
    }
}
