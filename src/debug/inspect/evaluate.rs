//! Evaluating expressions.

use super::request_error::abbreviate;
use super::scoped_id::ScopedId;
use crate::dap::types::{EvaluateArguments, EvaluateResponse};
use crate::debug::session::debug_session::DebugSession;
use crate::debug::session::snapshot::RunState;
use crate::error::Result;

impl DebugSession {
    /// Evaluates in a frame; without one in the top frame of the primary stop, or, while nothing is stopped, globally
    /// where the adapter can.
    pub async fn evaluate(
        &self,
        expression: &str,
        frame: Option<ScopedId>,
        context: &str,
    ) -> Result<(ScopedId, EvaluateResponse)> {
        let running = frame.is_none() && self.snapshot().run_state() != RunState::Stopped;
        let at = if running { self.newest_target()? } else { self.resolve_frame(frame).await? };
        let request = EvaluateArguments {
            expression: expression.to_owned(),
            frame_id: (!running).then_some(at.id),
            context: Some(context.to_owned()),
            ..EvaluateArguments::default()
        };
        let generation = self.snapshot().generation;
        let answer = self.request(at.target, &request).await;
        self.shared.with_state(|state| state.stop_cache.clear_frames());
        let answer = answer.map_err(|cause| {
            let error = self.request_error(&format!("evaluate `{}`", abbreviate(expression)), cause);
            if running { error.hint("the program runs: `tether debug pause` stops it in a frame") } else { error }
        })?;
        let value = at.with_id(answer.variables_reference);
        self.shared.with_state(|state| {
            state.stop_cache.insert_size(generation, value, answer.indexed_variables, answer.named_variables)
        });
        Ok((value, answer))
    }

    /// The newest connected target: the one that runs the user's code.
    fn newest_target(&self) -> Result<ScopedId> {
        let last = (0..self.snapshot().targets.len()).rev().find(|id| self.client(*id).is_some());
        last.map(|target| ScopedId { target, id: 0 }).ok_or_else(|| self.not_stopped_error())
    }
}
