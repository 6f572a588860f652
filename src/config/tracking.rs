//! Which files of a workspace are tracked, as its settings say: the options of a change tracker.

use std::path::Path;

use tether_base::error::{Error, Result};
use tether_changes::{ChangeCriterion, DerivedRule, TrackerOptions};

use super::build_outputs::BuildOutput;
use super::devtools_toml::settings::{ConfirmBy, DEVTOOLS_TOML, WatchSettings, check_watch_root};

/// With these settings and build outputs, which are no changes. `cookie_dir` is a folder of our own. Errors: the watched folder is
/// not there, or is no project.
pub fn tracker_options(
    workspace: &Path,
    (watch, outputs): &(WatchSettings, Vec<BuildOutput>),
    cookie_dir: &Path,
) -> Result<TrackerOptions> {
    let root = workspace.join(&watch.root);
    let root = root.canonicalize().map_err(|cause| {
        Error::usage(format!("cannot watch {}", root.display()))
            .because(cause)
            .hint(format!("set [watch] root in {DEVTOOLS_TOML} to a folder that is there"))
    })?;
    check_watch_root(workspace, &root)?;
    let criterion = match watch.confirm {
        ConfirmBy::Mtime => ChangeCriterion::Metadata,
        ConfirmBy::Content => ChangeCriterion::Content,
    };
    let rule_of = |BuildOutput { pattern, origin }: BuildOutput| {
        let (file, line) = (workspace.join(origin.file), origin.line);
        DerivedRule { pattern, file, line }
    };
    let derived = outputs.iter().cloned().map(rule_of).collect();
    Ok(TrackerOptions { root, cookie_dir: cookie_dir.to_owned(), criterion, derived })
}
