//! Has a program that was attached to announce its CommonJS modules before they are compiled, as one that was launched does
//! by itself; and undoes that when it is left.

use std::path::PathBuf;
use std::time::Duration;

use super::isolate::{Isolate, IsolateHost};
use super::session::NodeSession;
use crate::cdp::debugger::EvaluateInGlobalScope;

const ANNOUNCE_MAPS: &str = include_str!("announce_maps.cjs");
/// How long a program may take; one that is too busy announces nothing.
const EVALUATE_TIMEOUT: Duration = Duration::from_secs(1);

/// How the script is called that announces, by the name of the session's function.
pub fn announcing_script(binding: &str) -> PathBuf {
    PathBuf::from(format!("/{binding}/announce_maps.cjs"))
}

impl NodeSession {
    /// Has the modules of a program announced. In a program without `require` nothing is.
    pub async fn announce_modules(&self, isolate: &Isolate) {
        let (binding, script) = (&self.binding, announcing_script(&self.binding));
        let undo = undo_function(binding);
        let install = format!(
            "{ANNOUNCE_MAPS}Object.defineProperty(globalThis, {undo}, {{configurable: true, value: announceMapsOfModules(require, {binding:?})}});"
        );
        let expression = format!("((require) => {{{install}}})(require)\n//# sourceURL=file://{}", script.display());
        self.evaluate_with_require(isolate, expression).await;
    }

    /// Undoes it.
    pub async fn stop_announcing_modules(&self, isolate: &Isolate) {
        let undo = undo_function(&self.binding);
        self.evaluate_with_require(isolate, format!("{{globalThis[{undo}]?.(); delete globalThis[{undo}];}}")).await;
    }

    async fn evaluate_with_require(&self, isolate: &Isolate, expression: String) {
        if isolate.host != IsolateHost::Node {
            return;
        }
        let evaluate =
            EvaluateInGlobalScope { expression, include_command_line_api: true, ..EvaluateInGlobalScope::default() };
        match isolate.session.call(&evaluate, EVALUATE_TIMEOUT).await {
            Ok(result) => {
                if let Some(details) = result.exception_details {
                    tracing::debug!("modules are not announced: {}", details.text());
                }
            }
            Err(error) => tracing::debug!("modules are not announced: {error}"),
        }
    }
}

/// A key that no property of the program has.
fn undo_function(binding: &str) -> String {
    format!("Symbol.for({:?})", format!("{binding}.undo"))
}
