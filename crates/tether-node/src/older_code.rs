//! Whether a script is older than the source that it was made of. Does not bind breakpoints.

use std::path::Path;

use tether_base::bounded_file::{self, Links};
use tether_base::file_age::is_older;
use tether_base::sync::run_blocking;

use super::breakpoint_table::NodeBreakpoint;
use super::session::NodeSession;
use super::source_maps::{MAX_MAP, ScriptMap};

/// Records that a script is older than the file of a breakpoint, and was made of another text than the file has now.
pub(crate) async fn find_older_code(session: &NodeSession, entry: &NodeBreakpoint, script: &Path, map: &ScriptMap) {
    let Some(file) = entry.file().filter(|file| *file != script).map(Path::to_owned) else { return };
    let (code, text) = (script.to_owned(), map.text_of(&file).map(str::to_owned));
    let is_older = run_blocking(move || {
        let has_text =
            |text: String| bounded_file::read_text(&file, MAX_MAP, Links::Follow).is_ok_and(|now| now == text);
        is_older(&code, &file) && !text.is_some_and(has_text)
    });
    if is_older.await {
        session.with_breakpoints(|breakpoints| {
            if let Some(entry) = breakpoints.entries.get_mut(&entry.id) {
                entry.older_code = Some(script.to_owned());
            }
        });
    }
}
