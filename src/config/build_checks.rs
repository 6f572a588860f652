//! Which steps of a build only check: type checkers and linters write nothing that a window runs, so that the window need
//! not wait for them.
//!
//! ```text
//!  npm run compile = "npm run check-types && npm run lint && node esbuild.js"
//!     ├─▶ order:  node esbuild.js                          the window is refreshed after it
//!     └─▶ checks: npm run check-types, npm run lint        run after it, and report later
//! ```
//! Only what is known to write nothing is a check, and only a plain chain (`a && b`) is taken apart. Runs nothing.

use std::collections::BTreeSet;
use std::path::Path;

use crate::config::build_plan::{BuildPlan, BuildStep, StepCompletion, StepOrder};
use crate::config::npm::package_json::PackageJson;
use crate::config::source_file::read_text;
use crate::config::vscode::shell_line::find_shell_line;
use crate::config::vscode::shell_quoting::quote_word;

/// How deep scripts may call each other.
const MAX_DEPTH: usize = 5;
/// Characters of which a shell makes more than words.
const SHELL_CHARACTERS: &[char] =
    &['|', ';', '&', '<', '>', '(', ')', '$', '`', '"', '\'', '\\', '\n', '*', '?', '~', '#'];
/// Package managers that run a script by `run NAME`.
const MANAGERS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];

/// The plan with its checks apart, if something else remains to be built.
pub fn separate_checks(mut plan: BuildPlan, workspace: &Path) -> BuildPlan {
    split_scripts(&mut plan, workspace);
    let is_check = |step: &BuildStep| is_check_line(&command_text(step), &step.cwd, 0);
    let checks: BTreeSet<usize> = (0..plan.steps.len()).filter(|at| is_check(&plan.steps[*at])).collect();
    let ordered = |plan: &BuildPlan| {
        let orders = plan.shared.iter().map(|task| &task.order).chain([&plan.order]);
        orders.flat_map(steps_of).collect::<BTreeSet<usize>>()
    };
    let in_order = ordered(&plan);
    if in_order.is_subset(&checks) {
        return plan;
    }
    plan.checks = in_order.intersection(&checks).copied().collect();
    plan.order = without_steps(std::mem::replace(&mut plan.order, StepOrder::Sequence(Vec::new())), &checks);
    for task in &mut plan.shared {
        task.order = without_steps(std::mem::replace(&mut task.order, StepOrder::Sequence(Vec::new())), &checks);
    }
    plan
}

fn steps_of(order: &StepOrder) -> Vec<usize> {
    match order {
        StepOrder::Step(index) => vec![*index],
        StepOrder::Shared(_) => Vec::new(),
        StepOrder::Sequence(orders) | StepOrder::Parallel(orders) => orders.iter().flat_map(steps_of).collect(),
    }
}

fn without_steps(order: StepOrder, removed: &BTreeSet<usize>) -> StepOrder {
    let of_all = |orders: Vec<StepOrder>| orders.into_iter().map(|order| without_steps(order, removed)).collect();
    match order {
        StepOrder::Step(index) if removed.contains(&index) => StepOrder::Sequence(Vec::new()),
        StepOrder::Sequence(orders) => StepOrder::Sequence(of_all(orders)),
        StepOrder::Parallel(orders) => StepOrder::Parallel(of_all(orders)),
        order => order,
    }
}

/// Replaces each step that runs a script of npm, which is a chain with a check in it, by the parts of the chain.
fn split_scripts(plan: &mut BuildPlan, workspace: &Path) {
    for at in 0..plan.steps.len() {
        let parts = script_parts(&plan.steps[at], workspace);
        if parts.is_empty() {
            continue;
        }
        let first = plan.steps.len();
        let order = StepOrder::Sequence((first..first + parts.len()).map(StepOrder::Step).collect());
        plan.steps.extend(parts);
        replace_step(&mut plan.order, at, &order);
        plan.shared.iter_mut().for_each(|task| replace_step(&mut task.order, at, &order));
    }
}

fn replace_step(order: &mut StepOrder, step: usize, by: &StepOrder) {
    match order {
        StepOrder::Step(index) if *index == step => *order = by.clone(),
        StepOrder::Sequence(orders) | StepOrder::Parallel(orders) => {
            orders.iter_mut().for_each(|order| replace_step(order, step, by));
        }
        StepOrder::Step(_) | StepOrder::Shared(_) => {}
    }
}

/// The parts of a script, as steps; none where it has to be run as a whole.
fn script_parts(step: &BuildStep, workspace: &Path) -> Vec<BuildStep> {
    let [manager, run, name] = &step.argv[..] else { return Vec::new() };
    // How others run the parts of a script is not known well enough.
    if manager != "npm"
        || run != "run"
        || !matches!(step.completion, StepCompletion::OnExit)
        || has_shell_of_its_own(step)
    {
        return Vec::new();
    }
    let Ok(Some(package)) = PackageJson::read(&step.cwd) else { return Vec::new() };
    let has_hook = ["pre", "post"].iter().any(|hook| package.script(&format!("{hook}{name}")).is_some());
    let Some(text) = package.script(name).and_then(|node| node.text()).filter(|_| !has_hook) else { return Vec::new() };
    let Some(parts) = chain_parts(text).filter(|parts| parts.len() > 1) else { return Vec::new() };
    let checks = parts.iter().filter(|part| is_check_line(part, &step.cwd, 0)).count();
    if checks == 0 || checks == parts.len() {
        return Vec::new();
    }
    parts.iter().map(|part| part_step(step, name, part, workspace)).collect()
}

/// One command of a script, in the environment that npm gives it.
fn part_step(step: &BuildStep, script: &str, part: &str, workspace: &Path) -> BuildStep {
    let folders = step.cwd.ancestors().take_while(|folder| folder.starts_with(workspace));
    let bins = folders.map(|folder| folder.join("node_modules/.bin")).filter(|bin| bin.is_dir());
    let bins: String = bins.map(|bin| format!("{}:", quote_word(&bin.to_string_lossy()))).collect();
    let line = format!(
        "PATH={bins}$PATH npm_lifecycle_event={} && export PATH npm_lifecycle_event && {part}",
        quote_word(script)
    );
    let argv = vec!["sh".to_owned(), "-c".to_owned(), line];
    BuildStep {
        label: part.to_owned(),
        shell_line: find_shell_line(&argv),
        shown_argv: vec!["sh".to_owned(), "-c".to_owned(), part.to_owned()],
        argv,
        is_part: true,
        ..step.clone()
    }
}

fn has_shell_of_its_own(step: &BuildStep) -> bool {
    let settings = read_text(&step.cwd.join(".npmrc")).ok().flatten().unwrap_or_default();
    settings.contains("script-shell")
}

/// The commands of `a && b`; `None` where a shell does more than run them one after the other.
fn chain_parts(line: &str) -> Option<Vec<&str>> {
    let parts: Vec<&str> = line.split("&&").map(str::trim).collect();
    let is_plain = |part: &&str| !part.is_empty() && !part.contains(SHELL_CHARACTERS);
    parts.iter().all(is_plain).then_some(parts)
}

/// What a step runs, as a shell's line.
fn command_text(step: &BuildStep) -> String {
    match step.shell_line {
        Some((line, _)) if step.is_part => step.argv[line].rsplit(" && ").next().unwrap_or_default().to_owned(),
        Some((line, _)) => step.argv[line].clone(),
        None => step.argv.join(" "),
    }
}

/// Whether a line is known to write nothing: a type checker, a linter, or a script of these alone.
fn is_check_line(line: &str, cwd: &Path, depth: usize) -> bool {
    let Some(parts) = chain_parts(line).filter(|_| depth < MAX_DEPTH) else { return false };
    parts.iter().all(|part| {
        let words: Vec<&str> = part.split_whitespace().collect();
        match &words[..] {
            [manager, "run", flags @ .., name]
                if MANAGERS.contains(manager) && flags.iter().all(|it| it.starts_with('-')) =>
            {
                let package = PackageJson::read(cwd).ok().flatten();
                let script = package.as_ref().and_then(|package| package.script(name)?.text());
                script.is_some_and(|text| is_check_line(text, cwd, depth + 1))
            }
            words => is_check_command(words),
        }
    })
}

fn is_check_command(words: &[&str]) -> bool {
    let words = match words {
        ["npx" | "bunx", rest @ ..] => rest,
        words => words,
    };
    let Some((program, arguments)) = words.split_first() else { return false };
    let program = program.rsplit('/').next().unwrap_or_default();
    let has = |word: &str| arguments.contains(&word);
    let mends = ["--fix", "--write", "--fix-dry-run", "--output-file", "-o", "--cache"].iter().any(|flag| has(flag));
    match program {
        "tsc" | "vue-tsc" | "tsgo" | "svelte-check" => {
            let at = arguments.iter().position(|word| word.eq_ignore_ascii_case("--noEmit"));
            let emits = at.is_none_or(|at| arguments.get(at + 1) == Some(&"false"));
            !emits || program == "svelte-check"
        }
        "eslint" | "oxlint" | "stylelint" => !mends,
        "prettier" => !mends && (has("--check") || has("-c")),
        "biome" => !mends && (has("check") || has("lint") || has("ci")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::source_file::Origin;

    fn package(scripts: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("package.json"), format!("{{\"scripts\": {scripts}}}")).unwrap();
        folder
    }

    fn step(folder: &Path, words: &[&str]) -> BuildStep {
        let argv = words.iter().map(|word| (*word).to_owned()).collect();
        BuildStep::of_command(argv, folder, Origin::default())
    }

    /// The labels of what the window waits for, and of the checks.
    fn separated(plan: BuildPlan, folder: &Path) -> (Vec<String>, Vec<String>) {
        let plan = separate_checks(plan, folder);
        let labels = |steps: Vec<usize>| steps.into_iter().map(|at| plan.steps[at].label.clone()).collect();
        (labels(steps_of(&plan.order)), labels(plan.checks.clone()))
    }

    const SCRIPTS: &str = r#"{
        "check-types": "tsc --noEmit", "lint": "eslint src", "test-all": "npm run check-types && npm run lint",
        "compile": "npm run check-types && npm run lint && node esbuild.js",
        "package": "npm run test-all && node esbuild.js --production",
        "only": "npm run check-types && npm run lint", "build": "tsc -p . && node esbuild.js",
        "hooked": "tsc --noEmit && node a.js", "prehooked": "true", "piped": "tsc --noEmit && node a.js | tee log"
    }"#;

    #[test]
    fn a_chain_of_a_script_is_taken_apart_where_a_check_is_in_it() {
        let folder = package(SCRIPTS);
        let check = |script: &str, order: &[&str], checks: &[&str]| {
            let plan = BuildPlan::single(step(folder.path(), &["npm", "run", script]), Duration::from_secs(1));
            let whole = format!("npm run {script}");
            let order: Vec<&str> = if order.is_empty() { vec![&whole] } else { order.to_vec() };
            let (found_order, found_checks) = separated(plan, folder.path());
            assert_eq!((found_order, found_checks), (strings(&order), strings(checks)), "{script}");
        };
        check("compile", &["node esbuild.js"], &["npm run check-types", "npm run lint"]);
        check("package", &["node esbuild.js --production"], &["npm run test-all"]);
        for whole in ["only", "build", "hooked", "piped", "check-types"] {
            check(whole, &[], &[]);
        }
        std::fs::write(folder.path().join(".npmrc"), "script-shell=/bin/zsh\n").unwrap();
        check("compile", &[], &[]);
    }

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_checker_beside_a_builder_is_a_check_and_the_order_of_the_rest_stays() {
        let folder = package(r#"{"watch:tsc": "tsc --noEmit --watch", "watch:esbuild": "node esbuild.js --watch"}"#);
        let steps = vec![
            step(folder.path(), &["npm", "run", "watch:tsc"]),
            step(folder.path(), &["npm", "run", "watch:esbuild"]),
            step(folder.path(), &["node", "last.js"]),
        ];
        let order = StepOrder::Sequence(vec![
            StepOrder::Parallel(vec![StepOrder::Step(0), StepOrder::Step(1)]),
            StepOrder::Step(2),
        ]);
        let plan = BuildPlan { steps, order, ..BuildPlan::empty(Duration::from_secs(1)) };
        let (order, checks) = separated(plan, folder.path());
        assert_eq!(
            (order, checks),
            (strings(&["npm run watch:esbuild", "node last.js"]), strings(&["npm run watch:tsc"]))
        );
    }

    #[test]
    fn only_what_writes_nothing_is_a_check() {
        let check = |line: &str, expect: bool| assert_eq!(is_check_line(line, Path::new("/"), 0), expect, "{line}");
        for line in [
            "tsc --noEmit",
            "npx tsc -p . --noemit",
            "./node_modules/.bin/eslint src",
            "biome check src",
            "prettier . --check",
        ] {
            check(line, true);
        }
        for line in [
            "tsc",
            "tsc --noEmit false",
            "eslint --fix src",
            "prettier --write .",
            "node x.js",
            "",
            "tsc --noEmit; node x",
        ] {
            check(line, false);
        }
    }

    #[test]
    fn a_part_runs_with_the_programs_of_the_package() {
        let folder = package(SCRIPTS);
        std::fs::create_dir_all(folder.path().join("node_modules/.bin")).unwrap();
        let plan = BuildPlan::single(step(folder.path(), &["npm", "run", "compile"]), Duration::from_secs(1));
        let plan = separate_checks(plan, folder.path());
        let part = plan.steps.iter().find(|step| step.label == "node esbuild.js").unwrap();
        assert!(part.argv[2].contains("node_modules/.bin") && part.argv[2].ends_with("&& node esbuild.js"), "{part:?}");
        // The consent is to the script.
        assert_eq!(plan.steps.iter().filter(|step| !step.is_part).count(), 1);
    }
}
