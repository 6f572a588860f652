//! What a build is: steps, in which order, and how each ends.
//!
//! Plain data. Must not know where it comes from, nor who runs it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::file::Origin;
use super::matchers::Cycle;

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

/// A script of a package.json.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    pub name: String,
    pub text: String,
    pub origin: Origin,
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
}

impl Step {
    /// As a reader would type it.
    pub fn shown(&self) -> String {
        match &self.argv[..] {
            [_, flag, line] if flag == "-c" => line.clone(),
            argv => argv.join(" "),
        }
    }
}
