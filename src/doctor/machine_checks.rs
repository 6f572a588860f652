//! Checks the machine: programs, our own tools, free disk space, and our folders in the user's home.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tether_base::xdg;
use tether_tools::{Pins, SystemPin, ToolState, ToolStatus};

use super::finding::FindingLevel::{Ok as Good, Problem, Warning};
use super::finding::FindingTopic::{Machine, Tools};
use super::finding::{Finding, FindingLevel};
use crate::config::{WindowKind, WindowSettings};
use crate::window::launch::BROWSER_NAMES;

/// Free space below this is a warning, in bytes.
const LITTLE: u64 = 500 << 20;
/// Below this a profile, a log or a snapshot cannot be written, in bytes.
const TOO_LITTLE: u64 = 20 << 20;

/// Programs of the system, tools of ours that windows need, a desktop VS Code. What `window` needs is a problem when it
/// is missing, everything else a warning.
pub async fn check_tools(window: Option<&WindowSettings>) -> Vec<Finding> {
    let needs = WindowNeeds::of(window);
    let (pins, rows) = match Pins::read().and_then(|pins| Ok((pins, tether_tools::list_tools()?))) {
        Ok(read) => read,
        Err(error) => return vec![Finding::from_error(Tools, Problem, &error)],
    };
    let probes =
        pins.systems.iter().filter(|pin| !pin.tests_only).map(|pin| check_system_program(pin, needs.level(&pin.name)));
    let mut findings = futures_util::future::join_all(probes).await;
    findings.extend(rows.iter().filter(|row| !row.is_adapter).map(|row| tool_finding(row, needs.level(&row.name))));
    findings.push(check_desktop_vscode(window, needs.level("vscode")));
    findings
}

/// What a window does not start without.
struct WindowNeeds(Vec<&'static str>);

impl WindowNeeds {
    fn of(window: Option<&WindowSettings>) -> WindowNeeds {
        let Some(window) = window else { return WindowNeeds(Vec::new()) };
        let chosen = |setting: &Option<PathBuf>, name| if setting.is_none() { vec![name] } else { Vec::new() };
        // What was derived only means an extension host: without a desktop VS Code it is the web's.
        let web = window.derived && find_desktop_vscode(Some(window)).is_none();
        let kind = window.kind.map(|kind| match kind {
            WindowKind::ExtensionHost if web => WindowKind::WebExtensionHost,
            kind => kind,
        });
        WindowNeeds(match kind {
            Some(WindowKind::Browser) => chosen(&window.browser, "chromium"),
            Some(WindowKind::Node) => chosen(&window.node, "node"),
            Some(WindowKind::ExtensionHost) => vec!["vscode"],
            Some(WindowKind::WebExtensionHost) => [
                chosen(&window.browser, "chromium"),
                chosen(&window.node, "node24"),
                chosen(&window.code_server, "code-server"),
            ]
            .concat(),
            Some(WindowKind::Command) | None => Vec::new(),
        })
    }

    /// How bad it is that this one is missing.
    fn level(&self, name: &str) -> FindingLevel {
        if self.0.contains(&name) { Problem } else { Warning }
    }
}

async fn check_system_program(pin: &SystemPin, missing: FindingLevel) -> Finding {
    let mut pin = pin.clone();
    if pin.name == "chromium" {
        // Any browser of the list will do; a window starts the first that is found.
        let path = std::env::var_os("PATH");
        let found = BROWSER_NAMES.iter().find(|name| tether_tools::find_on_path(&[name], path.as_deref()).is_some());
        pin.probe[0] = found.unwrap_or(&"chromium").to_string();
    }
    match tether_tools::check_program_version(&pin).await {
        Ok(found) => Finding::new(Tools, Good, format!("{} {} ({})", pin.name, found.version, found.path.display())),
        Err(error) => Finding::from_error(Tools, missing, &error),
    }
}

fn tool_finding(row: &ToolStatus, missing: FindingLevel) -> Finding {
    let say = |level: FindingLevel, what: String| Finding::new(Tools, level, format!("{} {what}", row.name));
    let install = |verb: &str| format!("`{}` {verb} it", row.install_command());
    match &row.state {
        ToolState::Installed => say(Good, format!("{} ({})", row.version, row.path.display())),
        ToolState::Outdated { found } => {
            say(Warning, format!("is {found}, and {} is wanted", row.version)).hint(install("replaces"))
        }
        ToolState::Unproven => {
            say(missing, "is there, but no install of it has finished".into()).hint(install("proves"))
        }
        ToolState::Missing => say(missing, format!("is missing: {}", row.what)).hint(install("installs")),
    }
}

/// The desktop VS Code that would be started.
fn find_desktop_vscode(window: Option<&WindowSettings>) -> Option<PathBuf> {
    let setting = window.and_then(|window| window.vscode.as_deref());
    tether_tools::desktop_vscode::find_launcher(setting, std::env::var_os("PATH").as_deref())
}

/// Missing is only a problem when the window needs it.
fn check_desktop_vscode(window: Option<&WindowSettings>, missing: FindingLevel) -> Finding {
    match (find_desktop_vscode(window), missing) {
        (Some(launcher), _) => Finding::new(Tools, Good, format!("desktop VS Code ({})", launcher.display())),
        (None, Problem) => Finding::new(Tools, Problem, "there is no desktop VS Code, and the window is one")
            .hint("set `vscode = \"/path/to/bin/code\"`, or `kind = \"web-extension-host\"`, in devtools.toml"),
        (None, _) => Finding::new(Tools, Good, "no desktop VS Code; `kind = \"web-extension-host\"` needs none"),
    }
}

/// Disks and folders.
pub fn check_folders(workspace: &Path) -> Vec<Finding> {
    let all =
        [(xdg::state_dir(), "logs and profiles"), (xdg::config_dir(), "your consents"), (xdg::data_dir(), "tools")];
    let (mut findings, mut seen) = (Vec::new(), Vec::new());
    for (folder, what) in all {
        match folder {
            Ok(folder) => {
                findings.extend(check_own_folder(&folder, what));
                findings.extend(check_free_space(&folder, &mut seen));
            }
            Err(error) => findings.push(Finding::from_error(Machine, Problem, &error)),
        }
    }
    findings.extend(check_free_space(workspace, &mut seen));
    findings
}

/// A folder of ours, which need not be there yet.
fn check_own_folder(folder: &Path, what: &str) -> Option<Finding> {
    let say = |level: FindingLevel, state: String| {
        Some(Finding::new(Machine, level, format!("{} ({what}) {state}", folder.display())))
    };
    let seen = match folder.metadata() {
        Ok(seen) => seen,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return None,
        Err(cause) => return say(Problem, format!("cannot be read: {cause}")),
    };
    let show = format!("`ls -ld {}` shows it", folder.display());
    match reason_for_distrust(&seen) {
        None => say(Good, "is yours".into()),
        Some(reason) => say(Problem, reason).map(|finding| finding.hint(show)),
    }
}

fn reason_for_distrust(seen: &Metadata) -> Option<String> {
    let us = rustix::process::geteuid().as_raw();
    match seen {
        seen if !seen.is_dir() => Some("is not a folder".into()),
        seen if seen.uid() != us => Some(format!("belongs to user {}, and you are {us}", seen.uid())),
        seen if seen.mode() & 0o022 != 0 => Some(format!("can be written by others (mode {:o})", seen.mode() & 0o777)),
        _ => None,
    }
}

/// The disk of the nearest folder above that is there, once.
fn check_free_space(folder: &Path, seen: &mut Vec<u64>) -> Option<Finding> {
    let there = folder.ancestors().find(|folder| folder.exists())?;
    let device = there.metadata().ok()?.dev();
    if seen.contains(&device) {
        return None;
    }
    seen.push(device);
    let free = match rustix::fs::statvfs(there) {
        Ok(stat) => stat.f_bavail * stat.f_frsize,
        Err(cause) => {
            let what = format!("cannot read the free space of {}: {}", there.display(), std::io::Error::from(cause));
            return Some(Finding::new(Machine, Warning, what));
        }
    };
    let level = match free {
        free if free < TOO_LITTLE => Problem,
        free if free < LITTLE => Warning,
        _ => Good,
    };
    let finding = Finding::new(Machine, level, format!("{} MiB free on the disk of {}", free >> 20, there.display()));
    Some(if level == Good { finding } else { finding.hint(format!("`df -h {}` shows the disk", there.display())) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_the_window_needs_is_a_problem_when_it_is_missing() {
        let check = |kind: WindowKind, chosen: bool, name: &str, expect: FindingLevel| {
            let chosen = chosen.then(|| PathBuf::from("/mine"));
            let window =
                WindowSettings { kind: Some(kind), browser: chosen.clone(), node: chosen, ..Default::default() };
            assert_eq!(WindowNeeds::of(Some(&window)).level(name), expect, "{kind:?} {name}");
        };
        check(WindowKind::Browser, false, "chromium", Problem);
        check(WindowKind::Browser, true, "chromium", Warning);
        check(WindowKind::Browser, false, "code-server", Warning);
        check(WindowKind::WebExtensionHost, false, "node24", Problem);
        check(WindowKind::WebExtensionHost, true, "node24", Warning);
        check(WindowKind::WebExtensionHost, true, "code-server", Problem);
        check(WindowKind::Node, false, "node", Problem);
        check(WindowKind::ExtensionHost, false, "vscode", Problem);
        assert_eq!(WindowNeeds::of(None).level("chromium"), Warning);
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_a_problem() {
        let folder = tempfile::tempdir().unwrap();
        let check = |mode: u32, expect: FindingLevel| {
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(check_own_folder(folder.path(), "x").unwrap().level, expect, "{mode:o}");
        };
        check(0o700, Good);
        check(0o755, Good);
        check(0o775, Problem);
        check(0o777, Problem);
        assert!(check_own_folder(&folder.path().join("not there"), "x").is_none());
    }
}
