//! What a build is: steps, in which order, and how each ends.
//!
//! Plain data. Must not know where it comes from, nor who runs it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::file::Origin;
use super::given::{EditorInputs, MissingInput};
use super::matchers::BackgroundCycle;
use super::shell::{self, LinePosition, LineSource};
use super::variables::{environment_value, substitute_environment};
use crate::error::{Error, Result};

/// What runs before a launch. Without steps there is nothing to build.
#[derive(Clone, Debug)]
pub struct BuildPlan {
    pub steps: Vec<BuildStep>,
    pub order: StepOrder,
    /// For all of it together.
    pub timeout: Duration,
}

/// When the steps run. A step that stands in several places runs once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOrder {
    Step(usize),
    /// One after the other; the first failure ends it.
    Sequence(Vec<StepOrder>),
    /// All at once; the first failure ends the others.
    Parallel(Vec<StepOrder>),
}

/// One command of a build.
#[derive(Clone, Debug)]
pub struct BuildStep {
    /// What the user calls it: a task's label, or the command.
    pub label: String,
    /// What is run; for a line of a shell: the shell, `-c`, the line.
    pub argv: Vec<String>,
    /// Which word of `argv` is the line of a shell.
    pub shell_line: Option<(usize, LineSource)>,
    /// Absolute.
    pub cwd: PathBuf,
    /// Added to the inherited environment.
    pub env: BTreeMap<String, String>,
    pub completion: StepCompletion,
    pub origin: Origin,
    /// The texts that a package manager would run for it.
    pub scripts: Vec<NpmScript>,
}

/// How a step comes to its end.
#[derive(Clone, Debug)]
pub enum StepCompletion {
    OnExit,
    /// A watcher: it is done when it has said that its first cycle is, and is ended then.
    AfterCycle(Box<BackgroundCycle>),
}

/// One line of what a workspace's files want to run: unambiguous, a change of one byte changes it; and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentLine {
    pub text: String,
    pub origin: Option<Origin>,
}

/// A script of a package.json.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpmScript {
    pub name: String,
    pub text: String,
    pub origin: Origin,
}

impl NpmScript {
    pub fn consent_line(&self) -> ConsentLine {
        let text = format!("script {}: {}", json!(self.name), json!(self.text));
        ConsentLine { text, origin: Some(self.origin.clone()) }
    }
}

impl BuildPlan {
    pub fn empty(timeout: Duration) -> BuildPlan {
        BuildPlan { steps: Vec::new(), order: StepOrder::Sequence(Vec::new()), timeout }
    }

    pub fn single(step: BuildStep, timeout: Duration) -> BuildPlan {
        BuildPlan { steps: vec![step], order: StepOrder::Step(0), timeout }
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// What is really run: with what was said by hand, and the environment, put in.
    pub(super) fn filled(&self, given: &EditorInputs, workspace: &Path) -> Result<BuildPlan> {
        let steps = self.steps.iter().map(|step| step.filled(given, workspace)).collect::<Result<_>>()?;
        Ok(BuildPlan { steps, ..self.clone() })
    }
}

impl BuildStep {
    /// What runs, for who has to agree to it; `word` says what for.
    pub fn consent_lines(&self, word: &str, workspace: &Path) -> Vec<ConsentLine> {
        let mut text = format!("{word}: {}", json!(self.argv));
        if self.cwd != workspace {
            text += &format!(" in {}", json!(self.cwd));
        }
        if !self.env.is_empty() {
            text += &format!(" with {}", json!(self.env));
        }
        if let StepCompletion::AfterCycle(cycle) = &self.completion {
            text += &format!(" until {}", json!(cycle.ends_pattern));
        }
        let own = ConsentLine { text, origin: Some(self.origin.clone()) };
        let scripts = self.scripts.iter().map(NpmScript::consent_line);
        std::iter::once(own).chain(scripts).collect()
    }

    fn filled(&self, given: &EditorInputs, workspace: &Path) -> Result<BuildStep> {
        let wrong = |missing: MissingInput| {
            let MissingInput { variable, why, hint } = missing;
            Error::usage(format!("cannot run the task {:?} of {}", self.label, self.origin))
                .because(format!("it has the variable `${{{variable}}}`: {why}"))
                .hint(hint)
        };
        let fill = |text: &String| given.substitute(text, workspace).map_err(wrong);
        let word = |(at, text): (usize, &String)| match self.line_start(at) {
            Some(first) => given.substitute_in_line(text, first, workspace).map_err(wrong),
            None => fill(text),
        };
        let argv = self.argv.iter().enumerate().map(word).collect::<Result<_>>()?;
        let env = self.env.iter().map(|(name, value)| Ok((name.clone(), fill(value)?))).collect::<Result<_>>()?;
        let cwd = workspace.join(fill(&self.cwd.to_string_lossy().into_owned())?);
        Ok(BuildStep { argv, env, cwd, ..self.clone() })
    }

    /// With every `${env:…}` in it replaced by its value: what is really run.
    pub(super) fn substitute_environment(&mut self) {
        self.env.values_mut().for_each(|text| *text = substitute_environment(text));
        let word = |(at, text): (usize, &String)| match self.line_start(at) {
            Some(first) => substitute_environment_in_line(text, first),
            None => substitute_environment(text),
        };
        self.argv = self.argv.iter().enumerate().map(word).collect();
    }

    /// The beginning of the line of a shell, when this word is one.
    fn line_start(&self, at: usize) -> Option<LinePosition> {
        let (_, source) = self.shell_line.filter(|(line, _)| *line == at)?;
        Some(LinePosition::line_start(&self.argv[0], &self.argv[at], source))
    }

    /// As a reader would run it, wherever he is.
    pub fn shell_command_with_cd(&self) -> String {
        format!("cd {} && {}", shell::quote_word(&self.cwd.to_string_lossy()), self.shell_command())
    }

    /// As a reader would type it in its folder.
    pub fn shell_command(&self) -> String {
        match &self.argv[..] {
            [_, flag, line] if flag == "-c" => line.clone(),
            argv => argv.iter().map(|it| shell::quote_word(it)).collect::<Vec<_>>().join(" "),
        }
    }
}

fn substitute_environment_in_line(line: &str, first: LinePosition) -> String {
    let value = |name: &str, place: &LinePosition| {
        let variable = name.strip_prefix("env:").map(environment_value);
        Ok::<_, Infallible>(variable.map(|value| place.quote_environment_value(&value)))
    };
    let Ok(filled) = shell::substitute_in_shell_line(line, first, value);
    filled
}
