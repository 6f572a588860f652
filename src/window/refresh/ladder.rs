//! The refresh ladder as a pure table: which rungs can make a window of a kind run the code of now after a change, the
//! cheapest first. A relaunch, which takes up everything, comes after them.

use std::path::{Path, PathBuf};

use crate::config::WindowKind;
use crate::vocabulary::RefreshRung;

/// What has to take up a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeScope {
    /// The program's own code and data.
    Code,
    /// What the workbench knows of an extension: its manifest, and the files that it contributes ([`super::contributed_files`]).
    Manifest,
    /// What is built and launched, and how; also a change that is not known.
    Launch,
}

/// Files that decide what is built and launched.
const LAUNCH_FILES: &[&str] = &["devtools.toml", ".vscode/launch.json", ".vscode/tasks.json"];

impl RefreshRung {
    /// The step that is reported while it is tried.
    pub fn progress(self) -> &'static str {
        match self {
            RefreshRung::RestartExtensionHost => "restarting the extension host",
            RefreshRung::Reload => "reloading the page",
            RefreshRung::Relaunch => "launching",
        }
    }

    /// The beginning of the note about a rung that was not proven.
    pub fn failure(self) -> &'static str {
        match self {
            RefreshRung::RestartExtensionHost => "a restart of the extension host alone was not enough",
            RefreshRung::Reload => "a reload of the page was not enough",
            RefreshRung::Relaunch => "the relaunch failed",
        }
    }
}

/// The rungs below a relaunch, the cheapest first.
pub fn select_rungs(kind: WindowKind, scope: ChangeScope) -> &'static [RefreshRung] {
    use RefreshRung::{Reload, RestartExtensionHost};
    match (kind, scope) {
        (_, ChangeScope::Launch) | (WindowKind::Node | WindowKind::Command, _) => &[],
        (WindowKind::ExtensionHost | WindowKind::WebExtensionHost, ChangeScope::Code) => {
            &[RestartExtensionHost, Reload]
        }
        (WindowKind::ExtensionHost | WindowKind::WebExtensionHost, ChangeScope::Manifest) => &[Reload],
        (WindowKind::Browser, _) => &[Reload],
    }
}

/// What decides what has to take up the changes since a window was launched or refreshed.
#[derive(Clone, Debug)]
pub struct ScopeFacts {
    pub has_other_configuration: bool,
    /// Whether a launch would differ, also by what is in no tracked file, such as a file of environment variables.
    pub has_other_settings: bool,
    pub always_relaunches: bool,
    /// By the files that have changed; `None`: it is not known which.
    pub by_files: Option<ChangeScope>,
    /// Whether a file has changed that the workbench keeps, also one that the build writes.
    pub has_other_contributions: bool,
}

impl ScopeFacts {
    /// The widest scope of all that has changed.
    pub fn scope(&self) -> ChangeScope {
        match self.by_files {
            _ if self.has_other_configuration || self.has_other_settings || self.always_relaunches => {
                ChangeScope::Launch
            }
            None => ChangeScope::Launch,
            Some(ChangeScope::Code) if self.has_other_contributions => ChangeScope::Manifest,
            Some(scope) => scope,
        }
    }
}

/// What has to take up a change of these files, relative to `root`; `extensions` are the folders of the extensions under
/// development, `workspace` is where the launch files are.
pub fn classify_change(changed: &[PathBuf], root: &Path, workspace: &Path, extensions: &[PathBuf]) -> ChangeScope {
    if changed.is_empty() {
        return ChangeScope::Launch;
    }
    let scope_of = |path: &PathBuf| {
        let path = root.join(path);
        let is_launch_file = LAUNCH_FILES.iter().any(|file| path == workspace.join(file));
        let folder = path.parent().unwrap_or(root);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_translation = name.starts_with("package.nls") && name.ends_with(".json");
        match () {
            () if is_launch_file => ChangeScope::Launch,
            () if !(name == "package.json" || is_translation) => ChangeScope::Code,
            () if extensions.iter().any(|extension| extension == folder) => ChangeScope::Manifest,
            // The scripts of a web project, or of a package beside the extension.
            () if name == "package.json" && folder == workspace => ChangeScope::Launch,
            () => ChangeScope::Code,
        }
    };
    let scopes: Vec<ChangeScope> = changed.iter().map(scope_of).collect();
    let widest = [ChangeScope::Launch, ChangeScope::Manifest].into_iter().find(|scope| scopes.contains(scope));
    widest.unwrap_or(ChangeScope::Code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_rung_that_takes_up_the_change_is_tried_first() {
        use RefreshRung::{Reload, RestartExtensionHost};
        let check =
            |kind, scope, expect: &[RefreshRung]| assert_eq!(select_rungs(kind, scope), expect, "{kind:?} {scope:?}");
        for host in [WindowKind::ExtensionHost, WindowKind::WebExtensionHost] {
            check(host, ChangeScope::Code, &[RestartExtensionHost, Reload]);
            check(host, ChangeScope::Manifest, &[Reload]);
            check(host, ChangeScope::Launch, &[]);
        }
        check(WindowKind::Browser, ChangeScope::Code, &[Reload]);
        check(WindowKind::Browser, ChangeScope::Launch, &[]);
        check(WindowKind::Node, ChangeScope::Code, &[]);
        check(WindowKind::Command, ChangeScope::Code, &[]);
    }

    #[test]
    fn each_fact_alone_keeps_a_change_from_being_taken_up_by_a_new_extension_host() {
        let code = || ScopeFacts {
            has_other_configuration: false,
            has_other_settings: false,
            always_relaunches: false,
            by_files: Some(ChangeScope::Code),
            has_other_contributions: false,
        };
        assert_eq!(code().scope(), ChangeScope::Code);
        for (facts, expect) in [
            (ScopeFacts { has_other_configuration: true, ..code() }, ChangeScope::Launch),
            (ScopeFacts { has_other_settings: true, ..code() }, ChangeScope::Launch),
            (ScopeFacts { always_relaunches: true, ..code() }, ChangeScope::Launch),
            (ScopeFacts { by_files: None, ..code() }, ChangeScope::Launch),
            (ScopeFacts { by_files: Some(ChangeScope::Launch), ..code() }, ChangeScope::Launch),
            (ScopeFacts { by_files: Some(ChangeScope::Manifest), ..code() }, ChangeScope::Manifest),
            (ScopeFacts { has_other_contributions: true, ..code() }, ChangeScope::Manifest),
        ] {
            assert_eq!(facts.scope(), expect, "{facts:?}");
        }
    }

    #[test]
    fn the_widest_scope_of_the_changed_files_counts() {
        let check = |changed: &[&str], expect| {
            let changed: Vec<PathBuf> = changed.iter().map(PathBuf::from).collect();
            let extensions = [PathBuf::from("/ws/ext")];
            let scope = classify_change(&changed, Path::new("/ws"), Path::new("/ws"), &extensions);
            assert_eq!(scope, expect, "{changed:?}");
        };
        check(&["src/a.ts", "README.md"], ChangeScope::Code);
        check(&["ext/package.json"], ChangeScope::Manifest);
        check(&["ext/package.nls.de.json", "src/a.ts"], ChangeScope::Manifest);
        check(&["ext/src/package.json"], ChangeScope::Code);
        check(&["package.json", "ext/package.json"], ChangeScope::Launch);
        check(&["devtools.toml"], ChangeScope::Launch);
        check(&[".vscode/launch.json", "src/a.ts"], ChangeScope::Launch);
        check(&[], ChangeScope::Launch);
    }
}
