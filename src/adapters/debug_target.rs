//! What a user wants to debug, in terms that are independent of any adapter.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tether_base::error::{Error, ErrorKind, Result};
use tether_base::secret_values::SecretValues;
use tether_dap::types::{Fields, StartRequest};

use super::path_maps::PathMap;

/// A program to be launched or attached to. Stored with its session, so its JSON names are fixed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DebugTarget {
    #[serde(rename = "what")]
    pub kind: DebugTargetKind,
    /// The program's arguments.
    pub args: Vec<String>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// Added to the caller's environment; `None` unsets a variable.
    pub env: BTreeMap<String, Option<String>>,
    /// Where the environment of the caller differs from tether's own. Not stored: each caller has one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub caller_env: BTreeMap<String, String>,
    pub stop_on_entry: bool,
    /// It is a test, and is to stop where that fails, though its runner catches the failure.
    #[serde(default)]
    pub stops_at_test_failures: bool,
    /// The caller has named the host of what is attached to: a local listener may then belong to another user.
    #[serde(default)]
    pub is_host_named: bool,
    /// Where it has its files, if it runs elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathMap>,
    /// The variables of its environment whose values were not stored, since they may be secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unstored_variables: Vec<String>,
    /// The keys of a launch.json configuration, variables resolved. They override everything else that is sent to the
    /// adapter.
    pub fields: Fields,
    /// The values of variables in the configuration: masked in what is shown of the program's start, and not stored.
    #[serde(skip)]
    pub secrets: SecretValues,
}

/// How a target is named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum DebugTargetKind {
    /// Defined by the launch.json fields alone.
    #[default]
    #[serde(rename = "Fields")]
    Configuration,
    /// A source file or an executable; absolute.
    Program(PathBuf),
    /// A module that the interpreter finds (`python -m`).
    Module(String),
    /// A process that listens for debuggers.
    #[serde(rename = "Listening")]
    Listener(Address),
    /// A running process.
    Pid(u32),
    /// The core dump of a program that has ended; both absolute.
    Core { core: PathBuf, program: PathBuf },
    /// A page whose URL starts with `url`, in a browser whose CDP port is `port`.
    Page { url: String, port: u16 },
}

/// A host name or IP address, and a TCP port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    pub host: String,
    pub port: u16,
}

impl DebugTarget {
    /// Whether it is attached to, because it is running already.
    pub fn is_attach(&self) -> bool {
        match self.kind {
            DebugTargetKind::Listener(_)
            | DebugTargetKind::Pid(_)
            | DebugTargetKind::Core { .. }
            | DebugTargetKind::Page { .. } => true,
            DebugTargetKind::Program(_) | DebugTargetKind::Module(_) => false,
            DebugTargetKind::Configuration => self.text_field("request") == Some("attach"),
        }
    }

    /// Whether it listens for debuggers, so that it can be attached to again after a detach.
    pub fn is_listener(&self) -> bool {
        match self.kind {
            DebugTargetKind::Listener(_) | DebugTargetKind::Page { .. } => true,
            DebugTargetKind::Configuration if self.is_attach() => {
                ["port", "connect", "debugPort", "websocketAddress"].iter().any(|name| self.fields.contains_key(*name))
            }
            _ => false,
        }
    }

    /// A non-empty text of the configuration.
    pub fn text_field(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    /// A boolean of the configuration.
    pub fn bool_field(&self, name: &str) -> Option<bool> {
        self.fields.get(name)?.as_bool()
    }

    /// The program, absolute.
    pub fn program(&self) -> Option<PathBuf> {
        match (self.text_field("program"), &self.kind) {
            (Some(text), _) => Some(self.cwd().join(text)),
            (None, DebugTargetKind::Program(path) | DebugTargetKind::Core { program: path, .. }) => Some(path.clone()),
            _ => None,
        }
    }

    /// The core dump, absolute; `None` for other targets.
    pub fn core_file(&self) -> Option<PathBuf> {
        if let DebugTargetKind::Core { core, .. } = &self.kind {
            return Some(core.clone());
        }
        // Of cppdbg, of lldb-dap and gdb, and of Delve.
        let is_core_mode = self.text_field("mode") == Some("core");
        let names = [("coreDumpPath", true), ("coreFile", self.is_attach()), ("coreFilePath", is_core_mode)];
        let core = names.into_iter().find_map(|(name, is_meant)| self.text_field(name).filter(|_| is_meant));
        core.map(|core| self.cwd().join(core))
    }

    /// The module; `None` for other targets.
    pub fn module(&self) -> Option<&str> {
        match &self.kind {
            DebugTargetKind::Module(module) => Some(module),
            _ => self.text_field("module"),
        }
    }

    /// The working directory, absolute.
    pub fn cwd(&self) -> PathBuf {
        self.text_field("cwd").map_or_else(|| self.cwd.clone(), |cwd| self.cwd.join(cwd))
    }

    /// The program's arguments. Errors: the configuration's `args` is not a list of strings.
    pub fn args(&self) -> Result<Vec<String>> {
        match self.fields.get("args") {
            None | Some(Value::Null) => Ok(self.args.clone()),
            Some(list) => self.parse_text_list("args", list),
        }
    }

    /// A list of strings of the configuration; a single string is a list of one.
    pub fn text_list(&self, name: &str) -> Result<Vec<String>> {
        match self.fields.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(one)) => Ok(vec![one.clone()]),
            Some(list) => self.parse_text_list(name, list),
        }
    }

    fn parse_text_list(&self, name: &str, list: &Value) -> Result<Vec<String>> {
        let word = |word: &Value| match word {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let words = list.as_array().and_then(|words| words.iter().map(word).collect());
        words.ok_or_else(|| {
            Error::usage(format!("cannot use `{name}` of the configuration"))
                .because(format!("it is {list}, not a list of strings"))
                .hint(format!("write `\"{name}\": [\"one\", \"two\"]`"))
        })
    }

    /// The environment, where it differs from tether's own: the caller's, then the request's and the configuration's.
    pub fn env(&self) -> BTreeMap<String, Option<String>> {
        let caller = self.caller_env.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
        caller.chain(self.requested_env()).collect()
    }

    /// The variables that are asked for: the request's, then the configuration's, in each of VS Code's forms.
    fn requested_env(&self) -> BTreeMap<String, Option<String>> {
        let mut env = self.env.clone();
        let text = |value: &Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        for (name, value) in self.fields.get("env").and_then(Value::as_object).into_iter().flatten() {
            env.insert(name.clone(), text(value));
        }
        // `["NAME=value"]` is a form of lldb-dap.
        for one in self.fields.get("env").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            let (name, value) = one.split_once('=').unwrap_or((one, ""));
            env.insert(name.to_owned(), Some(value.to_owned()));
        }
        // `[{"name": …, "value": …}]` is the form of the C++ tools.
        for one in self.fields.get("environment").and_then(Value::as_array).into_iter().flatten() {
            if let Some(name) = one.get("name").and_then(Value::as_str) {
                env.insert(name.to_owned(), one.get("value").and_then(text));
            }
        }
        env
    }

    /// As it is stored: with the names of its environment's variables only, and without their values in other fields. Attaching again does not need them.
    pub fn without_environment(mut self) -> DebugTarget {
        self.unstored_variables = self.requested_env().into_keys().collect();
        self.env.clear();
        self.caller_env.clear();
        self.fields.retain(|name, _| !["env", "environment"].contains(&name.as_str()));
        for (name, value) in &mut self.fields {
            if self.secrets.mask_json(value) {
                self.unstored_variables.push(format!("`{name}`"));
            }
        }
        self
    }

    /// Whether the program is to stop at its first line.
    pub fn stop_on_entry(&self) -> bool {
        self.bool_field("stopOnEntry").or_else(|| self.bool_field("stopAtEntry")).unwrap_or(self.stop_on_entry)
    }

    /// The fields for an adapter: `ours`, overridden by the configuration's.
    pub fn with_configuration(&self, ours: Value) -> Fields {
        let ours = if let Value::Object(fields) = ours { fields } else { Fields::new() };
        ours.into_iter().chain(self.fields.clone()).collect()
    }

    /// The `attach` request with these fields, overridden by the configuration's.
    pub fn attach_request(&self, ours: Value) -> StartRequest {
        StartRequest::Attach(self.with_configuration(ours))
    }

    /// The environment without the variables that are unset.
    pub fn assigned_variables(&self) -> BTreeMap<String, String> {
        self.env().into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// The launch fields that most adapters have in common.
    pub fn launch_fields(&self, program: &Path) -> Result<Value> {
        Ok(json!({
            "program": program, "args": self.args()?, "cwd": self.cwd(), "env": self.assigned_variables(),
            "stopOnEntry": self.stop_on_entry(),
        }))
    }

    /// Returns the path if it exists. Errors: [`ErrorKind::NotFound`].
    pub fn require_file(&self, path: &Path) -> Result<PathBuf> {
        if path.exists() {
            return Ok(path.to_owned());
        }
        let error = Error::new(ErrorKind::NotFound, format!("cannot debug {}", path.display()));
        Err(error.because("there is no such file").hint("give an absolute path, or one relative to the workspace"))
    }

    /// The error that an adapter cannot debug this target, because of `can`: a sentence on what it can.
    pub fn unsupported_error(&self, adapter: &str, can: &str) -> Error {
        let what = match &self.kind {
            DebugTargetKind::Configuration => {
                format!("a configuration with `request` {:?}", self.text_field("request").unwrap_or_default())
            }
            DebugTargetKind::Program(path) => path.display().to_string(),
            DebugTargetKind::Module(module) => format!("the module {module}"),
            DebugTargetKind::Listener(address) => {
                format!("the process that listens on {}:{}", address.host, address.port)
            }
            DebugTargetKind::Pid(pid) => format!("process {pid}"),
            DebugTargetKind::Core { core, .. } => format!("the core dump {}", core.display()),
            DebugTargetKind::Page { url, .. } => format!("the page {url}"),
        };
        Error::usage(format!("cannot debug {what} with {adapter}")).because(can.to_owned())
    }
}

impl Address {
    /// A port of 127.0.0.1.
    pub fn loopback(port: u16) -> Address {
        Address { host: "127.0.0.1".to_owned(), port }
    }

    /// The `host` (default: 127.0.0.1) and `port` of a configuration; the port may be a string.
    pub fn from_fields(fields: &Fields) -> Option<Address> {
        let port = fields.get("port")?;
        let port = port.as_u64().or_else(|| port.as_str()?.parse().ok())?;
        let host = fields.get("host").and_then(Value::as_str).unwrap_or("127.0.0.1").to_owned();
        Some(Address { host, port: u16::try_from(port).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target_with(fields: Value) -> DebugTarget {
        DebugTarget {
            kind: DebugTargetKind::Program("/a space/app.py".into()),
            args: vec!["ours".into()],
            cwd: "/a space".into(),
            env: [("A".to_owned(), Some("1".to_owned()))].into(),
            fields: serde_json::from_value(fields).unwrap(),
            ..DebugTarget::default()
        }
    }

    #[test]
    fn the_configuration_overrides_the_request() {
        let plain = target_with(json!({}));
        assert_eq!((plain.program(), plain.args().unwrap()), (Some("/a space/app.py".into()), vec!["ours".into()]));
        assert!(!plain.is_attach() && !plain.stop_on_entry());
        let set = target_with(json!({
            "program": "ä.py", "cwd": "sub", "args": ["x", 1], "env": {"B": "2", "A": null}, "stopOnEntry": true,
        }));
        assert_eq!(set.program(), Some("/a space/sub/ä.py".into()));
        assert_eq!(set.args().unwrap(), ["x", "1"]);
        assert_eq!(set.env(), [("A".to_owned(), None), ("B".to_owned(), Some("2".to_owned()))].into());
        let launch = set.launch_fields(Path::new("/p")).unwrap();
        assert_eq!((&launch["stopOnEntry"], &launch["env"]), (&json!(true), &json!({"B": "2"})));
        let stored = set.without_environment();
        assert_eq!((stored.env(), stored.unstored_variables), (BTreeMap::new(), vec!["A".to_owned(), "B".to_owned()]));
        let mut with_secret = target_with(json!({"args": ["--token", "s3cret-x"], "port": 1}));
        with_secret.secrets.add("s3cret-x", "${env:X}");
        let stored = with_secret.without_environment();
        assert_eq!(stored.fields["args"], json!(["--token", "${env:X}"]));
        assert_eq!(stored.unstored_variables, ["A", "`args`"]);
        let of_cpp = target_with(json!({"environment": [{"name": "C", "value": "3"}], "stopAtEntry": true}));
        assert!(of_cpp.env()["C"].as_deref() == Some("3") && of_cpp.stop_on_entry());
        let of_lldb_dap = target_with(json!({"env": ["C=3=4", "D"]}));
        assert_eq!((of_lldb_dap.env()["C"].as_deref(), of_lldb_dap.env()["D"].as_deref()), (Some("3=4"), Some("")));
        assert_eq!(
            target_with(json!({"a": 1})).with_configuration(json!({"a": 2, "b": 3})),
            target_with(json!({"a": 1, "b": 3})).fields
        );
    }

    #[test]
    fn arguments_that_are_no_list_are_an_error() {
        for bad in [json!("a b"), json!([["a"]]), json!(7)] {
            let error = target_with(json!({"args": bad})).args().unwrap_err().to_string();
            assert!(error.contains("`args`") && error.contains("not a list of strings"), "{error}");
        }
    }
}
