//! `tether doctor` as text or as JSON: what was found, line by line, and what was done about orphans.

use std::io::Write;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};

use crate::doctor::orphans::{self, Fate, Launch};
use crate::doctor::{Finding, Level, Report, Topic, examine};
use crate::error::{Error, Result};

/// How much of a command line is shown.
const SHOWN: usize = 120;

/// Examines everything; the exit code is 1 when there is a problem.
pub async fn diagnose(workspace: &Path, json: bool) -> Result<u8> {
    let report = examine(workspace).await;
    let problems = report.count(Level::Problem);
    if json {
        let object = json!({ "ok": problems == 0, "problems": problems, "warnings": report.count(Level::Warning), "findings": report.findings });
        print(&format!("{object}\n"));
    } else {
        print(&as_text(&report));
    }
    Ok(u8::from(problems > 0))
}

/// A closed pipe is no failure.
fn print(text: &str) {
    let _ = write!(anstream::stdout(), "{text}");
}

fn as_text(report: &Report) -> String {
    let topics = [
        (Topic::Workspace, "workspace"),
        (Topic::Running, "running"),
        (Topic::Tools, "tools"),
        (Topic::Machine, "machine"),
    ];
    let mut text = String::new();
    for (topic, name) in topics {
        let about: String = report.findings.iter().filter(|found| found.topic == topic).map(line).collect();
        if !about.is_empty() {
            text += &format!("{name}\n{about}");
        }
    }
    text + &match (report.count(Level::Problem), report.count(Level::Warning)) {
        (0, 0) => "all is well\n".to_owned(),
        (0, warnings) => format!("no problem, {}\n", counted(warnings, "warning")),
        (problems, warnings) => format!("{}, {}\n", counted(problems, "problem"), counted(warnings, "warning")),
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn line(found: &Finding) -> String {
    let (word, style) = match found.level {
        Level::Ok => ("ok", Style::new()),
        Level::Warning => ("warning", AnsiColor::Yellow.on_default()),
        Level::Problem => ("problem", AnsiColor::Red.on_default().bold()),
    };
    let what = found.what.trim_end().replace('\n', "\n           ");
    let hints: String = found.hints.iter().map(|hint| format!("           {hint}\n")).collect();
    format!("  {style}{word:<8}{style:#} {what}\n{hints}")
}

/// Shows the orphans, and ends them when `yes`. Others that carry a launch id are left alone, and told with the reason.
pub async fn reap(yes: bool, json: bool) -> Result<u8> {
    let (orphans, others): (Vec<Launch>, Vec<Launch>) = orphans::find()?.into_iter().partition(Launch::is_orphan);
    let (mut ended, mut failed) = (Vec::new(), Vec::new());
    for launch in orphans.iter().filter(|_| yes) {
        match orphans::reap(launch).await {
            Ok(true) => ended.push(&launch.id),
            Ok(false) => {}
            Err(error) => failed.push(error),
        }
    }
    if json {
        let as_json = |launch: &Launch| as_json(launch, ended.contains(&&launch.id));
        let (orphans, others): (Vec<_>, Vec<_>) =
            (orphans.iter().map(as_json).collect(), others.iter().map(as_json).collect());
        print(&format!("{}\n", json!({ "orphans": orphans, "leftAlone": others })));
    } else {
        let told = |launch: &Launch| told(launch, ended.contains(&&launch.id));
        print(&orphans.iter().chain(&others).map(told).collect::<String>());
        print(match (orphans.is_empty(), yes) {
            (true, _) => "no orphans\n",
            (false, false) => "`tether doctor --reap --yes` ends the orphans\n",
            (false, true) => "",
        });
    }
    failed.into_iter().next().map_or(Ok(0), |error: Error| Err(error))
}

fn reason(launch: &Launch) -> String {
    match &launch.fate {
        Fate::Supervised(workspace) if workspace.as_os_str().is_empty() => "belongs to a living supervisor".to_owned(),
        Fate::Supervised(workspace) => format!("belongs to the supervisor of {}", workspace.display()),
        Fate::Reconnectable(workspace) => {
            format!("is the window of {}: the next command is connected to it again", workspace.display())
        }
        Fate::Orphan(_) => "is an orphan".to_owned(),
        Fate::Released => "is a program that a debug session has let go, and lives on".to_owned(),
        Fate::Unknown => "is left alone: nothing tells which workspace it belongs to".to_owned(),
        Fate::Elsewhere => "is left alone: another state folder (XDG_STATE_HOME), or none, knows of it".to_owned(),
    }
}

fn told(launch: &Launch, ended: bool) -> String {
    let shown = |command: &str| command.chars().take(SHOWN).collect::<String>();
    let processes: String =
        launch.processes.iter().map(|(pid, command)| format!("  {pid:>8}  {}\n", shown(command))).collect();
    let fate = if ended { "was an orphan, and has been ended".to_owned() } else { reason(launch) };
    format!("launch {} {fate}\n{processes}", launch.id)
}

fn as_json(launch: &Launch, ended: bool) -> Value {
    let processes = launch.processes.iter().map(|(pid, command)| json!({ "pid": pid, "command": command }));
    json!({
        "launchId": launch.id, "why": reason(launch), "ended": ended, "processes": processes.collect::<Vec<_>>(),
    })
}
