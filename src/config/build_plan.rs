//! A build plan: commands, their order, and when each of them is done.
//!
//! Plain data. Does not depend on the files that describe it, nor on what runs it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tether_base::error::Result;
use tether_base::secret_values::SecretValues;

use crate::config::consent_line::ConsentLine;
use crate::config::shown_environment::{add_variables, secrets_of_references, show_environment};
use crate::config::source_file::Origin;
use crate::config::vscode::editor_inputs::{EditorInputs, MissingInput};
use crate::config::vscode::problem_matchers::BackgroundCycle;
use crate::config::vscode::shell_line::{LinePosition, find_shell_line, substitute_in_shell_line};
use crate::config::vscode::shell_quoting::{LineSource, quote_shown_word, quote_word};
use crate::config::vscode::variables::{environment_value, substitute_environment};

/// The commands that run before a launch. Without steps there is nothing to build.
#[derive(Clone, Debug)]
pub struct BuildPlan {
    /// Referred to by index in `order`.
    pub steps: Vec<BuildStep>,
    /// When they run.
    pub order: StepOrder,
    /// Tasks on which several depend; referred to by index in `order`.
    pub shared: Vec<SharedTask>,
    /// The steps that only check, and run after the others: none of them is in `order`.
    pub checks: Vec<usize>,
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
    /// What is shown of `argv`: each `${env:…}` stays, in a shell's line as the shell writes it.
    pub shown_argv: Vec<String>,
    /// The values of its variables: masked in its output and its errors.
    pub secrets: SecretValues,
    /// It is a part of a script that is a step, too: consent to that covers it.
    pub is_part: bool,
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
        BuildPlan {
            steps: Vec::new(),
            order: StepOrder::Sequence(Vec::new()),
            shared: Vec::new(),
            checks: Vec::new(),
            timeout,
        }
    }

    /// A plan of one step.
    pub fn single(step: BuildStep, timeout: Duration) -> BuildPlan {
        BuildPlan { steps: vec![step], order: StepOrder::Step(0), ..BuildPlan::empty(timeout) }
    }

    /// This plan, and then one more step.
    #[must_use]
    pub fn followed_by(mut self, step: BuildStep) -> BuildPlan {
        let last = StepOrder::Step(self.steps.len());
        self.order = if self.steps.is_empty() { last } else { StepOrder::Sequence(vec![self.order, last]) };
        self.steps.push(step);
        self
    }

    /// The steps as the files of the workspace write them: what is shown, and consented to.
    pub fn written_steps(&self) -> impl Iterator<Item = &BuildStep> {
        self.steps.iter().filter(|step| !step.is_part)
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
            shown_argv: argv.clone(),
            secrets: SecretValues::default(),
            argv,
            cwd: cwd.to_owned(),
            env: BTreeMap::new(),
            completion: StepCompletion::OnExit,
            origin,
            is_part: false,
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
        let words = |inputs: &EditorInputs| {
            self.substitute_words(
                |word| inputs.substitute(word, workspace),
                |line, first| inputs.substitute_in_line(line, first, workspace),
            )
        };
        let argv = words(inputs).map_err(wrong)?;
        let shown_argv = words(&inputs.keeping_environment()).map_err(wrong)?;
        let env: BTreeMap<_, _> =
            self.env.iter().map(|(name, value)| Ok((name.clone(), substitute(value)?))).collect::<Result<_>>()?;
        let cwd = workspace.join(substitute(&self.cwd.to_string_lossy().into_owned())?);
        let secrets = self.secrets_with(&env);
        Ok(BuildStep { argv, shown_argv, env, cwd, secrets, ..self.clone() })
    }

    /// Replaces every `${env:…}` by its value.
    pub fn substitute_environment(&mut self) {
        let env = self.env.iter().map(|(name, text)| (name.clone(), substitute_environment(text))).collect();
        let value = |name: &str, place: &LinePosition| {
            let variable = name.strip_prefix("env:").map(environment_value);
            Ok::<_, Infallible>(variable.map(|value| place.quote_environment_value(&value)))
        };
        let reference = |name: &str, place: &LinePosition| {
            Ok::<_, Infallible>(name.strip_prefix("env:").map(|variable| place.environment_reference(variable)))
        };
        let Ok(argv) = self.substitute_words(
            |word| Ok(substitute_environment(word)),
            |line, first| substitute_in_shell_line(line, first, value),
        );
        let Ok(shown_argv) = self.substitute_words(
            |word| Ok(word.to_owned()),
            |line, first| substitute_in_shell_line(line, first, reference),
        );
        let secrets = self.secrets_with(&env);
        (self.argv, self.shown_argv, self.env, self.secrets) = (argv, shown_argv, env, secrets);
    }

    /// The words of the command, each through one of the functions: a shell's line, or any other word.
    fn substitute_words<E>(
        &self,
        word: impl Fn(&str) -> Result<String, E>,
        line: impl Fn(&str, LinePosition) -> Result<String, E>,
    ) -> Result<Vec<String>, E> {
        let substitute = |(at, text): (usize, &String)| match self.line_start(at) {
            Some(first) => line(text, first),
            None => word(text),
        };
        self.argv.iter().enumerate().map(substitute).collect()
    }

    /// The values that substitution puts into the command, and those of its own variables.
    fn secrets_with(&self, env: &BTreeMap<String, String>) -> SecretValues {
        let cwd = self.cwd.to_string_lossy();
        let texts = self.argv.iter().chain(self.env.values()).map(String::as_str).chain([&*cwd]);
        let mut secrets = secrets_of_references(texts);
        let own = self.env.iter().filter(|(_, value)| !value.contains("${env:")).map(|(name, _)| name);
        add_variables(&mut secrets, own.filter_map(|name| Some((name.as_str(), env.get(name)?.as_str()))));
        secrets
    }

    /// The start of the shell's line, when the word at this index is one.
    fn line_start(&self, at: usize) -> Option<LinePosition> {
        let (_, source) = self.shell_line.filter(|(line, _)| *line == at)?;
        Some(LinePosition::line_start(&self.argv[0], &self.argv[at], source))
    }

    /// A shell command that runs the step from any folder, with variables of the environment by their names.
    pub fn shell_command_with_cd(&self) -> String {
        format!("cd {} && {}", quote_word(&self.secrets.mask(&self.cwd.to_string_lossy())), self.shell_command())
    }

    /// The same, in its folder.
    pub fn shell_command(&self) -> String {
        match &self.shown_argv[..] {
            [_, flag, line] if flag == "-c" => line.clone(),
            argv => argv.iter().map(|it| quote_shown_word(it)).collect::<Vec<_>>().join(" "),
        }
    }
}
