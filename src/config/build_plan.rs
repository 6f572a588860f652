//! A build plan: commands, their order, and when each of them is done.
//!
//! Plain data. Does not depend on the files that describe it, nor on what runs it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::config::consent_line::ConsentLine;
use crate::config::shown_environment::show_environment;
use crate::config::source_file::Origin;
use crate::config::vscode::editor_inputs::{EditorInputs, MissingInput};
use crate::config::vscode::problem_matchers::BackgroundCycle;
use crate::config::vscode::shell_line::{LinePosition, find_shell_line, substitute_in_shell_line};
use crate::config::vscode::shell_quoting::{LineSource, quote_word};
use crate::config::vscode::variables::{environment_value, substitute_environment};
use crate::error::Result;

/// The commands that run before a launch. Without steps there is nothing to build.
#[derive(Clone, Debug)]
pub struct BuildPlan {
    /// Referred to by index in `order`.
    pub steps: Vec<BuildStep>,
    /// When they run.
    pub order: StepOrder,
    /// Tasks on which several depend; referred to by index in `order`.
    pub shared: Vec<SharedTask>,
    /// For the whole plan.
    pub timeout: Duration,
}

/// The order of the steps. A step in several places runs once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOrder {
    /// The step with this index.
    Step(usize),
    /// The shared task with this index.
    Shared(usize),
    /// One after the other; the first failure ends the sequence.
    Sequence(Vec<StepOrder>),
    /// All at once; the first failure ends the others.
    Parallel(Vec<StepOrder>),
}

/// A task on which several others depend: what it consists of runs once.
#[derive(Clone, Debug)]
pub struct SharedTask {
    pub label: String,
    pub order: StepOrder,
}

/// One command of a build plan.
#[derive(Clone, Debug)]
pub struct BuildStep {
    /// The task's label, or the command.
    pub label: String,
    /// Program and arguments; for a shell's line: the shell, `-c`, the line.
    pub argv: Vec<String>,
    /// Which word of `argv` is a shell's line.
    pub shell_line: Option<(usize, LineSource)>,
    /// Absolute.
    pub cwd: PathBuf,
    /// Added to the inherited environment.
    pub env: BTreeMap<String, String>,
    /// When it is done.
    pub completion: StepCompletion,
    /// Where it is defined.
    pub origin: Origin,
}

/// When a step is done.
#[derive(Clone, Debug)]
pub enum StepCompletion {
    /// When it exits.
    OnExit,
    /// A watcher or a server: when its output reports the end of the first cycle.
    AfterCycle(Box<BackgroundCycle>),
    /// A dev server: when it listens on the address that its output has.
    AfterAddress,
}

impl BuildPlan {
    /// A plan that runs nothing.
    pub fn empty(timeout: Duration) -> BuildPlan {
        BuildPlan { steps: Vec::new(), order: StepOrder::Sequence(Vec::new()), shared: Vec::new(), timeout }
    }

    /// A plan of one step.
    pub fn single(step: BuildStep, timeout: Duration) -> BuildPlan {
        BuildPlan { steps: vec![step], order: StepOrder::Step(0), shared: Vec::new(), timeout }
    }

    /// This plan, and then one more step.
    #[must_use]
    pub fn followed_by(mut self, step: BuildStep) -> BuildPlan {
        let last = StepOrder::Step(self.steps.len());
        self.order = if self.steps.is_empty() { last } else { StepOrder::Sequence(vec![self.order, last]) };
        self.steps.push(step);
        self
    }

    /// Whether there is nothing to build.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Substitutes editor inputs and the environment: the result is what is run.
    pub fn with_editor_inputs(&self, inputs: &EditorInputs, workspace: &Path) -> Result<BuildPlan> {
        let steps = self.steps.iter().map(|step| step.with_editor_inputs(inputs, workspace)).collect::<Result<_>>()?;
        Ok(BuildPlan { steps, ..self.clone() })
    }
}

impl BuildStep {
    /// A command that is done when it exits.
    pub fn of_command(argv: Vec<String>, cwd: &Path, origin: Origin) -> BuildStep {
        BuildStep {
            label: argv.join(" "),
            shell_line: find_shell_line(&argv),
            argv,
            cwd: cwd.to_owned(),
            env: BTreeMap::new(),
            completion: StepCompletion::OnExit,
            origin,
        }
    }

    /// A dev server. It opens no browser of its own.
    pub fn into_server(mut self) -> BuildStep {
        self.completion = StepCompletion::AfterAddress;
        self.env.entry("BROWSER".to_owned()).or_insert_with(|| "none".to_owned());
        self
    }

    /// The command for the user's consent; `word` is what it is for ("build", "before"). `runs_on`: as a background task it
    /// is not ended after its first cycle.
    pub fn consent_line(&self, word: &str, workspace: &Path, runs_on: bool) -> ConsentLine {
        let mut text = format!("{word}: {}", json!(self.argv));
        if self.cwd != workspace {
            text += &format!(" in {}", json!(self.cwd));
        }
        if !self.env.is_empty() {
            text += &format!(" with {}", self.shown_environment());
        }
        match &self.completion {
            StepCompletion::OnExit => {}
            StepCompletion::AfterCycle(cycle) => {
                let pattern = json!(cycle.ends_pattern);
                text += &match runs_on {
                    true => format!(" until the window or session that needs it ends; ready at {pattern}"),
                    false => format!(" until {pattern}"),
                };
            }
            StepCompletion::AfterAddress => {
                text +=
                    " until the window or session that needs it ends; ready when it serves the address that it prints";
            }
        }
        ConsentLine { text, origin: Some(self.origin.clone()) }
    }

    /// The variables that it sets, by names and digests.
    pub fn shown_environment(&self) -> Value {
        show_environment(self.env.iter().map(|(name, value)| (name, json!(value))))
    }

    fn with_editor_inputs(&self, inputs: &EditorInputs, workspace: &Path) -> Result<BuildStep> {
        let wrong = |missing: MissingInput| {
            missing.error(format!("cannot run the task {:?} of {}", self.label, self.origin), "it")
        };
        let substitute = |text: &String| inputs.substitute(text, workspace).map_err(wrong);
        let word = |(at, text): (usize, &String)| match self.line_start(at) {
            Some(first) => inputs.substitute_in_line(text, first, workspace).map_err(wrong),
            None => substitute(text),
        };
        let argv = self.argv.iter().enumerate().map(word).collect::<Result<_>>()?;
        let env = self.env.iter().map(|(name, value)| Ok((name.clone(), substitute(value)?))).collect::<Result<_>>()?;
        let cwd = workspace.join(substitute(&self.cwd.to_string_lossy().into_owned())?);
        Ok(BuildStep { argv, env, cwd, ..self.clone() })
    }

    /// Replaces every `${env:…}` by its value.
    pub fn substitute_environment(&mut self) {
        self.env.values_mut().for_each(|text| *text = substitute_environment(text));
        let value = |name: &str, place: &LinePosition| {
            let variable = name.strip_prefix("env:").map(environment_value);
            Ok::<_, Infallible>(variable.map(|value| place.quote_environment_value(&value)))
        };
        let word = |(at, text): (usize, &String)| {
            let Some(first) = self.line_start(at) else { return substitute_environment(text) };
            let Ok(substituted) = substitute_in_shell_line(text, first, value);
            substituted
        };
        self.argv = self.argv.iter().enumerate().map(word).collect();
    }

    /// The start of the shell's line, when the word at this index is one.
    fn line_start(&self, at: usize) -> Option<LinePosition> {
        let (_, source) = self.shell_line.filter(|(line, _)| *line == at)?;
        Some(LinePosition::line_start(&self.argv[0], &self.argv[at], source))
    }

    /// A shell command that runs the step from any folder.
    pub fn shell_command_with_cd(&self) -> String {
        format!("cd {} && {}", quote_word(&self.cwd.to_string_lossy()), self.shell_command())
    }

    /// A shell command that runs the step in its folder.
    pub fn shell_command(&self) -> String {
        match &self.argv[..] {
            [_, flag, line] if flag == "-c" => line.clone(),
            argv => argv.iter().map(|it| quote_word(it)).collect::<Vec<_>>().join(" "),
        }
    }
}
