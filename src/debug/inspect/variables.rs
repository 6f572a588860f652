//! The variables of a frame's scopes or of a structured value.

use futures_util::future::join_all;

use super::scoped_id::ScopedId;
pub use crate::dap::types::DapVariable;
use crate::dap::types::{DapScope, VariablesArguments};
use crate::debug::session::debug_session::DebugSession;
use crate::error::Result;

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

impl DebugSession {
    /// The variables of a frame, scope by scope (without those that are expensive to read), or of a structured value.
    pub async fn variables(&self, parent: &VariableParent) -> Result<Vec<VariableGroup>> {
        if let Some(reference) = parent.reference {
            let variables = self.read_variables(reference).await?;
            return Ok(vec![VariableGroup { scope: None, target: reference.target, variables }]);
        }
        let frame = self.resolve_frame(parent.frame).await?;
        let all = self.scopes(frame).await?;
        // At module level some adapters have global variables only.
        let any = all.iter().any(is_local);
        let scopes: Vec<DapScope> = all.into_iter().filter(|it| is_local(it) || (!any && !it.expensive)).collect();
        let read = scopes.iter().map(|scope| self.read_variables(frame.with_id(scope.variables_reference)));
        let mut groups = Vec::new();
        for (scope, variables) in scopes.iter().zip(join_all(read).await) {
            groups.push(VariableGroup { scope: Some(scope.name.clone()), target: frame.target, variables: variables? });
        }
        Ok(groups)
    }

    /// All variables of a scope or a structured value, elements first.
    pub(in crate::debug) async fn read_variables(&self, reference: ScopedId) -> Result<Vec<DapVariable>> {
        let generation = self.snapshot().generation;
        let all = VariablesArguments { variables_reference: reference.id, ..VariablesArguments::default() };
        let mut variables = self.request_variables(reference, &all).await?;
        // Some adapters return elements only on a request for them (rdbg).
        let size = self.shared.with_state(|state| state.stop_cache.size(generation, reference));
        let indexed = size.map_or(0, |size| size.indexed);
        if (variables.len() as i64) < indexed {
            let mut elements = self.indexed_variables(reference, 0, indexed).await?;
            elements.append(&mut variables);
            variables = elements;
        }
        Ok(variables)
    }

    /// Sends `variables`, and keeps the sizes of the returned values.
    pub(in crate::debug) async fn request_variables(
        &self,
        reference: ScopedId,
        request: &VariablesArguments,
    ) -> Result<Vec<DapVariable>> {
        let generation = self.snapshot().generation;
        let answer = self.request(reference.target, request).await;
        let variables = answer.map_err(|cause| self.request_error("read the variables", cause))?.variables;
        self.shared.with_state(|state| {
            for it in &variables {
                let value = reference.with_id(it.variables_reference);
                state.stop_cache.insert_size(generation, value, it.indexed_variables, it.named_variables);
            }
        });
        Ok(variables)
    }
}

/// Whether a scope is cheap to read and holds local variables.
pub fn is_local(scope: &DapScope) -> bool {
    let name = scope.name.to_lowercase();
    let wide = ["global", "static", "register"].iter().any(|word| name.starts_with(word));
    !scope.expensive && !wide && scope.presentation_hint.as_deref() != Some("registers")
}
