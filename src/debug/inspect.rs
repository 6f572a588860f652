//! Looking into a stopped program: threads, stack, variables, expressions, sources, the exception.
//!
//! Ids of threads, frames and variables are an adapter's own, and good for one connection only. Outside they are numbers
//! that carry their target ([`Ref`]); those of the first target, which is the only one of most sessions, stay as they are.

use futures_util::future::join_all;

use super::published::State;
use super::session::Session;
use crate::dap::DapError;
pub use crate::dap::types::DapVariable;
use crate::dap::types::{
    DapScope, DapSource, DapStackFrame, DapThread, EvaluateArguments, EvaluateResponse, ExceptionInfoArguments,
    ExceptionInfoResponse, PauseArguments, ScopesArguments, SetExpressionArguments, SetVariableArguments,
    SetVariableResponse, SourceArguments, StackTraceArguments, StackTraceResponse, ThreadsArguments,
    VariablesArguments,
};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::lock;

/// An adapter's id, with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ref {
    pub target: usize,
    pub id: i64,
}

impl Ref {
    /// LLDB numbers some of its values from 2^32 on.
    const BITS: u32 = 40;

    /// Below 2^53, which JSON's readers take without loss, for up to eight thousand targets.
    pub fn outer(self) -> i64 {
        ((self.target as i64) << Ref::BITS) | self.id
    }

    pub fn of(outer: i64) -> Ref {
        let target = usize::try_from(outer >> Ref::BITS).unwrap_or_default();
        Ref { target, id: outer - ((target as i64) << Ref::BITS) }
    }

    fn with(self, id: i64) -> Ref {
        Ref { target: self.target, id }
    }
}

/// One thread, and whether it is stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenThread {
    pub id: Ref,
    pub name: String,
    pub stopped: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub id: Ref,
    pub name: String,
    pub source: Option<DapSource>,
    pub line: i64,
    pub column: i64,
    /// Not the user's own code, or no code at all.
    pub subtle: bool,
}

impl Frame {
    fn of(at: Ref, frame: DapStackFrame) -> Frame {
        let hint = frame.presentation_hint.as_deref();
        let dim = frame.source.as_ref().is_some_and(|it| it.presentation_hint.as_deref() == Some("deemphasize"));
        Frame {
            id: at.with(frame.id),
            subtle: dim || matches!(hint, Some("subtle" | "label")),
            name: frame.name,
            source: frame.source,
            line: frame.line,
            column: frame.column,
        }
    }

    pub fn path(&self) -> Option<&str> {
        self.source.as_ref()?.path.as_deref()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    pub thread: Ref,
    pub frames: Vec<Frame>,
    /// If the adapter knows.
    pub total: Option<i64>,
}

/// The variables of one scope, or of one structured value.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub scope: Option<String>,
    pub target: usize,
    pub variables: Vec<DapVariable>,
}

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// A frame, or else the top frame of the primary stop.
    pub frame: Option<Ref>,
    /// A structured value.
    pub reference: Option<Ref>,
}

impl Session {
    /// All threads of all living targets. A target that does not answer has none but those that have stopped.
    pub async fn threads(&self) -> Vec<SeenThread> {
        let snapshot = self.snapshot();
        let living = (0..snapshot.targets.len()).filter(|id| self.client(*id).is_some());
        let asked = living.map(|target| async move { (target, self.ask(target, &ThreadsArguments {}).await) });
        let mut seen = Vec::new();
        for (target, answer) in join_all(asked).await {
            let threads = answer.map(|answer| answer.threads).unwrap_or_default();
            let stops = snapshot.targets[target].state.stops();
            let unnamed = stops.iter().filter_map(|stop| stop.thread_id);
            let unnamed = unnamed.filter(|id| threads.iter().all(|thread| thread.id != *id));
            let unnamed: Vec<DapThread> = unnamed.map(|id| DapThread { id, name: String::new() }).collect();
            seen.extend(threads.into_iter().chain(unnamed).map(|thread| SeenThread {
                id: Ref { target, id: thread.id },
                stopped: stops.iter().any(|stop| stop.all_threads || stop.thread_id == Some(thread.id)),
                name: thread.name,
            }));
        }
        seen
    }

    /// The stack of a stopped thread, or of that of the primary stop.
    pub async fn stack(&self, thread: Option<Ref>, start: Option<i64>, levels: Option<i64>) -> Result<Stack> {
        let generation = self.snapshot().generation;
        let (target, id) = self.choose(thread.map(|it| (it.target, it.id)))?;
        let thread = Ref { target, id };
        let (from_top, most) = (start.unwrap_or(0) == 0, count(levels));
        let _turn = self.shared.showing.lock().await;
        if let Some(known) = lock(&self.shared.shown).stack(generation, thread, most).filter(|_| from_top) {
            return Ok(known);
        }
        let request =
            StackTraceArguments { thread_id: id, start_frame: start, levels, ..StackTraceArguments::default() };
        let answer: StackTraceResponse =
            self.ask(target, &request).await.map_err(|cause| self.cannot("read the stack", cause))?;
        let mut frames: Vec<Frame> = answer.stack_frames.into_iter().map(|frame| Frame::of(thread, frame)).collect();
        // Some send all of them whatever was asked for.
        frames.truncate(most);
        let stack = Stack { thread, frames, total: answer.total_frames };
        if from_top {
            lock(&self.shared.shown).has_stack(generation, stack.clone(), most);
        }
        Ok(stack)
    }

    /// The named frame, or the top one of the primary stop.
    pub async fn frame(&self, frame: Option<Ref>) -> Result<Ref> {
        if let Some(frame) = frame {
            return Ok(frame);
        }
        let stack = self.stack(None, None, Some(1)).await?;
        let none = || Error::other("cannot choose a frame").because("the stopped thread has none");
        stack.frames.first().map(|frame| frame.id).ok_or_else(none)
    }

    pub async fn scopes(&self, frame: Ref) -> Result<Vec<DapScope>> {
        let generation = self.snapshot().generation;
        if let Some(known) = lock(&self.shared.shown).scopes(generation, frame) {
            return Ok(known);
        }
        let answer = self.ask(frame.target, &ScopesArguments { frame_id: frame.id }).await;
        let scopes = answer.map_err(|cause| self.cannot("read the scopes", cause))?.scopes;
        lock(&self.shared.shown).has_scopes(generation, frame, scopes.clone());
        Ok(scopes)
    }

    /// The variables of a frame, scope by scope (without those that are expensive to read), or of a structured value.
    pub async fn variables(&self, wish: &Wish) -> Result<Vec<Group>> {
        if let Some(reference) = wish.reference {
            let variables = self.read_variables(reference).await?;
            return Ok(vec![Group { scope: None, target: reference.target, variables }]);
        }
        let frame = self.frame(wish.frame).await?;
        let all = self.scopes(frame).await?;
        // At a module's level some adapters have global variables only.
        let any = all.iter().any(is_local);
        let scopes: Vec<DapScope> = all.into_iter().filter(|it| is_local(it) || (!any && !it.expensive)).collect();
        let read = scopes.iter().map(|scope| self.read_variables(frame.with(scope.variables_reference)));
        let mut groups = Vec::new();
        for (scope, variables) in scopes.iter().zip(join_all(read).await) {
            groups.push(Group { scope: Some(scope.name.clone()), target: frame.target, variables: variables? });
        }
        Ok(groups)
    }

    async fn read_variables(&self, reference: Ref) -> Result<Vec<DapVariable>> {
        let generation = self.snapshot().generation;
        let all = VariablesArguments { variables_reference: reference.id, ..VariablesArguments::default() };
        let mut variables = self.read(reference, &all).await?;
        // Some tell elements only when they are asked for them (rdbg).
        let indexed = lock(&self.shared.shown).size(generation, reference).map_or(0, |size| size.indexed);
        if (variables.len() as i64) < indexed {
            let mut elements = self.elements(reference, 0, indexed).await?;
            elements.append(&mut variables);
            variables = elements;
        }
        Ok(variables)
    }

    pub(super) async fn read(&self, reference: Ref, request: &VariablesArguments) -> Result<Vec<DapVariable>> {
        let generation = self.snapshot().generation;
        let answer = self.ask(reference.target, request).await;
        let variables = answer.map_err(|cause| self.cannot("read the variables", cause))?.variables;
        let mut shown = lock(&self.shared.shown);
        for it in &variables {
            shown.has_size(
                generation,
                reference.with(it.variables_reference),
                it.indexed_variables,
                it.named_variables,
            );
        }
        drop(shown);
        Ok(variables)
    }

    /// Evaluates in a frame; without one in the top frame of the primary stop, or, while nothing is stopped, globally
    /// where the adapter can.
    pub async fn evaluate(
        &self,
        expression: &str,
        frame: Option<Ref>,
        context: &str,
    ) -> Result<(Ref, EvaluateResponse)> {
        let running = frame.is_none() && self.snapshot().state() != State::Stopped;
        let at = if running { self.somewhere()? } else { self.frame(frame).await? };
        let request = EvaluateArguments {
            expression: expression.to_owned(),
            frame_id: (!running).then_some(at.id),
            context: Some(context.to_owned()),
            ..EvaluateArguments::default()
        };
        let generation = self.snapshot().generation;
        let answer = self.ask(at.target, &request).await;
        lock(&self.shared.shown).forget();
        let answer = answer.map_err(|cause| {
            let error = self.cannot(&format!("evaluate `{}`", shown(expression)), cause);
            if running {
                error.hint("the program runs: `tether debug pause` stops it, and gives a frame")
            } else {
                error
            }
        })?;
        let value = at.with(answer.variables_reference);
        lock(&self.shared.shown).has_size(generation, value, answer.indexed_variables, answer.named_variables);
        Ok((value, answer))
    }

    /// The youngest living target: the one that runs the user's code.
    fn somewhere(&self) -> Result<Ref> {
        let last = (0..self.snapshot().targets.len()).rev().find(|id| self.client(*id).is_some());
        last.map(|target| Ref { target, id: 0 }).ok_or_else(|| self.not_stopped())
    }

    /// Changes a variable of a frame's scopes, or of a structured value.
    pub async fn set_variable(&self, name: &str, value: &str, wish: &Wish) -> Result<(Ref, SetVariableResponse)> {
        let (name_owned, value_owned) = (name.to_owned(), value.to_owned());
        let cannot = |cause| self.cannot(&format!("set `{}`", shown(name)), cause);
        // Asked something that it does not know, an adapter may end (rdbg).
        let set = async |reference: Ref| {
            if self.client(reference.target).is_none() {
                let error = Error::new(ErrorKind::NotFound, format!("there is no value {}", reference.outer()));
                return Err(error.hint("`tether debug variables` tells the references of this stop"));
            }
            if !self.seat(reference.target).able().can("supportsSetVariable") {
                let error = Error::usage(format!("cannot set `{}`", shown(name)));
                let error = error.because("this adapter cannot set variables");
                return Err(error.hint(format!("`tether debug evaluate '{name} = {value}'` may do it")));
            }
            let request = SetVariableArguments {
                variables_reference: reference.id,
                name: name_owned.clone(),
                value: value_owned.clone(),
                ..SetVariableArguments::default()
            };
            let answer = self.ask(reference.target, &request).await;
            lock(&self.shared.shown).forget();
            let answer = answer.map_err(cannot)?;
            Ok((reference.with(answer.variables_reference.unwrap_or_default()), answer))
        };
        if let Some(reference) = wish.reference {
            return set(reference).await;
        }
        let frame = self.frame(wish.frame).await?;
        for scope in self.scopes(frame).await?.into_iter().filter(|scope| !scope.expensive) {
            let reference = frame.with(scope.variables_reference);
            let variables = self.read_variables(reference).await?;
            if variables.iter().any(|variable| variable.name == name) {
                return set(reference).await;
            }
        }
        if !self.seat(frame.target).able().can("supportsSetExpression") {
            let error =
                Error::new(ErrorKind::NotFound, format!("there is no variable `{}` in this frame", shown(name)));
            return Err(error.hint("`tether debug variables` lists them"));
        }
        let request = SetExpressionArguments {
            expression: name.to_owned(),
            value: value.to_owned(),
            frame_id: Some(frame.id),
            ..SetExpressionArguments::default()
        };
        let answer = self.ask(frame.target, &request).await;
        lock(&self.shared.shown).forget();
        let answer = answer.map_err(cannot)?;
        Ok((frame.with(answer.variables_reference.unwrap_or_default()), answer))
    }

    /// What was thrown, where the adapter can tell.
    pub async fn exception(&self, thread: Ref) -> Option<ExceptionInfoResponse> {
        if !self.seat(thread.target).able().can("supportsExceptionInfoRequest") {
            return None;
        }
        self.ask(thread.target, &ExceptionInfoArguments { thread_id: thread.id }).await.ok()
    }

    /// The text of a source that is in no file.
    pub async fn source_text(&self, reference: Ref, source: Option<DapSource>) -> Result<String> {
        let request = SourceArguments { source_reference: reference.id, source };
        let answer = self.ask(reference.target, &request).await;
        Ok(answer.map_err(|cause| self.cannot("read the source", cause))?.content)
    }

    /// Stops all that runs.
    pub async fn pause(&self, thread: Option<Ref>) -> Result<()> {
        let snapshot = self.snapshot();
        if snapshot.state() != State::Running {
            let error = Error::usage("cannot pause the program");
            return Err(error.because(format!("its state is {}", snapshot.state().name())));
        }
        let threads = self.threads().await;
        let chosen: Vec<Ref> = match thread {
            Some(thread) => vec![thread],
            // One for each target; those that only coordinate have none.
            None => (0..snapshot.targets.len())
                .filter(|target| self.client(*target).is_some())
                .filter_map(|target| {
                    let known = threads.iter().find(|it| it.id.target == target && !it.stopped).map(|it| it.id);
                    // lldb-dap tells of no threads while they run; but who has children only coordinates.
                    let alone = snapshot.targets.iter().all(|other| other.parent != Some(target));
                    known.or(alone.then_some(Ref { target, id: 0 }))
                })
                .collect(),
        };
        lock(&self.shared.pausing).extend(chosen.iter().map(|it| it.target));
        let asked = chosen.iter().map(|it| async { self.ask(it.target, &PauseArguments { thread_id: it.id }).await });
        let outcomes = join_all(asked).await;
        let refused = outcomes.iter().all(Result::is_err);
        match outcomes.into_iter().find_map(Result::err) {
            Some(cause) if refused => Err(self.cannot("pause the program", cause)),
            _ if chosen.is_empty() => Err(Error::other("cannot pause the program").because("it has no threads yet")),
            _ => Ok(()),
        }
    }

    pub(super) fn cannot(&self, what: &str, cause: DapError) -> Error {
        let kind = match cause {
            DapError::TimedOut { .. } => ErrorKind::TimedOut,
            _ => ErrorKind::Other,
        };
        let timed_out = kind == ErrorKind::TimedOut;
        let error = Error::new(kind, format!("cannot {what}")).because(cause);
        match self.snapshot().state() {
            State::Terminated | State::Disconnected => {
                error.hint("the session has ended; `tether debug launch` starts one")
            }
            State::Running => error.hint("`tether debug pause` stops the program"),
            _ if timed_out => error.hint("the program may be busy: `tether debug status` tells"),
            _ => error,
        }
    }
}

/// How many frames are asked for; none, or none at all, means all.
fn count(levels: Option<i64>) -> usize {
    levels.filter(|levels| *levels > 0).map_or(usize::MAX, |levels| levels as usize)
}

/// Scopes that are cheap to read, and hold what a reader means by the variables of a frame.
pub fn is_local(scope: &DapScope) -> bool {
    let name = scope.name.to_lowercase();
    let wide = ["global", "static", "register"].iter().any(|word| name.starts_with(word));
    !scope.expensive && !wide && scope.presentation_hint.as_deref() != Some("registers")
}

fn shown(text: &str) -> String {
    const MOST: usize = 80;
    let mut shown: String = text.chars().take(MOST).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_carry_their_target_and_those_of_the_first_stay_as_they_are() {
        for (target, id) in [(0, 0), (0, 7), (0, (1 << 32) + 5), (1, 7), (3, 2_147_483_647)] {
            let at = Ref { target, id };
            assert_eq!(Ref::of(at.outer()), at);
        }
        assert_eq!(Ref { target: 0, id: 7 }.outer(), 7);
        assert!(Ref { target: 8_000, id: i64::from(i32::MAX) }.outer() < 1 << 53);
    }
}
