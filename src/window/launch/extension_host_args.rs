//! The arguments of an Extension Development Host: extensions, folder, and the rest of the user's `args`.
//!
//! `args` may contain VS Code's own flags, as in launch.json. Does not depend on the kind of the host.

use std::path::{Path, PathBuf};

use tether_base::error::{Error, ErrorContext, Result};

use super::attempt::WindowLaunchPlan;
use super::extension_manifest::runs_in_web_worker;
use crate::config::{WEB_WORKER_KIND, take_tests_path};

/// VS Code's flag; may be repeated.
const FLAG: &str = "--extensionDevelopmentPath";

/// The parsed arguments.
#[derive(Debug, PartialEq, Eq)]
pub struct ExtensionHostArgs {
    /// At least one; each has a package.json.
    pub extensions: Vec<PathBuf>,
    /// The folder that is opened.
    pub folder: PathBuf,
    /// The other words of `args`.
    pub args: Vec<String>,
    /// Whether all extensions under development run in a web worker.
    pub in_web_worker: bool,
    /// The module that runs tests in the host, which then ends.
    pub tests: Option<PathBuf>,
}

impl ExtensionHostArgs {
    /// Reads the window's settings. Errors: an extension without package.json, a folder that does not exist.
    pub fn read(plan: &WindowLaunchPlan) -> Result<ExtensionHostArgs> {
        let settings = &plan.settings;
        let (mut extensions, folder, mut args) = split_args(&settings.args, &plan.workspace);
        let count = args.len();
        args.retain(|arg| arg != WEB_WORKER_KIND);
        let in_web_worker = args.len() < count;
        let tests = take_tests_path(&mut args);
        extensions.splice(0..0, settings.extension.iter().chain(&settings.more_extensions).cloned());
        if extensions.is_empty() {
            extensions.push(PathBuf::new());
        }
        let extensions =
            extensions.iter().map(|path| check_extension(&plan.resolve_path(path))).collect::<Result<_>>()?;
        let folder = settings.folder.as_deref().map(|folder| plan.resolve_path(folder)).or(folder);
        let folder = folder.unwrap_or_else(|| plan.workspace.clone());
        let folder = folder.canonicalize().doing(|| format!("cannot open the folder {}", folder.display()))?;
        Ok(ExtensionHostArgs { extensions, folder, args, in_web_worker, tests })
    }

    /// The extensions that run in the host that is a Node process; and a note about the others.
    pub fn extensions_on_node(&self) -> (Vec<PathBuf>, Option<String>) {
        let on_node = |folder: &&PathBuf| !self.in_web_worker && !runs_in_web_worker(folder);
        let extensions: Vec<PathBuf> = self.extensions.iter().filter(on_node).cloned().collect();
        let note = "cannot tell whether the extension is loaded: it runs in a web worker, which only the page knows of";
        let has_others = extensions.len() < self.extensions.len();
        (extensions, has_others.then(|| note.to_owned()))
    }
}

/// The extensions in `args`, the folder or file to open, and the other words.
fn split_args(args: &[String], workspace: &Path) -> (Vec<PathBuf>, Option<PathBuf>, Vec<String>) {
    let (mut extensions, mut folder, mut others) = (Vec::new(), None, Vec::new());
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let path = workspace.join(word);
        match word.strip_prefix(FLAG) {
            Some("") => extensions.extend(words.next().map(PathBuf::from)),
            Some(value) if value.starts_with('=') => extensions.push(PathBuf::from(&value[1..])),
            // A word that is no existing path is the value of the flag before it.
            _ if !word.starts_with('-') && !word.is_empty() && path.exists() => folder = Some(path),
            _ => others.push(word.clone()),
        }
    }
    (extensions, folder, others)
}

fn check_extension(folder: &Path) -> Result<PathBuf> {
    if folder.join("package.json").is_file() {
        return folder.canonicalize().doing(|| format!("cannot use the extension {}", folder.display()));
    }
    Err(Error::usage(format!("cannot load the extension {}", folder.display()))
        .because("it has no package.json")
        .hint("set `extension = \"path/to/it\"` in the [window] section of devtools.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vs_code_flags_are_split_from_other_arguments() {
        let workspace = tempfile::tempdir().unwrap();
        std::fs::create_dir(workspace.path().join("fixture")).unwrap();
        let check = |args: &[&str], extensions: &[&str], folder: Option<&str>, others: &[&str]| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            let found = split_args(&args, workspace.path());
            let extensions: Vec<PathBuf> = extensions.iter().map(PathBuf::from).collect();
            let others: Vec<String> = others.iter().map(|arg| (*arg).to_owned()).collect();
            assert_eq!(found, (extensions, folder.map(|it| workspace.path().join(it)), others), "{args:?}");
        };
        check(&[], &[], None, &[]);
        check(&["--extensionDevelopmentPath=/a b"], &["/a b"], None, &[]);
        check(&["--extensionDevelopmentPath", "/a", "--extensionDevelopmentPath=b"], &["/a", "b"], None, &[]);
        check(&["fixture", "--disable-extensions"], &[], Some("fixture"), &["--disable-extensions"]);
        check(&["--locale", "de"], &[], None, &["--locale", "de"]);
        check(&["--extensionDevelopmentPathology=x", ""], &[], None, &["--extensionDevelopmentPathology=x", ""]);
    }
}
