//! The arguments of `launch` and `attach`, as users of launch.json know them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::dap::types::Fields;

/// Keys of launch.json that are for the editor, or that change nothing here.
const IGNORED_KEYS: [&str; 20] = [
    "type",
    "request",
    "name",
    "console",
    "projectName",
    "shortenCommandLine",
    "encoding",
    "stepFilters",
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

/// What is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JavaProgramKind {
    /// A source that is compiled first, unless its class is there and newer.
    Source(PathBuf),
    Jar(PathBuf),
    /// A class on the class path, or `module/class`.
    Class(String),
}

/// The arguments of `launch`.
#[derive(Clone, Debug)]
pub struct JavaLaunch {
    pub program: JavaProgramKind,
    pub java: PathBuf,
    pub cwd: PathBuf,
    pub env: BTreeMap<String, Option<String>>,
    pub args: Vec<String>,
    pub vm_args: Vec<String>,
    pub class_paths: Vec<PathBuf>,
    pub module_paths: Vec<PathBuf>,
    pub source_paths: Vec<PathBuf>,
    pub stop_on_entry: bool,
    /// Keys that are not known.
    pub unknown: Vec<String>,
}

/// The arguments of `attach`.
#[derive(Clone, Debug)]
pub struct JavaAttach {
    pub host: String,
    pub port: u16,
    pub cwd: PathBuf,
    pub source_paths: Vec<PathBuf>,
    /// `false`: a virtual machine that waits for its debugger runs at once.
    pub stop_on_entry: bool,
    pub unknown: Vec<String>,
}

/// Reads the fields of a request, and notes which were read.
struct FieldReader<'a> {
    fields: &'a Fields,
    read: Vec<&'static str>,
}

impl FieldReader<'_> {
    fn value(&mut self, name: &'static str) -> Option<&Value> {
        self.read.push(name);
        self.fields.get(name).filter(|value| !value.is_null())
    }

    fn text(&mut self, name: &'static str) -> Result<Option<String>, String> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
            Some(other) => Err(format!("`{name}` is {other}, and not a text")),
        }
    }

    /// A list of texts; one text is split as a shell does.
    fn list(&mut self, name: &'static str) -> Result<Vec<String>, String> {
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
    fn paths(&mut self, name: &'static str, cwd: &Path) -> Result<Vec<PathBuf>, String> {
        let list = match self.value(name) {
            Some(Value::String(one)) => vec![one.clone()],
            _ => self.list(name)?,
        };
        Ok(list.iter().filter(|path| !path.starts_with(['$', '!'])).map(|path| cwd.join(path)).collect())
    }

    fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.value(name).and_then(Value::as_bool)
    }

    fn env(&mut self) -> Result<BTreeMap<String, Option<String>>, String> {
        let Some(value) = self.value("env") else { return Ok(BTreeMap::new()) };
        let entries = value.as_object().ok_or_else(|| format!("`env` is {value}, and not an object"))?;
        let text = |value: &Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        Ok(entries.iter().map(|(name, value)| (name.clone(), text(value))).collect())
    }

    fn unknown(&self) -> Vec<String> {
        let is_known = |name: &str| self.read.contains(&name) || IGNORED_KEYS.contains(&name);
        self.fields.keys().filter(|name| !is_known(name) && !name.starts_with("__")).cloned().collect()
    }

    fn cwd(&mut self) -> Result<PathBuf, String> {
        match self.text("cwd")? {
            Some(cwd) => Ok(PathBuf::from(cwd)),
            None => std::env::current_dir().map_err(|cause| format!("there is no current folder: {cause}")),
        }
    }
}

impl JavaLaunch {
    /// Errors: what is to be launched is missing, or an argument is of another form.
    pub fn from_fields(fields: &Fields) -> Result<JavaLaunch, String> {
        let mut reader = FieldReader { fields, read: Vec::new() };
        let cwd = reader.cwd()?;
        let (jar, main_class) = (reader.text("jar")?, reader.text("mainClass")?);
        let program = reader.text("program")?;
        let named = main_class.or(program);
        let program = match (jar, named) {
            (Some(jar), _) => JavaProgramKind::Jar(cwd.join(jar)),
            (None, Some(name)) if name.ends_with(".java") => JavaProgramKind::Source(cwd.join(name)),
            (None, Some(name)) if name.ends_with(".jar") => JavaProgramKind::Jar(cwd.join(name)),
            (None, Some(name)) => JavaProgramKind::Class(name),
            (None, None) => return Err("there is no `mainClass` and no `jar`".to_owned()),
        };
        Ok(JavaLaunch {
            program,
            java: reader.text("javaExec")?.map_or_else(|| "java".into(), PathBuf::from),
            env: reader.env()?,
            args: reader.list("args")?,
            vm_args: reader.list("vmArgs")?,
            class_paths: reader.paths("classPaths", &cwd)?,
            module_paths: reader.paths("modulePaths", &cwd)?,
            source_paths: reader.paths("sourcePaths", &cwd)?,
            stop_on_entry: reader.flag("stopOnEntry").unwrap_or(false),
            unknown: reader.unknown(),
            cwd,
        })
    }
}

impl JavaAttach {
    /// Errors: there is no port, or an argument is of another form.
    pub fn from_fields(fields: &Fields) -> Result<JavaAttach, String> {
        let mut reader = FieldReader { fields, read: Vec::new() };
        let cwd = reader.cwd()?;
        let host = reader.text("hostName")?.or(reader.text("host")?).unwrap_or_else(|| "127.0.0.1".to_owned());
        let port = match reader.value("port") {
            Some(Value::String(text)) => text.parse().ok(),
            Some(value) => value.as_u64().and_then(|port| u16::try_from(port).ok()),
            None if fields.contains_key("processId") => {
                return Err("a process is attached to by the port of its `-agentlib:jdwp`, not by its id".to_owned());
            }
            None => None,
        };
        Ok(JavaAttach {
            host,
            port: port.filter(|port| *port > 0).ok_or("there is no `port`")?,
            source_paths: reader.paths("sourcePaths", &cwd)?,
            stop_on_entry: reader.flag("stopOnEntry").unwrap_or(true),
            unknown: reader.unknown(),
            cwd,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn launch(fields: Value) -> Result<JavaLaunch, String> {
        JavaLaunch::from_fields(fields.as_object().unwrap())
    }

    #[test]
    fn launch_arguments_are_those_of_launch_json() {
        let it = launch(json!({
            "type": "java", "request": "launch", "name": "n", "mainClass": "com.example.App", "cwd": "/w",
            "args": "a 'b c'", "vmArgs": ["-ea"], "classPaths": ["lib/a.jar", "$Auto"], "env": {"A": 1, "B": null},
            "stopOnEntry": true, "surprise": 1, "__internal": 2,
        }))
        .unwrap();
        assert_eq!(it.program, JavaProgramKind::Class("com.example.App".into()));
        assert_eq!((it.args, it.vm_args), (vec!["a".to_owned(), "b c".to_owned()], vec!["-ea".to_owned()]));
        assert_eq!(it.class_paths, [PathBuf::from("/w/lib/a.jar")]);
        assert_eq!(it.env, BTreeMap::from([("A".to_owned(), Some("1".to_owned())), ("B".to_owned(), None)]));
        assert!(it.stop_on_entry && it.unknown == ["surprise"]);
        let kind = |fields: Value| launch(fields).unwrap().program;
        assert_eq!(kind(json!({"cwd": "/w", "program": "A.java"})), JavaProgramKind::Source("/w/A.java".into()));
        assert_eq!(kind(json!({"cwd": "/w", "jar": "a.jar"})), JavaProgramKind::Jar("/w/a.jar".into()));
        for bad in [
            json!({}),
            json!({"mainClass": 1}),
            json!({"mainClass": "A", "args": "'"}),
            json!({"mainClass": "A", "env": []}),
        ] {
            assert!(launch(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn attach_arguments_need_a_port() {
        let attach = |fields: Value| JavaAttach::from_fields(fields.as_object().unwrap());
        let it = attach(json!({"hostName": "h", "port": "5005"})).unwrap();
        assert_eq!((it.host.as_str(), it.port, it.stop_on_entry), ("h", 5005, true));
        for bad in [json!({}), json!({"port": 0}), json!({"port": 70000}), json!({"processId": 1})] {
            assert!(attach(bad.clone()).is_err(), "{bad}");
        }
    }
}
