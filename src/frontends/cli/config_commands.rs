//! `tether start --print-config`, `tether init` and `tether schema`, which need no supervisor.
//!
//! Prints what `config` returns, and decides nothing.

use std::path::Path;

use serde_json::{Value, json};
use tether_base::display_text::{escape_json, escape_line};
use tether_base::error::{ErrorContext, Result};

use crate::config::{
    BuildOutput, BuildPlan, BuildStep, ConsentLine, StepCompletion, StepOrder, WindowConfig, init,
    trust::WorkspaceCommands,
};

/// What would run, as one object or as lines with their origin.
pub fn effective_config(config: &WindowConfig, json: bool) -> Result<String> {
    config.check_window()?;
    let commands = WorkspaceCommands::of_window(config);
    Ok(if json { escape_json(&config_json(config, &commands).to_string()) } else { config_text(config, &commands) })
}

/// A line and its origin.
pub fn line_with_origin(line: &ConsentLine) -> String {
    let origin = line.origin.as_ref().map(|origin| format!("   [{origin}]"));
    // One line of the list: a folder whose name has a line break adds none of its own.
    escape_line(&format!("{}{}", line.text, origin.unwrap_or_default()))
}

fn config_text(config: &WindowConfig, commands: &WorkspaceCommands) -> String {
    let mut lines = vec![format!("In {} would run:", config.workspace.display()), String::new()];
    if let Some(name) = &config.configuration {
        lines.push(format!("  configuration: {name:?}"));
    }
    lines.extend(commands.lines.iter().map(|line| format!("  {}", line_with_origin(line))));
    if config.build.steps.len() > 1 {
        lines.push(format!("  build order: {}", format_order(&config.build.order, &config.build)));
    }
    if !config.build.checks.is_empty() {
        let checks: Vec<String> =
            config.build.checks.iter().map(|at| format!("`{}`", config.build.steps[*at].label)).collect();
        lines.push(format!("  checked after it, while the window is used: {}", checks.join(", ")));
    }
    lines.extend(config.build_outputs.iter().map(|it| format!("  no change: {}   [{}]", it.pattern, it.origin)));
    lines.extend(config.notes.iter().map(|note| format!("  note: {note}")));
    if let Some(folder) = config.suggested_watch_root() {
        let folder = folder.display().to_string();
        lines.push(format!(
            "  possible: [watch] root = {folder:?} in devtools.toml: only changes of this extension count"
        ));
    }
    let trusted = if commands.are_trusted() { "trusted" } else { "not trusted yet: `tether trust`" };
    lines.extend([String::new(), format!("These commands are {trusted}")]);
    lines.iter().map(|line| escape_line(line)).collect::<Vec<_>>().join("\n")
}

fn config_json(config: &WindowConfig, commands: &WorkspaceCommands) -> Value {
    let line = |line: &ConsentLine| match &line.origin {
        Some(origin) => json!({"text": line.text, "file": origin.file, "line": origin.line}),
        None => json!({"text": line.text}),
    };
    let step = |step: &BuildStep| {
        let until = match &step.completion {
            StepCompletion::OnExit => None,
            StepCompletion::AfterCycle(cycle) => Some(cycle.ends_pattern.as_str()),
            StepCompletion::AfterAddress => Some("it serves the address that it prints"),
        };
        json!({
            "file": step.origin.file, "line": step.origin.line, "label": step.label, "argv": step.argv,
            "cwd": step.cwd, "env": step.shown_environment(), "until": until,
        })
    };
    let ignore = |it: &BuildOutput| json!({"file": it.origin.file, "line": it.origin.line, "rule": it.pattern});
    let window: serde_json::Map<String, Value> =
        config.window_values().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    json!({
        "workspace": config.workspace,
        "configuration": config.configuration,
        "window": window,
        "build": {
            "steps": config.build.written_steps().map(step).collect::<Vec<_>>(),
            "order": format_order(&config.build.order, &config.build),
            "checks": config.build.checks.iter().map(|at| &config.build.steps[*at].label).collect::<Vec<_>>(),
            "timeoutMs": config.build.timeout.as_millis() as u64,
        },
        "lines": commands.lines.iter().map(line).collect::<Vec<_>>(),
        "ignore": config.build_outputs.iter().map(ignore).collect::<Vec<_>>(),
        "notes": config.notes,
        "suggestedWatchRoot": config.suggested_watch_root(),
        "trusted": commands.are_trusted(),
    })
}

/// "(a with b), then c"
fn format_order(order: &StepOrder, plan: &BuildPlan) -> String {
    let several = |orders: &[StepOrder], between: &str| {
        let parts: Vec<String> = orders.iter().map(|it| format_order(it, plan)).filter(|it| !it.is_empty()).collect();
        match &parts[..] {
            [] => String::new(),
            [one] => one.clone(),
            parts if between == ", then " => parts.join(between),
            parts => format!("({})", parts.join(between)),
        }
    };
    match order {
        StepOrder::Step(index) => format!("`{}`", plan.steps[*index].label),
        StepOrder::Shared(index) => format!("`{}`", plan.shared[*index].label),
        StepOrder::Sequence(orders) => several(orders, ", then "),
        StepOrder::Parallel(orders) => several(orders, " with "),
    }
}

/// Writes devtools.toml for the detected kind of workspace.
pub fn write_settings(workspace: &Path, json: bool) -> Result<String> {
    let written = init::write_devtools_toml(workspace)?;
    if json {
        return Ok(escape_json(&json!({"written": written.files, "window": written.window}).to_string()));
    }
    let files: Vec<String> =
        written.files.iter().map(|file| escape_line(&format!("wrote {}", file.display()))).collect();
    let next = match written.window {
        true => "next: `tether trust` shows what would run, and `tether start` runs it",
        false => "next: choose a `kind` in it; nothing in this folder says what to launch",
    };
    Ok(format!("{}\n{next}", files.join("\n")))
}

/// The JSON schema of devtools.toml.
pub fn settings_schema() -> Result<String> {
    serde_json::to_string_pretty(&init::settings_schema()).doing(|| "cannot write the schema".to_owned())
}
