//! Which code of a line a breakpoint is bound to: where the line begins in each method, and of those the one that a column
//! chooses. Does not bind it.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use tether_backend::Answer;
use tether_base::bounded_file::{self, Links};
use tether_jdwp::values::{CodeLocation, MethodId, ReferenceTypeId};

use super::blocking::run_blocking;
use super::breakpoint_table::BreakpointPlace;
use super::class_file::ConstantPool;
use super::expression::syntax::JavaExpression;
use super::frames;
use super::lambdas::{ColumnTarget, is_lambda_method, target_of_column};
use super::line_entries::MethodCode;
use super::session::{FrameSpot, JavaSession};

/// The largest source in which a column is looked for, in bytes.
const MAX_SOURCE: u64 = 4 << 20;

/// The code of a line.
pub(crate) struct ChosenCode {
    pub locations: Vec<CodeLocation>,
    /// A column has chosen among the lambdas of the line and the code around them.
    pub is_column_met: bool,
}

type MethodKey = (ReferenceTypeId, MethodId);

/// Of all parts of a line, in the order of the methods in their classes, those to stop at.
pub(crate) async fn choose_code(
    session: &JavaSession,
    place: &BreakpointPlace,
    line: i32,
    found: Vec<CodeLocation>,
) -> Answer<ChosenCode> {
    let mut methods: Vec<(MethodKey, Vec<CodeLocation>)> = Vec::new();
    for location in found {
        let key = (location.class, location.method);
        match methods.iter_mut().find(|(known, _)| *known == key) {
            Some((_, locations)) => locations.push(location),
            None => methods.push((key, vec![location])),
        }
    }
    for (_, locations) in &mut methods {
        if locations.len() > 1 {
            retain_entries(session, line, locations).await?;
        }
    }
    let chosen = match place {
        BreakpointPlace::Line { path, line: asked, column: Some(column), .. } if *asked == line => {
            methods_of_column(session, path, (line, *column), &methods).await?
        }
        _ => None,
    };
    let is_column_met = chosen.is_some();
    if let Some(chosen) = chosen {
        methods.retain(|(key, _)| chosen.contains(key));
    }
    Ok(ChosenCode { locations: methods.into_iter().flat_map(|(_, locations)| locations).collect(), is_column_met })
}

/// Keeps those of several parts of a line in a method at which the line begins. All, where its code cannot be read.
async fn retain_entries(session: &JavaSession, line: i32, locations: &mut Vec<CodeLocation>) -> Answer<()> {
    let Some(first) = locations.first().copied() else { return Ok(()) };
    let class = session.vm.class(first.class, first.type_tag).await?;
    let lines = session.vm.lines(&class, first.method).await?;
    let Some((code, pool)) = session.vm.code(&class, first.method).await? else { return Ok(()) };
    let read = || {
        let pool = ConstantPool::of_bytes(usize::try_from(pool.count).ok()?, &pool.bytes)?;
        Some(MethodCode::read(&code, pool, &lines)?.line_entries(line))
    };
    if let Some(entries) = read() {
        locations.retain(|location| entries.contains(&location.index));
    }
    Ok(())
}

/// The methods that a column means. `None`: the line has no lambdas, or they cannot be told apart.
async fn methods_of_column(
    session: &JavaSession,
    path: &Path,
    (line, column): (i32, usize),
    methods: &[(MethodKey, Vec<CodeLocation>)],
) -> Answer<Option<HashSet<MethodKey>>> {
    let path = path.to_owned();
    let target = run_blocking(move || {
        let text = bounded_file::read_text(&path, MAX_SOURCE, Links::Follow).ok()?;
        target_of_column(&text, usize::try_from(line).ok()?, column)
    });
    let Some(target) = target.await? else { return Ok(None) };
    let mut lambdas: BTreeMap<ReferenceTypeId, Vec<MethodKey>> = BTreeMap::new();
    let mut around = HashSet::new();
    for (key, locations) in methods {
        let Some(first) = locations.first() else { continue };
        let class = session.vm.class(key.0, first.type_tag).await?;
        let name = session.vm.method(&class, key.1).await?.map(|method| method.name).unwrap_or_default();
        let begins_here = session.vm.lines(&class, key.1).await?.first().is_some_and(|entry| entry.line == line);
        match begins_here && is_lambda_method(&name) {
            true => lambdas.entry(key.0).or_default().push(*key),
            false => drop(around.insert(*key)),
        }
    }
    let own = lambdas.into_values().collect::<Vec<_>>();
    let [own] = own.as_slice() else { return Ok(None) };
    Ok(match target {
        ColumnTarget::Lambda { number, count } if count == own.len() => {
            own.iter().rev().nth(number).map(|key| HashSet::from([*key]))
        }
        ColumnTarget::Around { count } if count == own.len() && !around.is_empty() => Some(around),
        _ => None,
    })
}

/// Whether a condition that cannot be evaluated in a frame is meant for another method of the same breakpoint, a lambda of the
/// line: its names are variables there, and not here.
pub(crate) async fn is_meant_for_other(
    session: &JavaSession,
    spot: FrameSpot,
    id: i64,
    condition: &JavaExpression,
) -> Answer<bool> {
    let bound = session.with_tables(|tables| tables.breakpoints.entries.get(&id).map(|entry| entry.bound.clone()));
    let here = frames::read_frame(session, spot).await?.location;
    let locations = bound.unwrap_or_default().into_iter().filter_map(|bound| bound.location);
    let own = variables_at(session, here).await?;
    let missing: Vec<&str> = condition.names().into_iter().filter(|name| !own.contains(*name)).collect();
    for other in locations.filter(|it| (it.class, it.method) != (here.class, here.method)) {
        let known = variables_at(session, other).await?;
        if missing.iter().any(|name| known.contains(*name)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The names of the variables that there are at a place in the code.
async fn variables_at(session: &JavaSession, location: CodeLocation) -> Answer<HashSet<String>> {
    let class = session.vm.class(location.class, location.type_tag).await?;
    let Some(table) = session.vm.variables(&class, location.method).await? else { return Ok(HashSet::new()) };
    let is_there = |from: u64, length: u32| (from..from.saturating_add(u64::from(length))).contains(&location.index);
    let there = table.variables.iter().filter(|it| is_there(it.index, it.length));
    Ok(there.map(|it| it.name.clone()).collect())
}
