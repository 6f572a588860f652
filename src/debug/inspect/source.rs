//! Source text of a frame: from its file or from the adapter.

use std::path::Path;

use tether_base::clipped_text::clip_counted;
use tether_base::error::Result;
use tether_dap::types::{DapSource, SourceArguments};

use super::frame::StackFrameInfo;
use super::scoped_id::ScopedId;
use super::stack::read_stack;
use super::value_limits::MAX_SUMMARY_CHARS;
use crate::debug::session::debug_session::DebugSession;
use crate::debug::session::source_memory::RunningSource;

/// How many frames of the primary stop are searched for the name of a source file.
const MAX_NAMING_FRAMES: i64 = 1000;

/// The text of a source that is in no file.
pub async fn source_text(session: &DebugSession, reference: ScopedId, source: Option<DapSource>) -> Result<String> {
    let request = SourceArguments { source_reference: reference.id, source };
    let answer = session.request(reference.target, &request).await;
    Ok(answer.map_err(|cause| session.request_error("read the source", cause))?.content)
}

/// Finds out whether a frame of the current stop, or the adapter by itself, has named this file, by one of these paths to it.
pub async fn find_named_source(session: &DebugSession, paths: &[&str]) -> bool {
    let generation = session.snapshot().generation;
    let is_known = |path: &&str| {
        session.shared.with_state(|state| state.stop_cache.has_frame_in(generation, path))
            || session.event_log().has_loaded_source(path)
    };
    if paths.iter().any(is_known) {
        return true;
    }
    let stack = read_stack(session, None, None, Some(MAX_NAMING_FRAMES)).await;
    let is_named = |path: Option<&str>| path.is_some_and(|path| paths.contains(&path));
    stack.is_ok_and(|stack| stack.frames.iter().any(|frame| is_named(frame.path())))
}

/// The text of a frame's source: of its file as it was loaded, or from the adapter.
pub async fn frame_source(session: &DebugSession, frame: &StackFrameInfo) -> Option<RunningSource> {
    if let Some(path) = frame.path()
        && let Ok(source) = session.shared.sources.load(Path::new(path)).await
    {
        return Some(source);
    }
    let id = frame.source.as_ref()?.source_reference.filter(|id| *id > 0)?;
    let text = source_text(session, ScopedId { target: frame.id.target, id }, frame.source.clone()).await.ok()?;
    Some(RunningSource { text: text.into(), change: None })
}

/// The text of a file that the program runs, if the file has changed since it was loaded.
pub async fn changed_source(session: &DebugSession, path: &Path) -> Option<RunningSource> {
    session.shared.sources.load_changed(path).await
}

/// A line of a text and `each_side` lines around it, numbered from 1 and clipped.
pub fn lines_around(text: &str, line: i64, each_side: i64) -> Vec<(i64, String)> {
    let first = line.saturating_sub(each_side).max(1);
    let last = line.saturating_add(each_side);
    let numbered = (1..).zip(text.lines()).skip_while(|(number, _)| *number < first);
    numbered.take_while(|(number, _)| *number <= last).map(|(number, text)| (number, summary_line(text))).collect()
}

/// One line of at most [`MAX_SUMMARY_CHARS`] characters.
pub fn summary_line(text: &str) -> String {
    clip_counted(&text.trim_end().replace('\n', "⏎"), MAX_SUMMARY_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_lines_are_numbered_and_end_with_the_file() {
        let text = "a\nb\nc\nd\n";
        let check = |line: i64, expect: &[i64]| {
            let numbers: Vec<i64> = lines_around(text, line, 1).iter().map(|(number, _)| *number).collect();
            assert_eq!(numbers, expect, "{line}");
        };
        check(1, &[1, 2]);
        check(3, &[2, 3, 4]);
        check(4, &[3, 4]);
        check(9, &[]);
        check(-1, &[]);
        check(i64::MAX, &[]);
        assert_eq!(lines_around(text, 2, 0), [(2, "b".to_owned())]);
    }
}
