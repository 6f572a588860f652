//! `tether doctor`: prints the findings and the orphans, as text or as JSON.

use std::io::Write;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use tether_base::clipped_text::first_chars;
use tether_base::display_text::{escape_json, escape_line, escape_text, mark_breaks};
use tether_base::error::{Error, Result};

use crate::doctor::orphan_launches::{self, LaunchOwner, LaunchProcesses};
use crate::doctor::{DoctorReport, Finding, FindingLevel, FindingTopic, examine_workspace};

/// How much of a command line is shown.
const SHOWN: usize = 120;

/// Examines everything; the exit code is 1 when there is a problem.
pub async fn print_diagnosis(workspace: &Path, json: bool) -> Result<u8> {
    let report = examine_workspace(workspace).await;
    let problems = report.count(FindingLevel::Problem);
    if json {
        let object = json!({
            "ok": problems == 0,
            "problems": problems,
            "warnings": report.count(FindingLevel::Warning),
            "findings": report.findings,
        });
        print_text(&format!("{}\n", escape_json(&object.to_string())));
    } else {
        print_text(&report_text(&report));
    }
    Ok(u8::from(problems > 0))
}

/// A closed pipe is no failure.
fn print_text(text: &str) {
    let _ = write!(anstream::stdout(), "{text}");
}

fn report_text(report: &DoctorReport) -> String {
    let topics = [
        (FindingTopic::Workspace, "workspace"),
        (FindingTopic::Running, "running"),
        (FindingTopic::Tools, "tools"),
        (FindingTopic::Machine, "machine"),
    ];
    let mut text = String::new();
    for (topic, name) in topics {
        let about: String = report.findings.iter().filter(|found| found.topic == topic).map(finding_text).collect();
        if !about.is_empty() {
            text += &format!("{name}\n{about}");
        }
    }
    text + &match (report.count(FindingLevel::Problem), report.count(FindingLevel::Warning)) {
        (0, 0) => "all is well\n".to_owned(),
        (0, warnings) => format!("no problem, {}\n", count_text(warnings, "warning")),
        (problems, warnings) => format!("{}, {}\n", count_text(problems, "problem"), count_text(warnings, "warning")),
    }
}

fn count_text(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn finding_text(found: &Finding) -> String {
    let (word, style) = match found.level {
        FindingLevel::Ok => ("ok", Style::new()),
        FindingLevel::Warning => ("warning", AnsiColor::Yellow.on_default()),
        FindingLevel::Problem => ("problem", AnsiColor::Red.on_default().bold()),
    };
    let what = mark_breaks(&escape_text(found.what.trim_end()));
    let hints: String = found.hints.iter().map(|hint| format!("           {}\n", escape_line(hint))).collect();
    format!("  {style}{word:<8}{style:#} {what}\n{hints}")
}

/// Shows the orphans, and ends them when `yes`. Others that carry a launch id are left alone, and printed with the reason.
pub async fn print_and_reap_orphans(yes: bool, json: bool) -> Result<u8> {
    let (orphans, others): (Vec<LaunchProcesses>, Vec<LaunchProcesses>) =
        orphan_launches::find_launches()?.into_iter().partition(LaunchProcesses::is_orphan);
    let (mut ended, mut failed) = (Vec::new(), Vec::new());
    for launch in orphans.iter().filter(|_| yes) {
        match orphan_launches::reap_orphan(launch).await {
            Ok(true) => ended.push(&launch.id),
            Ok(false) => {}
            Err(error) => failed.push(error),
        }
    }
    if json {
        let as_json = |launch: &LaunchProcesses| launch_json(launch, ended.contains(&&launch.id));
        let (orphans, others): (Vec<_>, Vec<_>) =
            (orphans.iter().map(as_json).collect(), others.iter().map(as_json).collect());
        let object = json!({ "orphans": orphans, "leftAlone": others });
        print_text(&format!("{}\n", escape_json(&object.to_string())));
    } else {
        let text = |launch: &LaunchProcesses| launch_text(launch, ended.contains(&&launch.id));
        print_text(&orphans.iter().chain(&others).map(text).collect::<String>());
        print_text(match (orphans.is_empty(), yes) {
            (true, _) => "no orphans\n",
            (false, false) => "`tether doctor --reap --yes` ends the orphans\n",
            (false, true) => "",
        });
    }
    failed.into_iter().next().map_or(Ok(0), |error: Error| Err(error))
}

fn owner_text(launch: &LaunchProcesses) -> String {
    match &launch.owner {
        LaunchOwner::Supervised(workspace) if workspace.as_os_str().is_empty() => {
            "belongs to a running supervisor".to_owned()
        }
        LaunchOwner::Supervised(workspace) => format!("belongs to the supervisor of {}", workspace.display()),
        LaunchOwner::Reconnectable(workspace) => {
            format!("is the window of {}: the next command is connected to it again", workspace.display())
        }
        LaunchOwner::Hosted(workspace) => {
            format!("is a debug session of {}, and goes on; `tether shutdown --all` ends it", workspace.display())
        }
        LaunchOwner::Orphan(_) => "is an orphan".to_owned(),
        LaunchOwner::Released => "is a program that a debug session has detached from, and keeps running".to_owned(),
        LaunchOwner::Unknown => "is left alone: its workspace is not known".to_owned(),
        LaunchOwner::Elsewhere => {
            "is left alone: another state folder (XDG_STATE_HOME), or none, knows of it".to_owned()
        }
    }
}

fn launch_text(launch: &LaunchProcesses, ended: bool) -> String {
    let shown = |command: &str| escape_line(first_chars(command, SHOWN));
    let line = |(pid, command): &(u32, String)| format!("  {pid:>8}  {}\n", shown(command));
    let processes: String = launch.processes.iter().map(line).collect();
    let detached: String = launch.detached.iter().map(line).collect();
    let fate = if ended { "was an orphan, and has been ended".to_owned() } else { owner_text(launch) };
    let (id, fate) = (escape_line(&launch.id), escape_line(&fate));
    let mut text = String::new();
    if !processes.is_empty() {
        text += &format!("launch {id} {fate}\n{processes}");
    }
    if !detached.is_empty() {
        let what =
            "was inherited by processes that have detached themselves; they are left alone (`kill PID` ends one)";
        text += &format!("launch {id} {what}\n{detached}");
    }
    text
}

fn launch_json(launch: &LaunchProcesses, ended: bool) -> Value {
    let listed = |all: &[(u32, String)]| -> Vec<Value> {
        all.iter().map(|(pid, command)| json!({ "pid": pid, "command": command })).collect()
    };
    json!({
        "launchId": launch.id, "why": owner_text(launch), "ended": ended,
        "processes": listed(&launch.processes), "detached": listed(&launch.detached),
    })
}
