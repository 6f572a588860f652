//! The variables of a frame's scopes or of a structured value.
//!
//! Large values are read part by part, where their adapter has reported how many elements they have. Elements come first,
//! by their index, then the named variables (an array's `length`).
//! debugpy reports no number, and has ranges instead: see `ranged_list`.

use futures_util::future::join_all;
use tether_base::error::Result;

use super::ranged_list::ranged_elements;
use super::ranged_list::{RangedList, count_from};
use super::scoped_id::ScopedId;
use super::stack::{list_scopes, resolve_frame};
use super::stop_cache::ValueSize;
use crate::debug::session::debug_session::DebugSession;
pub use tether_dap::types::DapVariable;
use tether_dap::types::{DapScope, VariablesArguments};

/// From how many elements on a value is not read as a whole.
const LARGE_VALUE: i64 = 1000;

/// The variables of one scope or one structured value.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableGroup {
    /// The name of the scope; none for a structured value.
    pub scope: Option<String>,
    /// The target of the variables' references.
    pub target: usize,
    /// In the adapter's order.
    pub variables: Vec<DapVariable>,
}

/// The frame or the structured value whose variables are meant.
#[derive(Clone, Debug, Default)]
pub struct VariableParent {
    /// A frame; without one the top frame of the primary stop.
    pub frame: Option<ScopedId>,
    /// A structured value, instead of a frame.
    pub reference: Option<ScopedId>,
}

/// The variables of a frame, scope by scope (without those that are expensive to read), or of a structured value.
pub async fn list_variables(session: &DebugSession, parent: &VariableParent) -> Result<Vec<VariableGroup>> {
    if let Some(reference) = parent.reference {
        let variables = read_variables(session, reference).await?;
        return Ok(vec![VariableGroup { scope: None, target: reference.target, variables }]);
    }
    let frame = resolve_frame(session, parent.frame).await?;
    let all = list_scopes(session, frame).await?;
    // At module level some adapters have global variables only.
    let any = all.iter().any(is_local);
    let scopes: Vec<DapScope> = all.into_iter().filter(|it| is_local(it) || (!any && !it.expensive)).collect();
    let read = scopes.iter().map(|scope| read_variables(session, frame.with_id(scope.variables_reference)));
    let mut groups = Vec::new();
    for (scope, variables) in scopes.iter().zip(join_all(read).await) {
        groups.push(VariableGroup { scope: Some(scope.name.clone()), target: frame.target, variables: variables? });
    }
    Ok(groups)
}

/// All variables of a scope or a structured value, elements first.
pub(in crate::debug) async fn read_variables(session: &DebugSession, reference: ScopedId) -> Result<Vec<DapVariable>> {
    let generation = session.snapshot().generation;
    let mut variables = request_variables(session, reference, VariablesArguments::default()).await?;
    // Some adapters return elements only on a request for them (rdbg).
    let size = session.shared.with_state(|state| state.stop_cache.size(generation, reference));
    let indexed = size.map_or(0, |size| size.indexed);
    if variables.len() < count_from(indexed) {
        let mut elements = indexed_variables(session, reference, 0, indexed).await?;
        elements.append(&mut variables);
        variables = elements;
    }
    Ok(variables)
}

/// A part of a value, and how many variables it has in all.
pub async fn variables_page(
    session: &DebugSession,
    reference: ScopedId,
    start: i64,
    count: i64,
) -> Result<(Vec<DapVariable>, usize)> {
    if let Some(size) = large_value_size(session, reference) {
        return large_value_page(session, reference, size, start, count).await;
    }
    let all = read_variables(session, reference).await?;
    let take = |from: Vec<DapVariable>, start: i64, count: i64| {
        from.into_iter().skip(count_from(start)).take(count_from(count))
    };
    let Some(list) = RangedList::find(&all) else {
        let total = all.len();
        return Ok((take(all, start, count).collect(), total));
    };
    let total = count_from(list.count).saturating_add(list.named.len());
    let mut found = ranged_elements(session, reference, &list, start, count).await?;
    let left = count_from(count).saturating_sub(found.len());
    let passed = count_from(start.saturating_sub(list.count));
    found.extend(list.named.into_iter().skip(passed).take(left));
    Ok((found, total))
}

async fn large_value_page(
    session: &DebugSession,
    reference: ScopedId,
    size: ValueSize,
    start: i64,
    count: i64,
) -> Result<(Vec<DapVariable>, usize)> {
    let (total, end) = (size.indexed.saturating_add(size.named), start.saturating_add(count));
    let mut found = Vec::new();
    if start < size.indexed {
        let until = end.min(size.indexed);
        found = indexed_variables(session, reference, start, until.saturating_sub(start)).await?;
    }
    if end > size.indexed && size.named > 0 {
        let passed = count_from(start.saturating_sub(size.indexed));
        let left = count_from(count).saturating_sub(found.len());
        found.extend(named_variables(session, reference).await?.into_iter().skip(passed).take(left));
    }
    Ok((found, count_from(total)))
}

/// The variables of a value with these names, an element by its index, up to the first that is not there.
pub async fn variables_by_name(
    session: &DebugSession,
    reference: ScopedId,
    names: &[String],
) -> Result<Vec<DapVariable>> {
    if let Some(size) = large_value_size(session, reference) {
        return large_value_by_name(session, reference, size, names).await;
    }
    let all = read_variables(session, reference).await?;
    let list = RangedList::find(&all);
    let mut found = Vec::new();
    for name in names {
        let element = list.as_ref().and_then(|list| Some((list, list.index_of(name)?)));
        let variable = match element {
            Some((list, index)) => ranged_elements(session, reference, list, index, 1).await?.pop(),
            None => all.iter().find(|it| it.name == *name).cloned(),
        };
        match variable {
            Some(variable) => found.push(variable),
            None => break,
        }
    }
    Ok(found)
}

async fn large_value_by_name(
    session: &DebugSession,
    reference: ScopedId,
    size: ValueSize,
    names: &[String],
) -> Result<Vec<DapVariable>> {
    let mut found = Vec::new();
    let mut named = None;
    for name in names {
        let index = name.trim_matches(['[', ']']).parse().ok().filter(|index| (0..size.indexed).contains(index));
        if let Some(index) = index {
            found.extend(indexed_variables(session, reference, index, 1).await?);
            continue;
        }
        if named.is_none() && size.named > 0 {
            named = Some(named_variables(session, reference).await?);
        }
        match named.iter().flatten().find(|it| it.name == *name) {
            Some(it) => found.push(it.clone()),
            None => break,
        }
    }
    Ok(found)
}

fn large_value_size(session: &DebugSession, reference: ScopedId) -> Option<ValueSize> {
    let generation = session.snapshot().generation;
    let size = session.shared.with_state(|state| state.stop_cache.size(generation, reference));
    size.filter(|size| size.indexed >= LARGE_VALUE)
}

/// The elements of a value, `count` from `start` on.
async fn indexed_variables(
    session: &DebugSession,
    reference: ScopedId,
    start: i64,
    count: i64,
) -> Result<Vec<DapVariable>> {
    let filter = Some("indexed".to_owned());
    let part = VariablesArguments { filter, start: Some(start), count: Some(count), ..Default::default() };
    let mut elements = request_variables(session, reference, part).await?;
    // js-debug returns the prototype with each part.
    elements.truncate(count_from(count));
    Ok(elements)
}

async fn named_variables(session: &DebugSession, reference: ScopedId) -> Result<Vec<DapVariable>> {
    let filter = Some("named".to_owned());
    request_variables(session, reference, VariablesArguments { filter, ..Default::default() }).await
}

/// Sends `variables` for a reference, and keeps the sizes of the returned values.
pub(super) async fn request_variables(
    session: &DebugSession,
    reference: ScopedId,
    part: VariablesArguments,
) -> Result<Vec<DapVariable>> {
    let generation = session.snapshot().generation;
    let request = VariablesArguments { variables_reference: reference.id, ..part };
    let answer = session.request(reference.target, &request).await;
    let variables = answer.map_err(|cause| session.request_error("read the variables", cause))?.variables;
    session.shared.with_state(|state| {
        for it in &variables {
            let value = reference.with_id(it.variables_reference);
            state.stop_cache.insert_size(generation, value, it.indexed_variables, it.named_variables);
        }
    });
    Ok(variables)
}

/// Whether a scope is cheap to read and holds local variables.
pub fn is_local(scope: &DapScope) -> bool {
    let name = scope.name.to_lowercase();
    let wide = ["global", "static", "register"].iter().any(|word| name.starts_with(word));
    !scope.expensive && !wide && scope.presentation_hint.as_deref() != Some("registers")
}
