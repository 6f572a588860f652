//! What the inspector of an isolate sends, and who handles it: scripts, pauses, breakpoints, the console, our own reports.

use std::sync::Arc;

use tether_backend::Answer;
use tether_cdp::CdpEvent;
use tether_cdp::debugger::{BreakpointResolved, ParsedScript, PausedEvent, ScriptPosition, SetBlackboxedRanges};
use tether_cdp::events::{BindingCalled, ConsoleApiCalled, ExceptionThrown, ExecutionContextDestroyed};
use tether_cdp::types::RemoteObject;
use tether_dap::types::{ContinuedEvent, LoadedSourceEvent};

use super::breakpoint_code::ProgramReport;
use super::breakpoint_table::{NodeBreakpoint, NodeBreakpointTable};
use super::isolate::Isolate;
use super::scripts::LoadedScript;
use super::session::NodeSession;
use super::{breakpoints, frames, map_loading, module_announcements, release, stops};

/// The packages that throw failed assertions, for mocha, vitest, jest and Playwright.
const ASSERTION_PACKAGES: [&str; 6] =
    ["chai", "@vitest/expect", "expect", "@jest/expect-utils", "playwright", "assert"];

/// The context of the main script of a process.
const MAIN_CONTEXT: i64 = 1;

/// Handles what the inspector of an isolate has sent.
pub(crate) async fn handle_engine_event(session: &NodeSession, isolate: &Arc<Isolate>, event: CdpEvent) -> Answer<()> {
    match event.method.as_str() {
        "Debugger.scriptParsed" => {
            let parsed = event.parse_as::<ParsedScript>("Debugger.scriptParsed");
            if let Some(script) = parsed.and_then(|parsed| add_script(session, isolate, &parsed)) {
                handle_parsed(session, isolate, &script).await?;
            }
        }
        "Debugger.paused" => {
            if let Some(paused) = event.parse_as::<PausedEvent>("Debugger.paused") {
                stops::handle_paused(session, isolate, paused).await?;
            }
        }
        "Debugger.resumed" => handle_resumed(session, isolate).await,
        "Debugger.breakpointResolved" => {
            if let Some(resolved) = event.parse_as::<BreakpointResolved>("Debugger.breakpointResolved") {
                breakpoints::handle_resolved(session, isolate, &resolved).await;
            }
        }
        // It has finished, and waits until its debugger has left.
        "NodeRuntime.waitingForDisconnect" => {
            release::release_workers(isolate).await;
            isolate.connection.close();
        }
        // As above, of runtimes that do not say so, such as Deno.
        "Runtime.executionContextDestroyed" if isolate.is_main() && !isolate.is_web() => {
            let destroyed = event.parse_as::<ExecutionContextDestroyed>("Runtime.executionContextDestroyed");
            if destroyed.is_some_and(|context| context.execution_context_id == MAIN_CONTEXT) {
                release::release_workers(isolate).await;
                isolate.connection.close();
            }
        }
        // Another document is shown.
        "Runtime.executionContextsCleared" => breakpoints::forget_scripts(session, isolate).await,
        "Runtime.bindingCalled" => {
            if let Some(called) = event.parse_as::<BindingCalled>("Runtime.bindingCalled") {
                handle_report(session, isolate, &called).await;
            }
        }
        // What is launched is heard at its pipes.
        "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" if !module_announcements::is_attached(session) => {}
        "Runtime.consoleAPICalled" => {
            if let Some(called) = event.parse_as::<ConsoleApiCalled>("Runtime.consoleAPICalled") {
                print_console(session, &called).await;
            }
        }
        "Runtime.exceptionThrown" => {
            if let Some(thrown) = event.parse_as::<ExceptionThrown>("Runtime.exceptionThrown") {
                session.print("stderr", &format!("{}\n", thrown.exception_details.text())).await;
            }
        }
        _ => {}
    }
    Ok(())
}

fn add_script(session: &NodeSession, isolate: &Isolate, parsed: &ParsedScript) -> Option<Arc<LoadedScript>> {
    let path = session.maps.script_file(&parsed.url);
    isolate.with_state(|state| state.scripts.add(parsed, path, &session.skip))
}

async fn handle_report(session: &NodeSession, isolate: &Isolate, called: &BindingCalled) {
    if called.name != session.binding {
        return;
    }
    match serde_json::from_str(&called.payload) {
        Ok(ProgramReport::Log { text, breakpoint }) => {
            let count =
                |all: &mut NodeBreakpointTable| all.entries.get_mut(&breakpoint).is_none_or(NodeBreakpoint::count_hit);
            if session.with_breakpoints(count) {
                session.print("console", &format!("{text}\n")).await;
            }
        }
        Ok(ProgramReport::ConditionError { condition, reason }) => {
            session.report_condition_failure(&condition, reason).await;
        }
        Ok(ProgramReport::Script { file, map, number }) => {
            map_loading::prepare_script(session, isolate, file, map).await;
            module_announcements::let_go(session, isolate, number).await;
        }
        Ok(ProgramReport::WorkerEnds { thread }) => release::let_workers_end(session, isolate, thread).await,
        // Called by the program itself.
        Err(_) => {}
    }
}

async fn print_console(session: &NodeSession, called: &ConsoleApiCalled) {
    let category = if matches!(called.kind.as_str(), "error" | "warning" | "assert") { "stderr" } else { "stdout" };
    let words: Vec<String> = called.args.iter().map(RemoteObject::text).collect();
    session.print(category, &format!("{}\n", words.join(" "))).await;
}

async fn handle_parsed(session: &NodeSession, isolate: &Isolate, script: &Arc<LoadedScript>) -> Answer<()> {
    if script.path.is_some() && !session.is_hook(script) {
        let loaded =
            LoadedSourceEvent { reason: "new".to_owned(), source: frames::script_source(session, isolate.id, script) };
        // Fails when the client has gone, which ends the session.
        let _ = session.dap.send_event(&loaded).await;
    }
    if script.is_skipped && !script.is_internal() && !throws_wanted_assertions(session, script) {
        let positions = vec![ScriptPosition::default()];
        // A program may load hundreds of them while we wait for one response.
        isolate.send(&SetBlackboxedRanges { script_id: script.id.clone(), positions }).await?;
    }
    // Not every script with a map waits for us.
    map_loading::load_map(session, isolate, script).await;
    breakpoints::bind_in_new_version(session, isolate, script).await;
    Ok(())
}

/// Whether failed assertions are thrown in a script, and are to stop: the engine reports none that is thrown, and caught, in a
/// script that it passes over.
fn throws_wanted_assertions(session: &NodeSession, script: &LoadedScript) -> bool {
    let path = script.path.as_deref().map(|path| path.to_string_lossy()).unwrap_or_default();
    session.with_settings(|settings| settings.stops_at_assertions)
        && ASSERTION_PACKAGES.iter().any(|package| path.contains(&format!("/node_modules/{package}/")))
}

async fn handle_resumed(session: &NodeSession, isolate: &Isolate) {
    let was_reported = isolate.with_state(|state| state.pause.take().is_some());
    session.forget_pause(isolate.id);
    if was_reported {
        // By another client of the inspector: our own requests forget the pause before.
        let continued = ContinuedEvent { thread_id: isolate.id, all_threads_continued: Some(false) };
        let _ = session.dap.send_event(&continued).await;
    }
}
