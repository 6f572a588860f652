//! Sets breakpoints, and binds them to the classes that are loaded or will be.
//!
//! ```text
//! setBreakpoints ─▶ table ─▶ request "class prepared" ─▶ loaded classes ─▶ requests at their code ─▶ verified
//!                                     └─ later: a class is prepared, its thread suspended ─▶ the same ─▶ resumed
//! ```

use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use tether_backend::Answer;
use tether_dap::types::{BreakpointEvent, DapBreakpoint, DapSource, SourceBreakpoint};
use tether_jdwp::commands::virtual_machine::AllClassesWithGeneric;
use tether_jdwp::values::{CodeLocation, ReferenceTypeId, TYPE_ARRAY};
use tether_jdwp::{ClearEventRequest, EventKind, EventModifier, JdwpError, SetEventRequest, SuspendPolicy};

use super::breakpoint_table::{
    BoundRequest, BreakpointPlace, ClassPattern, FunctionName, JavaBreakpoint, StopConditions, is_class_around,
    is_class_named,
};
use super::class_age::find_older_code;
use super::class_origin;
use super::java_vm::JavaClass;
use super::line_code::choose_code;
use super::session::JavaSession;
use super::signatures::{is_jdk_class, package_path};

/// The status bit of a class that is prepared (JDWP: ClassStatus Constants).
const PREPARED: i32 = 2;
/// Of a breakpoint with a column.
const IGNORED_COLUMN: &str = "classes have lines without columns: it stops at the line's first code";
/// The packages of the JDK, as patterns.
pub(crate) const JDK_PATTERNS: [&str; 5] = ["java.*", "javax.*", "jdk.*", "sun.*", "com.sun.*"];

/// A breakpoint that is to be set; an error instead of its conditions refuses it.
pub(crate) struct WantedBreakpoint {
    pub place: BreakpointPlace,
    pub conditions: Result<StopConditions, String>,
}

/// Replaces the breakpoints that `is_replaced`, and binds the new ones as far as their classes are loaded.
pub(crate) async fn replace_breakpoints(
    session: &JavaSession,
    is_replaced: impl Fn(&JavaBreakpoint) -> bool,
    wanted: Vec<WantedBreakpoint>,
) -> Answer<Vec<DapBreakpoint>> {
    let removed = session.with_tables(|tables| tables.breakpoints.remove(is_replaced));
    for BoundRequest { kind, request, .. } in removed {
        session.vm.request(&ClearEventRequest { kind, request }).await?;
    }
    let mut ids = Vec::new();
    for one in wanted {
        ids.push(match one.conditions {
            Ok(conditions) => {
                watch_classes(session, one.place.pattern()).await?;
                Ok(session.with_tables(|tables| tables.breakpoints.add(one.place, conditions)))
            }
            Err(reason) => Err(reason),
        });
    }
    let added: Vec<i64> = ids.iter().filter_map(|id| id.as_ref().ok().copied()).collect();
    bind_to_loaded(session, &added).await?;
    Ok(ids.into_iter().map(|id| report_breakpoint(session, id)).collect())
}

fn report_breakpoint(session: &JavaSession, id: Result<i64, String>) -> DapBreakpoint {
    let id = match id {
        Ok(id) => id,
        Err(message) => {
            let (message, reason) = (Some(message), Some("failed".to_owned()));
            return DapBreakpoint { message, reason, ..DapBreakpoint::default() };
        }
    };
    let entry = session.with_tables(|tables| tables.breakpoints.entries.get(&id).cloned());
    entry.map_or_else(DapBreakpoint::default, |entry| describe_breakpoint(&entry))
}

/// Requests to be told when classes are prepared in which a breakpoint may be.
async fn watch_classes(session: &JavaSession, pattern: ClassPattern) -> Result<(), JdwpError> {
    if session.with_tables(|tables| tables.breakpoints.prepare_requests.contains_key(&pattern)) {
        return Ok(());
    }
    let exclude_jdk = || JDK_PATTERNS.map(|it| EventModifier::ClassExclude(it.to_owned())).to_vec();
    let modifiers = match &pattern {
        ClassPattern::SourceName(name) if session.vm.capabilities.use_source_name_filters => {
            vec![EventModifier::SourceNameMatch(name.clone())]
        }
        ClassPattern::NameEnd(name) => vec![EventModifier::ClassMatch(format!("*{name}"))],
        ClassPattern::NameStart(name) => vec![EventModifier::ClassMatch(format!("{name}*"))],
        ClassPattern::SourceName(_) | ClassPattern::Any => exclude_jdk(),
    };
    let (kind, policy) = (EventKind::ClassPrepare, SuspendPolicy::EventThread);
    let request = session.vm.request(&SetEventRequest { kind, policy, modifiers }).await?;
    session.with_tables(|tables| tables.breakpoints.prepare_requests.insert(pattern, request));
    Ok(())
}

/// Binds breakpoints to the classes that are loaded already.
async fn bind_to_loaded(session: &JavaSession, ids: &[i64]) -> Answer<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let entries = entries(session, |entry| ids.contains(&entry.id));
    let mut classes = Vec::new();
    for loaded in session.vm.request(&AllClassesWithGeneric {}).await? {
        let is_wanted = loaded.type_tag != TYPE_ARRAY
            && loaded.status & PREPARED != 0
            && entries.iter().any(|entry| may_be_in(&entry.place, &loaded.signature));
        if is_wanted {
            classes.push(session.vm.known_class(loaded.class, loaded.type_tag, loaded.signature));
        }
    }
    // All at once: each would be a round trip.
    let read = |class: Arc<JavaClass>| async move { session.vm.source_file(&class).await.map(drop) };
    join_all(classes.iter().cloned().map(read)).await;
    for entry in &entries {
        bind_to_classes(session, entry, &classes).await?;
    }
    Ok(())
}

/// Binds breakpoints to a class that has just been prepared, and reports those that are bound now.
pub(crate) async fn bind_to_prepared(session: &JavaSession, class: &Arc<JavaClass>) -> Answer<()> {
    for entry in entries(session, |entry| may_be_in(&entry.place, &class.signature)) {
        let before = (entry.bound.is_empty(), entry.line);
        bind_to_classes(session, &entry, std::slice::from_ref(class)).await?;
        let after = session.with_tables(|tables| tables.breakpoints.entries.get(&entry.id).cloned());
        if let Some(after) = after.filter(|after| (after.bound.is_empty(), after.line) != before) {
            let breakpoint = describe_breakpoint(&after);
            let event = BreakpointEvent { reason: "changed".to_owned(), breakpoint };
            // Fails when the client has gone, which ends the session.
            let _ = session.dap.send_event(&event).await;
        }
    }
    Ok(())
}

fn entries(session: &JavaSession, is_meant: impl Fn(&JavaBreakpoint) -> bool) -> Vec<JavaBreakpoint> {
    session.with_tables(|tables| tables.breakpoints.entries.values().filter(|it| is_meant(it)).cloned().collect())
}

async fn bind_to_classes(session: &JavaSession, entry: &JavaBreakpoint, classes: &[Arc<JavaClass>]) -> Answer<()> {
    match &entry.place {
        BreakpointPlace::Line { path, line, package, .. } => {
            let mut own = Vec::new();
            for class in classes.iter().filter(|class| may_be_in(&entry.place, &class.signature)) {
                let source = session.vm.source_file(class).await?;
                let is_file = source.is_some_and(|source| path.file_name().is_some_and(|name| *name == *source));
                let is_package = package.as_deref().is_none_or(|it| it == package_path(&class.signature));
                if is_file && is_package && !class_origin::is_from_another_file(session, class, path).await? {
                    own.push(class);
                }
            }
            bind_line(session, entry, *line, &own).await
        }
        BreakpointPlace::ClassLine { line, .. } => {
            let own: Vec<&Arc<JavaClass>> =
                classes.iter().filter(|class| may_be_in(&entry.place, &class.signature)).collect();
            bind_line(session, entry, *line, &own).await
        }
        BreakpointPlace::Function(function) => {
            for class in classes.iter().filter(|class| function.is_of_class(&class.name())) {
                bind_function(session, entry.id, function, class).await?;
            }
            Ok(())
        }
        BreakpointPlace::Entry { class: name } => {
            let main = FunctionName { class: None, method: "main".to_owned(), at_exit: false };
            for class in classes.iter().filter(|class| class.name() == *name) {
                bind_function(session, entry.id, &main, class).await?;
            }
            Ok(())
        }
        BreakpointPlace::Field { class: name, field, reads, writes } => {
            for class in classes.iter().filter(|class| is_class_named(&class.name(), name)) {
                bind_field(session, entry.id, class, field, (*reads, *writes)).await?;
            }
            Ok(())
        }
    }
}

/// To the code of that line, wherever it begins; of a line without code, to the next line with some.
async fn bind_line(
    session: &JavaSession,
    entry: &JavaBreakpoint,
    line: i32,
    classes: &[&Arc<JavaClass>],
) -> Answer<()> {
    let mut code = Vec::new();
    for class in classes {
        for (method, lines) in session.vm.all_lines(class).await? {
            // A line without code: the next one of the method around it. Others belong to code that is not loaded yet.
            let begins_before = lines.iter().any(|at| at.line < line);
            for at in lines.iter().filter(|at| at.line == line || (at.line > line && begins_before)) {
                let (type_tag, class) = (class.type_tag, class.id);
                code.push((at.line, CodeLocation { type_tag, class, method, index: at.index }));
            }
        }
    }
    // A line of another class may be nearer than the one that it was bound to before.
    let nearest = code.iter().map(|(line, _)| *line).min();
    let Some(nearest) = nearest.filter(|nearest| entry.line.is_none_or(|bound| *nearest <= bound)) else {
        return Ok(());
    };
    if entry.line.is_some_and(|bound| bound != nearest) {
        let outdated = session.with_tables(|tables| {
            let entry = tables.breakpoints.entries.get_mut(&entry.id);
            entry.map(|entry| std::mem::take(&mut entry.bound)).unwrap_or_default()
        });
        for BoundRequest { kind, request, .. } in outdated {
            session.vm.request(&ClearEventRequest { kind, request }).await?;
        }
    }
    let found = code.into_iter().filter(|(line, _)| *line == nearest).map(|(_, location)| location).collect();
    let chosen = choose_code(session, &entry.place, nearest, found).await?;
    let mut bound = Vec::new();
    for location in chosen.locations {
        bind_location(session, entry.id, location).await?;
        bound.extend(classes.iter().find(|class| class.id == location.class));
    }
    let older_code = find_older_code(session, &entry.place, &bound).await?;
    session.with_tables(|tables| {
        if let Some(entry) = tables.breakpoints.entries.get_mut(&entry.id) {
            entry.line = Some(nearest);
            entry.is_column_met |= chosen.is_column_met;
            entry.older_code = older_code.or(entry.older_code.take());
        }
    });
    Ok(())
}

async fn bind_location(session: &JavaSession, id: i64, location: CodeLocation) -> Answer<()> {
    let is_bound = session.with_tables(|tables| {
        let entry = tables.breakpoints.entries.get(&id);
        entry.is_some_and(|entry| entry.bound.iter().any(|bound| bound.location == Some(location)))
    });
    if !is_bound {
        let modifiers = vec![EventModifier::LocationOnly(location)];
        bind_request(session, id, EventKind::Breakpoint, modifiers, Some(location)).await?;
    }
    Ok(())
}

async fn bind_request(
    session: &JavaSession,
    id: i64,
    kind: EventKind,
    modifiers: Vec<EventModifier>,
    location: Option<CodeLocation>,
) -> Answer<()> {
    let policy = SuspendPolicy::EventThread;
    let request = session.vm.request(&SetEventRequest { kind, policy, modifiers }).await?;
    let bound = BoundRequest { kind, request, location };
    session.with_tables(|tables| tables.breakpoints.record_request(id, bound));
    Ok(())
}

async fn bind_function(session: &JavaSession, id: i64, function: &FunctionName, class: &Arc<JavaClass>) -> Answer<()> {
    let name = class.name();
    for method in session.vm.methods(class).await?.iter().filter(|it| function.is_method(&it.name, &name)) {
        let lines = session.vm.lines(class, method.id).await?;
        // An abstract or native method has no code.
        let Some(first) = lines.first() else { continue };
        if function.at_exit {
            // Once for each class: which method it is, is in the event.
            let modifiers = vec![EventModifier::ClassOnly(class.id)];
            bind_request(session, id, EventKind::MethodExitWithReturnValue, modifiers, None).await?;
            return Ok(());
        }
        let (type_tag, class, method) = (class.type_tag, class.id, method.id);
        bind_location(session, id, CodeLocation { type_tag, class, method, index: first.index }).await?;
    }
    Ok(())
}

async fn bind_field(
    session: &JavaSession,
    id: i64,
    class: &Arc<JavaClass>,
    name: &str,
    (reads, writes): (bool, bool),
) -> Answer<()> {
    let Some(found) = session.vm.find_field(class, name).await? else { return Ok(()) };
    for (is_wanted, kind) in [(reads, EventKind::FieldAccess), (writes, EventKind::FieldModification)] {
        if is_wanted {
            let modifiers = vec![EventModifier::FieldOnly { class: found.class.id, field: found.field.id }];
            bind_request(session, id, kind, modifiers, None).await?;
        }
    }
    Ok(())
}

/// Binds breakpoints anew in redefined classes, in which the virtual machine has cleared them.
pub(crate) async fn rebind_classes(
    session: &JavaSession,
    ids: &[ReferenceTypeId],
    classes: &[Arc<JavaClass>],
) -> Answer<()> {
    for BoundRequest { kind, request, .. } in session.with_tables(|tables| tables.breakpoints.unbind_classes(ids)) {
        // The virtual machine may have cleared it.
        let _ = session.vm.request(&ClearEventRequest { kind, request }).await;
    }
    for class in classes {
        bind_to_prepared(session, class).await?;
    }
    Ok(())
}

/// Ends the run after one stop of a breakpoint that was not the client's.
pub(crate) async fn remove_breakpoint(session: &JavaSession, id: i64) -> Answer<()> {
    replace_breakpoints(session, |entry| entry.id == id, Vec::new()).await.map(drop)
}

/// The place of a line breakpoint; the package of the file with slashes, if the file could be read.
pub(crate) fn line_place(path: &Path, at: &SourceBreakpoint, package: Option<String>) -> BreakpointPlace {
    let line = i32::try_from(at.line).unwrap_or(i32::MAX);
    let column = at.column.and_then(|column| usize::try_from(column).ok());
    BreakpointPlace::Line { path: path.to_owned(), line, package, column }
}

/// Whether a breakpoint may be in a class of that signature, as far as the name of the class tells.
fn may_be_in(place: &BreakpointPlace, signature: &str) -> bool {
    match place {
        BreakpointPlace::Line { package: Some(package), .. } => package == package_path(signature),
        BreakpointPlace::Line { package: None, .. } => !is_jdk_class(signature),
        BreakpointPlace::Function(function) => match function.class {
            None => !is_jdk_class(signature),
            Some(_) => function.is_of_class(&super::signatures::type_name(signature)),
        },
        BreakpointPlace::ClassLine { class, .. } => is_class_around(&super::signatures::type_name(signature), class),
        BreakpointPlace::Field { class, .. } | BreakpointPlace::Entry { class } => {
            is_class_named(&super::signatures::type_name(signature), class)
        }
    }
}

fn describe_breakpoint(entry: &JavaBreakpoint) -> DapBreakpoint {
    let verified = !entry.bound.is_empty();
    let (source, line) = match &entry.place {
        BreakpointPlace::Line { path, line, .. } => {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let path = Some(path.to_string_lossy().into_owned());
            (Some(DapSource { name, path, ..DapSource::default() }), Some(i64::from(entry.line.unwrap_or(*line))))
        }
        BreakpointPlace::ClassLine { line, .. } => (None, Some(i64::from(entry.line.unwrap_or(*line)))),
        _ => (None, None),
    };
    let has_column = matches!(&entry.place, BreakpointPlace::Line { column: Some(_), .. });
    let ignored_column = (has_column && !entry.is_column_met).then_some(IGNORED_COLUMN);
    let unbound = || match &entry.place {
        BreakpointPlace::Line { .. } => "no loaded class has code there yet".to_owned(),
        BreakpointPlace::Function(function) => format!("no loaded class has a method {} yet", function.method),
        BreakpointPlace::Field { class, field, .. } => format!("no loaded class {class} has a field {field} yet"),
        BreakpointPlace::ClassLine { class, .. } => format!("no loaded class {class} has code there yet"),
        BreakpointPlace::Entry { .. } => String::new(),
    };
    let message = if verified { ignored_column.map(str::to_owned) } else { Some(unbound()) };
    let reason = (!verified).then(|| "pending".to_owned());
    let older_code = entry.older_code.as_ref().map(|code| code.to_string_lossy().into_owned());
    let ignores_column = (verified && ignored_column.is_some()).then_some(true);
    let (id, column) = (Some(entry.id), None);
    DapBreakpoint { verified, id, message, source, line, column, reason, older_code, ignores_column }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_breakpoint_says_that_it_has_no_column() {
        let described = |column: Option<i64>, is_bound: bool| {
            let at = SourceBreakpoint { line: 3, column, ..SourceBreakpoint::default() };
            let bound = BoundRequest { kind: EventKind::Breakpoint, request: 1, location: None };
            describe_breakpoint(&JavaBreakpoint {
                id: 1,
                place: line_place(Path::new("/App.java"), &at, None),
                conditions: StopConditions::default(),
                hits: 0,
                bound: if is_bound { vec![bound] } else { Vec::new() },
                line: Some(3),
                is_column_met: false,
                older_code: None,
            })
        };
        let message = |column, is_bound| described(column, is_bound).message;
        assert_eq!(message(Some(5), true).as_deref(), Some(IGNORED_COLUMN));
        assert_eq!(message(None, true), None);
        assert_eq!(message(Some(5), false).as_deref(), Some("no loaded class has code there yet"));
    }
}
