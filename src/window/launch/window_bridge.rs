//! Our own extension, brought into each VS Code that is launched with a profile of its own: it runs commands and reads output
//! channels there (`window/command`, `window/output`), with nothing installed.
//!
//! It is put into the extensions folder of the launch, which is removed with it: never into a profile that is kept, nor
//! into another VS Code of the user. `npm run compile` in `extension` writes the script, and its tests compare it.

use std::fs;
use std::path::Path;

use serde_json::json;
use tether_base::error::{ErrorContext, Result};

use crate::config::{TESTS_PATH_FLAG, WindowSettings};

/// `extension/src/bridge/bridgeOnly.ts`, with what it needs.
const SCRIPT: &str = include_str!("window_bridge.js");
const NAME: &str = "tether";
const PUBLISHER: &str = "devtether";
/// The version of the supervisor, which one of another version would be asked to replace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Puts the extension into this folder, unless the profile is kept, or the window only runs tests: they see the extensions
/// that they were written with.
pub fn install_window_bridge(settings: &WindowSettings, extensions: &Path) -> Result<()> {
    let runs_tests = settings.args.iter().any(|arg| arg.starts_with(TESTS_PATH_FLAG));
    if settings.profile.is_some() || runs_tests {
        return Ok(());
    }
    let relative = format!("{PUBLISHER}.{NAME}-{VERSION}");
    let folder = extensions.join(&relative);
    let manifest = json!({
        "name": NAME, "publisher": PUBLISHER, "version": VERSION, "displayName": "Tether",
        "description": "Runs VS Code's commands in this window for its supervisor.",
        "engines": {"vscode": "^1.101.0"}, "main": "./extension.js", "activationEvents": ["onStartupFinished"],
        "capabilities": {"untrustedWorkspaces": {"supported": true}, "virtualWorkspaces": true},
    });
    // The list of a profile's extensions, as VS Code writes it.
    let list = json!([{
        "identifier": {"id": format!("{PUBLISHER}.{NAME}")}, "version": VERSION, "relativeLocation": relative,
        "location": {"$mid": 1, "path": folder, "scheme": "file"},
    }]);
    let write = || {
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("extension.js"), SCRIPT)?;
        fs::write(folder.join("package.json"), manifest.to_string())?;
        fs::write(extensions.join("extensions.json"), list.to_string())
    };
    write().doing(|| format!("cannot write {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn it_is_put_only_into_a_folder_of_the_launch() {
        let check = |settings: WindowSettings, expect: bool| {
            let folder = tempfile::tempdir().unwrap();
            install_window_bridge(&settings, folder.path()).unwrap();
            let script = folder.path().join(format!("devtether.tether-{VERSION}/extension.js"));
            assert_eq!(script.is_file() && folder.path().join("extensions.json").is_file(), expect, "{settings:?}");
        };
        check(WindowSettings::default(), true);
        check(WindowSettings { profile: Some(PathBuf::from("mine")), ..WindowSettings::default() }, false);
        let args = vec!["--extensionTestsPath=/x".to_owned()];
        check(WindowSettings { args, ..WindowSettings::default() }, false);
    }
}
