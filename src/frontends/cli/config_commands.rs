//! `tether start --print-config`, `tether init` and `tether schema`, which need no supervisor.
//!
//! Prints what `config` returns, and decides nothing.

use std::path::Path;

use serde_json::{Value, json};

use crate::config::{BuildStep, ConsentLine, StepCompletion, StepOrder, WindowConfig, init, trust::WorkspaceCommands};
use crate::error::{ErrorContext, Result};

/// What would run, as one object or as lines with their origin.
pub fn effective_config(recipe: &WindowConfig, json: bool) -> Result<String> {
    recipe.check_window()?;
    let commands = WorkspaceCommands::of_window(recipe);
    Ok(if json { config_json(recipe, &commands).to_string() } else { config_text(recipe, &commands) })
}

/// A line and its origin.
pub fn line_with_origin(line: &ConsentLine) -> String {
    let origin = line.origin.as_ref().map(|origin| format!("   [{origin}]"));
    format!("{}{}", line.text, origin.unwrap_or_default())
}

fn config_text(recipe: &WindowConfig, commands: &WorkspaceCommands) -> String {
    let mut lines = vec![format!("In {} would run:", recipe.workspace.display()), String::new()];
    if let Some(name) = &recipe.configuration {
        lines.push(format!("  configuration: {name:?}"));
    }
    lines.extend(commands.lines().iter().map(|line| format!("  {}", line_with_origin(line))));
    if recipe.build.steps.len() > 1 {
        lines.push(format!("  build order: {}", format_order(&recipe.build.order, &recipe.build.steps)));
    }
    lines.extend(recipe.build_outputs.iter().map(|it| format!("  no change: {}   [{}]", it.pattern, it.origin)));
    lines.extend(recipe.notes.iter().map(|note| format!("  note: {note}")));
    let trusted = if commands.are_trusted() { "trusted" } else { "not trusted yet: `tether trust`" };
    lines.extend([String::new(), format!("These commands are {trusted}")]);
    lines.join("\n")
}

fn config_json(recipe: &WindowConfig, commands: &WorkspaceCommands) -> Value {
    let at = |origin: &crate::config::Origin| json!({"file": origin.file, "line": origin.line});
    let line = |line: &ConsentLine| {
        let mut value = line.origin.as_ref().map_or_else(|| json!({}), at);
        value["text"] = json!(line.text);
        value
    };
    let step = |step: &BuildStep| {
        let until = match &step.completion {
            StepCompletion::OnExit => None,
            StepCompletion::AfterCycle(cycle) => Some(&cycle.ends_pattern),
        };
        let mut value = at(&step.origin);
        value["label"] = json!(step.label);
        value["argv"] = json!(step.argv);
        value["cwd"] = json!(step.cwd);
        value["env"] = json!(step.env);
        value["until"] = json!(until);
        value
    };
    let ignore = |it: &crate::config::BuildOutput| {
        let mut value = at(&it.origin);
        value["rule"] = json!(it.pattern);
        value
    };
    let window: serde_json::Map<String, Value> =
        recipe.window_values().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    json!({
        "workspace": recipe.workspace,
        "configuration": recipe.configuration,
        "window": window,
        "build": {
            "steps": recipe.build.steps.iter().map(step).collect::<Vec<_>>(),
            "order": format_order(&recipe.build.order, &recipe.build.steps),
            "timeoutMs": recipe.build.timeout.as_millis() as u64,
        },
        "lines": commands.lines().iter().map(line).collect::<Vec<_>>(),
        "ignore": recipe.build_outputs.iter().map(ignore).collect::<Vec<_>>(),
        "notes": recipe.notes,
        "trusted": commands.are_trusted(),
    })
}

/// "(a with b), then c"
fn format_order(order: &StepOrder, steps: &[BuildStep]) -> String {
    let several = |orders: &[StepOrder], between: &str| {
        let parts: Vec<String> =
            orders.iter().map(|it| self::format_order(it, steps)).filter(|it| !it.is_empty()).collect();
        match &parts[..] {
            [] => String::new(),
            [one] => one.clone(),
            parts if between == ", then " => parts.join(between),
            parts => format!("({})", parts.join(between)),
        }
    };
    match order {
        StepOrder::Step(index) => format!("`{}`", steps[*index].label),
        StepOrder::Sequence(orders) => several(orders, ", then "),
        StepOrder::Parallel(orders) => several(orders, " with "),
    }
}

/// Writes devtools.toml for the detected kind of workspace.
pub fn write_settings(workspace: &Path, json: bool) -> Result<String> {
    let written = init::write_devtools_toml(workspace)?;
    if json {
        return Ok(json!({"written": written.files, "window": written.window}).to_string());
    }
    let files: Vec<String> = written.files.iter().map(|file| format!("wrote {}", file.display())).collect();
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
