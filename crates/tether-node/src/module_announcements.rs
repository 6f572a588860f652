//! Has a program that was attached to announce its CommonJS modules before they are compiled, and the ends of its workers, as
//! one that was launched does by itself; and undoes that when it is left.

use std::path::PathBuf;
use std::time::Duration;

use tether_cdp::debugger::EvaluateInGlobalScope;
use tokio::time::{sleep, timeout};

use super::dependency_packages::packages_key;
use super::isolate::Isolate;
use super::isolate_host::IsolateHost;
use super::session::NodeSession;

const ANNOUNCE: &str = concat!(include_str!("announce_maps.cjs"), include_str!("announce_worker_ends.cjs"));
/// How long a program may take; one that is too busy announces nothing.
const EVALUATE_TIMEOUT: Duration = Duration::from_secs(1);
/// Between two tries.
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// How the script is called that announces, by the name of the session's function.
pub(crate) fn announcing_script(binding: &str) -> PathBuf {
    PathBuf::from(format!("/{binding}/announce_maps.cjs"))
}

/// Has the modules of a program announced; in a program without `require` none are. While Node itself starts, `require`
/// throws: it is tried again, for at most [`EVALUATE_TIMEOUT`].
pub(crate) async fn announce_modules(session: &NodeSession, isolate: &Isolate) {
    let (binding, script) = (&session.binding, announcing_script(&session.binding));
    let undo = undo_function(binding);
    let announced = if isolate.is_main() { "announceMaps, announceWorkerEnds" } else { "announceMaps" };
    let install = format!(
        "{ANNOUNCE}const undo = [{announced}].map((announce) => announce(require, {binding:?}));\
         Object.defineProperty(globalThis, {undo}, {{configurable: true, value: undo}});"
    );
    let expression = format!(
        "if (typeof require === 'function') ((require) => {{{install}}})(require)\n//# sourceURL=file://{}",
        script.display()
    );
    let installed = timeout(EVALUATE_TIMEOUT, async {
        while let Err(cause) = evaluate_with_require(isolate, expression.clone()).await {
            tracing::debug!("modules are not announced yet: {cause}");
            sleep(RETRY_PAUSE).await;
        }
    });
    if installed.await.is_err() {
        tracing::debug!("modules are not announced: the program has thrown or was busy for {EVALUATE_TIMEOUT:?}");
    }
}

/// Lets an isolate go that has announced a module and waits.
pub(crate) async fn let_go(session: &NodeSession, isolate: &Isolate, number: u32) {
    let key = format!("Symbol.for({:?})", format!("{}.release", session.binding));
    let expression = format!("globalThis[{key}]?.({number})");
    let evaluate = EvaluateInGlobalScope { expression, disable_breaks: true, ..EvaluateInGlobalScope::default() };
    // Fails when it has ended.
    let _ = isolate.send(&evaluate).await;
}

/// Whether the programs of a session were attached to: those that are launched announce their modules by themselves.
pub(crate) fn is_attached(session: &NodeSession) -> bool {
    session.hook == Some(announcing_script(&session.binding))
}

/// As [`announce_modules`], in a worker of a program that was attached to.
pub(crate) async fn announce_worker_modules(session: &NodeSession, worker: &Isolate) {
    if is_attached(session) {
        announce_modules(session, worker).await;
    }
}

/// Undoes it.
pub(crate) async fn stop_announcing_modules(session: &NodeSession, isolate: &Isolate) {
    let (undo, packages) = (undo_function(&session.binding), packages_key(&session.binding));
    let expression = format!(
        "{{for (const undo of globalThis[{undo}] ?? []) undo(); delete globalThis[{undo}]; delete globalThis[{packages}];}}"
    );
    if let Err(cause) = evaluate_with_require(isolate, expression).await {
        tracing::debug!("modules are still announced: {cause}");
    }
}

/// Evaluates in a program of Node, and only there. `Err`: the text of what it has thrown.
async fn evaluate_with_require(isolate: &Isolate, expression: String) -> Result<(), String> {
    if isolate.host != IsolateHost::Node {
        return Ok(());
    }
    let evaluate =
        EvaluateInGlobalScope { expression, include_command_line_api: true, ..EvaluateInGlobalScope::default() };
    match isolate.call_within(&evaluate, EVALUATE_TIMEOUT).await {
        Ok(result) => result.exception_details.map_or(Ok(()), |details| Err(details.text())),
        Err(error) => {
            tracing::debug!("the program has not answered: {error}");
            Ok(())
        }
    }
}

/// A key that no property of the program has.
fn undo_function(binding: &str) -> String {
    format!("Symbol.for({:?})", format!("{binding}.undo"))
}
