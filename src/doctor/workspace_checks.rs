//! Checks the workspace: its settings, whether they are trusted, what a watch of it needs.

use std::path::Path;

use tether_changes::WorkspaceSize;
use tether_process::InotifyLimits;

use super::finding::FindingLevel::{Ok as Good, Problem, Warning};
use super::finding::{Finding, FindingLevel, FindingTopic};
use crate::config::trust::WorkspaceCommands;
use crate::config::{WindowConfig, WindowSettings, check_watch_root};

fn workspace_finding(level: FindingLevel, what: impl Into<String>) -> Finding {
    Finding::new(FindingTopic::Workspace, level, what)
}

/// The findings, and the settings of the window, if any.
pub fn check_workspace(workspace: &Path) -> (Vec<Finding>, Option<WindowSettings>) {
    let workspace = match workspace.canonicalize() {
        Ok(workspace) if workspace.is_dir() => workspace,
        Ok(file) => return (vec![workspace_finding(Problem, format!("{} is not a folder", file.display()))], None),
        Err(cause) => return (vec![workspace_finding(Problem, format!("{}: {cause}", workspace.display()))], None),
    };
    let mut findings = vec![workspace_finding(Good, format!("the workspace is {}", workspace.display()))];
    let config = match WindowConfig::resolve(&workspace, None) {
        Ok(config) => config,
        Err(error) => {
            findings.push(Finding::from_error(FindingTopic::Workspace, Problem, &error));
            return (findings, None);
        }
    };
    findings.push(match (config.check_window(), config.window.kind) {
        (Ok(()), Some(kind)) => workspace_finding(Good, format!("its window is of kind {}", kind.name())),
        (Ok(()), None) => workspace_finding(Warning, "no setting names the kind of its window"),
        (Err(error), _) => Finding::from_error(FindingTopic::Workspace, Warning, &error),
    });
    findings.extend(config.notes.iter().map(|note| workspace_finding(Good, note.clone())));
    findings.push(match WorkspaceCommands::of_window(&config).require_consent() {
        Ok(()) => workspace_finding(Good, "what it wants to run is trusted"),
        Err(error) => Finding::from_error(FindingTopic::Workspace, Warning, &error),
    });
    findings.extend(check_watch_limits(&workspace, &workspace.join(&config.watch.root)));
    (findings, Some(config.window))
}

/// Whether the kernel gives as many watches as the workspace has folders.
fn check_watch_limits(workspace: &Path, root: &Path) -> Vec<Finding> {
    let canonical = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let size =
        match check_watch_root(workspace, &canonical).and_then(|()| tether_changes::measure_workspace(&canonical)) {
            Ok(size) => size,
            Err(error) => return vec![Finding::from_error(FindingTopic::Workspace, Problem, &error)],
        };
    let problems = size.problems.iter().map(|problem| workspace_finding(Warning, problem.to_string()));
    // Other platforms have no such limits.
    let compared = tether_process::read_inotify_limits().map(|limits| compare_with_limits(&size, limits));
    problems.chain(compared.into_iter().flatten()).collect()
}

fn compare_with_limits(size: &WorkspaceSize, limits: InotifyLimits) -> Vec<Finding> {
    let sysctl = |name: &str, least: u64| format!("`sudo sysctl fs.inotify.{name}={least}` raises it until a reboot");
    let tracked = format!("{} files are tracked, {} folders to watch", size.files, size.folders);
    let needed = size.folders as u64 + 1;
    let mut findings = vec![if needed > limits.watches {
        workspace_finding(
            Warning,
            format!("{tracked}, but the kernel allows {}: each check reads all files", limits.watches),
        )
        .hint(sysctl("max_user_watches", (needed * 2).next_power_of_two()))
        .hint("or leave folders out in .devtoolsignore")
    } else {
        workspace_finding(Good, format!("{tracked}; the kernel allows {}", limits.watches))
    }];
    if limits.instances_used + 2 > limits.instances {
        let text = format!("{} of {} inotify instances are in use", limits.instances_used, limits.instances);
        findings
            .push(workspace_finding(Warning, text).hint(sysctl("max_user_instances", (limits.instances * 2).max(512))));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_above_the_kernels_watch_limits_is_reported_with_the_command_that_raises_them() {
        let check = |folders: usize, used: u64, level: FindingLevel, part: &str| {
            let size = WorkspaceSize { folders, files: 7, problems: Vec::new() };
            let limits = InotifyLimits { watches: 100, instances: 128, instances_used: used };
            let found = compare_with_limits(&size, limits);
            let last = found.last().unwrap();
            let text = format!("{} {}", last.what, last.hints.join(" "));
            assert!(last.level == level && text.contains(part), "{text}");
        };
        check(99, 3, Good, "99 folders to watch; the kernel allows 100");
        check(100, 3, Warning, "fs.inotify.max_user_watches=256");
        check(1, 126, Good, "1 folders");
        check(1, 127, Warning, "fs.inotify.max_user_instances=512");
    }
}
