//! Plans the steps of a build from VS Code tasks: commands with folder and environment, and the order of `dependsOn`.
//!
//! Does not depend on how tasks are found, nor on what runs the steps.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tether_base::error::{Error, Result};

use crate::config::build_plan::{BuildPlan, BuildStep, SharedTask, StepCompletion, StepOrder};
use crate::config::jsonc::{JsonNode, JsonValue};
use crate::config::npm::dev_server::is_dev_server_line;
use crate::config::npm::package_json::PackageJson;
use crate::config::vscode::problem_matchers::BackgroundCycle;
use crate::config::vscode::shell_line::find_shell_line;
use crate::config::vscode::shell_quoting::{LineSource, Word, join_line};
use crate::config::vscode::tasks_json::{Task, TasksFile};
use crate::config::vscode::variables::VariableSite;

/// The index of the word that a shell parses as a command line, and the source of that line.
type ShellLine = Option<(usize, LineSource)>;

/// The task type that the C++ extension writes for a compiler: a program with its arguments.
const CPP_BUILD: &str = "cppbuild";

/// The build of a task and everything that it depends on. `reference` is a label or a definition; `referrer` names its
/// owner in errors. Errors: a task that is missing, depends on itself, or cannot be run.
pub fn plan_task(tasks: &TasksFile<'_>, reference: &JsonNode, referrer: &str, timeout: Duration) -> Result<BuildPlan> {
    let mut planner = StepPlanner {
        tasks,
        steps: Vec::new(),
        known: HashMap::new(),
        groups: Vec::new(),
        path: Vec::new(),
        references: 0,
    };
    let order = planner.order_task(reference, referrer)?;
    let StepPlanner { steps, groups, .. } = planner;
    let mut plan = BuildPlan { steps, order, ..BuildPlan::empty(timeout) };
    inline_groups(&mut plan, groups);
    Ok(plan)
}

/// The longest chain of tasks that depend on each other.
const MAX_DEPTH: usize = 64;
/// How many tasks a plan has at most.
const MAX_TASKS: usize = 500;
/// How often the tasks of a plan may refer to others.
const MAX_REFERENCES: usize = 2_000;

/// A task with dependencies, and how many depend on it.
struct TaskGroup {
    task: SharedTask,
    referrers: usize,
}

/// Puts each group on which only one depends into its place; the others are the plan's shared tasks.
fn inline_groups(plan: &mut BuildPlan, groups: Vec<TaskGroup>) {
    // A group refers only to groups that were planned before it.
    let mut resolved: Vec<StepOrder> = Vec::new();
    for TaskGroup { mut task, referrers } in groups {
        inline_in(&mut task.order, &mut resolved);
        resolved.push(match referrers {
            1 => task.order,
            _ => {
                plan.shared.push(task);
                StepOrder::Shared(plan.shared.len() - 1)
            }
        });
    }
    inline_in(&mut plan.order, &mut resolved);
}

fn inline_in(order: &mut StepOrder, resolved: &mut [StepOrder]) {
    match order {
        StepOrder::Step(_) => {}
        StepOrder::Shared(index) => {
            *order = match &resolved[*index] {
                StepOrder::Shared(shared) => StepOrder::Shared(*shared),
                // Referred to once: it can be moved.
                _ => std::mem::replace(&mut resolved[*index], StepOrder::Sequence(Vec::new())),
            }
        }
        StepOrder::Sequence(orders) | StepOrder::Parallel(orders) => {
            orders.iter_mut().for_each(|order| inline_in(order, resolved));
        }
    }
}

struct StepPlanner<'a> {
    tasks: &'a TasksFile<'a>,
    steps: Vec<BuildStep>,
    /// The planned tasks by label: a step, or the index of a group.
    known: HashMap<String, StepOrder>,
    /// The planned tasks with dependencies.
    groups: Vec<TaskGroup>,
    /// The labels from the first task down to the current one, to detect cycles.
    path: Vec<String>,
    /// How many references were followed.
    references: usize,
}

impl StepPlanner<'_> {
    fn order_task(&mut self, reference: &JsonNode, referrer: &str) -> Result<StepOrder> {
        if let Some(order) = reference.text().and_then(|label| self.refer_to_known(label)) {
            return Ok(order);
        }
        self.references += 1;
        let task = self.tasks.find_task(reference, referrer)?;
        self.check_limits(&task)?;
        if let Some(start) = self.path.iter().position(|label| *label == task.label) {
            let around: Vec<&str> = self.path[start..].iter().chain([&task.label]).map(String::as_str).collect();
            return Err(Error::usage(format!("cannot run {}", task.subject()))
                .because(format!("it depends on itself: {}", around.join(" → ")))
                .hint("take one of them out of `dependsOn` in .vscode/tasks.json"));
        }
        if let Some(order) = self.refer_to_known(&task.label) {
            return Ok(order);
        }
        self.path.push(task.label.clone());
        let order = match self.order_with_dependencies(&task)? {
            StepOrder::Step(index) => StepOrder::Step(index),
            order => {
                let task = SharedTask { label: task.label.clone(), order };
                self.groups.push(TaskGroup { task, referrers: 1 });
                StepOrder::Shared(self.groups.len() - 1)
            }
        };
        self.path.pop();
        self.known.insert(task.label, order.clone());
        Ok(order)
    }

    /// The order of a task that has been planned.
    fn refer_to_known(&mut self, label: &str) -> Option<StepOrder> {
        let order = self.known.get(label)?.clone();
        if let StepOrder::Shared(group) = order {
            self.groups[group].referrers += 1;
        }
        Some(order)
    }

    fn check_limits(&self, task: &Task) -> Result<()> {
        let exceeded = match () {
            () if self.path.len() >= MAX_DEPTH => format!("`dependsOn` is more than {MAX_DEPTH} tasks deep here"),
            () if self.known.len() >= MAX_TASKS => format!("more than {MAX_TASKS} tasks run before it"),
            () if self.references > MAX_REFERENCES => {
                format!("the tasks around it refer to others more than {MAX_REFERENCES} times")
            }
            () => return Ok(()),
        };
        Err(unusable_task(task, exceeded).hint("one script that does it all can be the `command` of one task"))
    }

    fn order_with_dependencies(&mut self, task: &Task) -> Result<StepOrder> {
        let subject = task.subject();
        let depends = task.node.get("dependsOn").map(JsonNode::one_or_many).unwrap_or_default();
        let before = depends.iter().map(|node| self.order_task(node, &subject)).collect::<Result<Vec<_>>>()?;
        let before = match task.node.text_of("dependsOrder") {
            Some("sequence") => StepOrder::Sequence(before),
            _ => StepOrder::Parallel(before),
        };
        let step = StepDraft { tasks: self.tasks, task, subject: format!("the task {:?}", task.label) }.step()?;
        if step.is_none() && depends.is_empty() {
            return Err(unusable_task(task, "it has neither a `command` nor a `dependsOn`"));
        }
        let own = step.map(|step| {
            self.steps.push(step);
            StepOrder::Step(self.steps.len() - 1)
        });
        Ok(match (depends.is_empty(), own) {
            (true, Some(own)) => own,
            (_, own) => StepOrder::Sequence(std::iter::once(before).chain(own).collect()),
        })
    }
}

fn unusable_task(task: &Task, what: impl Into<String>) -> Error {
    Error::usage(format!("cannot run {}", task.subject())).because(what.into())
}

/// Converts one task to a step.
struct StepDraft<'a> {
    tasks: &'a TasksFile<'a>,
    task: &'a Task,
    /// How errors name the task: "the task "build"".
    subject: String,
}

impl StepDraft<'_> {
    fn workspace(&self) -> &Path {
        self.tasks.variables.workspace
    }

    /// The step of the task itself; `None` where it only groups its dependencies.
    fn step(&self) -> Result<Option<BuildStep>> {
        let (argv, line) = match self.task.kind() {
            "npm" => return self.npm().map(Some),
            "typescript" => (self.typescript()?, None),
            "shell" | "process" | CPP_BUILD => match self.task.node.get("command") {
                None => return Ok(None),
                Some(command) => self.argv(command)?,
            },
            other => {
                let known = "shell, process, npm, typescript, cppbuild";
                let error = unusable_task(self.task, format!("tasks of type {other:?} are an extension's of VS Code"));
                return Err(error.hint(format!(
                    "tether runs these types: {known}; `command` in the [build] section of devtools.toml runs anything"
                )));
            }
        };
        let cwd = self.cwd()?;
        let (env, completion) = (self.env()?, self.completion(&argv.join(" "))?);
        let origin = self.task.origin(self.workspace());
        let step = BuildStep::of_command(argv, &cwd, origin);
        Ok(Some(BuildStep { label: self.task.label.clone(), shell_line: line, env, completion, ..step }))
    }

    fn npm(&self) -> Result<BuildStep> {
        let (node, task) = (&self.task.node, self.task);
        let script = node.text_of("script").ok_or_else(|| unusable_task(task, "it has no `script`"))?;
        let path = node.get("path").map(|path| self.path(path, "path")).transpose()?.unwrap_or_default();
        let folder = self.workspace().join(path.trim_end_matches('/'));
        let folder = if path.is_empty() { self.workspace().to_owned() } else { folder };
        let missing = |what: String| unusable_task(task, what).hint("`npm run` there lists the scripts");
        let package = PackageJson::read(&folder)?;
        let package = package.ok_or_else(|| missing(format!("there is no package.json in {}", folder.display())))?;
        let Some(text) = package.script(script).and_then(JsonNode::text) else {
            return Err(missing(format!("{} has no script {script:?}", folder.join("package.json").display())));
        };
        let step = package.script_step(script, task.origin(self.workspace()));
        let completion = self.completion(text)?;
        Ok(BuildStep { label: task.label.clone(), env: self.env()?, completion, ..step })
    }

    fn typescript(&self) -> Result<Vec<String>> {
        let node = &self.task.node;
        let local = self.workspace().join("node_modules/.bin/tsc");
        let tsc = local.to_str().filter(|_| local.exists()).unwrap_or("tsc");
        let project = node.get("tsconfig").map(|project| self.text(project, "tsconfig")).transpose()?;
        let mut argv = vec![tsc.to_owned(), "-p".to_owned(), project.unwrap_or_else(|| "tsconfig.json".to_owned())];
        if self.is_watch() {
            argv.push("--watch".to_owned());
        }
        Ok(argv)
    }

    fn is_watch(&self) -> bool {
        self.task.kind() == "typescript" && self.task.node.text_of("option") == Some("watch")
    }

    /// The words of the command, and which of them is a shell's command line.
    fn argv(&self, command: &JsonNode) -> Result<(Vec<String>, ShellLine)> {
        let command = self.word(command, "command")?;
        let arguments = self.task.node.get("args").map(JsonNode::one_or_many).unwrap_or_default();
        let arguments = arguments.iter().map(|node| self.word(node, "args")).collect::<Result<Vec<_>>>()?;
        if matches!(self.task.kind(), "process" | CPP_BUILD) {
            let argv: Vec<String> = std::iter::once(command).chain(arguments).map(|word| word.text).collect();
            let line = find_shell_line(&argv);
            return Ok((argv, line));
        }
        let mut argv = self.shell()?;
        let (line, made) = join_line(&command, &arguments);
        argv.push(line);
        let at = argv.len() - 1;
        Ok((argv, Some((at, made))))
    }

    fn word(&self, node: &JsonNode, key: &str) -> Result<Word> {
        let word = Word::of(node).ok_or_else(|| self.no_text(node, key))?;
        Ok(Word { text: self.expand(&word.text, node, key)?, ..word })
    }

    /// The shell and its `-c`. VS Code uses the user's login shell; here a build must not depend on the user.
    fn shell(&self) -> Result<Vec<String>> {
        let own = self.task.node.get("options").and_then(|options| options.get("shell"));
        let Some(own) = own else {
            let bash = Path::new("/bin/bash").exists();
            return Ok([if bash { "/bin/bash" } else { "/bin/sh" }, "-c"].map(str::to_owned).to_vec());
        };
        let program = own.get("executable").ok_or_else(|| unusable_task(self.task, "`shell` has no `executable`"))?;
        let mut argv = vec![self.text(program, "shell.executable")?];
        for node in own.get("args").map(JsonNode::one_or_many).unwrap_or_default() {
            argv.push(self.text(node, "shell.args")?);
        }
        if !argv[1..].iter().any(|flag| flag.starts_with('-') && !flag.starts_with("--") && flag.ends_with('c')) {
            argv.push("-c".to_owned());
        }
        Ok(argv)
    }

    fn cwd(&self) -> Result<PathBuf> {
        let cwd = self.task.node.get("options").and_then(|options| options.get("cwd"));
        let cwd = cwd.map(|cwd| self.path(cwd, "options.cwd")).transpose()?;
        Ok(match cwd {
            None => self.workspace().to_owned(),
            // An editor input (`${input:…}`), whose value is not known yet: an absolute path is assumed.
            Some(cwd) if cwd.starts_with("${") => cwd.into(),
            Some(cwd) => self.workspace().join(cwd),
        })
    }

    fn env(&self) -> Result<BTreeMap<String, String>> {
        let env = self.task.node.get("options").and_then(|options| options.get("env"));
        let members = env.map(JsonNode::members).unwrap_or_default();
        let variable =
            |(name, node): &(String, JsonNode)| Ok((name.clone(), self.text(node, &format!("options.env.{name}"))?));
        members.iter().map(variable).collect()
    }

    /// `line`: what is run. A dev server needs neither `isBackground` nor a problem matcher.
    fn completion(&self, line: &str) -> Result<StepCompletion> {
        let is_server = is_dev_server_line(line);
        if !self.task.node.is_true("isBackground") && !self.is_watch() {
            return Ok(if is_server { StepCompletion::AfterAddress } else { StepCompletion::OnExit });
        }
        let watch = JsonNode { line: self.task.node.line, value: JsonValue::String("$tsc-watch".to_owned()) };
        let matcher = self.task.node.get("problemMatcher").or_else(|| self.is_watch().then_some(&watch));
        let cycle = BackgroundCycle::of(matcher).map(Box::new).map(StepCompletion::AfterCycle);
        cycle.or_else(|why| if is_server { Ok(StepCompletion::AfterAddress) } else { Err(why) }).map_err(|why| {
            Error::usage(format!("cannot know when the background task {} is ready", &self.task.subject()["the task ".len()..]))
                .because(why)
                .hint("give it a `problemMatcher` with `\"background\": {\"activeOnStart\": true, \"beginsPattern\": \"…\", \"endsPattern\": \"…\"}`")
                .hint("or set `command` in the [build] section of devtools.toml to a build that ends")
        })
    }

    fn text(&self, node: &JsonNode, key: &str) -> Result<String> {
        let text = match &node.value {
            JsonValue::String(text) | JsonValue::Number(text) => text.clone(),
            JsonValue::Bool(value) => value.to_string(),
            _ => return Err(self.no_text(node, key)),
        };
        self.expand(&text, node, key)
    }

    fn no_text(&self, node: &JsonNode, key: &str) -> Error {
        unusable_task(self.task, format!("`{key}` (line {}) is not a text", node.line))
    }

    fn path(&self, node: &JsonNode, key: &str) -> Result<String> {
        let text = node.text().ok_or_else(|| self.no_text(node, key))?;
        self.tasks.variables.resolving_environment().expand(text, &self.site(node, key))
    }

    fn expand(&self, text: &str, node: &JsonNode, key: &str) -> Result<String> {
        self.tasks.variables.expand(text, &self.site(node, key))
    }

    fn site<'s>(&'s self, node: &JsonNode, key: &'s str) -> VariableSite<'s> {
        let shell = self.task.kind() == "shell" && matches!(key, "command" | "args");
        VariableSite { subject: &self.subject, document: &self.task.file, line: node.line, key, shell }
    }
}

#[cfg(test)]
mod tests;
