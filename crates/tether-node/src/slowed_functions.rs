//! Functions that V8 does not optimise, since a step has ended in them, or a worker has paused in them at its start (Node 20, 24
//! and 26). A breakpoint that is set in such a function and removed makes V8 optimise it again.

use std::collections::BTreeMap;

use tether_cdp::debugger::{PausedEvent, ScriptLocation};

/// How many functions of an isolate are kept. The others stay slow as long as the debugger is there.
const MAX_KEPT: usize = 100;

/// The functions of an isolate in which it has paused since it ran last: the script, the line and the column where each begins,
/// and a place in it.
#[derive(Default)]
pub(crate) struct SlowedFunctions(BTreeMap<(String, i64, i64), ScriptLocation>);

impl SlowedFunctions {
    /// A place in each of them; none is kept.
    pub(crate) fn take_places(&mut self) -> impl Iterator<Item = ScriptLocation> + use<> {
        std::mem::take(&mut self.0).into_values()
    }

    /// Records the function of a pause, unless it is at a breakpoint: that leaves it fast. Other pauses may do so, too.
    pub(crate) fn record(&mut self, event: &PausedEvent) {
        let Some(top) = event.call_frames.first().filter(|_| event.hit_breakpoints.is_empty()) else { return };
        let begin = top.function_location.as_ref().unwrap_or(&top.location);
        let key = (begin.script_id.clone(), begin.line_number, begin.column_number);
        if self.0.len() < MAX_KEPT || self.0.contains_key(&key) {
            self.0.insert(key, top.location.clone());
        }
    }
}
