//! What a stop answers at once: why it stopped, and a look around within a budget, so that one call is enough.
//!
//! What is cut is said, with the operation that gets it. Must not know the API.

use std::path::Path;

use futures_util::future::OptionFuture;
use tokio::join;

use super::breakpoints::What;
use super::inspect::{Frame, Group, Ref, Wish};
use super::session::Session;
use super::source_file;
use super::stop::{Stop, StopKind};
use crate::dap::types::{DapVariable, ExceptionInfoResponse};
use crate::error::Result;
use crate::ring::Query;
use crate::sync::lock;

/// About 1,500 tokens.
pub const BUDGET: usize = 6000;
const FRAMES: i64 = 10;
/// Source lines on each side of the current one.
const AROUND: i64 = 4;
/// The longest value of a variable, in characters.
const WIDTH: usize = 160;

/// Why a thread is stopped, in full.
#[derive(Clone, Debug)]
pub struct Reason {
    pub kind: StopKind,
    pub thread: Option<Ref>,
    pub thread_name: String,
    /// Where, if it is known.
    pub top: Option<Frame>,
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
pub struct Thrown {
    pub class: String,
    pub message: String,
    pub stack: String,
}

impl Reason {
    /// What was thrown, as far as the adapter tells; they put it into different places.
    pub fn thrown(&self) -> Thrown {
        let Some(info) = self.exception.clone() else {
            return in_words(self.text.as_deref().unwrap_or_default());
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
        Thrown { class, message, stack }
    }
}

/// rdbg says `#<ArgumentError: no> is raised.`, others the class alone.
fn in_words(text: &str) -> Thrown {
    let inside = text.strip_prefix("#<").and_then(|rest| rest.rsplit_once('>')).map(|(inside, _)| inside);
    let (class, message) = match inside {
        Some(inside) => inside.split_once(": ").unwrap_or((inside, "")),
        None => (text, ""),
    };
    Thrown { class: class.to_owned(), message: message.to_owned(), stack: String::new() }
}

/// What can be seen from a stop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    pub frames: Vec<Frame>,
    /// Of the top frame; their values are cut to one line.
    pub locals: Vec<DapVariable>,
    /// Numbered lines around that of the top frame.
    pub source: Vec<(i64, String)>,
    /// Since the stop before.
    pub output: String,
    /// What was left out, and how to get it.
    pub cut: Vec<String>,
}

impl Session {
    /// Why a target has stopped.
    pub async fn reason(&self, target: usize, stop: &Stop) -> Reason {
        let thread = stop.thread_id.map(|id| Ref { target, id });
        let exception = OptionFuture::from(
            thread.filter(|_| stop.kind == StopKind::Exception).map(|thread| self.exception(thread)),
        );
        let top = OptionFuture::from(thread.map(|thread| self.stack(Some(thread), None, Some(1))));
        let (top, threads, exception) = join!(top, self.threads(), exception);
        let top = top.and_then(Result::ok).and_then(|stack| stack.frames.into_iter().next());
        let name = threads.into_iter().find(|it| Some(it.id) == thread).map(|it| it.name);
        let hit = stop.hits.first().copied();
        let watched = match hit {
            Some((wanted, _)) if is_watch(stop.kind) => self.watched(wanted, top.as_ref()).await,
            _ => None,
        };
        // Of those that tell of both, the values say which it was.
        let same = |(_, old, new): &(String, Option<String>, Option<String>)| old.is_some() && old == new;
        let kind = match stop.kind {
            StopKind::WatchpointModify if watched.as_ref().is_some_and(same) => StopKind::WatchpointAccess,
            kind => kind,
        };
        Reason {
            kind,
            thread,
            thread_name: name.unwrap_or_default(),
            top,
            breakpoint: hit.map(|(id, _)| id),
            hit_count: hit.map(|(_, count)| count),
            exception: exception.flatten(),
            watched,
            text: stop.text.clone(),
        }
    }

    /// What a watchpoint watches, its value at the stop before, and now. Asked again at the same stop, it says the same.
    async fn watched(&self, wanted: u32, top: Option<&Frame>) -> Option<(String, Option<String>, Option<String>)> {
        let expression = lock(&self.shared.book).get(wanted).and_then(|it| match &it.what {
            What::Data { expression, .. } => Some(expression.clone()),
            _ => None,
        })?;
        let now =
            self.evaluate(&expression, top.map(|top| top.id), "watch").await.ok().map(|(_, answer)| answer.result);
        let (old, new) = lock(&self.shared.watched).turn(wanted, self.hits(wanted), now);
        Some((expression, old, new))
    }

    /// Looks around from the top of a stopped thread, in about `budget` bytes.
    pub async fn look(&self, thread: Ref, budget: usize) -> Result<Look> {
        let stack = self.stack(Some(thread), None, Some(FRAMES + 1)).await?;
        let mut frames = stack.frames;
        let total = stack.total.unwrap_or(frames.len() as i64).max(frames.len() as i64);
        frames.truncate(FRAMES as usize);
        let mut look = Look::default();
        if total > frames.len() as i64 {
            look.cut.push(format!("{} more frames: debug_stack", total - frames.len() as i64));
        }
        let groups = match frames.first() {
            Some(top) => self.variables(&Wish { frame: Some(top.id), reference: None }).await.unwrap_or_default(),
            None => Vec::new(),
        };
        if let Some(top) = frames.first() {
            let text = self.source_of(top).await.unwrap_or_default();
            look.source = around(&text, top.line, AROUND);
        }
        look.frames = frames;
        look.fill(groups, budget);
        look.output = self.output_of_stop(budget.saturating_sub(look.bytes()).max(budget / 5), &mut look.cut);
        Ok(look)
    }

    /// The text of a frame's source, from its file or from the adapter.
    pub async fn source_of(&self, frame: &Frame) -> Option<String> {
        if let Some(text) = frame.path().and_then(|path| source_file::read(Path::new(path)).ok()) {
            return Some(text);
        }
        let id = frame.source.as_ref()?.source_reference.filter(|id| *id > 0)?;
        self.source_text(Ref { target: frame.id.target, id }, frame.source.clone()).await.ok()
    }

    fn output_of_stop(&self, most: usize, cut: &mut Vec<String>) -> String {
        let (since, _) = *lock(&self.shared.spoken);
        let said = self.record().output(&Query { since, limit: usize::MAX, filter: None });
        let text: String =
            said.entries.iter().filter(|it| is_of_program(&it.category)).map(|it| it.text.as_str()).collect();
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

impl Look {
    fn bytes(&self) -> usize {
        let frames: usize = self.frames.iter().map(|it| it.name.len() + it.path().map_or(0, str::len) + 20).sum();
        let locals: usize = self.locals.iter().map(|it| it.name.len() + it.value.len() + 4).sum();
        let source: usize = self.source.iter().map(|(_, text)| text.len() + 8).sum();
        frames + locals + source
    }

    /// Takes in as many locals as fit into two thirds of the budget.
    fn fill(&mut self, groups: Vec<Group>, budget: usize) {
        let most = (budget * 2 / 3).saturating_sub(self.bytes());
        let (mut bytes, mut left) = (0, 0);
        for variable in groups.into_iter().flat_map(|group| group.variables).filter(|it| !is_noise(it)) {
            let value = clipped(&variable.value);
            bytes += variable.name.len() + value.len() + 4;
            if bytes > most {
                left += 1;
            } else {
                self.locals.push(DapVariable { value, ..variable });
            }
        }
        if left > 0 {
            self.cut.push(format!("{left} more locals: debug_variables"));
        }
    }
}

/// The lines on both sides of one of a text, numbered from 1, none longer than a reader can bear.
pub fn around(text: &str, line: i64, each_side: i64) -> Vec<(i64, String)> {
    let first = line.saturating_sub(each_side).max(1);
    let last = line.saturating_add(each_side);
    let numbered = (1..).zip(text.lines()).skip_while(|(number, _)| *number < first);
    numbered.take_while(|(number, _)| *number <= last).map(|(number, text)| (number, clipped(text))).collect()
}

/// One line of at most [`WIDTH`] characters.
fn clipped(text: &str) -> String {
    let line = text.trim_end().replace('\n', "⏎");
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}… ({} characters)", &line[..end], line.chars().count()),
        None => line,
    }
}

/// Adapters have much to say on their own account.
fn is_of_program(category: &str) -> bool {
    matches!(category, "stdout" | "stderr")
}

/// debugpy's groups of what every object has.
fn is_noise(variable: &DapVariable) -> bool {
    matches!(variable.name.as_str(), "special variables" | "function variables" | "class variables")
}

fn is_watch(kind: StopKind) -> bool {
    matches!(kind, StopKind::WatchpointAccess | StopKind::WatchpointModify)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_thrown_is_also_read_from_words() {
        let check = |text: &str, class: &str, message: &str| {
            let thrown = in_words(text);
            assert_eq!((thrown.class.as_str(), thrown.message.as_str()), (class, message), "{text}");
        };
        check("#<ArgumentError: no> is raised.", "ArgumentError", "no");
        check("#<Fatal> is raised.", "Fatal", "");
        check("signal SIGSEGV", "signal SIGSEGV", "");
        check("", "", "");
    }

    #[test]
    fn source_lines_are_numbered_and_end_with_the_file() {
        let text = "a\nb\nc\nd\n";
        let check = |line: i64, expect: &[i64]| {
            let numbers: Vec<i64> = around(text, line, 1).iter().map(|(number, _)| *number).collect();
            assert_eq!(numbers, expect, "{line}");
        };
        check(1, &[1, 2]);
        check(3, &[2, 3, 4]);
        check(4, &[3, 4]);
        check(9, &[]);
        check(-1, &[]);
        check(i64::MAX, &[]);
        assert_eq!(around(text, 2, 0), [(2, "b".to_owned())]);
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let variable = |name: &str, value: String| DapVariable { name: name.into(), value, ..DapVariable::default() };
        let variables = vec![
            variable("special variables", String::new()),
            variable("a", "x".repeat(500)),
            variable("b", "1".into()),
        ];
        let mut look = Look::default();
        look.fill(vec![Group { scope: None, target: 0, variables: variables.clone() }], 6000);
        assert!(look.locals[0].value.ends_with("… (500 characters)") && look.locals.len() == 2 && look.cut.is_empty());
        let mut look = Look::default();
        look.fill(vec![Group { scope: None, target: 0, variables }], 100);
        assert_eq!(look.cut, ["2 more locals: debug_variables"]);
    }
}
