//! The arguments of `launch` and `attach`, as users of launch.json know them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tether_backend::launch_fields::FieldReader;
use tether_dap::types::Fields;

/// Arguments of the Java extension that change nothing here.
const IGNORED_KEYS: [&str; 4] = ["projectName", "shortenCommandLine", "encoding", "stepFilters"];

/// What is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JavaProgramKind {
    /// A source that is compiled first, unless its class is there and newer.
    Source(PathBuf),
    Jar(PathBuf),
    /// A class on the class path, or `module/class`.
    Class(String),
}

/// The arguments of `launch`.
#[derive(Clone, Debug)]
pub(crate) struct JavaLaunch {
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

/// What is attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttachPlace {
    Port {
        host: String,
        port: u16,
    },
    /// A process of this machine.
    Process(u32),
}

/// The arguments of `attach`.
#[derive(Clone, Debug)]
pub(crate) struct JavaAttach {
    pub target: AttachPlace,
    pub cwd: PathBuf,
    pub source_paths: Vec<PathBuf>,
    /// `false`: a virtual machine that waits for its debugger runs at once.
    pub stop_on_entry: bool,
    pub unknown: Vec<String>,
}

impl JavaLaunch {
    /// Errors: what is to be launched is missing, or an argument is of another form.
    pub(crate) fn from_fields(fields: &Fields) -> Result<JavaLaunch, String> {
        let mut reader = FieldReader::new(fields, &IGNORED_KEYS);
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

impl JavaLaunch {
    /// The source that is launched.
    pub(crate) fn source(&self) -> Option<&Path> {
        match &self.program {
            JavaProgramKind::Source(source) => Some(source),
            JavaProgramKind::Jar(_) | JavaProgramKind::Class(_) => None,
        }
    }
}

impl JavaAttach {
    /// Errors: there is no port, or an argument is of another form.
    pub(crate) fn from_fields(fields: &Fields) -> Result<JavaAttach, String> {
        let mut reader = FieldReader::new(fields, &IGNORED_KEYS);
        let cwd = reader.cwd()?;
        let host = reader.text("hostName")?.or(reader.text("host")?).unwrap_or_else(|| "127.0.0.1".to_owned());
        let port = match reader.value("port") {
            Some(Value::String(text)) => text.parse().ok(),
            Some(value) => value.as_u64().and_then(|port| u16::try_from(port).ok()),
            None => None,
        };
        let process = match reader.value("processId") {
            None => None,
            Some(Value::String(text)) => {
                Some(text.parse().map_err(|_| format!("`processId` is {text:?}, not a number"))?)
            }
            Some(value) => {
                let pid = value.as_u64().and_then(|pid| u32::try_from(pid).ok());
                Some(pid.ok_or_else(|| format!("`processId` is {value}, and no process"))?)
            }
        };
        let port = port.filter(|port| *port > 0);
        let target = match (process, port) {
            (Some(pid), None) => AttachPlace::Process(pid),
            (None, Some(port)) => AttachPlace::Port { host, port },
            (Some(_), Some(_)) => return Err("there are a `port` and a `processId`: one of them is meant".to_owned()),
            (None, None) => return Err("there is no `port`, and no `processId`".to_owned()),
        };
        Ok(JavaAttach {
            target,
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
    fn attach_arguments_need_a_port_or_a_process() {
        let attach = |fields: Value| JavaAttach::from_fields(fields.as_object().unwrap());
        let it = attach(json!({"hostName": "h", "port": "5005"})).unwrap();
        assert_eq!((it.target, it.stop_on_entry), (AttachPlace::Port { host: "h".to_owned(), port: 5005 }, true));
        assert_eq!(attach(json!({"processId": "7"})).unwrap().target, AttachPlace::Process(7));
        let several = json!({"processId": 1, "port": 5});
        for bad in [json!({}), json!({"port": 0}), json!({"port": 70000}), json!({"processId": "x"}), several] {
            assert!(attach(bad.clone()).is_err(), "{bad}");
        }
    }
}
