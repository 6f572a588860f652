//! What a stop answers at once: why it stopped, and a look around within a budget, so that one call is enough.
//!
//! What is cut is said, with the operation that gets it. Must not know the API.

use futures_util::future::OptionFuture;
use tokio::join;

use super::frame::StackFrameInfo;
use super::scoped_id::ScopedId;
use super::source::{clip_line, lines_around};
use super::variables::{VariableGroup, VariableParent};
use crate::dap::types::{DapVariable, ExceptionInfoArguments, ExceptionInfoResponse};
use crate::debug::breakpoints::BreakpointKind;
use crate::debug::session::debug_session::DebugSession;
use crate::debug::session::stop::{StopKind, ThreadStop};
use crate::error::Result;
use crate::ring::RingQuery;
use crate::sync::lock;

/// About 1,500 tokens.
pub const DEFAULT_BUDGET: usize = 6000;
const FRAME_COUNT: i64 = 10;
/// Source lines on each side of the current one.
const SOURCE_MARGIN: i64 = 4;
/// Why a thread is stopped, in full.
#[derive(Clone, Debug)]
pub struct StopCause {
    pub kind: StopKind,
    pub thread: Option<ScopedId>,
    pub thread_name: String,
    /// Where, if it is known.
    pub top_frame: Option<StackFrameInfo>,
    pub breakpoint: Option<u32>,
    pub hit_count: Option<u64>,
    pub exception: Option<ExceptionInfoResponse>,
    /// What was watched, and its value before and now.
    pub watched: Option<(String, Option<String>, Option<String>)>,
    /// The adapter's own words.
    pub text: Option<String>,
}

/// What was thrown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThrownException {
    pub class: String,
    pub message: String,
    pub stack: String,
}

impl StopCause {
    /// What was thrown, as far as the adapter tells; they put it into different places.
    pub fn thrown_exception(&self) -> ThrownException {
        let Some(info) = self.exception.clone() else {
            return parse_thrown(self.text.as_deref().unwrap_or_default());
        };
        let details = info.details.unwrap_or_default();
        let said = info.description.or_else(|| self.text.clone()).unwrap_or_default();
        // js-debug's id is `TypeError: no`.
        let (id, in_id) = info.exception_id.split_once(": ").unwrap_or((&info.exception_id, ""));
        let class = details.type_name.or(details.full_type_name).unwrap_or_else(|| id.to_owned());
        let first = said.lines().next().unwrap_or_default();
        let in_id = Some(in_id.to_owned()).filter(|message| !message.is_empty());
        let message = details.message.or(in_id).unwrap_or_else(|| {
            let bare = first.strip_prefix(class.as_str()).and_then(|rest| rest.strip_prefix(": "));
            bare.unwrap_or(first).to_owned()
        });
        let stack = details.stack_trace.unwrap_or_else(|| if said.contains('\n') { said } else { String::new() });
        ThrownException { class, message, stack }
    }
}

/// rdbg says `#<ArgumentError: no> is raised.`, others the class alone.
fn parse_thrown(text: &str) -> ThrownException {
    let inside = text.strip_prefix("#<").and_then(|rest| rest.rsplit_once('>')).map(|(inside, _)| inside);
    let (class, message) = match inside {
        Some(inside) => inside.split_once(": ").unwrap_or((inside, "")),
        None => (text, ""),
    };
    ThrownException { class: class.to_owned(), message: message.to_owned(), stack: String::new() }
}

/// What can be seen from a stop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StopSummary {
    pub frames: Vec<StackFrameInfo>,
    /// Of the top frame; their values are cut to one line.
    pub locals: Vec<DapVariable>,
    /// Numbered lines around that of the top frame.
    pub source: Vec<(i64, String)>,
    /// Since the stop before.
    pub output: String,
    /// What was left out, and how to get it.
    pub omitted: Vec<String>,
}

impl DebugSession {
    /// What was thrown, where the adapter can tell.
    pub async fn exception_info(&self, thread: ScopedId) -> Option<ExceptionInfoResponse> {
        if !self.target(thread.target).capabilities().can("supportsExceptionInfoRequest") {
            return None;
        }
        self.request(thread.target, &ExceptionInfoArguments { thread_id: thread.id }).await.ok()
    }

    /// Why a target has stopped.
    pub async fn stop_cause(&self, target: usize, stop: &ThreadStop) -> StopCause {
        let thread = stop.thread_id.map(|id| ScopedId { target, id });
        let exception = OptionFuture::from(
            thread.filter(|_| stop.kind == StopKind::Exception).map(|thread| self.exception_info(thread)),
        );
        let top = OptionFuture::from(thread.map(|thread| self.stack(Some(thread), None, Some(1))));
        let (top, threads, exception) = join!(top, self.threads(), exception);
        let top = top.and_then(Result::ok).and_then(|stack| stack.frames.into_iter().next());
        let name = threads.into_iter().find(|it| Some(it.id) == thread).map(|it| it.name);
        let hit = stop.hits.first().copied();
        let watched = match hit {
            Some((wanted, _)) if is_watchpoint(stop.kind) => self.watched_values(wanted, top.as_ref()).await,
            _ => None,
        };
        // Of those that tell of both, the values say which it was.
        let same = |(_, old, new): &(String, Option<String>, Option<String>)| old.is_some() && old == new;
        let kind = match stop.kind {
            StopKind::WatchpointModify if watched.as_ref().is_some_and(same) => StopKind::WatchpointAccess,
            kind => kind,
        };
        StopCause {
            kind,
            thread,
            thread_name: name.unwrap_or_default(),
            top_frame: top,
            breakpoint: hit.map(|(id, _)| id),
            hit_count: hit.map(|(_, count)| count),
            exception: exception.flatten(),
            watched,
            text: stop.text.clone(),
        }
    }

    /// What a watchpoint watches, its value at the stop before, and now. Asked again at the same stop, it says the same.
    async fn watched_values(
        &self,
        wanted: u32,
        top: Option<&StackFrameInfo>,
    ) -> Option<(String, Option<String>, Option<String>)> {
        let expression = lock(&self.shared.book).get(wanted).and_then(|it| match &it.kind {
            BreakpointKind::Data { expression, .. } => Some(expression.clone()),
            _ => None,
        })?;
        let now =
            self.evaluate(&expression, top.map(|top| top.id), "watch").await.ok().map(|(_, answer)| answer.result);
        let (old, new) = lock(&self.shared.watched).record_value(wanted, self.hit_count(wanted), now);
        Some((expression, old, new))
    }

    /// Looks around from the top of a stopped thread, in about `budget` bytes.
    pub async fn summarize_stop(&self, thread: ScopedId, budget: usize) -> Result<StopSummary> {
        let stack = self.stack(Some(thread), None, Some(FRAME_COUNT + 1)).await?;
        let mut frames = stack.frames;
        let total = stack.total.unwrap_or(frames.len() as i64).max(frames.len() as i64);
        frames.truncate(FRAME_COUNT as usize);
        let mut look = StopSummary::default();
        if total > frames.len() as i64 {
            look.omitted.push(format!("{} more frames: debug_stack", total - frames.len() as i64));
        }
        let groups = match frames.first() {
            Some(top) => {
                self.variables(&VariableParent { frame: Some(top.id), reference: None }).await.unwrap_or_default()
            }
            None => Vec::new(),
        };
        if let Some(top) = frames.first() {
            let text = self.frame_source(top).await.unwrap_or_default();
            look.source = lines_around(&text, top.line, SOURCE_MARGIN);
        }
        look.frames = frames;
        look.add_locals(groups, budget);
        look.output =
            self.output_since_stop(budget.saturating_sub(look.byte_count()).max(budget / 5), &mut look.omitted);
        Ok(look)
    }

    fn output_since_stop(&self, most: usize, cut: &mut Vec<String>) -> String {
        let (since, _) = *lock(&self.shared.spoken);
        let said = self.event_log().read_output(&RingQuery { since, limit: usize::MAX, filter: None });
        let text: String =
            said.entries.iter().filter(|it| is_program_output(&it.category)).map(|it| it.text.as_str()).collect();
        let mut start = text.len().saturating_sub(most);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        if start > 0 || said.dropped > 0 {
            cut.push(format!("{start} bytes of earlier output: debug_output"));
        }
        text[start..].to_owned()
    }
}

impl StopSummary {
    fn byte_count(&self) -> usize {
        let frames: usize = self.frames.iter().map(|it| it.name.len() + it.path().map_or(0, str::len) + 20).sum();
        let locals: usize = self.locals.iter().map(|it| it.name.len() + it.value.len() + 4).sum();
        let source: usize = self.source.iter().map(|(_, text)| text.len() + 8).sum();
        frames + locals + source
    }

    /// Takes in as many locals as fit into two thirds of the budget.
    fn add_locals(&mut self, groups: Vec<VariableGroup>, budget: usize) {
        let most = (budget * 2 / 3).saturating_sub(self.byte_count());
        let (mut bytes, mut left) = (0, 0);
        for variable in groups.into_iter().flat_map(|group| group.variables).filter(|it| !is_builtin_group(it)) {
            let value = clip_line(&variable.value);
            bytes += variable.name.len() + value.len() + 4;
            if bytes > most {
                left += 1;
            } else {
                self.locals.push(DapVariable { value, ..variable });
            }
        }
        if left > 0 {
            self.omitted.push(format!("{left} more locals: debug_variables"));
        }
    }
}

/// Adapters have much to say on their own account.
fn is_program_output(category: &str) -> bool {
    matches!(category, "stdout" | "stderr")
}

/// debugpy's groups of what every object has.
fn is_builtin_group(variable: &DapVariable) -> bool {
    matches!(variable.name.as_str(), "special variables" | "function variables" | "class variables")
}

fn is_watchpoint(kind: StopKind) -> bool {
    matches!(kind, StopKind::WatchpointAccess | StopKind::WatchpointModify)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_thrown_is_also_read_from_words() {
        let check = |text: &str, class: &str, message: &str| {
            let thrown = parse_thrown(text);
            assert_eq!((thrown.class.as_str(), thrown.message.as_str()), (class, message), "{text}");
        };
        check("#<ArgumentError: no> is raised.", "ArgumentError", "no");
        check("#<Fatal> is raised.", "Fatal", "");
        check("signal SIGSEGV", "signal SIGSEGV", "");
        check("", "", "");
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let variable = |name: &str, value: String| DapVariable { name: name.into(), value, ..DapVariable::default() };
        let variables = vec![
            variable("special variables", String::new()),
            variable("a", "x".repeat(500)),
            variable("b", "1".into()),
        ];
        let mut look = StopSummary::default();
        look.add_locals(vec![VariableGroup { scope: None, target: 0, variables: variables.clone() }], 6000);
        assert!(
            look.locals[0].value.ends_with("… (500 characters)") && look.locals.len() == 2 && look.omitted.is_empty()
        );
        let mut look = StopSummary::default();
        look.add_locals(vec![VariableGroup { scope: None, target: 0, variables }], 100);
        assert_eq!(look.omitted, ["2 more locals: debug_variables"]);
    }
}
