//! What a build is: steps, in which order, and how each ends.
//!
//! Plain data. Must not know where it comes from, nor who runs it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::file::Origin;
use super::given::{Given, Missing};
use super::matchers::Cycle;
use super::shell::{self, Made, Place};
use super::variables::{of_environment, with_environment};
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
    /// Which word of `argv` is the line of a shell.
    pub line: Option<(usize, Made)>,
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
        let wrong = |missing: Missing| {
            let Missing { variable, why, hint } = missing;
            Error::usage(format!("cannot run the task {:?} of {}", self.label, self.origin))
                .because(format!("it has the variable `${{{variable}}}`: {why}"))
                .hint(hint)
        };
        let fill = |text: &String| given.fill(text, workspace).map_err(wrong);
        let word = |(at, text): (usize, &String)| match self.line_at(at) {
            Some(first) => given.fill_line(text, first, workspace).map_err(wrong),
            None => fill(text),
        };
        let argv = self.argv.iter().enumerate().map(word).collect::<Result<_>>()?;
        let env = self.env.iter().map(|(name, value)| Ok((name.clone(), fill(value)?))).collect::<Result<_>>()?;
        let cwd = workspace.join(fill(&self.cwd.to_string_lossy().into_owned())?);
        Ok(Step { argv, env, cwd, ..self.clone() })
    }

    /// With every `${env:…}` in it replaced by its value: what is really run.
    pub(super) fn fill_in_environment(&mut self) {
        self.env.values_mut().for_each(|text| *text = with_environment(text));
        let word = |(at, text): (usize, &String)| match self.line_at(at) {
            Some(first) => line_with_environment(text, first),
            None => with_environment(text),
        };
        self.argv = self.argv.iter().enumerate().map(word).collect();
    }

    /// The beginning of the line of a shell, when this word is one.
    fn line_at(&self, at: usize) -> Option<Place> {
        let (_, made) = self.line.filter(|(line, _)| *line == at)?;
        Some(Place::first(&self.argv[0], &self.argv[at], made))
    }

    /// As a reader would run it, wherever he is.
    pub fn by_hand(&self) -> String {
        format!("cd {} && {}", shell::word(&self.cwd.to_string_lossy()), self.shown())
    }

    /// As a reader would type it in its folder.
    pub fn shown(&self) -> String {
        match &self.argv[..] {
            [_, flag, line] if flag == "-c" => line.clone(),
            argv => argv.iter().map(|it| shell::word(it)).collect::<Vec<_>>().join(" "),
        }
    }
}

fn line_with_environment(line: &str, first: Place) -> String {
    let value = |name: &str, place: &Place| {
        let variable = name.strip_prefix("env:").map(of_environment);
        Ok::<_, Infallible>(variable.map(|value| place.of_environment(&value)))
    };
    let Ok(filled) = shell::filled(line, first, value);
    filled
}
