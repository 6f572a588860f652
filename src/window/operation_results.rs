//! What the results of the window's operations lead to: the next operation, or answers to the callers.

use std::sync::Arc;

use tether_base::clock::now_ms;
use tether_base::error::{ErrorKind, Result};
use tether_base::sync::lock;

use super::actor::WindowActor;
use super::build::{BuildSummary, CompletedBuild};
use super::live_window::LiveWindow;
use super::recorded_launch::ReplaceError;
use super::repeated_builds::RepeatedBuilds;
use super::search::{SearchResult, unverified_error};
use super::state::{WindowInput, WindowPhase};

/// What an operation returned.
pub(super) enum OperationResult {
    Searched(SearchResult),
    Built(Result<CompletedBuild>, RepeatedBuilds),
    Launched(Result<Box<LiveWindow>, ReplaceError>),
    Closed(Result<()>),
}

impl WindowActor {
    /// Carries on with what the operation returned. What comes late is dropped: the result of a build that was aborted, or of
    /// a launch that was stopped meanwhile.
    pub(super) fn handle_result(&mut self, result: OperationResult) {
        match result {
            OperationResult::Searched(result) => self.handle_searched(result),
            OperationResult::Built(outcome, rounds) => {
                self.rounds = rounds;
                self.follows_obsolete_build = false;
                *lock(&self.context.build_sources) = None;
                // A build that ended while it was being aborted is dropped.
                if matches!(self.read(|published| published.phase), WindowPhase::Building { .. }) {
                    self.handle_built(outcome);
                }
            }
            OperationResult::Launched(outcome) => {
                self.outcome.launch = self.operation_started.elapsed();
                self.handle_launched(outcome.map(Arc::from));
            }
            OperationResult::Closed(outcome) => {
                self.publish(|published| {
                    published.exit = None;
                    published.unverified = None;
                });
                self.finish_operation(WindowInput::CloseFinished, outcome);
            }
        }
    }

    fn handle_searched(&mut self, result: SearchResult) {
        let unverified = if let SearchResult::Undecided(why) = &result { Some(why.clone()) } else { None };
        self.publish(|published| published.unverified = unverified);
        match result {
            SearchResult::Found(window) => self.handle_launched(Ok(window)),
            SearchResult::NoWindow => self.finish_operation(WindowInput::LaunchFinished { ok: false }, Ok(())),
            SearchResult::Undecided(why) => {
                self.finish_operation(WindowInput::SearchUndecided, Err(unverified_error(why)));
            }
        }
        self.publish(|published| published.search_done = true);
    }

    fn handle_built(&mut self, result: Result<CompletedBuild>) {
        let ended = match &result {
            Ok(build) => Some((build.duration, build.tail.clone())),
            // With other errors, the build was not started.
            Err(error) => {
                (error.kind == ErrorKind::BuildFailed).then(|| (self.operation_started.elapsed(), error.to_string()))
            }
        };
        if let Some((duration, tail)) = ended {
            let summary = BuildSummary { ok: result.is_ok(), ended_at_ms: now_ms(), duration, tail };
            self.publish(|published| published.last_build = Some(summary));
        }
        match result {
            Err(error) => self.finish_operation(WindowInput::BuildFinished { ok: false }, Err(error)),
            Ok(build) => {
                self.outcome.build = build.duration;
                self.outcome.notes.extend(build.notes.iter().cloned());
                self.publish(|published| published.notes.extend(build.notes.iter().cloned()));
                self.context.start_checks(&build.config.build);
                self.build = Some(build);
                if let Some(why) = self.replacement_blocker() {
                    self.outcome.held = Some(why);
                    return self.finish_operation(WindowInput::ReplacementHeld, Ok(()));
                }
                let effect = self.apply_input(WindowInput::BuildFinished { ok: true });
                self.start_operation(effect);
            }
        }
    }

    /// Why the old window must not be replaced by the result of an automatic build, if there is a reason. The build took
    /// its time: a debug session may have stopped in the window since it was begun.
    fn replacement_blocker(&self) -> Option<String> {
        let replaces = self.read(|published| published.phase) == WindowPhase::Building { old: true };
        self.context.replacement_blocker().filter(|_| replaces && self.callers.is_automatic())
    }

    fn handle_launched(&mut self, outcome: Result<Arc<LiveWindow>, ReplaceError>) {
        match outcome {
            // A stop came first: the close operation that now runs kills the new window by its launch id.
            Ok(_) | Err(ReplaceError { window: Some(_), .. })
                if self.read(|published| published.phase) != WindowPhase::Starting => {}
            Ok(window) => {
                let generation = lock(&self.context.generations).assign(&window.session.generation_key());
                self.outcome.refreshed = window.refreshed;
                self.outcome.notes.extend(window.refresh_notes.iter().cloned());
                let refreshed_for = lock(&self.context.refresh_cause).take();
                self.publish(|published| {
                    published.generation = generation;
                    published.exit = None;
                    published.refreshed_for = refreshed_for;
                    published.notes.extend(window.notes.iter().chain(&window.refresh_notes).cloned());
                    published.window = Some(window);
                });
                self.finish_operation(WindowInput::LaunchFinished { ok: true }, Ok(()));
            }
            Err(ReplaceError { error, window: Some(window) }) => {
                // A new one if the window before was started again.
                let generation = lock(&self.context.generations).assign(&window.session.generation_key());
                self.publish(|published| {
                    published.generation = generation;
                    published.notes.extend(window.notes.iter().cloned());
                    published.window = Some(window);
                });
                self.finish_operation(WindowInput::WindowKept, Err(error));
            }
            Err(ReplaceError { error, window: None }) => {
                self.finish_operation(WindowInput::LaunchFinished { ok: false }, Err(error));
            }
        }
    }
}
