//! Functions that V8 does not optimise, since the engine has paused in them without a breakpoint: by a step, a pause, or at the
//! start of a worker (Node 20, 24 and 26). A breakpoint that is set in such a function and removed makes V8 optimise it again.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;

use super::isolate::Isolate;
use crate::cdp::debugger::{PausedEvent, RemoveBreakpoint, ScriptLocation, SetScriptBreakpoint};

/// How many functions of an isolate are kept. The others stay slow as long as the debugger is there.
const MAX_KEPT: usize = 100;
/// How long an isolate may take for one of them.
const CALL_TIMEOUT: Duration = Duration::from_millis(500);

/// The functions of an isolate in which it has paused since it ran last: the script, the line and the column where each begins,
/// and a place in it.
#[derive(Default)]
pub struct SlowedFunctions(BTreeMap<(String, i64, i64), ScriptLocation>);

impl SlowedFunctions {
    /// Records the function of a pause, unless it is at a breakpoint.
    pub fn record(&mut self, event: &PausedEvent) {
        let Some(top) = event.call_frames.first().filter(|_| event.hit_breakpoints.is_empty()) else { return };
        let begin = top.function_location.as_ref().unwrap_or(&top.location);
        let key = (begin.script_id.clone(), begin.line_number, begin.column_number);
        if self.0.len() < MAX_KEPT || self.0.contains_key(&key) {
            self.0.insert(key, top.location.clone());
        }
    }
}

/// Before an isolate that is paused runs: its functions are as fast as they would be without the pauses.
pub async fn restore_speed(isolate: &Isolate) {
    let SlowedFunctions(slowed) = isolate.with_state(|state| std::mem::take(&mut state.slowed));
    let restored = slowed.into_values().map(|location| async {
        // Refused where a breakpoint is: its function is slow until that is removed. Fails when the isolate has ended.
        let set = isolate.call_within(&SetScriptBreakpoint { location, condition: None }, CALL_TIMEOUT).await;
        if let Ok(set) = set {
            let _ = isolate.send(&RemoveBreakpoint { breakpoint_id: set.breakpoint_id }).await;
        }
    });
    join_all(restored).await;
}
