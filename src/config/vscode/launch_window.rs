//! From a launch configuration to the window that it describes: one function per kind of debugger.
//!
//! An attribute that only a debugger needs is passed over; one that is not honoured becomes a note; one without which
//! something else would run is an error. Must not know how windows are launched.
//! Source: <https://github.com/microsoft/vscode-js-debug/blob/main/OPTIONS.md>

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::config::devtools_toml::settings::{WindowKind, WindowSettings};
use crate::config::jsonc::{JsonNode, JsonValue};
use crate::config::source_file::Origin;
use crate::config::vscode::env_file::read_env_file;
use crate::config::vscode::launch_json::{WindowConfiguration, WindowDebugger};
use crate::config::vscode::variables::{VariableContext, VariableSite};
use crate::error::{Error, Result};

/// What is derived from a configuration.
#[derive(Debug)]
pub struct DerivedWindow {
    pub window: WindowSettings,
    /// Where each value stands, by its name in `[window]`.
    pub origins: BTreeMap<&'static str, Origin>,
    pub notes: Vec<String>,
    /// `preLaunchTask`, as written.
    pub task: Option<JsonNode>,
    /// `outFiles`, expanded, with their lines.
    pub out_files: Vec<(String, usize)>,
}

/// Read, or of interest to a debugger only.
const KNOWN_ATTRIBUTES: &[&str] = &[
    "name",
    "type",
    "request",
    "linux",
    "osx",
    "windows",
    "preLaunchTask",
    "outFiles",
    "env",
    "envFile",
    "args",
    "cwd",
    "url",
    "file",
    "program",
    "runtimeExecutable",
    "runtimeArgs",
    "userDataDir",
    "presentation",
    "order",
    "internalConsoleOptions",
    "console",
    "outputCapture",
    "skipFiles",
    "smartStep",
    "sourceMaps",
    "webRoot",
    "sourceMapPathOverrides",
    "resolveSourceMapLocations",
    "sourceMapRenames",
    "pauseForSourceMap",
    "autoAttachChildProcesses",
    "stopOnEntry",
    "trace",
    "timeout",
    "timeouts",
    "showAsyncStacks",
    "pathMapping",
    "customDescriptionGenerator",
    "customPropertiesGenerator",
    "enableContentValidation",
    "debugServer",
    "port",
    "suppressMultipleSessionWarning",
    "rendererDebugOptions",
    "debugWebviews",
    "perScriptSourcemaps",
    "address",
    "disableNetworkCache",
    "attachSimplePort",
    "continueOnAttach",
    "nodeVersionHint",
    "restart",
    "protocol",
    "cascadeTerminateToConfigurations",
    "killBehavior",
    "includeDefaultArgs",
    "includeLaunchArgs",
    "cleanUp",
    "inspectUri",
    "browserLaunchLocation",
    "localRoot",
    "remoteRoot",
    "enableDWARF",
    "experimentalNetworking",
    "targetSelection",
    "debugWebWorkerHost",
    "hideInDebugger",
    "vmwareFusion",
    "profileStartup",
    "breakOnLoad",
    "urlFilter",
];

/// The window that the configuration describes. Errors and notes name the file, the line and the attribute.
pub fn derive_window(configuration: &WindowConfiguration, variables: &VariableContext<'_>) -> Result<DerivedWindow> {
    let mut draft = WindowDraft {
        configuration,
        variables,
        subject: format!("the configuration {:?}", configuration.name),
        derived: DerivedWindow {
            window: WindowSettings { derived: true, ..WindowSettings::default() },
            origins: BTreeMap::new(),
            notes: Vec::new(),
            task: configuration.node.get("preLaunchTask").filter(|node| node.value != JsonValue::Null).cloned(),
            out_files: Vec::new(),
        },
    };
    match configuration.debugger {
        WindowDebugger::ExtensionHost => draft.extension_host()?,
        WindowDebugger::Browser => draft.browser()?,
        WindowDebugger::Node => draft.node()?,
    }
    draft.environment()?;
    draft.out_files()?;
    draft.note_the_rest();
    Ok(draft.derived)
}

struct WindowDraft<'a> {
    configuration: &'a WindowConfiguration,
    variables: &'a VariableContext<'a>,
    subject: String,
    derived: DerivedWindow,
}

impl WindowDraft<'_> {
    fn extension_host(&mut self) -> Result<()> {
        if self.configuration.node.is_true("debugWebWorkerHost") {
            return Err(self.unsupported("debugWebWorkerHost", "an extension host in a web worker is no Node process"));
        }
        self.kind(WindowKind::ExtensionHost);
        let runtime = self.configuration.node.get("runtimeExecutable").filter(|it| it.text() != Some("${execPath}"));
        if let Some(runtime) = runtime {
            self.note(runtime, "`runtimeExecutable` is not honoured: tether looks for VS Code itself");
        }
        let mut arguments = self.words("args", &self.variables.resolving_environment())?.into_iter();
        let mut before = String::new();
        while let Some((argument, node)) = arguments.next() {
            match self.is_value(&argument, &before) {
                true => self.derived.window.args.push(argument.clone()),
                false => self.extension_argument(&argument, &node, &mut arguments)?,
            }
            before = argument;
        }
        if self.derived.window.extension.is_none() {
            return Err(self.configuration.wrong("`args` has no `--extensionDevelopmentPath=…`"));
        }
        Ok(())
    }

    /// Whether a word belongs to the flag before it: it names nothing that could be opened, as in `--locale de`.
    fn is_value(&self, word: &str, before: &str) -> bool {
        let kept = self.derived.window.args.last().is_some_and(|last| last == before);
        let flag = kept && before.starts_with('-') && !before.contains('=');
        let is_word = !word.is_empty() && !word.starts_with('-') && !word.contains("://");
        flag && is_word && !self.variables.workspace().join(word).exists()
    }

    fn extension_argument(
        &mut self,
        argument: &str,
        node: &JsonNode,
        more: &mut impl Iterator<Item = (String, JsonNode)>,
    ) -> Result<()> {
        let (flag, value) =
            argument.split_once('=').map_or((argument, None), |(flag, value)| (flag, Some(value.to_owned())));
        let mut value = || value.clone().or_else(|| more.next().map(|(value, _)| value)).unwrap_or_default();
        match flag {
            "--extensionDevelopmentPath" => {
                let path = self.local(&value())?;
                match self.derived.window.extension {
                    None => {
                        self.origin("extension", node);
                        self.derived.window.extension = Some(path);
                    }
                    Some(_) => {
                        self.origin("moreExtensions", node);
                        self.derived.window.more_extensions.push(path);
                    }
                }
            }
            "--extensionDevelopmentKind" if value() == "web" => {
                return Err(self.unsupported(argument, "an extension host in a web worker is no Node process"));
            }
            "--extensionDevelopmentKind" => {}
            "--folder-uri" => {
                let folder = self.local(&value())?;
                self.folder(folder, node)?;
            }
            "--file-uri" => return Err(self.unsupported(argument, "only a folder can be opened")),
            "--user-data-dir" | "--extensions-dir" | "--profile" => {
                drop(value());
                self.note(node, format!("`{flag}` is not honoured: each launch has folders of its own"));
            }
            "--new-window" | "-n" | "--reuse-window" | "-r" => {}
            _ if argument.starts_with('-') => {
                self.origin("args", node);
                self.derived.window.args.push(argument.to_owned());
            }
            _ => {
                let folder = self.local(argument)?;
                self.folder(folder, node)?;
            }
        }
        Ok(())
    }

    fn folder(&mut self, folder: PathBuf, node: &JsonNode) -> Result<()> {
        if folder.extension().is_some_and(|extension| extension == "code-workspace") {
            return Err(self.unsupported(&folder.to_string_lossy(), "only a folder can be opened"));
        }
        if self.derived.window.folder.is_some() {
            return Err(self
                .configuration
                .wrong(format!("`args` opens two folders; the second is {}", folder.display())));
        }
        self.origin("folder", node);
        self.derived.window.folder = Some(folder);
        Ok(())
    }

    /// A path, also of a `file:` URI, in this workspace or absolute.
    fn local(&self, text: &str) -> Result<PathBuf> {
        if !text.contains("://") {
            return Ok(self.variables.workspace().join(text));
        }
        let url = url::Url::parse(text).ok().filter(|url| url.scheme() == "file");
        let path = url.and_then(|url| url.to_file_path().ok());
        path.ok_or_else(|| self.unsupported(text, "it lies on another machine"))
    }

    fn browser(&mut self) -> Result<()> {
        self.kind(WindowKind::Browser);
        let url = match (self.text("url")?, self.path("file")?) {
            (Some(url), _) => url,
            (None, Some((path, node))) => {
                let url = url::Url::from_file_path(&path).map_err(|()| self.unsupported("file", "it is no path"))?;
                (url.to_string(), node)
            }
            (None, None) => return Err(self.configuration.wrong("it has neither a `url` nor a `file`")),
        };
        self.origin("url", &url.1);
        self.derived.window.url = Some(url.0);
        if self.configuration.node.text_of("type").is_some_and(|kind| kind.contains("msedge")) {
            let node = self.configuration.node.clone();
            self.note(&node, "the first Chromium that is found is opened, whether it is Edge or not");
        }
        match self.program()? {
            Some((channel, node)) if ["canary", "beta", "dev"].contains(&channel.as_str()) => {
                self.note(&node, format!("`runtimeExecutable`: tether does not look for {channel:?}"));
            }
            Some((program, node)) if !["stable", "*"].contains(&program.as_str()) => {
                self.origin("browser", &node);
                self.derived.window.browser = Some(program.into());
            }
            _ => {}
        }
        match self.configuration.node.get("userDataDir").cloned() {
            Some(node) if node.text().is_some() => {
                self.derived.window.profile = self.path("userDataDir")?.map(|(path, _)| path);
                self.origin("profile", &node);
            }
            Some(node) if node.value == JsonValue::Bool(false) => {
                self.note(
                    &node,
                    "`userDataDir: false` is not honoured: no browser can be debugged on its default profile",
                );
            }
            _ => {}
        }
        self.list("runtimeArgs", "args")?;
        self.cwd()
    }

    fn node(&mut self) -> Result<()> {
        self.kind(WindowKind::Node);
        let (program, node) = self.path("program")?.ok_or_else(|| {
            let error =
                self.configuration.wrong("it has no `program`, and tether starts no Node through another program");
            error.hint(
                "name the script in `program`, or set `kind = \"command\"` in the [window] section of devtools.toml",
            )
        })?;
        self.origin("program", &node);
        self.derived.window.program = Some(program);
        if let Some((runtime, node)) = self.program()?.filter(|(runtime, _)| runtime != "node") {
            self.origin("node", &node);
            self.derived.window.node = Some(runtime.into());
        }
        for (argument, node) in self.texts("runtimeArgs")? {
            // Ours is the one with a port of its own.
            if !argument.starts_with("--inspect") {
                self.origin("runtimeArgs", &node);
                self.derived.window.runtime_args.push(argument);
            }
        }
        self.list("args", "args")?;
        self.cwd()
    }

    fn cwd(&mut self) -> Result<()> {
        if let Some((cwd, node)) = self.path("cwd")? {
            self.origin("cwd", &node);
            self.derived.window.cwd = Some(cwd);
        }
        Ok(())
    }

    fn list(&mut self, attribute: &'static str, name: &'static str) -> Result<()> {
        for (text, node) in self.texts(attribute)? {
            self.origin(name, &node);
            match name {
                "args" => self.derived.window.args.push(text),
                _ => self.derived.window.runtime_args.push(text),
            }
        }
        Ok(())
    }

    /// `envFile` first: what `env` says wins.
    fn environment(&mut self) -> Result<()> {
        if let Some(node) = self.configuration.node.get("envFile").cloned() {
            let (path, _) = self.path("envFile")?.ok_or_else(|| self.configuration.wrong("`envFile` is no text"))?;
            let variables = read_env_file(&path)?
                .ok_or_else(|| self.configuration.wrong(format!("there is no `envFile` {}", path.display())))?;
            self.origin("env", &node);
            self.derived.window.env.extend(variables);
        }
        let Some(env) = self.configuration.node.get("env").cloned() else { return Ok(()) };
        self.origin("env", &env);
        for (name, node) in env.members() {
            let key = format!("env.{name}");
            let value = match &node.value {
                JsonValue::String(text) => self.variables.expand(text, &self.site(node, &key))?,
                JsonValue::Number(text) => text.clone(),
                JsonValue::Bool(value) => value.to_string(),
                JsonValue::Null => {
                    self.note(node, format!("`{key}`: null becomes an empty value; a variable cannot be removed"));
                    String::new()
                }
                _ => return Err(self.configuration.wrong(format!("`{key}` (line {}) is no text", node.line))),
            };
            self.derived.window.env.insert(name.clone(), value);
        }
        Ok(())
    }

    fn out_files(&mut self) -> Result<()> {
        let texts = self.words("outFiles", &self.variables.resolving_environment())?;
        self.derived.out_files = texts.into_iter().map(|(text, node)| (text, node.line)).collect();
        Ok(())
    }

    fn note_the_rest(&mut self) {
        for (name, node) in self.configuration.node.clone().members() {
            if !KNOWN_ATTRIBUTES.contains(&name.as_str()) && !name.starts_with('_') && !name.starts_with('$') {
                self.note(node, format!("`{name}` is not honoured"));
            }
        }
    }

    fn kind(&mut self, kind: WindowKind) {
        let node = self.configuration.node.get("type").unwrap_or(&self.configuration.node).clone();
        self.origin("kind", &node);
        self.derived.window.kind = Some(kind);
    }

    fn origin(&mut self, name: &'static str, node: &JsonNode) {
        let origin = Origin::new(self.variables.workspace(), &self.configuration.file, Some(node.line));
        self.derived.origins.entry(name).or_insert(origin);
    }

    fn note(&mut self, node: &JsonNode, what: impl std::fmt::Display) {
        let origin = Origin::new(self.variables.workspace(), &self.configuration.file, Some(node.line));
        self.derived.notes.push(format!("{origin}: {what}"));
    }

    fn unsupported(&self, attribute: &str, why: &str) -> Error {
        self.configuration.wrong(format!("`{attribute}` is not supported: {why}"))
    }

    fn site<'s>(&'s self, node: &JsonNode, key: &'s str) -> VariableSite<'s> {
        let document: &Path = &self.configuration.file;
        VariableSite { subject: &self.subject, document, line: node.line, key, shell: false }
    }

    /// An attribute that is a path: relative ones are relative to the workspace.
    fn path(&self, name: &str) -> Result<Option<(PathBuf, JsonNode)>> {
        let Some((text, node)) = self.text_with(name, &self.variables.resolving_environment())? else {
            return Ok(None);
        };
        Ok(Some((self.local(&text)?, node)))
    }

    /// `runtimeExecutable`: a path, or a name to be looked up.
    fn program(&self) -> Result<Option<(String, JsonNode)>> {
        self.text_with("runtimeExecutable", &self.variables.resolving_environment())
    }

    /// An attribute that is a text.
    fn text(&self, name: &str) -> Result<Option<(String, JsonNode)>> {
        self.text_with(name, self.variables)
    }

    fn text_with(&self, name: &str, variables: &VariableContext<'_>) -> Result<Option<(String, JsonNode)>> {
        let Some(node) = self.configuration.node.get(name).filter(|node| node.value != JsonValue::Null) else {
            return Ok(None);
        };
        let text =
            node.text().ok_or_else(|| self.configuration.wrong(format!("`{name}` (line {}) is no text", node.line)))?;
        Ok(Some((variables.expand(text, &self.site(node, name))?, node.clone())))
    }

    /// An attribute that is a list of texts.
    fn texts(&self, name: &str) -> Result<Vec<(String, JsonNode)>> {
        self.words(name, self.variables)
    }

    fn words(&self, name: &str, variables: &VariableContext<'_>) -> Result<Vec<(String, JsonNode)>> {
        let Some(node) = self.configuration.node.get(name).filter(|node| node.value != JsonValue::Null) else {
            return Ok(Vec::new());
        };
        let JsonValue::Array(items) = &node.value else {
            return Err(self.configuration.wrong(format!("`{name}` (line {}) is no list of texts", node.line)));
        };
        let text = |item: &JsonNode| {
            let text = item.text();
            let text = text.ok_or_else(|| {
                self.configuration.wrong(format!("`{name}` (line {}) has what is no text", item.line))
            })?;
            Ok((variables.expand(text, &self.site(item, name))?, item.clone()))
        };
        items.iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests;
