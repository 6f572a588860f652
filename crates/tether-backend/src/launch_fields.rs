//! Reads the arguments of `launch` and `attach` of the adapters in this process, and notes which are not known.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tether_dap::types::Fields;

/// Keys of launch.json that are for the editor.
const EDITOR_KEYS: [&str; 16] = [
    "type",
    "request",
    "name",
    "console",
    "preLaunchTask",
    "postDebugTask",
    "presentation",
    "internalConsoleOptions",
    "debugServer",
    "serverReadyAction",
    "suppressMultipleSessionWarning",
    "noDebug",
    "linux",
    "osx",
    "windows",
    "timeout",
];

/// Reads the fields of a request, and notes which were read.
pub struct FieldReader<'a> {
    fields: &'a Fields,
    read: Vec<&'static str>,
    ignored: &'static [&'static str],
}

impl<'a> FieldReader<'a> {
    /// A reader; `ignored` are the keys that change nothing for the adapter.
    pub fn new(fields: &'a Fields, ignored: &'static [&'static str]) -> FieldReader<'a> {
        FieldReader { fields, read: Vec::new(), ignored }
    }

    /// A value that is not null.
    pub fn value(&mut self, name: &'static str) -> Option<&Value> {
        self.read.push(name);
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// A text that is not empty. Errors: it is another value.
    pub fn text(&mut self, name: &'static str) -> Result<Option<String>, String> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
            Some(other) => Err(format!("`{name}` is {other}, and not a text")),
        }
    }

    /// A list of texts; one text is split as a shell does.
    pub fn list(&mut self, name: &'static str) -> Result<Vec<String>, String> {
        let bad = |value: &Value| format!("`{name}` is {value}, and not a list of texts");
        match self.value(name) {
            None => Ok(Vec::new()),
            Some(Value::String(line)) => {
                shlex::split(line).ok_or_else(|| format!("`{name}` has a quote without an end: {line}"))
            }
            Some(list @ Value::Array(items)) => {
                items.iter().map(|it| it.as_str().map(str::to_owned).ok_or_else(|| bad(list))).collect()
            }
            Some(other) => Err(bad(other)),
        }
    }

    /// Paths, relative to a folder; the words that launch.json has for what is found by itself are left out.
    pub fn paths(&mut self, name: &'static str, cwd: &Path) -> Result<Vec<PathBuf>, String> {
        let list = match self.value(name) {
            Some(Value::String(one)) => vec![one.clone()],
            _ => self.list(name)?,
        };
        Ok(list.iter().filter(|path| !path.starts_with(['$', '!'])).map(|path| cwd.join(path)).collect())
    }

    /// A boolean.
    pub fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.value(name).and_then(Value::as_bool)
    }

    /// The variables of `env`; null removes one. Errors: it is no object.
    pub fn env(&mut self) -> Result<BTreeMap<String, Option<String>>, String> {
        let Some(value) = self.value("env") else { return Ok(BTreeMap::new()) };
        let entries = value.as_object().ok_or_else(|| format!("`env` is {value}, and not an object"))?;
        let text = |value: &Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        Ok(entries.iter().map(|(name, value)| (name.clone(), text(value))).collect())
    }

    /// The keys that were not read, and are not known.
    pub fn unknown(&self) -> Vec<String> {
        let is_known =
            |name: &str| [&self.read[..], &EDITOR_KEYS, self.ignored].iter().any(|keys| keys.contains(&name));
        self.fields.keys().filter(|name| !is_known(name) && !name.starts_with("__")).cloned().collect()
    }

    /// The folder that relative paths are relative to; ours without one.
    pub fn cwd(&mut self) -> Result<PathBuf, String> {
        match self.text("cwd")? {
            Some(cwd) => Ok(PathBuf::from(cwd)),
            None => std::env::current_dir().map_err(|cause| format!("there is no current folder: {cause}")),
        }
    }
}
