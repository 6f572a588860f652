//! Finds installed adapters: the user's setting, PATH, editors' own folders, tether's own installs, and with the user's
//! consent the workspace.
//!
//! Checks file names only, and runs nothing. Does not depend on any adapter.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use tether_base::error::{Error, ErrorKind, Result};
use tether_tools::Pins;

use crate::workspace::workspace_programs::{ProgramConsent, WorkspaceProgram};

/// The extension folders of editors, below the home folder, and their names for users.
const EXTENSIONS: &[(&str, &str)] = &[
    (".vscode/extensions", "VS Code's extensions"),
    (".vscode-server/extensions", "VS Code's remote extensions"),
    (".vscode-insiders/extensions", "VS Code Insiders' extensions"),
    (".vscode-server-insiders/extensions", "VS Code Insiders' remote extensions"),
    (".vscode-oss/extensions", "VSCodium's extensions"),
    (".vscodium-server/extensions", "VSCodium's remote extensions"),
    (".cursor/extensions", "Cursor's extensions"),
    (".cursor-server/extensions", "Cursor's remote extensions"),
    (".windsurf/extensions", "Windsurf's extensions"),
];

/// The place of tether's own installs, for users.
pub const INSTALLED: &str = "tether adapters install";

/// Where adapters are searched for.
#[derive(Clone, Debug)]
pub struct AdapterSearch {
    /// The environment: `PATH`, `VIRTUAL_ENV`, `HOME`, …
    pub env: BTreeMap<OsString, OsString>,
    /// Its own programs are found only with the user's consent.
    pub workspace: PathBuf,
    /// To which of them the user has consented.
    pub consent: ProgramConsent,
    /// The path of the user's setting. When there is one, nothing else is tried.
    pub configured: Option<PathBuf>,
    /// The folder of tether's own installs.
    pub tools_folder: PathBuf,
}

impl AdapterSearch {
    /// A search with the environment of this process. Errors: the data folder cannot be determined.
    pub fn for_workspace(workspace: &Path, consent: ProgramConsent) -> Result<AdapterSearch> {
        let (env, tools_folder) = (tether_process::clean_environment::<&str, &str>([]), tether_tools::tools_folder()?);
        Ok(AdapterSearch { env, workspace: workspace.to_owned(), consent, configured: None, tools_folder })
    }

    /// With the `PATH` and the virtual environment of the caller, which may differ from those of this process.
    pub fn with_caller(mut self, variables: &BTreeMap<String, String>) -> AdapterSearch {
        let taken =
            variables.iter().filter(|(name, _)| ["PATH", "VIRTUAL_ENV", "CONDA_PREFIX"].contains(&name.as_str()));
        self.env.extend(taken.map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// A non-empty variable of the environment.
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        self.env.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The user's home folder.
    pub fn home(&self) -> Option<PathBuf> {
        self.var("HOME").map(PathBuf::from)
    }

    /// The first of these names on PATH.
    pub fn on_path(&self, names: &[&str]) -> Option<PathBuf> {
        tether_tools::find_on_path(names, self.var("PATH"))
    }

    /// The entry file of one of tether's own tools; it need not exist.
    pub fn installed_tool(&self, tool: &str) -> Option<PathBuf> {
        let pins = Pins::read().ok()?;
        let tool = pins.tool(tool).ok()?;
        Some(self.tools_folder.join(&tool.name).join(&tool.entry))
    }

    /// A file of a package of Neovim's mason.
    pub fn mason_file(&self, file: &str) -> Option<PathBuf> {
        let data = self.var("XDG_DATA_HOME").map(PathBuf::from);
        let data = data.or_else(|| Some(self.home()?.join(".local/share")))?;
        Some(data.join("nvim/mason/packages").join(file))
    }

    /// A file of an extension, in every editor that has it, with the editor's name; newer versions first.
    pub fn extension_files(&self, extension: &str, file: &str) -> Vec<(PathBuf, &'static str)> {
        let Some(home) = self.home() else { return Vec::new() };
        let in_editor = |(folder, editor): &(&str, &'static str)| {
            let mut found = extension_versions(&home.join(folder), extension);
            found.sort_by(|one, other| other.0.cmp(&one.0));
            let editor = *editor;
            found.into_iter().map(move |(_, folder)| (folder.join(file), editor))
        };
        EXTENSIONS.iter().flat_map(in_editor).collect()
    }
}

/// The folders `<extension>-<version>…` with their versions.
fn extension_versions(folder: &Path, extension: &str) -> Vec<(Vec<u32>, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let version = |name: &str| -> Option<Vec<u32>> {
        let rest = name.strip_prefix(extension)?.strip_prefix('-')?;
        let numbers = rest.split('-').next()?.split('.').map(|part| part.parse().ok());
        numbers.collect()
    };
    entries.filter_map(|entry| Some((version(entry.file_name().to_str()?)?, entry.path()))).collect()
}

/// An adapter that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundAdapter {
    /// The file that is started, or loaded by the interpreter.
    pub path: PathBuf,
    /// The interpreter, where it needs one.
    pub interpreter: Option<PathBuf>,
    /// Where it was found, for users: `PATH`, `the workspace's .venv`, `tether adapters install`, `mason`, …
    pub place: String,
    /// The folder of Rust's own formatters, for debuggers that need them to show a `String` as text.
    pub formatters: Option<PathBuf>,
    /// The `PATH` of the adapter, where it starts a program of our own tools.
    pub search_path: Option<String>,
    /// What was passed over for want of consent, and the command that asks for it.
    pub note: Option<String>,
}

impl FoundAdapter {
    fn new(path: PathBuf, place: &str) -> FoundAdapter {
        FoundAdapter {
            path,
            interpreter: None,
            place: place.to_owned(),
            formatters: None,
            search_path: None,
            note: None,
        }
    }
}

/// Tries paths in order until one fits, and records them for the error message.
pub struct AdapterLookup<'a> {
    search: &'a AdapterSearch,
    fits: fn(&Path) -> bool,
    tried: Vec<String>,
    found: Option<FoundAdapter>,
    /// A program of the workspace without consent is there.
    is_untrusted: bool,
}

impl<'a> AdapterLookup<'a> {
    /// Starts with the user's setting: when there is one, nothing else is tried. It is a path that `fits`, or a folder
    /// with such a path `below` it.
    pub fn new(search: &'a AdapterSearch, fits: fn(&Path) -> bool, below: &[&str]) -> AdapterLookup<'a> {
        let mut lookup = AdapterLookup { search, fits, tried: Vec::new(), found: None, is_untrusted: false };
        if let Some(set) = &search.configured {
            let mut paths = std::iter::once(set.to_owned()).chain(below.iter().map(|name| set.join(name)));
            lookup.found = paths.find(|path| fits(path)).map(|path| FoundAdapter::new(path, "your setting"));
            lookup.tried.push(format!("{} (your setting)", set.display()));
        }
        lookup
    }

    /// Tries one path, unless an adapter was found already. `place` names it for users.
    pub fn try_path(mut self, path: Option<PathBuf>, place: &str) -> Self {
        match path.filter(|_| !self.is_finished()) {
            Some(path) if (self.fits)(&path) => self.found = Some(FoundAdapter::new(path, place)),
            Some(path) => self.tried.push(format!("{} ({place})", path.display())),
            None => {}
        }
        self
    }

    /// Tries a program of the workspace, which is used only with the user's consent.
    pub fn try_workspace_program(mut self, program: WorkspaceProgram) -> Self {
        let path = self.search.workspace.join(program.path);
        if self.is_finished() || !(self.fits)(&path) || self.search.consent.is_consented(&path) {
            return self.try_path(Some(path), program.place);
        }
        self.is_untrusted = true;
        self.note_skipped(format!("{} ({}; it is not trusted)", path.display(), program.place))
    }

    /// Tries programs of these names on PATH.
    pub fn try_on_path(mut self, names: &[&str]) -> Self {
        if self.is_finished() {
            return self;
        }
        match self.search.on_path(names) {
            Some(path) => self.found = Some(FoundAdapter::new(path, "PATH")),
            None => self.tried.push(format!("`{}` on PATH", names.join("`, `"))),
        }
        self
    }

    /// Tries a file of an extension, in every editor.
    pub fn try_extensions(mut self, extension: &str, file: &str) -> Self {
        if self.is_finished() {
            return self;
        }
        let all = self.search.extension_files(extension, file);
        self.tried.extend(all.is_empty().then(|| format!("the extension {extension} of VS Code, VSCodium and Cursor")));
        all.into_iter().fold(self, |lookup, (path, place)| lookup.try_path(Some(path), place))
    }

    /// Records a place that the caller has tried.
    pub fn note_skipped(mut self, place: String) -> Self {
        if !self.is_finished() {
            self.tried.push(place);
        }
        self
    }

    fn is_finished(&self) -> bool {
        self.found.is_some() || self.search.configured.is_some()
    }

    /// The adapter that was found. Errors: [`ErrorKind::MissingTool`] with all that was tried;
    /// [`ErrorKind::NotTrusted`] when only the workspace has it.
    pub fn finish(self, name: &str, install: &str) -> Result<FoundAdapter> {
        let AdapterLookup { search, tried, found, is_untrusted, .. } = self;
        found.ok_or_else(|| {
            let kind = if is_untrusted { ErrorKind::NotTrusted } else { ErrorKind::MissingTool };
            let error = Error::new(kind, format!("cannot find the debug adapter {name}"));
            let error = error.because(format!("it was not found in:\n{}", tried.join("\n")));
            is_untrusted.then(|| search.consent.hint()).into_iter().fold(error, Error::hint).hint(install)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }

    fn search(home: &Path) -> AdapterSearch {
        let env = [("HOME".into(), home.into()), ("PATH".into(), home.join("bin").into())].into();
        AdapterSearch {
            env,
            workspace: home.join("work"),
            consent: ProgramConsent::default(),
            configured: None,
            tools_folder: home.join("tools"),
        }
    }

    #[test]
    fn the_newest_extension_of_the_first_editor_is_preferred() {
        let home = tempfile::tempdir().unwrap();
        for version in ["1.9.0", "1.11.0-linux-x64", "nightly"] {
            touch(&home.path().join(format!(".vscode/extensions/a.lldb-{version}/adapter/x")));
        }
        touch(&home.path().join(".cursor/extensions/a.lldb-2.0.0/adapter/x"));
        touch(&home.path().join(".vscode/extensions/a.lldb-more-9.0.0/adapter/x"));
        let found = search(home.path()).extension_files("a.lldb", "adapter/x");
        let names: Vec<_> = found.iter().map(|(path, place)| (path.display().to_string(), *place)).collect();
        let name = |name: &str| format!("{}/{name}/adapter/x", home.path().display());
        assert_eq!(
            names,
            [
                (name(".vscode/extensions/a.lldb-1.11.0-linux-x64"), "VS Code's extensions"),
                (name(".vscode/extensions/a.lldb-1.9.0"), "VS Code's extensions"),
                (name(".cursor/extensions/a.lldb-2.0.0"), "Cursor's extensions"),
            ]
        );
    }

    #[test]
    fn the_setting_wins_and_the_error_names_every_place() {
        let home = tempfile::tempdir().unwrap();
        let mut search = search(home.path());
        let find = |search: &AdapterSearch| {
            AdapterLookup::new(search, Path::exists, &[])
                .try_on_path(&["xdbg"])
                .try_path(search.mason_file("xdbg/xdbg"), "mason")
                .try_extensions("a.xdbg", "x")
                .finish("xdbg", "`apt-get install xdbg` installs it")
        };
        let error = find(&search).unwrap_err();
        assert_eq!(error.kind, ErrorKind::MissingTool);
        let text = error.to_string();
        for part in ["adapter xdbg", "`xdbg` on PATH", "nvim/mason/packages/xdbg/xdbg", "a.xdbg of VS Code", "apt-get"]
        {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        touch(&home.path().join(".local/share/nvim/mason/packages/xdbg/xdbg"));
        assert_eq!(find(&search).unwrap().place, "mason");
        search.configured = Some(home.path().join("mine"));
        let text = find(&search).unwrap_err().to_string();
        assert!(text.contains("mine (your setting)") && !text.contains("PATH"), "{text}");
        touch(&home.path().join("mine"));
        assert_eq!(find(&search).unwrap(), FoundAdapter::new(home.path().join("mine"), "your setting"));
    }
}
