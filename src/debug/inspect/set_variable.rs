//! Setting variables: by `setVariable` where the variable is found, else by `setExpression`.

use super::request_error::abbreviate;
use super::scoped_id::ScopedId;
use super::variables::VariableParent;
use crate::dap::types::{SetExpressionArguments, SetVariableArguments, SetVariableResponse};
use crate::debug::session::debug_session::DebugSession;
use crate::error::{Error, ErrorKind, Result};

impl DebugSession {
    /// Sets a variable of a frame's scopes, or of a structured value.
    pub async fn set_variable(
        &self,
        name: &str,
        value: &str,
        parent: &VariableParent,
    ) -> Result<(ScopedId, SetVariableResponse)> {
        let (name_owned, value_owned) = (name.to_owned(), value.to_owned());
        let cannot = |cause| self.request_error(&format!("set `{}`", abbreviate(name)), cause);
        // An adapter may exit at a request that it does not support (rdbg).
        let set = async |reference: ScopedId| {
            if self.client(reference.target).is_none() {
                let error = Error::new(ErrorKind::NotFound, format!("there is no value {}", reference.to_external()));
                return Err(error.hint("`tether debug variables` lists the references of this stop"));
            }
            if !self.target(reference.target).capabilities().can("supportsSetVariable") {
                let error = Error::usage(format!("cannot set `{}`", abbreviate(name)));
                let error = error.because("this adapter cannot set variables");
                return Err(error.hint(format!("`tether debug evaluate '{name} = {value}'` may do it")));
            }
            let request = SetVariableArguments {
                variables_reference: reference.id,
                name: name_owned.clone(),
                value: value_owned.clone(),
                ..SetVariableArguments::default()
            };
            let answer = self.request(reference.target, &request).await;
            self.shared.with_state(|state| state.stop_cache.clear_frames());
            let answer = answer.map_err(cannot)?;
            Ok((reference.with_id(answer.variables_reference.unwrap_or_default()), answer))
        };
        if let Some(reference) = parent.reference {
            return set(reference).await;
        }
        let frame = self.resolve_frame(parent.frame).await?;
        for scope in self.scopes(frame).await?.into_iter().filter(|scope| !scope.expensive) {
            let reference = frame.with_id(scope.variables_reference);
            let variables = self.read_variables(reference).await?;
            if variables.iter().any(|variable| variable.name == name) {
                return set(reference).await;
            }
        }
        if !self.target(frame.target).capabilities().can("supportsSetExpression") {
            let error =
                Error::new(ErrorKind::NotFound, format!("there is no variable `{}` in this frame", abbreviate(name)));
            return Err(error.hint("`tether debug variables` lists them"));
        }
        let request = SetExpressionArguments {
            expression: name.to_owned(),
            value: value.to_owned(),
            frame_id: Some(frame.id),
            ..SetExpressionArguments::default()
        };
        let answer = self.request(frame.target, &request).await;
        self.shared.with_state(|state| state.stop_cache.clear_frames());
        let answer = answer.map_err(cannot)?;
        Ok((frame.with_id(answer.variables_reference.unwrap_or_default()), answer))
    }
}
