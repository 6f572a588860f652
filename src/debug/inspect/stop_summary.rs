//! The summary of a stop: why the program stopped and what is visible from there, within a budget, so that one call is
//! enough.
//!
//! Reports what was omitted, with the operation that returns it. Does not depend on the API.

use std::path::PathBuf;

use futures_util::future::OptionFuture;
use tether_base::error::Result;
use tether_base::ring::RingQuery;
use tether_dap::types::{DapVariable, ExceptionInfoArguments, ExceptionInfoResponse};
use tokio::join;

use super::evaluate::evaluate;
use super::frame::{StackFrameInfo, ThreadStack};
use super::frame_folding::{SummaryFrame, first_own_frame, fold_frames};
use super::panic_message::find_panic_message;
use super::scoped_id::ScopedId;
use super::source::frame_source;
use super::source::{lines_around, summary_line};
use super::stack::read_stack;
use super::threads::list_threads;
use super::variables::list_variables;
use super::variables::{VariableGroup, VariableParent};
use crate::debug::breakpoints::BreakpointKind;
use crate::debug::session::debug_session::DebugSession;
use crate::debug::session::source_memory::SourceChange;
use crate::debug::session::stop::ThreadStop;
use crate::vocabulary::StopKind;

const FRAME_COUNT: usize = 10;
/// How many frames are read for that: one more shows whether there are more.
const SHOWN_LEVELS: i64 = FRAME_COUNT as i64 + 1;
/// How many frames are searched for one of the user's, which an exception's or a panic's own frames may hide.
const SEARCHED_FRAMES: i64 = 60;
/// What bundlers and compilers add to a module.
const BUNDLER_HELPERS: [&str; 33] = [
    "__assign",
    "__async",
    "__awaiter",
    "__commonJS",
    "__copyProps",
    "__create",
    "__createBinding",
    "__decorate",
    "__defNormalProp",
    "__defProp",
    "__esm",
    "__export",
    "__exportStar",
    "__getOwnPropDesc",
    "__getOwnPropNames",
    "__getOwnPropSymbols",
    "__getProtoOf",
    "__hasOwnProp",
    "__importDefault",
    "__importStar",
    "__metadata",
    "__objRest",
    "__param",
    "__propIsEnum",
    "__publicField",
    "__rest",
    "__setModuleDefault",
    "__spreadArray",
    "__spreadProps",
    "__spreadValues",
    "__toCommonJS",
    "__toESM",
    "__vite__createHotContext",
];
/// debugpy's groups of what every object has.
const BUILTIN_GROUPS: [&str; 3] = ["special variables", "function variables", "class variables"];
/// Source lines on each side of the current one.
const SOURCE_MARGIN: i64 = 4;

/// A watched expression, its value before and now.
pub type WatchedChange = (String, Option<String>, Option<String>);

/// Why a thread is stopped, in full.
#[derive(Clone, Debug)]
pub struct StopCause {
    pub kind: StopKind,
    pub thread: Option<ScopedId>,
    pub thread_name: String,
    /// Where, if it is known: the top frame, at an exception the first of the user's.
    pub top_frame: Option<StackFrameInfo>,
    /// The breakpoint that was hit, and how often it has been.
    pub hit: Option<(u32, u64)>,
    pub exception: Option<ExceptionInfoResponse>,
    pub watched: Option<WatchedChange>,
    /// The adapter's own text.
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
    /// What was thrown, as far as the adapter reports it; each one puts it into different fields.
    pub fn thrown_exception(&self) -> ThrownException {
        let Some(info) = self.exception.clone() else {
            return parse_thrown(self.text.as_deref().unwrap_or_default());
        };
        let details = info.details.unwrap_or_default();
        let description = info.description.or_else(|| self.text.clone()).unwrap_or_default();
        // js-debug's id is `TypeError: no`.
        let (id, in_id) = info.exception_id.split_once(": ").unwrap_or((&info.exception_id, ""));
        let class = details.type_name.or(details.full_type_name).unwrap_or_else(|| id.to_owned());
        let first = description.lines().next().unwrap_or_default();
        let in_id = Some(in_id.to_owned()).filter(|message| !message.is_empty());
        let message = details.message.or(in_id).unwrap_or_else(|| {
            let bare = first.strip_prefix(class.as_str()).and_then(|rest| rest.strip_prefix(": "));
            bare.unwrap_or(first).to_owned()
        });
        let stack =
            details.stack_trace.unwrap_or_else(|| if description.contains('\n') { description } else { String::new() });
        ThrownException { class, message, stack }
    }
}

/// rdbg reports `#<ArgumentError: no> is raised.`, others the class alone.
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
    pub frames: Vec<SummaryFrame>,
    /// The frame that is shown: the top one, at an exception the first of the user's.
    pub shown: Option<StackFrameInfo>,
    /// Of the shown frame; their values are cut to one line.
    pub locals: Vec<DapVariable>,
    /// Numbered lines around that of the shown frame.
    pub source: Vec<(i64, String)>,
    /// How these are related to the file.
    pub source_change: Option<SourceChange>,
    /// Since the stop before.
    pub output: String,
    /// What was omitted, and the operation that returns it.
    pub omitted: Vec<String>,
}

/// The exception of a stop, if the adapter supports that.
pub async fn exception_info(session: &DebugSession, thread: ScopedId) -> Option<ExceptionInfoResponse> {
    if !session.shared.target(thread.target).capabilities().can("supportsExceptionInfoRequest") {
        return None;
    }
    session.request(thread.target, &ExceptionInfoArguments { thread_id: thread.id }).await.ok()
}

/// Why a target has stopped, in full.
pub async fn stop_cause(session: &DebugSession, target: usize, stop: &ThreadStop) -> StopCause {
    let thread = stop.thread_id.map(|id| ScopedId { target, id });
    let is_described = stop.kind == StopKind::Exception && !stop.is_panic;
    let exception = OptionFuture::from(thread.filter(|_| is_described).map(|thread| exception_info(session, thread)));
    let top = async {
        match stop.kind {
            StopKind::Exception => {
                let (stack, own) = stack_to_own_frame(session, thread?).await.ok()?;
                stack.frames.into_iter().nth(own)
            }
            // As many as the summary shows, which follows in most cases.
            _ => read_stack(session, Some(thread?), None, Some(SHOWN_LEVELS)).await.ok()?.frames.into_iter().next(),
        }
    };
    let (top, name, exception) = join!(top, thread_name(session, thread, stop), exception);
    let exception = if stop.is_panic { panic_info(session, stop, top.as_ref()) } else { exception.flatten() };
    let hit = stop.hits.first().copied();
    let is_watchpoint = matches!(stop.kind, StopKind::WatchpointAccess | StopKind::WatchpointModify);
    let reported = stop.data_change.clone().map(|it| (it.name, it.old_value, it.new_value));
    let watched = match hit {
        _ if reported.is_some() => reported,
        Some((breakpoint, _)) if is_watchpoint => watched_values(session, breakpoint, top.as_ref()).await,
        _ => None,
    };
    // Adapters that report reads and writes alike: the values show which it was.
    let same = |(_, old, new): &WatchedChange| stop.data_change.is_none() && old.is_some() && old == new;
    let kind = match stop.kind {
        StopKind::WatchpointModify if watched.as_ref().is_some_and(same) => StopKind::WatchpointAccess,
        kind => kind,
    };
    StopCause {
        kind,
        thread,
        thread_name: name.unwrap_or_default(),
        top_frame: top,
        hit,
        exception,
        watched,
        text: stop.text.clone(),
    }
}

async fn thread_name(session: &DebugSession, thread: Option<ScopedId>, stop: &ThreadStop) -> Option<String> {
    match &stop.thread_name {
        Some(name) => Some(name.clone()),
        None => list_threads(session).await.into_iter().find(|it| Some(it.id) == thread).map(|it| it.name),
    }
}

/// A panic of a Rust program, with the message that it has printed. `own` is the first frame of the user's.
fn panic_info(
    session: &DebugSession,
    stop: &ThreadStop,
    own: Option<&StackFrameInfo>,
) -> Option<ExceptionInfoResponse> {
    let since = session.shared.with_state(|state| state.resumed_output);
    let output = session.event_log().read_output(&RingQuery { since: Some(since), ..RingQuery::default() });
    let printed: String = output.entries.iter().map(|it| it.text.as_str()).collect();
    let message = own.and_then(|own| find_panic_message(&printed, own.path()?, own.line));
    let exception_id = stop.text.clone()?;
    let description = Some(message.unwrap_or_default());
    Some(ExceptionInfoResponse { exception_id, description, ..ExceptionInfoResponse::default() })
}

/// The expression of a watchpoint, its value at the stop before and its value now. The same for each call at one stop.
async fn watched_values(
    session: &DebugSession,
    breakpoint: u32,
    top: Option<&StackFrameInfo>,
) -> Option<WatchedChange> {
    let expression = session.shared.breakpoints.current().get(breakpoint).and_then(|it| match &it.kind {
        BreakpointKind::Data { expression, .. } => Some(expression.clone()),
        _ => None,
    })?;
    let now =
        evaluate(session, &expression, top.map(|top| top.id), "watch").await.ok().map(|(_, answer)| answer.result);
    let (old, new) = session.shared.with_state(|state| {
        let hits = state.bindings.hit_count(breakpoint);
        state.watched.record_value(breakpoint, hits, now)
    });
    Some((expression, old, new))
}

/// The topmost frames, and the index of the first one of the user's; 0 if there is none.
async fn stack_to_own_frame(session: &DebugSession, thread: ScopedId) -> Result<(ThreadStack, usize)> {
    let stack = read_stack(session, Some(thread), None, Some(SHOWN_LEVELS)).await?;
    if let Some(own) = first_own_frame(&stack.frames) {
        return Ok((stack, own));
    }
    let stack = read_stack(session, Some(thread), None, Some(SEARCHED_FRAMES)).await?;
    let own = first_own_frame(&stack.frames).unwrap_or(0);
    Ok((stack, own))
}

/// What is visible where a thread has stopped, in about `budget` bytes.
pub async fn summarize_stop(
    session: &DebugSession,
    thread: ScopedId,
    kind: StopKind,
    budget: usize,
) -> Result<StopSummary> {
    let (stack, shown) = match kind {
        StopKind::Exception => stack_to_own_frame(session, thread).await?,
        _ => (read_stack(session, Some(thread), None, Some(SHOWN_LEVELS)).await?, 0),
    };
    let mut summary = StopSummary { shown: stack.frames.get(shown).cloned(), ..StopSummary::default() };
    let known = stack.frames.len();
    summary.frames = fold_frames(stack.frames, shown, FRAME_COUNT);
    let total = stack.total.map_or(known, |total| known.max(usize::try_from(total).unwrap_or(0)));
    let left = total.saturating_sub(summary.frames.iter().map(SummaryFrame::count).sum::<usize>());
    if left > 0 {
        summary.omitted.push(format!("{left} more frames: `tether debug stack`"));
    }
    let mut groups = Vec::new();
    if let Some(shown) = &summary.shown {
        let parent = VariableParent { frame: Some(shown.id), reference: None };
        let remembered = session.shared.sources.remember(own_files(&summary.frames));
        let (variables, source, ()) = join!(list_variables(session, &parent), frame_source(session, shown), remembered);
        groups = variables.unwrap_or_default();
        if let Some(source) = source {
            summary.source = lines_around(&source.text, shown.line, SOURCE_MARGIN);
            summary.source_change = source.change;
        }
    }
    summary.add_locals(groups, budget);
    summary.output =
        output_since_stop(session, budget.saturating_sub(summary.byte_count()).max(budget / 5), &mut summary.omitted);
    Ok(summary)
}

fn output_since_stop(session: &DebugSession, most: usize, omitted: &mut Vec<String>) -> String {
    let since = session.shared.with_state(|state| state.previous_stop_output);
    let output = session.event_log().read_output(&RingQuery { since, ..RingQuery::default() });
    // Adapters also print on their own behalf.
    let printed = output.entries.iter().filter(|it| matches!(it.kind.as_str(), "stdout" | "stderr"));
    let text: String = printed.map(|it| it.text.as_str()).collect();
    let start = text.ceil_char_boundary(text.len().saturating_sub(most));
    if start > 0 || output.dropped > 0 {
        omitted.push(format!("{start} bytes of earlier output: `tether debug output`"));
    }
    text.get(start..).unwrap_or_default().to_owned()
}

/// The source files of the user's frames.
fn own_files(frames: &[SummaryFrame]) -> Vec<PathBuf> {
    let path = |frame: &SummaryFrame| match frame {
        SummaryFrame::Frame(frame) => frame.path().map(PathBuf::from).filter(|path| path.is_absolute()),
        SummaryFrame::Folded { .. } => None,
    };
    frames.iter().filter_map(path).collect()
}

/// About how many bytes a local takes in a summary.
fn local_bytes(name: &str, value: &str) -> usize {
    sum_bytes([name.len(), value.len(), 4])
}

fn sum_bytes(sizes: impl IntoIterator<Item = usize>) -> usize {
    sizes.into_iter().fold(0, usize::saturating_add)
}

impl StopSummary {
    fn byte_count(&self) -> usize {
        let frame_bytes = |it: &SummaryFrame| match it {
            SummaryFrame::Frame(frame) => sum_bytes([frame.name.len(), frame.path().map_or(0, str::len), 20]),
            SummaryFrame::Folded { .. } => 40,
        };
        let frames = self.frames.iter().map(frame_bytes);
        let locals = self.locals.iter().map(|it| local_bytes(&it.name, &it.value));
        let source = self.source.iter().map(|(_, text)| sum_bytes([text.len(), 8]));
        sum_bytes(frames.chain(locals).chain(source))
    }

    /// Adds as many locals as fit into two thirds of the budget.
    fn add_locals(&mut self, groups: Vec<VariableGroup>, budget: usize) {
        let most = (budget.saturating_mul(2) / 3).saturating_sub(self.byte_count());
        let (mut bytes, mut left, mut helpers) = (0, 0u32, 0u32);
        for variable in groups
            .into_iter()
            .flat_map(|group| group.variables)
            .filter(|it| !BUILTIN_GROUPS.contains(&it.name.as_str()))
        {
            if is_bundler_helper(&variable) {
                helpers = helpers.saturating_add(1);
                continue;
            }
            let value = summary_line(&variable.value);
            bytes = sum_bytes([bytes, local_bytes(&variable.name, &value)]);
            if bytes > most {
                left = left.saturating_add(1);
            } else {
                self.locals.push(DapVariable { value, ..variable });
            }
        }
        if left > 0 {
            self.omitted.push(format!("{left} more locals: `tether debug variables`"));
        }
        if helpers > 0 {
            self.omitted.push(format!("{helpers} helpers of the bundler: `tether debug variables`"));
        }
    }
}

/// Whether a bundler or compiler added this variable. esbuild wraps each CommonJS module in a function `require_NAME`.
fn is_bundler_helper(variable: &DapVariable) -> bool {
    BUNDLER_HELPERS.contains(&variable.name.as_str())
        || (variable.name.starts_with("require_") && variable.value.contains("__require()"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_also_read_from_the_stop_text() {
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
    fn omitted_locals_are_counted() {
        let variable = |name: &str, value: String| DapVariable { name: name.into(), value, ..DapVariable::default() };
        let variables = vec![
            variable("special variables", String::new()),
            variable("a", "x".repeat(500)),
            variable("b", "1".into()),
            variable("__copyProps", "f (to, from) {…}".into()),
            variable("require_main", "ƒ __require()".into()),
        ];
        let mut summary = StopSummary::default();
        summary.add_locals(vec![VariableGroup { scope: None, target: 0, variables: variables.clone() }], 6000);
        assert!(
            summary.locals[0].value.ends_with("… (500 characters)")
                && summary.locals.len() == 2
                && summary.omitted == ["2 helpers of the bundler: `tether debug variables`"]
        );
        let mut summary = StopSummary::default();
        summary.add_locals(vec![VariableGroup { scope: None, target: 0, variables }], 100);
        assert_eq!(summary.omitted[0], "2 more locals: `tether debug variables`");
    }
}
