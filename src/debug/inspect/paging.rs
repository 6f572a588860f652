//! Reads large values part by part, where their adapter has reported how many elements they have.
//!
//! Elements come first, by their index, then the named variables (an array's `length`).

use super::scoped_id::ScopedId;
use super::stop_cache::ValueSize;
use crate::dap::types::{DapVariable, VariablesArguments};
use crate::debug::session::debug_session::DebugSession;
use crate::error::Result;

/// From how many elements on a value is not read as a whole.
const LARGE_VALUE: i64 = 1000;

impl DebugSession {
    /// A part of a large value, and how many variables it has in all. `None`: it is not known to be large.
    pub async fn variables_page(
        &self,
        reference: ScopedId,
        start: i64,
        count: i64,
    ) -> Result<Option<(Vec<DapVariable>, i64)>> {
        let Some(size) = self.large_value_size(reference) else { return Ok(None) };
        let (total, end) = (size.indexed + size.named, start.saturating_add(count));
        let mut found = Vec::new();
        if start < size.indexed {
            let until = end.min(size.indexed);
            found = self.indexed_variables(reference, start, until - start).await?;
        }
        if end > size.indexed && size.named > 0 {
            let passed = (start - size.indexed).max(0) as usize;
            let left = (count as usize).saturating_sub(found.len());
            found.extend(self.named_variables(reference).await?.into_iter().skip(passed).take(left));
        }
        Ok(Some((found, total)))
    }

    /// The named variables of a big value, an element by its index, up to the first that is not there. `None`: it is not
    /// known to be big.
    pub async fn variables_by_name(&self, reference: ScopedId, names: &[String]) -> Result<Option<Vec<DapVariable>>> {
        let Some(size) = self.large_value_size(reference) else { return Ok(None) };
        let mut found = Vec::new();
        let mut named = None;
        for name in names {
            let index = name.trim_matches(['[', ']']).parse().ok().filter(|index| (0..size.indexed).contains(index));
            if let Some(index) = index {
                found.extend(self.indexed_variables(reference, index, 1).await?);
                continue;
            }
            if named.is_none() && size.named > 0 {
                named = Some(self.named_variables(reference).await?);
            }
            match named.iter().flatten().find(|it| it.name == *name) {
                Some(it) => found.push(it.clone()),
                None => break,
            }
        }
        Ok(Some(found))
    }

    fn large_value_size(&self, reference: ScopedId) -> Option<ValueSize> {
        let generation = self.snapshot().generation;
        let size = self.shared.with_state(|state| state.stop_cache.size(generation, reference));
        size.filter(|size| size.indexed >= LARGE_VALUE)
    }

    /// The elements of a value, `count` from `start` on.
    pub(in crate::debug) async fn indexed_variables(
        &self,
        reference: ScopedId,
        start: i64,
        count: i64,
    ) -> Result<Vec<DapVariable>> {
        let mut request = VariablesArguments { variables_reference: reference.id, ..VariablesArguments::default() };
        request.filter = Some("indexed".to_owned());
        (request.start, request.count) = (Some(start), Some(count));
        let mut elements = self.request_variables(reference, &request).await?;
        // js-debug returns the prototype with each part.
        elements.truncate(count as usize);
        Ok(elements)
    }

    async fn named_variables(&self, reference: ScopedId) -> Result<Vec<DapVariable>> {
        let mut request = VariablesArguments { variables_reference: reference.id, ..VariablesArguments::default() };
        request.filter = Some("named".to_owned());
        self.request_variables(reference, &request).await
    }
}
