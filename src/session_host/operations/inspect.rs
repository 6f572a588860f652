//! Frames, variables, expressions, sources, output, events.

use std::path::Path;

use tether_base::error::{Error, ErrorContext as _, ErrorKind, Result};
use tether_base::ring::{RingExtract, RingQuery};

use super::convert;
use crate::api::debug::inspect::{
    DEFAULT_CONTEXT_LINES, DEFAULT_ENTRY_COUNT, DEFAULT_STACK_LEVELS, DebugEvaluateParams, DebugEventsParams,
    DebugLogCursor, DebugOutputParams, DebugSetVariableParams, DebugSourceParams, DebugStackParams,
    DebugVariablesParams, EvaluateContext, EventEntries, EventEntry, FrameList, OutputEntries, OutputEntry,
    VariableList, VariableScope,
};
use crate::api::debug::results::{EvaluatedValue, SourceExcerpt, VariableEntry};
use crate::api::debug::values::FileLine;
use crate::config::{hide_values, is_environment_file};
use crate::debug::inspect;
use crate::debug::inspect::{ScopedId, VariableGroup, VariableParent, is_local, lines_around};
use crate::debug::session::event_log::{LoggedEvent, NOISY_KINDS};
use crate::debug::source_file;
use crate::debug::{DebugSession, SessionRegistry, display_path};
use crate::session_host::context::SessionContext;
use crate::session_host::operations::SessionOperation;

/// How much output, and how many events, one result has: about 16,000 tokens.
const MAX_LOG_BYTES: usize = 64 << 10;

impl SessionOperation for DebugStackParams {
    async fn run(self, context: &SessionContext) -> Result<FrameList> {
        let managed = context.sessions.find_session(self.session_id.as_deref())?;
        let (start, levels) = (self.start_frame.unwrap_or(0), self.levels.unwrap_or(DEFAULT_STACK_LEVELS).max(1));
        // One more than is returned: not every adapter reports the total.
        let requested = Some(i64::from(levels) + 1);
        let thread = self.thread_id.map(ScopedId::from_external);
        let stack = inspect::read_stack(&managed.session, thread, Some(i64::from(start)), requested).await?;
        let known = to_number(stack.frames.len()).saturating_add(i64::from(start));
        let behind = i64::from(start).saturating_add(i64::from(levels));
        let left = stack.total.unwrap_or(known).max(known).saturating_sub(behind);
        let frames = stack.frames.iter().take(levels as usize);
        let names = context.sessions.file_names_of(&managed);
        names.prepare().await;
        Ok(FrameList {
            thread_id: Some(stack.thread.to_external()),
            frames: frames.map(|frame| convert::frame_entry(frame, &names)).collect(),
            truncated: (left > 0).then(|| format!("{left} more: startFrame {}", start.saturating_add(levels))),
        })
    }
}

impl SessionOperation for DebugVariablesParams {
    async fn run(self, context: &SessionContext) -> Result<VariableList> {
        let managed = context.sessions.find_session(self.session_id.as_deref())?;
        let start = self.start.unwrap_or(0) as usize;
        let count = self.count.unwrap_or(DEFAULT_ENTRY_COUNT).max(1) as usize;
        let request = VariableParent {
            frame: self.frame_id.map(ScopedId::from_external),
            reference: self.variables_reference.map(ScopedId::from_external),
        };
        let names = self.names.unwrap_or_default();
        let (variables, left) = match request.reference {
            Some(reference) => page_of_variables(&managed.session, reference, &names, start, count).await?,
            None => {
                let all = all_variables(&managed.session, &request, &names).await?;
                let left = all.len().saturating_sub(start + count);
                (all.into_iter().skip(start).take(count).collect(), left)
            }
        };
        let mut scopes = Vec::new();
        if request.reference.is_none() {
            let frame = inspect::resolve_frame(&managed.session, request.frame).await?;
            let besides =
                inspect::list_scopes(&managed.session, frame).await?.into_iter().filter(|scope| !is_local(scope));
            scopes.extend(besides.filter_map(|scope| {
                let variables_reference = convert::value_reference(frame.target, scope.variables_reference)?;
                Some(VariableScope { name: scope.name, variables_reference })
            }));
        }
        let truncated = (left > 0).then(|| format!("{left} more: start {}", start + count));
        Ok(VariableList { variables, scopes, truncated })
    }
}

/// A part of a value, and how many are left behind it.
async fn page_of_variables(
    session: &DebugSession,
    reference: ScopedId,
    names: &[String],
    start: usize,
    count: usize,
) -> Result<(Vec<VariableEntry>, usize)> {
    if names.is_empty() {
        let (found, total) = inspect::variables_page(session, reference, to_number(start), to_number(count)).await?;
        let entries = convert::masked_entries(reference.target, found).0;
        return Ok((entries, total.saturating_sub(start.saturating_add(count))));
    }
    let found = inspect::variables_by_name(session, reference, names).await?;
    match names.get(found.len()) {
        Some(name) => Err(no_such_variable(name)),
        None => Ok((convert::variable_entries(reference.target, found), 0)),
    }
}

fn to_number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// All variables of a frame, or all of those names.
async fn all_variables(
    session: &DebugSession,
    request: &VariableParent,
    names: &[String],
) -> Result<Vec<VariableEntry>> {
    let groups = inspect::list_variables(session, request).await?;
    let entries = |group: VariableGroup| match names {
        [] => convert::masked_entries(group.target, group.variables).0,
        _ => convert::variable_entries(group.target, group.variables),
    };
    let found = groups.into_iter().flat_map(entries);
    let found: Vec<VariableEntry> = found.filter(|it| names.is_empty() || names.contains(&it.name)).collect();
    match names.iter().find(|name| found.iter().all(|it| it.name != **name)) {
        Some(name) => Err(no_such_variable(name)),
        None => Ok(found),
    }
}

fn no_such_variable(name: &str) -> Error {
    let error = Error::new(ErrorKind::NotFound, format!("there is no variable `{name}` here"));
    error.hint("`tether debug variables` lists them; `tether debug evaluate` takes expressions")
}

impl SessionOperation for DebugEvaluateParams {
    async fn run(self, context: &SessionContext) -> Result<EvaluatedValue> {
        let managed = context.sessions.find_session(self.session_id.as_deref())?;
        let context = match self.context.unwrap_or_default() {
            EvaluateContext::Repl => "repl",
            EvaluateContext::Watch => "watch",
            EvaluateContext::Hover => "hover",
        };
        let frame = self.frame_id.map(ScopedId::from_external);
        let (inside, answer) = inspect::evaluate(&managed.session, &self.expression, frame, context).await?;
        Ok(convert::evaluated_value(answer.result, answer.kind, inside))
    }
}

impl SessionOperation for DebugSetVariableParams {
    async fn run(self, context: &SessionContext) -> Result<EvaluatedValue> {
        let managed = context.sessions.find_session(self.session_id.as_deref())?;
        let request = VariableParent {
            frame: self.frame_id.map(ScopedId::from_external),
            reference: self.variables_reference.map(ScopedId::from_external),
        };
        let (inside, answer) = inspect::set_variable(&managed.session, &self.name, &self.value, &request).await?;
        let value = convert::evaluated_value(answer.result, answer.kind, inside);
        let note = inspect::unread_value_note(&managed.session, &self.name, &request).await;
        Ok(EvaluatedValue { note, ..value })
    }
}

impl SessionOperation for DebugSourceParams {
    async fn run(self, context: &SessionContext) -> Result<SourceExcerpt> {
        let (sessions, context) = (&context.sessions, self.context.unwrap_or(DEFAULT_CONTEXT_LINES));
        if let Some(file) = &self.file {
            let (file, line) = FileLine::parse_file_or_line(file, self.line)?;
            return self.file_excerpt(sessions, &file, line, context).await;
        }
        let managed = sessions.find_session(self.session_id.as_deref())?;
        if let Some(reference) = self.source_reference {
            let text = inspect::source_text(&managed.session, ScopedId::from_external(reference), None).await?;
            return Ok(source_excerpt(&format!("source {reference}"), &text, self.line, context));
        }
        let stack = inspect::read_stack(&managed.session, None, None, Some(1)).await?;
        let none = || Error::new(ErrorKind::NotFound, "the place where the program has stopped has no source");
        let top = stack.frames.first().ok_or_else(none)?;
        let source = inspect::frame_source(&managed.session, top).await.ok_or_else(none)?;
        let names = sessions.file_names_of(&managed);
        names.prepare().await;
        let name = top.path().map_or_else(|| top.name.clone(), |path| names.show(path).name);
        let line = self.line.or_else(|| u32::try_from(top.line).ok());
        let note = source.change.map(|change| convert::source_note(&managed, change));
        Ok(SourceExcerpt { note, ..source_excerpt(&name, &source.text, line, context) })
    }
}

/// The lines around `line`; without it, the first lines.
fn source_excerpt(name: &str, text: &str, line: Option<u32>, context: u32) -> SourceExcerpt {
    let middle = line.map_or(i64::from(context) + 1, i64::from);
    SourceExcerpt::with_line_numbers(name, &lines_around(text, middle, i64::from(context)), line.map(i64::from))
}

impl DebugSourceParams {
    async fn file_excerpt(
        &self,
        sessions: &SessionRegistry,
        file: &str,
        line: Option<u32>,
        context: u32,
    ) -> Result<SourceExcerpt> {
        let path = sessions.workspace().join(file);
        let mut text = self.load_allowed_file(sessions, &path).await?;
        let mut note = None;
        let running = match &self.session_id {
            Some(id) => vec![sessions.find_session(Some(id))?],
            None => sessions.active_sessions(),
        };
        for managed in running {
            if let Some(source) = inspect::changed_source(&managed.session, &source_file::canonical_path(&path)).await {
                text = source.text.to_string();
                note = source.change.map(|change| convert::source_note(&managed, change));
                break;
            }
        }
        if is_environment_file(sessions.workspace(), &path) {
            text = hide_values(&text);
            note = Some("the values of its variables may be secrets, and are not shown".to_owned());
        }
        let total = text.lines().count();
        if line.is_some_and(|line| line as usize > total) {
            let error = Error::usage(format!("there is no line {} in {}", line.unwrap_or_default(), path.display()));
            return Err(error.because(format!("it has {total} lines")));
        }
        let name = display_path(sessions.workspace(), &path);
        Ok(SourceExcerpt { note, ..source_excerpt(&name, &text, line, context) })
    }

    /// The text of a file in the workspace, or of one that a stop's frame or an adapter has named.
    async fn load_allowed_file(&self, sessions: &SessionRegistry, path: &Path) -> Result<String> {
        let reading = || format!("cannot read {}", path.display());
        if let Some(text) = source_file::load_source_within(sessions.workspace(), path).await.doing(reading)? {
            return Ok(text);
        }
        let managed = match &self.session_id {
            Some(id) => vec![sessions.find_session(Some(id))?],
            None => sessions.list_sessions(),
        };
        let real = source_file::canonical_path(path);
        for it in managed {
            if inspect::find_named_source(&it.session, &[&path.to_string_lossy(), &real.to_string_lossy()]).await {
                return source_file::load_source(path).await.doing(reading);
            }
        }
        let error =
            Error::usage(reading()).because("it is outside of the workspace, and no debug session has named it");
        Err(error.hint("`tether debug stack` shows the source files of a stop"))
    }
}

impl SessionOperation for DebugOutputParams {
    async fn run(self, context: &SessionContext) -> Result<OutputEntries> {
        let managed = context.sessions.find_session(self.session_id.as_deref())?;
        let extract = managed.session.event_log().read_output(&log_query(self.since, self.limit));
        let place = log_cursor(&extract);
        let entries = extract.entries.into_iter();
        let entries = entries.map(|it| OutputEntry { at: it.at, category: it.kind, text: it.text }).collect();
        Ok(OutputEntries { entries, place })
    }
}

impl SessionOperation for DebugEventsParams {
    async fn run(self, context: &SessionContext) -> Result<EventEntries> {
        let managed = context.sessions.find_session(self.session_id.as_deref())?;
        let kinds = self.kinds.unwrap_or_default();
        let noisy = kinds.iter().find(|kind| NOISY_KINDS.contains(&kind.as_str()));
        if let Some(noisy) = noisy.filter(|_| kinds.len() > 1) {
            let error = Error::usage(format!("cannot read `{noisy}` events together with others"));
            let error = error.because("they are in a log, with cursors, of their own");
            return Err(error.hint(format!("`tether debug events --kinds {noisy}` reads them")));
        }
        let captured = match self.capture {
            Some(capture) => Some(managed.session.capture_events(capture).await?),
            None => None,
        };
        let extract = managed.session.event_log().read_events(&log_query(self.since, self.limit), &kinds);
        let place = log_cursor(&extract);
        let entries = extract.entries.into_iter();
        let entry = |it: LoggedEvent| EventEntry { at: it.at, event: it.kind, text: it.text, thread_id: it.thread };
        Ok(EventEntries { entries: entries.map(entry).collect(), captured, place })
    }
}

fn log_query(since: Option<u64>, limit: Option<usize>) -> RingQuery {
    let limit = limit.unwrap_or(DEFAULT_ENTRY_COUNT as usize).max(1);
    RingQuery { since, limit, max_bytes: MAX_LOG_BYTES, filter: None }
}

fn log_cursor<T>(extract: &RingExtract<T>) -> DebugLogCursor {
    DebugLogCursor { cursor: extract.cursor, dropped: extract.dropped, more: extract.more }
}
