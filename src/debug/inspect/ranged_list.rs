//! Long lists and tuples of Python: debugpy returns their first elements, and the others in ranges.
//!
//! ```text
//! 00000 … 00099, more ─▶ [100:1100], [1100:2100], … ─▶ 00100 … 01099
//! len()
//! ```
//! Any part is read with two more requests, however long the list is, and nothing of the program is called.

use tether_base::error::Result;
use tether_dap::types::VariablesArguments;

use super::scoped_id::ScopedId;
use super::variables::DapVariable;
use super::variables::request_variables;
use crate::debug::session::debug_session::DebugSession;

/// The name and the type of the variable that has the ranges.
const RANGES: (&str, &str) = ("more", "MoreItems");
/// The name of the variable that has the number of elements.
const LENGTH: &str = "len()";

/// A list of which the first elements are known.
#[derive(Clone, Debug, PartialEq)]
pub struct RangedList {
    first: Vec<DapVariable>,
    /// The reference of the ranges.
    ranges: i64,
    /// How many elements it has.
    pub count: i64,
    /// What it has besides elements.
    pub named: Vec<DapVariable>,
}

impl RangedList {
    /// The list with these variables inside; `None`: it is another value, or has no ranges.
    pub fn find(variables: &[DapVariable]) -> Option<RangedList> {
        let is_ranges = |it: &DapVariable| (it.name.as_str(), it.kind.as_deref()) == (RANGES.0, Some(RANGES.1));
        let ranges = variables.iter().find(|it| is_ranges(it))?.variables_reference;
        let count = variables.iter().find(|it| it.name == LENGTH)?.value.parse().ok().filter(|count| *count >= 0)?;
        let others = variables.iter().filter(|it| !is_ranges(it)).cloned();
        let (first, named) = others.partition(|it| it.name.parse::<u64>().is_ok());
        Some(RangedList { first, ranges, count, named })
    }

    /// The index of the element with that name: `00012`, `12`, `[12]`.
    pub fn index_of(&self, name: &str) -> Option<i64> {
        name.trim_matches(['[', ']']).parse().ok().filter(|index| (0..self.count).contains(index))
    }
}

/// A number of an adapter as one of items: none where it is negative.
pub(super) fn count_from(number: i64) -> usize {
    usize::try_from(number.max(0)).unwrap_or(usize::MAX)
}

/// `[100:1100]`
fn parse_range(name: &str) -> Option<(i64, i64)> {
    let (from, to) = name.strip_prefix('[')?.strip_suffix(']')?.split_once(':')?;
    Some((from.parse().ok()?, to.parse().ok()?))
}

/// The items whose index, counted from `first`, is in the range.
fn slice_of(items: Vec<DapVariable>, first: i64, (from, to): (i64, i64)) -> impl Iterator<Item = DapVariable> {
    let (skipped, taken) = (from.saturating_sub(first), to.saturating_sub(first.max(from)));
    items.into_iter().skip(count_from(skipped)).take(count_from(taken))
}

/// The elements of a list, `count` from `start` on. The reference is that of the list.
pub(super) async fn ranged_elements(
    session: &DebugSession,
    reference: ScopedId,
    list: &RangedList,
    start: i64,
    count: i64,
) -> Result<Vec<DapVariable>> {
    let wanted = (start, start.saturating_add(count).min(list.count));
    let mut found: Vec<DapVariable> = slice_of(list.first.clone(), 0, wanted).collect();
    if usize::try_from(wanted.1).is_ok_and(|to| to <= list.first.len()) {
        return Ok(found);
    }
    let all = VariablesArguments::default;
    let ranges = request_variables(session, reference.with_id(list.ranges), all()).await?;
    for range in ranges {
        let Some((from, to)) = parse_range(&range.name) else { continue };
        if to > wanted.0 && from < wanted.1 {
            let elements = request_variables(session, reference.with_id(range.variables_reference), all()).await?;
            found.extend(slice_of(elements, from, wanted));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, value: &str, kind: &str, variables_reference: i64) -> DapVariable {
        let kind = Some(kind.to_owned());
        DapVariable { name: name.into(), value: value.into(), kind, variables_reference, ..DapVariable::default() }
    }

    #[test]
    fn a_list_in_ranges_is_known_by_its_variables() {
        let mut variables = vec![
            variable("special variables", "", "", 9),
            variable("000", "a", "str", 0),
            variable("001", "b", "str", 0),
            variable("more", "...", "MoreItems", 11),
            variable("len()", "300", "int", 0),
        ];
        let list = RangedList::find(&variables).unwrap();
        assert_eq!((list.first.len(), list.ranges, list.count, list.named.len()), (2, 11, 300, 2));
        let index = |name| list.index_of(name);
        assert_eq!([index("007"), index("[7]"), index("300"), index("len()")], [Some(7), Some(7), None, None]);
        variables[4] = variable("len()", "-1", "int", 0);
        assert_eq!(RangedList::find(&variables), None, "no list has that length");
        variables[4] = variable("len()", "300", "int", 0);
        variables[3] = variable("more", "...", "list", 11);
        assert_eq!(RangedList::find(&variables), None, "a variable of the user's");
        assert_eq!((parse_range("[100:1100]"), parse_range("more")), (Some((100, 1100)), None));
    }

    #[test]
    fn a_slice_is_cut_at_both_ends() {
        let items: Vec<DapVariable> = (10..20).map(|number| variable(&number.to_string(), "", "", 0)).collect();
        let check = |wanted: (i64, i64), expect: &[&str]| {
            let names: Vec<String> = slice_of(items.clone(), 10, wanted).map(|it| it.name).collect();
            assert_eq!(names, expect, "{wanted:?}");
        };
        check((12, 14), &["12", "13"]);
        check((0, 12), &["10", "11"]);
        check((18, 30), &["18", "19"]);
        check((20, 30), &[]);
        check((0, 10), &[]);
        check((i64::MIN, i64::MIN), &[]);
        check((i64::MIN, 11), &["10"]);
        check((19, i64::MAX), &["19"]);
        check((i64::MAX, i64::MIN), &[]);
    }
}
