//! Derives the window from a launch configuration: one function per kind of debugger.
//!
//! An attribute that is not honoured becomes a note (`attribute_use`); one without which another program would run is
//! an error. Does not depend on how windows are launched.
//! Source: <https://github.com/microsoft/vscode-js-debug/blob/main/OPTIONS.md>

use std::collections::BTreeMap;

use tether_base::error::Result;
use tether_base::secret_values::SecretValues;

use crate::config::devtools_toml::settings::{WindowKind, WindowSettings};
use crate::config::jsonc::{JsonNode, JsonValue};
use crate::config::shown_environment::secrets_of_json;
use crate::config::source_file::Origin;
use crate::config::vscode::attribute_use::{AttributeReader, WINDOW};
use crate::config::vscode::env_file::read_env_file;
use crate::config::vscode::launch_attributes::LaunchAttributes;
use crate::config::vscode::launch_json::{WindowConfiguration, WindowDebugger};
use crate::config::vscode::variables::VariableContext;

/// VS Code's flag that runs the extension under development in a web worker.
pub const WEB_WORKER_KIND: &str = "--extensionDevelopmentKind=web";

/// The window of a launch configuration.
#[derive(Debug, Default)]
pub struct DerivedWindow {
    /// Its settings, as `[window]` of devtools.toml would have them.
    pub window: WindowSettings,
    /// The origin of each setting, by its name in `[window]`.
    pub origins: BTreeMap<&'static str, Origin>,
    /// What is not honoured, each with file and line.
    pub notes: Vec<String>,
    /// `preLaunchTask`, as written.
    pub task: Option<JsonNode>,
    /// `outFiles`, expanded, with their lines.
    pub out_files: Vec<(String, usize)>,
}

/// The window that the configuration describes. Errors and notes name the file, the line and the attribute.
pub fn derive_window(configuration: &WindowConfiguration, variables: &VariableContext<'_>) -> Result<DerivedWindow> {
    // Paths and arguments have the values of variables from here on.
    let secrets = secrets_of_json([&configuration.entry.node.as_written()]);
    let derived = derive_attributes(configuration, variables, &secrets);
    let mut derived = derived.map_err(|error| secrets.mask_error(error))?;
    derived.window.secrets = secrets;
    Ok(derived)
}

fn derive_attributes(
    configuration: &WindowConfiguration,
    variables: &VariableContext<'_>,
    secrets: &SecretValues,
) -> Result<DerivedWindow> {
    let attributes = LaunchAttributes::new(&configuration.entry, variables.clone());
    let window = WindowSettings { derived: true, ..WindowSettings::default() };
    let task = attributes.get("preLaunchTask").cloned();
    let derived = DerivedWindow { window, task, ..DerivedWindow::default() };
    let mut draft = WindowDraft { resolved: attributes.resolving_environment(), attributes, derived };
    match configuration.debugger {
        WindowDebugger::ExtensionHost => draft.derive_extension_host()?,
        WindowDebugger::Browser => draft.derive_browser()?,
        WindowDebugger::Node => draft.derive_node()?,
    }
    draft.derive_environment()?;
    let out_files = draft.resolved.texts("outFiles")?;
    draft.derived.out_files = out_files.into_iter().map(|(text, node)| (text, node.line)).collect();
    let root = draft.attributes.root();
    let reader = AttributeReader { name: WINDOW, kind: root.text_of("type").unwrap_or_default(), request: "launch" };
    for (name, node) in root.members() {
        match reader.remark(name, &node.as_written()) {
            Ok(remark) => remark.into_iter().for_each(|remark| draft.add_note(node, format!("`{name}` {remark}"))),
            Err(why) => return Err(draft.attributes.unsupported(name, why)),
        }
    }
    draft.derived.notes.iter_mut().for_each(|note| *note = secrets.mask(note));
    Ok(draft.derived)
}

struct WindowDraft<'a> {
    /// With `${env:…}` as written: it is expanded at launch.
    attributes: LaunchAttributes<'a>,
    /// With `${env:…}` expanded: for paths.
    resolved: LaunchAttributes<'a>,
    derived: DerivedWindow,
}

impl<'a> WindowDraft<'a> {
    fn derive_extension_host(&mut self) -> Result<()> {
        self.set_kind(WindowKind::ExtensionHost);
        let mut arguments = self.resolved.texts("args")?.into_iter();
        let mut before = String::new();
        while let Some((argument, node)) = arguments.next() {
            match self.is_flag_value(&argument, &before) {
                true => self.derived.window.args.push(argument.clone()),
                false => self.derive_extension_argument(&argument, node, &mut arguments)?,
            }
            before = argument;
        }
        if self.derived.window.extension.is_none() {
            return Err(self.attributes.wrong("`args` has no `--extensionDevelopmentPath=…`"));
        }
        Ok(())
    }

    /// Whether a word is the value of the flag before it, as in `--locale de`: no path of this name exists.
    fn is_flag_value(&self, word: &str, before: &str) -> bool {
        let kept = self.derived.window.args.last().is_some_and(|last| last == before);
        let flag = kept && before.starts_with('-') && !before.contains('=');
        let is_word = !word.is_empty() && !word.starts_with('-') && !word.contains("://");
        flag && is_word && self.attributes.resolve_path(word).is_ok_and(|path| !path.exists())
    }

    /// One argument of VS Code; `rest` yields the value of a flag that is written as a word of its own.
    fn derive_extension_argument(
        &mut self,
        argument: &str,
        node: &JsonNode,
        rest: &mut impl Iterator<Item = (String, &'a JsonNode)>,
    ) -> Result<()> {
        let (flag, value) =
            argument.split_once('=').map_or((argument, None), |(flag, value)| (flag, Some(value.to_owned())));
        let mut value = || value.clone().or_else(|| rest.next().map(|(value, _)| value)).unwrap_or_default();
        match flag {
            "--extensionDevelopmentPath" => self.add_extension(&value(), node)?,
            "--extensionDevelopmentKind" => {
                if value() == "web" {
                    self.record_origin("args", node);
                    self.derived.window.args.push(WEB_WORKER_KIND.to_owned());
                }
            }
            "--extensionTestsPath" => {
                let path = self.attributes.resolve_path(&value())?;
                self.add_argument(format!("--extensionTestsPath={}", path.display()), node);
            }
            "--folder-uri" => self.set_folder(&value(), node)?,
            "--file-uri" => return Err(self.attributes.unsupported(argument, "only a folder can be opened")),
            "--user-data-dir" | "--extensions-dir" | "--profile" => {
                drop(value());
                self.add_note(node, format!("`{flag}` is not honoured: each launch has folders of its own"));
            }
            "--new-window" | "-n" | "--reuse-window" | "-r" => {}
            _ if argument.starts_with('-') => {
                self.record_origin("args", node);
                self.derived.window.args.push(argument.to_owned());
            }
            _ => self.set_folder(argument, node)?,
        }
        Ok(())
    }

    fn add_extension(&mut self, path: &str, node: &JsonNode) -> Result<()> {
        let path = self.attributes.resolve_path(path)?;
        if self.derived.window.extension.is_none() {
            self.record_origin("extension", node);
            self.derived.window.extension = Some(path);
        } else {
            self.record_origin("moreExtensions", node);
            self.derived.window.more_extensions.push(path);
        }
        Ok(())
    }

    fn set_folder(&mut self, path: &str, node: &JsonNode) -> Result<()> {
        let folder = self.attributes.resolve_path(path)?;
        if folder.extension().is_some_and(|extension| extension == "code-workspace") {
            return Err(self.attributes.unsupported(&folder.to_string_lossy(), "only a folder can be opened"));
        }
        if self.derived.window.folder.is_some() {
            let what = format!("`args` opens two folders; the second is {}", folder.display());
            return Err(self.attributes.wrong(what));
        }
        self.record_origin("folder", node);
        self.derived.window.folder = Some(folder);
        Ok(())
    }

    fn derive_browser(&mut self) -> Result<()> {
        self.set_kind(WindowKind::Browser);
        self.derive_page()?;
        if self.attributes.root().text_of("type").is_some_and(|kind| kind.contains("msedge")) {
            let node = self.attributes.root();
            self.add_note(node, "the first Chromium that is found is opened, whether it is Edge or not");
        }
        self.derive_browser_program()?;
        self.derive_browser_profile()?;
        for (argument, node) in self.attributes.texts("runtimeArgs")? {
            self.add_argument(argument, node);
        }
        self.derive_cwd()
    }

    fn derive_page(&mut self) -> Result<()> {
        let (url, node) = match (self.attributes.text("url")?, self.resolved.path("file")?) {
            (Some(url), _) => url,
            (None, Some((path, node))) => {
                let url = url::Url::from_file_path(&path);
                let url = url.map_err(|()| self.attributes.unsupported("file", "it is not a path"))?;
                (url.to_string(), node)
            }
            (None, None) => return Err(self.attributes.wrong("it has neither a `url` nor a `file`")),
        };
        self.record_origin("url", node);
        self.derived.window.url = Some(url);
        Ok(())
    }

    /// `runtimeExecutable`: a path, a name on PATH, or a release channel.
    fn derive_browser_program(&mut self) -> Result<()> {
        match self.resolved.text("runtimeExecutable")? {
            Some((channel, node)) if ["canary", "beta", "dev"].contains(&channel.as_str()) => {
                self.add_note(node, format!("`runtimeExecutable`: tether does not look for {channel:?}"));
            }
            Some((program, node)) if !["stable", "*"].contains(&program.as_str()) => {
                self.record_origin("browser", node);
                self.derived.window.browser = Some(program.into());
            }
            _ => {}
        }
        Ok(())
    }

    fn derive_browser_profile(&mut self) -> Result<()> {
        match self.attributes.get("userDataDir") {
            Some(node) if node.text().is_some() => {
                self.derived.window.profile = self.resolved.path("userDataDir")?.map(|(path, _)| path);
                self.record_origin("profile", node);
            }
            Some(node) if node.value == JsonValue::Bool(false) => {
                let what = "`userDataDir: false` is not honoured: no browser can be debugged on its default profile";
                self.add_note(node, what);
            }
            _ => {}
        }
        Ok(())
    }

    fn derive_node(&mut self) -> Result<()> {
        self.set_kind(WindowKind::Node);
        let (program, node) = self.resolved.path("program")?.ok_or_else(|| {
            let error = self.attributes.wrong("it has no `program`, and tether starts no Node through another program");
            error.hint(
                "name the script in `program`, or set `kind = \"command\"` in the [window] section of devtools.toml",
            )
        })?;
        self.record_origin("program", node);
        self.derived.window.program = Some(program);
        let runtime = self.resolved.text("runtimeExecutable")?;
        if let Some((runtime, node)) = runtime.filter(|(runtime, _)| runtime != "node") {
            self.record_origin("node", node);
            self.derived.window.node = Some(runtime.into());
        }
        for (argument, node) in self.attributes.texts("runtimeArgs")? {
            // The launch adds an `--inspect` with a port of its own.
            if !argument.starts_with("--inspect") {
                self.record_origin("runtimeArgs", node);
                self.derived.window.runtime_args.push(argument);
            }
        }
        for (argument, node) in self.attributes.texts("args")? {
            self.add_argument(argument, node);
        }
        self.derive_cwd()
    }

    fn derive_cwd(&mut self) -> Result<()> {
        if let Some((cwd, node)) = self.resolved.path("cwd")? {
            self.record_origin("cwd", node);
            self.derived.window.cwd = Some(cwd);
        }
        Ok(())
    }

    fn add_argument(&mut self, argument: String, node: &JsonNode) {
        self.record_origin("args", node);
        self.derived.window.args.push(argument);
    }

    /// The variables of `envFile`, overridden by those of `env`.
    fn derive_environment(&mut self) -> Result<()> {
        if let Some(node) = self.attributes.root().get("envFile") {
            let no_text = || self.attributes.wrong("`envFile` is not a text");
            let (path, _) = self.resolved.path("envFile")?.ok_or_else(no_text)?;
            let missing = || self.attributes.wrong(format!("there is no `envFile` {}", path.display()));
            let variables = read_env_file(&path)?.ok_or_else(missing)?;
            self.record_origin("env", node);
            self.derived.window.env.extend(variables);
        }
        let Some(env) = self.attributes.root().get("env") else { return Ok(()) };
        self.record_origin("env", env);
        for (name, node) in env.members() {
            let key = format!("env.{name}");
            let value = match &node.value {
                JsonValue::String(text) => self.attributes.expand(text, node, &key)?,
                JsonValue::Number(text) => text.clone(),
                JsonValue::Bool(value) => value.to_string(),
                JsonValue::Null => {
                    self.add_note(node, format!("`{key}`: null becomes an empty value; a variable cannot be removed"));
                    String::new()
                }
                _ => return Err(self.attributes.wrong(format!("`{key}` (line {}) is not a text", node.line))),
            };
            self.derived.window.env.insert(name.clone(), value);
        }
        Ok(())
    }

    fn set_kind(&mut self, kind: WindowKind) {
        self.record_origin("kind", self.attributes.root().get("type").unwrap_or(self.attributes.root()));
        self.derived.window.kind = Some(kind);
    }

    /// Records the origin of a setting, by its name in `[window]`; the first one is kept.
    fn record_origin(&mut self, name: &'static str, node: &JsonNode) {
        let origin = self.attributes.origin(node);
        self.derived.origins.entry(name).or_insert(origin);
    }

    fn add_note(&mut self, node: &JsonNode, what: impl std::fmt::Display) {
        let origin = self.attributes.origin(node);
        self.derived.notes.push(format!("{origin}: {what}"));
    }
}

#[cfg(test)]
mod tests;
