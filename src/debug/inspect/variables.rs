//! The variables of a frame's scopes or of a structured value.

use futures_util::future::join_all;

use super::scoped_id::ScopedId;
pub use crate::dap::types::DapVariable;
use crate::dap::types::{DapScope, VariablesArguments};
use crate::debug::session::debug_session::DebugSession;
use crate::error::Result;
use crate::sync::lock;

/// The variables of one scope, or of one structured value.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableGroup {
    pub scope: Option<String>,
    pub target: usize,
    pub variables: Vec<DapVariable>,
}

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct VariableParent {
    /// A frame, or else the top frame of the primary stop.
    pub frame: Option<ScopedId>,
    /// A structured value.
    pub reference: Option<ScopedId>,
}

impl DebugSession {
    /// The variables of a frame, scope by scope (without those that are expensive to read), or of a structured value.
    pub async fn variables(&self, wish: &VariableParent) -> Result<Vec<VariableGroup>> {
        if let Some(reference) = wish.reference {
            let variables = self.read_variables(reference).await?;
            return Ok(vec![VariableGroup { scope: None, target: reference.target, variables }]);
        }
        let frame = self.resolve_frame(wish.frame).await?;
        let all = self.scopes(frame).await?;
        // At a module's level some adapters have global variables only.
        let any = all.iter().any(is_local);
        let scopes: Vec<DapScope> = all.into_iter().filter(|it| is_local(it) || (!any && !it.expensive)).collect();
        let read = scopes.iter().map(|scope| self.read_variables(frame.with_id(scope.variables_reference)));
        let mut groups = Vec::new();
        for (scope, variables) in scopes.iter().zip(join_all(read).await) {
            groups.push(VariableGroup { scope: Some(scope.name.clone()), target: frame.target, variables: variables? });
        }
        Ok(groups)
    }

    pub(in crate::debug) async fn read_variables(&self, reference: ScopedId) -> Result<Vec<DapVariable>> {
        let generation = self.snapshot().generation;
        let all = VariablesArguments { variables_reference: reference.id, ..VariablesArguments::default() };
        let mut variables = self.request_variables(reference, &all).await?;
        // Some tell elements only when they are asked for them (rdbg).
        let indexed = lock(&self.shared.shown).size(generation, reference).map_or(0, |size| size.indexed);
        if (variables.len() as i64) < indexed {
            let mut elements = self.indexed_variables(reference, 0, indexed).await?;
            elements.append(&mut variables);
            variables = elements;
        }
        Ok(variables)
    }

    pub(in crate::debug) async fn request_variables(
        &self,
        reference: ScopedId,
        request: &VariablesArguments,
    ) -> Result<Vec<DapVariable>> {
        let generation = self.snapshot().generation;
        let answer = self.request(reference.target, request).await;
        let variables = answer.map_err(|cause| self.request_error("read the variables", cause))?.variables;
        let mut shown = lock(&self.shared.shown);
        for it in &variables {
            shown.insert_size(
                generation,
                reference.with_id(it.variables_reference),
                it.indexed_variables,
                it.named_variables,
            );
        }
        drop(shown);
        Ok(variables)
    }
}

/// Scopes that are cheap to read, and hold what a reader means by the variables of a frame.
pub fn is_local(scope: &DapScope) -> bool {
    let name = scope.name.to_lowercase();
    let wide = ["global", "static", "register"].iter().any(|word| name.starts_with(word));
    !scope.expensive && !wide && scope.presentation_hint.as_deref() != Some("registers")
}
