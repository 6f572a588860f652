//! Frames, variables, expressions, sources, output, events.

use std::path::Path;

use crate::api::debug::inspect::{
    DEFAULT_CONTEXT_LINES, DEFAULT_ENTRY_COUNT, DEFAULT_STACK_LEVELS, DebugEvaluateParams, DebugEventsParams,
    DebugLogCursor, DebugOutputParams, DebugSetVariableParams, DebugSourceParams, DebugStackParams,
    DebugVariablesParams, EvaluateContext, EventEntries, EventEntry, FrameList, OutputEntries, OutputEntry,
    VariableList, VariableScope,
};
use crate::api::debug::results::{EvaluatedValue, SourceExcerpt, VariableEntry};
use crate::api::debug::values::FileLine;
use crate::debug::DebugSession;
use crate::debug::inspect::{self, ScopedId, VariableParent, is_local, lines_around};
use crate::debug::source_file;
use crate::error::{Error, ErrorContext as _, ErrorKind, Result};
use crate::ring::{RingExtract, RingQuery};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::convert::debug as convert;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};

impl OperationHandler for DebugStackParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<FrameList> {
        let sessions = &context.sessions;
        let hosted = sessions.find_session(self.session_id.as_deref())?;
        let (start, levels) = (self.start_frame.unwrap_or(0), self.levels.unwrap_or(DEFAULT_STACK_LEVELS).max(1));
        // One more than is returned: not every adapter reports the total.
        let asked = Some(i64::from(levels) + 1);
        let stack =
            hosted.session.stack(self.thread_id.map(ScopedId::from_external), Some(i64::from(start)), asked).await?;
        let known = stack.frames.len() as i64 + i64::from(start);
        let left = stack.total.unwrap_or(known).max(known) - i64::from(start) - i64::from(levels);
        let told = stack.frames.iter().take(levels as usize);
        Ok(FrameList {
            thread_id: Some(stack.thread.to_external()),
            frames: told.map(|frame| convert::frame_entry(frame, sessions.workspace())).collect(),
            truncated: (left > 0).then(|| format!("{left} more: startFrame {}", start + levels)),
        })
    }
}

impl OperationHandler for DebugVariablesParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<VariableList> {
        let sessions = &context.sessions;
        let hosted = sessions.find_session(self.session_id.as_deref())?;
        let (start, count) =
            (self.start.unwrap_or(0) as usize, self.count.unwrap_or(DEFAULT_ENTRY_COUNT).max(1) as usize);
        let request = VariableParent {
            frame: self.frame_id.map(ScopedId::from_external),
            reference: self.variables_reference.map(ScopedId::from_external),
        };
        let names = self.names.unwrap_or_default();
        let (found, left) = match page_of_variables(&hosted.session, &request, &names, start, count).await? {
            Some(part) => part,
            None => {
                let all = all_variables(&hosted.session, &request, &names).await?;
                let left = all.len().saturating_sub(start + count);
                (all.into_iter().skip(start).take(count).collect(), left)
            }
        };
        let mut scopes = Vec::new();
        if request.reference.is_none() {
            let frame = hosted.session.resolve_frame(request.frame).await?;
            let besides = hosted.session.scopes(frame).await?.into_iter().filter(|scope| !is_local(scope));
            scopes.extend(besides.filter_map(|scope| {
                let variables_reference = convert::value_reference(frame.target, scope.variables_reference)?;
                Some(VariableScope { name: scope.name, variables_reference })
            }));
        }
        Ok(VariableList {
            variables: found,
            scopes,
            truncated: (left > 0).then(|| format!("{left} more: start {}", start + count)),
        })
    }
}

/// A part of a big value, and how many are left behind it.
async fn page_of_variables(
    session: &DebugSession,
    request: &VariableParent,
    names: &[String],
    start: usize,
    count: usize,
) -> Result<Option<(Vec<VariableEntry>, usize)>> {
    let Some(reference) = request.reference else { return Ok(None) };
    let told =
        |found: Vec<inspect::DapVariable>| found.into_iter().map(|it| variable_entry(reference.target, it)).collect();
    if names.is_empty() {
        let page = session.variables_page(reference, start as i64, count as i64).await?;
        return Ok(page.map(|(found, total)| (told(found), (total as usize).saturating_sub(start + count))));
    }
    let Some(found) = session.variables_by_name(reference, names).await? else { return Ok(None) };
    match names.get(found.len()) {
        Some(name) => Err(no_such_variable(name)),
        None => Ok(Some((told(found), 0))),
    }
}

/// All variables of the parent, or all of those names.
async fn all_variables(
    session: &DebugSession,
    request: &VariableParent,
    names: &[String],
) -> Result<Vec<VariableEntry>> {
    let groups = session.variables(request).await?;
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let found = groups.into_iter().flat_map(|group| {
        let target = group.target;
        group.variables.into_iter().map(move |it| variable_entry(target, it))
    });
    let found: Vec<VariableEntry> = found.filter(|it| is_wanted(&it.name)).collect();
    match names.iter().find(|name| found.iter().all(|it| it.name != **name)) {
        Some(name) => Err(no_such_variable(name)),
        None => Ok(found),
    }
}

fn variable_entry(target: usize, it: inspect::DapVariable) -> VariableEntry {
    VariableEntry {
        name: it.name,
        value: convert::clip_value(it.value),
        of: it.kind,
        variables_reference: convert::value_reference(target, it.variables_reference),
    }
}

fn no_such_variable(name: &str) -> Error {
    let error = Error::new(ErrorKind::NotFound, format!("there is no variable `{name}` here"));
    error.hint("`tether debug variables` lists them; `tether debug evaluate` takes expressions")
}

impl OperationHandler for DebugEvaluateParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<EvaluatedValue> {
        let sessions = &context.sessions;
        let hosted = sessions.find_session(self.session_id.as_deref())?;
        let context = match self.context.unwrap_or_default() {
            EvaluateContext::Repl => "repl",
            EvaluateContext::Watch => "watch",
            EvaluateContext::Hover => "hover",
        };
        let (at, answer) =
            hosted.session.evaluate(&self.expression, self.frame_id.map(ScopedId::from_external), context).await?;
        Ok(EvaluatedValue {
            result: convert::clip_value(answer.result),
            of: answer.kind,
            variables_reference: convert::value_reference(at.target, at.id),
        })
    }
}

impl OperationHandler for DebugSetVariableParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<EvaluatedValue> {
        let sessions = &context.sessions;
        let hosted = sessions.find_session(self.session_id.as_deref())?;
        let request = VariableParent {
            frame: self.frame_id.map(ScopedId::from_external),
            reference: self.variables_reference.map(ScopedId::from_external),
        };
        let (at, answer) = hosted.session.set_variable(&self.name, &self.value, &request).await?;
        Ok(EvaluatedValue {
            result: convert::clip_value(answer.value),
            of: answer.kind,
            variables_reference: convert::value_reference(at.target, at.id),
        })
    }
}

impl OperationHandler for DebugSourceParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<SourceExcerpt> {
        let sessions = &context.sessions;
        let context = self.context.unwrap_or(DEFAULT_CONTEXT_LINES);
        if let Some(file) = &self.file {
            let (file, line) = FileLine::parse_file_or_line(file, self.line)?;
            return file_excerpt(sessions.workspace(), &file, line, context).await;
        }
        let hosted = sessions.find_session(self.session_id.as_deref())?;
        if let Some(reference) = self.source_reference {
            let text = hosted.session.source_text(ScopedId::from_external(reference), None).await?;
            return Ok(source_excerpt(&format!("source {reference}"), &text, self.line, context));
        }
        let stack = hosted.session.stack(None, None, Some(1)).await?;
        let none = || Error::new(ErrorKind::NotFound, "the place where the program has stopped has no source");
        let top = stack.frames.first().ok_or_else(none)?;
        let text = hosted.session.frame_source(top).await.ok_or_else(none)?;
        let name =
            top.path().map_or_else(|| top.name.clone(), |path| convert::display_path(sessions.workspace(), path));
        let line = self.line.or_else(|| u32::try_from(top.line).ok());
        Ok(source_excerpt(&name, &text, line, context))
    }
}

/// The lines around `line`; without it, the first lines.
fn source_excerpt(name: &str, text: &str, line: Option<u32>, context: u32) -> SourceExcerpt {
    let middle = line.map_or(i64::from(context) + 1, i64::from);
    SourceExcerpt::with_line_numbers(name, &lines_around(text, middle, i64::from(context)), line.map(i64::from))
}

async fn file_excerpt(workspace: &Path, file: &str, line: Option<u32>, context: u32) -> Result<SourceExcerpt> {
    let path = workspace.join(file);
    let text = source_file::load_source(&path).await.doing(|| format!("cannot read {}", path.display()))?;
    let total = text.lines().count();
    if line.is_some_and(|line| line as usize > total) {
        let error = Error::usage(format!("there is no line {} in {}", line.unwrap_or_default(), path.display()));
        return Err(error.because(format!("it has {total} lines")));
    }
    Ok(source_excerpt(&convert::display_path(workspace, &path.to_string_lossy()), &text, line, context))
}

impl OperationHandler for DebugOutputParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<OutputEntries> {
        let sessions = &context.sessions;
        let hosted = sessions.find_session(self.session_id.as_deref())?;
        let told = hosted.session.event_log().read_output(&log_query(self.since, self.limit));
        let place = log_cursor(&told);
        let entry = |it: crate::debug::session::event_log::LoggedOutput| OutputEntry {
            at: it.at,
            category: it.category,
            text: it.text,
        };
        Ok(OutputEntries { entries: told.entries.into_iter().map(entry).collect(), place })
    }
}

impl OperationHandler for DebugEventsParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<EventEntries> {
        let sessions = &context.sessions;
        let hosted = sessions.find_session(self.session_id.as_deref())?;
        let told = hosted.session.event_log().read_events(&log_query(self.since, self.limit));
        let place = log_cursor(&told);
        let entry = |it: crate::debug::session::event_log::LoggedEvent| EventEntry {
            at: it.at,
            event: it.kind,
            text: it.text,
            thread_id: it.thread,
        };
        Ok(EventEntries { entries: told.entries.into_iter().map(entry).collect(), place })
    }
}

fn log_query(since: Option<u64>, limit: Option<usize>) -> RingQuery {
    RingQuery { since, limit: limit.unwrap_or(DEFAULT_ENTRY_COUNT as usize).max(1), filter: None }
}

fn log_cursor<T>(told: &RingExtract<T>) -> DebugLogCursor {
    DebugLogCursor { cursor: told.cursor, dropped: told.dropped, more: told.more }
}
