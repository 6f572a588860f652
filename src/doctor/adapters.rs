//! The debug adapters: which are on this machine, where each lies, and what installs the others.
//!
//! Looks, and runs nothing. Must not know what they debug beyond its name.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Finding, Level, Topic};
use crate::adapters::{ADAPTERS, Adapter, AdapterSearch};
use crate::error::{ErrorData, Result};
use crate::tools::{self, Row, State};

/// One of them, and where it was found.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Present {
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

/// All of them. Errors: there is no folder for our own installs.
pub fn present(workspace: &Path) -> Result<Vec<Present>> {
    let (search, rows) = (AdapterSearch::for_workspace(workspace)?, tools::rows()?);
    Ok(ADAPTERS.iter().map(|adapter| one(adapter, &search, &rows)).collect())
}

fn one(adapter: &Adapter, search: &AdapterSearch, rows: &[Row]) -> Present {
    let Adapter { name, languages, .. } = *adapter;
    let nothing = Present {
        name,
        languages,
        found: false,
        path: None,
        interpreter: None,
        place: None,
        because: None,
        hints: Vec::new(),
    };
    match (adapter.find)(search) {
        Ok(found) => {
            let ours = rows.iter().find(|row| found.path.starts_with(&row.path));
            let outdated = ours.and_then(|row| Some((row, stale(row)?)));
            let hints = outdated.iter().map(|(row, _)| format!("`{}` replaces it", row.install())).collect();
            let because = outdated.map(|(_, why)| why);
            let (path, interpreter, place) = (Some(found.path), found.interpreter, Some(found.place));
            Present { found: true, path, interpreter, place, because, hints, ..nothing }
        }
        Err(error) => {
            let data = ErrorData::from(&error);
            let because = std::iter::once(data.doing).chain(data.because).collect::<Vec<_>>().join(": ");
            Present { because: Some(because), hints: data.hints, ..nothing }
        }
    }
}

fn stale(row: &Row) -> Option<String> {
    match &row.state {
        State::Outdated { found } => Some(format!("it is {found}, and {} is wanted", row.version)),
        State::Unproven => Some("no install of it has finished".to_owned()),
        State::Installed | State::Missing => None,
    }
}

/// What installs an adapter that is no tool of ours.
pub fn installed_by_others(name: &str) -> Option<&'static str> {
    let adapter = ADAPTERS.iter().find(|adapter| adapter.name == name)?;
    let ours = tools::Pins::read().is_ok_and(|pins| pins.tool(name).is_ok());
    (!ours).then_some(adapter.install)
}

/// What is there, one by one; what is not, in one line: nobody needs all of them.
pub(super) fn look(workspace: &Path) -> Vec<Finding> {
    let all = match present(workspace) {
        Ok(all) => all,
        Err(error) => return vec![Finding::of(Topic::Tools, Level::Problem, &error)],
    };
    let (there, missing): (Vec<_>, Vec<_>) = all.into_iter().partition(|it| it.found);
    let mut findings: Vec<Finding> = there.iter().map(found).collect();
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|it| format!("{} ({})", it.name, it.languages[0])).collect();
        let what = format!("debug adapters that are not here: {}", names.join(", "));
        findings.push(Finding::new(Topic::Tools, Level::Ok, what).hint("`tether adapters` tells what installs them"));
    }
    findings
}

fn found(it: &Present) -> Finding {
    let path = it.path.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
    let what = format!("{} for {} ({path})", it.name, it.languages[0]);
    match &it.because {
        None => Finding::new(Topic::Tools, Level::Ok, what),
        Some(why) => {
            let finding = Finding::new(Topic::Tools, Level::Warning, format!("{what}: {why}"));
            it.hints.iter().fold(finding, |finding, hint| finding.hint(hint))
        }
    }
}
