//! What a build is: steps, in which order, and how each ends.
//!
//! Plain data. Must not know where it comes from, nor who runs it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::file::Origin;
use super::given::{Given, Missing};
use super::matchers::Cycle;
use super::variables::with_environment;
use crate::error::{Error, Result};

/// What runs before a launch. Without steps there is nothing to build.
#[derive(Clone, Debug)]
pub struct BuildPlan {
    pub steps: Vec<Step>,
    pub order: Order,
    /// For all of it together.
    pub timeout: Duration,
}

/// When the steps run. A step that stands in several places runs once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    Step(usize),
    /// One after the other; the first failure ends it.
    Sequence(Vec<Order>),
    /// All at once; the first failure ends the others.
    Parallel(Vec<Order>),
}

/// One command of a build.
#[derive(Clone, Debug)]
pub struct Step {
    /// What the user calls it: a task's label, or the command.
    pub label: String,
    /// What is run; for a line of a shell: the shell, `-c`, the line.
    pub argv: Vec<String>,
    /// Absolute.
    pub cwd: PathBuf,
    /// Added to the inherited environment.
    pub env: BTreeMap<String, String>,
    pub ends: Ends,
    pub origin: Origin,
    /// The texts that a package manager would run for it.
    pub scripts: Vec<Script>,
}

/// How a step comes to its end.
#[derive(Clone, Debug)]
pub enum Ends {
    ByExit,
    /// A watcher: it is done when it has said that its first cycle is, and is ended then.
    AfterCycle(Box<Cycle>),
}

/// One line of what a workspace's files want to run: unambiguous, a change of one byte changes it; and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    pub origin: Option<Origin>,
}

/// A script of a package.json.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    pub name: String,
    pub text: String,
    pub origin: Origin,
}

impl Script {
    pub fn line(&self) -> Line {
        let text = format!("script {}: {}", json!(self.name), json!(self.text));
        Line { text, origin: Some(self.origin.clone()) }
    }
}

impl BuildPlan {
    pub fn nothing(timeout: Duration) -> BuildPlan {
        BuildPlan { steps: Vec::new(), order: Order::Sequence(Vec::new()), timeout }
    }

    pub fn of(step: Step, timeout: Duration) -> BuildPlan {
        BuildPlan { steps: vec![step], order: Order::Step(0), timeout }
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// What is really run: with what was said by hand, and the environment, put in.
    pub(super) fn filled(&self, given: &Given, workspace: &Path) -> Result<BuildPlan> {
        let steps = self.steps.iter().map(|step| step.filled(given, workspace)).collect::<Result<_>>()?;
        Ok(BuildPlan { steps, ..self.clone() })
    }
}

impl Step {
    /// What runs, for who has to agree to it; `word` says what for.
    pub fn lines(&self, word: &str, workspace: &Path) -> Vec<Line> {
        let mut text = format!("{word}: {}", json!(self.argv));
        if self.cwd != workspace {
            text += &format!(" in {}", json!(self.cwd));
        }
        if !self.env.is_empty() {
            text += &format!(" with {}", json!(self.env));
        }
        if let Ends::AfterCycle(cycle) = &self.ends {
            text += &format!(" until {}", json!(cycle.ends_pattern));
        }
        let own = Line { text, origin: Some(self.origin.clone()) };
        let scripts = self.scripts.iter().map(Script::line);
        std::iter::once(own).chain(scripts).collect()
    }

    fn filled(&self, given: &Given, workspace: &Path) -> Result<Step> {
        let fill = |text: &String| {
            given.fill(text, workspace).map_err(|missing| {
                let Missing { variable, why, hint } = missing;
                Error::usage(format!("cannot run the task {:?} of {}", self.label, self.origin))
                    .because(format!("it has the variable `${{{variable}}}`: {why}"))
                    .hint(hint)
            })
        };
        let argv = self.argv.iter().map(fill).collect::<Result<_>>()?;
        let env = self.env.iter().map(|(name, value)| Ok((name.clone(), fill(value)?))).collect::<Result<_>>()?;
        let cwd = workspace.join(fill(&self.cwd.to_string_lossy().into_owned())?);
        Ok(Step { argv, env, cwd, ..self.clone() })
    }

    /// With every `${env:…}` in it replaced by its value: what is really run.
    pub(super) fn fill_in_environment(&mut self) {
        let texts = self.argv.iter_mut().chain(self.env.values_mut());
        texts.for_each(|text| *text = with_environment(text));
    }

    /// As a reader would type it.
    pub fn shown(&self) -> String {
        match &self.argv[..] {
            [_, flag, line] if flag == "-c" => line.clone(),
            argv => argv.join(" "),
        }
    }
}
