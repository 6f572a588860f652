//! Checks the debug adapters: which are on this machine, their paths, and what installs the others.
//!
//! Runs nothing. Of what an adapter debugs it has only the name.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tether_base::error::Result;
use tether_tools::{ToolState, ToolStatus};

use super::finding::{Finding, FindingLevel, FindingTopic};
use crate::adapters::{ADAPTERS, Adapter, AdapterSearch};
use crate::config::trust::consented_programs;

/// A debug adapter, and where it was found.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdapterStatus {
    pub name: &'static str,
    pub languages: &'static [&'static str],
    pub found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// What runs it, or runs what it debugs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<PathBuf>,
    /// In a few words: `PATH`, `mason`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Why it was not found, with every place that was looked at; or why what was found is to be replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// What installs or replaces it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

/// Every adapter. Errors: there is no folder for our own installs.
pub fn list_adapters(workspace: &Path) -> Result<Vec<AdapterStatus>> {
    let (search, rows) =
        (AdapterSearch::for_workspace(workspace, consented_programs(workspace))?, tether_tools::list_tools()?);
    Ok(ADAPTERS.iter().map(|adapter| adapter_status(adapter, &search, &rows)).collect())
}

fn adapter_status(adapter: &Adapter, search: &AdapterSearch, rows: &[ToolStatus]) -> AdapterStatus {
    let Adapter { name, languages, .. } = *adapter;
    let missing = AdapterStatus { name, languages, ..AdapterStatus::default() };
    match (adapter.find)(search) {
        Ok(found) => {
            let ours = rows.iter().find(|row| found.path.starts_with(&row.path));
            let outdated = ours.and_then(|row| Some((row, describe_stale(row)?)));
            let hints = outdated.iter().map(|(row, _)| format!("`{}` replaces it", row.install_command())).collect();
            let because = outdated.map(|(_, why)| why).or(found.note);
            let (path, interpreter, place) = (Some(found.path), found.interpreter, Some(found.place));
            AdapterStatus { found: true, path, interpreter, place, because, hints, ..missing }
        }
        Err(error) => {
            let finding = Finding::from_error(FindingTopic::Tools, FindingLevel::Problem, &error);
            AdapterStatus { because: Some(finding.what), hints: finding.hints, ..missing }
        }
    }
}

fn describe_stale(row: &ToolStatus) -> Option<String> {
    match &row.state {
        ToolState::Outdated { found } => Some(format!("it is {found}, and {} is wanted", row.version)),
        ToolState::Unproven => Some("no install of it has finished".to_owned()),
        ToolState::Installed | ToolState::Missing => None,
    }
}

/// What installs an adapter that is no tool of ours.
pub fn foreign_install_hint(name: &str) -> Option<&'static str> {
    let adapter = ADAPTERS.iter().find(|adapter| adapter.name == name)?;
    let ours = tether_tools::Pins::read().is_ok_and(|pins| pins.tool(name).is_ok());
    (!ours).then_some(adapter.install)
}

/// A finding for each adapter that is present, and one for all that are not: no user needs all of them.
pub(super) fn check_adapters(workspace: &Path) -> Vec<Finding> {
    let all = match list_adapters(workspace) {
        Ok(all) => all,
        Err(error) => return vec![Finding::from_error(FindingTopic::Tools, FindingLevel::Problem, &error)],
    };
    let (there, missing): (Vec<_>, Vec<_>) = all.into_iter().partition(|it| it.found);
    let mut findings: Vec<Finding> = there.iter().map(adapter_finding).collect();
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|it| format!("{} ({})", it.name, it.languages[0])).collect();
        let what = format!("debug adapters that are not here: {}", names.join(", "));
        let finding = Finding::new(FindingTopic::Tools, FindingLevel::Ok, what);
        findings.push(finding.hint("`tether adapters` lists what installs them"));
    }
    findings
}

fn adapter_finding(it: &AdapterStatus) -> Finding {
    let path = it.path.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
    let what = format!("{} for {} ({path})", it.name, it.languages[0]);
    match &it.because {
        None => Finding::new(FindingTopic::Tools, FindingLevel::Ok, what),
        Some(why) => {
            let finding = Finding::new(FindingTopic::Tools, FindingLevel::Warning, format!("{what}: {why}"));
            it.hints.iter().fold(finding, |finding, hint| finding.hint(hint))
        }
    }
}
