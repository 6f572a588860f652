//! Binds breakpoints in each isolate: by the URL of a file (of a page: by a pattern for its URLs), or in a
//! script that was made of it.
//!
//! ```text
//! setBreakpoints ─▶ table ─▶ by the URL of the file ────────────────────────────▶ `breakpointResolved` ─▶ verified
//!   CommonJS: a script with a map is about to be compiled, and waits ─▶ by its URL ─▶ 〃
//!   modules, pages: a script with a map is parsed, and waits ─▶ in that script ────────────────────────▶ verified
//!   a script is another version of the file ─▶ in that script, where the line's code is ───────────────▶ verified
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::join_all;
use tether_backend::request_failure::RequestFailure;
use tether_base::bounded_file::{self, Links};
use tether_base::line_anchor::{LineAnchor, SourceLines};
use tether_cdp::debugger::{
    BreakpointResolved, GetScriptSource, RemoveBreakpoint, ScriptLocation, SetBreakpointByUrl, SetCallBreakpoint,
    SetScriptBreakpoint,
};
use tether_dap::types::{BreakpointEvent, DapBreakpoint};

use super::breakpoint_code::engine_condition;
use super::breakpoint_table::{
    BoundAt, BoundBreakpoint, NOT_LOADED, NodeBreakpoint, NodeBreakpointPlace, WantedBreakpoint,
};
use super::evaluation::{self, SideEffects};
use super::function_ranges::{ScriptPlace, leaves_function};
use super::isolate::Isolate;
use super::line_placement::{NOWHERE, find_placed_line};
use super::older_code::find_older_code;
use super::return_places::bound_place;
use super::scripts::LoadedScript;
use super::session::NodeSession;
use super::shared_workers::describe_shared_worker;
use super::source_maps::ScriptMap;
use super::unread_maps::UnreadMap;

/// Of longer scripts, in UTF-16 code units, the text is not compared with the line that a breakpoint was set on.
const MAX_COMPARED: u32 = 8 << 20;
/// In so many versions of a file, the latest, a breakpoint is placed by its code.
const MAX_VERSIONS: usize = 16;
/// Longer scripts, in UTF-16 code units, are not searched for functions.
const MAX_SEARCHED: u32 = 2 << 20;
const UNUSED: &str = "nothing in the program names the function there, and the engine has no code for it";
const NO_CODE: &str = "there is no code at or below this line";

/// Binds all breakpoints in an isolate that has just been connected, and reports those that are bound now.
pub(crate) async fn bind_all(session: &NodeSession, isolate: &Isolate) {
    let places = |entry: &NodeBreakpoint| (entry.id, entry.place);
    let all: Vec<_> = session.with_breakpoints(|breakpoints| breakpoints.entries.values().map(places).collect());
    bind_in_versions(session, isolate, &all.iter().map(|(id, _)| *id).collect::<Vec<_>>()).await;
    let binding = all.iter().map(|(id, _)| bind(session, isolate, *id));
    join_all(binding).await;
    for (id, before) in all {
        report_change(session, id, before).await;
    }
}

/// The isolate shows another document: its scripts are gone, and so are the breakpoints that were bound in them.
pub(crate) async fn forget_scripts(session: &NodeSession, isolate: &Isolate) {
    isolate.with_state(|state| {
        state.scripts.clear();
        (state.map_bytes, state.map_entries) = (0, 0);
    });
    let forgotten = session.with_breakpoints(|breakpoints| breakpoints.forget_scripts(isolate.id));
    // No version of a file is left to bind them in.
    for id in forgotten.retired {
        bind(session, isolate, id).await;
    }
    for (id, before) in forgotten.unbound {
        report_change(session, id, Some(before)).await;
    }
}

/// Binds breakpoints in the versions of their files that are loaded, where their lines are not the wanted ones; before [`bind`].
/// The text of a version is read once for all of them.
pub(crate) async fn bind_in_versions(session: &NodeSession, isolate: &Isolate, ids: &[i64]) {
    let mut by_file: BTreeMap<PathBuf, Vec<NodeBreakpoint>> = BTreeMap::new();
    session.with_breakpoints(|breakpoints| {
        for entry in ids.iter().filter_map(|id| breakpoints.entries.get(id)) {
            if let Some(file) = entry.file() {
                by_file.entry(file.to_owned()).or_default().push(entry.clone());
            }
        }
    });
    let by_file = &by_file;
    let versions = by_file.iter().flat_map(|(file, entries)| {
        let versions = isolate.with_state(|state| state.scripts.latest_versions(file, MAX_VERSIONS));
        versions.into_iter().map(move |version| (entries, version))
    });
    // The program may wait: all at once.
    let binding = versions.map(|(entries, version)| async move {
        bind_in_version(session, isolate, entries, &version).await;
    });
    join_all(binding).await;
}

/// Binds a breakpoint in an isolate, wherever it is not bound yet.
pub(crate) async fn bind(session: &NodeSession, isolate: &Isolate, id: i64) {
    let entry = session.with_breakpoints(|breakpoints| breakpoints.entries.get(&id).cloned());
    let Some(entry) = entry else { return };
    let is_bound = entry.bound.iter().any(|bound| bound.isolate == isolate.id && entry.is_where_wanted(bound));
    match &entry.wanted.place {
        NodeBreakpointPlace::Line { path, file, line, column, .. } => {
            let made_of_it = |script: &LoadedScript| script.map().is_some_and(|map| map.has_source(file));
            let scripts = isolate.with_state(|state| state.scripts.select(made_of_it));
            for script in scripts.iter().filter(|script| !entry.is_in_script(isolate.id, script)) {
                bind_in_script(session, isolate, &entry, script).await;
            }
            if !is_bound && !scripts.iter().any(|script| script.path.as_ref() == Some(file)) {
                bind_by_url(session, isolate, &entry, [path, file], (*line, column.unwrap_or(0))).await;
            }
        }
        _ if is_bound => {}
        NodeBreakpointPlace::Entry(file) => bind_by_url(session, isolate, &entry, [file, file], (0, 0)).await,
        NodeBreakpointPlace::Function(name) => bind_function(session, isolate, &entry, name).await,
    }
}

pub(crate) fn condition_of(session: &NodeSession, entry: &NodeBreakpoint) -> Option<String> {
    let WantedBreakpoint { condition, log_message, .. } = &entry.wanted;
    engine_condition(condition.as_deref(), log_message.as_deref(), (&session.binding, entry.id)).ok().flatten()
}

/// A script with a map is about to be compiled: binds the breakpoints of its sources by its URL, at the places that were
/// made of them.
pub(crate) async fn bind_ahead(session: &NodeSession, isolate: &Isolate, script: &Path, map: &ScriptMap) {
    for entry in breakpoints_in_sources(session, map) {
        let NodeBreakpointPlace::Line { file, line, column, anchor, .. } = &entry.wanted.place else { continue };
        if file == script {
            retire_url(session, isolate, &entry).await;
        }
        find_older_code(session, &entry, script, map).await;
        let line = line_in_source(map, file, *line, anchor.as_ref());
        let place = map.generated_place(file, line, column.unwrap_or(0));
        let Some((line_number, column_number)) = place else { continue };
        let (url_regex, condition) =
            (own_pattern(session.maps.file_pattern(&[script]), entry.id), condition_of(session, &entry));
        let set = SetBreakpointByUrl { url_regex, line_number, column_number, condition };
        if let Ok(result) = isolate.call(&set).await {
            let at = BoundAt::MadeIn(script.to_owned());
            let bound = BoundBreakpoint { isolate: isolate.id, engine_id: result.breakpoint_id, at };
            record_bound(session, isolate, entry.id, bound, (None, NOT_LOADED)).await;
        }
    }
}

/// The line of a file's breakpoint in the text that a script was made of.
fn line_in_source(map: &ScriptMap, file: &Path, line: i64, anchor: Option<&LineAnchor>) -> i64 {
    let Some((anchor, source)) = anchor.and_then(|anchor| Some((anchor, map.source_lines(file)?))) else { return line };
    find_placed_line(anchor, &source, line)
}

/// Binds the breakpoints of a script's file in a version of it whose lines are not those of the wanted one.
pub(crate) async fn bind_in_new_version(session: &NodeSession, isolate: &Isolate, script: &LoadedScript) {
    let Some(path) = script.path.as_deref() else { return };
    let is_of_it = |entry: &&NodeBreakpoint| entry.file() == Some(path);
    let entries: Vec<NodeBreakpoint> =
        session.with_breakpoints(|breakpoints| breakpoints.entries.values().filter(is_of_it).cloned().collect());
    bind_in_version(session, isolate, &entries, script).await;
    for entry in entries {
        report_change(session, entry.id, entry.place).await;
    }
}

/// A file without a map is about to be loaded again; the isolate waits for us. Binds its breakpoints by its URL, at the lines
/// where their code is in its text now.
pub(crate) async fn bind_version_ahead(session: &NodeSession, isolate: &Isolate, path: &Path) {
    let file = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let entries: Vec<NodeBreakpoint> = session.with_breakpoints(|breakpoints| {
        breakpoints.entries.values().filter(|entry| entry.file() == Some(&file)).cloned().collect()
    });
    if entries.is_empty() {
        return;
    }
    let read =
        tokio::task::spawn_blocking(move || bounded_file::read_file(&file, MAX_COMPARED.into(), Links::Follow)).await;
    // The program itself reports that.
    let Ok(Ok(text)) = read else { return };
    let placed = place_entries(&entries, &String::from_utf8_lossy(&text));
    let binding = placed.into_iter().map(|(entry, line)| async move {
        let is_bound = |bound: &BoundBreakpoint| bound.isolate == isolate.id && bound.at == BoundAt::Url { line };
        // By the URL of the file itself, and not by that of a link to it.
        if entry.file() != Some(path) || !entry.bound.iter().any(is_bound) {
            let column = entry.wanted.place.column().unwrap_or(0);
            bind_by_url(session, isolate, entry, [path, path], (line, column)).await;
        }
    });
    // The program waits: all at once.
    join_all(binding).await;
}

/// Where the lines of breakpoints are in a text of their file; of those alone that can be found in it.
fn place_entries<'a>(entries: &'a [NodeBreakpoint], text: &str) -> Vec<(&'a NodeBreakpoint, i64)> {
    let source = SourceLines::of(text);
    let place = |entry: &'a NodeBreakpoint| match &entry.wanted.place {
        NodeBreakpointPlace::Line { line, anchor, .. } => {
            Some((entry, anchor.as_ref().map_or(*line, |anchor| find_placed_line(anchor, &source, *line))))
        }
        _ => None,
    };
    entries.iter().filter_map(place).collect()
}

/// `entries` are of the script's file.
async fn bind_in_version(session: &NodeSession, isolate: &Isolate, entries: &[NodeBreakpoint], script: &LoadedScript) {
    if entries.is_empty() || !script.is_whole_file || script.length > MAX_COMPARED.into() || script.is_own_source() {
        return;
    }
    // Fails when it is gone.
    let Ok(text) = isolate.call(&GetScriptSource { script_id: script.id.clone() }).await else { return };
    let placed = place_entries(entries, &text.script_source);
    let elsewhere = placed.into_iter().filter(|(entry, placed)| {
        let wanted = entry.wanted.place.line().unwrap_or(*placed);
        script.placements.record(entry.id, wanted, *placed);
        *placed != wanted && !entry.is_in_script(isolate.id, script)
    });
    let binding = elsewhere.map(|(entry, placed)| async move {
        let column_number = entry.wanted.place.column().unwrap_or(0);
        let location = ScriptLocation { script_id: script.id.clone(), line_number: placed, column_number };
        let set = SetScriptBreakpoint { location, condition: condition_of(session, entry) };
        match isolate.call(&set).await {
            Ok(result) => {
                let at = (result.actual_location.line_number, result.actual_location.column_number);
                if is_unused(isolate, script, (placed, column_number), at).await {
                    return refuse_unused(session, isolate, entry, script, Some(result.breakpoint_id)).await;
                }
                let (engine_id, bound_at) = (result.breakpoint_id, BoundAt::Script(script.id.clone()));
                let bound = BoundBreakpoint { isolate: isolate.id, engine_id, at: bound_at };
                record_bound(session, isolate, entry.id, bound, (Some(at), NO_CODE)).await;
            }
            Err(error) => refuse(session, entry.id, RequestFailure::from(error).0),
        }
    });
    join_all(binding).await;
}

fn breakpoints_in_sources(session: &NodeSession, map: &ScriptMap) -> Vec<NodeBreakpoint> {
    let is_in = |entry: &&NodeBreakpoint| entry.file().is_some_and(|file| map.has_source(file));
    session.with_breakpoints(|breakpoints| breakpoints.entries.values().filter(is_in).cloned().collect())
}

/// The pattern of one breakpoint, which matches what the pattern does. The engine refuses a second breakpoint with the same pattern
/// and line: where lines are inserted above two breakpoints, one moves to the line that the other leaves.
fn own_pattern(pattern: String, id: i64) -> String {
    format!("{pattern}(?:{id}){{0}}")
}

/// `names`: the file as the client has it, and without links.
async fn bind_by_url(
    session: &NodeSession,
    isolate: &Isolate,
    entry: &NodeBreakpoint,
    names: [&Path; 2],
    (line_number, column_number): (i64, i64),
) {
    let file = names[1];
    let url_regex = if isolate.is_web() { session.maps.url_pattern(&names) } else { session.maps.file_pattern(&names) };
    let url_regex = own_pattern(url_regex, entry.id);
    let condition = condition_of(session, entry);
    let set = SetBreakpointByUrl { url_regex, line_number, column_number, condition };
    let result = match isolate.call(&set).await {
        Ok(result) => result,
        Err(error) => return refuse(session, entry.id, RequestFailure::from(error).0),
    };
    let is_loaded = !isolate.with_state(|state| state.scripts.select(|it| it.path.as_deref() == Some(file))).is_empty();
    let at = BoundAt::Url { line: line_number };
    let bound = BoundBreakpoint { isolate: isolate.id, engine_id: result.breakpoint_id, at };
    let (mut place, mut is_left_out) = (None, false);
    for at in &result.locations {
        let found = (at.line_number, at.column_number);
        match session.script(isolate.id, &at.script_id) {
            Some(script) if !entry.is_stop(&bound, &script, None) => {}
            Some(script) if is_unused(isolate, &script, (line_number, column_number), found).await => {
                refuse_unused(session, isolate, entry, &script, None).await;
                is_left_out = true;
            }
            _ => place = place.or(Some(found)),
        }
    }
    let message = match is_loaded {
        true if is_left_out => UNUSED,
        true => NO_CODE,
        false => NOT_LOADED,
    };
    let elsewhere = if is_loaded { None } else { describe_shared_worker(session, isolate, file).await };
    record_bound(session, isolate, entry.id, bound, (place, elsewhere.as_deref().unwrap_or(message))).await;
}

/// Binds the breakpoints of the sources that a script was made of, and reports those that are bound now. Where the
/// script has the path of its own source, as with compilers in memory, lines by URL would be those of the compiled text.
pub(crate) async fn bind_mapped(session: &NodeSession, isolate: &Isolate, script: &Arc<LoadedScript>) {
    let Some(map) = script.map() else { return };
    for entry in breakpoints_in_sources(session, map) {
        if !entry.is_in_script(isolate.id, script) {
            let before = entry.place;
            bind_in_script(session, isolate, &entry, script).await;
            report_change(session, entry.id, before).await;
        }
        // After that: not every script waits for us, and the line by the URL may be the right one.
        if script.is_own_source() && entry.file() == script.path.as_deref() {
            retire_url(session, isolate, &entry).await;
        }
    }
}

async fn bind_in_script(session: &NodeSession, isolate: &Isolate, entry: &NodeBreakpoint, script: &LoadedScript) {
    let (NodeBreakpointPlace::Line { file, line, column, anchor, .. }, Some(map)) = (&entry.wanted.place, script.map())
    else {
        return;
    };
    if let Some(path) = &script.path {
        find_older_code(session, entry, path, map).await;
    }
    let placed = line_in_source(map, file, *line, anchor.as_ref());
    script.placements.record(entry.id, *line, placed);
    let Some((line_number, column_number)) = map.generated_place(file, placed, column.unwrap_or(0)) else {
        return refuse(session, entry.id, NO_CODE.to_owned());
    };
    let location = ScriptLocation { script_id: script.id.clone(), line_number, column_number };
    let set = SetScriptBreakpoint { location, condition: condition_of(session, entry) };
    match isolate.call(&set).await {
        Ok(result) => {
            let at = &result.actual_location;
            let found = (at.line_number, at.column_number);
            if is_unused(isolate, script, (line_number, column_number), found).await {
                return refuse_unused(session, isolate, entry, script, Some(result.breakpoint_id)).await;
            }
            let original = bound_place(isolate, script, map, ((line_number, column_number), found)).await;
            let place = original.filter(|it| it.path == *file).map_or((placed, 0), |it| (it.line, it.column));
            let at = BoundAt::Script(script.id.clone());
            let bound = BoundBreakpoint { isolate: isolate.id, engine_id: result.breakpoint_id, at };
            record_bound(session, isolate, entry.id, bound, (Some(place), NO_CODE)).await;
        }
        Err(error) => refuse(session, entry.id, RequestFailure::from(error).0),
    }
}

/// Whether the engine has found a place behind the function that the wanted one is in: it has none for a function that nothing in
/// its scope names.
async fn is_unused(isolate: &Isolate, script: &LoadedScript, wanted: ScriptPlace, found: ScriptPlace) -> bool {
    if found.0 <= wanted.0 || !script.is_whole_file || script.length > MAX_SEARCHED.into() {
        return false;
    }
    // Fails when it is gone.
    let text = isolate.call(&GetScriptSource { script_id: script.id.clone() }).await;
    text.is_ok_and(|text| leaves_function(&text.script_source, wanted, found))
}

/// A breakpoint has no code in a script: it is removed where it is of that script alone, and else no stop there is one.
async fn refuse_unused(
    session: &NodeSession,
    isolate: &Isolate,
    entry: &NodeBreakpoint,
    script: &LoadedScript,
    in_script: Option<String>,
) {
    match in_script {
        Some(breakpoint_id) => drop(isolate.call(&RemoveBreakpoint { breakpoint_id }).await),
        None => script.placements.record(entry.id, entry.wanted.place.line().unwrap_or(NOWHERE), NOWHERE),
    }
    refuse(session, entry.id, UNUSED.to_owned());
    send_changed(session, session.with_breakpoints(|breakpoints| breakpoints.describe(entry.id))).await;
}

/// The place that the engine was asked for, by its name of the breakpoint: `2:LINE:COLUMN:…`.
fn engine_place(breakpoint_id: &str) -> Option<ScriptPlace> {
    let mut parts = breakpoint_id.split(':').skip(1);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// By the function object that the name stands for: where the isolate has stopped, or in the global scope.
async fn bind_function(session: &NodeSession, isolate: &Isolate, entry: &NodeBreakpoint, name: &str) {
    let top = isolate.pause().and_then(|pause| pause.event.call_frames.first().cloned());
    let expression = format!("({name})");
    let found = match &top {
        Some(top) => evaluation::run_expression(session, isolate, Some(top), &expression, SideEffects::Allow).await,
        None => evaluation::find_global(isolate, &expression).await,
    };
    let function = found.ok().filter(|it| it.kind == "function");
    let Some(object_id) = function.and_then(|function| function.object_id) else {
        let reason =
            format!("no function `{name}` is in reach: it is looked for in the global scope, and at each stop");
        return refuse(session, entry.id, reason);
    };
    match isolate.call(&SetCallBreakpoint { object_id, condition: condition_of(session, entry) }).await {
        Ok(result) => {
            let engine_id = result.breakpoint_id;
            let bound = BoundBreakpoint { isolate: isolate.id, engine_id, at: BoundAt::Function };
            record_bound(session, isolate, entry.id, bound, (Some((0, 0)), NO_CODE)).await;
        }
        Err(error) => refuse(session, entry.id, RequestFailure::from(error).0),
    }
}

/// Binds the functions that were not there before, and reports those that are bound now.
pub(crate) async fn rebind_functions(session: &NodeSession, isolate: &Isolate) {
    let is_unbound = |entry: &&NodeBreakpoint| {
        matches!(entry.wanted.place, NodeBreakpointPlace::Function(_)) && entry.place.is_none()
    };
    let unbound: Vec<i64> = session.with_breakpoints(|breakpoints| {
        breakpoints.entries.values().filter(is_unbound).map(|entry| entry.id).collect()
    });
    for id in unbound {
        bind(session, isolate, id).await;
        report_change(session, id, None).await;
    }
}

fn refuse(session: &NodeSession, id: i64, reason: String) {
    session.with_breakpoints(|breakpoints| {
        if let Some(entry) = breakpoints.entries.get_mut(&id) {
            entry.message = Some(reason);
        }
    });
}

/// Records that a breakpoint is bound; takes it away again if the client has removed it meanwhile.
async fn record_bound(
    session: &NodeSession,
    isolate: &Isolate,
    id: i64,
    bound: BoundBreakpoint,
    (place, message): (Option<(i64, i64)>, &str),
) {
    let is_wanted = session.with_breakpoints(|breakpoints| {
        let entry = breakpoints.entries.get_mut(&id)?;
        entry.bound.push(bound.clone());
        entry.place = place.or(entry.place);
        entry.message = Some(message.to_owned());
        Some(())
    });
    if is_wanted.is_none() {
        remove_bound(isolate, &bound).await;
    }
}

/// The program may have reached it already: it stays known.
async fn retire_url(session: &NodeSession, isolate: &Isolate, entry: &NodeBreakpoint) {
    let is_meant = |bound: &&mut BoundBreakpoint| {
        bound.isolate == isolate.id && matches!(bound.at, BoundAt::Function | BoundAt::Url { .. })
    };
    let retired: Vec<BoundBreakpoint> = session.with_breakpoints(|breakpoints| {
        let bound = breakpoints.entries.get_mut(&entry.id).map(|entry| entry.bound.iter_mut()).into_iter().flatten();
        let retire = |bound: &mut BoundBreakpoint| {
            bound.at = BoundAt::RetiredUrl;
            bound.clone()
        };
        bound.filter(is_meant).map(retire).collect()
    });
    for bound in retired {
        remove_bound(isolate, &bound).await;
    }
}

/// A script was parsed that a breakpoint by URL is in.
pub(crate) async fn handle_resolved(session: &NodeSession, isolate: &Isolate, resolved: &BreakpointResolved) {
    let at = &resolved.location;
    let script = session.script(isolate.id, &at.script_id);
    let found = (at.line_number, at.column_number);
    let wanted = engine_place(&resolved.breakpoint_id);
    let original = match script.as_ref().and_then(|script| Some((script, script.map()?))) {
        Some((script, map)) => bound_place(isolate, script, map, (wanted.unwrap_or(found), found)).await,
        None => None,
    };
    let entry = session.with_breakpoints(|breakpoints| {
        breakpoints.find_bound(isolate.id, &resolved.breakpoint_id).map(|(entry, _)| entry.clone())
    });
    if let (Some(entry), Some(script), Some(wanted)) = (entry, &script, wanted)
        && is_unused(isolate, script, wanted, found).await
    {
        return refuse_unused(session, isolate, &entry, script, None).await;
    }
    let changed = session.with_breakpoints(|breakpoints| {
        let (entry, bound) = breakpoints.find_bound(isolate.id, &resolved.breakpoint_id)?;
        let before = entry.place;
        let is_in_place = script.as_ref().is_none_or(|script| entry.is_stop(&bound, script, None));
        entry.place = match bound.at {
            BoundAt::MadeIn(_) => Some(original.map_or(found, |original| (original.line, original.column))),
            _ if is_in_place => Some(found),
            // Its code is elsewhere in that version of the file, or that is compiled.
            _ => entry.place,
        };
        Some((entry.id, before))
    });
    if let Some((id, before)) = changed {
        report_change(session, id, before).await;
    }
}

/// Reports a breakpoint whose place is not that of before.
pub(crate) async fn report_change(session: &NodeSession, id: i64, before: Option<(i64, i64)>) {
    let changed = session.with_breakpoints(|breakpoints| {
        let entry = breakpoints.entries.get(&id)?;
        let is_shown = !matches!(entry.wanted.place, NodeBreakpointPlace::Entry(_));
        breakpoints.describe(id).filter(|_| is_shown && entry.place != before)
    });
    send_changed(session, changed).await;
}

async fn send_changed(session: &NodeSession, changed: Option<DapBreakpoint>) {
    if let Some(breakpoint) = changed {
        // Fails when the client has gone, which ends the session.
        let _ = session.dap.send_event(&BreakpointEvent { reason: "changed".to_owned(), breakpoint }).await;
    }
}

/// Reports of which breakpoints the code may be in a script whose map was not read; whether that was not known.
pub(crate) async fn report_unread_map(session: &NodeSession, unread: UnreadMap) -> bool {
    let reported = session.with_breakpoints(|breakpoints| breakpoints.add_unread(unread));
    let is_new = reported.is_some();
    for breakpoint in reported.into_iter().flatten() {
        // Fails when the client has gone, which ends the session.
        let _ = session.dap.send_event(&BreakpointEvent { reason: "changed".to_owned(), breakpoint }).await;
    }
    is_new
}

/// Removes a breakpoint from the engine.
pub(crate) async fn remove_bound(isolate: &Isolate, bound: &BoundBreakpoint) {
    // Fails when the isolate has ended.
    let _ = isolate.call(&RemoveBreakpoint { breakpoint_id: bound.engine_id.clone() }).await;
}
